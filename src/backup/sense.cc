#include "backup/sense.h"

#include "codec/address.h"
#include "codec/counter_value.h"
#include "codec/system_keys.h"
#include "tenant/collector.h"

namespace trellis {

bool makes_sense(ByteView key, ByteView value) {
  constexpr ByteView areas = "\x01\x02\x03\x04mrtx";
  constexpr ByteView own_keys = "\x01s";  // of a store: never part of a backup
  constexpr size_t owner_bytes = 4;       // mode and keyspace
  if (areas.find(key[0]) == ByteView::npos || key.starts_with(own_keys)) return false;
  if (key[0] >= 'a' && key.size() < owner_bytes) return false;
  if (key[0] == 'x') {
    const char model = key.size() == owner_bytes ? '\0' : key[owner_bytes];
    if (model == 'g' && !(decode<GarbageKey>(key) && decode_garbage_value(value))) return false;
    if (model == 'k' && !(decode<CounterKey>(key) && decode_counter_value(value))) return false;
  }
  Bytes granule;
  return append_granule(granule, key).has_value();
}

}  // namespace trellis
