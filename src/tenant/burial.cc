// The collector's burials: everything of a keyspace goes, page by page.
#include <algorithm>

#include "base/assert.h"
#include "base/log.h"
#include "codec/fs_keys.h"
#include "codec/keyspace_keys.h"
#include "codec/stored_message.h"
#include "keyspace.pb.h"
#include "tenant/collector.h"
#include "tenant/collector_threads.h"

namespace trellis {
namespace {

// The disk gets back what a burial removed in parts, so that none takes long. Less is not worth it:
// what lies beside it is rewritten, too, and it goes by itself when that happens.
constexpr uint64_t reclaim_bytes = 256 << 20;
constexpr uint64_t reclaim_bytes_min = 16 << 20;
constexpr KeyMode purged_modes[] = {KeyMode::meta, KeyMode::raw, KeyMode::table, KeyMode::txn};

Bytes encode_progress(const PurgeProgress& progress) {
  stored::PurgeProgress message;
  message.set_started_ms(progress.started_ms);
  message.set_updated_ms(progress.updated_ms);
  message.set_finished_ms(progress.finished_ms);
  message.set_bytes_total(progress.bytes_total);
  message.set_bytes_done(progress.bytes_done);
  message.set_entries_done(progress.entries_done);
  message.set_cursor(progress.cursor);
  message.set_blocker(progress.blocker);
  return encode_message(message);
}

Bytes counters_begin(KeyspaceId keyspace) {
  Bytes prefix;
  append_keyspace_prefix(prefix, KeyMode::txn, keyspace);
  prefix.push_back('k');
  return prefix;
}

}  // namespace

Result<std::optional<PurgeProgress>> load_purge(Engine& engine, KeyspaceId keyspace) {
  Value value;
  TRY(engine.get(encode(KeyspacePurgeKey{keyspace}), value));
  if (!value.found()) return std::optional<PurgeProgress>();
  stored::PurgeProgress message;
  TRY(decode_message(value.bytes(), message, "progress of a purge"));
  return std::optional(PurgeProgress{.started_ms = message.started_ms(),
                                     .updated_ms = message.updated_ms(),
                                     .finished_ms = message.finished_ms(),
                                     .bytes_total = message.bytes_total(),
                                     .bytes_done = message.bytes_done(),
                                     .entries_done = message.entries_done(),
                                     .cursor = message.cursor(),
                                     .blocker = message.blocker()});
}

Status Collector::store_progress(KeyspaceId keyspace, const PurgeProgress& progress,
                                 FunctionRef<void(View&)> also) {
  const Bytes key = encode(KeyspacePurgeKey{keyspace});
  Scope scope = Scope::all_of(keyspace);
  scope.exclusive(key);
  return map_.transact(scope, [&](View& view) -> Status {
    view.put(key, encode_progress(progress));
    also(view);
    return {};
  });
}

Status Collector::purge(const Entry& entry) {
  TRY_ASSIGN(const Keyspace keyspace, keyspaces_.load(entry.keyspace));
  if (keyspace.state != KeyspaceState::tombstone || keyspace.purged_at_s != 0)
    return keyspaces_.bury(entry.keyspace, entry.due_ms);  // removes the entry, and nothing else
  TRY_ASSIGN(const auto begun, load_purge(map_.engine, entry.keyspace));
  PurgeProgress progress = begun.value_or(PurgeProgress());
  const uint64_t now_ms = map_.clock.unix_ms();
  if (!begun) {
    TRY_ASSIGN(const Figures figures, stored_figures(map_.engine, entry.keyspace));
    progress.started_ms = now_ms;
    progress.bytes_total = static_cast<uint64_t>(std::max<int64_t>(figures.bytes, 0));
  }
  progress.updated_ms = now_ms;
  TRY_ASSIGN(const GcState state, gc_.load(entry.keyspace));
  if (!state.barriers.empty())
    return hold_purge(entry, std::move(progress), state.barriers.front());
  progress.blocker.clear();
  // Looked for at the start, and at the end once more: a writer may have been late.
  const auto under_way = burials_.find(entry.keyspace);
  if (under_way == burials_.end() || under_way->second.empty()) {
    TRY_ASSIGN(const bool has_blocks, this->has_blocks(entry.keyspace));
    if (has_blocks) return purge_blocks(entry, progress);
  }
  return parts_of_burial(entry.keyspace, progress.cursor).empty()
             ? finish_purge(entry, std::move(progress))
             : purge_pages(entry, std::move(progress));
}

Status Collector::hold_purge(const Entry& entry, PurgeProgress progress, const Barrier& barrier) {
  const uint64_t now_ms = map_.clock.unix_ms();
  progress.blocker = barrier.service;
  const uint64_t ends_ms =
      barrier.expires_at_s > UINT64_MAX / 1'000 ? UINT64_MAX : barrier.expires_at_s * 1'000;
  const uint64_t next_ms = std::clamp(ends_ms, now_ms + 1, next_look_ms(now_ms));
  return store_progress(entry.keyspace, progress, [&](View& view) {
    view.remove(entry.key);
    view.put(encode(KeyspaceDueKey{next_ms, entry.keyspace, DueJob::purge, {}}), due_entry_value);
  });
}

Result<bool> Collector::has_blocks(KeyspaceId keyspace) {
  TRY_ASSIGN(const BlockPage page,
             map_.engine.blocks().list(blocks_begin(keyspace), blocks_end(keyspace), 1));
  return !page.blocks.empty() || page.resume.has_value();
}

// Of the bytes that are done they count with the inodes that have them.
Status Collector::purge_blocks(const Entry& entry, const PurgeProgress& progress) {
  const CollectorPace pace = this->pace();
  size_t bytes_max = options_.slice_bytes;
  if (pace.bytes_per_s != 0) bytes_max = std::min<size_t>(bytes_max, pace.bytes_per_s);
  const size_t blocks_max = bytes_max / block_bytes_max + 1;
  TRY_ASSIGN(const bool is_all, map_.engine.blocks().remove_all(entry.keyspace, blocks_max));
  TRY(store_progress(entry.keyspace, progress, [](View&) {}));
  if (!is_all) step_bytes_ += blocks_max * block_bytes_max;
  if (!is_all || progress.bytes_total < reclaim_bytes_min) return {};
  const Bytes begin = encode(FsBlockKey{entry.keyspace, {}, 0});
  const Bytes end = encode(FsBlockKey{entry.keyspace, DataId{UINT64_MAX}, UINT64_MAX});
  return map_.engine.reclaim({{begin, end}}, &stopping_);
}

// Cut anew after each start: what was removed beyond the cursor is found to be empty.
std::vector<KeyPart>& Collector::parts_of_burial(KeyspaceId keyspace, ByteView cursor) {
  if (const auto known = burials_.find(keyspace); known != burials_.end()) return known->second;
  if (burials_.size() >= keyspaces_under_way_max) burials_.clear();
  std::vector<KeyPart>& parts = burials_[keyspace];
  for (const KeyMode mode : purged_modes) {
    auto [begin, end] = keyspace_interval(mode, keyspace);
    if (cursor >= end) continue;
    begin = std::max(begin, Bytes(cursor));
    if (mode != KeyMode::txn) {
      append_parts(parts, borders_, begin, end);
      continue;
    }
    const Bytes counters = counters_begin(keyspace);
    if (begin < counters) append_parts(parts, borders_, begin, counters);
    parts.push_back({std::max(begin, counters), end});
  }
  return parts;
}

Status Collector::finish_purge(const Entry& entry, PurgeProgress progress) {
  for (const KeyMode mode : purged_modes) {
    if (progress.bytes_done < reclaim_bytes_min) break;
    const auto [begin, end] = keyspace_interval(mode, entry.keyspace);
    TRY(map_.engine.reclaim({{begin, end}}, &stopping_));
  }
  if (stopping_) return {};  // the next start does it again, and to the end
  progress.finished_ms = std::max<uint64_t>(progress.updated_ms, 1);
  TRY(store_progress(entry.keyspace, progress, [](View&) {}));
  TRY(keyspaces_.bury(entry.keyspace, entry.due_ms));
  burials_.erase(entry.keyspace);
  log_info("keyspace buried", {{"id", entry.keyspace.value},
                               {"entries", progress.entries_done},
                               {"bytes", progress.bytes_done}});
  return {};
}

// The first entries of a part.
struct Collector::PurgedPage {
  Status read;
  Bytes end;
  size_t entries = 0;  // stored ones
  uint64_t counted_entries = 0;
  uint64_t bytes = 0;
  std::array<Figures, std::size(model_words)> of_models{};
};

Collector::PurgedPage Collector::read_purged(const KeyPart& part, size_t bytes_max) {
  PurgedPage page;
  const auto count = [&](ByteView key, ByteView value) {
    if (const auto entry = counted(key, value)) {
      Figures& of_model = page.of_models[static_cast<size_t>(entry->model)];
      of_model.bytes += entry->figures.bytes;
      of_model.keys += entry->figures.keys;
      page.counted_entries++;
      page.bytes += static_cast<uint64_t>(entry->figures.bytes);
    }
    return Visit::go_on;
  };
  auto scanned = map_.engine.scan({.begin = part.from,
                                   .end = part.end,
                                   .entries_max = options_.slice_entries,
                                   .bytes_max = bytes_max},
                                  count);
  if (!scanned) {
    page.read = scanned.error();
    return page;
  }
  page.entries = scanned->entries;
  page.end = std::move(scanned->resume).value_or(part.end);
  return page;
}

// A page of each of the first parts, read by a thread each and removed by one commit.
Status Collector::purge_pages(const Entry& entry, PurgeProgress progress) {
  std::vector<KeyPart>& parts = parts_of_burial(entry.keyspace, progress.cursor);
  // With the counters goes what they would be left to count: nothing is beside them.
  const bool counters = parts.size() == 1;
  const CollectorPace pace = this->pace();
  std::vector<PurgedPage> pages(counters ? 1 : std::min<size_t>(pace.threads, parts.size() - 1));
  size_t bytes_max = options_.slice_bytes;
  if (pace.bytes_per_s != 0)
    bytes_max = std::min<size_t>(bytes_max, pace.bytes_per_s / pages.size() + 1);
  run_all(pages.size(), pages.size(),
          [&](size_t i) { pages[i] = read_purged(parts[i], bytes_max); });
  std::vector<KeyPart> left = parts;
  const uint64_t done_before = progress.bytes_done;
  for (size_t i = 0; i < pages.size(); i++) {
    TRY(pages[i].read);
    left[i].from = pages[i].end;
    progress.entries_done += pages[i].counted_entries;
    progress.bytes_done += pages[i].bytes;
  }
  std::erase_if(left, [](const KeyPart& part) { return part.from >= part.end; });
  progress.cursor = left.empty() ? parts.back().end : left.front().from;
  TRY(store_progress(entry.keyspace, progress, [&](View& view) {
    for (size_t i = 0; i < pages.size(); i++) {
      if (pages[i].entries == 0) continue;
      view.remove_range(parts[i].from, pages[i].end);
      for (size_t m = 0; m < std::size(model_words) && !counters; m++) {
        const auto model = static_cast<Model>(m);
        const Figures& removed = pages[i].of_models[m];
        if (removed.bytes != 0)
          view.add(encode(CounterKey{entry.keyspace, model, CounterName::bytes, 0}),
                   -removed.bytes);
        if (removed.keys != 0)
          view.add(encode(CounterKey{entry.keyspace, model, CounterName::keys, 0}), -removed.keys);
      }
    }
  }));
  const Bytes area = parts.front().from.substr(0, 4);  // mode and keyspace
  parts = std::move(left);
  step_bytes_ += progress.bytes_done - done_before;
  purged_bytes_ += progress.bytes_done - done_before;
  TRY_ASSIGN(const auto tenant, keyspaces_.tenant(entry.keyspace));
  tenant->doubt_figures();  // it did not see these writes
  if (progress.bytes_done / reclaim_bytes == done_before / reclaim_bytes) return {};
  return map_.engine.reclaim({{area, std::min(progress.cursor, prefix_end(area))}}, &stopping_);
}

}  // namespace trellis
