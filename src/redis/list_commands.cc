// Lists: records by index, without gaps between head (inclusive) and tail (exclusive).
#include <algorithm>

#include "codec/redis_keys.h"
#include "redis/call.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

using namespace command_flag;

// Removing more than this costs more than a new life for what is left, if that is less.
constexpr uint64_t removals_few = 1'024;

enum class Side : bool { left, right };

Bytes sub_of(uint64_t index) { return encode(RedisListSub{index}); }

Result<Key*> open_list(Call& call, size_t i) {
  TRY_ASSIGN(Key* const key, call.open(i, RedisType::list));
  if (key->exists() && (key->head() > key->tail() || key->tail() - key->head() != key->size()))
    return Error{Code::corrupt, "the ends of a list do not make sense"};
  return key;
}

// --- records ---

Status read_element(Call& call, const Key& key, uint64_t index, Value& value) {
  TRY(call.keys.get_sub(key, sub_of(index), value));
  if (!value.found()) return Error{Code::corrupt, "an element of a list is missing"};
  return {};
}

// Those of [begin, end), from the left or the right. The visitor must not change the list.
Status visit_elements(Call& call, const Key& key, uint64_t begin, uint64_t end, Side from,
                      FunctionRef<Visit(uint64_t index, ByteView value)> visit) {
  const Bytes first = sub_of(begin);
  const Bytes behind = sub_of(end);
  const bool reverse = from == Side::right;
  uint64_t index = reverse ? end : begin;
  bool whole = true;
  bool stopped = false;
  TRY(call.keys.scan_subs(key, {.begin = first, .end = behind, .reverse = reverse},
                          [&](ByteView sub, ByteView value) {
                            if (reverse) index--;
                            whole = sub == sub_of(index);
                            if (!whole) return Visit::stop;
                            stopped = visit(index, value) == Visit::stop;
                            if (!reverse) index++;
                            return stopped ? Visit::stop : Visit::go_on;
                          }));
  if (!whole || (!stopped && index != (reverse ? begin : end)))
    return Error{Code::corrupt, "an element of a list is missing"};
  return {};
}

Result<std::vector<Bytes>> read_elements(Call& call, const Key& key, uint64_t begin, uint64_t end) {
  std::vector<Bytes> elements;
  size_t bytes = 0;
  TRY(visit_elements(call, key, begin, end, Side::left, [&](uint64_t, ByteView value) {
    elements.emplace_back(value);
    bytes += value.size();
    return bytes > rewritten_bytes_max ? Visit::stop : Visit::go_on;
  }));
  if (bytes > rewritten_bytes_max)
    return Error{Code::too_large, "the part of the list that changes is too large",
                 commit_too_large};
  return elements;
}

void put(Call& call, const Key& key, uint64_t index, ByteView value, ByteView old) {
  Value was;
  was.set_borrowed(old);
  call.keys.put_sub(key, sub_of(index), value, was);
}

void remove(Call& call, const Key& key, uint64_t index, ByteView old) {
  Value was;
  was.set_borrowed(old);
  call.keys.remove_sub(key, sub_of(index), was);
}

// --- changing the ends ---

void push(Call& call, Key& key, Side side, std::span<const ByteView> values) {
  if (!key.exists()) key.create(RedisType::list, call.keys.new_version());
  uint64_t head = key.head();
  uint64_t tail = key.tail();
  for (const ByteView value : values)
    call.keys.put_sub(key, sub_of(side == Side::left ? --head : tail++), value, Value());
  key.set_ends(head, tail);
}

// Leaves [begin, end) of the list.
Status keep(Call& call, Key& key, uint64_t begin, uint64_t end) {
  const uint64_t kept = end - begin;
  const uint64_t removed = key.size() - kept;
  if (removed > removals_few && kept < removed) {
    if (kept == 0) {
      key.remove();
      return {};
    }
    const auto first = sub_of(begin);
    const auto behind = sub_of(end);
    TRY(call.keys.renew(key, {.begin = first, .end = behind}));
    key.set_ends(begin, end);
    return {};
  }
  TRY_ASSIGN(const std::vector<Bytes> left, read_elements(call, key, key.head(), begin));
  TRY_ASSIGN(const std::vector<Bytes> right, read_elements(call, key, end, key.tail()));
  for (size_t i = 0; i < left.size(); i++) remove(call, key, key.head() + i, left[i]);
  for (size_t i = 0; i < right.size(); i++) remove(call, key, end + i, right[i]);
  if (removed > 0) key.set_ends(begin, end);
  return {};
}

// One element from a side. REQUIRES: the list is there.
Status pop_one(Call& call, Key& key, Side side, Value& value) {
  const uint64_t index = side == Side::left ? key.head() : key.tail() - 1;
  TRY(read_element(call, key, index, value));
  call.keys.remove_sub(key, sub_of(index), value);
  if (side == Side::left)
    key.set_ends(index + 1, key.tail());
  else
    key.set_ends(key.head(), index);
  return {};
}

// Up to `count` as an array, in the order in which they are taken. REQUIRES: the list is there.
Status pop_several(Call& call, Key& key, Side side, uint64_t count) {
  count = std::min(count, key.size());
  const bool left = side == Side::left;
  const uint64_t begin = left ? key.head() : key.tail() - count;
  call.reply.array(count);
  TRY(visit_elements(call, key, begin, begin + count, side, [&](uint64_t, ByteView value) {
    call.reply.bulk(value);
    return Visit::go_on;
  }));
  return left ? keep(call, key, begin + count, key.tail()) : keep(call, key, key.head(), begin);
}

// --- pushing ---

Status push_arguments(Call& call, Side side, bool must_exist) {
  TRY_ASSIGN(Key* const key, open_list(call, 1));
  if (key->exists() || !must_exist) push(call, *key, side, call.args.subspan(2));
  call.reply.integer(key->exists() ? static_cast<int64_t>(key->size()) : 0);
  return {};
}
Status lpush(Call& call) { return push_arguments(call, Side::left, false); }
Status rpush(Call& call) { return push_arguments(call, Side::right, false); }
Status lpushx(Call& call) { return push_arguments(call, Side::left, true); }
Status rpushx(Call& call) { return push_arguments(call, Side::right, true); }

// --- popping ---

Status pop(Call& call, Side side) {
  if (call.count() > 3) return wrong_arity(call.command.name);
  std::optional<int64_t> count;
  if (call.count() == 3) {
    count = parse_integer(call.arg(2));
    if (!count || *count < 0) return reply_with("ERR value is out of range, must be positive");
  }
  TRY_ASSIGN(Key* const key, open_list(call, 1));
  if (!key->exists()) {
    count ? call.reply.null_array() : call.reply.null();
    return {};
  }
  if (count) return pop_several(call, *key, side, static_cast<uint64_t>(*count));
  Value value;
  TRY(pop_one(call, *key, side, value));
  call.reply.bulk(value.bytes());
  return {};
}
Status lpop(Call& call) { return pop(call, Side::left); }
Status rpop(Call& call) { return pop(call, Side::right); }

Result<Side> parse_side(const Call& call, size_t i) {
  if (call.is_word(i, "left")) return Side::left;
  if (call.is_word(i, "right")) return Side::right;
  return syntax_error();
}

Status move(Call& call, Side from_side, Side to_side) {
  TRY_ASSIGN(Key* const from, open_list(call, 1));
  if (!from->exists()) {
    call.reply.null();
    return {};
  }
  TRY_ASSIGN(Key* const to, open_list(call, 2));
  Value value;
  if (from == to && from->size() == 1) {  // as it was; its life and expiry go on
    TRY(read_element(call, *from, from->head(), value));
    from->set_ends(from->head(), from->tail());
  } else {
    TRY(pop_one(call, *from, from_side, value));
    push(call, *to, to_side, std::array{value.bytes()});
  }
  call.reply.bulk(value.bytes());
  return {};
}
Status rpoplpush(Call& call) { return move(call, Side::right, Side::left); }
Status lmove(Call& call) {
  TRY_ASSIGN(const Side from, parse_side(call, 3));
  TRY_ASSIGN(const Side to, parse_side(call, 4));
  return move(call, from, to);
}

// LMPOP numkeys key [key ...] LEFT|RIGHT [COUNT count]
Result<size_t> count_of_keys(Args args) {
  const auto count = parse_integer(args[1]);
  if (!count || *count < 1) return reply_with("ERR numkeys should be greater than 0");
  if (static_cast<uint64_t>(*count) > args.size() - 3) return syntax_error();
  return static_cast<size_t>(*count);
}

Status lmpop(Call& call) {
  TRY_ASSIGN(const size_t keys, count_of_keys(call.args));
  TRY_ASSIGN(const Side side, parse_side(call, 2 + keys));
  int64_t count = 1;
  if (const size_t option = 3 + keys; option < call.count()) {
    if (call.count() < option + 2 || !call.is_word(option, "count")) return syntax_error();
    const auto given = parse_integer(call.arg(option + 1));
    if (!given || *given < 1) return reply_with("ERR count should be greater than 0");
    if (call.count() > option + 2) return syntax_error();
    count = *given;
  }
  for (size_t i = 2; i < 2 + keys; i++) {
    TRY_ASSIGN(Key* const key, open_list(call, i));
    if (!key->exists()) continue;
    call.reply.array(2);
    call.reply.bulk(call.arg(i));
    return pop_several(call, *key, side, static_cast<uint64_t>(count));
  }
  call.reply.null_array();
  return {};
}

// --- looking ---

Status llen(Call& call) {
  TRY_ASSIGN(const Key* const key, open_list(call, 1));
  call.reply.integer(key->exists() ? static_cast<int64_t>(key->size()) : 0);
  return {};
}

struct Range {
  uint64_t begin;
  uint64_t end;
};

// The records from element `start` to and with `stop`, which count from the right if negative.
Range range_of(const Key& key, int64_t start, int64_t stop) {
  const auto size = static_cast<int64_t>(key.size());
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (stop < 0) stop += size;
  stop = std::min(stop, size - 1);
  if (start > stop) return {key.head(), key.head()};
  return {key.head() + static_cast<uint64_t>(start), key.head() + static_cast<uint64_t>(stop) + 1};
}

Status lrange(Call& call) {
  TRY_ASSIGN(const int64_t start, call.integer(2));
  TRY_ASSIGN(const int64_t stop, call.integer(3));
  TRY_ASSIGN(const Key* const key, open_list(call, 1));
  const Range range = key->exists() ? range_of(*key, start, stop) : Range{0, 0};
  call.reply.array(range.end - range.begin);
  if (range.begin == range.end) return {};
  return visit_elements(call, *key, range.begin, range.end, Side::left,
                        [&](uint64_t, ByteView value) {
                          call.reply.bulk(value);
                          return Visit::go_on;
                        });
}

std::optional<uint64_t> index_of(const Key& key, int64_t place) {
  const auto size = static_cast<int64_t>(key.size());
  if (place < 0) place += size;
  if (place < 0 || place >= size) return std::nullopt;
  return key.head() + static_cast<uint64_t>(place);
}

Status lindex(Call& call) {
  TRY_ASSIGN(const Key* const key, open_list(call, 1));
  if (!key->exists()) {
    call.reply.null();
    return {};
  }
  TRY_ASSIGN(const int64_t place, call.integer(2));
  const auto index = index_of(*key, place);
  if (!index) {
    call.reply.null();
    return {};
  }
  Value value;
  TRY(read_element(call, *key, *index, value));
  call.reply.bulk(value.bytes());
  return {};
}

struct PositionOptions {
  uint64_t rank = 1;
  Side from = Side::left;
  std::optional<uint64_t> count;
  uint64_t looks_max = 0;  // 0: all
};

Result<PositionOptions> parse_position_options(const Call& call) {
  PositionOptions options;
  for (size_t i = 3; i < call.count(); i += 2) {
    if (i + 1 >= call.count()) return syntax_error();
    const auto number = parse_integer(call.arg(i + 1));
    if (call.is_word(i, "rank")) {
      if (!number) return not_an_integer();
      if (*number == INT64_MIN)  // which has no opposite
        return reply_with(
            "ERR value is out of range, value must between -9223372036854775807 and "
            "9223372036854775807");
      if (*number == 0)
        return reply_with(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... "
            "or use negative to start from the end of the list");
      options.from = *number < 0 ? Side::right : Side::left;
      options.rank = static_cast<uint64_t>(std::abs(*number));
    } else if (call.is_word(i, "count")) {
      if (!number || *number < 0) return reply_with("ERR COUNT can't be negative");
      options.count = *number;
    } else if (call.is_word(i, "maxlen")) {
      if (!number || *number < 0) return reply_with("ERR MAXLEN can't be negative");
      options.looks_max = static_cast<uint64_t>(*number);
    } else {
      return syntax_error();
    }
  }
  return options;
}

Status lpos(Call& call) {
  TRY_ASSIGN(const PositionOptions options, parse_position_options(call));
  TRY_ASSIGN(const Key* const key, open_list(call, 1));
  std::vector<uint64_t> places;
  const uint64_t wanted = !options.count ? 1 : *options.count == 0 ? UINT64_MAX : *options.count;
  if (key->exists()) {
    uint64_t begin = key->head();
    uint64_t end = key->tail();
    if (options.looks_max != 0 && options.looks_max < key->size())
      (options.from == Side::left ? end : begin) =
          options.from == Side::left ? begin + options.looks_max : end - options.looks_max;
    uint64_t matches = 0;
    TRY(visit_elements(call, *key, begin, end, options.from, [&](uint64_t index, ByteView value) {
      if (value != call.arg(2) || ++matches < options.rank) return Visit::go_on;
      places.push_back(index - key->head());
      return places.size() == wanted ? Visit::stop : Visit::go_on;
    }));
  }
  if (options.count) call.reply.array(places.size());
  for (const uint64_t place : places) call.reply.integer(static_cast<int64_t>(place));
  if (!options.count && places.empty()) call.reply.null();
  return {};
}

// --- changing the middle ---

Status lset(Call& call) {
  TRY_ASSIGN(Key* const key, open_list(call, 1));
  if (!key->exists()) return no_such_key();
  TRY_ASSIGN(const int64_t place, call.integer(2));
  const auto index = index_of(*key, place);
  if (!index) return reply_with("ERR index out of range");
  Value old;
  TRY(read_element(call, *key, *index, old));
  call.keys.put_sub(*key, sub_of(*index), call.arg(3), old);
  key->set_ends(key->head(), key->tail());
  call.reply.ok();
  return {};
}

// Makes `value` the element before the one at `index`, by moving the shorter side.
Status insert_before(Call& call, Key& key, uint64_t index, ByteView value) {
  const uint64_t head = key.head();
  const uint64_t tail = key.tail();
  if (index - head <= tail - index) {
    TRY_ASSIGN(const std::vector<Bytes> moved, read_elements(call, key, head, index));
    ByteView next = value;
    for (size_t i = moved.size(); i > 0; i--) {
      put(call, key, head + i - 1, next, moved[i - 1]);
      next = moved[i - 1];
    }
    call.keys.put_sub(key, sub_of(head - 1), next, Value());
    key.set_ends(head - 1, tail);
  } else {
    TRY_ASSIGN(const std::vector<Bytes> moved, read_elements(call, key, index, tail));
    ByteView next = value;
    for (size_t i = 0; i < moved.size(); i++) {
      put(call, key, index + i, next, moved[i]);
      next = moved[i];
    }
    call.keys.put_sub(key, sub_of(tail), next, Value());
    key.set_ends(head, tail + 1);
  }
  return {};
}

Status linsert(Call& call) {
  const bool after = call.is_word(2, "after");
  if (!after && !call.is_word(2, "before")) return syntax_error();
  TRY_ASSIGN(Key* const key, open_list(call, 1));
  if (!key->exists()) {
    call.reply.integer(0);
    return {};
  }
  std::optional<uint64_t> pivot;
  TRY(visit_elements(call, *key, key->head(), key->tail(), Side::left,
                     [&](uint64_t index, ByteView value) {
                       if (value != call.arg(3)) return Visit::go_on;
                       pivot = index;
                       return Visit::stop;
                     }));
  if (!pivot) {
    call.reply.integer(-1);
    return {};
  }
  TRY(insert_before(call, *key, *pivot + (after ? 1 : 0), call.arg(4)));
  call.reply.integer(static_cast<int64_t>(key->size()));
  return {};
}

// Takes out the elements at these indexes, which are sorted, by moving what lies between them and
// the nearer end.
Status take_out(Call& call, Key& key, const std::vector<uint64_t>& gone) {
  const uint64_t head = key.head();
  const uint64_t tail = key.tail();
  const bool from_left = gone.back() - head < tail - gone.front();
  const uint64_t begin = from_left ? head : gone.front();
  const uint64_t end = from_left ? gone.back() + 1 : tail;
  TRY_ASSIGN(const std::vector<Bytes> old, read_elements(call, key, begin, end));
  std::vector<ByteView> left;
  auto next_gone = gone.begin();
  for (size_t i = 0; i < old.size(); i++) {
    if (next_gone != gone.end() && *next_gone == begin + i)
      ++next_gone;
    else
      left.emplace_back(old[i]);
  }
  const size_t shift = from_left ? gone.size() : 0;
  for (size_t i = 0; i < left.size(); i++)
    if (old[i + shift] != left[i]) put(call, key, begin + shift + i, left[i], old[i + shift]);
  for (size_t i = 0; i < gone.size(); i++) {
    const size_t at = from_left ? i : left.size() + i;
    remove(call, key, begin + at, old[at]);
  }
  key.set_ends(head + shift, tail - gone.size() + shift);
  return {};
}

Status lrem(Call& call) {
  TRY_ASSIGN(const int64_t count, call.integer(2));
  TRY_ASSIGN(Key* const key, open_list(call, 1));
  std::vector<uint64_t> gone;
  if (key->exists()) {
    const Side from = count < 0 ? Side::right : Side::left;
    const uint64_t most = count == 0  ? UINT64_MAX
                          : count < 0 ? -static_cast<uint64_t>(count)
                                      : static_cast<uint64_t>(count);
    TRY(visit_elements(call, *key, key->head(), key->tail(), from,
                       [&](uint64_t index, ByteView value) {
                         if (value == call.arg(3)) gone.push_back(index);
                         return gone.size() == most ? Visit::stop : Visit::go_on;
                       }));
    if (from == Side::right) std::reverse(gone.begin(), gone.end());
  }
  if (!gone.empty()) TRY(take_out(call, *key, gone));
  call.reply.integer(static_cast<int64_t>(gone.size()));
  return {};
}

Status ltrim(Call& call) {
  TRY_ASSIGN(const int64_t start, call.integer(2));
  TRY_ASSIGN(const int64_t stop, call.integer(3));
  TRY_ASSIGN(Key* const key, open_list(call, 1));
  if (key->exists()) {
    const Range range = range_of(*key, start, stop);
    TRY(keep(call, *key, range.begin, range.end));
  }
  call.reply.ok();
  return {};
}

namespace list_table {

constexpr KeyPositions one{1, 1, 1};
constexpr KeyPositions two{1, 2, 1};
constexpr uint32_t change = write | denyoom;

constexpr SubPositions next_head{.of = SubPositions::Of::head};
constexpr SubPositions next_tail{.of = SubPositions::Of::tail};

const Command table[] = {
    {"lindex", 3, readonly, one, lindex, "1.0.0", "The element at a place."},
    {"linsert", 5, change, one, linsert, "2.2.0", "Inserts before or after an element."},
    {"llen", 2, readonly | fast, one, llen, "1.0.0", "How many elements a list has."},
    {"lmove", 5, change, two, lmove, "6.2.0", "Moves an element from list to list."},
    {.name = "lmpop",
     .arity = -4,
     .flags = write | movablekeys,
     .handler = lmpop,
     .since = "7.0.0",
     .summary = "Takes elements from the first of several lists that has any.",
     .find_keys = counted_keys<1>},
    {"lpop", -2, write | fast, one, lpop, "1.0.0", "Takes the first elements.", next_head},
    {"lpos", -3, readonly, one, lpos, "6.0.6", "Where an element is."},
    {"lpush", -3, change | fast, one, lpush, "1.0.0", "Adds elements in front."},
    {"lpushx", -3, change | fast, one, lpushx, "2.2.0", "Adds elements in front of a list."},
    {"lrange", 4, readonly, one, lrange, "1.0.0", "The elements between two places."},
    {"lrem", 4, write, one, lrem, "1.0.0", "Removes elements that equal one."},
    {"lset", 4, change, one, lset, "1.0.0", "Replaces the element at a place."},
    {"ltrim", 4, write, one, ltrim, "1.0.0", "Leaves the elements between two places."},
    {"rpop", -2, write | fast, one, rpop, "1.0.0", "Takes the last elements.", next_tail},
    {"rpoplpush", 3, change, two, rpoplpush, "1.2.0", "Moves the last element to a list's front."},
    {"rpush", -3, change | fast, one, rpush, "1.0.0", "Adds elements at the end."},
    {"rpushx", -3, change | fast, one, rpushx, "2.2.0", "Adds elements at the end of a list."},
};

}  // namespace list_table

}  // namespace

std::span<const Command> list_commands() { return list_table::table; }

}  // namespace trellis
