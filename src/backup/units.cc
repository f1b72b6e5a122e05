#include "backup/units.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "backup/sense.h"
#include "codec/address.h"
#include "codec/meta_keys.h"
#include "range/embedded_home.h"
#include "range/stored_size.h"

namespace trellis {
namespace {

constexpr uint64_t units_max = 1'000;
// By what factor the number of units may be off before they are made anew.
constexpr size_t units_tolerance = 2;

bool is_in(const std::vector<Interval>& scope, ByteView address) {
  return std::ranges::any_of(scope, [&](const Interval& interval) {
    return interval.first < address && address < interval.second;
  });
}

// --- by ranges ---

struct RangeWeight {
  Bytes start;
  uint64_t bytes = 0;
};

// Code::corrupt if the ranges do not tile the map. None at all is a store that has not made them.
Result<std::vector<RangeWeight>> ranges_in(Engine& engine, const std::vector<Interval>& scope) {
  std::vector<RangeWeight> ranges;
  Status failed;
  std::optional<Bytes> tiled_to;
  TRY(for_each_range_in(engine, [&](const RangeDescriptor& range) {
    if (range.start != tiled_to.value_or(Bytes()))
      failed = Error{Code::corrupt, "it does not tile the map: see " + to_string(range)};
    tiled_to = range.end;
    const auto overlaps = [&](const Interval& interval) {
      return range.start < interval.second && interval.first < range.end;
    };
    if (failed && std::ranges::any_of(scope, overlaps)) {
      const auto size = load_stored_size(engine, range);
      if (!size) failed = size.error();
      // One that was never counted still counts.
      ranges.push_back({range.start, 1 + (size && *size ? (*size)->bytes : 0)});
    }
    return failed ? Visit::go_on : Visit::stop;
  }));
  TRY(failed);
  if (tiled_to && *tiled_to != map_key_max)
    return Error{Code::corrupt, "it does not tile the map: its last range is lost"};
  return ranges;
}

// As many runs as wanted at most, alike in bytes as far as ranges are.
std::vector<Bytes> group(const std::vector<RangeWeight>& ranges, size_t wanted) {
  uint64_t total_bytes = 0;
  for (const RangeWeight& range : ranges) total_bytes += range.bytes;
  const uint64_t share_bytes = total_bytes / wanted;
  std::vector<Bytes> bounds;
  uint64_t run_bytes = 0;
  for (const RangeWeight& range : ranges) {
    if (run_bytes > 0 && run_bytes >= share_bytes && bounds.size() + 1 < wanted) {
      bounds.push_back(range.start);
      run_bytes = 0;
    }
    run_bytes += range.bytes;
  }
  return bounds;
}

// --- by keys ---

// Of an entry in the interval: the first by its key. Absent: there is none.
Result<std::optional<Bytes>> some_address(Engine& engine, const Interval& interval) {
  std::optional<Bytes> found;
  Status bad;
  const auto visit = [&](ByteView key, ByteView) {
    bad = append_address(found.emplace(), key);
    return Visit::stop;
  };
  AddressWalk walk(engine, interval.first, interval.second);
  while (!walk.done() && !found) TRY(walk.next(visit));
  TRY(bad);
  return found;
}

// Half-way between two addresses, as far as 8 bytes behind what they have in common say.
Bytes middle_of(ByteView first, ByteView last) {
  const auto [a, b] = std::ranges::mismatch(first, last);
  const auto common = static_cast<size_t>(a - first.begin());
  const auto number = [&](ByteView address) {
    Bytes digits(address.substr(common, 8));
    digits.resize(8, '\0');
    return load_be(digits.data(), 8);
  };
  const uint64_t low = number(first);
  const uint64_t high = number(last);
  Bytes middle(first.substr(0, common));
  append_be64(middle, low + (high - low) / 2);
  return middle;
}

// Where to cut it, half-way between its entries. Absent: there is no such place.
Result<std::optional<Bytes>> middle_in(Engine& engine, const Interval& interval) {
  TRY_ASSIGN(const auto first, some_address(engine, interval));
  if (!first) return std::optional<Bytes>();
  // Between these the last one lies, as nearly as it matters.
  constexpr int steps_max = 48;
  Bytes low = *first;
  Bytes high = interval.second;
  for (int step = 0; step < steps_max; step++) {
    Bytes middle = middle_of(low, high);
    if (middle <= low || middle >= high) break;
    TRY_ASSIGN(const auto found, some_address(engine, {middle, high}));
    (found ? low : high) = std::move(middle);
  }
  Bytes middle = middle_of(*first, low);
  if (middle <= *first || middle > low) return std::optional<Bytes>();
  return std::optional(std::move(middle));
}

Result<std::vector<Bytes>> bisect(Engine& engine, const std::vector<Interval>& scope,
                                  size_t wanted) {
  std::deque<Interval> whole(scope.begin(), scope.end());
  std::vector<Bytes> bounds;
  while (!whole.empty() && bounds.size() + 1 < wanted) {
    const Interval interval = std::move(whole.front());
    whole.pop_front();
    TRY_ASSIGN(const auto middle, middle_in(engine, interval));
    if (!middle) continue;
    bounds.push_back(*middle);
    whole.emplace_back(interval.first, *middle);
    whole.emplace_back(*middle, interval.second);
  }
  return bounds;
}

// --- walks ---

// The area of keys that a bound cuts though they do not lie as their addresses do; empty: none.
Bytes area_cut_by(ByteView bound) {
  constexpr size_t area_bytes = 5;
  const bool is_cut = bound.size() > area_bytes && bound[0] == 'x' &&
                      (bound[area_bytes - 1] == 'd' || bound[area_bytes - 1] == 'f');
  return is_cut ? Bytes(bound.substr(0, area_bytes)) : Bytes();
}

}  // namespace

size_t units_wanted(uint64_t bytes, uint64_t unit_bytes) {
  return std::clamp<uint64_t>(bytes / unit_bytes, 1, units_max);
}

bool are_about_as_many(size_t units, size_t wanted) {
  return units <= wanted * units_tolerance && wanted <= units * units_tolerance;
}

Interval Units::unit(size_t number) const {
  return {number == 0 ? Bytes() : bounds[number - 1],
          number == bounds.size() ? Bytes(map_key_max) : bounds[number]};
}

Result<Units> cut_units(Engine& engine, UnitsRequest request) {
  const size_t wanted = units_wanted(request.bytes, request.unit_bytes);
  Units before{.bounds = std::move(request.bounds_before)};
  std::erase_if(before.bounds, [&](const Bytes& bound) { return !is_in(request.scope, bound); });
  if (are_about_as_many(before.size(), wanted)) return before;
  Units units;
  if (wanted == 1) return units;
  const auto ranges = ranges_in(engine, request.scope);
  if (ranges) {
    units.bounds = group(*ranges, wanted);
  } else {
    units.warning = with_context(
                        "the directory of ranges is damaged, and was not used; run "
                        "trellis range verify",
                        ranges.error())
                        .message;
  }
  if (units.size() * units_tolerance < wanted) {
    TRY_ASSIGN(units.bounds, bisect(engine, request.scope, wanted));
  }
  std::ranges::sort(units.bounds);
  units.bounds.erase(std::ranges::unique(units.bounds).begin(), units.bounds.end());
  return units;
}

UnitWalk::UnitWalk(Engine& engine, std::vector<Interval> scope, const Interval& unit)
    : engine_(engine), first_area_(area_cut_by(unit.first)), last_area_(area_cut_by(unit.second)) {
  for (Interval& interval : scope) {
    Interval part{std::max(interval.first, unit.first), std::min(interval.second, unit.second)};
    if (part.first < part.second) parts_.push_back(std::move(part));
  }
}

int UnitWalk::side_of(ByteView key) const {
  if (!first_area_.empty() && key.starts_with(first_area_)) return -1;
  return !last_area_.empty() && key.starts_with(last_area_) ? 1 : 0;
}

Result<uint64_t> UnitWalk::next(size_t bytes_max, std::vector<EntryChunk>& out) {
  if (!walk_) walk_.emplace(engine_, parts_[part_].first, parts_[part_].second);
  uint64_t bytes = 0;
  const auto visit = [&](ByteView key, ByteView value) {
    bytes += key.size() + value.size();
    if (!makes_sense(key, value)) {
      left_out_++;
      return Visit::go_on;
    }
    const int side = side_of(key);
    if (side != side_ && !cutter_.empty()) out.push_back(cutter_.take());
    side_ = side;
    if (cutter_.add(key, value)) out.push_back(cutter_.take());
    return Visit::go_on;
  };
  if (!walk_->done()) TRY(walk_->next(visit, bytes_max));
  if (walk_->done()) {
    if (!cutter_.empty()) out.push_back(cutter_.take());
    left_out_ += walk_->figures().malformed;
    walk_.reset();
    part_++;
  }
  return bytes;
}

}  // namespace trellis
