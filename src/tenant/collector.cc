#include "tenant/collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/assert.h"
#include "base/log.h"
#include "codec/keyspace_keys.h"
#include "codec/stored_message.h"
#include "keyspace.pb.h"
#include "tenant/collector_threads.h"

namespace trellis {
namespace {

constexpr uint64_t error_retry_ms = 1'000;
// Clocks jump, other servers write too, and nobody is woken for what expires soon.
constexpr uint64_t look_again_ms = 250;
// Of the time that a slice takes.
constexpr uint64_t rest_percent_min = 25;
constexpr uint64_t rest_percent_of_large = 200;  // where one takes many slices
constexpr size_t passed_over_max = 1'000;        // are told apart
constexpr size_t logged_key_bytes_max = 64;
constexpr size_t few_entries = 4;  // where the first one that makes sense is looked for

Bytes due_index_begin() { return encode(KeyspaceDueKey{0, {}, DueJob::garbage, {}}); }
Bytes due_index_end(uint64_t due_ms) {
  return encode(KeyspaceDueKey{due_ms + 1, {}, DueJob::garbage, {}});
}

Result<CollectorPace> decode_pace(const Value& value) {
  CollectorPace pace;
  if (!value.found()) return pace;
  stored::CollectorPace message;
  TRY(decode_message(value.bytes(), message, "pace of the collector"));
  pace.paused = message.paused();
  pace.bytes_per_s = message.bytes_per_second();
  pace.threads = std::clamp(message.threads(), 1u, collector_threads_max);
  return pace;
}

Bytes encode_pace(const CollectorPace& pace) {
  stored::CollectorPace message;
  message.set_paused(pace.paused);
  message.set_bytes_per_second(pace.bytes_per_s);
  message.set_threads(pace.threads);
  return encode_message(message);
}

// For the log of administrative actions.
std::string pace_text(const CollectorPace& pace) {
  return fmt::format(
      "{}, {}, threads {}", pace.paused ? "paused" : "running",
      pace.bytes_per_s == 0 ? "no limit" : fmt::format("bytes per second {}", pace.bytes_per_s),
      pace.threads);
}

Bytes notes_begin(KeyspaceId keyspace) {
  Bytes prefix;
  append_keyspace_prefix(prefix, KeyMode::txn, keyspace);
  prefix.push_back('g');
  return prefix;
}

constexpr std::string_view senseless_note = "a note of garbage that cannot be decoded";

std::optional<Garbage> note_of(ByteView key, ByteView value) {
  const auto note = decode<GarbageKey>(key);
  const auto bytes = decode_garbage_value(value);
  if (!note || !bytes) return std::nullopt;
  return Garbage{
      .due_ms = note->due_ms, .target = Bytes(note->target), .model = note->model, .bytes = *bytes};
}

// Page by page; `visit` ends it, soon: an engine may read the whole page before. Map is a View or
// an Engine.
template <class Map>
Status scan_until_stopped(Map& map, ByteView begin, ByteView end, ScanVisitor visit) {
  bool stopped = false;
  std::optional<Bytes> from = Bytes(begin);
  while (from && !stopped) {
    TRY_ASSIGN(ScanPage page, map.scan({.begin = *from, .end = end, .entries_max = few_entries},
                                       [&](ByteView key, ByteView value) {
                                         stopped = visit(key, value) == Visit::stop;
                                         return stopped ? Visit::stop : Visit::go_on;
                                       }));
    from = std::move(page.resume);
  }
  return {};
}

}  // namespace

void append_parts(std::vector<KeyPart>& parts, const KeyBorders& borders, Bytes begin, Bytes end) {
  if (borders) {
    for (Bytes& border : borders(begin, end)) {
      ASSERT(border > begin && border < end);
      parts.push_back({std::move(begin), border});
      begin = std::move(border);
    }
  }
  parts.push_back({std::move(begin), std::move(end)});
}

struct Collector::Slice {
  std::vector<Garbage> notes;
  std::optional<Bytes> resume;  // set: there may be more
};

Collector::Collector(Keyspaces& keyspaces, Gc& gc, CollectorOptions options)
    : keyspaces_(keyspaces), gc_(gc), map_(keyspaces.map()), options_(options) {}

void Collector::own(Model model, GarbageOwner& owner) {
  owners_[static_cast<size_t>(model)] = &owner;
}

Bytes Collector::due_entry_of(KeyspaceId keyspace, const Garbage& note) const {
  const GarbageOwner* owner = owners_[static_cast<size_t>(note.model)];
  if (owner != nullptr && owner->is_at_once(note))
    return encode_expire_span(keyspace, expire_span(note.due_ms, map_.clock.unix_ms()));
  return encode(KeyspaceDueKey{due_bucket(note.due_ms), keyspace, DueJob::garbage, {}});
}

// --- pace and progress ---

Status Collector::load_pace() {
  Value value;
  TRY(map_.engine.get(encode(KeyspaceCollectorKey{}), value));
  TRY_ASSIGN(const CollectorPace pace, decode_pace(value));
  const std::lock_guard lock(mutex_);
  pace_ = pace;
  return {};
}

CollectorPace Collector::pace() const {
  const std::lock_guard lock(mutex_);
  return pace_;
}

Result<CollectorPace> Collector::set_pace(const CollectorPacePatch& patch, const Caller& caller) {
  if (patch.threads && (*patch.threads == 0 || *patch.threads > collector_threads_max))
    return Error{Code::invalid, fmt::format("threads: 1 to {}", collector_threads_max)};
  const std::lock_guard changing(pace_mutex_);
  CollectorPace next = pace();
  next.paused = patch.paused.value_or(next.paused);
  next.bytes_per_s = patch.bytes_per_s.value_or(next.bytes_per_s);
  next.threads = patch.threads.value_or(next.threads);
  const Bytes key = encode(KeyspaceCollectorKey{});
  const ChangeLog& changes = keyspaces_.changes();
  Scope scope = Scope::system();
  scope.exclusive(key);
  ChangeLog::lock(scope);
  const Status stored = map_.transact_durably(scope, [&](View& view) -> Status {
    view.put(key, encode_pace(next));
    Change change{.actor = caller.name,
                  .action = "collector",
                  .keyspace = {},
                  .name = {},
                  .detail = pace_text(next),
                  .after = std::nullopt};
    TRY(changes.append(view, change));
    return {};
  });
  if (stored || stored.error().code == Code::maybe) changes.announce();
  TRY(stored);
  log_info("the pace of the collector was set", {{"by", caller.name},
                                                 {"paused", next.paused},
                                                 {"bytes_per_second", next.bytes_per_s},
                                                 {"threads", next.threads}});
  {
    const std::lock_guard lock(mutex_);
    pace_ = next;
    pace_changed_ = true;
  }
  changed_.notify_all();
  return next;
}

Result<GcExplanation> Collector::explain(KeyspaceId keyspace) {
  return gc_.explain(keyspace, [this](ByteView key) {
    const std::lock_guard lock(passed_over_mutex_);
    return passed_over_.contains(std::hash<ByteView>()(key));
  });
}

std::optional<GarbageProgress> Collector::progress(KeyspaceId keyspace) const {
  const std::lock_guard lock(progress_mutex_);
  const auto found = progress_.find(keyspace);
  return found == progress_.end() ? std::nullopt : std::optional(found->second);
}

void Collector::note_progress(KeyspaceId keyspace, uint64_t notes, uint64_t bytes) {
  const std::lock_guard lock(progress_mutex_);
  if (progress_.size() >= keyspaces_under_way_max) progress_.clear();
  const auto place =
      progress_.try_emplace(keyspace, GarbageProgress{.since_ms = map_.clock.unix_ms()}).first;
  place->second.notes += notes;
  place->second.bytes += bytes;
}

void Collector::forget_progress(KeyspaceId keyspace) {
  const std::lock_guard lock(progress_mutex_);
  progress_.erase(keyspace);
}

// --- one step ---

Result<std::optional<Collector::Entry>> Collector::first_entry(ByteView begin, ByteView end) {
  std::optional<Entry> entry;
  const auto visit = [&](ByteView key, ByteView) {
    const auto decoded = decode<KeyspaceDueKey>(key);
    if (!decoded) {
      pass_over(key, decoded.error().message);
      return Visit::go_on;
    }
    if (decoded->job == DueJob::expire && !expires()) return Visit::go_on;
    entry = Entry{.key = Bytes(key),
                  .due_ms = decoded->due_ms,
                  .keyspace = decoded->keyspace,
                  .job = decoded->job,
                  .detail = Bytes(decoded->detail)};
    return Visit::stop;
  };
  TRY(scan_until_stopped(map_.engine, begin, end, visit));
  return entry;
}

Result<std::optional<Collector::Entry>> Collector::next_entry() {
  if (!cursor_.empty()) {
    TRY_ASSIGN(auto entry, first_entry(cursor_, due_index_end(map_.clock.unix_ms())));
    if (entry) return entry;
    cursor_.clear();  // once around
  }
  all_failed_ = !round_worked_;
  round_worked_ = false;
  return first_entry(due_index_begin(), due_index_end(UINT64_MAX - 1));
}

Result<std::optional<uint64_t>> Collector::step() {
  const CollectorPace pace = this->pace();
  if (pace.paused) return std::optional<uint64_t>();
  const auto entry = next_entry();
  if (!entry) all_failed_ = true;
  TRY(entry);
  if (!*entry) return std::optional<uint64_t>();
  const Entry& first = **entry;
  const uint64_t now_ms = map_.clock.unix_ms();
  if (first.due_ms > now_ms) return std::optional(first.due_ms - now_ms);
  cursor_ = successor(first.key);
  steps_++;
  rest_percent_ = 100 * options_.rest_factor;
  step_bytes_ = 0;
  const uint64_t begun_us = map_.clock.monotonic_us();
  const Status status = run(first);
  const uint64_t took_us = map_.clock.monotonic_us() - begun_us;
  rest_us_ = std::min(took_us * rest_percent_ / 100, options_.rest_ms_max * 1'000);
  if (pace.bytes_per_s != 0) {
    const auto due_us = static_cast<uint64_t>(static_cast<double>(step_bytes_) * 1e6 /
                                              static_cast<double>(pace.bytes_per_s));
    rest_us_ = std::max(rest_us_, due_us - std::min(due_us, took_us));
  }
  if (!status) {
    failed_steps_++;
    return with_context(fmt::format("keyspace {}", first.keyspace.value), status.error());
  }
  round_worked_ = true;
  return std::optional<uint64_t>(0);
}

// It stays where it is, for whoever looks into it.
void Collector::pass_over(ByteView key, std::string_view why) {
  const std::lock_guard lock(passed_over_mutex_);
  if (passed_over_.size() >= passed_over_max) return;
  if (!passed_over_.insert(std::hash<ByteView>()(key)).second) return;
  passed_over_count_++;
  log_warn("the collector passes over what makes no sense",
           {{"key", to_hex(key.substr(0, logged_key_bytes_max))}, {"error", why}});
}

Status Collector::run(const Entry& entry) {
  switch (entry.job) {
    case DueJob::garbage: return collect_garbage(entry);
    case DueJob::purge: return purge(entry);
    case DueJob::request: return forget_request(entry);
    case DueJob::retire: return keyspaces_.retire(entry.keyspace, entry.due_ms);
    case DueJob::expire: return expire(entry);
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

// Null: it is dead, and the entry gone.
Result<std::shared_ptr<Tenant>> Collector::tenant_of(const Entry& entry) {
  const auto keyspace = keyspaces_.load(entry.keyspace);
  if (!keyspace && keyspace.error().code != Code::not_found) return keyspace.error();
  if (keyspace && keyspace->state != KeyspaceState::tombstone)
    return keyspaces_.tenant(entry.keyspace);
  TRY(leave_to_burial(entry));
  return std::shared_ptr<Tenant>();
}

Status Collector::collect_garbage(const Entry& entry) {
  TRY_ASSIGN(const auto tenant, tenant_of(entry));
  if (tenant == nullptr) return {};
  // After what the last slice removed, which an engine may have to step over for a while: a heap of
  // garbage would cost more with each slice. Whether anything was left before is asked at the end.
  const Bytes all = notes_begin(entry.keyspace);
  const auto known = under_way_.find(entry.keyspace);
  const Bytes begin = known == under_way_.end() ? all : known->second.from;
  TRY_ASSIGN(const auto oldest_due_ms, first_due_ms(map_.engine, begin, prefix_end(all)));
  if (!oldest_due_ms) return finish_garbage(entry);
  TRY_ASSIGN(const uint64_t before_ms, collectable_before_ms(entry.keyspace, *oldest_due_ms));
  const Bytes end = encode(GarbageKey{entry.keyspace, before_ms, Model::catalog, {}});
  TRY_ASSIGN(const Slice slice, read_slice(begin, end));
  TRY_ASSIGN(const bool all_gone, collect_slice(*tenant, slice.notes));
  if (!all_gone) return {};
  if (slice.notes.empty() && !slice.resume) return finish_garbage(entry);
  // Something went, so that there may be more by now. To finish holds the keyspace, and steps over
  // all that went: once for each entry is enough.
  go_on_from(entry.keyspace, slice, slice.resume.value_or(end));
  uint64_t reached_ms = std::max(before_ms, life_time_ago_ms());
  if (slice.resume) reached_ms = slice.notes.empty() ? 0 : slice.notes.back().due_ms;
  return reached_ms < entry.due_ms + due_bucket_ms ? Status() : finish_garbage(entry);
}

bool Collector::expires() const {
  return std::all_of(owners_.begin(), owners_.end(), [](const GarbageOwner* owner) {
    return owner == nullptr || owner->expires();
  });
}

// Up to the end of the second that is over. Where other notes follow it steps over them: they may
// be many. Map is a View or an Engine.
template <class Map>
Status Collector::read_at_once(Map& map, const Entry& entry, Bytes begin, uint64_t until_ms,
                               size_t notes_max, std::vector<Garbage>& notes) {
  const Bytes end = encode(GarbageKey{entry.keyspace, until_ms + 1, Model::catalog, {}});
  std::optional<Bytes> from = std::move(begin);
  while (from && notes.size() < notes_max) {
    std::optional<Bytes> behind;
    const auto take = [&](ByteView key, ByteView value) {
      auto note = note_of(key, value);
      if (!note) {
        pass_over(key, senseless_note);
        return Visit::go_on;
      }
      const GarbageOwner* const owner = owners_[static_cast<size_t>(note->model)];
      if (owner == nullptr || !owner->is_at_once(*note)) {
        behind = prefix_end(encode(GarbageKey{entry.keyspace, note->due_ms, note->model, {}}));
        return Visit::stop;
      }
      notes.push_back(std::move(*note));
      return notes.size() < notes_max ? Visit::go_on : Visit::stop;
    };
    TRY_ASSIGN(ScanPage page, map.scan({.begin = *from, .end = end, .entries_max = 64}, take));
    from = behind ? std::move(behind) : std::move(page.resume);
  }
  return {};
}

// Of an entry that stands for a long time, which has begun: entries of shorter ones, where there
// are notes. Whoever leaves a note in it now gives it such an entry too.
Status Collector::cut_far_entry(const Entry& entry) {
  constexpr size_t cuts_max = 256;
  const uint64_t end_ms =
      entry.detail.size() == sizeof(uint64_t) ? load_be(entry.detail.data(), 8) : entry.due_ms;
  const uint64_t now_ms = map_.clock.unix_ms();
  uint64_t from_ms = entry.due_ms;
  std::vector<Bytes> entries;
  while (from_ms < end_ms && entries.size() < cuts_max) {
    const Bytes begin = encode(GarbageKey{entry.keyspace, from_ms, Model::catalog, {}});
    std::vector<Garbage> notes;
    TRY(read_at_once(map_.engine, entry, begin, end_ms - 1, 1, notes));
    if (notes.empty()) break;
    const ExpireSpan span = expire_span(notes[0].due_ms, now_ms);
    entries.push_back(encode_expire_span(entry.keyspace, span));
    from_ms = span.end_ms;
  }
  const bool is_done = entries.size() < cuts_max || from_ms >= end_ms;
  return map_.transact(Scope::all_of(entry.keyspace), [&](View& view) -> Status {
    for (const Bytes& one : entries) view.put(one, due_entry_value);
    view.remove(entry.key);
    if (!is_done)
      view.put(encode(KeyspaceDueKey{from_ms, entry.keyspace, DueJob::expire, entry.detail}),
               due_entry_value);
    return {};
  });
}

// Takes all seconds that are over at once: who is behind has less to do for each. Their entries go
// when nothing is left of them, seen with the keyspace alone: a note that is being left comes with
// an entry of its own, before or after this.
Status Collector::expire(const Entry& entry) {
  constexpr uint64_t seconds_max = 60;
  TRY_ASSIGN(const auto tenant, tenant_of(entry));
  if (tenant == nullptr) return {};
  if (!entry.detail.empty()) return cut_far_entry(entry);
  const uint64_t now_ms = std::max(map_.clock.unix_ms(), entry.due_ms);
  const uint64_t over_s = (now_ms - entry.due_ms) / expire_bucket_ms;
  const uint64_t until_ms = entry.due_ms + std::min(over_s, seconds_max) * expire_bucket_ms;
  const uint64_t before_ms = entry.due_ms - std::min(entry.due_ms, expire_bucket_ms);
  const Bytes begin = encode(GarbageKey{entry.keyspace, before_ms, Model::catalog, {}});
  // After what the last slices removed, as with other garbage.
  if (expired_to_.size() >= keyspaces_under_way_max) expired_to_.clear();
  Bytes& from = expired_to_[{entry.keyspace, entry.due_ms}];
  std::vector<Garbage> notes;
  TRY(read_at_once(map_.engine, entry, std::max(begin, from), until_ms, options_.slice_notes,
                   notes));
  if (!notes.empty()) {
    TRY_ASSIGN(const bool all_gone, collect_slice(*tenant, notes));
    if (!all_gone || notes.size() == options_.slice_notes)
      rest_percent_ = std::min<uint64_t>(rest_percent_, 100);
    const Garbage& last = notes.back();
    if (all_gone) from = encode(GarbageKey{entry.keyspace, last.due_ms, last.model, last.target});
    return {};
  }
  const Bytes seen_to = std::max(begin, from);
  const auto of_keyspace = [&](uint64_t due_ms) {
    return expired_to_.lower_bound({entry.keyspace, due_ms});
  };
  expired_to_.erase(of_keyspace(entry.due_ms), of_keyspace(until_ms + 1));
  // Those that are under way for other seconds must hear of what was left since they began.
  const bool is_last = of_keyspace(0) == of_keyspace(UINT64_MAX);
  return map_.transact(Scope::all_of(entry.keyspace), [&](View& view) -> Status {
    // All up to there was seen to be gone, but for what was left since then: to look at it all
    // again, and step over what was removed, would keep the keyspace waiting.
    Bytes look_from = begin;
    if (!map_.engine.shared()) {
      const uint64_t first_ms = std::max(tenant->first_at_once_ms(), before_ms);
      look_from =
          std::min(seen_to, encode(GarbageKey{entry.keyspace, first_ms, Model::catalog, {}}));
    }
    std::vector<Garbage> left;
    TRY(read_at_once(view, entry, look_from, until_ms, 1, left));
    if (!left.empty()) return {};
    if (is_last) tenant->forget_at_once();
    if (is_last) forget_progress(entry.keyspace);
    for (uint64_t due_ms = entry.due_ms; due_ms <= until_ms; due_ms += expire_bucket_ms)
      view.remove(encode(KeyspaceDueKey{due_ms, entry.keyspace, DueJob::expire, {}}));
    return {};
  });
}

uint64_t Collector::life_time_ago_ms() const {
  const uint64_t now_ms = map_.clock.unix_ms();
  return now_ms - std::min(now_ms, options_.gc_life_time_ms);
}

// When the first note that makes sense is due. Map is a View or an Engine.
template <class Map>
Result<std::optional<uint64_t>> Collector::first_due_ms(Map& map, ByteView begin, ByteView end) {
  std::optional<uint64_t> due_ms;
  TRY(scan_until_stopped(map, begin, end, [&](ByteView key, ByteView value) {
    if (const auto note = note_of(key, value)) due_ms = note->due_ms;
    if (!due_ms) pass_over(key, senseless_note);
    return due_ms ? Visit::stop : Visit::go_on;
  }));
  return due_ms;
}

Result<Collector::Slice> Collector::read_slice(ByteView begin, ByteView end) {
  Slice slice;
  TRY_ASSIGN(ScanPage page,
             map_.engine.scan({.begin = begin, .end = end, .entries_max = options_.slice_notes},
                              [&](ByteView key, ByteView value) {
                                if (auto note = note_of(key, value))
                                  slice.notes.push_back(std::move(*note));
                                else
                                  pass_over(key, senseless_note);
                                return Visit::go_on;
                              }));
  slice.resume = std::move(page.resume);
  return slice;
}

// What one transaction each is to collect; what several threads may share is there for each.
std::vector<std::span<const Garbage>> Collector::spans_of(std::span<const Garbage> notes,
                                                          size_t threads) const {
  std::vector<std::span<const Garbage>> spans;
  while (!notes.empty()) {
    const size_t count_max = std::min(notes.size(), options_.span_notes);
    size_t count = 1;
    uint64_t bytes = notes[0].bytes;
    while (count < count_max && notes[count].model == notes[0].model &&
           bytes < options_.span_bytes && notes[count].bytes <= options_.span_bytes - bytes)
      bytes += notes[count++].bytes;
    const GarbageOwner* const owner = owners_[static_cast<size_t>(notes[0].model)];
    const bool is_shared = count == 1 && owner != nullptr && owner->is_shared(notes[0]);
    spans.insert(spans.end(), is_shared ? threads : 1, notes.first(count));
    notes = notes.subspan(count);
  }
  return spans;
}

// False if some must be looked at again. What is below the safe point stays collectable, whatever
// happens in between: the point never goes back, and no barrier is set below it.
Result<bool> Collector::collect_slice(Tenant& tenant, std::span<const Garbage> notes) {
  const size_t threads = pace().threads;
  const auto spans = spans_of(notes, threads);
  const uint64_t large_end_us = map_.clock.monotonic_us() + options_.large_us_max;
  std::atomic<bool> left_large = false;  // then this slice ends no heap of notes anyway
  const uint64_t notes_before = notes_;
  const uint64_t bytes_before = tenant.collected_bytes();
  std::vector<Result<bool>> gone(spans.size(), false);
  run_all(threads, spans.size(), [&](size_t i) {
    const bool is_large = spans[i][0].bytes > options_.span_bytes;
    if (is_large && left_large && map_.clock.monotonic_us() >= large_end_us) return;
    gone[i] = collect_span(tenant, spans[i]);
    if (is_large && gone[i] && !*gone[i]) left_large = true;
  });
  if (left_large) rest_percent_ = std::min(rest_percent_, rest_percent_of_large);
  const uint64_t bytes = tenant.collected_bytes() - bytes_before;
  step_bytes_ += bytes;
  note_progress(tenant.id(), notes_ - notes_before, bytes);
  bool all_gone = true;
  for (const Result<bool>& of_span : gone) {
    TRY(of_span);
    all_gone = all_gone && *of_span;
  }
  TRY(reclaim_removed());
  return all_gone;
}

Status Collector::reclaim_removed() {
  for (GarbageOwner* const owner : owners_) {
    if (owner == nullptr) continue;
    TRY_ASSIGN(const std::vector<KeyInterval> removed, owner->take_removed(map_.engine));
    if (!removed.empty()) TRY(map_.engine.reclaim(removed, &stopping_));
  }
  return {};
}

Result<bool> Collector::collect_span(Tenant& tenant, std::span<const Garbage> notes) {
  GarbageOwner* owner = owners_[static_cast<size_t>(notes[0].model)];
  const Result<size_t> gone = owner == nullptr
                                  ? Error{Code::unsupported, "nobody collects such garbage"}
                                  : owner->collect(tenant, notes);
  if (gone) {
    notes_ += *gone;
    return *gone == notes.size();
  }
  if (gone.error().code != Code::corrupt && gone.error().code != Code::unsupported)
    return gone.error();
  if (notes.size() == 1) {
    const Garbage& note = notes[0];
    pass_over(encode(GarbageKey{tenant.id(), note.due_ms, note.model, note.target}),
              gone.error().message);
    return true;
  }
  bool all_gone = true;
  for (size_t i = 0; i < notes.size(); i++) {  // it is one of them
    TRY_ASSIGN(const bool one_gone, collect_span(tenant, notes.subspan(i, 1)));
    all_gone = all_gone && one_gone;
  }
  return all_gone;
}

// If what comes has been waiting for longer than that of the last slice had, garbage comes faster
// than it goes: then the rests get shorter, until a slice takes all that there is.
void Collector::go_on_from(KeyspaceId keyspace, const Slice& slice, ByteView from) {
  if (under_way_.size() >= keyspaces_under_way_max) under_way_.clear();
  const uint64_t rest_percent_max = 100 * options_.rest_factor;
  const auto [place, is_new] =
      under_way_.try_emplace(keyspace, UnderWay{.rest_percent = rest_percent_max});
  UnderWay& now = place->second;
  now.from = from;
  const uint64_t now_ms = map_.clock.unix_ms();
  const uint64_t due_ms = slice.notes.empty() ? now_ms : slice.notes.back().due_ms;
  const uint64_t lag_ms = now_ms - std::min(now_ms, due_ms);
  if (!slice.resume)
    now.rest_percent = std::min(now.rest_percent * 8 / 7 + 1, rest_percent_max);
  else if (!is_new && lag_ms > now.lag_ms)
    now.rest_percent =
        std::max(now.rest_percent * 7 / 8, std::min(rest_percent_min, rest_percent_max));
  now.lag_ms = lag_ms;
  rest_percent_ = now.rest_percent;
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
// slices of one heap of garbage move them once; and no further than the garbage needs, because
// there is no way back for a clock that is far ahead for a moment.
Result<uint64_t> Collector::collectable_before_ms(KeyspaceId keyspace, uint64_t oldest_due_ms) {
  TRY_ASSIGN(GcState state, gc_.load(keyspace));
  const uint64_t now_ms = map_.clock.unix_ms();
  const uint64_t target_ms = life_time_ago_ms();
  if (oldest_due_ms >= ms_of_timestamp(state.gc_safe_point) && oldest_due_ms < target_ms) {
    uint64_t youngest_due_ms = oldest_due_ms;
    const Bytes begin = notes_begin(keyspace);
    const Bytes end = encode(GarbageKey{keyspace, target_ms, Model::catalog, {}});
    TRY(map_.engine.scan({.begin = begin, .end = end, .reverse = true, .entries_max = few_entries},
                         [&](ByteView key, ByteView value) {
                           const auto note = note_of(key, value);
                           if (note) youngest_due_ms = note->due_ms;
                           return note ? Visit::stop : Visit::go_on;
                         }));
    TRY_ASSIGN(state, gc_.advance_both(keyspace, timestamp_at_ms(youngest_due_ms + 1)));
  }
  // The last timestamp is behind all times: it cannot tell those that are to wait.
  if (state.gc_safe_point == UINT64_MAX) return target_ms;
  // What is not due yet stays, although a clock that was ahead moved the safe point past it.
  return std::min(ms_of_timestamp(state.gc_safe_point), now_ms + 1);
}

// Nothing of the entry's minute that may be collected now is left. It goes if no note needs it;
// otherwise it moves to when the first one may be collectable, and never to before, whatever the
// clock says: it may be the only one that later notes of its minute have. Alone with the keyspace:
// a note that is being left comes with an entry of its own, before or after this.
Status Collector::finish_garbage(const Entry& entry) {
  const Bytes begin = notes_begin(entry.keyspace);
  const uint64_t now_ms = map_.clock.unix_ms();
  bool goes_on = false;
  TRY(map_.transact(Scope::all_of(entry.keyspace), [&](View& view) -> Status {
    TRY_ASSIGN(const auto left_due_ms, first_due_ms(view, begin, prefix_end(begin)));
    view.remove(entry.key);
    goes_on = left_due_ms && *left_due_ms >= entry.due_ms + due_bucket_ms &&
              *left_due_ms < life_time_ago_ms();
    if (!left_due_ms || *left_due_ms >= entry.due_ms + due_bucket_ms) return {};
    const uint64_t due_ms = *left_due_ms + options_.gc_life_time_ms + 1;
    const uint64_t next_ms =
        std::max(due_ms > now_ms ? due_ms : next_look_ms(now_ms), entry.due_ms);
    view.put(encode(KeyspaceDueKey{next_ms, entry.keyspace, DueJob::garbage, {}}), due_entry_value);
    return {};
  }));
  if (goes_on) return {};
  under_way_.erase(entry.keyspace);
  forget_progress(entry.keyspace);
  return {};
}

// --- the thread ---

Collector::Totals Collector::totals() const {
  return {.steps = steps_,
          .failed_steps = failed_steps_,
          .notes = notes_,
          .passed_over = passed_over_count_,
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
  std::optional<uint64_t> told_us;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    woken_ = false;
    lock.unlock();
    const auto next_ms = step();
    const uint64_t now_us = map_.clock.monotonic_us();
    if (!next_ms && (!told_us || now_us - *told_us >= error_retry_ms * 1'000)) {
      log_warn("collecting failed", {{"error", to_string(next_ms.error())}});
      told_us = now_us;
    }
    lock.lock();
    // One keyspace that fails must not slow the others down: only if all do it waits.
    const bool more = next_ms ? *next_ms == std::optional<uint64_t>(0) : !all_failed_;
    if (more) {
      // Woken or not: the rest is what the neighbours get.
      changed_.wait_for(lock, std::chrono::microseconds(rest_us_),
                        [&] { return stopping_ || pace_changed_; });
      pace_changed_ = false;
      continue;
    }
    const uint64_t wait_ms =
        next_ms ? std::min(next_ms->value_or(look_again_ms), look_again_ms) : error_retry_ms;
    changed_.wait_for(lock, std::chrono::milliseconds(wait_ms),
                      [&] { return stopping_ || woken_ || pace_changed_; });
    pace_changed_ = false;
  }
}

}  // namespace trellis
