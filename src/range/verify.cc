#include "range/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <unordered_set>

#include "codec/meta_keys.h"
#include "range/descriptor.h"
#include "range/directory.h"

namespace trellis {

namespace {

using FindingKind = RangeFinding::Kind;

constexpr ByteView directory_start{"\x02", 1};
constexpr ByteView directory_end{"\x04", 1};
constexpr size_t rebuild_commit_records = 1000;
// Each finds less to do, unless ranges are split and merged faster than they are read.
constexpr unsigned rebuild_rounds_max = 10;

using ExpectedRecords = std::map<Bytes, RangeDescriptor, std::less<>>;  // by key of the record

struct HomeRanges {
  uint64_t count = 0;
  bool may_lag = false;  // a record may be of a lower generation
  ExpectedRecords expected;
  std::vector<RangeFinding> findings;
};

Result<HomeRanges> read_ranges(RangeHome& home) {
  HomeRanges out;
  out.may_lag = home.records_may_lag();
  Bytes end;  // of all so far
  const auto find = [&](FindingKind kind, std::string text) {
    out.findings.push_back({kind, std::move(text)});
  };
  std::unordered_set<uint64_t> ids;
  const Status listed = home.for_each([&](const RangeDescriptor& range) {
    out.count++;
    if (!ids.insert(range.id.value).second)
      find(FindingKind::same_id,
           fmt::format("{} has the id of one that lies before it", to_string(range)));
    if (range.start > end)
      find(FindingKind::hole,
           fmt::format("no range holds [{}, {})", to_hex(end), to_hex(range.start)));
    if (range.start < end)
      find(FindingKind::overlap, fmt::format("{} begins before {}, where the one before it ends",
                                             to_string(range), to_hex(end)));
    end = std::max(end, range.end);
    const Result<std::vector<Bytes>> keys = directory_keys(range);
    if (!keys.has_value()) {
      find(FindingKind::bad_border, keys.error().message);
      return Visit::go_on;
    }
    for (const Bytes& key : *keys) out.expected.insert_or_assign(key, range);
    return Visit::go_on;
  });
  if (!listed && listed.error().code != Code::corrupt) return listed.error();
  if (!listed) find(FindingKind::bad_range, listed.error().message);
  if (end != map_key_max)
    find(FindingKind::hole,
         fmt::format("no range holds [{}, {})", to_hex(end), to_hex(map_key_max)));
  return out;
}

std::optional<RangeFinding> judge_record(ByteView key, ByteView value, const HomeRanges& ranges) {
  const std::string name = "the record " + to_hex(key);
  const auto place = ranges.expected.find(key);
  Result<RangeDescriptor> stored = decode_descriptor(value);
  if (place == ranges.expected.end())
    return RangeFinding{FindingKind::stray_record,
                        fmt::format("{} is of no range{}", name,
                                    stored.has_value() ? ": " + to_string(*stored) : "")};
  const RangeDescriptor& range = place->second;
  if (!stored.has_value())
    return RangeFinding{FindingKind::bad_record, fmt::format("{} of {}: {}", name, to_string(range),
                                                             stored.error().message)};
  const std::string both =
      fmt::format("{} says {} where {} is", name, to_string(*stored), to_string(range));
  if (stored->start < range.start)
    return RangeFinding{FindingKind::wrong_bounds, both + ": it overlaps what lies before"};
  if (stored->start > range.start)
    return RangeFinding{FindingKind::wrong_bounds, both + ": it leaves a hole"};
  if (stored->end != range.end) return RangeFinding{FindingKind::wrong_bounds, both};
  if (ranges.may_lag && stored->generation < range.generation)
    stored->generation = range.generation;
  if (stored->generation != range.generation)
    return RangeFinding{FindingKind::wrong_generation, both};
  if (*stored != range) return RangeFinding{FindingKind::wrong_range, both};
  return std::nullopt;
}

struct RecordDifference {
  Bytes key;
  RangeFinding finding;
};

// How the directory differs from what is expected, and how many records it has.
Result<uint64_t> compare(Engine& engine, const HomeRanges& ranges,
                         std::vector<RecordDifference>& differences) {
  const ExpectedRecords& expected = ranges.expected;
  uint64_t records = 0;
  auto next = expected.begin();
  const auto lost_before = [&](std::optional<ByteView> key) {
    for (; next != expected.end() && (!key || next->first < *key); ++next)
      differences.push_back({next->first,
                             {FindingKind::lost_record,
                              fmt::format("the record {} of {} is lost: a hole in the directory",
                                          to_hex(next->first), to_string(next->second))}});
  };
  Bytes begin(directory_start);
  for (bool more = true; more;) {
    TRY_ASSIGN(
        const ScanPage page,
        engine.scan({.begin = begin, .end = directory_end}, [&](ByteView key, ByteView value) {
          records++;
          lost_before(key);
          if (next != expected.end() && next->first == key) ++next;
          if (auto finding = judge_record(key, value, ranges))
            differences.push_back({Bytes(key), std::move(*finding)});
          return Visit::go_on;
        }));
    more = page.resume.has_value();
    if (more) begin = *page.resume;
  }
  lost_before(std::nullopt);
  return records;
}

Result<VerifyReport> verify_once(RangeHome& home, Engine& engine) {
  VerifyReport report;
  TRY_ASSIGN(HomeRanges ranges, read_ranges(home));
  std::vector<RecordDifference> differences;
  TRY_ASSIGN(report.records, compare(engine, ranges, differences));
  report.ranges = ranges.count;
  report.of_ranges = std::move(ranges.findings);
  for (RecordDifference& each : differences) report.of_directory.push_back(std::move(each.finding));
  return report;
}

void keep_common(std::vector<RangeFinding>& findings, const std::vector<RangeFinding>& others) {
  std::unordered_set<std::string_view> texts;  // each says all that there is to say
  for (const RangeFinding& other : others) texts.insert(other.text);
  std::erase_if(findings, [&](const RangeFinding& each) { return !texts.contains(each.text); });
}

// Each key as it is now, with what a commit needs to rely on it.
Result<std::vector<Expectation>> read_evidence(Engine& engine,
                                               const std::vector<RecordDifference>& differences) {
  std::vector<Expectation> out;
  for (const RecordDifference& each : differences) {
    Value value;
    TRY(engine.get(each.key, value));
    out.push_back({each.key, std::nullopt, engine.evidence(value)});
  }
  return out;
}

// The keys as they must be. What changed since its evidence was read is left to the next round.
Status repair(Engine& engine, const ExpectedRecords& expected, std::span<const Expectation> seen,
              RebuildReport& report) {
  for (size_t from = 0; from < seen.size(); from += rebuild_commit_records) {
    Commit change;
    RebuildReport changed;
    for (const Expectation& each :
         seen.subspan(from, std::min(rebuild_commit_records, seen.size() - from))) {
      change.expectations.push_back(each);
      const auto place = expected.find(each.begin);
      if (place != expected.end()) {
        change.writes.put(each.begin, encode_descriptor(place->second));
        changed.written++;
      } else {
        change.writes.remove(each.begin);
        changed.removed++;
      }
    }
    const Status done = commit(engine, change);
    if (done.has_value()) {
      report.written += changed.written;
      report.removed += changed.removed;
    } else if (done.error().code != Code::conflict) {
      return done;
    }
  }
  return {};
}

}  // namespace

std::string_view to_string(RangeFinding::Kind kind) {
  constexpr std::string_view names[] = {
      "hole",        "overlap",      "bad border",       "bad range",
      "same id",     "lost record",  "wrong generation", "wrong bounds",
      "wrong range", "stray record", "bad record"};
  return names[static_cast<size_t>(kind)];
}

Result<VerifyReport> verify_directory(RangeHome& home, Engine& engine) {
  TRY_ASSIGN(VerifyReport report, verify_once(home, engine));
  if (report.clean()) return report;
  TRY_ASSIGN(const VerifyReport again, verify_once(home, engine));
  keep_common(report.of_ranges, again.of_ranges);
  keep_common(report.of_directory, again.of_directory);
  return report;
}

Result<RebuildReport> rebuild_directory(RangeHome& home, Engine& engine) {
  RebuildReport report;
  for (unsigned round = 0; round < rebuild_rounds_max; round++) {
    std::vector<RecordDifference> differences;
    {
      TRY_ASSIGN(const HomeRanges ranges, read_ranges(home));
      TRY(compare(engine, ranges, differences));
      if (ranges.findings.empty() && differences.empty()) return report;
    }
    // Evidence first and ranges then: a range that changes after its evidence was read changes the
    // records too, and the commit is refused.
    TRY_ASSIGN(const std::vector<Expectation> seen, read_evidence(engine, differences));
    TRY_ASSIGN(const HomeRanges ranges, read_ranges(home));
    if (!ranges.findings.empty())
      return Error{
          Code::corrupt,
          fmt::format("the ranges themselves do not tile the map, so the directory cannot "
                      "be made from them: {} ({} in all; 'trellis range verify' lists them)",
                      ranges.findings[0].text, ranges.findings.size())};
    TRY(repair(engine, ranges.expected, seen, report));
  }
  return Error{
      Code::conflict,
      "ranges are split and merged faster than the directory is rebuilt: run it again when "
      "that is over"};
}

}  // namespace trellis
