// What all Redis sessions of a process share.
#pragma once

#include <atomic>

#include "redis/config.h"
#include "redis/session.h"
#include "redis/versions.h"
#include "redis/watch.h"
#include "tenant/keyspaces.h"
#include "tenant/tokens.h"

namespace trellis {

// What clients are told that we speak.
inline constexpr std::string_view redis_version = "7.2.0";

struct RedisOptions {
  bool auth_required = false;  // else the default keyspace is open to clients on this machine
  std::string admin_token;     // of the server's admin, good for every keyspace; empty: none
  size_t command_bytes_max = 64 * 1024 * 1024;  // of one, or of all that wait for EXEC
  RedisConfig::Values config = {};              // what clients are told, and cannot change
};

// Any thread.
class RedisServer {
 public:
  // All of it must outlive the server.
  RedisServer(Keyspaces& keyspaces, Tokens& tokens, RedisOptions options)
      : keyspaces_(keyspaces),
        tokens_(tokens),
        options_(std::move(options)),
        versions_(keyspaces.map()),
        config_(options_.config),
        changes_(keyspaces.changes().subscribe([this] { changes_seen_++; })) {}

  // A new client. One on this machine is in the default keyspace at once, unless it must say who it
  // is.
  Status greet(Session& session);
  // Binds the session to the keyspace that `user` names, KEYSPACE[.USER], as the secret allows it:
  // WRONGPASS. What the session was before stays if it fails.
  Status authenticate(Session& session, ByteView user, ByteView secret);

  // Whether it is authenticated and its token still good. Else it has to say anew who it is.
  bool is_welcome(Session& session);
  // Forgets what is queued and watched.
  void leave_multi(Session& session);
  void forget_watches(Session& session);
  // The connection is gone.
  void leave(Session& session) { forget_watches(session); }
  uint64_t next_client_id() { return ++client_ids_; }

  const RedisOptions& options() const { return options_; }
  Keyspaces& keyspaces() { return keyspaces_; }
  const MapHandle& map() const { return keyspaces_.map(); }
  Versions& versions() { return versions_; }
  WatchTable& watches() { return watches_; }
  RedisConfig& config() { return config_; }
  uint64_t uptime_ms() const { return map().clock.unix_ms() - started_ms_; }

 private:
  Keyspaces& keyspaces_;
  Tokens& tokens_;
  const RedisOptions options_;
  Versions versions_;
  WatchTable watches_;
  RedisConfig config_;
  const uint64_t started_ms_ = map().clock.unix_ms();
  std::atomic<uint64_t> client_ids_{0};
  std::atomic<uint64_t> changes_seen_{1};  // by administrators: a token may have been revoked
  const ChangeLog::Subscription changes_;
};

}  // namespace trellis
