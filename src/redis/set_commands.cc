// Sets: a record per member, without a value.
#include <algorithm>

#include "redis/call.h"
#include "redis/collection.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

using namespace command_flag;

// What is read of a record of a set.
Value member_value() {
  Value value;
  value.set_borrowed({});
  return value;
}

// --- members ---

Status sadd(Call& call) {
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::set));
  const std::vector<size_t> positions = distinct_args(call, 2);
  std::vector<Value> old(positions.size());
  if (key->exists())
    TRY(call.keys.get_subs(*key, args_at(call, positions), old));
  else
    key->create(RedisType::set, call.keys.new_version());
  uint64_t added = 0;
  for (size_t i = 0; i < positions.size(); i++) {
    if (old[i].found()) continue;
    call.keys.put_sub(*key, call.arg(positions[i]), {}, old[i]);
    added++;
  }
  if (added > 0) key->set_size(key->size() + added);
  call.reply.integer(static_cast<int64_t>(added));
  return {};
}

Status srem(Call& call) {
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::set));
  TRY_ASSIGN(const uint64_t removed, remove_args(call, *key, 2));
  call.reply.integer(static_cast<int64_t>(removed));
  return {};
}

Status smove(Call& call) {
  TRY_ASSIGN(Key* const from, call.open(1));
  TRY_ASSIGN(Key* const to, call.open(2));
  const ByteView member = call.arg(3);
  Value old;
  Value there;
  if (from->exists()) {
    if (from->type() != RedisType::set) return wrong_type();
    if (to->exists() && to->type() != RedisType::set) return wrong_type();
    TRY(call.keys.get_sub(*from, member, old));
  }
  call.reply.integer(old.found() ? 1 : 0);
  if (!old.found() || from == to) return {};
  if (to->exists()) TRY(call.keys.get_sub(*to, member, there));
  call.keys.remove_sub(*from, member, old);
  from->set_size(from->size() - 1);
  if (there.found()) return {};
  if (!to->exists()) to->create(RedisType::set, call.keys.new_version());
  call.keys.put_sub(*to, member, {}, there);
  to->set_size(to->size() + 1);
  return {};
}

Status sismember(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::set));
  Value value;
  if (key->exists()) TRY(call.keys.get_sub(*key, call.arg(2), value));
  call.reply.integer(value.found() ? 1 : 0);
  return {};
}

Status smismember(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::set));
  std::vector<Value> values(call.count() - 2);
  if (key->exists()) TRY(call.keys.get_subs(*key, call.args.subspan(2), values));
  call.reply.array(values.size());
  for (const Value& value : values) call.reply.integer(value.found() ? 1 : 0);
  return {};
}

Status scard(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::set));
  call.reply.integer(key->exists() ? static_cast<int64_t>(key->size()) : 0);
  return {};
}

Status smembers(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::set));
  const size_t mark = call.reply.mark();
  size_t found = 0;
  TRY(visit_records(call, *key, [&](ByteView member, ByteView) {
    call.reply.bulk(member);
    found++;
  }));
  call.reply.insert_set(mark, found);
  return {};
}

Status sscan(Call& call) {
  return reply_scan(call, RedisType::set, 1,
                    [&](ByteView member, ByteView) { call.reply.bulk(member); });
}

// --- at random ---

Status srandmember(Call& call) {
  if (call.count() > 3) return syntax_error();
  const bool counted = call.count() == 3;
  RandomPick pick;
  if (counted) {
    TRY_ASSIGN(pick, random_pick(call));
  }
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::set));
  if (!key->exists() && !counted) {
    call.reply.null();
    return {};
  }
  const size_t mark = call.reply.mark();
  size_t found = 0;
  TRY(visit_random(call, *key, pick, [&](ByteView member, ByteView) {
    call.reply.bulk(member);
    found++;
  }));
  if (counted) call.reply.insert_array(mark, found);
  return {};
}

void remove_members(Call& call, Key& key, std::span<const Bytes> members) {
  if (members.empty()) return;
  // Of many, all at once: they are left to the collector.
  constexpr size_t few = 64;
  if (members.size() == key.size() && members.size() > few) return key.remove();
  const Value old = member_value();
  for (const Bytes& member : members) call.keys.remove_sub(key, member, old);
  key.set_size(key.size() - members.size());
}

Status spop(Call& call) {
  if (call.count() > 3) return syntax_error();
  const bool counted = call.count() == 3;
  RandomPick pick;
  if (counted) {
    const auto count = parse_integer(call.arg(2));
    if (!count || *count < 0) return reply_with("ERR value is out of range, must be positive");
    pick.count = static_cast<uint64_t>(*count);
  }
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::set));
  if (!key->exists() && !counted) {
    call.reply.null();
    return {};
  }
  std::vector<Bytes> members;
  TRY(visit_random(call, *key, pick,
                   [&](ByteView member, ByteView) { members.emplace_back(member); }));
  if (counted) call.reply.set(members.size());
  for (const Bytes& member : members) call.reply.bulk(member);
  remove_members(call, *key, members);
  return {};
}

// --- several sets ---

using Sets = std::vector<const Key*>;

// The arguments from `first` to before `end`. Those that are not there are empty sets.
Result<Sets> open_sets(Call& call, size_t first, size_t end) {
  Sets sets;
  for (size_t i = first; i < end; i++) {
    TRY_ASSIGN(const Key* const key, call.open(i, RedisType::set));
    sets.push_back(key);
  }
  return sets;
}

// Which of the members, which are in order, the set has.
Result<std::vector<bool>> find_members(Call& call, const Key& set, std::span<const Bytes> members,
                                       bool by_scan) {
  std::vector<bool> found(members.size());
  if (members.empty() || !set.exists()) return found;
  if (!by_scan) {
    std::vector<Value> values(members.size());
    TRY(call.keys.get_subs(set, std::vector<ByteView>(members.begin(), members.end()), values));
    for (size_t i = 0; i < values.size(); i++) found[i] = values[i].found();
    return found;
  }
  size_t at = 0;
  const auto compare = [&](ByteView member, ByteView) {
    while (at < members.size() && members[at] < member) at++;
    if (at < members.size() && members[at] == member) found[at++] = true;
    return at < members.size() ? Visit::go_on : Visit::stop;
  };
  const Bytes end = successor(members.back());
  TRY(call.keys.scan_subs(set, {.begin = members.front(), .end = end}, compare));
  return found;
}

using MemberVisitor = FunctionRef<Visit(ByteView member)>;

// The members of `from` that are in all of the others, or in none of them.
Status visit_filtered(Call& call, const Key& from, std::span<const Key* const> others,
                      bool in_others, MemberVisitor visit) {
  constexpr size_t chunk_members = 512;
  // A look-up costs about as much as so many steps of a scan.
  constexpr uint64_t get_steps = 8;
  if (!from.exists()) return {};
  for (Bytes begin;;) {
    std::vector<Bytes> members;
    TRY(call.keys.scan_subs(from, {.begin = begin}, [&](ByteView member, ByteView) {
      members.emplace_back(member);
      return members.size() < chunk_members ? Visit::go_on : Visit::stop;
    }));
    const bool is_last = members.size() < chunk_members;
    if (!is_last) begin = successor(members.back());
    for (const Key* const other : others) {
      const bool by_scan = other->exists() && other->size() / get_steps <= from.size();
      TRY_ASSIGN(const std::vector<bool> found, find_members(call, *other, members, by_scan));
      std::erase_if(members,
                    [&, i = size_t{0}](const Bytes&) mutable { return found[i++] != in_others; });
    }
    for (const Bytes& member : members)
      if (visit(member) == Visit::stop) return {};
    if (is_last) return {};
  }
}

Status visit_intersection(Call& call, Sets sets, MemberVisitor visit) {
  for (const Key* const set : sets)
    if (!set->exists()) return {};
  std::stable_sort(sets.begin(), sets.end(),
                   [](const Key* a, const Key* b) { return a->size() < b->size(); });
  return visit_filtered(call, *sets[0], std::span(sets).subspan(1), true, visit);
}

using Members = std::vector<Bytes>;
using SetOperation = Result<Members> (*)(Call& call, const Sets& sets);

Result<Members> intersect(Call& call, const Sets& sets) {
  Members members;
  TRY(visit_intersection(call, sets, [&](ByteView member) {
    members.emplace_back(member);
    return Visit::go_on;
  }));
  return members;
}

Result<Members> subtract(Call& call, const Sets& sets) {
  Members members;
  TRY(visit_filtered(call, *sets[0], std::span(sets).subspan(1), false, [&](ByteView member) {
    members.emplace_back(member);
    return Visit::go_on;
  }));
  return members;
}

Result<Members> unite(Call& call, const Sets& sets) {
  Members members;
  for (const Key* const set : sets)
    TRY(visit_records(call, *set,
                      [&](ByteView member, ByteView) { members.emplace_back(member); }));
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  return members;
}

Status reply_members(Call& call, SetOperation operation) {
  TRY_ASSIGN(const Sets sets, open_sets(call, 1, call.count()));
  TRY_ASSIGN(const Members members, operation(call, sets));
  call.reply.set(members.size());
  for (const Bytes& member : members) call.reply.bulk(member);
  return {};
}
Status sinter(Call& call) { return reply_members(call, intersect); }
Status sunion(Call& call) { return reply_members(call, unite); }
Status sdiff(Call& call) { return reply_members(call, subtract); }

// The destination may be one of the sets: it gets a new life when all is read.
Status store_members(Call& call, SetOperation operation) {
  TRY_ASSIGN(const Sets sets, open_sets(call, 2, call.count()));
  TRY_ASSIGN(const Members members, operation(call, sets));
  TRY_ASSIGN(Key* const to, call.open(1));
  call.reply.integer(static_cast<int64_t>(members.size()));
  if (members.empty()) {
    to->remove();
    return {};
  }
  to->create(RedisType::set, call.keys.new_version());
  for (const Bytes& member : members) call.keys.put_sub(*to, member, {}, Value());
  to->set_size(members.size());
  return {};
}
Status sinterstore(Call& call) { return store_members(call, intersect); }
Status sunionstore(Call& call) { return store_members(call, unite); }
Status sdiffstore(Call& call) { return store_members(call, subtract); }

// SINTERCARD numkeys key [key ...] [LIMIT limit]
Status sintercard_keys(Args args, std::vector<size_t>& positions) {
  const auto count = parse_integer(args[1]);
  if (!count || *count < 1 || static_cast<uint64_t>(*count) > args.size() - 2)
    return reply_with("ERR Invalid arguments specified for command");
  for (size_t i = 0; i < static_cast<size_t>(*count); i++) positions.push_back(2 + i);
  return {};
}

Status sintercard(Call& call) {
  const auto count = parse_integer(call.arg(1));
  if (!count || *count < 1) return reply_with("ERR numkeys should be greater than 0");
  if (static_cast<uint64_t>(*count) > call.count() - 2)
    return reply_with("ERR Number of keys can't be greater than number of args");
  const size_t end = 2 + static_cast<size_t>(*count);
  int64_t limit = 0;
  for (size_t i = end; i < call.count(); i += 2) {
    if (!call.is_word(i, "limit") || i + 1 == call.count()) return syntax_error();
    const auto given = parse_integer(call.arg(i + 1));
    if (!given || *given < 0) return reply_with("ERR LIMIT can't be negative");
    limit = *given;
  }
  TRY_ASSIGN(const Sets sets, open_sets(call, 2, end));
  int64_t found = 0;
  TRY(visit_intersection(call, sets, [&](ByteView) {
    found++;
    return found == limit ? Visit::stop : Visit::go_on;
  }));
  call.reply.integer(found);
  return {};
}

namespace set_table {

constexpr KeyPositions one{1, 1, 1};
constexpr KeyPositions all{1, -1, 1};
constexpr uint32_t store = write | denyoom;

const Command table[] = {
    {"sadd", -3, store | fast, one, sadd, "1.0.0", "Adds members to a set.", {2, 1}},
    {"scard", 2, readonly | fast, one, scard, "1.0.0", "How many members a set has."},
    {"sdiff", -2, readonly, all, sdiff, "1.0.0", "What the first set has and no other."},
    {"sdiffstore", -3, store, all, sdiffstore, "1.0.0", "Stores what SDIFF gives."},
    {"sinter", -2, readonly, all, sinter, "1.0.0", "What all sets have."},
    {.name = "sintercard",
     .arity = -3,
     .flags = readonly | movablekeys,
     .handler = sintercard,
     .since = "7.0.0",
     .summary = "How many members all sets have.",
     .find_keys = sintercard_keys},
    {"sinterstore", -3, store, all, sinterstore, "1.0.0", "Stores what SINTER gives."},
    {"sismember", 3, readonly | fast, one, sismember, "1.0.0", "Whether a set has a member.", {2}},
    {"smembers", 2, readonly, one, smembers, "1.0.0", "All members of a set."},
    {"smismember",
     -3,
     readonly | fast,
     one,
     smismember,
     "6.2.0",
     "Whether a set has each of the members.",
     {2, 1}},
    {"smove", 4, write | fast, {1, 2, 1}, smove, "1.0.0", "Moves a member to another set."},
    {"spop", -2, write | fast, one, spop, "1.0.0", "Takes members at random from a set."},
    {"srandmember", -2, readonly, one, srandmember, "1.0.0", "Members of a set at random."},
    {"srem", -3, write | fast, one, srem, "1.0.0", "Removes members from a set.", {2, 1}},
    {"sscan", -3, readonly, one, sscan, "2.8.0", "A page of the members of a set."},
    {"sunion", -2, readonly, all, sunion, "1.0.0", "What any of the sets has."},
    {"sunionstore", -3, store, all, sunionstore, "1.0.0", "Stores what SUNION gives."},
};

}  // namespace set_table

}  // namespace

std::span<const Command> set_commands() { return set_table::table; }

}  // namespace trellis
