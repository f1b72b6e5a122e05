// What all Redis sessions of a process share.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "redis/clients.h"
#include "redis/config.h"
#include "redis/fence_book.h"
#include "redis/name_pieces.h"
#include "redis/session.h"
#include "redis/usage.h"
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
  size_t clients_max = 10'000;
  size_t command_bytes_max = 64 * 1024 * 1024;  // of one, or of all that wait for EXEC
  // Says `request` to another server, and gives so many lines of its answer, or as many as come;
  // for MIGRATE. None: no other can be reached.
  std::function<Result<std::string>(const std::string& host, uint16_t port, ByteView request,
                                    size_t lines, uint32_t timeout_ms)>
      ask_server = {};
  // Any thread: stops the whole process, gracefully and soon. None: it cannot be stopped so.
  std::function<void()> stop_process = {};
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
        clients_(keyspaces.map().clock),
        changes_(keyspaces.changes().subscribe([this] { changes_seen_++; })) {}

  // A new client. One on this machine is in the default keyspace at once, and the server's admin as
  // it is over HTTP, unless it must say who it is.
  Status greet(Session& session);
  // Binds the session to the keyspace that `user` names, KEYSPACE[.USER], as the secret allows it:
  // WRONGPASS. What the session was before stays if it fails.
  Status authenticate(Session& session, ByteView user, ByteView secret);

  // As a client that has just come.
  Status start_anew(Session& session);

  // Whether it is authenticated and its token still good. Else it has to say anew who it is.
  bool is_welcome(Session& session);
  // Forgets what is queued and watched.
  void leave_multi(Session& session);
  void forget_watches(Session& session);
  // The connection is gone.
  void leave(Session& session) {
    clients_.remove(session);
    forget_watches(session);
  }
  uint64_t next_client_id() { return ++client_ids_; }
  // For picks at random: another one each time, also after a restart.
  uint64_t next_seed() { return map().clock.monotonic_us() + seeds_++; }

  const RedisOptions& options() const { return options_; }
  Keyspaces& keyspaces() { return keyspaces_; }
  const MapHandle& map() const { return keyspaces_.map(); }
  Versions& versions() { return versions_; }
  WatchTable& watches() { return watches_; }
  RedisConfig& config() { return config_; }
  Clients& clients() { return clients_; }
  NamePiecesTable& name_pieces() { return name_pieces_; }
  // Null where others may write to the same map.
  FenceBooks* fence_books() { return map().latched() ? &fence_books_ : nullptr; }
  std::shared_ptr<Usage> usage(KeyspaceId keyspace) { return of_keyspace(keyspace).usage; }
  // Whether keys go by themselves when their time has come; for clients they are gone anyway.
  bool expires_actively() const { return expires_actively_; }
  void set_expires_actively(bool expires) { expires_actively_ = expires; }
  uint64_t uptime_ms() const { return map().clock.unix_ms() - started_ms_; }

 private:
  struct OfKeyspace {
    std::shared_ptr<Usage> usage = std::make_shared<Usage>();
    std::shared_ptr<Databases> databases = std::make_shared<Databases>();
  };
  OfKeyspace of_keyspace(KeyspaceId keyspace);
  void bind(Session& session, std::shared_ptr<Tenant> tenant, Caller caller, ByteView user);

  Keyspaces& keyspaces_;
  Tokens& tokens_;
  const RedisOptions options_;
  Versions versions_;
  WatchTable watches_;
  RedisConfig config_;
  Clients clients_;
  NamePiecesTable name_pieces_;
  FenceBooks fence_books_{map().clock};
  std::mutex keyspaces_mutex_;
  std::unordered_map<KeyspaceId, OfKeyspace> of_keyspaces_;
  const uint64_t started_ms_ = map().clock.unix_ms();
  std::atomic<bool> expires_actively_{true};
  std::atomic<uint64_t> client_ids_{0};
  std::atomic<uint64_t> seeds_{0};
  std::atomic<uint64_t> changes_seen_{1};  // by administrators: a token may have been revoked
  const ChangeLog::Subscription changes_;
};

}  // namespace trellis
