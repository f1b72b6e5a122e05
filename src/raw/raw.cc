#include "raw/raw.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "codec/keyspace_keys.h"
#include "codec/tenant_keys.h"

namespace trellis {
namespace {

// A batch of more keys than this holds the keyspace instead of each of them: so many latches would
// be a good part of all that there are, and other tenants wait for those. (The thread sanitizer
// follows no more than 64 locks of a thread.)
constexpr size_t keys_locked_max = 48;
// What a batch replaces is read in portions: a value may be large, and all of one are pinned.
constexpr size_t portion_operations = 32;
// How much further than its limit a scan looks for entries that have not expired. In bytes it is
// also more than what stored entries of a page have in front of keys and values.
constexpr size_t scan_entries_extra = 1'000;
constexpr size_t scan_bytes_extra = 1024 * 1024;

Bytes stored_key(KeyspaceId keyspace, ByteView key) { return encode(RawKey{keyspace, key}); }

Status check_key(ByteView key) {
  if (key.empty())
    return Error{Code::invalid, "a key has at least one byte; this one is empty", "empty_key"};
  if (key.size() > raw_key_bytes_max)
    return Error{Code::too_large,
                 fmt::format("a key of {} bytes is over the limit of {}: use a shorter one",
                             key.size(), raw_key_bytes_max),
                 "key_too_large"};
  return {};
}

Status check_value(ByteView value) {
  if (value.size() <= raw_value_bytes_max) return {};
  return Error{
      Code::too_large,
      fmt::format("a value of {} bytes is over the limit of {}: store it in parts, or as a file",
                  value.size(), raw_value_bytes_max),
      "value_too_large"};
}

Status check_operation(const RawOperation& operation) {
  TRY(check_key(operation.key));
  return operation.kind == RawOperation::Kind::put ? check_value(operation.value) : Status();
}

// 0 for no ttl.
Result<uint64_t> expiry(uint64_t now_ms, uint64_t ttl_ms) {
  if (ttl_ms == 0) return 0;
  if (now_ms < raw_expires_at_ms_max && ttl_ms <= raw_expires_at_ms_max - now_ms)
    return now_ms + ttl_ms;
  return Error{Code::invalid,
               fmt::format("a ttl of {} ms ends after the last time that there is ({} ms since "
                           "1970): use a shorter one, or none",
                           ttl_ms, raw_expires_at_ms_max),
               "ttl_too_large"};
}

// What is stored under a key, which may have expired.
using Stored = std::optional<StoredRawValue>;

Result<Stored> decode_stored(ByteView key, const Value& found) {
  if (!found.found()) return Stored();
  auto stored = decode_raw_value(found.bytes());
  if (!stored) return with_context("the value of raw key " + quote(key), stored.error());
  return Stored(*stored);
}

bool visible(const Stored& stored, uint64_t now_ms) { return stored && !stored->expired(now_ms); }

Error condition_failed(std::string_view what) {
  return {Code::refused, fmt::format("a condition does not hold: {}", what), "condition_failed"};
}

// `stored` is what is visible.
Status check_condition(const RawCondition& condition, const Stored& stored) {
  switch (condition.kind) {
    case RawCondition::Kind::none: break;
    case RawCondition::Kind::must_be_absent:
      if (stored) return condition_failed("the key must not be there, and is");
      break;
    case RawCondition::Kind::must_exist:
      if (!stored) return condition_failed("the key must be there, and is not");
      break;
    case RawCondition::Kind::must_equal:
      if (!stored) return condition_failed("the key must have a certain value, and is not there");
      if (raw_tag(stored->value) != condition.tag)
        return condition_failed("the key has another value than it must have");
      break;
  }
  return {};
}

// One key in a transaction: what is stored there, and the ways to change it, which keep the number
// of keys and the one note of an entry that expires.
class Slot {
 public:
  // `old` is what the view has under the key; it must outlive the slot.
  static Result<Slot> open(CountedView& view, ByteView user_key, ByteView key, const Value& old) {
    TRY_ASSIGN(Stored stored, decode_stored(user_key, old));
    return Slot(view, user_key, key, old, stored);
  }

  const Stored& stored() const { return stored_; }

  void put(ByteView value, uint64_t expires_at_ms) {
    drop_note();
    if (!stored_) view_.count_keys(1);
    const Bytes bytes = encode_raw_value({expires_at_ms, value});
    view_.put(key_, bytes, old_);
    if (expires_at_ms != 0)
      view_.leave_garbage(expires_at_ms, user_key_, key_.size() + bytes.size());
  }

  void remove() {
    if (!stored_) return;
    drop_note();
    view_.count_keys(-1);
    view_.remove(key_, old_);
  }

 private:
  Slot(CountedView& view, ByteView user_key, ByteView key, const Value& old, const Stored& stored)
      : view_(view), user_key_(user_key), key_(key), old_(old), stored_(stored) {}

  void drop_note() {
    if (stored_ && stored_->expires_at_ms != 0)
      view_.forget_garbage(stored_->expires_at_ms, user_key_);
  }

  CountedView& view_;
  const ByteView user_key_;
  const ByteView key_;
  const Value& old_;
  const Stored stored_;
};

// Whether the key was there.
Result<bool> apply(const RawOperation& operation, Slot& slot, uint64_t now_ms) {
  const bool was_there = visible(slot.stored(), now_ms);
  TRY(check_condition(operation.condition, was_there ? slot.stored() : Stored()));
  if (operation.kind == RawOperation::Kind::put) {
    TRY_ASSIGN(const uint64_t expires_at_ms, expiry(now_ms, operation.ttl_ms));
    slot.put(operation.value, expires_at_ms);
  } else {
    slot.remove();
  }
  return was_there;
}

Result<bool> write_one(Tenant& tenant, const Caller& caller, const RawOperation& operation) {
  TRY(check_operation(operation));
  const Bytes key = stored_key(tenant.id(), operation.key);
  bool was_there = false;
  const auto write = [&](CountedView& view) -> Status {
    Value old;
    TRY(view.get(key, old));
    TRY_ASSIGN(Slot slot, Slot::open(view, operation.key, key, old));
    TRY_ASSIGN(was_there, apply(operation, slot, tenant.map().clock.unix_ms()));
    return {};
  };
  TRY(tenant.write(caller, Model::raw, Scope::in(tenant.id()).exclusive(key), write));
  return was_there;
}

Error in_operation(size_t index, const Error& error) {
  return with_context(fmt::format("operation {}", index), error);
}

Status check_batch(std::span<const RawOperation> operations) {
  if (operations.size() > raw_batch_operations_max)
    return Error{Code::too_large,
                 fmt::format("a batch of {} operations is over the limit of {}: send several",
                             operations.size(), raw_batch_operations_max),
                 "batch_too_large"};
  size_t bytes = 0;
  for (size_t i = 0; i < operations.size(); i++) {
    if (const Status checked = check_operation(operations[i]); !checked)
      return in_operation(i, checked.error());
    bytes += 3 * operations[i].key.size();
    if (operations[i].kind == RawOperation::Kind::put) bytes += operations[i].value.size();
  }
  if (bytes <= raw_batch_bytes_max) return {};
  return Error{Code::too_large,
               fmt::format("a batch of {} bytes (keys counted three times) is over the limit of "
                           "{}: send several",
                           bytes, raw_batch_bytes_max),
               "batch_too_large"};
}

Scope batch_scope(KeyspaceId keyspace, std::span<const Bytes> keys) {
  if (keys.size() > keys_locked_max) return Scope::all_of(keyspace);
  Scope scope = Scope::in(keyspace);
  for (const Bytes& key : keys) scope.exclusive(key);
  return scope;
}

// A few operations of a batch, the first of which is number `first`.
Status apply_portion(CountedView& view, std::span<const RawOperation> operations,
                     std::span<const Bytes> keys, size_t first, uint64_t now_ms) {
  const std::vector<ByteView> views(keys.begin(), keys.end());
  std::vector<Value> values(keys.size());
  TRY(view.multi_get(views, values));
  for (size_t i = 0; i < keys.size(); i++) {
    // Named before in this portion: then it is no longer what was read.
    const auto here = views.begin() + static_cast<ptrdiff_t>(i);
    if (std::find(views.begin(), here, views[i]) != here) TRY(view.get(views[i], values[i]));
    TRY_ASSIGN(Slot slot, Slot::open(view, operations[i].key, keys[i], values[i]));
    if (const auto applied = apply(operations[i], slot, now_ms); !applied)
      return in_operation(first + i, applied.error());
  }
  return {};
}

// The part of [begin, end) that starts with the prefix, as it is stored.
struct StoredInterval {
  Bytes begin;
  Bytes end;
};

StoredInterval stored_interval(KeyspaceId keyspace, const RawScan& scan) {
  auto [begin, end] = keyspace_interval(KeyMode::raw, keyspace);
  const size_t head = begin.size();
  begin.append(std::max(scan.begin, scan.prefix));
  const Bytes end_of_prefix = prefix_end(scan.prefix);
  ByteView user_end = scan.end;
  if (user_end.empty() || (!end_of_prefix.empty() && end_of_prefix < user_end))
    user_end = end_of_prefix;
  if (!user_end.empty()) end = begin.substr(0, head).append(user_end);
  return {std::move(begin), std::move(end)};
}

Status check_scan(const RawScan& scan) {
  if (scan.limit == 0 || scan.limit > raw_scan_entries_max)
    return Error{
        Code::invalid,
        fmt::format("a page of {} entries: ask for 1 to {}", scan.limit, raw_scan_entries_max),
        "illegal_limit"};
  if (scan.bytes_max == 0 || scan.bytes_max > raw_scan_bytes_max)
    return Error{
        Code::invalid,
        fmt::format("a page of {} bytes: ask for 1 to {}", scan.bytes_max, raw_scan_bytes_max),
        "illegal_limit"};
  return {};
}

// Passes on what is visible of the stored entries, up to the limits of the page.
class PageFilter {
 public:
  PageFilter(const RawScan& scan, size_t head_bytes, uint64_t now_ms, RawVisitor visit)
      : scan_(scan), head_bytes_(head_bytes), now_ms_(now_ms), visit_(visit) {}

  Visit take(ByteView key, ByteView value) {
    key.remove_prefix(head_bytes_);
    const auto stored = decode_raw_value(value);
    if (!stored) {
      failed_ = with_context("the value of raw key " + quote(key), stored.error());
      return Visit::stop;
    }
    if (stored->expired(now_ms_)) return Visit::go_on;
    const ByteView shown = scan_.keys_only ? ByteView() : stored->value;
    const size_t bytes = key.size() + shown.size();
    if (page_.entries > 0 && bytes_ + bytes > scan_.bytes_max) {
      page_.resume = scan_.reverse ? successor(key) : Bytes(key);  // this one is the next
      return Visit::stop;
    }
    page_.entries++;
    bytes_ += bytes;
    const Visit next = visit_(key, shown, stored->expires_at_ms);
    return page_.entries == scan_.limit ? Visit::stop : next;
  }

  // REQUIRES: `stored` is the page that was visited.
  Result<RawPage> finish(ScanPage stored) && {
    TRY(failed_);
    if (!page_.resume && stored.resume && stored.resume->size() > head_bytes_)
      page_.resume = stored.resume->substr(head_bytes_);
    return std::move(page_);
  }

 private:
  const RawScan& scan_;
  const size_t head_bytes_;
  const uint64_t now_ms_;
  const RawVisitor visit_;
  RawPage page_;
  size_t bytes_ = 0;
  Status failed_;
};

}  // namespace

std::string raw_tag(ByteView value) {
  const XXH128_hash_t hash = XXH3_128bits(value.data(), value.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

// --- reads ---

Result<std::optional<RawEntry>> RawEntry::make(ByteView key, Value found, uint64_t now_ms) {
  TRY_ASSIGN(const Stored stored, decode_stored(key, found));
  if (!visible(stored, now_ms)) return std::optional<RawEntry>();
  const size_t head_bytes = found.bytes().size() - stored->value.size();
  return std::optional(RawEntry(std::move(found), head_bytes, stored->expires_at_ms));
}

Result<std::optional<RawEntry>> Raw::get(Tenant& tenant, const Caller& caller, ByteView key) {
  TRY(check_key(key));
  TRY(tenant.admit(caller, Access::read));
  Value found;
  TRY(tenant.map().engine.get(stored_key(tenant.id(), key), found));
  return RawEntry::make(key, std::move(found), tenant.map().clock.unix_ms());
}

Result<std::vector<std::optional<RawEntry>>> Raw::multi_get(Tenant& tenant, const Caller& caller,
                                                            std::span<const ByteView> keys) {
  if (keys.size() > raw_multi_get_keys_max)
    return Error{Code::too_large,
                 fmt::format("{} keys at once are over the limit of {}: ask for fewer", keys.size(),
                             raw_multi_get_keys_max),
                 "too_many_keys"};
  std::vector<Bytes> stored_keys;
  for (const ByteView key : keys) {
    TRY(check_key(key));
    stored_keys.push_back(stored_key(tenant.id(), key));
  }
  TRY(tenant.admit(caller, Access::read, static_cast<uint32_t>(keys.size())));
  const std::vector<ByteView> views(stored_keys.begin(), stored_keys.end());
  std::vector<Value> found(keys.size());
  TRY(tenant.map().engine.multi_get(views, found));
  const uint64_t now_ms = tenant.map().clock.unix_ms();
  std::vector<std::optional<RawEntry>> entries;
  entries.reserve(keys.size());
  for (size_t i = 0; i < keys.size(); i++) {
    TRY_ASSIGN(std::optional<RawEntry> entry, RawEntry::make(keys[i], std::move(found[i]), now_ms));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<RawPage> Raw::scan(Tenant& tenant, const Caller& caller, const RawScan& scan,
                          RawVisitor visit) {
  TRY(check_scan(scan));
  TRY(tenant.admit(caller, Access::read));
  const StoredInterval interval = stored_interval(tenant.id(), scan);
  const size_t bytes_max = scan.keys_only
                               ? scan_page_bytes_max
                               : std::min(scan_page_bytes_max, scan.bytes_max + scan_bytes_extra);
  const ScanRequest request{.begin = interval.begin,
                            .end = interval.end,
                            .reverse = scan.reverse,
                            .entries_max = scan.limit + scan_entries_extra,
                            .bytes_max = bytes_max};
  PageFilter filter(scan, stored_key(tenant.id(), {}).size(), tenant.map().clock.unix_ms(), visit);
  TRY_ASSIGN(ScanPage page, tenant.map().engine.scan(request, [&](ByteView key, ByteView value) {
    return filter.take(key, value);
  }));
  return std::move(filter).finish(std::move(page));
}

// --- writes ---

Status Raw::put(Tenant& tenant, const Caller& caller, ByteView key, ByteView value,
                const RawPut& options) {
  TRY(write_one(tenant, caller,
                {.kind = RawOperation::Kind::put,
                 .key = key,
                 .value = value,
                 .ttl_ms = options.ttl_ms,
                 .condition = options.condition}));
  return {};
}

Result<bool> Raw::remove(Tenant& tenant, const Caller& caller, ByteView key,
                         const RawCondition& condition) {
  return write_one(tenant, caller,
                   {.kind = RawOperation::Kind::remove, .key = key, .condition = condition});
}

Result<RawSwap> Raw::compare_and_set(Tenant& tenant, const Caller& caller, ByteView key,
                                     std::optional<ByteView> expected,
                                     std::optional<ByteView> desired, uint64_t ttl_ms) {
  TRY(check_key(key));
  if (desired) TRY(check_value(*desired));
  const Bytes stored = stored_key(tenant.id(), key);
  RawSwap swap;
  const auto write = [&](CountedView& view) -> Status {
    swap = {};
    Value old;
    TRY(view.get(stored, old));
    const uint64_t now_ms = tenant.map().clock.unix_ms();
    TRY_ASSIGN(Slot slot, Slot::open(view, key, stored, old));
    const bool there = visible(slot.stored(), now_ms);
    swap.done = there == expected.has_value() && (!there || slot.stored()->value == *expected);
    if (!swap.done) {
      TRY_ASSIGN(swap.current, RawEntry::make(key, std::move(old), now_ms));
    } else if (desired) {
      TRY_ASSIGN(const uint64_t expires_at_ms, expiry(now_ms, ttl_ms));
      slot.put(*desired, expires_at_ms);
    } else {
      slot.remove();
    }
    return {};
  };
  TRY(tenant.write(caller, Model::raw, Scope::in(tenant.id()).exclusive(stored), write));
  return swap;
}

Status Raw::batch(Tenant& tenant, const Caller& caller, std::span<const RawOperation> operations) {
  TRY(check_batch(operations));
  std::vector<Bytes> keys;
  keys.reserve(operations.size());
  for (const RawOperation& operation : operations)
    keys.push_back(stored_key(tenant.id(), operation.key));
  const auto write = [&](CountedView& view) -> Status {
    const uint64_t now_ms = tenant.map().clock.unix_ms();
    for (size_t first = 0; first < keys.size(); first += portion_operations) {
      const size_t count = std::min(portion_operations, keys.size() - first);
      TRY(apply_portion(view, operations.subspan(first, count),
                        std::span(keys).subspan(first, count), first, now_ms));
    }
    return {};
  };
  return tenant.write(caller, Model::raw, batch_scope(tenant.id(), keys), write,
                      static_cast<uint32_t>(operations.size()));
}

namespace {

// True if the note is gone. `found` is what the view has under the key and the note.
Result<bool> collect_one(CountedView& view, const Garbage& note, ByteView key,
                         std::span<const Value> found, uint64_t now_ms) {
  if (!found[1].found()) return true;  // a writer was faster
  TRY_ASSIGN(Slot slot, Slot::open(view, note.target, key, found[0]));
  if (!slot.stored() || slot.stored()->expires_at_ms != note.due_ms)
    view.forget_garbage(note.due_ms, note.target);
  else if (slot.stored()->expired(now_ms))
    slot.remove();
  else
    return false;
  return true;
}

}  // namespace

Result<size_t> Raw::collect(Tenant& tenant, std::span<const Garbage> notes) {
  std::vector<Bytes> keys;  // of an entry and its note by turns
  keys.reserve(2 * notes.size());
  Scope scope = Scope::in(tenant.id());
  for (const Garbage& note : notes) {
    keys.push_back(stored_key(tenant.id(), note.target));
    scope.exclusive(keys.back());
    keys.push_back(encode(GarbageKey{tenant.id(), note.due_ms, Model::raw, note.target}));
    scope.exclusive(keys.back());
  }
  const std::vector<ByteView> views(keys.begin(), keys.end());
  size_t gone = 0;
  const auto collect_all = [&](CountedView& view) -> Status {
    gone = 0;
    // All at once: of several notes that name one entry, at most one is that entry's, and the
    // others do not touch it.
    std::vector<Value> values(views.size());
    TRY(view.multi_get(views, values));
    const uint64_t now_ms = tenant.map().clock.unix_ms();
    for (size_t i = 0; i < notes.size(); i++) {
      TRY_ASSIGN(const bool one_gone, collect_one(view, notes[i], keys[2 * i],
                                                  std::span(values).subspan(2 * i, 2), now_ms));
      gone += one_gone ? 1 : 0;
    }
    return {};
  };
  TRY(tenant.collect(Model::raw, scope, collect_all));
  return gone;
}

}  // namespace trellis
