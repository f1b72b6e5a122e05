#include "tenant/gc.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include "base/limits.h"
#include "codec/system_keys.h"
#include "codec/tenant_keys.h"
#include "tenant/keyspace_lookup.h"
#include "tenant/tenant.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr std::string_view reserved_service = "gc_worker";  // PD's own name for t
constexpr uint64_t future_ms_max = 60'000;
constexpr uint64_t explained_notes_max = 100'000;

// --- keys ---

struct GcKeys {
  explicit GcKeys(KeyspaceId id)
      : keyspace(id),
        gc(encode(KeyspaceGcSafePointKey{id})),
        txn(encode(KeyspaceTxnSafePointKey{id})),
        barriers(encode(KeyspaceServiceSafePointKey{id, {}})),
        barriers_end(prefix_end(barriers)) {}

  Bytes barrier(std::string_view service) const {
    return encode(KeyspaceServiceSafePointKey{keyspace, service});
  }

  KeyspaceId keyspace;
  Bytes gc;
  Bytes txn;
  Bytes barriers;
  Bytes barriers_end;
};

Bytes first_note_key(KeyspaceId keyspace, uint64_t due_ms) {
  return encode(GarbageKey{keyspace, due_ms, Model::catalog, {}});
}

// --- the stored forms ---

Error corrupt(const char* what, KeyspaceId keyspace) {
  return {Code::corrupt,
          fmt::format("the stored {} of keyspace {} does not make sense", what, keyspace.value)};
}

std::optional<uint64_t> number_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr) return std::nullopt;
  if (const uint64_t* number = value->if_uint64()) return *number;
  const int64_t* number = value->if_int64();
  if (number == nullptr || *number < 0) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

std::optional<json::object> parse_object(ByteView text) {
  json::error_code failure;
  json::value value = json::parse(text, failure);
  if (failure || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

// Absent, as PD leaves it out, or this one.
bool names_keyspace(const json::object& object, KeyspaceId keyspace) {
  return !object.contains("keyspace_id") || number_of(object, "keyspace_id") == keyspace.value;
}

Bytes encode_gc_safe_point(KeyspaceId keyspace, uint64_t safe_point) {
  return json::serialize(json::object{{"keyspace_id", keyspace.value}, {"safe_point", safe_point}});
}

Result<uint64_t> decode_gc_safe_point(KeyspaceId keyspace, const Value& value) {
  if (!value.found()) return 0;
  const auto object = parse_object(value.bytes());
  const auto safe_point = object ? number_of(*object, "safe_point") : std::nullopt;
  if (!safe_point || !names_keyspace(*object, keyspace)) return corrupt("GC safe point", keyspace);
  return *safe_point;
}

Result<uint64_t> decode_txn_safe_point(KeyspaceId keyspace, const Value& value) {
  if (!value.found()) return 0;
  const ByteView text = value.bytes();
  uint64_t safe_point = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), safe_point);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    return corrupt("txn safe point", keyspace);
  return safe_point;
}

Bytes encode_barrier(KeyspaceId keyspace, const Barrier& barrier) {
  return json::serialize(json::object{{"service_id", barrier.service},
                                      {"expired_at", barrier.expires_at_s},
                                      {"safe_point", barrier.safe_point},
                                      {"keyspace_id", keyspace.value},
                                      {"set_at", barrier.set_at_s}});
}

Result<Barrier> decode_barrier(KeyspaceId keyspace, ByteView key, ByteView value) {
  const auto decoded = decode<KeyspaceServiceSafePointKey>(key);
  const auto object = parse_object(value);
  if (!decoded || !object) return corrupt("service safe point", keyspace);
  const json::value* service = object->if_contains("service_id");
  const auto safe_point = number_of(*object, "safe_point");
  const auto expires_at_s = number_of(*object, "expired_at");
  const auto set_at_s =
      object->contains("set_at") ? number_of(*object, "set_at") : std::optional<uint64_t>(0);
  if (service == nullptr || !service->is_string() || service->get_string() != decoded->service ||
      !safe_point || !expires_at_s || !set_at_s || !names_keyspace(*object, keyspace))
    return corrupt("service safe point", keyspace);
  return Barrier{.service = std::string(decoded->service),
                 .safe_point = *safe_point,
                 .expires_at_s = *expires_at_s,
                 .set_at_s = *set_at_s};
}

// --- reading them; Map is a View or an Engine ---

template <class Map>
Result<uint64_t> read_gc_safe_point(Map& map, const GcKeys& keys) {
  Value value;
  TRY(map.get(keys.gc, value));
  return decode_gc_safe_point(keys.keyspace, value);
}

template <class Map>
Result<uint64_t> read_txn_safe_point(Map& map, const GcKeys& keys) {
  Value value;
  TRY(map.get(keys.txn, value));
  return decode_txn_safe_point(keys.keyspace, value);
}

bool is_live(const Barrier& barrier, uint64_t now_ms) {
  return now_ms / 1000 < barrier.expires_at_s;
}

struct Barriers {
  std::vector<Barrier> live;  // lowest first
  std::vector<Barrier> expired;
};

template <class Map>
Result<Barriers> read_barriers(Map& map, const GcKeys& keys, uint64_t now_ms) {
  Barriers barriers;
  Status bad;
  const auto visit = [&](ByteView key, ByteView value) {
    auto barrier = decode_barrier(keys.keyspace, key, value);
    if (!barrier) {
      bad = std::move(barrier).error();
      return Visit::stop;
    }
    auto& list = is_live(*barrier, now_ms) ? barriers.live : barriers.expired;
    list.push_back(std::move(*barrier));
    return Visit::go_on;
  };
  std::optional<Bytes> begin = keys.barriers;
  while (begin && bad.has_value()) {
    TRY_ASSIGN(ScanPage page, map.scan({.begin = *begin, .end = keys.barriers_end}, visit));
    begin = std::move(page.resume);
  }
  TRY(bad);
  std::ranges::sort(barriers.live, {}, [](const Barrier& barrier) {
    return std::pair(barrier.safe_point, std::string_view(barrier.service));
  });
  return barriers;
}

const Barrier* find_barrier(const std::vector<Barrier>& barriers, std::string_view service) {
  const auto found = std::ranges::find(barriers, service, &Barrier::service);
  return found == barriers.end() ? nullptr : &*found;
}

Result<bool> has_notes(Engine& engine, KeyspaceId keyspace) {
  const Bytes begin = first_note_key(keyspace, 0);
  const Bytes end = prefix_end(ByteView(begin).substr(0, 5));  // 'x', keyspace, 'g'
  TRY_ASSIGN(const ScanPage page, engine.scan({.begin = begin, .end = end, .entries_max = 1},
                                              [](ByteView, ByteView) { return Visit::go_on; }));
  return page.entries > 0;
}

// --- words for people ---

std::string time_text(uint64_t unix_s) {
  constexpr uint64_t year_10000_s = 253'402'300'800;  // where the form ends
  if (unix_s >= year_10000_s) return "the year 10000 or later";
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(unix_s)));
}

std::string point_text(uint64_t safe_point) {
  return time_text(ms_of_timestamp(safe_point) / 1000);
}

std::string until_text(const Barrier& barrier) {
  if (barrier.expires_at_s >= never_expires) return "until it is deleted";
  return "until " + time_text(barrier.expires_at_s);
}

std::string age_text(uint64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} d", seconds / (24 * 3600));
}

std::string bytes_text(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double amount = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < std::size(units); unit++) amount /= 1024;
  return fmt::format("{:.1f} {}", amount, units[unit]);
}

// --- what is refused ---

Status check_service(std::string_view service) {
  const auto allowed = [](char c) { return c >= ' ' && c <= '~' && c != '/'; };
  if (service.empty() || service.size() > label_bytes_max || !std::ranges::all_of(service, allowed))
    return Error{Code::invalid,
                 fmt::format("illegal service name {}: use 1 to {} printable ASCII characters "
                             "without /",
                             quote(service.substr(0, 2 * label_bytes_max)), label_bytes_max),
                 "illegal_service"};
  if (service == reserved_service)
    return Error{Code::invalid,
                 fmt::format("service name {} is reserved: advance the txn safe point instead",
                             reserved_service),
                 "reserved_service"};
  return {};
}

Status check_ttl(uint64_t ttl_s) {
  if (ttl_s > 0 && ttl_s <= never_expires) return {};
  return Error{Code::invalid,
               fmt::format("illegal ttl: use 1 to {} seconds, of which the last means for ever",
                           never_expires),
               "illegal_ttl"};
}

Status check_not_in_future(uint64_t target, uint64_t now_ms) {
  if (target <= timestamp_at_ms(now_ms + future_ms_max)) return {};
  return Error{Code::invalid,
               fmt::format("safe point {} ({}) lies in the future, and there is no way back: it is "
                           "{} now; are these unix milliseconds * 2^18?",
                           target, point_text(target), time_text(now_ms / 1000)),
               "safe_point_in_future"};
}

Error goes_back(const char* what, uint64_t target, uint64_t before) {
  return {Code::refused,
          fmt::format("the {} safe point is at {} and never goes back to {}", what, before, target),
          "safe_point_back"};
}

// --- the steps of transactions ---

// As far as the barriers let it, with expired ones removed. Nothing is said of a target below t.
Advance move_txn_safe_point(View& view, const GcKeys& keys, uint64_t before, uint64_t target,
                            const Barriers& barriers) {
  Advance advance{.before = before, .after = std::max(before, target), .blocker = {}};
  if (!barriers.live.empty() && barriers.live[0].safe_point < target) {
    const Barrier& lowest = barriers.live[0];
    advance.after = std::max(before, lowest.safe_point);
    advance.blocker =
        fmt::format("barrier {} at {} {}", lowest.service, lowest.safe_point, until_text(lowest));
  }
  if (advance.after != before) view.put(keys.txn, std::to_string(advance.after));
  for (const Barrier& barrier : barriers.expired) view.remove(keys.barrier(barrier.service));
  return advance;
}

// A stored barrier costs every reader of the keyspace's holds, an expired one too.
Status make_room_for_barrier(View& view, const GcKeys& keys, const Barriers& barriers) {
  if (barriers.live.size() + barriers.expired.size() < keyspace_barriers_max) return {};
  if (barriers.live.size() >= keyspace_barriers_max)
    return Error{Code::too_large,
                 fmt::format("keyspace {} has {} barriers, and keyspace_barriers_max is {}: delete "
                             "some",
                             keys.keyspace.value, barriers.live.size(), keyspace_barriers_max),
                 "too_many_barriers"};
  for (const Barrier& barrier : barriers.expired) view.remove(keys.barrier(barrier.service));
  return {};
}

uint64_t expiry_s(uint64_t now_ms, uint64_t ttl_s) {
  const uint64_t now_s = (now_ms + 999) / 1000;  // rounded up: the hold is never shorter than asked
  return ttl_s >= never_expires - now_s ? never_expires : now_s + ttl_s;
}

// What a hold kept has no entry for now: the collector has put it off.
void put_due(View& view, KeyspaceId keyspace, DueJob job, uint64_t now_ms) {
  view.put(encode(KeyspaceDueKey{due_bucket(now_ms), keyspace, job, {}}), due_entry_value);
}

Status append_action(View& view, const ChangeLog& changes, const Keyspace& keyspace,
                     const char* action, std::string detail, const Caller& caller) {
  Change change{.actor = caller.name,
                .action = action,
                .keyspace = keyspace.id,
                .name = keyspace.name,
                .detail = std::move(detail),
                .after = std::nullopt};
  TRY(changes.append(view, change));
  return {};
}

std::string barrier_text(const Barrier& barrier) {
  return fmt::format("{} at {} {}", barrier.service, barrier.safe_point, until_text(barrier));
}

std::string advance_text(const Advance& advance) {
  return fmt::format("{} -> {}", advance.before, advance.after);
}

}  // namespace

// --- safe points ---

struct Gc::Effects {
  bool logged = false;
  bool due = false;
};

// Runs the transaction and tells those who wait for what it did. An answer of maybe tells them too:
// looking once more for nothing costs little.
Status Gc::transact_and_tell(const Scope& scope, const Effects& effects,
                             FunctionRef<Status(View&)> update) {
  Status status = map_.transact_durably(scope, update);
  if (!status && status.error().code != Code::maybe) return status;
  if (effects.logged) changes_.announce();
  if (effects.due) {
    const std::lock_guard lock(wake_mutex_);
    if (wake_) wake_();
  }
  return status;
}

Result<GcState> Gc::load(KeyspaceId keyspace) {
  TRY(look_up_keyspace(map_.engine, keyspace));
  const GcKeys keys(keyspace);
  const uint64_t now_ms = map_.clock.unix_ms();
  const ByteView points[] = {keys.gc, keys.txn};
  Value values[2];
  TRY(map_.engine.multi_get(points, values));
  GcState state;
  TRY_ASSIGN(state.gc_safe_point, decode_gc_safe_point(keyspace, values[0]));
  TRY_ASSIGN(state.txn_safe_point, decode_txn_safe_point(keyspace, values[1]));
  // After the safe points: t can only have grown since, and no barrier was ever set below it.
  TRY_ASSIGN(Barriers barriers, read_barriers(map_.engine, keys, now_ms));
  state.barriers = std::move(barriers.live);
  return state;
}

Result<Advance> Gc::advance_txn_safe_point(KeyspaceId keyspace, uint64_t target,
                                           const Caller& caller) {
  Scope scope = Scope::system();
  TRY(lock_keyspace_meta(scope, keyspace));
  const GcKeys keys(keyspace);
  scope.exclusive(keys.txn).exclusive(keys.barriers);
  ChangeLog::lock(scope);
  Advance advance;
  Effects effects;
  const auto update = [&](View& view) -> Status {
    TRY_ASSIGN(const Keyspace found, look_up_living_keyspace(view, keyspace));
    const uint64_t now_ms = map_.clock.unix_ms();
    TRY(check_not_in_future(target, now_ms));
    TRY_ASSIGN(const uint64_t before, read_txn_safe_point(view, keys));
    if (target < before) return goes_back("txn", target, before);
    TRY_ASSIGN(const Barriers barriers, read_barriers(view, keys, now_ms));
    advance = move_txn_safe_point(view, keys, before, target, barriers);
    effects.logged = advance.after != advance.before;
    if (!effects.logged) return {};
    return append_action(view, changes_, found, "gc.txn_safe_point", advance_text(advance), caller);
  };
  TRY(transact_and_tell(scope, effects, update));
  return advance;
}

Result<Advance> Gc::advance_gc_safe_point(KeyspaceId keyspace, uint64_t target,
                                          const Caller& caller) {
  Scope scope = Scope::system();
  TRY(lock_keyspace_meta(scope, keyspace));
  const GcKeys keys(keyspace);
  scope.exclusive(keys.gc).shared(keys.txn);
  ChangeLog::lock(scope);
  TRY_ASSIGN(const bool notes, has_notes(map_.engine, keyspace));
  Advance advance;
  Effects effects;
  const auto update = [&](View& view) -> Status {
    TRY_ASSIGN(const Keyspace found, look_up_living_keyspace(view, keyspace));
    TRY(check_not_in_future(target, map_.clock.unix_ms()));
    TRY_ASSIGN(const uint64_t before, read_gc_safe_point(view, keys));
    TRY_ASSIGN(const uint64_t txn, read_txn_safe_point(view, keys));
    if (target < before) return goes_back("GC", target, before);
    if (target > txn)
      return Error{Code::refused,
                   fmt::format("GC safe point {} would pass the txn safe point, which is at {}: "
                               "advance that one first",
                               target, txn),
                   "safe_point_ahead_of_txn"};
    if (target != before) view.put(keys.gc, encode_gc_safe_point(keyspace, target));
    advance = {.before = before, .after = target, .blocker = {}};
    effects.logged = advance.after != advance.before;
    if (!effects.logged) return {};
    effects.due = notes;
    if (notes) put_due(view, keyspace, DueJob::garbage, map_.clock.unix_ms());
    return append_action(view, changes_, found, "gc.safe_point", advance_text(advance), caller);
  };
  TRY(transact_and_tell(scope, effects, update));
  return advance;
}

Result<GcState> Gc::advance_both(KeyspaceId keyspace, uint64_t target) {
  Scope scope = Scope::system();
  TRY(lock_keyspace_meta(scope, keyspace));
  const GcKeys keys(keyspace);
  scope.exclusive(keys.gc).exclusive(keys.txn).exclusive(keys.barriers);
  GcState state;
  const auto update = [&](View& view) -> Status {
    TRY(look_up_living_keyspace(view, keyspace));
    const uint64_t now_ms = map_.clock.unix_ms();
    TRY(check_not_in_future(target, now_ms));
    TRY_ASSIGN(const uint64_t gc, read_gc_safe_point(view, keys));
    TRY_ASSIGN(const uint64_t txn, read_txn_safe_point(view, keys));
    TRY_ASSIGN(Barriers barriers, read_barriers(view, keys, now_ms));
    state.txn_safe_point = move_txn_safe_point(view, keys, txn, target, barriers).after;
    state.gc_safe_point = std::max(gc, state.txn_safe_point);
    if (state.gc_safe_point != gc)
      view.put(keys.gc, encode_gc_safe_point(keyspace, state.gc_safe_point));
    state.barriers = std::move(barriers.live);
    return {};
  };
  TRY(map_.transact(scope, update));
  return state;
}

// --- barriers ---

Result<Barrier> Gc::set_barrier(KeyspaceId keyspace, std::string_view service, uint64_t safe_point,
                                uint64_t ttl_s, const Caller& caller) {
  Scope scope = Scope::system();
  TRY(lock_keyspace_meta(scope, keyspace));
  TRY(check_service(service));
  TRY(check_ttl(ttl_s));
  const GcKeys keys(keyspace);
  scope.shared(keys.txn).exclusive(keys.barriers);
  TRY_ASSIGN(const bool notes, has_notes(map_.engine, keyspace));
  Barrier barrier;
  Effects effects;
  // A renewal is not logged, so it need not wait for the one log of all keyspaces; what ends sooner
  // than the log says is.
  bool holds_log = false;
  bool needs_log = false;
  const auto update = [&](View& view) -> Status {
    effects = {};
    needs_log = false;
    TRY_ASSIGN(const Keyspace found, look_up_living_keyspace(view, keyspace));
    TRY_ASSIGN(const uint64_t txn, read_txn_safe_point(view, keys));
    if (safe_point < txn)
      return Error{Code::refused,
                   fmt::format("a barrier at {} comes too late: the txn safe point is at {}; set "
                               "it there or later",
                               safe_point, txn),
                   "barrier_behind"};
    const uint64_t now_ms = map_.clock.unix_ms();
    TRY_ASSIGN(const Barriers barriers, read_barriers(view, keys, now_ms));
    const Barrier* old = find_barrier(barriers.live, service);
    barrier = {.service = std::string(service),
               .safe_point = safe_point,
               .expires_at_s = expiry_s(now_ms, ttl_s),
               .set_at_s = old != nullptr ? old->set_at_s : now_ms / 1000};
    const bool ends_sooner = old != nullptr && barrier.expires_at_s < old->expires_at_s;
    if (old == nullptr || ends_sooner) {
      needs_log = !holds_log;
      if (needs_log) return Error{Code::conflict, "it is to be logged: run again with the log"};
      if (old == nullptr) TRY(make_room_for_barrier(view, keys, barriers));
      TRY(append_action(view, changes_, found, "gc.barrier", barrier_text(barrier), caller));
      effects.logged = true;
    }
    const bool loosens = ends_sooner || (old != nullptr && safe_point > old->safe_point);
    effects.due = loosens && notes;
    if (effects.due) put_due(view, keyspace, DueJob::garbage, now_ms);
    view.put(keys.barrier(service), encode_barrier(keyspace, barrier));
    return {};
  };
  Status status = transact_and_tell(scope, effects, update);
  if (!status && needs_log) {
    ChangeLog::lock(scope);
    holds_log = true;
    status = transact_and_tell(scope, effects, update);
  }
  TRY(status);
  return barrier;
}

Result<Barrier> Gc::delete_barrier(KeyspaceId keyspace, std::string_view service,
                                   const Caller& caller) {
  Scope scope = Scope::system();
  TRY(lock_keyspace_meta(scope, keyspace));
  TRY(check_service(service));
  const GcKeys keys(keyspace);
  scope.exclusive(keys.barriers);
  ChangeLog::lock(scope);
  TRY_ASSIGN(const bool notes, has_notes(map_.engine, keyspace));
  Barrier barrier;
  Effects effects;
  const auto update = [&](View& view) -> Status {
    effects = {};
    // A tombstone too: a hold without end would keep it for ever.
    TRY_ASSIGN(const Keyspace found, look_up_keyspace(view, keyspace));
    const uint64_t now_ms = map_.clock.unix_ms();
    const Bytes key = keys.barrier(service);
    Value value;
    TRY(view.get(key, value));
    if (value.found()) {
      TRY_ASSIGN(barrier, decode_barrier(keyspace, key, value.bytes()));
    }
    if (!value.found() || !is_live(barrier, now_ms))
      return Error{Code::not_found,
                   fmt::format("keyspace {} has no barrier of service {}: it was never set, has "
                               "expired or was deleted",
                               keyspace.value, quote(service)),
                   "barrier_not_found"};
    TRY(append_action(view, changes_, found, "gc.barrier.delete", barrier_text(barrier), caller));
    effects.logged = true;
    const bool buried = found.state == KeyspaceState::tombstone;
    effects.due = notes || buried;
    if (effects.due) put_due(view, keyspace, buried ? DueJob::purge : DueJob::garbage, now_ms);
    view.remove(key);
    return {};
  };
  TRY(transact_and_tell(scope, effects, update));
  return barrier;
}

void Gc::on_due(std::function<void()> wake) {
  const std::lock_guard lock(wake_mutex_);
  wake_ = std::move(wake);
}

// --- explaining ---

namespace {

// Adds up the notes that are due, oldest first.
Status count_waiting(Engine& engine, KeyspaceId keyspace, uint64_t now_ms,
                     FunctionRef<bool(ByteView)> is_passed_over, GcExplanation& out) {
  const auto visit = [&](ByteView key, ByteView value) {
    const auto note = decode<GarbageKey>(key);
    const auto bytes = decode_garbage_value(value);
    if (!note || !bytes || is_passed_over(key)) {
      out.broken_notes++;
      return Visit::go_on;
    }
    if (!out.oldest_due_ms) out.oldest_due_ms = note->due_ms;
    out.waiting_notes++;
    out.waiting_bytes += *bytes;
    return Visit::go_on;
  };
  const Bytes end = first_note_key(keyspace, now_ms + 1);
  std::optional<Bytes> begin =
      first_note_key(keyspace, 0).substr(0, 5);  // broken ones may be first
  const auto left = [&] {
    return explained_notes_max -
           std::min(explained_notes_max, out.waiting_notes + out.broken_notes);
  };
  while (begin && left() > 0) {
    TRY_ASSIGN(ScanPage page,
               engine.scan({.begin = *begin, .end = end, .entries_max = left()}, visit));
    begin = std::move(page.resume);
  }
  if (!begin) return {};
  TRY_ASSIGN(const ScanPage page, engine.scan({.begin = *begin, .end = end, .entries_max = 1},
                                              [](ByteView, ByteView) { return Visit::go_on; }));
  out.more = page.entries > 0;
  return {};
}

// When the youngest note became due that is due by now. Of all garbage it is held first.
Result<std::optional<uint64_t>> youngest_due_ms(Engine& engine, KeyspaceId keyspace,
                                                uint64_t now_ms) {
  std::optional<uint64_t> due_ms;
  const Bytes begin = first_note_key(keyspace, 0);
  const Bytes end = first_note_key(keyspace, now_ms + 1);
  const auto visit = [&](ByteView key, ByteView) {
    if (const auto note = decode<GarbageKey>(key)) due_ms = note->due_ms;
    return due_ms ? Visit::stop : Visit::go_on;
  };
  TRY(engine.scan({.begin = begin, .end = end, .reverse = true, .entries_max = 4}, visit));
  return due_ms;
}

std::string waiting_in_words(const GcExplanation& explained, uint64_t now_ms) {
  if (explained.waiting_notes == 0 && !explained.is_burial) return "nothing waits";
  const char* more = explained.more ? "more than " : "";
  const std::string bytes = more + bytes_text(explained.waiting_bytes);
  if (explained.held_by) {
    const Barrier& barrier = *explained.held_by;
    const uint64_t now_s = now_ms / 1000;
    const std::string age =
        barrier.set_at_s == 0
            ? "of unknown age"
            : age_text(now_s > barrier.set_at_s ? now_s - barrier.set_at_s : 0) + " old";
    return fmt::format("held at {} by {}, {}, {} waiting", point_text(barrier.safe_point),
                       barrier.service, age, bytes);
  }
  if (explained.is_burial) return fmt::format("all of it is being removed, {} left", bytes);
  const bool one = explained.waiting_notes == 1;
  return fmt::format("{}{} note{}, {} wait{}: due, and will be collected soon", more,
                     explained.waiting_notes, one ? "" : "s", bytes, one ? "s" : "");
}

std::string explain_in_words(const GcExplanation& explained, uint64_t now_ms) {
  std::string text = waiting_in_words(explained, now_ms);
  if (explained.broken_notes > 0)
    text +=
        fmt::format("; notes that make no sense and are passed over: {}", explained.broken_notes);
  if (explained.ahead_of_clock)
    text += fmt::format(
        "; the txn safe point, {}, is ahead of the server's clock, which is or was wrong: until "
        "then garbage goes as soon as it is due, and no hold can be set before that point",
        point_text(explained.state.txn_safe_point));
  return text;
}

}  // namespace

Result<GcExplanation> Gc::explain(KeyspaceId keyspace, FunctionRef<bool(ByteView)> is_passed_over) {
  GcExplanation explained;
  TRY_ASSIGN(explained.state, load(keyspace));
  const uint64_t now_ms = map_.clock.unix_ms();
  TRY(count_waiting(map_.engine, keyspace, now_ms, is_passed_over, explained));
  TRY_ASSIGN(const auto youngest_ms, youngest_due_ms(map_.engine, keyspace, now_ms));
  // g stays at or below the lowest barrier, and what became due from g on stays.
  const std::vector<Barrier>& barriers = explained.state.barriers;
  if (!barriers.empty() && youngest_ms && explained.waiting_notes > 0 &&
      timestamp_at_ms(*youngest_ms) >= barriers[0].safe_point)
    explained.held_by = barriers[0];
  TRY_ASSIGN(const Keyspace known, look_up_keyspace(map_.engine, keyspace));
  if (known.state == KeyspaceState::tombstone) {  // any barrier holds all of it
    TRY_ASSIGN(const Figures figures, stored_figures(map_.engine, keyspace));
    explained.is_burial = true;
    explained.waiting_bytes = static_cast<uint64_t>(std::max<int64_t>(figures.bytes, 0));
    if (!barriers.empty()) explained.held_by = barriers[0];
  }
  explained.ahead_of_clock =
      ms_of_timestamp(explained.state.txn_safe_point) > now_ms + future_ms_max;
  explained.text = explain_in_words(explained, now_ms);
  return explained;
}

void append_gc_intervals(KeyspaceId keyspace, std::vector<std::pair<Bytes, Bytes>>& intervals) {
  const GcKeys keys(keyspace);
  intervals.emplace_back(keys.gc, successor(keys.gc));
  intervals.emplace_back(keys.txn, successor(keys.txn));
  intervals.emplace_back(keys.barriers, keys.barriers_end);
}

}  // namespace trellis
