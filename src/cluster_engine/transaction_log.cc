#include "cluster_engine/transaction_log.h"

#include <algorithm>
#include <cerrno>
#include <random>

#include "base/assert.h"
#include "codec/meta_keys.h"

namespace trellis {
namespace {

constexpr ByteView state_attribute = "st";
constexpr ByteView beat_attribute = "beat";
constexpr ByteView live_state = "live";
constexpr ByteView fenced_state = "fenced";
constexpr int looks_max = 4;

uint64_t draw_incarnation() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

Error fenced_error() {
  return {
      Code::unavailable,
      "this client was declared dead by others, as nothing was heard of it, and does not commit "
      "until it has started again: it does so with its next heartbeat, try again then"};
}

Result<uint64_t> make_log(ObjectStore& store) {
  while (true) {
    const uint64_t incarnation = draw_incarnation();
    const Bytes object = log_object_name(incarnation);
    const int answer =
        store.write("log.create", object,
                    {.create_exclusively = true,
                     .guards = {},
                     .changes = {SetAttribute{Bytes(state_attribute), Bytes(live_state)}}});
    if (answer == -EEXIST || incarnation == 0) continue;
    TRY(object_status(answer, object));
    return incarnation;
  }
}

bool same_txn(const Writer& a, const Writer& b) {
  return a.incarnation == b.incarnation && a.sequence == b.sequence;
}

}  // namespace

bool is_unknown(int answer) { return answer == -ETIMEDOUT || answer == -ESHUTDOWN; }

Error without_doubt(Error error) {
  if (error.code == Code::maybe || error.code == Code::not_found) error.code = Code::unavailable;
  return error;
}

Result<std::unique_ptr<TransactionLog>> TransactionLog::open(ObjectStore& store,
                                                             RangeRouter& router) {
  TRY_ASSIGN(const uint64_t incarnation, make_log(store));
  return std::make_unique<TransactionLog>(store, router, incarnation);
}

Status TransactionLog::check_not_fenced() const {
  if (fenced_ != incarnation_) return {};
  return fenced_error();
}

Error TransactionLog::note_fenced(uint64_t incarnation) {
  fenced_ = incarnation;
  return fenced_error();
}

Status TransactionLog::beat() {
  const uint64_t incarnation = incarnation_;
  const Bytes object = log_object_name(incarnation);
  const int answer = store_.write(
      "beat", object,
      {.guards = {AttributeIs{Bytes(state_attribute), Bytes(live_state)}},
       .changes = {SetAttribute{Bytes(beat_attribute), std::to_string(++last_beat_)}}});
  if (answer == -ECANCELED || answer == -ENOENT) return note_fenced(incarnation);
  const Status done = object_status(answer, object);
  return done.has_value() ? done : Status(without_doubt(done.error()));
}

Status TransactionLog::restart() {
  TRY_ASSIGN(incarnation_, make_log(store_));
  return {};
}

Result<Bytes> read_heartbeat(ObjectStore& store, uint64_t incarnation) {
  const Bytes object = log_object_name(incarnation);
  ReadAnswer answer;
  TRY(object_status(store.read("watch.read", object, {.want_attributes = true}, answer), object));
  return answer.attributes[Bytes(beat_attribute)];
}

Result<bool> TransactionLog::decide(const Writer& txn, const Decision& decision) {
  const Bytes object = log_object_name(txn.incarnation);
  const Bytes key = encode_writer(txn);
  const int answer =
      store_.write("decide", object,
                   {.guards = {AttributeIs{Bytes(state_attribute), Bytes(live_state)},
                               OmapIs{key, Compare::equal, ""}},
                    .changes = {OmapSet{key, encode_decision(decision)}}});
  if (answer >= 0) return true;
  if (answer == -ENOENT) return note_fenced(txn.incarnation);
  if (answer != -ECANCELED && !is_unknown(answer)) {
    TRY(object_status(answer, object));
  }
  // Sent and perhaps still under way: only what stands in the log says what becomes of it.
  const Result<std::optional<bool>> decided = decision_of(txn, "decide.look");
  if (!decided.has_value())
    return Error{Code::maybe, "not known to be committed: " + decided.error().message};
  if (!*decided && is_unknown(answer))
    return Error{Code::maybe, "not known to be committed: this client was declared dead meanwhile"};
  if (!decided->value_or(false)) TRY(check_live(txn.incarnation));
  return decided->value_or(false);
}

Status TransactionLog::check_live(uint64_t incarnation) {
  const Bytes object = log_object_name(incarnation);
  ReadAnswer answer;
  const int status = store_.read("decide.look", object, {.want_attributes = true}, answer);
  if (status != -ENOENT) TRY(object_status(status, object));
  if (answer.attributes[Bytes(state_attribute)] == live_state) return {};
  return note_fenced(incarnation);
}

Result<std::optional<bool>> TransactionLog::decision_of(const Writer& txn, FaultPoint point) {
  const Bytes object = log_object_name(txn.incarnation);
  const Bytes key = encode_writer(txn);
  int answer = 0;
  for (int look = 0; look < looks_max; look++) {
    answer = store_.write(point, object,
                          {.guards = {OmapIs{key, Compare::equal, ""}},
                           .changes = {OmapSet{key, encode_decision({})}}});
    if (answer >= 0) return std::optional(false);
    if (answer == -ENOENT) return std::optional<bool>();
    ReadAnswer found;
    answer = store_.read(point, object, {.omap_keys = {key}}, found);
    if (answer == -ENOENT) return std::optional<bool>();
    if (answer < 0 || found.omap.empty()) continue;
    TRY_ASSIGN(const Decision decision, decode_decision(found.omap.begin()->second));
    return std::optional(decision.committed);
  }
  TRY(object_status(answer, object));
  return Error{Code::unavailable, object + ": no answer in time"};
}

Status TransactionLog::forget(const Writer& txn) {
  const Bytes object = log_object_name(txn.incarnation);
  return object_status(
      store_.write("forget", object, {.guards = {}, .changes = {OmapRemove{encode_writer(txn)}}}),
      object);
}

WriteOperation resolve_operation(const StoredIntents& met, bool committed) {
  WriteOperation operation;
  const Bytes version = encode_writer(met.txn);
  for (const auto& [address, bytes] : met.intents) {
    const Bytes intent_key = entry_key(EntryKind::intent, address);
    operation.guards.emplace_back(OmapIs{intent_key, Compare::equal, bytes});
    operation.changes.emplace_back(OmapRemove{intent_key});
    if (!committed) continue;
    const Result<Intent> intent = decode_intent(bytes);
    ASSERT(intent.has_value());  // whoever found it has decoded it
    Bytes payload_key = entry_key(EntryKind::payload, address);
    Bytes version_key = entry_key(EntryKind::version, address);
    if (intent->value) {
      operation.changes.emplace_back(
          OmapSet{std::move(payload_key), encode_payload(*intent->value)});
      operation.changes.emplace_back(OmapSet{std::move(version_key), version});
    } else {
      operation.changes.emplace_back(OmapRemove{std::move(payload_key)});
      operation.changes.emplace_back(OmapRemove{std::move(version_key)});
    }
  }
  return operation;
}

Status TransactionLog::resolve(const RangeHeader& range, const StoredIntents& met, bool committed,
                               FaultPoint point, Patience& patience) {
  for (const auto& [address, bytes] : met.intents) {
    if (range.may_write(address)) continue;
    TRY(router_.wait(range, patience));
    return Error{Code::conflict, "the range is being changed"};
  }
  WriteOperation operation = resolve_operation(met, committed);
  operation.guards.push_back(generation_is(range));
  const Bytes object = range_object_name(range.id);
  const int answer = store_.write(point, object, operation);
  if (answer == -ENOENT) router_.forget(range);
  return object_status(answer == -ENOENT ? -ECANCELED : answer, object);
}

Status TransactionLog::meet(const RangeHeader& range, const StoredIntents& met,
                            Patience& patience) {
  if (patience.wait(encode_writer(met.txn))) return {};
  TRY_ASSIGN(const std::optional<bool> committed, decision_of(met.txn, "help.decide"));
  // Without a log: it was swept, and what is left of its intents was not decided.
  Status resolved = resolve(range, met, committed.value_or(false), "help.resolve", patience);
  // Somebody else was faster, or the range has changed: the next look tells.
  if (!resolved.has_value() && resolved.error().code == Code::conflict) return {};
  return resolved;
}

Result<StoredIntents> first_commit_of(std::span<const std::pair<Bytes, Bytes>> intents) {
  StoredIntents first{};
  for (const auto& [key, bytes] : intents) {
    TRY_ASSIGN(const Intent intent, decode_intent(bytes));
    if (first.intents.empty()) first.txn = intent.txn;
    if (same_txn(first.txn, intent.txn)) first.intents.emplace_back(key.substr(1), bytes);
  }
  return first;
}

Status TransactionLog::resolve_between(const Writer& txn, bool committed, ByteView first,
                                       ByteView last, FaultPoint point) {
  constexpr int attempts_max = 10'000;
  Patience patience(router_.clock(), router_.patience_us());
  Bytes at(first);
  for (int attempt = 0; attempt < attempts_max && at <= last;) {
    TRY_ASSIGN(const RangePointer range, router_.find(at));
    const Bytes first_key = entry_key(EntryKind::intent, at);
    const Bytes object = range_object_name(range->id);
    ReadAnswer answer;
    const int status = store_.read(
        point, object,
        {.guards = {generation_is(*range)},
         .omap_keys = {first_key},
         .omap_pages = {{.start_after = first_key, .prefix = entry_key(EntryKind::intent, {})}},
         .bytes = {}},
        answer);
    if (status == -ECANCELED || status == -ENOENT) {
      router_.forget(*range);
      attempt++;
      continue;
    }
    TRY(object_status(status, object));
    OmapPage& page = answer.pages[0];
    // What lies behind the end is the copy of a merge that is not finished.
    Bytes next = range->end;
    if (page.more) next = std::min(next, successor(page.entries.back().first.substr(1)));
    for (const auto& [key, bytes] : answer.omap) page.entries.emplace_back(key, bytes);
    StoredIntents met{txn, {}};
    for (auto& [key, bytes] : page.entries) {
      const ByteView address = ByteView(key).substr(1);
      if (address > last || !range->holds(address)) continue;
      TRY_ASSIGN(const Intent intent, decode_intent(bytes));
      if (same_txn(intent.txn, txn)) met.intents.emplace_back(address, bytes);
    }
    if (!met.intents.empty()) {
      const Status resolved = resolve(*range, met, committed, point, patience);
      if (!resolved.has_value() && resolved.error().code == Code::conflict) {
        router_.forget(*range);
        attempt++;
        continue;
      }
      TRY(resolved);
    }
    at = std::move(next);
    if (at >= map_key_max) return {};
  }
  if (at <= last) return Error{Code::unavailable, "the ranges change all the time: try again"};
  return {};
}

Status TransactionLog::sweep(uint64_t incarnation) {
  const Bytes object = log_object_name(incarnation);
  const int fenced =
      store_.write("sweep.fence", object,
                   {.guards = {AttributeIs{Bytes(state_attribute), Bytes(live_state)}},
                    .changes = {SetAttribute{Bytes(state_attribute), Bytes(fenced_state)}}});
  if (fenced == -ENOENT) return {};
  if (fenced != -ECANCELED) TRY(object_status(fenced, object));  // canceled: it is fenced already
  TRY(finish_decisions(object));
  const int removed =
      store_.write("sweep.remove", object,
                   {.guards = {AttributeIs{Bytes(state_attribute), Bytes(fenced_state)}},
                    .changes = {RemoveObject{}}});
  return removed == -ENOENT ? Status() : object_status(removed, object);
}

Status TransactionLog::finish_decisions(const Bytes& object) {
  const auto finish = [&](const Bytes& key, const Bytes& bytes) -> Status {
    if (key.size() != 16) return Error{Code::corrupt, object + " holds what is no decision"};
    const Writer txn{load_be(key.data(), 8), load_be(key.data() + 8, 8)};
    TRY_ASSIGN(const Decision decision, decode_decision(bytes));
    for (const auto& [first, last] : decision.written)
      TRY(resolve_between(txn, decision.committed, first, last, "sweep.resolve"));
    return {};
  };
  Status first_failure;
  Bytes start_after;
  for (bool more = true; more;) {
    ReadAnswer answer;
    const int status = store_.read("sweep.read", object,
                                   {.guards = {},
                                    .omap_keys = {},
                                    .omap_pages = {{.start_after = start_after, .prefix = {}}},
                                    .bytes = {}},
                                   answer);
    if (status == -ENOENT) return {};
    TRY(object_status(status, object));
    more = answer.pages[0].more;
    for (const auto& [key, bytes] : answer.pages[0].entries) {
      start_after = key;
      const Status finished = finish(key, bytes);
      if (!finished.has_value() && first_failure.has_value()) first_failure = finished;
    }
  }
  return first_failure;
}

}  // namespace trellis
