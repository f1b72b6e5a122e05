#include "range/stored_size.h"

#include "codec/local_keys.h"

namespace trellis {
namespace {

constexpr char stored_size_format = 0x02;
constexpr size_t stored_size_bytes = 1 + 4 * 8;
constexpr unsigned char stored_size_word = 8;
static_assert(RangeReplicatedKey::whats[stored_size_word].bytes == "stat");

}  // namespace

Bytes stored_size_key(RangeId range) { return encode(RangeReplicatedKey{range, stored_size_word}); }

Bytes encode_stored_size(const StoredSize& size) {
  Bytes out(1, stored_size_format);
  append_be64(out, size.generation);
  append_be64(out, size.bytes);
  append_be64(out, size.keys);
  append_be64(out, size.counted_ms);
  return out;
}

Result<std::optional<StoredSize>> load_stored_size(Engine& engine, const RangeDescriptor& range) {
  Value value;
  TRY(engine.get(stored_size_key(range.id), value));
  if (!value.found()) return std::optional<StoredSize>();
  const ByteView bytes = value.bytes();
  if (bytes.size() != stored_size_bytes || bytes[0] != stored_size_format)
    return std::optional<StoredSize>();
  const auto word = [&](size_t i) { return load_be(bytes.data() + 1 + 8 * i, 8); };
  if (word(0) != range.generation) return std::optional<StoredSize>();
  return std::optional(StoredSize{word(0), word(1), word(2), word(3)});
}

}  // namespace trellis
