#include "tenant/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "codec/keyspace_keys.h"
#include "keyspace.pb.h"
#include "tenant/stored_message.h"

namespace trellis {
namespace {

constexpr uint64_t held_retry_ms = 30'000;  // a barrier that is lifted is announced anyway
constexpr uint64_t error_retry_ms = 1'000;
constexpr uint64_t look_again_ms = 60'000;  // clocks jump, and other servers write too
// The disk gets back what a burial removed in parts, so that none takes long. Less is not worth it:
// what lies beside it is rewritten, too, and it goes by itself when that happens.
constexpr uint64_t reclaim_bytes = 256 << 20;
constexpr uint64_t reclaim_bytes_min = 16 << 20;
constexpr size_t keyspaces_under_way_max = 1'000;  // with garbage that takes more than a slice
constexpr KeyMode purged_modes[] = {KeyMode::meta, KeyMode::raw, KeyMode::table, KeyMode::txn};

// The same for all entries of a keyspace that are looked at within the time: they become one.
uint64_t next_look_ms(uint64_t now_ms) { return (now_ms / held_retry_ms + 1) * held_retry_ms; }

Bytes due_index_begin() { return encode(KeyspaceDueKey{0, {}, DueJob::garbage, {}}); }
Bytes due_index_end(uint64_t due_ms) {
  return encode(KeyspaceDueKey{due_ms + 1, {}, DueJob::garbage, {}});
}

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

// The interval of the keyspace that `cursor` lies in, or the first one that follows it.
std::optional<std::pair<Bytes, Bytes>> interval_at(KeyspaceId keyspace, ByteView cursor) {
  for (const KeyMode mode : purged_modes) {
    auto interval = keyspace_interval(mode, keyspace);
    if (cursor < interval.second) {
      if (cursor > interval.first) interval.first = cursor;
      return interval;
    }
  }
  return std::nullopt;
}

Bytes model_prefix(KeyspaceId keyspace, char tag) {
  Bytes prefix;
  append_keyspace_prefix(prefix, KeyMode::txn, keyspace);
  prefix.push_back(tag);
  return prefix;
}
Bytes notes_begin(KeyspaceId keyspace) { return model_prefix(keyspace, 'g'); }
Bytes counters_begin(KeyspaceId keyspace) { return model_prefix(keyspace, 'k'); }

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

Collector::Collector(Keyspaces& keyspaces, Gc& gc, CollectorOptions options)
    : keyspaces_(keyspaces), gc_(gc), map_(keyspaces.map()), options_(options) {}

void Collector::own(Model model, GarbageOwner& owner) {
  owners_[static_cast<size_t>(model)] = &owner;
}

// --- one step ---

Result<std::optional<Collector::Entry>> Collector::next_entry() {
  const uint64_t now_ms = map_.clock.unix_ms();
  std::optional<Entry> entry;
  Status bad;
  const auto visit = [&](ByteView key, ByteView) {
    const auto decoded = decode<KeyspaceDueKey>(key);
    if (decoded) {
      entry = Entry{.key = Bytes(key),
                    .due_ms = decoded->due_ms,
                    .keyspace = decoded->keyspace,
                    .job = decoded->job,
                    .detail = Bytes(decoded->detail)};
    } else {
      bad = Error{Code::corrupt, fmt::format("due index: {} does not make sense", to_hex(key))};
    }
    return Visit::stop;
  };
  if (!cursor_.empty()) {
    const Bytes end = due_index_end(now_ms);
    TRY(map_.engine.scan({.begin = cursor_, .end = end, .entries_max = 1}, visit));
    TRY(bad);
    if (entry) return entry;
    cursor_.clear();  // once around
  }
  const Bytes begin = due_index_begin();
  const Bytes end = due_index_end(UINT64_MAX - 1);
  TRY(map_.engine.scan({.begin = begin, .end = end, .entries_max = 1}, visit));
  TRY(bad);
  return entry;
}

Result<std::optional<uint64_t>> Collector::step() {
  TRY_ASSIGN(const auto entry, next_entry());
  if (!entry) return std::optional<uint64_t>();
  const uint64_t now_ms = map_.clock.unix_ms();
  if (entry->due_ms > now_ms) return std::optional(entry->due_ms - now_ms);
  cursor_ = successor(entry->key);
  steps_++;
  if (Status status = run(*entry); !status) {
    failed_steps_++;
    return with_context(fmt::format("keyspace {}", entry->keyspace.value), status.error());
  }
  return std::optional<uint64_t>(0);
}

Status Collector::run(const Entry& entry) {
  switch (entry.job) {
    case DueJob::garbage: return collect_garbage(entry);
    case DueJob::purge: return purge(entry);
    case DueJob::request: return forget_request(entry);
    case DueJob::retire: return keyspaces_.retire(entry.keyspace, entry.due_ms);
  }
  return {};
}

Status Collector::forget_request(const Entry& entry) {
  const Bytes key = encode(KeyspaceRequestKey{entry.detail});
  return map_.transact(Scope::system().exclusive(key), [&](View& view) -> Status {
    Value value;
    TRY(view.get(key, value));
    stored::CreateRequest request;
    if (value.found()) TRY(decode_message(value.bytes(), request, "create request"));
    if (value.found() && request.forget_at_ms() == entry.due_ms) view.remove(key);
    view.remove(entry.key);
    return {};
  });
}

// --- garbage ---

Status Collector::collect_garbage(const Entry& entry) {
  const auto keyspace = keyspaces_.load(entry.keyspace);
  if (!keyspace && keyspace.error().code != Code::not_found) return keyspace.error();
  if (!keyspace || keyspace->state == KeyspaceState::tombstone) return leave_to_burial(entry);
  TRY_ASSIGN(const auto tenant, keyspaces_.tenant(entry.keyspace));
  // After what the last slice removed, which an engine may have to step over for a while: a heap of
  // garbage would cost more with each slice. Whether anything was left before is asked at the end.
  const Bytes all = notes_begin(entry.keyspace);
  const auto known = notes_from_.find(entry.keyspace);
  const Bytes begin = known == notes_from_.end() ? all : known->second;
  std::optional<uint64_t> oldest_due_ms;
  TRY(map_.engine.scan({.begin = begin, .end = prefix_end(all), .entries_max = 1},
                       [&](ByteView key, ByteView) {
                         const auto note = decode<GarbageKey>(key);
                         oldest_due_ms = note ? note->due_ms : 0;
                         return Visit::stop;
                       }));
  if (!oldest_due_ms) return finish_garbage(entry);
  TRY_ASSIGN(const uint64_t before_ms, collectable_before_ms(entry.keyspace, *oldest_due_ms));

  struct Note {
    Bytes key;
    uint64_t due_ms;
    Model model;
    Bytes target;
  };
  std::vector<Note> notes;
  const Bytes end = encode(GarbageKey{entry.keyspace, before_ms, Model::catalog, {}});
  TRY(map_.engine.scan(
      {.begin = begin, .end = end, .entries_max = options_.slice_notes},
      [&](ByteView key, ByteView) {
        if (const auto note = decode<GarbageKey>(key))
          notes.push_back({Bytes(key), note->due_ms, note->model, Bytes(note->target)});
        return Visit::go_on;
      }));
  bool all_gone = true;
  for (const Note& note : notes) {
    GarbageOwner* owner = owners_[static_cast<size_t>(note.model)];
    if (owner == nullptr)
      return Error{Code::unsupported, fmt::format("nobody collects {}", to_hex(note.key))};
    TRY_ASSIGN(const bool gone, owner->collect(*tenant, note.due_ms, note.target));
    if (gone) notes_++;
    all_gone = all_gone && gone;
  }
  if (all_gone && notes.size() < options_.slice_notes) return finish_garbage(entry);
  if (notes_from_.size() >= keyspaces_under_way_max) notes_from_.clear();
  if (all_gone) notes_from_.insert_or_assign(entry.keyspace, successor(notes.back().key));
  return {};
}

// There is no way back from a tombstone: its notes go with everything else, which has an entry of
// its own.
Status Collector::leave_to_burial(const Entry& entry) {
  return map_.transact(Scope::all_of(entry.keyspace), [&](View& view) {
    view.remove(entry.key);
    return Status();
  });
}

// Notes due before this may be collected. Moves the safe points only if that helps, so that many
// slices of one heap of garbage move them once.
Result<uint64_t> Collector::collectable_before_ms(KeyspaceId keyspace, uint64_t oldest_due_ms) {
  TRY_ASSIGN(GcState state, gc_.load(keyspace));
  const uint64_t now_ms = map_.clock.unix_ms();
  const uint64_t target_ms = now_ms - std::min(now_ms, options_.gc_life_time_ms);
  if (oldest_due_ms >= ms_of_timestamp(state.gc_safe_point) && oldest_due_ms < target_ms) {
    TRY_ASSIGN(state, gc_.advance_both(keyspace, timestamp_at_ms(target_ms)));
  }
  // What is not due yet stays, although a clock that was ahead moved the safe point past it.
  return std::min(ms_of_timestamp(state.gc_safe_point), now_ms + 1);
}

// Nothing that may be collected now is left. The entry goes if no note needs it; otherwise it moves
// to when the first one may be collectable, and never to before, whatever the clock says: it may be
// the only one that later notes of its minute have. Alone with the keyspace: a note that is being
// left comes with an entry of its own, before or after this.
Status Collector::finish_garbage(const Entry& entry) {
  notes_from_.erase(entry.keyspace);
  const Bytes begin = notes_begin(entry.keyspace);
  const uint64_t now_ms = map_.clock.unix_ms();
  return map_.transact(Scope::all_of(entry.keyspace), [&](View& view) -> Status {
    std::optional<uint64_t> first_due_ms;
    TRY(view.scan({.begin = begin, .end = prefix_end(begin), .entries_max = 1},
                  [&](ByteView key, ByteView) {
                    const auto note = decode<GarbageKey>(key);
                    first_due_ms = note ? note->due_ms : 0;
                    return Visit::stop;
                  }));
    view.remove(entry.key);
    if (!first_due_ms || *first_due_ms >= entry.due_ms + due_bucket_ms) return {};
    const uint64_t due_ms = *first_due_ms + options_.gc_life_time_ms + 1;
    const uint64_t next_ms =
        std::max(due_ms > now_ms ? due_ms : next_look_ms(now_ms), entry.due_ms);
    view.put(encode(KeyspaceDueKey{next_ms, entry.keyspace, DueJob::garbage, {}}), due_entry_value);
    return {};
  });
}

// --- burial ---

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
  return purge_page(entry, std::move(progress));
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

Status Collector::purge_page(const Entry& entry, PurgeProgress progress) {
  const auto interval = interval_at(entry.keyspace, progress.cursor);
  if (!interval) {
    for (const KeyMode mode : purged_modes) {
      if (progress.bytes_done < reclaim_bytes_min) break;
      const auto [begin, end] = keyspace_interval(mode, entry.keyspace);
      TRY(map_.engine.reclaim(begin, end));
    }
    progress.finished_ms = std::max<uint64_t>(progress.updated_ms, 1);
    TRY(store_progress(entry.keyspace, progress, [](View&) {}));
    TRY(keyspaces_.bury(entry.keyspace, entry.due_ms));
    log_info("keyspace buried", {{"id", entry.keyspace.value},
                                 {"entries", progress.entries_done},
                                 {"bytes", progress.bytes_done}});
    return {};
  }
  const auto& [begin, end] = *interval;
  const uint64_t done_before = progress.bytes_done;
  std::array<Figures, std::size(model_words)> removed{};
  const auto count = [&](ByteView key, ByteView value) {
    if (const auto entry = counted(key, value)) {
      Figures& of_model = removed[static_cast<size_t>(entry->model)];
      of_model.bytes += entry->figures.bytes;
      of_model.keys += entry->figures.keys;
      progress.entries_done++;
      progress.bytes_done += static_cast<uint64_t>(entry->figures.bytes);
    }
    return Visit::go_on;
  };
  TRY_ASSIGN(const ScanPage page, map_.engine.scan({.begin = begin,
                                                    .end = end,
                                                    .entries_max = options_.slice_entries,
                                                    .bytes_max = options_.slice_bytes},
                                                   count));
  progress.cursor = page.resume.value_or(end);
  const bool much = progress.bytes_done / reclaim_bytes != done_before / reclaim_bytes;
  TRY(store_progress(entry.keyspace, progress, [&](View& view) {
    if (page.entries == 0) return;
    view.remove_range(begin, progress.cursor);
    // The counters come last in the order of keys: with them goes what they would be left to count.
    if (ByteView(progress.cursor) > ByteView(counters_begin(entry.keyspace))) return;
    for (size_t i = 0; i < removed.size(); i++) {
      const auto model = static_cast<Model>(i);
      if (removed[i].bytes != 0)
        view.add(encode(CounterKey{entry.keyspace, model, CounterName::bytes, 0}),
                 -removed[i].bytes);
      if (removed[i].keys != 0)
        view.add(encode(CounterKey{entry.keyspace, model, CounterName::keys, 0}), -removed[i].keys);
    }
  }));
  purged_bytes_ += progress.bytes_done - done_before;
  TRY_ASSIGN(const auto tenant, keyspaces_.tenant(entry.keyspace));
  tenant->doubt_figures();  // it did not see these writes
  if (!much) return {};
  const ByteView interval_begin = ByteView(begin).substr(0, 4);  // mode and keyspace
  return map_.engine.reclaim(interval_begin, progress.cursor);
}

// --- the thread ---

Collector::Totals Collector::totals() const {
  return {.steps = steps_,
          .failed_steps = failed_steps_,
          .notes = notes_,
          .purged_bytes = purged_bytes_};
}

void Collector::start() {
  thread_ = std::thread([this] { thread(); });
}

void Collector::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Collector::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void Collector::thread() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    woken_ = false;
    lock.unlock();
    const uint64_t begun_us = map_.clock.monotonic_us();
    const auto next_ms = step();
    const uint64_t took_us = map_.clock.monotonic_us() - begun_us;
    if (!next_ms) log_warn("collecting failed", {{"error", to_string(next_ms.error())}});
    lock.lock();
    if (next_ms && *next_ms && **next_ms == 0) {
      // Woken or not: the rest is what the neighbours get.
      changed_.wait_for(lock, std::chrono::microseconds(took_us * options_.rest_factor),
                        [&] { return stopping_; });
      continue;
    }
    const uint64_t wait_ms =
        next_ms ? std::min(next_ms->value_or(look_again_ms), look_again_ms) : error_retry_ms;
    changed_.wait_for(lock, std::chrono::milliseconds(wait_ms),
                      [&] { return stopping_ || woken_; });
  }
}

}  // namespace trellis
