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
  TRY_ASSIGN(session.tenant, keyspaces_.tenant(default_keyspace));
  session.caller = {Role::admin, "local"};
  return {};
}

void RedisServer::leave_multi(Session& session) {
  session.in_multi = false;
  session.multi_failed = false;
  session.queue.clear();
  forget_watches(session);
}

void RedisServer::forget_watches(Session& session) {
  for (const Session::Watched& watched : session.watched)
    watches_.remove(watched.stored_key, session.watch_flag);
  session.watched.clear();
  session.watch_flag.reset();
}

Status RedisServer::authenticate(Session& session, ByteView user, ByteView secret) {
  // Names have no dot, so that what follows one is the user.
  std::string_view keyspace = user.substr(0, user.find('.'));
  if (keyspace == "default") keyspace = default_keyspace_name;
  if (!options_.admin_token.empty() && same_secret(secret, options_.admin_token)) {
    auto tenant = keyspaces_.tenant(keyspace);
    if (!tenant) return wrong_password();
    session.tenant = std::move(*tenant);
    session.caller = {Role::server_admin, "admin"};
    session.user = user;
    return {};
  }
  auto identity = tokens_.authenticate(secret);
  if (!identity) {
    if (identity.error().code == Code::denied) return wrong_password();
    return std::move(identity).error();
  }
  TRY_ASSIGN(std::shared_ptr<Tenant> tenant, keyspaces_.tenant(identity->keyspace));
  TRY_ASSIGN(const Keyspace known, tenant->keyspace());
  if (known.name != keyspace) return wrong_password();
  session.tenant = std::move(tenant);
  session.caller = std::move(identity->caller);
  session.user = user;
  return {};
}

}  // namespace trellis
