// Keys that become other keys: a new life, into which all records are copied.
#include "redis/alone_transaction.h"
#include "redis/generic_handlers.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

Error same_key() { return reply_with("ERR source and destination objects are the same"); }

// Says whether it did.
Result<bool> rename(Call& call, bool may_replace) {
  TRY_ASSIGN(Key* const from, call.open(1));
  TRY_ASSIGN(Key* const to, call.open(2));
  if (!from->exists()) return no_such_key();
  if (from == to || (to->exists() && !may_replace)) return false;
  TRY(call.keys.copy(*from, *to));
  from->remove();
  return true;
}

Result<uint32_t> parse_database(const AloneCall& call, size_t i) {
  TRY(call.integer(i));
  TRY_ASSIGN(const int32_t index,
             call.index(i, reply_with("ERR value is out of range, value must between -2147483648 "
                                      "and 2147483647")));
  return database_at(index);
}

struct Target {
  uint32_t database;
  ByteView name;
  bool may_replace;
  bool is_move;
};

Status copy_to(AloneCall& alone, const Target& target) {
  const uint32_t database = alone.session.database;
  if (target.database == database && target.name == alone.arg(1)) return same_key();
  const NamedKey names[] = {{database, alone.arg(1), Access::write},
                            {target.database, target.name, Access::write}};
  return transact_alone(alone, names, [&](Call& call) -> Status {
    TRY_ASSIGN(Key* const from, call.open(1));
    TRY_ASSIGN(Key* const to, call.keys.open(target.database, target.name));
    const bool copies = from->exists() && (target.may_replace || !to->exists());
    if (copies) TRY(call.keys.copy(*from, *to));
    if (copies && target.is_move) from->remove();
    call.reply.integer(copies ? 1 : 0);
    return {};
  });
}

}  // namespace

Status rename_key(Call& call) {
  TRY(rename(call, true));
  call.reply.ok();
  return {};
}

Status rename_key_if_new(Call& call) {
  TRY_ASSIGN(const bool renamed, rename(call, false));
  call.reply.integer(renamed ? 1 : 0);
  return {};
}

Status copy_key(AloneCall& call) {
  Target target{call.session.database, call.arg(2), false, false};
  for (size_t i = 3; i < call.count(); i++) {
    if (call.is_word(i, "replace")) {
      target.may_replace = true;
    } else if (call.is_word(i, "db") && i + 1 < call.count()) {
      TRY_ASSIGN(target.database, parse_database(call, ++i));
    } else {
      return syntax_error();
    }
  }
  return copy_to(call, target);
}

Status move_key(AloneCall& call) {
  TRY_ASSIGN(const uint32_t database, parse_database(call, 2));
  if (database == call.session.database) return same_key();
  return copy_to(call, {database, call.arg(1), false, true});
}

}  // namespace trellis
