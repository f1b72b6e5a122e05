#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"
#include "cases.h"
#include "codec/meta_keys.h"
#include "range/directory.h"

namespace trellis {

namespace {

constexpr unsigned level_bits = 18;  // 64 MiB of records of 256 bytes
constexpr uint64_t meta2_count = uint64_t{1} << level_bits;
constexpr uint64_t range_count = uint64_t{1} << (2 * level_bits);
constexpr size_t range_bytes_max = size_t{64} << 20;

constexpr uint64_t meta2_first_id = first_range_id.value + 1;
constexpr uint64_t data_first_id = meta2_first_id + meta2_count;

// A map of 2^36 ranges that nobody has to store: each record follows from its number.
class HugeReader final : public MetaReader {
 public:
  explicit HugeReader(size_t key_bytes) : key_bytes_(key_bytes) {}

  Bytes border(uint64_t range) const {
    if (range == 0) return "\x04";
    if (range == range_count) return Bytes(map_key_max);
    Bytes out("x");
    append_be64(out, range);
    out.resize(key_bytes_, 'k');
    return out;
  }

  RangeDescriptor data_range(uint64_t i) const {
    return {RangeId{data_first_id + i}, border(i), border(i + 1), 1, home(i), 0};
  }

  // Borders lie right behind a record, so that none straddles.
  RangeDescriptor meta2_range(uint64_t i) const {
    const auto at = [&](uint64_t j) {
      if (j == 0) return Bytes("\x03");
      if (j == meta2_count) return Bytes("\x04");
      return "\x03" + successor(border(j * meta2_count));
    };
    return {RangeId{meta2_first_id + i}, at(i), at(i + 1), 1, home(i), 0};
  }

  Result<MetaRead> read(const RangeDescriptor& from, std::span<const MetaScan> scans) override {
    MetaRead out{from, {}};
    if (from.generation == 0) out.range = {first_range_id, "", "\x03", 1, "", 0};
    for (const MetaScan& scan : scans) {
      const bool meta1 = scan.begin < ByteView("\x03");
      auto& records = out.records.emplace_back();
      const uint64_t count = meta1 ? meta2_count : range_count;
      for (uint64_t i = first_at(meta1, scan.begin); i < count; i++) {
        const RangeDescriptor range = meta1 ? meta2_range(i) : data_range(i);
        TRY_ASSIGN(const std::vector<Bytes> keys, directory_keys(range));
        const Bytes& key = meta1 && keys.size() > 1 ? keys[1] : keys[0];
        if (key < scan.begin) continue;
        if (key >= scan.end || !out.range.holds(key) || records.size() == scan.entries_max) break;
        records.push_back({key, encode_descriptor(range)});
      }
    }
    return out;
  }

 private:
  static Bytes home(uint64_t i) { return fmt::format("r.{:x}", i); }

  // A number at or shortly before that of the first record at or after a key.
  static uint64_t first_at(bool meta1, ByteView key) {
    if (key.size() < 2 || key[1] < 'x') return 0;
    if (key[1] > 'x') return (meta1 ? meta2_count : range_count) - 1;
    Bytes number(key.substr(2, 8));
    number.resize(8, '\0');
    const uint64_t range = std::min(load_be(number.data(), 8), range_count);
    const uint64_t i = meta1 ? range / meta2_count : range;
    return i < 2 ? 0 : i - 2;
  }

  const size_t key_bytes_;
};

size_t record_bytes(const RangeDescriptor& range) {
  const Result<std::vector<Bytes>> keys = directory_keys(range);
  return keys->front().size() + encode_descriptor(range).size();
}

}  // namespace

void huge_case(const RangeScale& scale, Report& report) {
  fmt::print("\n{:>9} {:>12} {:>18} {:>14} {:>22}\n", "key bytes", "record bytes",
             "records in 64 MiB", "two levels", "of ranges of 64 MiB");
  for (const size_t key_bytes : {16, 24, 32, 64, 128, 220}) {
    const HugeReader reader(key_bytes);
    const size_t bytes = record_bytes(reader.data_range(range_count / 3));
    const double fit = static_cast<double>(range_bytes_max / bytes);
    fmt::print("{:>9} {:>12} {:>18.0f} {:>14.3g} {:>18.2f} EiB\n", key_bytes, bytes, fit, fit * fit,
               fit * fit * 0x1p26 / 0x1p60);
  }

  HugeReader reader(64);
  const size_t meta1_bytes = record_bytes(reader.meta2_range(meta2_count / 3)) * meta2_count;
  const size_t meta2_bytes = record_bytes(reader.data_range(range_count / 3)) * meta2_count;
  report.expect("2^36 ranges, two levels", std::max(meta1_bytes, meta2_bytes) <= range_bytes_max,
                fmt::format("keys of 64 bytes: meta1 {:.1f} MiB, a range of meta2 {:.1f} MiB, at "
                            "most 64",
                            static_cast<double>(meta1_bytes) / 0x1p20,
                            static_cast<double>(meta2_bytes) / 0x1p20));

  Directory directory(reader);
  Random random(3);
  unsigned most = 0;
  for (size_t i = 0; i < scale.huge_lookups; i++) {
    const uint64_t wanted = random.below(range_count);
    const Side side = random.one_in(2) ? Side::at : Side::before;
    const Bytes address = side == Side::at ? reader.border(wanted) : reader.border(wanted + 1);
    const Result<DirectoryAnswer> answer = directory.find(address, side);
    if (!answer.has_value()) give_up(to_string(answer.error()));
    if (answer->range != reader.data_range(wanted)) give_up("found " + to_string(answer->range));
    most = std::max(most, answer->reads);
  }
  report.expect(
      "2^36 ranges, cold lookups", most <= 2,
      fmt::format("{} of them, {} reads of the directory each", scale.huge_lookups, most));
}

}  // namespace trellis
