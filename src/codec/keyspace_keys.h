// Who owns a key (seed 000, TiKV): a mode byte and a 3-byte keyspace id in front of everything
// that is not a system key.
//
//   | mode 'm' 't' 'r' 'x' | keyspace u24 | ... |
//
// The four modes sort after all system keys. Ids are 0..16777215; keyspace 0 is DEFAULT.
#pragma once

#include <string_view>
#include <utility>

#include "base/strong_id.h"
#include "codec/field_codecs.h"

namespace trellis {

enum class KeyMode : unsigned char { meta, table, raw, txn };  // m t r x

inline constexpr Word key_mode_words[] = {
    {"m", "m", ""}, {"t", "t", ""}, {"r", "r", ""}, {"x", "x", ""}};

constexpr char mode_byte(KeyMode mode) { return "mtrx"[static_cast<size_t>(mode)]; }

// The parts that the keys of every tenant start with.
inline constexpr Literal mode_txn = literal("mode", "x", "transactional models of a keyspace");
template <class Record>
constexpr auto keyspace_field(KeyspaceId Record::*member) {
  return field<BigEndian<3>>("keyspace", member, "keyspace id, the tenant", "/Keyspace");
}

// Tables of TiDB, reserved: encoded and decoded, nothing stores them yet.
// | 'm' or 't' | keyspace u24 | key bytes |
struct TableKey {
  KeyMode mode;
  KeyspaceId keyspace;
  ByteView key;
  static constexpr std::string_view kind = "table";
  static constexpr Word modes[] = {{"m", "m", "/TableMeta"}, {"t", "t", "/Table"}};
  static constexpr auto layout() {
    return record(field<OneOf<modes>>("mode", &TableKey::mode, "TiDB metadata or table data"),
                  keyspace_field(&TableKey::keyspace),
                  field<Remaining>("key", &TableKey::key, "the table key"));
  }
};

// Raw key-value data: what the user gave, behind its owner.
// | 'r' | keyspace u24 | key bytes |
struct RawKey {
  KeyspaceId keyspace;
  ByteView key;
  static constexpr std::string_view kind = "raw";
  static constexpr auto layout() {
    return record(literal("mode", "r", "raw key-value data of a keyspace"),
                  keyspace_field(&RawKey::keyspace),
                  field<Remaining>("key", &RawKey::key, "the user's key", "/Raw"));
  }
};

// A key as TiKV's regions see it: mode, keyspace and user key, memcomparable as a whole. Not a
// key of our map; explained because TiKV's tools print such keys.
// | mode | keyspace u24 | key in groups of 8, the first shared with mode and keyspace |
struct TikvRegionKey {
  KeyMode mode;
  KeyspaceId keyspace;
  ByteView key;
  static constexpr std::string_view kind = "tikv.region";
  static constexpr auto layout() {
    return record(field<OneOf<key_mode_words>>("mode", &TikvRegionKey::mode,
                                               "m, t: TiDB; r: raw; x: transactional"),
                  keyspace_field(&TikvRegionKey::keyspace),
                  field<MemComparableTail<4>>("key", &TikvRegionKey::key,
                                              "user key; empty: the keyspace's border"));
  }
};

// The right border of a mode's last keyspace: the next mode byte and no keyspace.
// | mode + 1 | 00*7 fb |
struct TikvModeEndKey {
  KeyMode mode;
  static constexpr std::string_view kind = "tikv.mode_end";
  static constexpr Word ends[] = {
      {"n", "m", "/m/Max"}, {"u", "t", "/t/Max"}, {"s", "r", "/r/Max"}, {"y", "x", "/x/Max"}};
  static constexpr auto layout() {
    return record(field<OneOf<ends>>("mode", &TikvModeEndKey::mode, "the mode that ends here"),
                  literal("padding", "\0\0\0\0\0\0\0\xfb", "4 bytes of prefix, 4 of padding"));
  }
};

// | mode | keyspace u24 |: what every key of the keyspace in that mode starts with.
void append_keyspace_prefix(Bytes& out, KeyMode mode, KeyspaceId keyspace);

// All keys of the keyspace in that mode, as they are stored: [first, second).
std::pair<Bytes, Bytes> keyspace_interval(KeyMode mode, KeyspaceId keyspace);

// The same borders as TiKV's regions see them: memcomparable. The right border of the last
// keyspace is the next mode byte.
std::pair<Bytes, Bytes> keyspace_region_bounds(KeyMode mode, KeyspaceId keyspace);

}  // namespace trellis
