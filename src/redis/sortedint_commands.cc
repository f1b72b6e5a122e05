// Sorted ints: sets of numbers of 64 bits in their order, which Kvrocks has and Redis has not.
//
//   's' number u64 -> nothing
#include <algorithm>
#include <charconv>
#include <limits>

#include "codec/redis_keys.h"
#include "redis/call.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

using namespace command_flag;

constexpr uint64_t number_max = std::numeric_limits<uint64_t>::max();

std::optional<uint64_t> parse_number(ByteView text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<uint64_t> number_at(const Call& call, size_t i) {
  const auto number = parse_number(call.arg(i));
  if (!number) return not_an_integer();
  return *number;
}

Result<std::vector<Bytes>> subs_from(const Call& call, size_t first) {
  std::vector<Bytes> subs;
  for (size_t i = first; i < call.count(); i++) {
    TRY_ASSIGN(const uint64_t number, number_at(call, i));
    subs.push_back(encode(RedisSortedintSub{number}));
  }
  return subs;
}

// Which of them there are.
Result<std::vector<Value>> find_numbers(Call& call, const Key& key,
                                        const std::vector<Bytes>& subs) {
  std::vector<Value> values(subs.size());
  const std::vector<ByteView> views(subs.begin(), subs.end());
  if (key.exists()) TRY(call.keys.get_subs(key, views, values));
  return values;
}

// --- by number ---

Status change(Call& call, bool adds) {
  TRY_ASSIGN(std::vector<Bytes> subs, subs_from(call, 2));
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::sortedint));
  std::sort(subs.begin(), subs.end());
  subs.erase(std::unique(subs.begin(), subs.end()), subs.end());
  TRY_ASSIGN(const std::vector<Value> old, find_numbers(call, *key, subs));
  uint64_t changed = 0;
  for (size_t i = 0; i < subs.size(); i++) {
    if (old[i].found() == adds) continue;
    if (!key->exists()) key->create(RedisType::sortedint, call.keys.new_version());
    adds ? call.keys.put_sub(*key, subs[i], {}, old[i])
         : call.keys.remove_sub(*key, subs[i], old[i]);
    changed++;
  }
  if (changed > 0) key->set_size(adds ? key->size() + changed : key->size() - changed);
  call.reply.integer(static_cast<int64_t>(changed));
  return {};
}

Status siadd(Call& call) { return change(call, true); }
Status sirem(Call& call) { return change(call, false); }

Status sicard(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::sortedint));
  call.reply.integer(key->exists() ? static_cast<int64_t>(key->size()) : 0);
  return {};
}

Status siexists(Call& call) {
  TRY_ASSIGN(const std::vector<Bytes> subs, subs_from(call, 2));
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::sortedint));
  TRY_ASSIGN(const std::vector<Value> values, find_numbers(call, *key, subs));
  call.reply.array(values.size());
  for (const Value& value : values) call.reply.integer(value.found() ? 1 : 0);
  return {};
}

// --- ranges ---

struct NumberRange {
  uint64_t min = 0;
  uint64_t max = number_max;
  bool is_empty = false;
  uint64_t offset = 0;
  uint64_t count = 0;  // 0: all
};

Status reply_numbers(Call& call, const Key& key, const NumberRange& range, bool reverse) {
  const size_t mark = call.reply.mark();
  uint64_t skipped = range.offset;
  uint64_t shown_count = 0;
  Status bad;
  const auto show = [&](ByteView sub, ByteView) {
    if (skipped > 0) {
      skipped--;
      return Visit::go_on;
    }
    const auto number = decode<RedisSortedintSub>(sub);
    if (!number) {
      bad = number.error();
      return Visit::stop;
    }
    call.reply.bulk(std::to_string(number->id));
    return ++shown_count == range.count ? Visit::stop : Visit::go_on;
  };
  if (key.exists() && !range.is_empty && range.min <= range.max) {
    const Bytes begin = encode(RedisSortedintSub{range.min});
    const Bytes end = range.max == number_max ? Bytes() : encode(RedisSortedintSub{range.max + 1});
    TRY(call.keys.scan_subs(key, {.begin = begin, .end = end, .reverse = reverse}, show));
    TRY(bad);
  }
  call.reply.insert_array(mark, shown_count);
  return {};
}

// Behind a cursor, which is the last number that was seen; 0 begins, on either side.
Status show_by_offset(Call& call, bool reverse) {
  NumberRange range;
  TRY_ASSIGN(range.offset, number_at(call, 2));
  TRY_ASSIGN(range.count, number_at(call, 3));
  if (call.count() != 4 && (call.count() != 6 || !call.is_word(4, "cursor"))) return syntax_error();
  if (call.count() == 6) {
    TRY_ASSIGN(const uint64_t cursor, number_at(call, 5));
    if (reverse && cursor != 0)
      range.max = cursor - 1;
    else if (cursor == number_max)
      range.is_empty = true;
    else
      range.min = cursor + 1;
  }
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::sortedint));
  return reply_numbers(call, *key, range, reverse);
}

Status sirange(Call& call) { return show_by_offset(call, false); }
Status sirevrange(Call& call) { return show_by_offset(call, true); }

// A bound, which ( leaves out of the range.
struct NumberBound {
  uint64_t number;
  bool exclusive;
};
Result<NumberBound> parse_bound(ByteView text, std::string_view endless, uint64_t end,
                                const char* error) {
  if (text == endless) return NumberBound{end, false};
  const bool exclusive = text.starts_with('(');
  const auto number = parse_number(text.substr(exclusive ? 1 : 0));
  if (!number) return reply_with(error);
  return NumberBound{*number, exclusive};
}

Result<NumberRange> parse_bounds(ByteView min_text, ByteView max_text) {
  if (min_text == "+inf" || max_text == "-inf") return reply_with("ERR min > max");
  TRY_ASSIGN(const NumberBound min, parse_bound(min_text, "-inf", 0, "ERR the min isn't integer"));
  TRY_ASSIGN(const NumberBound max,
             parse_bound(max_text, "+inf", number_max, "ERR the max isn't integer"));
  NumberRange range;
  range.is_empty =
      (min.exclusive && min.number == number_max) || (max.exclusive && max.number == 0);
  range.min = min.number + (min.exclusive ? 1 : 0);
  range.max = max.number - (max.exclusive ? 1 : 0);
  return range;
}

Status show_by_value(Call& call, bool reverse) {
  TRY_ASSIGN(NumberRange range, parse_bounds(call.arg(reverse ? 3 : 2), call.arg(reverse ? 2 : 3)));
  if (call.count() != 4 && (call.count() != 7 || !call.is_word(4, "limit"))) return syntax_error();
  if (call.count() == 7) {
    TRY_ASSIGN(const int64_t offset, call.integer(5));
    TRY_ASSIGN(const int64_t count, call.integer(6));
    range.offset = static_cast<uint64_t>(std::max<int64_t>(offset, 0));
    range.count = static_cast<uint64_t>(std::max<int64_t>(count, 0));
  }
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::sortedint));
  return reply_numbers(call, *key, range, reverse);
}

Status sirangebyvalue(Call& call) { return show_by_value(call, false); }
Status sirevrangebyvalue(Call& call) { return show_by_value(call, true); }

namespace sortedint_table {

constexpr KeyPositions one{1, 1, 1};

const Command table[] = {
    {"siadd", -3, write | denyoom | fast, one, siadd, "7.0.0", "Adds numbers to a sorted int."},
    {"sicard", 2, readonly | fast, one, sicard, "7.0.0", "How many numbers a sorted int has."},
    {"siexists", -3, readonly | fast, one, siexists, "7.0.0",
     "Which of the numbers a sorted int has."},
    {"sirange", -4, readonly, one, sirange, "7.0.0", "Numbers by their place in the order."},
    {"sirangebyvalue", -4, readonly, one, sirangebyvalue, "7.0.0", "Numbers between two others."},
    {"sirem", -3, write | fast, one, sirem, "7.0.0", "Removes numbers from a sorted int."},
    {"sirevrange", -4, readonly, one, sirevrange, "7.0.0",
     "Numbers by their place in the order, the largest first."},
    {"sirevrangebyvalue", -4, readonly, one, sirevrangebyvalue, "7.0.0",
     "Numbers between two others, the largest first."},
};

}  // namespace sortedint_table

}  // namespace

std::span<const Command> sortedint_commands() { return sortedint_table::table; }

}  // namespace trellis
