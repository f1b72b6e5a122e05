#include "range/split_place.h"

#include <fmt/format.h>

#include "codec/address.h"
#include "codec/meta_keys.h"

namespace trellis {

Status check_range_start(ByteView address) {
  const auto refused = [&](std::string_view why) {
    return Error{Code::invalid, fmt::format("no range can begin at {}: {}", to_hex(address), why)};
  };
  if (address.starts_with('\x01')) return refused("local keys are never split from their range");
  if (address < ByteView("\x03")) return refused("the first range holds all of meta1");
  if (address >= meta2_key_max && address < ByteView("\x04"))
    return refused("the end of meta2 is one piece: give 03ffff's predecessor or 04");
  if (address >= map_key_max) return refused("the map ends at ffff");
  return {};
}

Bytes granule_start(ByteView address) {
  Bytes key;
  Bytes granule;
  if (!append_key_at(key, address) || !append_granule(granule, key) ||
      !address.starts_with(granule))
    return Bytes(address);
  return granule;
}

}  // namespace trellis
