#include "range/key_borders.h"

#include <algorithm>

#include "base/assert.h"
#include "codec/address.h"

namespace trellis {
namespace {

constexpr size_t keyspace_prefix_bytes = 4;  // mode and keyspace
constexpr size_t page_ranges = 1'000;
constexpr uint64_t part_bytes_min = 8 << 20;
constexpr uint64_t parts_wanted = 64;  // of what is small: those are smaller, too
constexpr ByteView versioned_tables = "stz";

bool is_redis(ByteView address) {
  return address.size() > keyspace_prefix_bytes && address[0] == 'x' &&
         address[keyspace_prefix_bytes] == 'd';
}

// The first key in every table of what a range that starts there holds. Nothing, if it starts at no
// user key.
void append_redis_borders(std::vector<Bytes>& out, ByteView address) {
  Bytes key;
  Bytes granule;
  if (append_key_at(key, address)) {
    if (!append_granule(granule, key)) return;
  } else {
    granule = address;
  }
  key.clear();
  if (!append_key_at(key, granule + 'm')) return;
  out.push_back(key);
  for (const char table : versioned_tables) {
    key.clear();
    // An address with a table of its own is more exact there, inside of a large collection.
    const bool is_inside = address.size() > granule.size() && address[granule.size()] == table;
    const Bytes at = is_inside ? Bytes(address) : granule + table + Bytes(8, '\0');
    if (append_key_at(key, at)) out.push_back(key);
  }
}

// Ranges that hold something of the area, by start.
std::vector<RangeFigures> ranges_of(const RangeAccounting& accounting, ByteView area) {
  const Bytes end = prefix_end(area);
  std::vector<RangeFigures> all;
  Bytes from(area);
  while (from < end) {
    std::vector<RangeFigures> page = accounting.figures(from, page_ranges);
    if (page.empty()) break;
    from = page.back().range.end;
    for (RangeFigures& figures : page)
      if (figures.range.start < end) all.push_back(std::move(figures));
  }
  return all;
}

}  // namespace

std::vector<Bytes> key_borders(const RangeAccounting& accounting, ByteView begin, ByteView end) {
  ASSERT(begin.size() >= keyspace_prefix_bytes);
  const std::vector<RangeFigures> ranges =
      ranges_of(accounting, begin.substr(0, keyspace_prefix_bytes));
  uint64_t total_bytes = 0;
  for (const RangeFigures& figures : ranges) total_bytes += figures.bytes;
  const uint64_t bytes_min = std::clamp<uint64_t>(total_bytes / parts_wanted, 1, part_bytes_min);
  std::vector<Bytes> borders;
  uint64_t bytes = 0;  // of ranges since the last border
  for (const RangeFigures& figures : ranges) {
    const Bytes& start = figures.range.start;
    if (bytes >= bytes_min) {
      if (is_redis(start))
        append_redis_borders(borders, start);
      else
        borders.push_back(start);
      bytes = 0;
    }
    bytes += figures.bytes;
  }
  std::erase_if(borders, [&](const Bytes& key) { return key <= begin || key >= end; });
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

}  // namespace trellis
