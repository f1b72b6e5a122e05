#include "tenant/tenant.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"
#include "base/human_bytes.h"
#include "base/no_wait.h"
#include "codec/catalog_ref.h"
#include "codec/counter_value.h"
#include "codec/fs_keys.h"
#include "codec/fs_values.h"
#include "codec/system_keys.h"

namespace trellis {
namespace {

constexpr char garbage_value_format = 0x01;
constexpr uint64_t figures_age_us = 1'000'000;  // on a shared engine

int64_t entry_bytes(ByteView key, const Value& value) {
  return value.found() ? static_cast<int64_t>(key.size() + value.bytes().size()) : 0;
}

bool is_catalog_entity(ByteView key) {
  const ByteView record = key.substr(4);
  if (record.size() < 4 || record[0] != 'c' || record[3] != '_') return false;
  return std::any_of(std::begin(catalog_types), std::end(catalog_types),
                     [&](const Word& type) { return record.substr(1, 2) == type.bytes; });
}

Result<Keyspace> decode_stored(const Value& value, KeyspaceId id) {
  if (!value.found())
    return Error{Code::not_found, fmt::format("keyspace {} does not exist", id.value),
                 "keyspace_not_found"};
  return decode_keyspace(value.bytes());
}

// Visits all entries of [begin, end), page by page.
Status scan_all(Engine& engine, ByteView begin, ByteView end,
                FunctionRef<void(ByteView, ByteView)> visit) {
  Bytes from(begin);
  for (;;) {
    TRY_ASSIGN(ScanPage page, engine.scan({.begin = from, .end = end, .entries_max = 4'096},
                                          [&](ByteView key, ByteView value) {
                                            visit(key, value);
                                            return Visit::go_on;
                                          }));
    if (!page.resume) return {};
    from = std::move(*page.resume);
  }
}

}  // namespace

void CountedView::put(ByteView key, ByteView value, const Value& old) {
  wrote_ = true;
  difference_.bytes += static_cast<int64_t>(key.size() + value.size()) - entry_bytes(key, old);
  view_.put(key, value);
}

void CountedView::put_new(WriteSet puts) {
  wrote_ = true;
  difference_.bytes += static_cast<int64_t>(puts.content_bytes());
  view_.put_all(std::move(puts));
}

void CountedView::put_note(ByteView key, ByteView value, const Value& old) {
  put_note_ = true;
  note_bytes_ +=
      std::max<int64_t>(static_cast<int64_t>(key.size() + value.size()) - entry_bytes(key, old), 0);
  put(key, value, old);
}

void CountedView::remove(ByteView key, const Value& old) {
  wrote_ = true;
  difference_.bytes -= entry_bytes(key, old);
  view_.remove(key);
}

void CountedView::remove_found(ByteView key, size_t value_bytes) {
  wrote_ = true;
  difference_.bytes -= static_cast<int64_t>(key.size() + value_bytes);
  view_.remove(key);
}

void CountedView::remove_unread(ByteView begin, ByteView end, uint64_t bytes) {
  wrote_ = true;
  difference_.bytes -= static_cast<int64_t>(bytes);
  view_.remove_unread(begin, end);
}

void CountedView::count_keys(int64_t difference, uint16_t slot) {
  difference_.keys += difference;
  for (SlotKeys& known : slot_keys_) {
    if (known.slot != slot) continue;
    known.difference += difference;
    return;
  }
  slot_keys_.push_back({slot, difference});
}

void CountedView::forget_slot(uint16_t slot) {
  view_.remove(encode(CounterKey{keyspace_, model_, CounterName::keys, slot}));
}

void CountedView::leave_garbage(uint64_t due_ms, ByteView target, uint64_t bytes, When when) {
  const Bytes note = encode(GarbageKey{keyspace_, due_ms, model_, target});
  wrote_ = true;
  note_bytes_ += static_cast<int64_t>(note.size() + garbage_value_bytes);
  difference_.bytes += static_cast<int64_t>(note.size() + garbage_value_bytes);
  view_.put(note, encode_garbage_value(bytes));
  if (when == When::at_once) first_at_once_ms_ = std::min(first_at_once_ms_, due_ms);
  if (when == When::behind_safe_point) {
    if (std::exchange(last_due_ms_, due_bucket(due_ms)) == due_bucket(due_ms)) return;
    view_.put(encode(KeyspaceDueKey{last_due_ms_, keyspace_, DueJob::garbage, {}}),
              due_entry_value);
    return;
  }
  if (now_ms_ == 0) now_ms_ = tenant_->map().clock.unix_ms();
  const ExpireSpan span = expire_span(due_ms, now_ms_);
  if (span == last_span_) return;  // as most of a batch are
  last_span_ = span;
  view_.put(encode_expire_span(keyspace_, span), due_entry_value);
}

void CountedView::forget_garbage(uint64_t due_ms, ByteView target) {
  const Bytes note = encode(GarbageKey{keyspace_, due_ms, model_, target});
  wrote_ = true;
  difference_.bytes -= static_cast<int64_t>(note.size() + garbage_value_bytes);
  view_.remove(note);
}

Status CountedView::commit_ahead(std::vector<ByteView> prefixes, int64_t bytes) {
  ASSERT(tenant_ != nullptr);
  committed_ahead_ = true;
  difference_.bytes -= bytes;
  // The collector may be done with it before this transaction is.
  last_due_ms_ = UINT64_MAX;
  last_span_.reset();
  tenant_->note_at_once(first_at_once_ms_);
  return tenant_->commit_ahead(model_, view_, std::move(prefixes), bytes);
}

ExpireSpan expire_span(uint64_t note_due_ms, uint64_t now_ms) {
  constexpr uint64_t far_ms = 4 * 3'600'000;
  constexpr uint64_t parts = 8;  // of the time until then, at least
  if (note_due_ms < far_ms || note_due_ms - far_ms <= now_ms) {
    const uint64_t last_ms = expire_bucket(note_due_ms);
    return {.due_ms = last_ms, .end_ms = last_ms + 1, .is_far = false};
  }
  const uint64_t length_ms = std::bit_floor((note_due_ms - now_ms) / parts);
  const uint64_t begin_ms = note_due_ms - note_due_ms % length_ms;
  return {.due_ms = begin_ms,
          .end_ms = begin_ms + std::min(length_ms, UINT64_MAX - begin_ms),
          .is_far = true};
}

Bytes encode_expire_span(KeyspaceId keyspace, const ExpireSpan& span) {
  Bytes end;
  if (span.is_far) append_be64(end, span.end_ms);
  return encode(KeyspaceDueKey{span.due_ms, keyspace, DueJob::expire, end});
}

Bytes encode_garbage_value(uint64_t bytes) {
  Bytes out(1, garbage_value_format);
  append_be64(out, bytes);
  return out;
}

std::optional<uint64_t> decode_garbage_value(ByteView value) {
  if (value.size() != garbage_value_bytes || value[0] != garbage_value_format) return std::nullopt;
  return load_be(value.data() + 1, 8);
}

Result<Figures> stored_figures(Engine& engine, KeyspaceId keyspace) {
  Bytes prefix;
  append_keyspace_prefix(prefix, KeyMode::txn, keyspace);
  prefix.push_back('k');
  Figures figures;
  Status bad;
  TRY(scan_all(engine, prefix, prefix_end(prefix), [&](ByteView key, ByteView value) {
    const auto counter = decode<CounterKey>(key);
    const auto number = decode_counter_value(value);
    if (!counter || !number) {
      bad = Error{Code::corrupt, fmt::format("counter {} does not make sense", to_hex(key))};
      return;
    }
    (counter->counter == CounterName::bytes ? figures.bytes : figures.keys) += *number;
  }));
  TRY(bad);
  return figures;
}

std::optional<Counted> counted(ByteView key, ByteView value) {
  if (is_counter_key(key)) return std::nullopt;
  Counted entry{.model = Model::raw,
                .figures = {.bytes = static_cast<int64_t>(key.size() + value.size())}};
  if (key[0] != 'x') {
    entry.figures.keys = 1;
  } else if (const auto note = decode<GarbageKey>(key)) {
    entry.model = note->model;
  } else {
    for (size_t i = 0; i < std::size(model_words); i++)
      if (key.substr(4).starts_with(model_words[i].bytes)) entry.model = static_cast<Model>(i);
    if (key.substr(4).starts_with("dm")) entry.figures.keys = 1;  // the record of a Redis key
    if (is_catalog_entity(key)) entry.figures.keys = 1;
    if (decode<FsInodeKey>(key)) {
      entry.figures.keys = 1;
      if (const auto inode = decode<FsInode>(value))
        entry.figures.bytes += static_cast<int64_t>(inode->blocks * block_bytes_max);
    }
  }
  return entry;
}

Result<Figures> recount(Engine& engine, KeyspaceId keyspace) {
  Figures figures;
  for (const KeyMode mode : {KeyMode::raw, KeyMode::txn}) {
    const auto [begin, end] = keyspace_interval(mode, keyspace);
    TRY(scan_all(engine, begin, end, [&](ByteView key, ByteView value) {
      if (const auto entry = counted(key, value)) {
        figures.bytes += entry->figures.bytes;
        figures.keys += entry->figures.keys;
      }
    }));
  }
  return figures;
}

// --- what is known of the keyspace ---

void Tenant::take_over(const Keyspace& keyspace) {
  keyspace_ = keyspace;
  rate_.set(keyspace.quota.operations_per_second);
  state_.store(keyspace.state);
  doubtful_.store(false);  // last: whoever sees that asks nobody
}

void Tenant::doubt(KeyspaceState next) {
  const std::lock_guard lock(mutex_);
  // The states are in the order of what they refuse.
  state_.store(std::max(state_.load(), next));
  doubtful_.store(true);
}

bool Tenant::is_named(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return !doubtful_.load() && keyspace_.name == name && keyspace_.state != KeyspaceState::tombstone;
}

Status Tenant::refresh_if_needed() {
  if (!doubtful_.load() && map_.latched()) return {};
  return refresh();
}

// Under these latches no change is under way, so that what is stored is the truth, and nobody can
// have come to doubt it since it was read.
Status Tenant::refresh() {
  const Bytes key = encode(KeyspaceMetaKey{id_});
  if (!map_.latched()) {
    Value value;
    TRY(map_.engine.get(key, value));
    TRY_ASSIGN(const Keyspace keyspace, decode_stored(value, id_));
    const std::lock_guard lock(mutex_);
    // Somebody who read later may have come first.
    if (keyspace.revision >= keyspace_.revision) take_over(keyspace);
    return {};
  }
  return map_.transactor.transact(
      Scope::in(id_).shared(key),
      [&](View& view) -> Status {
        Value value;
        TRY(view.get(key, value));
        TRY_ASSIGN(const Keyspace keyspace, decode_stored(value, id_));
        const std::lock_guard lock(mutex_);
        take_over(keyspace);
        return {};
      },
      Durability::off);
}

Result<Keyspace> Tenant::keyspace() {
  TRY(refresh_if_needed());
  const std::lock_guard lock(mutex_);
  Keyspace keyspace = keyspace_;
  keyspace.state = state_.load();
  return keyspace;
}

// --- operations ---

Status Tenant::admit(const Caller& caller, Access access, uint32_t operations) {
  TRY(refresh_if_needed());
  const KeyspaceState state = state_.load();
  if (state != KeyspaceState::enabled ||
      static_cast<uint8_t>(caller.role) < static_cast<uint8_t>(access)) {
    const std::lock_guard lock(mutex_);
    TRY(check_access(caller, access, state, keyspace_.name));
  }
  if (operations == 0) return {};
  const uint64_t now_us = map_.clock.monotonic_us();
  if (const uint64_t wait_us = rate_.admit(now_us, operations); wait_us != 0)
    return Error{Code::exhausted,
                 fmt::format("over the quota of {} operations per second: retry in {} ms",
                             rate_.get(), wait_us / 1'000 + 1),
                 "rate_exceeded", wait_us / 1'000 + 1};
  (access == Access::read ? reads_ : writes_).add(now_us, operations);
  used_.store(true, std::memory_order_relaxed);
  return {};
}

Status Tenant::read(const Caller& caller, Model model, const Scope& scope,
                    FunctionRef<Status(CountedView&)> fn, uint32_t operations) {
  ASSERT(scope.keyspace() == id_);
  TRY(admit(caller, Access::read, operations));
  return map_.transact(scope, [&](View& view) {
    CountedView counted(view, id_, model);
    return fn(counted);
  });
}

Status Tenant::write(const Caller& caller, Model model, const Scope& scope,
                     FunctionRef<Status(CountedView&)> fn, uint32_t operations) {
  // An operation that is run again because it would wait counts once: when it has its latches.
  bool is_counted = !NoWait::is_on() || !map_.latched();
  TRY(admit(caller, Access::write, is_counted ? operations : 0));
  if (!map_.latched()) {
    // No latch keeps the state: what the transaction read of it is validated by its commit.
    Scope with_state = scope;
    with_state.shared(encode(KeyspaceMetaKey{id_}));
    const auto check = [&](View& view) { return check_stored_state(view, caller); };
    return transact(model, with_state, check, fn, true);
  }
  // Again, under the latch: a state change holds it alone.
  const auto check = [&](View&) -> Status {
    if (!std::exchange(is_counted, true)) TRY(admit(caller, Access::write, operations));
    if (state_.load() == KeyspaceState::enabled) return {};
    const std::lock_guard lock(mutex_);
    return check_access(caller, Access::write, state_.load(), keyspace_.name);
  };
  return transact(model, scope, check, fn, true);
}

Status Tenant::collect(Model model, const Scope& scope, FunctionRef<Status(CountedView&)> fn) {
  return transact(
      model, scope, [](View&) { return Status(); }, fn, false);
}

Status Tenant::check_stored_state(View& view, const Caller& caller) {
  Value value;
  TRY(view.get(encode(KeyspaceMetaKey{id_}), value));
  TRY_ASSIGN(const Keyspace keyspace, decode_stored(value, id_));
  return check_access(caller, Access::write, keyspace.state, keyspace.name);
}

// Before the commit, for whoever sees what it left must know.
void Tenant::note_at_once(uint64_t due_ms) {
  uint64_t first_ms = first_at_once_ms_.load(std::memory_order_relaxed);
  while (due_ms < first_ms && !first_at_once_ms_.compare_exchange_weak(first_ms, due_ms)) continue;
}

Status Tenant::transact(Model model, const Scope& scope, FunctionRef<Status(View&)> check,
                        FunctionRef<Status(CountedView&)> fn, bool keep_quota) {
  ASSERT(scope.keyspace() == id_);  // else the latch that its state is checked under is another's
  TRY(load_figures());
  Figures reserved;
  Figures freed;
  uint64_t epoch = 0;
  bool committed_ahead = false;
  const auto run = [&](View& view) -> Status {
    give_back(reserved, epoch);  // of a run that conflicted
    reserved = {};
    TRY(check(view));
    CountedView counted(view, id_, model, this);
    const Status done = fn(counted);
    committed_ahead = committed_ahead || counted.has_committed_ahead();
    TRY(done);
    note_at_once(counted.first_at_once_ms());
    if (keep_quota && !counted.makes_room()) TRY(map_.engine.room());
    const Figures difference = counted.difference();
    // What is added counts before the commit, what is freed after it.
    const Figures added{.bytes = std::max<int64_t>(difference.bytes, 0),
                        .keys = std::max<int64_t>(difference.keys, 0)};
    const Kept kept = !keep_quota               ? Kept::nothing
                      : counted.frees_by_note() ? Kept::keys
                                                : Kept::all;
    TRY(reserve(added, kept, epoch));
    reserved = added;
    freed = {.bytes = added.bytes - difference.bytes, .keys = added.keys - difference.keys};
    if (difference.bytes != 0)
      view.add(encode(CounterKey{id_, model, CounterName::bytes, 0}), difference.bytes);
    for (const auto& [slot, keys] : counted.slot_keys())
      if (keys != 0) view.add(encode(CounterKey{id_, model, CounterName::keys, slot}), keys);
    return {};
  };
  Status status = map_.transact(scope, run);
  if (!status && (status.error().code == Code::maybe || committed_ahead))
    doubt_figures();  // of the parts, too
  else
    give_back(status ? freed : reserved, epoch);
  if (status && !keep_quota) collected_bytes_ += static_cast<uint64_t>(freed.bytes);
  return status;
}

Status Tenant::commit_ahead(Model model, View& view, std::vector<ByteView> prefixes,
                            int64_t bytes) {
  TRY(map_.engine.room());
  const Figures added{.bytes = std::max<int64_t>(bytes, 0)};
  uint64_t epoch = 0;
  TRY(reserve(added, Kept::all, epoch));
  const Bytes counter = encode(CounterKey{id_, model, CounterName::bytes, 0});
  view.add(counter, bytes);
  prefixes.push_back(counter);
  const Status status = view.commit_ahead(prefixes);
  if (!status && status.error().code == Code::maybe) {
    doubt_figures();
    return Error{Code::unavailable, status.error().message};  // nothing can be seen of it
  }
  give_back({.bytes = added.bytes - (status ? bytes : 0)}, epoch);
  return status;
}

// --- figures ---

Status Tenant::load_figures() {
  {
    const std::lock_guard lock(figures_mutex_);
    const bool old =
        !map_.latched() && map_.clock.monotonic_us() - figures_loaded_us_ > figures_age_us;
    if (!figures_doubtful_ && !old) return {};
  }
  // With the keyspace alone every outcome is decided: a commit is in the counters or it is not.
  const auto load = [&](View&) -> Status {
    TRY_ASSIGN(const Figures figures, stored_figures(map_.engine, id_));
    const std::lock_guard lock(figures_mutex_);
    figures_ = figures;
    figures_epoch_++;
    figures_loaded_us_ = map_.clock.monotonic_us();
    figures_doubtful_ = false;
    return {};
  };
  return map_.transactor.transact(Scope::all_of(id_), load, Durability::off);
}

void Tenant::doubt_figures() {
  const std::lock_guard lock(figures_mutex_);
  figures_doubtful_ = true;
}

Result<Figures> Tenant::figures() {
  TRY(load_figures());
  const std::lock_guard lock(figures_mutex_);
  return figures_;
}

namespace {

// Of what is below zero by a miscount, or taken away, nothing is told.
std::string human_size(int64_t bytes) {
  return human_bytes(static_cast<uint64_t>(std::max<int64_t>(bytes, 0)));
}

std::string over_quota(std::string_view quota, std::string_view used, std::string_view needed) {
  return fmt::format(
      "over the quota of {}: {} are used and this needs {} more; delete something or ask for a "
      "larger quota",
      quota, used, needed);
}

}  // namespace

Status Tenant::reserve(const Figures& added, Kept kept, uint64_t& epoch) {
  Quota quota;
  if (kept != Kept::nothing && added != Figures()) {
    const std::lock_guard lock(mutex_);
    quota = keyspace_.quota;
    if (kept == Kept::keys) quota.bytes = 0;
  }
  const auto over = [](int64_t now, int64_t more, uint64_t limit) {
    return limit != 0 && more > 0 && (now + more < 0 || static_cast<uint64_t>(now + more) > limit);
  };
  const std::lock_guard lock(figures_mutex_);
  const bool bytes = over(figures_.bytes, added.bytes, quota.bytes);
  if (bytes || over(figures_.keys, added.keys, quota.keys))
    return Error{Code::exhausted,
                 bytes ? over_quota(human_bytes(quota.bytes), human_size(figures_.bytes),
                                    human_size(added.bytes))
                       : over_quota(fmt::format("{} keys", quota.keys),
                                    std::to_string(figures_.keys), std::to_string(added.keys)),
                 "quota_exceeded"};
  figures_.bytes += added.bytes;
  figures_.keys += added.keys;
  epoch = figures_epoch_;
  return {};
}

void Tenant::give_back(const Figures& freed, uint64_t epoch) {
  if (freed == Figures()) return;
  const std::lock_guard lock(figures_mutex_);
  if (epoch != figures_epoch_) return;
  figures_.bytes -= freed.bytes;
  figures_.keys -= freed.keys;
}

Tenant::Load Tenant::load() const {
  const uint64_t now_us = map_.clock.monotonic_us();
  return {.reads_per_second = reads_.per_second(now_us),
          .writes_per_second = writes_.per_second(now_us),
          .reads = reads_.total(),
          .writes = writes_.total()};
}

}  // namespace trellis
