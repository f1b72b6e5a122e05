// A number as a value of ours: | 01 | number u64be |
#pragma once

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

inline Bytes encode_counter(uint64_t number) {
  Bytes out(1, '\x01');
  append_be64(out, number);
  return out;
}

inline Result<uint64_t> decode_counter(ByteView value, std::string_view what) {
  if (value.size() == 9 && value[0] == '\x01') return load_be(value.data() + 1, 8);
  return Error{Code::corrupt, fmt::format("the stored {} does not make sense", what)};
}

}  // namespace trellis
