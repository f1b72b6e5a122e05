// The evidence of a page in the engines that compare what was read: every entry, in order.
//
//   | key length u32 | value length u32 | key | value |   repeated
#pragma once

#include "base/bytes.h"

namespace trellis {

inline bool empty_interval(ByteView begin, ByteView end) { return !end.empty() && begin >= end; }

inline void append_evidence(Bytes& evidence, ByteView key, ByteView value) {
  append_be32(evidence, static_cast<uint32_t>(key.size()));
  append_be32(evidence, static_cast<uint32_t>(value.size()));
  evidence.append(key);
  evidence.append(value);
}

// Takes one entry off the front of `seen`; false if it starts with another.
inline bool take_evidence(ByteView& seen, ByteView key, ByteView value) {
  constexpr size_t head_bytes = 8;
  const size_t size = head_bytes + key.size() + value.size();
  if (seen.size() < size) return false;
  if (load_be(seen.data(), 4) != key.size()) return false;
  if (load_be(seen.data() + 4, 4) != value.size()) return false;
  if (seen.substr(head_bytes, key.size()) != key) return false;
  if (seen.substr(head_bytes + key.size(), value.size()) != value) return false;
  seen.remove_prefix(size);
  return true;
}

}  // namespace trellis
