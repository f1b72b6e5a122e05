#include "range/descriptor.h"

#include <fmt/format.h>

#include "codec/meta_keys.h"
#include "codec/stored_message.h"
#include "range.pb.h"
#include "range/descriptor_message.h"

namespace trellis {

void fill_message(const RangeDescriptor& range, stored::RangeDescriptor& message) {
  message.set_id(range.id.value);
  message.set_start(range.start);
  message.set_end(range.end);
  message.set_generation(range.generation);
  message.set_home(range.home);
  message.set_sticky_until_ms(range.sticky_until_ms);
}

Result<RangeDescriptor> descriptor_of(const stored::RangeDescriptor& message) {
  RangeDescriptor range{RangeId{message.id()}, message.start(), message.end(),
                        message.generation(),  message.home(),  message.sticky_until_ms()};
  if (range.id.value == 0 || range.generation == 0 || range.generation > generation_max ||
      range.start >= range.end || range.end > map_key_max)
    return Error{Code::corrupt,
                 fmt::format("the stored descriptor of {} does not make sense", to_string(range))};
  return range;
}

Bytes encode_descriptor(const RangeDescriptor& range) {
  stored::RangeDescriptor message;
  fill_message(range, message);
  return encode_message(message);
}

Result<RangeDescriptor> decode_descriptor(ByteView bytes) {
  stored::RangeDescriptor message;
  TRY(decode_message(bytes, message, "range descriptor"));
  return descriptor_of(message);
}

std::string to_string(const RangeDescriptor& range) {
  return fmt::format("range {} [{}, {}) generation {}", range.id.value, to_hex(range.start),
                     to_hex(range.end), range.generation);
}

}  // namespace trellis
