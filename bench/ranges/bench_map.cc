#include "bench_map.h"

#include <fmt/format.h>

#include "codec/meta_keys.h"
#include "measure.h"

namespace trellis {

namespace {

constexpr size_t ranges_per_keyspace = 1024;
constexpr size_t commit_ranges = 10'000;

void must_commit(Engine& engine, const Commit& change) { must(commit(engine, change)); }

}  // namespace

Bytes BenchMap::border(size_t range) const {
  if (range == 0) return "\x04";
  if (range == ranges_) return Bytes(map_key_max);
  Bytes out("x");
  append_be24(out, static_cast<uint32_t>(range / ranges_per_keyspace));
  out += 'r';
  if (range % ranges_per_keyspace != 0)  // the first of a keyspace begins where it begins
    out += fmt::format("user{:010}", range % ranges_per_keyspace * 7919);
  return out;
}

Bytes BenchMap::address_in(size_t range, uint64_t within) const {
  return border(range) + fmt::format("{:06}", within % 1'000'000);
}

BenchMap::BenchMap(size_t ranges, size_t meta2_records)
    : ranges_(ranges), engine_(std::make_unique<MemoryEngine>()) {
  uint64_t id = first_range_id.value;
  const auto push = [&](Bytes start, Bytes end) {
    all_.push_back({RangeId{id++}, std::move(start), std::move(end), 1, "", 0});
  };
  push("", "\x03");
  Bytes meta2_start("\x03");
  for (size_t i = meta2_records; i < ranges; i += meta2_records) {
    // Right behind a record, so that none straddles.
    Bytes end = "\x03" + successor(border(i));
    push(std::exchange(meta2_start, end), end);
  }
  push(meta2_start, "\x04");
  for (size_t i = 0; i < ranges; i++) push(border(i), border(i + 1));

  Commit change;
  size_t written = 0;
  for (const RangeDescriptor& range : all_) {
    must(append_directory_writes(change.writes, {}, std::span(&range, 1)));
    if (change.writes.count() < commit_ranges && &range != &all_.back()) continue;
    for (const WriteSet::Write& write : change.writes)
      written += write.key.size() + write.value.size();
    must_commit(*engine_, change);
    change.writes.clear();
  }
  record_bytes_ = static_cast<double>(written) / static_cast<double>(all_.size());
}

}  // namespace trellis
