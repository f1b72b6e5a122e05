#include "redis/server.h"

#include <fmt/format.h>

#include "redis/call.h"

namespace trellis {
namespace {

Error wrong_password() {
  return reply_with("WRONGPASS invalid username-password pair or user is disabled.");
}

}  // namespace

Status RedisServer::greet(Session& session) {
  if (options_.auth_required || !session.is_local) return {};
  TRY_ASSIGN(std::shared_ptr<Tenant> tenant, keyspaces_.tenant(default_keyspace));
  session.secret.clear();
  bind(session, std::move(tenant), {Role::server_admin, "local"}, "default");
  return {};
}

void RedisServer::bind(Session& session, std::shared_ptr<Tenant> tenant, Caller caller,
                       ByteView user) {
  OfKeyspace of = of_keyspace(tenant->id());
  if (of.usage != session.usage)
    of.usage->count([](UsageFigures& figures) { figures.connections++; });
  clients_.change([&] {
    session.tenant = std::move(tenant);
    session.usage = std::move(of.usage);
    session.databases = std::move(of.databases);
    session.caller = std::move(caller);
    session.user = user;
  });
}

RedisServer::OfKeyspace RedisServer::of_keyspace(KeyspaceId keyspace) {
  const std::lock_guard lock(keyspaces_mutex_);
  return of_keyspaces_[keyspace];
}

Status RedisServer::start_anew(Session& session) {
  clients_.change([&] {
    session.name.clear();
    session.user = "default";
    session.tenant = nullptr;
    session.usage = nullptr;
    session.databases = nullptr;
  });
  session.secret.clear();
  return greet(session);
}

void RedisServer::leave_multi(Session& session) {
  session.in_multi = false;
  session.multi_failed = false;
  session.queue = {};
  session.queued_bytes = 0;
  forget_watches(session);
}

void RedisServer::forget_watches(Session& session) {
  for (const auto& [key, watched] : session.watched) watches_.remove(key, session.watch_flag);
  session.watched.clear();
  session.watched_bytes = 0;
  session.watch_flag.reset();
}

Status RedisServer::authenticate(Session& session, ByteView user, ByteView secret) {
  // Names have no dot, so that what follows one is the user.
  std::string_view keyspace = user.substr(0, user.find('.'));
  if (keyspace == "default") keyspace = default_keyspace_name;
  if (!options_.admin_token.empty() && same_secret(secret, options_.admin_token)) {
    auto tenant = keyspaces_.tenant(keyspace);
    if (!tenant) return wrong_password();
    bind(session, std::move(*tenant), {Role::server_admin, "admin"}, user);
    session.secret.clear();
    return {};
  }
  const uint64_t changes_seen = changes_seen_;  // before the token is read
  auto identity = tokens_.authenticate(secret);
  if (!identity) {
    if (identity.error().code == Code::denied) return wrong_password();
    return std::move(identity).error();
  }
  TRY_ASSIGN(std::shared_ptr<Tenant> tenant, keyspaces_.tenant(identity->keyspace));
  TRY_ASSIGN(const Keyspace known, tenant->keyspace());
  if (known.name != keyspace) return wrong_password();
  bind(session, std::move(tenant), std::move(identity->caller), user);
  session.secret = secret;
  session.secret_checked = changes_seen;
  session.secret_expires_ms = identity->expires_at_ms;
  return {};
}

bool RedisServer::is_welcome(Session& session) {
  if (session.tenant == nullptr) return false;
  if (session.secret.empty()) return true;
  const uint64_t changes_seen = changes_seen_;
  const bool expired =
      session.secret_expires_ms != 0 && session.secret_expires_ms <= map().clock.unix_ms();
  if (changes_seen == session.secret_checked && !expired) return true;
  if (!tokens_.authenticate(session.secret)) return false;
  session.secret_checked = changes_seen;
  return true;
}

}  // namespace trellis
