// What every model of a tenant shares: garbage to collect and counters, behind 'x' keyspace.
//
//   'g' due model target       garbage, by due time; the model knows what the target means
//   'k' model counter slot     a counter, which writers add to; a reader sums the slots
#pragma once

#include "codec/field_codecs.h"
#include "codec/keyspace_keys.h"

namespace trellis {

// The model tags behind 'x' keyspace, and 'r' for raw data.
inline constexpr Word model_words[] = {{"c", "catalog", "/Catalog"},
                                       {"d", "redis", "/Redis"},
                                       {"f", "fs", "/Files"},
                                       {"r", "raw", "/Raw"}};
enum class Model : unsigned char { catalog, redis, fs, raw };

// | 'x' | keyspace u24 | 'g' | due u64, unix ms | model | target bytes |
struct GarbageKey {
  KeyspaceId keyspace;
  uint64_t due_ms;
  Model model;
  ByteView target;
  static constexpr std::string_view kind = "garbage";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&GarbageKey::keyspace),
                  literal("model", "g", "garbage to collect", "/Garbage"),
                  field<BigEndian<8>>("due", &GarbageKey::due_ms, "unix time in ms"),
                  field<OneOf<model_words>>("owner", &GarbageKey::model, "whose garbage"),
                  field<Remaining>("target", &GarbageKey::target, "what to collect"));
  }
};

inline constexpr Word counter_words[] = {{"b", "bytes", "/Bytes"}, {"k", "keys", "/Keys"}};
enum class CounterName : unsigned char { bytes, keys };

// | 'x' | keyspace u24 | 'k' | model | counter | slot u16 |
struct CounterKey {
  KeyspaceId keyspace;
  Model model;
  CounterName counter;
  uint16_t slot;
  static constexpr std::string_view kind = "counter";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&CounterKey::keyspace),
                  literal("model", "k", "counters of the tenant", "/Counter"),
                  field<OneOf<model_words>>("owner", &CounterKey::model, "which model counts"),
                  field<OneOf<counter_words>>("counter", &CounterKey::counter, "what is counted"),
                  field<BigEndian<2>>("slot", &CounterKey::slot, "its writer's slot"));
  }
};

}  // namespace trellis
