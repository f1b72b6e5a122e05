#include "cluster_engine/cluster_read.h"

#include <algorithm>
#include <cerrno>

#include "codec/meta_keys.h"
#include "engine/page_evidence.h"

namespace trellis {
namespace {

constexpr unsigned read_attempts_max = 100'000;
constexpr size_t page_entries_max = omap_read_entries_max;
constexpr size_t page_entries_min = 8;  // of one operation: what is skipped costs little
constexpr size_t intents_max = 64;
constexpr size_t assumed_entry_bytes = 16 * 1024;

Error look_again() { return {Code::conflict, "it was changed while it was read"}; }

Error too_busy() {
  return {Code::unavailable, "the ranges change all the time: try again, or read less at once"};
}

Bytes omap_value(const ReadAnswer& answer, const Bytes& key) {
  const auto found = answer.omap.find(key);
  return found == answer.omap.end() ? Bytes() : found->second;
}

ByteView end_within(ByteView end, const RangeHeader& range) {
  return end.empty() ? ByteView(range.end) : std::min(end, ByteView(range.end));
}

}  // namespace

Status ClusterReader::ask(FaultPoint point, const RangeHeader& range, ReadOperation operation,
                          ReadAnswer& answer) {
  operation.guards.push_back(generation_is(range));
  const Bytes object = range_object_name(range.id);
  const int status = store_.read(point, object, operation, answer);
  if (status != -ECANCELED && status != -ENOENT) return object_status(status, object);
  router_.forget(range);
  return look_again();
}

// --- keys ---

Status ClusterReader::read(std::span<const Bytes> addresses, std::span<VersionedRecord> records,
                           Instant instant) {
  Patience patience(router_.clock(), router_.patience_us());
  for (unsigned attempt = 0; attempt < read_attempts_max; attempt++) {
    const Status status = read_once(addresses, records, instant, patience);
    if (status.has_value()) return {};
    if (status.error().code != Code::conflict) return without_doubt(status.error());
  }
  return too_busy();
}

namespace {

struct RangeKeys {
  RangePointer range;
  std::vector<size_t> indexes;
  Bytes structure;
};
using KeysByRange = std::map<RangeId, RangeKeys>;

Result<KeysByRange> group_keys(RangeRouter& router, std::span<const Bytes> addresses) {
  KeysByRange groups;
  RangeKeys* last = nullptr;
  for (size_t i = 0; i < addresses.size(); i++) {
    if (addresses[i] >= map_key_max) continue;  // nothing is there
    if (last == nullptr || !last->range->holds(addresses[i])) {
      TRY_ASSIGN(RangePointer range, router.find(addresses[i]));
      last = &groups[range->id];
      // It was split or merged just now: what was put there may be elsewhere.
      if (last->range != nullptr && last->range->generation != range->generation)
        return look_again();
      last->range = std::move(range);
    }
    last->indexes.push_back(i);
  }
  return groups;
}

Status fill_records(const RangeKeys& keys, std::span<const Bytes> addresses,
                    const ReadAnswer& answer, std::span<VersionedRecord> records) {
  for (const size_t i : keys.indexes) {
    VersionedRecord& record = records[i];
    record = {};
    record.version = omap_value(answer, entry_key(EntryKind::version, addresses[i]));
    record.found = !record.version.empty();
    if (!record.found) continue;
    const Bytes payload = omap_value(answer, entry_key(EntryKind::payload, addresses[i]));
    TRY_ASSIGN(record.value, decode_payload(payload));
  }
  return {};
}

}  // namespace

Status ClusterReader::read_once(std::span<const Bytes> addresses,
                                std::span<VersionedRecord> records, Instant instant,
                                Patience& patience) {
  const Bytes structure_key = entry_key(EntryKind::structure, {});
  TRY_ASSIGN(KeysByRange groups, group_keys(router_, addresses));
  for (auto& [id, keys] : groups) {
    ReadOperation operation;
    operation.omap_keys.push_back(structure_key);
    for (const size_t i : keys.indexes)
      for (const EntryKind kind : {EntryKind::payload, EntryKind::version, EntryKind::intent})
        operation.omap_keys.push_back(entry_key(kind, addresses[i]));
    ReadAnswer answer;
    TRY(ask("get", *keys.range, std::move(operation), answer));
    std::vector<std::pair<Bytes, Bytes>> intents;
    const Bytes first_intent = entry_key(EntryKind::intent, {});
    for (auto at = answer.omap.lower_bound(first_intent);
         at != answer.omap.end() && at->first[0] == first_intent[0]; ++at)
      intents.push_back(*at);
    if (!intents.empty()) {
      TRY_ASSIGN(const StoredIntents met, first_commit_of(intents));
      TRY(log_.meet(*keys.range, met, patience));
      return look_again();
    }
    keys.structure = omap_value(answer, structure_key);
    TRY(fill_records(keys, addresses, answer, records));
  }
  if (groups.size() < 2 || instant == Instant::any) return {};
  for (const auto& [id, keys] : groups) {
    ReadOperation again;
    bool absent = false;
    for (const size_t i : keys.indexes) {
      absent |= !records[i].found;
      again.guards.emplace_back(
          OmapIs{entry_key(EntryKind::version, addresses[i]), Compare::equal, records[i].version});
      again.guards.emplace_back(
          OmapIs{entry_key(EntryKind::intent, addresses[i]), Compare::equal, ""});
    }
    if (absent) again.guards.emplace_back(OmapIs{structure_key, Compare::equal, keys.structure});
    ReadAnswer answer;
    TRY(ask("get.again", *keys.range, std::move(again), answer));
  }
  return {};
}

// --- pages ---

Result<ClusterReader::Page> ClusterReader::scan(const ScanRequest& request) {
  if (empty_interval(request.begin, request.end)) return Page{};
  Patience patience(router_.clock(), router_.patience_us());
  for (unsigned attempt = 0; attempt < read_attempts_max; attempt++) {
    Result<Page> page = scan_once(request, patience);
    if (page.has_value()) return page;
    if (page.error().code != Code::conflict) return without_doubt(page.error());
  }
  return too_busy();
}

Result<ClusterReader::Page> ClusterReader::scan_once(const ScanRequest& request,
                                                     Patience& patience) {
  Page page;
  Parts parts;
  size_t bytes = 0;
  const size_t entries_max = std::min(request.entries_max, page_entries_max);
  const auto read = [&](ByteView begin, ByteView end, bool reverse, AddressChunk& chunk) {
    // No more than probably fit: values may be large.
    const size_t count = page.entries.size();
    const size_t entry_bytes = count == 0 ? assumed_entry_bytes : bytes / count + 1;
    const size_t fitting = (request.bytes_max - std::min(bytes, request.bytes_max)) / entry_bytes;
    return read_chunk(begin, end, reverse, std::min(entries_max - count, fitting) + 1, chunk, parts,
                      patience);
  };
  const auto take = [&](ByteView key, StoredEntry& entry) {
    const size_t size = key.size() + entry.value.size();
    const bool full = page.entries.size() >= entries_max ||
                      (!page.entries.empty() && bytes + size > request.bytes_max);
    if (full) {
      page.complete = false;
      return Visit::stop;
    }
    bytes += size;
    page.entries.emplace_back(key, std::move(entry));
    return Visit::go_on;
  };
  TRY_ASSIGN(
      const std::optional<Bytes> cut,
      walk_stored_order({request.begin, request.end, request.reverse, entries_max}, read, take));
  if (cut) page.complete = false;
  if (parts.size() > 1) TRY(confirm(parts, page));
  for (Part& part : parts)
    page.evidence.parts.push_back(
        {std::move(part.begin), std::move(part.end), std::move(part.structure)});
  return page;
}

// Prepares change the structure counter too: unchanged, no intent has come either.
Status ClusterReader::confirm(const Parts& parts, const Page& page) {
  const Bytes structure_key = entry_key(EntryKind::structure, {});
  std::map<RangeId, const Part*> ranges;
  for (const Part& part : parts) {
    const auto [known, is_new] = ranges.emplace(part.range->id, &part);
    if (known->second->structure != part.structure ||
        known->second->range->generation != part.range->generation)
      return look_again();
  }
  for (const auto& [id, part] : ranges) {
    ReadOperation again;
    again.guards.emplace_back(OmapIs{structure_key, Compare::equal, part->structure});
    for (const auto& [key, entry] : page.entries)
      if (part->range->holds(entry.address))
        again.guards.emplace_back(
            OmapIs{entry_key(EntryKind::version, entry.address), Compare::equal, entry.version});
    ReadAnswer answer;
    TRY(ask("scan.again", *part->range, std::move(again), answer));
  }
  return {};
}

Status ClusterReader::read_chunk(ByteView begin, ByteView end, bool reverse, size_t wanted,
                                 AddressChunk& chunk, Parts& parts, Patience& patience) {
  if (end.empty() || end > map_key_max) end = map_key_max;  // nothing is behind it
  if (begin >= end) return {};
  wanted = std::clamp(wanted, page_entries_min, page_entries_max);
  if (!reverse) {
    TRY_ASSIGN(const RangePointer range, router_.find(begin));
    return read_forward(range, begin, end, wanted, chunk, parts, patience);
  }
  TRY_ASSIGN(const RangePointer range, router_.find(end, Side::before));
  return read_backward(range, begin, end, wanted, chunk, parts, patience);
}

Status ClusterReader::read_forward(const RangePointer& range, ByteView begin, ByteView end,
                                   size_t wanted, AddressChunk& chunk, Parts& parts,
                                   Patience& patience) {
  const ByteView limit = end_within(end, *range);
  const Bytes structure_key = entry_key(EntryKind::structure, {});
  ReadOperation operation;
  operation.omap_keys.push_back(structure_key);
  for (const EntryKind kind : {EntryKind::payload, EntryKind::version, EntryKind::intent}) {
    operation.omap_keys.push_back(entry_key(kind, begin));  // pages begin behind a key
    operation.omap_pages.push_back(
        {.start_after = operation.omap_keys.back(),
         .prefix = entry_key(kind, {}),
         .entries_max = kind == EntryKind::intent ? intents_max : wanted});
  }
  const std::vector<Bytes> first_keys(operation.omap_keys.begin() + 1, operation.omap_keys.end());
  ReadAnswer answer;
  TRY(ask("scan", *range, std::move(operation), answer));
  for (size_t i = 0; i < first_keys.size(); i++)
    if (const auto first = answer.omap.find(first_keys[i]); first != answer.omap.end())
      answer.pages[i].entries.insert(answer.pages[i].entries.begin(), *first);

  OmapPage& payloads = answer.pages[0];
  std::vector<std::pair<Bytes, Bytes>>& versions = answer.pages[1].entries;
  Bytes covered(limit);
  if (payloads.more && payloads.entries.empty())
    return Error{Code::unavailable, to_string(*range) + ": a page without entries"};
  if (payloads.more)
    covered = std::min(covered, successor(ByteView(payloads.entries.back().first).substr(1)));
  std::vector<std::pair<Bytes, Bytes>>& intents = answer.pages[2].entries;
  std::erase_if(intents, [&](const auto& intent) { return intent.first.substr(1) >= covered; });
  if (!intents.empty()) {
    TRY_ASSIGN(const StoredIntents met, first_commit_of(intents));
    TRY(log_.meet(*range, met, patience));
    return look_again();
  }
  size_t v = 0;
  for (auto& [key, stored] : payloads.entries) {
    const ByteView address = ByteView(key).substr(1);
    if (address >= covered) break;
    while (v < versions.size() && ByteView(versions[v].first).substr(1) < address) v++;
    if (v == versions.size() || ByteView(versions[v].first).substr(1) != address)
      return Error{Code::corrupt, to_string(*range) + ": a value without a version"};
    TRY_ASSIGN(const ByteView value, decode_payload(stored));
    chunk.entries.push_back({Bytes(address), Bytes(value), versions[v].second});
  }
  parts.push_back({range, Bytes(begin), covered, omap_value(answer, structure_key)});
  if (covered < end) chunk.covered = std::move(covered);
  return {};
}

// The store has no reverse order: all of the part is read, or the place is looked for from which on
// one operation reads to its end.
Status ClusterReader::read_backward(const RangePointer& range, ByteView begin, ByteView end,
                                    size_t wanted, AddressChunk& chunk, Parts& parts,
                                    Patience& patience) {
  const Bytes limit(end_within(end, *range));
  Bytes from(std::max(begin, ByteView(range->start)));
  const size_t parts_before = parts.size();
  TRY(read_forward(range, from, limit, page_entries_max, chunk, parts, patience));
  const Bytes first = from;
  while (chunk.covered) {
    // The store gives fewer at once; or more have come in between.
    wanted = std::min(wanted, chunk.entries.size()) - 1;
    if (wanted == 0) return look_again();
    chunk = {};
    parts.resize(parts_before);
    TRY_ASSIGN(from, find_last(*range, first, limit, wanted));
    TRY(read_forward(range, from, limit, page_entries_max, chunk, parts, patience));
  }
  std::reverse(chunk.entries.begin(), chunk.entries.end());
  if (begin < from) chunk.covered = std::move(from);
  return {};
}

// From where on there are `wanted` entries, or all.
Result<Bytes> ClusterReader::find_last(const RangeHeader& range, ByteView begin, ByteView end,
                                       size_t wanted) {
  std::vector<Bytes> last{Bytes(begin)};
  Bytes start_after = entry_key(EntryKind::version, begin);
  for (bool more = true; more;) {
    ReadOperation operation;
    operation.omap_pages.push_back(
        {.start_after = start_after, .prefix = entry_key(EntryKind::version, {})});
    ReadAnswer answer;
    TRY(ask("scan.find", range, std::move(operation), answer));
    more = answer.pages[0].more;
    for (auto& [key, version] : answer.pages[0].entries) {
      start_after = key;
      key.erase(0, 1);
      if (key >= end) {
        more = false;
        break;
      }
      last.push_back(std::move(key));
    }
    if (last.size() > wanted) last.erase(last.begin(), last.end() - static_cast<ptrdiff_t>(wanted));
  }
  return std::move(last.front());
}

}  // namespace trellis
