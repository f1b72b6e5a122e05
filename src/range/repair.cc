#include "range/repair.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "codec/meta_keys.h"
#include "range/directory.h"

namespace trellis {
namespace {

using Claims = std::vector<RangeDescriptor>;

bool precedes(const RangeDescriptor& a, const RangeDescriptor& b) {
  return std::tie(a.start, a.end, a.generation, a.id.value, a.home, a.sticky_until_ms) <
         std::tie(b.start, b.end, b.generation, b.id.value, b.home, b.sticky_until_ms);
}

// In order, once each, and only those that may be.
void tidy_claims(Claims& claims) {
  std::erase_if(claims, [](const RangeDescriptor& each) { return !directory_keys(each); });
  std::ranges::sort(claims, precedes);
  claims.erase(std::unique(claims.begin(), claims.end()), claims.end());
}

bool tiles(const Claims& claims, ByteView begin, ByteView end) {
  ByteView at = begin;
  for (const RangeDescriptor& each : claims) {
    if (each.start != at) return false;
    at = each.end;
  }
  return at == end;
}

// Ranges that do not overlap, by start.
class Accepted {
 public:
  bool has_room_for(const RangeDescriptor& range) const {
    const auto next = by_start_.lower_bound(range.start);
    if (next != by_start_.end() && next->second.overlaps(range)) return false;
    return next == by_start_.begin() || !std::prev(next)->second.overlaps(range);
  }
  void add(const RangeDescriptor& range) { by_start_.emplace(range.start, range); }

  // The higher generation first. Of those that overlap at one generation none can be believed.
  void add_newest(Claims claims) {
    std::ranges::stable_sort(claims, [](const RangeDescriptor& a, const RangeDescriptor& b) {
      return std::tie(b.generation, a.start) < std::tie(a.generation, b.start);
    });
    for (auto group = claims.begin(); group != claims.end();) {
      const auto group_end = std::find_if(group, claims.end(), [&](const RangeDescriptor& each) {
        return each.generation != group->generation;
      });
      std::vector<bool> is_alone(static_cast<size_t>(group_end - group), true);
      size_t furthest = 0;
      for (size_t i = 1; i < is_alone.size(); i++) {
        if (group[static_cast<ptrdiff_t>(i)].start < group[static_cast<ptrdiff_t>(furthest)].end)
          is_alone[i] = is_alone[furthest] = false;
        if (group[static_cast<ptrdiff_t>(i)].end > group[static_cast<ptrdiff_t>(furthest)].end)
          furthest = i;
      }
      for (size_t i = 0; i < is_alone.size(); i++, ++group)
        if (is_alone[i] && has_room_for(*group)) add(*group);
    }
  }

  // Calls visit(begin, end) for each part of the interval that nobody holds.
  template <class Visitor>
  void for_each_hole(ByteView begin, ByteView end, Visitor visit) const {
    Bytes at(begin);
    for (auto next = by_start_.lower_bound(begin); next != by_start_.end(); ++next) {
      if (next->first >= end) break;
      if (at < next->first) visit(at, next->first);
      at = next->second.end;
    }
    if (at < end) visit(at, Bytes(end));
  }

  Claims take() && {
    Claims out;
    for (auto& [start, range] : by_start_) out.push_back(std::move(range));
    return out;
  }

 private:
  std::map<Bytes, RangeDescriptor, std::less<>> by_start_;
};

// REQUIRES: in order.
Claims inside(const Claims& claims, ByteView begin, ByteView end) {
  Claims out;
  auto at = std::ranges::partition_point(
      claims, [&](const RangeDescriptor& each) { return each.start < begin; });
  for (; at != claims.end() && at->start < end; ++at)
    if (at->end <= end) out.push_back(*at);
  return out;
}

// What lies between ranges that are believed.
Claims fill(ByteView begin, ByteView end, const Claims& own, const Claims& directory) {
  Claims ours = inside(own, begin, end);
  if (tiles(ours, begin, end)) return ours;
  Claims theirs = inside(directory, begin, end);
  if (tiles(theirs, begin, end)) return theirs;
  Accepted accepted;
  accepted.add_newest(std::move(ours));
  accepted.add_newest(std::move(theirs));
  Claims holes;
  accepted.for_each_hole(begin, end, [&](Bytes hole_begin, Bytes hole_end) {
    holes.push_back({RangeId{}, std::move(hole_begin), std::move(hole_end), 0, "", 0});
  });
  for (const RangeDescriptor& hole : holes) accepted.add(hole);
  return std::move(accepted).take();
}

std::map<uint64_t, size_t> count_ids(const Claims& claims) {
  std::map<uint64_t, size_t> counts;
  for (const RangeDescriptor& each : claims) counts[each.id.value]++;
  return counts;
}

}  // namespace

std::vector<RangeDescriptor> tile_map(std::vector<RangeDescriptor> own,
                                      std::vector<RangeDescriptor> directory) {
  tidy_claims(own);
  tidy_claims(directory);
  Claims agreed;
  std::ranges::set_intersection(own, directory, std::back_inserter(agreed), precedes);
  // Of two ranges with one id, that which the directory knows too.
  std::erase_if(own, [&, counts = count_ids(own)](const RangeDescriptor& each) {
    return counts.at(each.id.value) > 1 && !std::ranges::binary_search(agreed, each, precedes);
  });
  if (tiles(own, {}, map_key_max) && count_ids(own).size() == own.size()) return own;

  Accepted accepted;
  accepted.add_newest(std::move(agreed));
  Claims filled;
  accepted.for_each_hole({}, map_key_max, [&](const Bytes& begin, const Bytes& end) {
    Claims parts = fill(begin, end, own, directory);
    std::ranges::move(parts, std::back_inserter(filled));
  });
  for (const RangeDescriptor& each : filled) accepted.add(each);
  Claims all = std::move(accepted).take();
  // An id is of one range.
  std::map<uint64_t, size_t> seen;
  for (RangeDescriptor& each : all)
    if (each.id.value != 0 && seen[each.id.value]++ > 0) each.id = {}, each.generation = 0;
  return all;
}

}  // namespace trellis
