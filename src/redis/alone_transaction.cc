#include "redis/alone_transaction.h"

#include "redis/executor.h"
#include "redis/server.h"

namespace trellis {
namespace {

Status call_with(AloneCall& alone, Keys& keys, FunctionRef<Status(Call&)> fn) {
  Lookups lookups;
  Call call{alone.command, alone.args, alone.reply, keys, alone.session, alone.server, lookups};
  return fn(call);
}

Status run(RedisTransaction& transaction, AloneCall& alone, FunctionRef<Status(Call&)> fn) {
  const size_t mark = alone.reply.mark();
  return transaction.run([&](Keys& keys) -> Status {
    alone.reply.rewind(mark);
    return call_with(alone, keys, fn);
  });
}

}  // namespace

Status transact_alone(AloneCall& alone, std::span<const NamedKey> names,
                      FunctionRef<Status(Call&)> fn) {
  if (alone.keys != nullptr) return call_with(alone, *alone.keys, fn);
  RedisTransaction transaction(alone.server, alone.session);
  for (const NamedKey& key : names) transaction.name_key(key.database, key.name, key.access);
  return run(transaction, alone, fn);
}

Status transact_all(AloneCall& alone, Access access, FunctionRef<Status(Call&)> fn) {
  if (alone.keys != nullptr) return call_with(alone, *alone.keys, fn);
  RedisTransaction transaction(alone.server, alone.session);
  transaction.take_keyspace(access);
  return run(transaction, alone, fn);
}

// --- what is read in no transaction, or in EXEC's ---

Status AloneCall::admit_read() {
  if (keys != nullptr) return {};
  return session.tenant->admit(session.caller, Access::read);
}

Result<DatabaseSlots> AloneCall::slots() {
  if (keys != nullptr) return keys->slots();
  return session.databases->current(*session.tenant);
}

Result<int64_t> AloneCall::count_keys(const DatabaseSlots& slots, uint32_t database) {
  if (keys != nullptr) return keys->count_keys(database);
  Value value;
  TRY(server.map().engine.get(
      encode(CounterKey{session.tenant->id(), Model::redis, CounterName::keys, slots.of(database)}),
      value));
  return stored_count(value);
}

Result<ScanPage> AloneCall::scan(const ScanRequest& request, ScanVisitor visit) {
  if (keys == nullptr) return server.map().engine.scan(request, visit);
  TRY(keys->settle());
  return keys->view().scan(request, visit);
}

}  // namespace trellis
