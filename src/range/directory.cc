#include "range/directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codec/meta_keys.h"

namespace trellis {

namespace {

constexpr ByteView meta1_start{"\x02", 1};
constexpr ByteView meta2_start{"\x03", 1};
constexpr ByteView meta2_end{"\x04", 1};

// A lookup that meets a split or merge half way looks again; what is still wrong then stays wrong.
constexpr unsigned lookup_attempts_max = 3;
// Meta2 ranges that one lookup goes through: the one of the address, and those that it straddles.
constexpr unsigned lookup_hops_max = 16;

bool in_last_of_meta2(ByteView address) { return meta2_key_max <= address && address < meta2_end; }

bool may_be_border(ByteView address) {
  return meta2_start <= address && address <= map_key_max && !in_last_of_meta2(address);
}

Error directory_error(std::string_view what) {
  return Error{Code::corrupt, fmt::format("{}: run 'trellis range verify'", what)};
}

Error hole_at(ByteView address) {
  return directory_error(
      fmt::format("the directory of ranges has no record for address {}", to_hex(address)));
}

// Where the first record is the one wanted. Nothing in [03ffff, 04) is ever split from 03ffff.
MetaScan scan_for(ByteView address, Side side, size_t entries_max) {
  if (address < meta2_start) return {Bytes(meta1_start), Bytes(meta2_start), entries_max};
  if (in_last_of_meta2(address)) address = meta2_key_max;
  const bool meta1 = address < meta2_end;
  Bytes begin(meta1 ? meta1_start : meta2_start);
  begin += meta1 ? address.substr(1) : address;
  // The record of the last meta2 range sits where it ends: what lies there is its own.
  if (side == Side::at && begin != meta1_key_max) begin.push_back('\0');
  return {std::move(begin), Bytes(meta1 ? meta2_start : meta2_end), entries_max};
}

Result<RangeDescriptor> decode_record(const MetaRecord& record) {
  Result<RangeDescriptor> range = decode_descriptor(record.value);
  if (!range.has_value())
    return directory_error(
        fmt::format("the record {}: {}", to_hex(record.key), range.error().message));
  const Result<std::vector<Bytes>> keys = directory_keys(*range);
  if (!keys.has_value() || std::find(keys->begin(), keys->end(), record.key) == keys->end())
    return directory_error(
        fmt::format("the record {} is of {}", to_hex(record.key), to_string(*range)));
  return range;
}

}  // namespace

RangeDescriptor bootstrap_range(Bytes home) {
  return {first_range_id, Bytes(), Bytes(map_key_max), 1, std::move(home), 0};
}

Result<std::vector<Bytes>> directory_keys(const RangeDescriptor& range) {
  if ((!range.start.empty() && !may_be_border(range.start)) || !may_be_border(range.end) ||
      range.start >= range.end)
    return Error{Code::invalid,
                 fmt::format("{}: no range begins or ends inside of meta1, in [03ffff, 04) or "
                             "beyond ffff; choose another border",
                             to_string(range))};
  std::vector<Bytes> keys;
  TRY_ASSIGN(keys.emplace_back(), range_meta_key(range.end));
  if (range.start < meta2_end && range.end >= meta2_end) keys.emplace_back(meta1_key_max);
  return keys;
}

Status append_directory_writes(WriteSet& writes, std::span<const RangeDescriptor> before,
                               std::span<const RangeDescriptor> after) {
  for (const RangeDescriptor& range : before) {
    TRY_ASSIGN(const std::vector<Bytes> keys, directory_keys(range));
    for (const Bytes& key : keys) writes.remove(key);
  }
  for (const RangeDescriptor& range : after) {
    TRY_ASSIGN(const std::vector<Bytes> keys, directory_keys(range));
    for (const Bytes& key : keys) writes.put(key, encode_descriptor(range));
  }
  return {};
}

Result<MetaRead> EngineMetaReader::read(const RangeDescriptor& from,
                                        std::span<const MetaScan> scans) {
  MetaRead answer{from, {}};
  const auto scan = [&](ByteView begin, ByteView end, size_t entries_max) -> Status {
    std::vector<MetaRecord>& records = answer.records.emplace_back();
    if (begin >= end) return {};
    TRY(engine_.scan({.begin = begin, .end = end, .entries_max = entries_max},
                     [&](ByteView key, ByteView value) {
                       records.push_back({Bytes(key), Bytes(value)});
                       return Visit::go_on;
                     }));
    return {};
  };
  if (from.generation == 0) {
    // The first record of meta1 is that of the range that meta1 is in.
    TRY(scan(meta1_start, meta2_start, 1));
    if (answer.records[0].empty()) return hole_at({});
    TRY_ASSIGN(answer.range, decode_record(answer.records[0][0]));
    if (!answer.range.start.empty()) return hole_at({});
    answer.records.clear();
  }
  for (const MetaScan& each : scans) {
    TRY(scan(std::max<ByteView>(each.begin, answer.range.start),
             std::min<ByteView>(each.end, answer.range.end), each.entries_max));
  }
  return answer;
}

struct Directory::Lookup {
  const ByteView address;
  const Side side;
  DirectoryAnswer answer;

  // The newest of what was seen that fits; null if nothing does.
  const RangeDescriptor* newest(ByteView at, Side at_side) const {
    const RangeDescriptor* best = nullptr;
    for (const RangeDescriptor& range : answer.others) {
      if (!holds(range, at, at_side)) continue;
      if (best == nullptr || range.generation > best->generation) best = &range;
    }
    return best;
  }
  // A bad record that is not the one wanted is left to whoever wants it, and to verify.
  Status take(const std::vector<MetaRecord>& records) {
    for (size_t i = 0; i < records.size(); i++) {
      Result<RangeDescriptor> range = decode_record(records[i]);
      if (range.has_value())
        answer.others.push_back(std::move(*range));
      else if (i == 0)
        return Error(std::move(range).error());
    }
    return {};
  }
  Status finish() {
    const RangeDescriptor* found = newest(address, side);
    if (found == nullptr) return hole_at(address);
    const auto index = static_cast<size_t>(found - answer.others.data());
    answer.range = std::move(answer.others[index]);
    answer.others.erase(answer.others.begin() + static_cast<ptrdiff_t>(index));
    return {};
  }
};

Directory::Directory(MetaReader& reader, Bytes first_home)
    : reader_(reader), first_{first_range_id,        Bytes(), Bytes(map_key_max), 0,
                              std::move(first_home), 0} {}

Result<MetaRead> Directory::read(Lookup& lookup, const RangeDescriptor& from,
                                 std::span<const MetaScan> scans) {
  lookup.answer.reads++;
  reads_.fetch_add(1, std::memory_order_relaxed);
  return reader_.read(from, scans);
}

Status Directory::look_in_meta1(Lookup& lookup) {
  const MetaScan scans[] = {scan_for(lookup.address, lookup.side, 1 + directory_prefetch)};
  TRY_ASSIGN(const MetaRead answer, read(lookup, first_, scans));
  TRY(lookup.take(answer.records[0]));
  return lookup.finish();
}

Result<RangeDescriptor> Directory::meta2_range_at(Lookup& lookup, ByteView position) {
  const RangeDescriptor* range = lookup.newest(position, Side::at);
  if (range == nullptr) {
    const MetaScan scans[] = {scan_for(position, Side::at, 1 + directory_prefetch)};
    TRY_ASSIGN(const MetaRead answer, read(lookup, first_, scans));
    TRY(lookup.take(answer.records[0]));
    range = lookup.newest(position, Side::at);
  }
  if (range == nullptr) return hole_at(position);
  return *range;
}

Status Directory::look(Lookup& lookup, const RangeDescriptor* meta2_range) {
  if (lookup.address < meta2_end) return look_in_meta1(lookup);
  MetaScan scan = scan_for(lookup.address, lookup.side, 1 + directory_prefetch);
  RangeDescriptor from = meta2_range != nullptr ? *meta2_range : first_;
  for (unsigned hop = 0; hop < lookup_hops_max; hop++) {
    const bool first = from.generation == 0;
    std::vector<MetaScan> scans{scan};
    // The ranges of meta2 that may be next: more than one, should the record straddle.
    if (first) scans.push_back(scan_for(scan.begin, Side::at, 1 + directory_prefetch));
    TRY_ASSIGN(const MetaRead answer, read(lookup, from, scans));
    if (!answer.records[0].empty()) {
      TRY(lookup.take(answer.records[0]));
      if (first) discard(lookup.take(answer.records[1]));  // only to be remembered
      return lookup.finish();
    }
    if (first) TRY(lookup.take(answer.records[1]));
    if (answer.range.end >= meta2_end) return hole_at(lookup.address);
    if (answer.range.holds(scan.begin))
      scan.begin = answer.range.end;  // the record straddles
    else if (!first)
      return Error{Code::conflict, to_string(answer.range) + " is not what it was; look again"};
    TRY_ASSIGN(from, meta2_range_at(lookup, scan.begin));
    // The range that was known as it is now: asking it again would not end.
    if (from.id == first_range_id) return hole_at(scan.begin);
  }
  return hole_at(lookup.address);
}

Result<DirectoryAnswer> Directory::find(ByteView address, Side side,
                                        const RangeDescriptor* meta2_range) {
  const bool inside =
      side == Side::at ? address < map_key_max : !address.empty() && address <= map_key_max;
  if (!inside)
    return Error{Code::invalid, fmt::format("no range holds what is {} address '{}'",
                                            side == Side::at ? "at" : "before", to_hex(address))};
  Lookup lookup{address, side, {}};
  Status done;
  for (unsigned attempt = 0; attempt < lookup_attempts_max; attempt++) {
    lookup.answer.others.clear();
    done = look(lookup, attempt == 0 ? meta2_range : nullptr);
    if (done.has_value()) return std::move(lookup.answer);
    if (done.error().code != Code::corrupt && done.error().code != Code::conflict) break;
  }
  return Error(std::move(done).error());
}

}  // namespace trellis
