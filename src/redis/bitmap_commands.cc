// Bits of strings: SETBIT, GETBIT, BITCOUNT, BITPOS and BITFIELD. BITOP has a file of its own.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "codec/redis_keys.h"
#include "redis/bitmap.h"
#include "redis/bitop_command.h"
#include "redis/fragment_scan.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

using namespace command_flag;

Error bad_offset() { return reply_with("ERR bit offset is not an integer or out of range"); }

// With a # in front it is of fields of so many bits.
Result<uint64_t> parse_offset(ByteView text, uint64_t field_bits = 0) {
  const bool is_of_fields = field_bits != 0 && text.starts_with('#');
  const auto number = parse_integer(text.substr(is_of_fields ? 1 : 0));
  if (!number) return bad_offset();
  // Where that is too much Redis goes on with what fits into 64 bits.
  const auto offset =
      static_cast<int64_t>(static_cast<uint64_t>(*number) * (is_of_fields ? field_bits : 1));
  if (offset < 0 || static_cast<uint64_t>(offset) / 8 >= bitmap_bytes_max) return bad_offset();
  return static_cast<uint64_t>(offset);
}

// --- one bit ---

Result<bool> get_bit(Keys& keys, const Key& key, uint64_t offset) {
  const uint64_t byte = offset / 8;
  if (byte >= text_bytes(key)) return false;
  Bytes found;
  TRY(read_text(keys, key, byte, byte + 1, found));
  return (static_cast<uint8_t>(found[0]) >> (7 - offset % 8) & 1) != 0;
}

// These set a bit, and say what it was: of a string, which may become a bitmap, and of a bitmap or
// a key that is not there.
Result<bool> set_string_bit(Keys& keys, Key& key, uint64_t offset, bool on) {
  TRY_ASSIGN(const bool was_on, get_bit(keys, key, offset));
  const uint64_t byte = offset / 8;
  if (on != was_on || byte >= text_bytes(key)) TRY(grow_text(keys, key, byte + 1));
  if (on == was_on) return was_on;
  Bytes changed;
  TRY(read_text(keys, key, byte, byte + 1, changed));
  changed[0] = static_cast<char>(static_cast<uint8_t>(changed[0]) ^ 0x80U >> offset % 8);
  TRY(write_text(keys, key, byte, changed));
  return was_on;
}

Result<bool> set_bitmap_bit(Keys& keys, Key& key, uint64_t offset, bool on) {
  const uint64_t byte = offset / 8;
  const uint64_t fragment = byte / fragment_bytes * fragment_bytes;
  const size_t at = byte - fragment;
  Value old;
  if (key.exists()) TRY(get_fragment(keys, key, fragment, old));
  TRY(grow_text(keys, key, byte + 1));
  Bytes stored(old.found() ? old.bytes() : ByteView());
  if (stored.size() <= at) stored.resize(at + 1, '\0');
  const unsigned bit = 1U << offset % 8;
  const unsigned was = static_cast<uint8_t>(stored[at]);
  const bool was_on = (was & bit) != 0;
  if (on == was_on) return was_on;
  stored[at] = static_cast<char>(was ^ bit);
  put_fragment(keys, key, fragment, stored, old);
  key.set_size(key.size());
  return was_on;
}

Status setbit(Call& call) {
  TRY_ASSIGN(const uint64_t offset, parse_offset(call.arg(2)));
  const auto value = parse_integer(call.arg(3));
  if (!value || (*value != 0 && *value != 1))
    return reply_with("ERR bit is not an integer or out of range");
  const bool on = *value == 1;
  TRY_ASSIGN(Key* const key, open_text(call, 1));
  const bool is_string = key->exists() && key->type() == RedisType::string;
  TRY_ASSIGN(const bool was_on, is_string ? set_string_bit(call.keys, *key, offset, on)
                                          : set_bitmap_bit(call.keys, *key, offset, on));
  call.reply.integer(was_on ? 1 : 0);
  return {};
}

Status getbit(Call& call) {
  TRY_ASSIGN(const uint64_t offset, parse_offset(call.arg(2)));
  TRY_ASSIGN(const Key* const key, open_text(call, 1));
  TRY_ASSIGN(const bool is_on, get_bit(call.keys, *key, offset));
  call.reply.integer(is_on ? 1 : 0);
  return {};
}

// --- ranges ---

// From the first bit to the last, both included; none if first > last.
struct BitRange {
  uint64_t first = 1;
  uint64_t last = 0;
  bool is_empty() const { return first > last; }
};

// Whether argument `i` says BIT, or else BYTE.
Result<bool> parse_is_bit(const Call& call, size_t i) {
  if (call.is_word(i, "bit")) return true;
  if (call.is_word(i, "byte")) return false;
  return syntax_error();
}

BitRange bit_range(int64_t start, int64_t end, uint64_t bytes, bool is_bit) {
  const auto length = static_cast<int64_t>(is_bit ? bytes * 8 : bytes);
  if (start < 0) start = std::max<int64_t>(start + length, 0);
  if (end < 0) end = std::max<int64_t>(end + length, 0);
  end = std::min(end, length - 1);
  if (start > end) return {};
  const uint64_t unit = is_bit ? 1 : 8;
  return {static_cast<uint64_t>(start) * unit, static_cast<uint64_t>(end) * unit + unit - 1};
}

// --- BITCOUNT ---

__attribute__((target("popcnt"))) uint64_t count_by_instruction(ByteView bytes) {
  uint64_t counts[4] = {};
  uint64_t words[4] = {};
  for (; bytes.size() >= sizeof(words); bytes.remove_prefix(sizeof(words))) {
    std::memcpy(words, bytes.data(), sizeof(words));
    for (size_t i = 0; i < 4; i++)
      counts[i] += static_cast<uint64_t>(__builtin_popcountll(words[i]));
  }
  std::memset(words, 0, sizeof(words));
  std::memcpy(words, bytes.data(), bytes.size());
  for (size_t i = 0; i < 4; i++) counts[i] += static_cast<uint64_t>(__builtin_popcountll(words[i]));
  return counts[0] + counts[1] + counts[2] + counts[3];
}

uint64_t count_bits(ByteView bytes) {
  static const bool has_instruction = __builtin_cpu_supports("popcnt") != 0;
  if (has_instruction) return count_by_instruction(bytes);
  uint64_t count = 0;
  for (const char byte : bytes)
    count += static_cast<unsigned>(std::popcount(static_cast<uint8_t>(byte)));
  return count;
}

// Of bytes that begin at `offset`, the bits in the range. `is_turned`: as bitmaps store them.
uint64_t count_within(ByteView bytes, uint64_t offset, const BitRange& range, bool is_turned) {
  const uint64_t first = std::max(range.first / 8, offset);
  const uint64_t end = std::min(range.last / 8 + 1, offset + bytes.size());
  if (first >= end) return 0;
  uint64_t count = count_bits(bytes.substr(first - offset, end - first));
  // Less those of the outer bytes that are not in it.
  const auto outside = [&](uint64_t byte, unsigned mask) {
    if (byte < first || byte >= end) return 0;
    char bits = bytes[byte - offset];
    if (is_turned) turn_bits(&bits, 1);
    return std::popcount(static_cast<uint8_t>(bits) & mask);
  };
  count -= static_cast<uint64_t>(outside(range.first / 8, 0xff00U >> range.first % 8 & 0xff));
  count -= static_cast<uint64_t>(outside(range.last / 8, 0x7fU >> range.last % 8));
  return count;
}

Result<uint64_t> count_in_parts(Keys& keys, const Key& key, const BitRange& range) {
  TRY_ASSIGN(const FragmentScan scan, FragmentScan::open(keys, key));
  uint64_t counts[PartWork::slots] = {};
  uint64_t sum = 0;
  const auto count_part = [&](PartWork::Maker, PartWork::Slot slot,
                              std::span<const uint64_t> part) {
    uint64_t count = 0;
    const auto has_some = [&](uint64_t offset) {
      return offset <= range.last / 8 && offset + fragment_bytes > range.first / 8;
    };
    if (std::ranges::none_of(part, has_some)) part = {};
    const Status status = scan.visit(part, [&](uint64_t offset, ByteView stored) {
      count += count_within(stored, offset, range, true);
    });
    counts[slot] = count;
    return status;
  };
  const auto add = [&](PartWork::Slot slot) -> Status {
    sum += counts[slot];
    return {};
  };
  constexpr size_t part_fragments = 4'096;
  TRY(work_in_parts(StoredOrder(key.size(), part_fragments), scan.is_for_threads(),
                    {count_part, add}));
  return sum;
}

Result<uint64_t> count_in(Keys& keys, const Key& key, const BitRange& range) {
  if (range.is_empty()) return 0;
  if (key.type() == RedisType::string) return count_within(key.text(), 0, range, false);
  const uint64_t begin = range.first / 8;
  const uint64_t end = range.last / 8 + 1;
  const bool is_much = bitmap_reading(end - begin) == ScanRequest::Reading::much_once;
  if (is_much && !is_looked_for(key, begin, end)) return count_in_parts(keys, key, range);
  uint64_t count = 0;
  TRY(visit_fragments(keys, key, begin, end, [&](uint64_t offset, ByteView stored) {
    count += count_within(stored, offset, range, true);
  }));
  return count;
}

Status bitcount(Call& call) {
  TRY_ASSIGN(const Key* const key, open_text(call, 1));
  if (!key->exists()) {
    call.reply.integer(0);
    return {};
  }
  const uint64_t bytes = text_bytes(*key);
  BitRange range = bit_range(0, -1, bytes, false);
  if (call.count() == 4 || call.count() == 5) {
    TRY_ASSIGN(const int64_t start, call.integer(2));
    TRY_ASSIGN(const int64_t end, call.integer(3));
    range = {};
    if (start >= 0 || end >= 0 || start <= end) {
      bool is_bit = false;
      if (call.count() == 5) {
        TRY_ASSIGN(is_bit, parse_is_bit(call, 4));
      }
      range = bit_range(start, end, bytes, is_bit);
    }
  } else if (call.count() != 2) {
    return syntax_error();
  }
  TRY_ASSIGN(const uint64_t count, count_in(call.keys, *key, range));
  call.reply.integer(static_cast<int64_t>(count));
  return {};
}

// --- BITPOS ---

using Position = std::optional<uint64_t>;

// The first such bit of the range, in bytes that begin at `offset`.
Position find_within(ByteView bytes, uint64_t offset, const BitRange& range, bool bit) {
  const char skipped = bit ? '\0' : '\xff';
  const uint64_t end = std::min(range.last / 8 + 1, offset + bytes.size());
  for (uint64_t byte = std::max(range.first / 8, offset); byte < end; byte++) {
    const size_t at = bytes.find_first_not_of(skipped, byte - offset);
    if (at == ByteView::npos || offset + at >= end) break;
    byte = offset + at;
    auto bits = static_cast<uint8_t>(bytes[at]);
    if (!bit) bits = static_cast<uint8_t>(~bits);
    if (byte == range.first / 8) bits &= static_cast<uint8_t>(0xffU >> range.first % 8);
    if (byte == range.last / 8) bits &= static_cast<uint8_t>(0xff00U >> (range.last % 8 + 1));
    if (bits != 0) return byte * 8 + static_cast<unsigned>(std::countl_zero(bits));
  }
  return std::nullopt;
}

// In one fragment of a bitmap, stored or not.
Result<Position> find_in_fragment(Keys& keys, const Key& key, uint64_t offset,
                                  const BitRange& range, bool bit) {
  Bytes bytes;
  TRY(read_text(keys, key, offset, std::min(offset + fragment_bytes, key.size()), bytes));
  return find_within(bytes, offset, range, bit);
}

// Fragments are not stored in their order: behind the first few, which of them may have the bit is
// found out by one scan.
Result<Position> find_in_bitmap(Keys& keys, const Key& key, const BitRange& range, bool bit) {
  constexpr uint64_t near_fragments = 64;
  const uint64_t end = range.last / 8 + 1;
  uint64_t offset = range.first / 8 / fragment_bytes * fragment_bytes;
  const uint64_t near_end = std::min(end, offset + near_fragments * fragment_bytes);
  Position found;
  for (; offset < near_end && !found; offset += fragment_bytes) {
    TRY_ASSIGN(found, find_in_fragment(keys, key, offset, range, bit));
  }
  if (found || offset >= end) return found;
  std::vector<bool> may_have((end - offset + fragment_bytes - 1) / fragment_bytes, !bit);
  TRY(visit_fragments(keys, key, offset, end, [&](uint64_t at, ByteView stored) {
    if (at < offset) return;
    const bool is_full = stored.size() == std::min(fragment_bytes, key.size() - at) &&
                         stored.find_first_not_of('\xff') == ByteView::npos;
    may_have[(at - offset) / fragment_bytes] =
        bit ? stored.find_first_not_of('\0') != ByteView::npos : !is_full;
  }));
  for (size_t i = 0; i < may_have.size() && !found; i++) {
    if (!may_have[i]) continue;
    TRY_ASSIGN(found, find_in_fragment(keys, key, offset + i * fragment_bytes, range, bit));
  }
  return found;
}

Status bitpos(Call& call) {
  TRY_ASSIGN(const int64_t wanted, call.integer(2));
  if (wanted != 0 && wanted != 1) return reply_with("ERR The bit argument must be 1 or 0.");
  const bool bit = wanted == 1;
  TRY_ASSIGN(const Key* const key, open_text(call, 1));
  if (!key->exists()) {
    call.reply.integer(bit ? -1 : 0);
    return {};
  }
  if (call.count() > 6) return syntax_error();
  const uint64_t bytes = text_bytes(*key);
  int64_t start = 0;
  int64_t end = -1;
  bool is_bit = false;
  const bool has_end = call.count() > 4;
  if (call.count() > 3) {
    TRY_ASSIGN(start, call.integer(3));
  }
  if (call.count() == 6) {
    TRY_ASSIGN(is_bit, parse_is_bit(call, 5));
  }
  if (has_end) {
    TRY_ASSIGN(end, call.integer(4));
  }
  const BitRange range = bit_range(start, end, bytes, is_bit);
  Position found;
  if (!range.is_empty() && key->type() == RedisType::string) {
    found = find_within(key->text(), 0, range, bit);
  } else if (!range.is_empty()) {
    TRY_ASSIGN(found, find_in_bitmap(call.keys, *key, range, bit));
  }
  // Where no end is given zeros follow the string.
  if (!found && !range.is_empty() && !bit && !has_end) found = bytes * 8;
  call.reply.integer(found ? static_cast<int64_t>(*found) : -1);
  return {};
}

// --- BITFIELD ---

enum class Overflow : uint8_t { wrap, saturate, fail };

struct FieldOperation {
  enum class Kind : uint8_t { get, set, increment } kind;
  bool is_signed = false;
  unsigned bits = 0;
  uint64_t offset = 0;
  int64_t number = 0;
  Overflow overflow = Overflow::wrap;
};
using FieldKind = FieldOperation::Kind;

Status parse_field_type(ByteView argument, FieldOperation& operation) {
  const ByteView text = shown(argument);
  operation.is_signed = text.starts_with('i');
  const auto bits = parse_integer(text.substr(std::min<size_t>(text.size(), 1)));
  const bool has_sign = operation.is_signed || text.starts_with('u');
  if (!has_sign || !bits || *bits < 1 || *bits > (operation.is_signed ? 64 : 63))
    return reply_with(
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but "
        "i64 is.");
  operation.bits = static_cast<unsigned>(*bits);
  return {};
}

Result<Overflow> parse_overflow(const Call& call, size_t i) {
  if (call.is_word(i, "wrap")) return Overflow::wrap;
  if (call.is_word(i, "sat")) return Overflow::saturate;
  if (call.is_word(i, "fail")) return Overflow::fail;
  return reply_with("ERR Invalid OVERFLOW type specified");
}

Result<std::vector<FieldOperation>> parse_operations(const Call& call) {
  std::vector<FieldOperation> operations;
  Overflow overflow = Overflow::wrap;
  for (size_t i = 2; i < call.count();) {
    const size_t left = call.count() - i - 1;
    FieldOperation operation{.kind = FieldKind::get, .overflow = overflow};
    if (call.is_word(i, "overflow") && left >= 1) {
      TRY_ASSIGN(overflow, parse_overflow(call, i + 1));
      i += 2;
      continue;
    }
    if (call.is_word(i, "set") && left >= 3)
      operation.kind = FieldKind::set;
    else if (call.is_word(i, "incrby") && left >= 3)
      operation.kind = FieldKind::increment;
    else if (!call.is_word(i, "get") || left < 2)
      return syntax_error();
    TRY(parse_field_type(call.arg(i + 1), operation));
    TRY_ASSIGN(operation.offset, parse_offset(call.arg(i + 2), operation.bits));
    if (operation.kind != FieldKind::get) {
      TRY_ASSIGN(operation.number, call.integer(i + 3));
    }
    operations.push_back(operation);
    i += operation.kind == FieldKind::get ? 3 : 4;
  }
  return operations;
}

// A number of more bits than any field or sum of two has.
using Wide = __int128;

// The bytes that a field lies in, and what is behind the string as zeros.
constexpr size_t field_bytes_max = 9;
struct FieldBytes {
  explicit FieldBytes(const FieldOperation& operation)
      : first(operation.offset / 8),
        count((operation.offset % 8 + operation.bits + 7) / 8),
        shift(static_cast<unsigned>(count * 8 - operation.offset % 8) - operation.bits),
        mask(((Wide{1} << operation.bits) - 1) << shift) {}
  uint64_t first;
  size_t count;
  unsigned shift;  // of the field's lowest bit
  Wide mask;
};

Result<Wide> read_bytes(Keys& keys, const Key& key, const FieldBytes& place) {
  Bytes bytes;
  const uint64_t size = text_bytes(key);
  const uint64_t begin = std::min(place.first, size);
  TRY(read_text(keys, key, begin, std::min(place.first + place.count, size), bytes));
  bytes.resize(place.count, '\0');
  Wide number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

Wide field_in(Wide bytes, const FieldBytes& place, const FieldOperation& operation) {
  const Wide value = (bytes & place.mask) >> place.shift;
  const Wide sign = Wide{1} << (operation.bits - 1);
  return operation.is_signed && (value & sign) != 0 ? value - 2 * sign : value;
}

// What is stored instead of a value that is too large or too small; absent: nothing is.
std::optional<Wide> fitted(Wide value, const FieldOperation& operation) {
  const Wide range = Wide{1} << operation.bits;
  const Wide max = operation.is_signed ? range / 2 - 1 : range - 1;
  const Wide min = operation.is_signed ? -range / 2 : 0;
  if (value >= min && value <= max) return value;
  if (operation.overflow == Overflow::fail) return std::nullopt;
  // Redis computes how much would fit in 64 bits, and takes the smallest numbers for large ones.
  constexpr Wide most = std::numeric_limits<int64_t>::max();
  const bool is_large = value > max || (operation.kind == FieldKind::set && max - value > most);
  if (operation.overflow == Overflow::saturate) return is_large ? max : min;
  const Wide wrapped = value & (range - 1);
  return wrapped > max ? wrapped - range : wrapped;
}

Status change_field(Call& call, Key& key, const FieldOperation& operation) {
  const FieldBytes place(operation);
  TRY_ASSIGN(Wide bytes, read_bytes(call.keys, key, place));
  const Wide old = field_in(bytes, place, operation);
  Wide value = operation.number;
  if (operation.kind == FieldKind::increment)
    value += old;
  else if (!operation.is_signed)
    value = static_cast<uint64_t>(operation.number);
  const std::optional<Wide> stored = fitted(value, operation);
  if (!stored) {
    call.reply.null();
    return {};
  }
  call.reply.integer(static_cast<int64_t>(operation.kind == FieldKind::set ? old : *stored));
  if (*stored == old) return {};
  bytes = (bytes & ~place.mask) | (*stored << place.shift & place.mask);
  std::array<char, field_bytes_max> written{};
  for (size_t i = place.count; i-- > 0; bytes >>= 8) written[i] = static_cast<char>(bytes & 0xff);
  return write_text(call.keys, key, place.first, ByteView(written.data(), place.count));
}

Status run_bitfield(Call& call, bool only_gets) {
  TRY_ASSIGN(const std::vector<FieldOperation> operations, parse_operations(call));
  uint64_t needed_bytes = 0;
  for (const FieldOperation& operation : operations)
    if (operation.kind != FieldKind::get)
      needed_bytes = std::max(needed_bytes, (operation.offset + operation.bits - 1) / 8 + 1);
  if (only_gets && needed_bytes != 0)
    return reply_with("ERR BITFIELD_RO only supports the GET subcommand");
  TRY_ASSIGN(Key* const key, open_text(call, 1));
  if (needed_bytes != 0) TRY(grow_text(call.keys, *key, needed_bytes));
  call.reply.array(operations.size());
  for (const FieldOperation& operation : operations) {
    if (operation.kind != FieldKind::get) {
      TRY(change_field(call, *key, operation));
      continue;
    }
    const FieldBytes place(operation);
    TRY_ASSIGN(const Wide bytes, read_bytes(call.keys, *key, place));
    call.reply.integer(static_cast<int64_t>(field_in(bytes, place, operation)));
  }
  return {};
}

Status bitfield(Call& call) { return run_bitfield(call, false); }
Status bitfield_ro(Call& call) { return run_bitfield(call, true); }

namespace bitmap_table {

constexpr KeyPositions one{1, 1, 1};
constexpr uint32_t change = write | denyoom;

const Command table[] = {
    {"bitcount", -2, readonly, one, bitcount, "2.6.0", "How many bits of a string are 1."},
    {"bitfield", -2, change, one, bitfield, "3.2.0", "Numbers of any width inside of a string."},
    {"bitfield_ro", -2, readonly | fast, one, bitfield_ro, "6.0.0",
     "Reads numbers of any width inside of a string."},
    {"bitop", -4, change, {2, -1, 1}, bitop, "2.6.0", "Combines strings bit by bit."},
    {"bitpos", -3, readonly, one, bitpos, "2.8.7", "Where the first bit is that is 0 or 1."},
    {"getbit", 3, readonly | fast, one, getbit, "2.2.0", "One bit of a string."},
    {"setbit", 4, change, one, setbit, "2.2.0", "Sets one bit of a string."},
};

}  // namespace bitmap_table

}  // namespace

std::span<const Command> bitmap_commands() { return bitmap_table::table; }

}  // namespace trellis
