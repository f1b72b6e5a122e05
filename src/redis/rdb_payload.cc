#include "redis/rdb_payload.h"

#include <array>
#include <bit>
#include <unordered_set>

#include "redis/call.h"
#include "redis/number_text.h"
#include "redis/rdb_reader.h"

namespace trellis {
namespace {

constexpr uint16_t version_written = 10;
constexpr uint16_t version_read_max = 11;
constexpr size_t footer_bytes = 10;

enum class RdbType : uint8_t {
  string = 0,
  list = 1,
  set = 2,
  zset_text = 3,
  hash = 4,
  zset = 5,
  list_ziplist = 10,
  set_intset = 11,
  zset_ziplist = 12,
  hash_ziplist = 13,
  list_quicklist = 14,
  stream_listpacks = 15,
  hash_listpack = 16,
  zset_listpack = 17,
  list_quicklist2 = 18,
  stream_listpacks_2 = 19,
  set_listpack = 20,
  stream_listpacks_3 = 21,
};

// CRC-64 of Jones, reflected, without inversion.
constexpr std::array<uint64_t, 256> crc_table = [] {
  std::array<uint64_t, 256> table{};
  for (uint64_t byte = 0; byte < table.size(); byte++) {
    uint64_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x95ac9329ac4bc9b5 : 0);
    table[byte] = crc;
  }
  return table;
}();

uint64_t crc64(ByteView bytes) {
  uint64_t crc = 0;
  for (const char byte : bytes)
    crc = crc_table[(crc ^ static_cast<uint8_t>(byte)) & 0xff] ^ crc >> 8;
  return crc;
}

RdbType plain_type(RedisType type) {
  switch (type) {
    case RedisType::list: return RdbType::list;
    case RedisType::set: return RdbType::set;
    case RedisType::hash: return RdbType::hash;
    case RedisType::zset: return RdbType::zset;
    default: return RdbType::string;
  }
}

// --- what is packed into one string ---

// An entry of a ziplist, which Redis packed with before 7.0; absent: none can begin like this.
std::optional<Bytes> read_old_entry(RdbReader& reader, uint8_t first) {
  switch (first >> 6) {
    case 0: return Bytes(reader.take(first));
    case 1: return Bytes(reader.take(static_cast<size_t>(first & 0x3f) << 8 | reader.byte()));
    case 2: return Bytes(reader.take(reader.be(4)));
    default: break;
  }
  switch (first) {
    case 0xc0: return std::to_string(load_signed_le(reader.take(2)));
    case 0xd0: return std::to_string(load_signed_le(reader.take(4)));
    case 0xe0: return std::to_string(load_signed_le(reader.take(8)));
    case 0xf0: return std::to_string(load_signed_le(reader.take(3)));
    case 0xfe: return std::to_string(load_signed_le(reader.take(1)));
    default: break;
  }
  if (first < 0xf1 || first > 0xfd) return std::nullopt;
  return std::to_string(first - 0xf1);
}

// | bytes u32le | place of the last entry u32le | entries u16le, ffff if more | entries | ff |
// where an entry is | bytes of the one before it u8, or fe and u32le | the entry |
Items read_ziplist(RdbReader& budget, ByteView pack) {
  constexpr size_t header_bytes = 10;
  constexpr uint64_t unknown_count = 0xffff;
  if (pack.size() < header_bytes + 1 || load_le(pack.substr(0, 4)) != pack.size())
    return std::nullopt;
  const uint64_t count = load_le(pack.substr(8, 2));
  std::vector<Bytes> items;
  size_t at = header_bytes;
  size_t entry_bytes = 0;
  while (at < pack.size() && static_cast<uint8_t>(pack[at]) != 0xff) {
    RdbReader reader(pack.substr(at));
    const uint8_t first = reader.byte();
    const uint64_t bytes_before = first < 0xfe ? first : load_le(reader.take(4));
    auto item = read_old_entry(reader, reader.byte());
    if (!item || reader.failed() || bytes_before != entry_bytes) return std::nullopt;
    entry_bytes = pack.size() - at - reader.left();
    at += entry_bytes;
    if (!budget.spend(item_bytes_min)) return std::nullopt;
    items.push_back(std::move(*item));
  }
  const bool fits = at + 1 == pack.size() && load_le(pack.substr(4, 4)) == at - entry_bytes &&
                    (count == unknown_count || count == items.size());
  return fits ? Items(std::move(items)) : std::nullopt;
}

// | width u32le: 2, 4 or 8 | count u32le | numbers |
Items read_intset(RdbReader& budget, ByteView packed) {
  if (packed.size() < 8) return std::nullopt;
  const uint64_t width = load_le(packed.substr(0, 4));
  const uint64_t count = load_le(packed.substr(4, 4));
  const ByteView numbers = packed.substr(8);
  const bool fits = (width == 2 || width == 4 || width == 8) && numbers.size() == width * count;
  if (!fits) return std::nullopt;
  std::vector<Bytes> items;
  if (!budget.spend(count * item_bytes_min)) return std::nullopt;
  for (size_t at = 0; at < numbers.size(); at += width)
    items.push_back(std::to_string(load_signed_le(numbers.substr(at, width))));
  return items;
}

// --- values ---

Items read_plain(RdbReader& reader, uint64_t count) {
  std::vector<Bytes> items;
  for (uint64_t i = 0; i < count && reader.spend(item_bytes_min) && !reader.failed(); i++)
    items.push_back(reader.string());
  return items;
}

// Before 7.0 its nodes were ziplists, and nothing else.
Items read_quicklist(RdbReader& reader, bool is_old) {
  constexpr uint64_t plain = 1;
  constexpr uint64_t packed = 2;
  std::vector<Bytes> items;
  const uint64_t nodes = reader.length();
  for (uint64_t i = 0; i < nodes && !reader.failed(); i++) {
    const uint64_t container = is_old ? packed : reader.length();
    Bytes node = reader.string();
    if (container == plain && !node.empty()) {
      items.push_back(std::move(node));
      continue;
    }
    Items part = is_old ? read_ziplist(reader, node) : read_listpack(reader, node);
    if (!part || container != packed) return std::nullopt;
    for (Bytes& item : *part) items.push_back(std::move(item));
  }
  return items;
}

bool read_scored(RdbReader& reader, RdbType type, RdbValue& value) {
  if (type == RdbType::zset_listpack || type == RdbType::zset_ziplist) {
    const Bytes packed = reader.string();
    const Items items = type == RdbType::zset_ziplist ? read_ziplist(reader, packed)
                                                      : read_listpack(reader, packed);
    if (!items || items->size() % 2 != 0) return false;
    for (size_t i = 0; i < items->size(); i += 2) {
      const auto score = parse_double((*items)[i + 1]);
      if (!score) return false;
      value.scored.push_back({(*items)[i], *score});
    }
    return true;
  }
  const uint64_t count = reader.length();
  for (uint64_t i = 0; i < count && reader.spend(item_bytes_min) && !reader.failed(); i++) {
    Bytes member = reader.string();
    value.scored.push_back(
        {std::move(member), type == RdbType::zset ? reader.score() : reader.score_text()});
  }
  return true;
}

bool read_value(RdbReader& reader, RdbType type, RdbValue& value) {
  Items items = std::vector<Bytes>();
  switch (type) {
    case RdbType::string:
      value.type = RedisType::string;
      items = read_plain(reader, 1);
      break;
    case RdbType::list:
    case RdbType::list_ziplist:
    case RdbType::list_quicklist:
    case RdbType::list_quicklist2:
      value.type = RedisType::list;
      items = type == RdbType::list ? read_plain(reader, reader.length())
              : type == RdbType::list_ziplist
                  ? read_ziplist(reader, reader.string())
                  : read_quicklist(reader, type == RdbType::list_quicklist);
      break;
    case RdbType::set:
    case RdbType::set_intset:
    case RdbType::set_listpack:
      value.type = RedisType::set;
      items = type == RdbType::set          ? read_plain(reader, reader.length())
              : type == RdbType::set_intset ? read_intset(reader, reader.string())
                                            : read_listpack(reader, reader.string());
      break;
    case RdbType::hash:
    case RdbType::hash_ziplist:
    case RdbType::hash_listpack:
      value.type = RedisType::hash;
      if (type == RdbType::hash_listpack) {
        items = read_listpack(reader, reader.string());
      } else if (type == RdbType::hash_ziplist) {
        items = read_ziplist(reader, reader.string());
      } else if (const uint64_t fields = reader.length(); fields < UINT64_MAX / 2) {
        items = read_plain(reader, 2 * fields);
      } else {
        items.reset();
      }
      break;
    case RdbType::zset:
    case RdbType::zset_text:
    case RdbType::zset_ziplist:
    case RdbType::zset_listpack:
      value.type = RedisType::zset;
      if (!read_scored(reader, type, value)) items.reset();
      break;
    case RdbType::stream_listpacks:
    case RdbType::stream_listpacks_2:
    case RdbType::stream_listpacks_3:
      value.type = RedisType::stream;
      if (!read_rdb_stream(reader, static_cast<RdbStreamForm>(type), value.stream)) items.reset();
      break;
    default: return false;
  }
  if (!items || reader.failed()) return false;
  value.items = std::move(*items);
  return true;
}

// Members and fields are different, fields have values, nothing is empty.
bool makes_sense(const RdbValue& value) {
  if (value.type == RedisType::stream) return true;  // it was looked at when it was read
  if (value.items.empty() && value.scored.empty()) return false;
  const size_t step = value.type == RedisType::hash ? 2 : 1;
  if (value.items.size() % step != 0) return false;
  if (value.type == RedisType::string || value.type == RedisType::list) return true;
  std::unordered_set<ByteView> seen;
  for (size_t i = 0; i < value.items.size(); i += step)
    if (!seen.insert(value.items[i]).second) return false;
  for (const RdbValue::Scored& one : value.scored)
    if (!seen.insert(one.member).second) return false;
  return true;
}

}  // namespace

Bytes seal_rdb_payload(Bytes body) {
  append_le(body, version_written, sizeof(version_written));
  append_le(body, crc64(body), sizeof(uint64_t));
  return body;
}

Bytes write_rdb_payload(const RdbValue& value) {
  if (value.type == RedisType::stream) return seal_rdb_payload(write_rdb_stream(value.stream));
  Bytes out(1, static_cast<char>(plain_type(value.type)));
  if (value.type == RedisType::zset)
    append_length(out, value.scored.size());
  else if (value.type != RedisType::string)
    append_length(out, value.items.size() / (value.type == RedisType::hash ? 2 : 1));
  for (const Bytes& item : value.items) append_string(out, item);
  for (const auto& [member, score] : value.scored) {
    append_string(out, member);
    append_le(out, std::bit_cast<uint64_t>(score), sizeof(score));
  }
  return seal_rdb_payload(std::move(out));
}

Result<RdbValue> read_rdb_payload(ByteView payload) {
  const bool sealed =
      payload.size() >= footer_bytes &&
      load_le(payload.substr(payload.size() - footer_bytes, 2)) <= version_read_max &&
      load_le(payload.substr(payload.size() - 8)) == crc64(payload.substr(0, payload.size() - 8));
  if (!sealed) return reply_with("ERR DUMP payload version or checksum are wrong");
  // As Redis does, also what reaches into the last bytes.
  RdbReader reader(payload);
  RdbValue value;
  const auto type = static_cast<RdbType>(reader.byte());
  const bool is_read = read_value(reader, type, value);
  if (reader.is_too_large()) return reply_with(too_much_at_once);
  if (!is_read || !makes_sense(value)) return reply_with("ERR Bad data format");
  return value;
}

}  // namespace trellis
