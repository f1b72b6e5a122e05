#include "backup/units.h"

#include <algorithm>
#include <deque>
#include <optional>

namespace trellis {
namespace {

constexpr size_t small_unit_entries = 1'000;
constexpr size_t small_unit_bytes = 1024 * 1024;

struct Ends {
  Bytes first;
  Bytes last;
  bool is_small = false;  // not worth a cut
};

Result<std::optional<Ends>> ends_of(Engine& engine, const KeyInterval& interval) {
  std::optional<Ends> ends;
  const auto from_left = [&](ByteView key, ByteView) {
    if (!ends) ends = Ends{.first = Bytes(key), .last = {}};
    return Visit::go_on;
  };
  TRY_ASSIGN(const ScanPage page, engine.scan({.begin = interval.first,
                                               .end = interval.second,
                                               .entries_max = small_unit_entries,
                                               .bytes_max = small_unit_bytes},
                                              from_left));
  if (!ends) return ends;
  ends->is_small = !page.resume.has_value();
  if (ends->is_small) return ends;
  const auto from_right = [&](ByteView key, ByteView) {
    ends->last = key;
    return Visit::stop;
  };
  TRY(engine.scan(
      {.begin = interval.first, .end = interval.second, .reverse = true, .entries_max = 1},
      from_right));
  return ends;
}

// Half-way between two keys, as far as 8 bytes behind what they have in common say.
Bytes middle_of(ByteView first, ByteView last) {
  const auto [a, b] = std::ranges::mismatch(first, last);
  const auto common = static_cast<size_t>(a - first.begin());
  const auto number = [&](ByteView key) {
    Bytes digits(key.substr(common, 8));
    digits.resize(8, '\0');
    return load_be(digits.data(), 8);
  };
  const uint64_t low = number(first);
  const uint64_t high = number(last);
  Bytes middle(first.substr(0, common));
  append_be64(middle, low + (high - low) / 2);
  return middle;
}

}  // namespace

Result<std::vector<KeyInterval>> cut_units(Engine& engine, std::vector<KeyInterval> intervals,
                                           size_t count) {
  std::deque<KeyInterval> whole(intervals.begin(), intervals.end());
  std::vector<KeyInterval> done;
  const size_t most = intervals.size() + count;
  while (!whole.empty()) {
    KeyInterval interval = std::move(whole.front());
    whole.pop_front();
    TRY_ASSIGN(const auto ends, ends_of(engine, interval));
    if (!ends) continue;
    const Bytes middle = ends->is_small ? Bytes() : middle_of(ends->first, ends->last);
    if (whole.size() + done.size() + 2 > most || middle <= ends->first || middle > ends->last) {
      done.push_back(std::move(interval));
      continue;
    }
    whole.emplace_back(interval.first, middle);
    whole.emplace_back(middle, std::move(interval.second));
  }
  std::ranges::sort(done);
  return done;
}

}  // namespace trellis
