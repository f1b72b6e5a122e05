#include "cluster_engine/range_lookup.h"

#include <fmt/format.h>

#include <algorithm>

#include "codec/meta_keys.h"

namespace trellis {
namespace {

constexpr unsigned restarts_max = 8;
// Tombstones that are met on one way.
constexpr unsigned forwards_max = 1'000;
// Others insert into the range that a record is in, or it is split: what failed is done again.
constexpr unsigned record_attempts_max = 8;

Error moving_error(ByteView address) {
  return Error{
      Code::unavailable,
      fmt::format("the ranges around address {} keep changing: try again", to_hex(address))};
}

// A record as it stands, with the header of the range that it is in.
struct StoredRecord {
  RangeHeader holder;
  Bytes key;
  Bytes stored;     // with its format byte; empty: none
  Bytes structure;  // the counter of the holder
  uint64_t version = 0;
  std::optional<RangeDescriptor> range;
};

Result<StoredRecord> read_record(ObjectStore& store, FaultPoint point, const Bytes& key) {
  StoredRecord record;
  record.key = key;
  TRY_ASSIGN(record.holder, find_range(store, key));
  if (!record.holder.may_write(key))
    return Error{Code::conflict, to_string(record.holder) + " is being changed"};
  const Bytes payload_key = entry_key(EntryKind::payload, key);
  const Bytes intent_key = entry_key(EntryKind::intent, key);
  const Bytes structure_key = entry_key(EntryKind::structure, {});
  ReadAnswer answer;
  const Bytes object = range_object_name(record.holder.id);
  TRY(object_status(store.read(point, object,
                               {.guards = {generation_is(record.holder)},
                                .omap_keys = {payload_key, intent_key, structure_key}},
                               answer),
                    object));
  if (answer.omap.contains(intent_key))
    return Error{Code::conflict, "a record of the directory is being written"};
  record.version = answer.version;
  record.structure = answer.omap[structure_key];
  if (const auto found = answer.omap.find(payload_key); found != answer.omap.end()) {
    record.stored = found->second;
    // A damaged one is as good as none.
    if (const Result<ByteView> value = decode_payload(record.stored); value.has_value())
      if (Result<RangeDescriptor> range = decode_descriptor(*value); range.has_value())
        record.range = std::move(*range);
  }
  return record;
}

// Replaces, inserts or (without `value`) removes a record that nobody has changed since.
Status write_record(ObjectStore& store, FaultPoint point, const StoredRecord& record,
                    const std::optional<Bytes>& value, const RangeDescriptor& by) {
  const Bytes writer = encode_range_writer(value ? 'd' : 'x', by.id, by.generation, record.version);
  const Bytes payload_key = entry_key(EntryKind::payload, record.key);
  const Bytes version_key = entry_key(EntryKind::version, record.key);
  WriteOperation operation;
  operation.guards = {generation_is(record.holder),
                      OmapIs{payload_key, Compare::equal, record.stored},
                      OmapIs{entry_key(EntryKind::intent, record.key), Compare::equal, ""}};
  if (value) {
    operation.changes.emplace_back(OmapSet{payload_key, encode_payload(*value)});
    operation.changes.emplace_back(OmapSet{version_key, writer});
  } else {
    operation.changes.emplace_back(OmapRemove{payload_key});
    operation.changes.emplace_back(OmapRemove{version_key});
  }
  if (!value || record.stored.empty()) {
    // The key appears or disappears. The guard keeps a late or second arrival of this operation
    // from bringing back a counter that somebody saw before.
    const Bytes structure_key = entry_key(EntryKind::structure, {});
    operation.guards.emplace_back(OmapIs{structure_key, Compare::equal, record.structure});
    operation.changes.emplace_back(OmapSet{structure_key, writer});
  }
  const Bytes object = range_object_name(record.holder.id);
  return object_status(store.write(point, object, operation), object);
}

// Unless it is as new as `by` already, or there is nothing to remove.
Status change_record(ObjectStore& store, FaultPoint point, const Bytes& key,
                     const RangeDescriptor& by, const std::optional<Bytes>& value) {
  Status done;
  for (unsigned attempt = 0; attempt < record_attempts_max; ++attempt) {
    const Result<StoredRecord> record = read_record(store, point, key);
    if (record.has_value()) {
      if (record->range && record->range->generation >= by.generation) return {};
      if (!value && record->stored.empty()) return {};
      done = write_record(store, point, *record, value, by);
    } else {
      done = Error(record.error());
    }
    if (done.has_value() || done.error().code != Code::conflict) return done;
  }
  return done;
}

}  // namespace

Result<MetaRead> ObjectMetaReader::read(const RangeDescriptor& from,
                                        std::span<const MetaScan> scans) {
  ReadOperation operation{.want_attributes = true};
  for (const MetaScan& scan : scans) {
    // Pages start after a key: the first one is asked for by name.
    operation.omap_keys.push_back(entry_key(EntryKind::payload, scan.begin));
    operation.omap_pages.push_back({.start_after = operation.omap_keys.back(),
                                    .prefix = entry_key(EntryKind::payload, {}),
                                    .entries_max = scan.entries_max});
  }
  const Bytes object = range_object_name(from.id);
  ReadAnswer answer;
  const Status done =
      object_status(store_.read("directory.read", object, operation, answer), object);
  if (!done.has_value() && done.error().code == Code::not_found)
    return Error{Code::conflict, to_string(from) + " is not there any more"};
  TRY(done);
  TRY_ASSIGN(const RangeHeader header, decode_header(from.id, answer));
  if (!header.may_read()) return Error{Code::conflict, to_string(header) + " cannot be read"};

  MetaRead result{to_descriptor(header), {}};
  for (size_t i = 0; i < scans.size(); ++i) {
    std::vector<MetaRecord>& records = result.records.emplace_back();
    const auto take = [&](ByteView key, ByteView stored) -> Status {
      const ByteView address = key.substr(1);
      if (records.size() >= scans[i].entries_max || address >= scans[i].end ||
          !header.holds(address))
        return {};
      TRY_ASSIGN(const ByteView value, decode_payload(stored));
      records.push_back({Bytes(address), Bytes(value)});
      return {};
    };
    if (const auto first = answer.omap.find(operation.omap_keys[i]); first != answer.omap.end())
      TRY(take(first->first, first->second));
    for (const auto& [key, value] : answer.pages[i].entries) TRY(take(key, value));
  }
  return result;
}

Result<RangeHeader> find_range_from(ObjectStore& store, RangeId hint, ByteView address, Side side,
                                    FunctionRef<void(const RangeHeader&)> passed) {
  const auto is_inside = [&](const RangeHeader& range) {
    return side == Side::at ? range.holds(address) : range.start < address && address <= range.end;
  };
  if (side == Side::at ? address >= map_key_max : address > map_key_max || address.empty())
    return Error{Code::invalid, "no range holds address " + to_hex(address)};
  for (unsigned restart = 0; restart < restarts_max; ++restart) {
    RangeId id = restart == 0 ? hint : first_range_id;
    Bytes left_end;  // of the range before
    for (unsigned forwards = 0; forwards < forwards_max;) {
      Result<RangeHeader> header = read_header(store, "range.header", id);
      if (!header.has_value()) {
        if (header.error().code == Code::not_found && id != first_range_id) break;
        return header;
      }
      const bool is_left = side == Side::at ? address < header->start : address <= header->start;
      if (header->state == RangeState::building || is_left) break;
      if (header->state == RangeState::gone) {
        id = header->other;
        left_end.clear();
        ++forwards;
        continue;
      }
      if (is_inside(*header)) {
        // Merged already, and only not yet emptied?
        if (header->state == RangeState::frozen)
          if (Result<RangeHeader> left = read_header(store, "range.header", header->other);
              left.has_value() && left->state == RangeState::merged && is_inside(*left))
            return left;
        return header;
      }
      if (header->end <= left_end)
        return Error{Code::corrupt, to_string(*header) + " is on the right of itself: run " +
                                        "'trellis range verify'"};
      passed(*header);
      id = header->right;
      left_end = header->end;
    }
  }
  return moving_error(address);
}

Result<RangeHeader> find_range(ObjectStore& store, ByteView address) {
  ObjectMetaReader reader(store);
  Directory directory(reader);
  // Whatever is wrong with the directory, the ranges know better.
  const Result<DirectoryAnswer> hint = directory.find(address, Side::at);
  return find_range_from(store, hint.has_value() ? hint->range.id : first_range_id, address);
}

Status for_each_range(ObjectStore& store, FunctionRef<Visit(const RangeHeader&)> visit) {
  Bytes at;
  RangeId id = first_range_id;
  while (true) {
    TRY_ASSIGN(const RangeHeader header, find_range_from(store, id, at));
    if (visit(header) == Visit::stop || header.end >= map_key_max) return {};
    at = header.end;
    id = header.right;
  }
}

Status record_range(ObjectStore& store, FaultPoint point, const RangeHeader& range) {
  const RangeDescriptor descriptor = to_descriptor(range);
  TRY_ASSIGN(const std::vector<Bytes> keys, directory_keys(descriptor));
  for (const Bytes& key : keys)
    TRY(change_record(store, point, key, descriptor, encode_descriptor(descriptor)));
  return {};
}

Status forget_range(ObjectStore& store, FaultPoint point, const RangeDescriptor& before,
                    const RangeDescriptor& after) {
  TRY_ASSIGN(const std::vector<Bytes> keys, directory_keys(before));
  TRY_ASSIGN(const std::vector<Bytes> kept, directory_keys(after));
  for (const Bytes& key : keys)
    if (std::ranges::find(kept, key) == kept.end())
      TRY(change_record(store, point, key, after, std::nullopt));
  return {};
}

}  // namespace trellis
