#include "redis/alone_transaction.h"

#include "redis/server.h"

namespace trellis {

Status transact_alone(AloneCall& alone, const Scope& scope, Access access,
                      FunctionRef<Status(Call&)> fn) {
  RedisServer& server = alone.server;
  Tenant& tenant = *alone.session.tenant;
  TRY(server.versions().prepare());
  const size_t mark = alone.reply.mark();
  const auto run = [&](CountedView& view) -> Status {
    alone.reply.rewind(mark);
    Keys keys(view, tenant.id(), server.versions(), server.map().clock.unix_ms());
    Lookups lookups;
    Call call{alone.command, alone.args, alone.reply, keys, alone.session, server, lookups};
    TRY(fn(call));
    return keys.finish([&](const Key& key) { server.watches().touch(key.stored_key()); });
  };
  const Caller& caller = alone.session.caller;
  return access == Access::write ? tenant.write(caller, Model::redis, scope, run)
                                 : tenant.read(caller, Model::redis, scope, run);
}

}  // namespace trellis
