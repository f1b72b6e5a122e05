// Every kind of key with its own encoder and decoder, for tests that go through all of them without
// being compiled for each.
#pragma once

#include <optional>
#include <span>

#include "base/random.h"
#include "codec/key_kinds.h"

namespace trellis {

struct KeyProbe {
  const KeyKind* kind;
  // The bytes of a random record, by its typed encoder.
  Bytes (*sample)(Random& random);
  // Typed decode and encode; absent if the bytes are no such key.
  std::optional<Bytes> (*reencode)(ByteView key);
};

std::span<const KeyProbe> key_probes();

}  // namespace trellis
