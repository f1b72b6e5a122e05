#include "range/stored_size.h"

#include "codec/local_keys.h"

namespace trellis {
namespace {

constexpr char stored_size_format = 0x01;
constexpr size_t stored_size_bytes = 1 + 3 * 8;
constexpr unsigned char stored_size_word = 8;
static_assert(RangeReplicatedKey::whats[stored_size_word].bytes == "stat");

}  // namespace

Bytes stored_size_key(RangeId range) { return encode(RangeReplicatedKey{range, stored_size_word}); }

Bytes encode_stored_size(const StoredSize& size) {
  Bytes out(1, stored_size_format);
  append_be64(out, size.bytes);
  append_be64(out, size.keys);
  append_be64(out, size.counted_ms);
  return out;
}

Result<std::optional<StoredSize>> load_stored_size(Engine& engine, RangeId range) {
  Value value;
  TRY(engine.get(stored_size_key(range), value));
  if (!value.found()) return std::optional<StoredSize>();
  const ByteView bytes = value.bytes();
  if (bytes.size() != stored_size_bytes || bytes[0] != stored_size_format)
    return std::optional<StoredSize>();
  return std::optional(StoredSize{.bytes = load_be(bytes.data() + 1, 8),
                                  .keys = load_be(bytes.data() + 9, 8),
                                  .counted_ms = load_be(bytes.data() + 17, 8)});
}

}  // namespace trellis
