#include "support/key_probes.h"

#include "support/sample_record.h"

namespace trellis {
namespace {

template <class T>
KeyProbe make_probe(const KeyEntry<T>&) {
  return {.kind = *find_key_kind(T::kind),
          .sample =
              [](Random& random) {
                TextArena arena;
                return encode(sample_record<T>(random, arena));
              },
          .reencode = [](ByteView key) -> std::optional<Bytes> {
            Bytes scratch;
            const auto record = decode<T>(key, scratch);
            if (!record) return std::nullopt;
            return encode(*record);
          }};
}

}  // namespace

std::span<const KeyProbe> key_probes() {
  static const std::vector<KeyProbe> probes = std::apply(
      [](const auto&... entry) { return std::vector<KeyProbe>{make_probe(entry)...}; }, all_keys);
  return probes;
}

}  // namespace trellis
