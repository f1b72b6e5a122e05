#include "range/embedded_home.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "codec/local_keys.h"
#include "range/address_walk.h"
#include "range/directory.h"
#include "range/repair.h"
#include "range/split_place.h"

namespace trellis {
namespace {

// What is local to a key: descriptors, and what else may be recorded there.
constexpr ByteView local_begin = "\x01k";
constexpr ByteView local_end = "\x01l";
constexpr ByteView directory_begin = "\x02";
constexpr ByteView directory_end = "\x04";
constexpr size_t repair_commit_bytes = 1 << 20;

Bytes descriptor_key(ByteView start) { return encode(RangeDescriptorKey{start}); }

Error not_as_known(const RangeDescriptor& range) {
  return {Code::conflict,
          fmt::format("{} is not what it was any more: look it up again", to_string(range))};
}

// Decodes a record at its key, if it is a descriptor; they must agree.
Result<std::optional<RangeDescriptor>> descriptor_at(ByteView key, ByteView value) {
  Bytes scratch;
  const auto decoded = decode<RangeDescriptorKey>(key, scratch);
  if (!decoded) return std::optional<RangeDescriptor>();
  auto range = decode_descriptor(value);
  if (!range) return with_context(fmt::format("range at {}", to_hex(decoded->key)), range.error());
  if (range->start != decoded->key)
    return Error{Code::corrupt,
                 fmt::format("{} is stored as if it began at {}: run trellis range verify",
                             to_string(*range), to_hex(decoded->key))};
  return std::optional<RangeDescriptor>(std::move(*range));
}

}  // namespace

Result<std::unique_ptr<EmbeddedHome>> EmbeddedHome::open(Engine& engine, Clock& clock,
                                                         Options options) {
  std::unique_ptr<EmbeddedHome> home(new EmbeddedHome(engine, clock, std::move(options)));
  // A disk that is full must not keep a store from being read: its ranges are made at a later
  // start.
  if (Status made = home->bootstrap(); !made && made.error().code != Code::no_space)
    return std::move(made).error();
  return home;
}

Status EmbeddedHome::bootstrap() {
  const auto stop = [](ByteView, ByteView) { return Visit::stop; };
  TRY_ASSIGN(const ScanPage page,
             engine_.scan({.begin = local_begin, .end = local_end, .entries_max = 1}, stop));
  if (page.entries != 0) return {};  // also if it is damaged: nothing is put over it
  // Ranges that were lost, as the directory is there, are not made up.
  TRY_ASSIGN(
      const ScanPage listed,
      engine_.scan({.begin = directory_begin, .end = directory_end, .entries_max = 1}, stop));
  if (listed.entries != 0) return {};
  const RangeDescriptor first = bootstrap_range();
  Commit commit;
  commit.expectations.push_back({.begin = descriptor_key(first.start), .end = {}, .seen = {}});
  TRY(log_.append(commit, {.sequence = 0,
                           .time_ms = clock_.unix_ms(),
                           .action = "bootstrap",
                           .reason = "a new map is one range",
                           .left = first,
                           .right = {}}));
  return replace(commit, {}, {&first, 1});
}

namespace {

// Every record of a range, in order, read or not. Collected first: a visitor may
// ask for more, and a scan lets nobody call the engine.
template <class Visitor>
Status for_each_record(Engine& engine, Visitor visit) {
  struct Record {
    Bytes key;
    Result<RangeDescriptor> range;
  };
  Bytes begin(local_begin);
  for (;;) {
    std::vector<Record> records;
    const auto collect = [&](ByteView key, ByteView value) {
      auto range = descriptor_at(key, value);
      if (!range)
        records.push_back({Bytes(key), std::move(range).error()});
      else if (*range)
        records.push_back({Bytes(key), std::move(**range)});
      return Visit::go_on;
    };
    constexpr size_t page_entries = 1'000;
    TRY_ASSIGN(
        ScanPage page,
        engine.scan({.begin = begin, .end = local_end, .entries_max = page_entries}, collect));
    for (const Record& record : records)
      if (visit(record.key, record.range) == Visit::stop) return {};
    if (!page.resume) return {};
    begin = std::move(*page.resume);
  }
}

}  // namespace

// What makes no sense is passed over, and told at the end.
Status for_each_range_in(Engine& engine, FunctionRef<Visit(const RangeDescriptor&)> visit) {
  Status damaged;
  const auto see = [&](const Bytes&, const Result<RangeDescriptor>& range) {
    if (range) return visit(*range);
    if (damaged) damaged = range.error();
    return Visit::go_on;
  };
  TRY(for_each_record(engine, see));
  return damaged;
}

Status EmbeddedHome::for_each(FunctionRef<Visit(const RangeDescriptor&)> visit) {
  return for_each_range_in(engine_, visit);
}

Result<RangeDescriptor> EmbeddedHome::find(ByteView address) {
  std::optional<RangeDescriptor> found;
  Status decoded;
  const auto visit = [&](ByteView key, ByteView value) {
    auto range = descriptor_at(key, value);
    if (range)
      found = std::move(*range);
    else
      decoded = std::move(range).error();
    return found || !decoded ? Visit::stop : Visit::go_on;
  };
  Bytes end = successor(descriptor_key(address));
  while (!found) {
    TRY_ASSIGN(
        ScanPage page,
        engine_.scan({.begin = local_begin, .end = end, .reverse = true, .entries_max = 4}, visit));
    TRY(decoded);
    if (!page.resume) break;
    end = std::move(*page.resume);
  }
  if (!found || !found->holds(address))
    return Error{Code::corrupt,
                 fmt::format("no range holds {}: run trellis range verify", to_hex(address))};
  return std::move(*found);
}

Status EmbeddedHome::expect_descriptor(Commit& commit, const RangeDescriptor& range) {
  const Bytes key = descriptor_key(range.start);
  Value value;
  TRY(engine_.get(key, value));
  if (!value.found()) return not_as_known(range);
  TRY_ASSIGN(const RangeDescriptor stored, decode_descriptor(value.bytes()));
  if (stored != range) return not_as_known(range);
  commit.expectations.push_back({.begin = key, .end = {}, .seen = engine_.evidence(value)});
  return {};
}

Status EmbeddedHome::replace(Commit& commit, std::span<const RangeDescriptor> before,
                             std::span<const RangeDescriptor> after) {
  for (const RangeDescriptor& range : before) commit.writes.remove(descriptor_key(range.start));
  for (const RangeDescriptor& range : after)
    commit.writes.put(descriptor_key(range.start), encode_descriptor(range));
  TRY(append_directory_writes(commit.writes, before, after));
  commit.durability = options_.durability;
  return trellis::commit(engine_, commit);
}

Result<std::pair<RangeDescriptor, RangeDescriptor>> EmbeddedHome::split(
    const SplitRequest& request) {
  RangeDescriptor left = request.range;
  if (request.at <= left.start || request.at >= left.end)
    return Error{Code::invalid, fmt::format("{} does not lie inside of {}: give an address "
                                            "between its bounds",
                                            to_hex(request.at), to_string(left))};
  TRY(check_range_start(request.at));
  const std::lock_guard lock(changing_);
  Commit commit;
  TRY(expect_descriptor(commit, request.range));
  left.generation++;
  RangeDescriptor right = left;
  TRY_ASSIGN(right.id, options_.next_id());
  left.end = right.start = request.at;
  right.sticky_until_ms = request.sticky_until_ms;
  commit.expectations.push_back({.begin = descriptor_key(right.start), .end = {}, .seen = {}});
  TRY(log_.append(commit, {.sequence = 0,
                           .time_ms = clock_.unix_ms(),
                           .action = "split",
                           .reason = std::string(request.reason),
                           .left = left,
                           .right = right}));
  const RangeDescriptor after[] = {left, right};
  TRY(replace(commit, {&request.range, 1}, after));
  return std::pair(std::move(left), std::move(right));
}

Result<RangeDescriptor> EmbeddedHome::merge(const RangeDescriptor& left,
                                            const RangeDescriptor& right, std::string_view reason) {
  if (left.end != right.start)
    return Error{Code::invalid,
                 fmt::format("{} and {} are no neighbours", to_string(left), to_string(right))};
  const std::lock_guard lock(changing_);
  Commit commit;
  TRY(expect_descriptor(commit, left));
  TRY(expect_descriptor(commit, right));
  RangeDescriptor whole = left;
  whole.end = right.end;
  whole.generation = std::max(left.generation, right.generation) + 1;
  whole.sticky_until_ms = 0;
  TRY(log_.append(commit, {.sequence = 0,
                           .time_ms = clock_.unix_ms(),
                           .action = "merge",
                           .reason = std::string(reason),
                           .left = whole,
                           .right = right}));
  const RangeDescriptor before[] = {left, right};
  TRY(replace(commit, before, {&whole, 1}));
  return whole;
}

// --- damage ---

struct EmbeddedHome::Records {
  std::vector<RangeDescriptor> own;
  std::vector<Bytes> damaged;  // keys
  std::vector<RangeDescriptor> directory;
  uint64_t generation_max = 0;
};

Result<EmbeddedHome::Records> EmbeddedHome::read_records() {
  Records records;
  const auto see = [&](std::vector<RangeDescriptor>& list, const RangeDescriptor& range) {
    records.generation_max = std::max(records.generation_max, range.generation);
    list.push_back(range);
  };
  TRY(for_each_record(engine_, [&](const Bytes& key, const Result<RangeDescriptor>& range) {
    if (range)
      see(records.own, *range);
    else
      records.damaged.push_back(key);
    return Visit::go_on;
  }));
  Bytes begin(directory_begin);
  for (;;) {
    const auto visit = [&](ByteView key, ByteView value) {
      const auto range = decode_descriptor(value);
      const auto keys = range ? directory_keys(*range) : Result<std::vector<Bytes>>(range.error());
      if (keys && std::ranges::find(*keys, key) != keys->end()) see(records.directory, *range);
      return Visit::go_on;
    };
    TRY_ASSIGN(ScanPage page, engine_.scan({.begin = begin, .end = directory_end}, visit));
    if (!page.resume) return records;
    begin = std::move(*page.resume);
  }
}

Status EmbeddedHome::name_new_ranges(std::vector<RangeDescriptor>& ranges, uint64_t generation) {
  std::set<uint64_t> used;
  for (const RangeDescriptor& range : ranges) used.insert(range.id.value);
  for (RangeDescriptor& range : ranges) {
    if (range.id.value != 0) continue;
    range.generation = generation;
    if (range.start.empty()) range.id = first_range_id;  // it holds meta1
    while (!used.insert(range.id.value).second) {
      TRY_ASSIGN(range.id, options_.next_id());
    }
  }
  return {};
}

Result<EmbeddedHome::Repaired> EmbeddedHome::repair(uint64_t generation_seen) {
  const std::lock_guard lock(changing_);
  TRY_ASSIGN(const Records records, read_records());
  std::vector<RangeDescriptor> ranges = tile_map(records.own, records.directory);
  if (records.damaged.empty() && ranges == records.own) return Repaired{};

  const uint64_t generation = std::max(records.generation_max, generation_seen) + 1;
  TRY(name_new_ranges(ranges, generation));
  std::map<Bytes, const RangeDescriptor*> before;
  for (const RangeDescriptor& range : records.own) before[descriptor_key(range.start)] = &range;
  for (const Bytes& key : records.damaged) before[key] = nullptr;
  Repaired repaired;
  Commit commit;
  commit.durability = options_.durability;
  // A part of it is less damage than before: the next repair goes on.
  const auto commit_if_large = [&]() -> Status {
    if (commit.writes.bytes() < repair_commit_bytes) return {};
    TRY(trellis::commit(engine_, commit));
    commit.writes.clear();
    return {};
  };
  for (const RangeDescriptor& range : ranges) {
    const auto known = before.find(descriptor_key(range.start));
    const bool is_kept = known != before.end() && known->second && *known->second == range;
    if (known != before.end()) before.erase(known);
    if (is_kept) continue;
    (range.generation == generation ? repaired.made : repaired.restored)++;
    commit.writes.put(descriptor_key(range.start), encode_descriptor(range));
    TRY(commit_if_large());
  }
  for (const auto& [key, range] : before) {
    repaired.removed++;
    commit.writes.remove(key);
    TRY(commit_if_large());
  }
  TRY(log_.append(commit,
                  {.sequence = 0,
                   .time_ms = clock_.unix_ms(),
                   .action = "repair",
                   .reason = fmt::format("records of ranges were damaged: {} restored from the "
                                         "directory, {} made anew, {} removed",
                                         repaired.restored, repaired.made, repaired.removed),
                   .left = ranges.front(),
                   .right = {}}));
  TRY(trellis::commit(engine_, commit));
  return repaired;
}

Status EmbeddedHome::walk(const RangeDescriptor& range, ScanVisitor visit,
                          FunctionRef<Visit()> between) {
  AddressWalk walk(engine_, range.start, range.end);
  bool stopped = false;
  const auto look = [&](ByteView key, ByteView value) {
    stopped = visit(key, value) == Visit::stop;
    return stopped ? Visit::stop : Visit::go_on;
  };
  while (!walk.done() && !stopped) {
    TRY(walk.next(look));
    stopped = stopped || between() == Visit::stop;
  }
  return {};
}

}  // namespace trellis
