#include "cluster_engine/cluster_commit.h"

#include <algorithm>
#include <cerrno>

#include "base/assert.h"
#include "codec/address.h"
#include "codec/counter_value.h"
#include "codec/meta_keys.h"
#include "engine/page_evidence.h"

namespace trellis {
namespace {

constexpr unsigned commit_attempts_max = 10'000;
constexpr unsigned attempts_without_pause = 3;

Error changed_since(ByteView key) {
  return {Code::conflict, "changed since it was read: " + quote(key)};
}

OmapIs is_version(ByteView address, const std::optional<Bytes>& seen) {
  return {entry_key(EntryKind::version, address), Compare::equal, seen.value_or("")};
}
OmapIs no_intent(ByteView address) {
  return {entry_key(EntryKind::intent, address), Compare::equal, ""};
}
OmapIs is_structure(const Bytes& structure) {
  return {entry_key(EntryKind::structure, {}), Compare::equal, structure};
}

Result<Bytes> address_within_map(ByteView key) {
  Bytes address;
  if (Status placed = append_address(address, key); !placed.has_value())
    return Error{Code::invalid, "no key of the map: " + placed.error().message};
  if (address >= map_key_max)
    return Error{Code::invalid, quote(key) + " is behind the end of the map, ff ff"};
  return address;
}

}  // namespace

// What a commit asks for, by address.
struct ClusterCommitter::Wanted {
  struct Point {
    WriteOp op;
    ByteView value;
    int64_t delta = 0;
    bool cleared = false;  // an add to what the commit itself has removed
  };
  struct Interval {
    ByteView begin;
    ByteView end;
    PageEvidence seen;
  };
  std::map<Bytes, Point> points;
  std::map<Bytes, std::optional<Bytes>> keys;  // expected versions
  std::vector<Interval> intervals;             // expected
  std::vector<std::pair<ByteView, ByteView>> removed;

  Status take(const Commit& commit);

 private:
  using ByKey = std::map<ByteView, Point>;
  void take_write(const WriteSet::Write& write, ByKey& by_key);
  Status take_expectation(const Expectation& expectation);
};

void ClusterCommitter::Wanted::take_write(const WriteSet::Write& write, ByKey& by_key) {
  const auto in_removed = [&] {
    return std::ranges::any_of(removed, [&](const auto& range) {
      return range.first <= write.key && (range.second.empty() || write.key < range.second);
    });
  };
  switch (write.op) {
    case WriteOp::put:
    case WriteOp::remove: by_key[write.key] = {write.op, write.value}; break;
    case WriteOp::remove_range:
      by_key.erase(by_key.lower_bound(write.key),
                   write.value.empty() ? by_key.end() : by_key.lower_bound(write.value));
      removed.emplace_back(write.key, write.value);
      break;
    case WriteOp::add: {
      const auto [point, is_new] =
          by_key.try_emplace(write.key, Point{WriteOp::add, {}, 0, in_removed()});
      if (!is_new && point->second.op != WriteOp::add) {
        const auto before = decode_counter_value(point->second.value);
        point->second = {WriteOp::add, {}, before.value_or(0), true};
      }
      point->second.delta = add_wrapping(point->second.delta, write.delta);
      break;
    }
  }
}

Status ClusterCommitter::Wanted::take_expectation(const Expectation& expectation) {
  if (!expectation.end) {
    TRY_ASSIGN(Bytes address, address_within_map(expectation.begin));
    const auto [known, is_new] = keys.try_emplace(std::move(address), expectation.seen);
    if (!is_new && known->second != expectation.seen) return changed_since(expectation.begin);
    return {};
  }
  if (empty_interval(expectation.begin, *expectation.end)) return {};
  TRY_ASSIGN(PageEvidence seen, decode_page_evidence(*expectation.seen));
  intervals.push_back({expectation.begin, *expectation.end, std::move(seen)});
  return {};
}

Status ClusterCommitter::Wanted::take(const Commit& commit) {
  ByKey by_key;
  for (const WriteSet::Write& write : commit.writes) take_write(write, by_key);
  for (const auto& [key, point] : by_key) {
    TRY_ASSIGN(Bytes address, address_within_map(key));
    points.emplace(std::move(address), point);
  }
  for (const Expectation& expectation : commit.expectations) TRY(take_expectation(expectation));
  return {};
}

// What one attempt does.
struct ClusterCommitter::Plan {
  struct PlannedWrite {
    std::optional<Bytes> value;  // absent: removed
    std::optional<Bytes> seen;   // its version; absent: it is not there
    bool is_structural() const { return value.has_value() != seen.has_value(); }
    bool changes() const { return value || seen; }
  };
  std::map<Bytes, PlannedWrite> writes;
  std::map<Bytes, std::optional<Bytes>> reads;  // what is only read
  std::vector<PageEvidence> intervals;
};

// Its part in one range.
struct ClusterCommitter::Part {
  RangePointer range;
  std::vector<std::pair<const Bytes*, const Plan::PlannedWrite*>> writes;
  std::vector<std::pair<const Bytes*, const std::optional<Bytes>*>> reads;
  std::vector<const EvidenceEntry*> entries;  // of intervals
  std::optional<Bytes> structure;             // as intervals, or absent keys, saw it

  bool has_reads() const { return !reads.empty() || !entries.empty() || structure; }
  Bytes object() const { return range_object_name(range->id); }
  // What was read is as it was; of the structure, `now`.
  void guard_reads(std::vector<Guard>& guards, const std::optional<Bytes>& now) const {
    for (const auto& [address, seen] : reads) {
      guards.emplace_back(is_version(*address, *seen));
      guards.emplace_back(no_intent(*address));
    }
    for (const EvidenceEntry* entry : entries)
      guards.emplace_back(is_version(entry->address, entry->version));
    if (now) guards.emplace_back(is_structure(*now));
  }
  void guard_all(std::vector<Guard>& guards) const {
    guards.emplace_back(generation_is(*range));
    guard_reads(guards, structure);
    for (const auto& [address, write] : writes) {
      guards.emplace_back(is_version(*address, write->seen));
      guards.emplace_back(no_intent(*address));
    }
  }
};

Status ClusterCommitter::commit(const Commit& commit) {
  TRY(check_commit(commit));
  TRY(log_.check_not_fenced());
  Wanted wanted;
  TRY(wanted.take(commit));
  Patience patience(router_.clock(), router_.patience_us());
  Random random(log_.next_writer().sequence);
  for (unsigned count = 0; count < commit_attempts_max; count++) {
    if (count > attempts_without_pause)
      router_.clock().pause_us(random.below(uint64_t{20} << std::min(count / 4, 8u)));
    TRY_ASSIGN(const Step step, attempt(wanted, count > 0, patience));
    if (step == Step::done) return {};
  }
  return Error{commit.expectations.empty() ? Code::unavailable : Code::conflict,
               "others write the same all the time: try again"};
}

// --- load ---

Result<PageEvidence> ClusterCommitter::look_at(ByteView begin, ByteView end) {
  PageEvidence all;
  Bytes from(begin);
  while (true) {
    TRY_ASSIGN(ClusterReader::Page page, reader_.scan({.begin = from, .end = end}));
    for (EvidencePart& part : page.evidence.parts) all.parts.push_back(std::move(part));
    for (auto& [key, entry] : page.entries)
      all.entries.push_back({std::move(entry.address), std::move(entry.version)});
    if (page.complete) return all;
    from = successor(page.entries.back().first);
  }
}

Status ClusterCommitter::load_keys(const Wanted& wanted, bool all, Plan& plan) {
  std::vector<Bytes> addresses;
  for (const auto& [address, point] : wanted.points)
    if (all || point.op == WriteOp::add || !wanted.keys.contains(address))
      addresses.push_back(address);
  if (all)
    for (const auto& [address, seen] : wanted.keys)
      if (!wanted.points.contains(address)) addresses.push_back(address);
  std::vector<VersionedRecord> records(addresses.size());
  TRY(reader_.read(addresses, records, ClusterReader::Instant::any));
  std::map<ByteView, const VersionedRecord*> loaded;
  for (size_t i = 0; i < addresses.size(); i++) loaded.emplace(addresses[i], &records[i]);
  const auto version_of = [](const VersionedRecord& record) {
    return record.found ? std::optional(record.version) : std::nullopt;
  };

  for (const auto& [address, seen] : wanted.keys) {
    const auto record = loaded.find(address);
    if (record != loaded.end() && version_of(*record->second) != seen)
      return changed_since(address);
    if (!wanted.points.contains(address)) plan.reads.emplace(address, seen);
  }
  for (const auto& [address, point] : wanted.points) {
    Plan::PlannedWrite write;
    const auto record = loaded.find(address);
    write.seen = record == loaded.end() ? wanted.keys.at(address) : version_of(*record->second);
    if (point.op == WriteOp::put) write.value = point.value;
    if (point.op == WriteOp::add) {
      const bool has_base = record->second->found && !point.cleared;
      const int64_t base = has_base ? decode_counter_value(record->second->value).value_or(0) : 0;
      write.value = encode_counter_value(add_wrapping(base, point.delta));
    }
    plan.writes.emplace(address, std::move(write));
  }
  return {};
}

Status ClusterCommitter::load_intervals(const Wanted& wanted, bool all, Plan& plan) {
  for (const Wanted::Interval& interval : wanted.intervals) {
    if (!all) {
      plan.intervals.push_back(interval.seen);
      continue;
    }
    TRY_ASSIGN(PageEvidence now, look_at(interval.begin, interval.end));
    if (now.entries != interval.seen.entries) return changed_since(interval.begin);
    plan.intervals.push_back(std::move(now));
  }
  for (const auto& [begin, end] : wanted.removed) {
    TRY_ASSIGN(PageEvidence now, look_at(begin, end));
    for (const EvidenceEntry& entry : now.entries) {
      const auto [write, is_new] =
          plan.writes.try_emplace(entry.address, Plan::PlannedWrite{{}, entry.version});
      const auto read = plan.reads.find(entry.address);
      if (!is_new || read == plan.reads.end()) continue;
      if (read->second != entry.version) return changed_since(entry.address);
      plan.reads.erase(read);
    }
    plan.intervals.push_back(std::move(now));
  }
  return {};
}

Status ClusterCommitter::load(const Wanted& wanted, bool all, Plan& plan) {
  TRY(load_keys(wanted, all, plan));
  return load_intervals(wanted, all, plan);
}

// --- divide ---

Result<std::vector<ClusterCommitter::Part>> ClusterCommitter::divide(const Plan& plan,
                                                                     bool& contradictory) {
  std::map<Bytes, Part> parts;  // by start
  const auto part_of = [&](ByteView address) -> Result<Part*> {
    auto behind = parts.upper_bound(Bytes(address));
    if (behind != parts.begin() && std::prev(behind)->second.range->holds(address))
      return &std::prev(behind)->second;
    TRY_ASSIGN(RangePointer range, router_.find(address));
    Part& part = parts[range->start];
    if (part.range != nullptr && part.range->generation != range->generation) contradictory = true;
    part.range = std::move(range);
    return &part;
  };
  for (const auto& [address, write] : plan.writes) {
    TRY_ASSIGN(Part * part, part_of(address));
    part->writes.emplace_back(&address, &write);
  }
  for (const auto& [address, seen] : plan.reads) {
    TRY_ASSIGN(Part * part, part_of(address));
    part->reads.emplace_back(&address, &seen);
  }
  for (const PageEvidence& interval : plan.intervals) {
    for (const EvidenceEntry& entry : interval.entries) {
      TRY_ASSIGN(Part * part, part_of(entry.address));
      part->entries.push_back(&entry);
    }
    for (const EvidencePart& seen : interval.parts) {
      for (Bytes at = seen.begin; at < seen.end;) {
        TRY_ASSIGN(Part * part, part_of(at));
        if (part->structure && *part->structure != seen.structure) contradictory = true;
        part->structure = seen.structure;
        at = part->range->end;
      }
    }
  }
  std::vector<Part> divided;
  for (auto& [start, part] : parts) divided.push_back(std::move(part));
  return divided;
}

// Before anything is written nothing is in doubt, whatever has no answer.
Result<ClusterCommitter::Step> ClusterCommitter::attempt(const Wanted& wanted, bool all,
                                                         Patience& patience) {
  Plan plan;
  if (const Status loaded = load(wanted, all, plan); !loaded.has_value())
    return without_doubt(loaded.error());
  bool contradictory = false;  // what was read is of different times: load it again
  Result<std::vector<Part>> parts = divide(plan, contradictory);
  if (!parts.has_value()) return without_doubt(parts.error());
  if (contradictory) return Step::again;
  for (const Part& part : *parts) {
    for (const auto& [address, write] : part.writes) {
      if (part.range->may_write(*address)) continue;
      const Status waited = router_.wait(*part.range, patience);
      if (!waited.has_value()) return without_doubt(waited.error());
      return Step::again;
    }
  }
  if (parts->empty()) return Step::done;
  return parts->size() == 1 ? commit_in_one(parts->front()) : commit_across(*parts);
}

// --- one range ---

Result<ClusterCommitter::Step> ClusterCommitter::commit_in_one(Part& part) {
  const Bytes version = encode_writer(log_.next_writer());
  std::vector<ObjectChange> changes;
  bool structural = false;
  for (const auto& [address, write] : part.writes) {
    if (!write->changes()) continue;
    structural |= write->is_structural();
    Bytes payload_key = entry_key(EntryKind::payload, *address);
    Bytes version_key = entry_key(EntryKind::version, *address);
    if (write->value) {
      changes.emplace_back(OmapSet{std::move(payload_key), encode_payload(*write->value)});
      changes.emplace_back(OmapSet{std::move(version_key), version});
    } else {
      changes.emplace_back(OmapRemove{std::move(payload_key)});
      changes.emplace_back(OmapRemove{std::move(version_key)});
    }
  }
  if (structural) changes.emplace_back(OmapSet{entry_key(EntryKind::structure, {}), version});
  std::vector<Guard> guards;
  part.guard_all(guards);
  int answer = 0;
  if (changes.empty()) {
    ReadAnswer found;
    answer = store_.read("validate", part.object(), {.guards = std::move(guards)}, found);
    if (is_unknown(answer)) return without_doubt(object_status(answer, part.object()).error());
  } else {
    answer = store_.write("commit", part.object(),
                          {.guards = std::move(guards), .changes = std::move(changes)});
    if (is_unknown(answer)) {
      TRY(look_for(part, version));
      return Step::done;
    }
  }
  if (answer == -ENOENT) router_.forget(*part.range);
  if (answer == -ECANCELED || answer == -ENOENT) return Step::again;
  TRY(object_status(answer, part.object()));
  return Step::done;
}

// An operation without an answer is done if something bears its mark. If nothing does it may still
// arrive, or others have written over it.
Status ClusterCommitter::look_for(const Part& part, const Bytes& version) {
  const Error unknown{Code::maybe,
                      part.object() + ": no answer in time: it may or may not be done"};
  for (const auto& [address, write] : part.writes) {
    Result<RangePointer> range = router_.find(*address);
    if (!range.has_value()) return unknown;
    const Bytes keys[] = {entry_key(EntryKind::version, *address),
                          entry_key(EntryKind::structure, {})};
    ReadAnswer found;
    const int answer = store_.read("commit.look", range_object_name((*range)->id),
                                   {.guards = {generation_is(**range)},
                                    .omap_keys = {keys[0], keys[1]},
                                    .omap_pages = {},
                                    .bytes = {}},
                                   found);
    if (answer < 0) return unknown;
    for (const Bytes& key : keys)
      if (const auto mark = found.omap.find(key);
          mark != found.omap.end() && mark->second == version)
        return {};
  }
  return unknown;
}

// --- several ranges ---

// Absent keys that are only read have no version that shows that they came and went.
Status ClusterCommitter::capture_structure(Part& part) {
  const bool absent =
      std::ranges::any_of(part.reads, [](const auto& read) { return !read.second->has_value(); });
  if (!absent || part.structure) return {};
  const Bytes structure_key = entry_key(EntryKind::structure, {});
  ReadOperation operation;
  operation.guards.emplace_back(generation_is(*part.range));
  part.guard_reads(operation.guards, std::nullopt);
  operation.omap_keys.push_back(structure_key);
  ReadAnswer answer;
  const int status = store_.read("capture", part.object(), operation, answer);
  TRY(object_status(status == -ENOENT ? -ECANCELED : status, part.object()));
  part.structure = answer.omap[structure_key];
  return {};
}

Result<ClusterCommitter::Step> ClusterCommitter::commit_across(std::vector<Part>& parts) {
  for (Part& part : parts) {
    const Status captured = capture_structure(part);
    if (captured.has_value()) continue;
    if (captured.error().code != Code::conflict) return without_doubt(captured.error());
    return Step::again;
  }
  const Writer txn = log_.next_writer();
  TRY_ASSIGN(const Step prepared, prepare(parts, txn));
  if (prepared == Step::again) return Step::again;
  if (const Status valid = validate(parts, txn); !valid.has_value()) {
    resolve(parts, txn, false);
    if (valid.error().code == Code::conflict) return Step::again;
    return without_doubt(valid.error());
  }
  Decision decision{.committed = true, .written = {}};
  for (const Part& part : parts)
    if (!part.writes.empty())
      decision.written.emplace_back(*part.writes.front().first, *part.writes.back().first);
  if (decision.written.empty()) return Step::done;
  const Result<bool> decided = log_.decide(txn, decision);
  if (!decided.has_value()) {
    if (decided.error().code != Code::maybe) resolve(parts, txn, false);
    return decided.error();
  }
  if (resolve(parts, txn, *decided) && *decided)
    discard(log_.forget(txn));  // one that stays is swept with its log
  return *decided ? Step::done : Step::again;
}

Result<ClusterCommitter::Step> ClusterCommitter::prepare(const std::vector<Part>& parts,
                                                         const Writer& txn) {
  const Bytes version = encode_writer(txn);
  std::vector<ObjectWrite> writes;
  std::vector<Part> placed;
  for (const Part& part : parts) {
    if (part.writes.empty()) continue;
    placed.push_back(part);
    ObjectWrite write{"prepare", part.object(), {}};
    part.guard_all(write.operation.guards);
    for (const auto& [address, planned] : part.writes)
      write.operation.changes.emplace_back(
          OmapSet{entry_key(EntryKind::intent, *address), encode_intent({txn, planned->value})});
    write.operation.changes.emplace_back(OmapSet{entry_key(EntryKind::structure, {}), version});
    writes.push_back(std::move(write));
  }
  std::vector<int> answers(writes.size());
  store_.write_many(writes, answers);
  if (std::ranges::all_of(answers, [](int answer) { return answer >= 0; })) return Step::done;
  // What has no answer counts as not done; if it arrives later, nobody will decide for it.
  for (size_t i = answers.size(); i-- > 0;)
    if (answers[i] < 0 && !is_unknown(answers[i])) placed.erase(placed.begin() + i);
  resolve(placed, txn, false);
  for (const int answer : answers)
    if (answer < 0 && answer != -ECANCELED && answer != -ENOENT)
      return without_doubt(object_status(answer, "nothing was written").error());
  return Step::again;
}

// The structure of a range that was prepared is the prepare's own.
Status ClusterCommitter::validate(const std::vector<Part>& parts, const Writer& txn) {
  for (const Part& part : parts) {
    if (!part.has_reads()) continue;
    ReadOperation operation;
    operation.guards.emplace_back(generation_is(*part.range));
    std::optional<Bytes> structure = part.structure;
    if (structure && !part.writes.empty()) structure = encode_writer(txn);
    part.guard_reads(operation.guards, structure);
    ReadAnswer answer;
    const int status = store_.read("validate", part.object(), operation, answer);
    TRY(object_status(status == -ENOENT ? -ECANCELED : status, part.object()));
  }
  return {};
}

// True: no intent is left. What is not resolved here is so by whoever meets it.
bool ClusterCommitter::resolve(const std::vector<Part>& parts, const Writer& txn, bool committed) {
  std::vector<ObjectWrite> writes;
  std::vector<const Part*> written;
  for (const Part& part : parts) {
    if (part.writes.empty()) continue;
    StoredIntents intents{txn, {}};
    for (const auto& [address, planned] : part.writes)
      intents.intents.emplace_back(*address, encode_intent({txn, planned->value}));
    ObjectWrite write{"resolve", part.object(), resolve_operation(intents, committed)};
    write.operation.guards.push_back(generation_is(*part.range));
    writes.push_back(std::move(write));
    written.push_back(&part);
  }
  std::vector<int> answers(writes.size());
  store_.write_many(writes, answers);
  bool all = true;
  for (size_t i = 0; i < answers.size(); i++) {
    if (answers[i] >= 0) continue;
    // The range was split or merged, or a helper was faster with some of them.
    const auto& keys = written[i]->writes;
    all &= log_.resolve_between(txn, committed, *keys.front().first, *keys.back().first, "resolve")
               .has_value();
  }
  return all;
}

}  // namespace trellis
