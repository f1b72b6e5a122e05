#include "redis/stream_payload.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/limits.h"
#include "codec/redis_keys.h"
#include "redis/number_text.h"
#include "redis/rdb_reader.h"

namespace trellis {
namespace {

constexpr size_t node_entries_max = 100;
constexpr size_t node_bytes_max = 4096;
constexpr int64_t flag_deleted = 1;
constexpr int64_t flag_same_fields = 2;

std::vector<ByteView> strings_of(ByteView entry) {
  std::vector<ByteView> strings;
  // What is stored was written by append_stream_entry, or checked when it was read.
  (void)visit_stream_entry(entry, [&](ByteView string) { strings.push_back(string); });
  return strings;
}

// --- writing ---

void append_id(Bytes& out, const StreamId& id) {
  append_length(out, id.ms);
  append_length(out, id.seq);
}

bool has_fields(std::span<const ByteView> strings, std::span<const ByteView> fields) {
  if (strings.size() != 2 * fields.size()) return false;
  for (size_t i = 0; i < fields.size(); i++)
    if (strings[2 * i] != fields[i]) return false;
  return true;
}

void add_to_node(ListpackWriter& node, const StreamId& first, const RdbStream::Entry& entry,
                 std::span<const ByteView> fields) {
  const std::vector<ByteView> strings = strings_of(entry.entry);
  const bool is_same = has_fields(strings, fields);
  node.add(is_same ? flag_same_fields : 0);
  node.add(static_cast<int64_t>(entry.id.ms - first.ms));
  node.add(static_cast<int64_t>(entry.id.seq - first.seq));
  size_t items = 3;
  if (!is_same) {
    node.add(static_cast<int64_t>(strings.size() / 2));
    items++;
  }
  for (size_t i = 0; i < strings.size(); i++) {
    if (is_same && i % 2 == 0) continue;
    node.add(strings[i]);
    items++;
  }
  node.add(static_cast<int64_t>(items));
}

// So many entries of a node, from the first on, and its listpack.
std::pair<size_t, Bytes> make_node(std::span<const RdbStream::Entry> entries) {
  std::vector<ByteView> fields;
  const std::vector<ByteView> strings = strings_of(entries[0].entry);
  for (size_t i = 0; i < strings.size(); i += 2) fields.push_back(strings[i]);
  ListpackWriter body;
  size_t count = 0;
  while (count < std::min(entries.size(), node_entries_max) && body.size_bytes() < node_bytes_max)
    add_to_node(body, entries[0].id, entries[count++], fields);
  ListpackWriter node;
  node.add(static_cast<int64_t>(count));
  node.add(int64_t{0});
  node.add(static_cast<int64_t>(fields.size()));
  for (const ByteView field : fields) node.add(field);
  node.add(int64_t{0});
  node.add(body);
  return {count, node.finish()};
}

void append_group(Bytes& out, const RdbStream::Group& group) {
  append_string(out, group.name);
  append_id(out, group.last);
  append_length(out, static_cast<uint64_t>(group.entries_read.value_or(entries_read_unknown)));
  append_length(out, group.pending.size());
  std::unordered_map<ByteView, std::vector<StreamId>> owned;
  for (const PendingEntry& entry : group.pending) {
    append_id_bytes(out, entry.id);
    append_le(out, entry.delivered_ms, sizeof(uint64_t));
    append_length(out, entry.deliveries);
    owned[entry.consumer].push_back(entry.id);
  }
  append_length(out, group.consumers.size());
  for (const RdbStream::Consumer& consumer : group.consumers) {
    const std::vector<StreamId>& ids = owned[consumer.name];
    append_string(out, consumer.name);
    append_le(out, consumer.seen_ms, sizeof(uint64_t));
    append_length(out, ids.size());
    for (const StreamId& id : ids) append_id_bytes(out, id);
  }
}

}  // namespace

Bytes write_rdb_stream(const RdbStream& stream) {
  const std::span<const RdbStream::Entry> entries(stream.entries);
  Bytes nodes;
  size_t node_count = 0;
  for (size_t at = 0; at < entries.size(); node_count++) {
    const auto [count, pack] = make_node(entries.subspan(at));
    Bytes first;
    append_id_bytes(first, entries[at].id);
    append_string(nodes, first);
    append_string(nodes, pack);
    at += count;
  }
  Bytes out(1, static_cast<char>(RdbStreamForm::listpacks_2));
  append_length(out, node_count);
  out += nodes;
  append_length(out, entries.size());
  for (const StreamId& id :
       {stream.head.last_generated, stream.head.first, stream.head.max_deleted})
    append_id(out, id);
  append_length(out, stream.head.entries_added);
  append_length(out, stream.groups.size());
  for (const RdbStream::Group& group : stream.groups) append_group(out, group);
  return out;
}

// --- reading ---

namespace {

// The entries of a listpack. What fails fails for good.
class ItemReader {
 public:
  explicit ItemReader(std::span<const Bytes> items) : items_(items) {}
  bool failed() const { return failed_; }
  bool at_end() const { return at_ == items_.size(); }
  ByteView text() {
    if (at_end()) failed_ = true;
    return failed_ ? ByteView() : ByteView(items_[at_++]);
  }
  int64_t number() {
    const auto number = parse_integer(text());
    if (!number) failed_ = true;
    return number.value_or(0);
  }
  // So many strings follow; false: there are not so many left.
  bool has(int64_t strings) const {
    return !failed_ && strings >= 0 && static_cast<uint64_t>(strings) <= items_.size() - at_;
  }

 private:
  const std::span<const Bytes> items_;
  size_t at_ = 0;
  bool failed_ = false;
};

bool read_entry(ItemReader& items, const StreamId& first, std::span<const ByteView> fields,
                RdbStream& stream) {
  const int64_t flags = items.number();
  RdbStream::Entry entry;
  entry.id.ms = first.ms + static_cast<uint64_t>(items.number());
  entry.id.seq = first.seq + static_cast<uint64_t>(items.number());
  const bool is_same = (flags & flag_same_fields) != 0;
  const int64_t count = is_same ? static_cast<int64_t>(fields.size()) : items.number();
  if (!items.has(count)) return false;
  std::vector<ByteView> strings;
  for (int64_t i = 0; i < count && !items.failed(); i++) {
    strings.push_back(is_same ? fields[static_cast<size_t>(i)] : items.text());
    strings.push_back(items.text());
  }
  items.number();  // how many there were, for who reads backwards
  if (items.failed() || strings.empty()) return false;
  if ((flags & flag_deleted) != 0) return true;
  append_stream_entry(entry.entry, strings);
  const StreamId last = stream.entries.empty() ? lowest_id : stream.entries.back().id;
  if (entry.id <= last || !is_entry_id(entry.id) || entry.entry.size() > string_bytes_max)
    return false;
  stream.entries.push_back(std::move(entry));
  return true;
}

bool read_node(RdbReader& reader, RdbStream& stream) {
  const Bytes id = reader.string();
  const Items packed = read_listpack(reader, reader.string());
  if (id.size() != 16 || !packed || reader.failed()) return false;
  const StreamId first{load_be(id.data(), 8), load_be(id.data() + 8, 8)};
  ItemReader items(*packed);
  const int64_t count = items.number();
  const int64_t deleted = items.number();
  const int64_t field_count = items.number();
  if (!items.has(field_count)) return false;
  std::vector<ByteView> fields;
  for (int64_t i = 0; i < field_count; i++) fields.push_back(items.text());
  const size_t before = stream.entries.size();
  bool is_read = items.number() == 0 && !items.failed();
  int64_t entries = 0;
  for (; is_read && !items.at_end(); entries++) {
    // Names of fields that are not written out cost memory all the same.
    size_t bytes = 0;
    for (const ByteView field : fields) bytes += field.size();
    is_read = reader.spend(bytes) && read_entry(items, first, fields, stream);
  }
  const auto kept = static_cast<int64_t>(stream.entries.size() - before);
  return is_read && kept == count && entries - kept == deleted;
}

StreamId read_id(RdbReader& reader) {
  const uint64_t ms = reader.length();
  return {ms, reader.length()};
}

StreamId read_raw_id(RdbReader& reader) {
  const uint64_t ms = reader.be(8);
  return {ms, reader.be(8)};
}

// What is pending without an owner, and what two own, makes no sense.
bool read_consumers(RdbReader& reader, RdbStreamForm form, RdbStream::Group& group) {
  std::set<Bytes> names;
  std::vector<bool> is_owned(group.pending.size());
  const uint64_t count = reader.length();
  for (uint64_t i = 0; i < count && reader.spend(item_bytes_min) && !reader.failed(); i++) {
    RdbStream::Consumer consumer{.name = reader.string()};
    consumer.seen_ms = load_le(reader.take(8));
    if (form == RdbStreamForm::listpacks_3) reader.take(8);
    const uint64_t pending = reader.length();
    for (uint64_t j = 0; j < pending && !reader.failed(); j++) {
      const StreamId id = read_raw_id(reader);
      const auto entry = std::lower_bound(
          group.pending.begin(), group.pending.end(), id,
          [](const PendingEntry& one, const StreamId& other) { return one.id < other; });
      const auto place = static_cast<size_t>(entry - group.pending.begin());
      if (entry == group.pending.end() || entry->id != id || is_owned[place]) return false;
      entry->consumer = consumer.name;
      is_owned[place] = true;
    }
    if (!names.insert(consumer.name).second) return false;
    group.consumers.push_back(std::move(consumer));
  }
  return !reader.failed() && std::ranges::count(is_owned, false) == 0;
}

bool read_group(RdbReader& reader, RdbStreamForm form, RdbStream::Group& group) {
  group.name = reader.string();
  group.last = read_id(reader);
  if (form != RdbStreamForm::listpacks) {
    group.entries_read = static_cast<int64_t>(reader.length());
  }
  const uint64_t pending = reader.length();
  for (uint64_t i = 0; i < pending && reader.spend(item_bytes_min) && !reader.failed(); i++) {
    PendingEntry entry{.id = read_raw_id(reader)};
    entry.delivered_ms = load_le(reader.take(8));
    entry.deliveries = reader.length();
    const bool is_behind = group.pending.empty() || group.pending.back().id < entry.id;
    if (!is_behind || !is_entry_id(entry.id)) return false;
    group.pending.push_back(std::move(entry));
  }
  return !reader.failed() && read_consumers(reader, form, group);
}

}  // namespace

bool read_rdb_stream(RdbReader& reader, RdbStreamForm form, RdbStream& stream) {
  const uint64_t nodes = reader.length();
  for (uint64_t i = 0; i < nodes && !reader.failed(); i++)
    if (!read_node(reader, stream)) return false;
  RedisMetadata::Stream& head = stream.head;
  if (reader.length() != stream.entries.size()) return false;
  head.last_generated = read_id(reader);
  head.entries_added = stream.entries.size();
  if (form != RdbStreamForm::listpacks) {
    read_id(reader);  // the first one, which is known
    head.max_deleted = read_id(reader);
    head.entries_added = reader.length();
  }
  if (!stream.entries.empty()) {
    head.first = head.recorded_first = stream.entries.front().id;
    head.last = stream.entries.back().id;
  }
  if (reader.failed() || head.last > head.last_generated) return false;
  std::set<Bytes> names;
  const uint64_t groups = reader.length();
  for (uint64_t i = 0; i < groups && reader.spend(item_bytes_min) && !reader.failed(); i++) {
    RdbStream::Group& group = stream.groups.emplace_back();
    if (!read_group(reader, form, group) || !names.insert(group.name).second) return false;
  }
  return !reader.failed();
}

// --- stored streams ---

Status PayloadRoom::check() const {
  if (bytes_ <= reply_bytes_max) return {};
  return reply_with("ERR the value is too large to be read at once");
}

Result<RdbStream> load_stream(Keys& keys, const Key& key) {
  RdbStream stream{.head = key.stream(), .entries = {}, .groups = {}};
  PayloadRoom room;
  TRY(scan_entries(keys, key, {}, false, [&](const StreamId& id, ByteView entry) {
    stream.entries.push_back({id, Bytes(entry)});
    return room.take(entry.size());
  }));
  TRY(room.check());
  TRY_ASSIGN(const std::vector<Bytes> names, group_names(keys, key));
  for (const Bytes& name : names) {
    TRY_ASSIGN(const StreamGroup* const group, StreamGroup::open(keys, key, name));
    if (group == nullptr) return Error{Code::corrupt, "a stream does not count its groups"};
    RdbStream::Group& shown = stream.groups.emplace_back();
    shown.name = name;
    shown.last = group->last();
    shown.entries_read = group->entries_read();
    TRY(group->visit_pending({}, {}, [&](const PendingEntry& entry) {
      shown.pending.push_back(entry);
      return room.take(sizeof(entry) + entry.consumer.size());
    }));
    TRY(room.check());
    TRY_ASSIGN(const auto consumers, group->all_consumers());
    for (const auto& [consumer, value] : consumers)
      shown.consumers.push_back({consumer, value.last_attempt_ms});
  }
  return stream;
}

Status store_stream(Keys& keys, Key& key, const RdbStream& stream) {
  for (const auto& [id, entry] : stream.entries)
    keys.put_sub(key, encode(StreamEntrySub{id.ms, id.seq}), entry, Value());
  key.set_stream(stream.entries.size(), stream.head);
  for (const RdbStream::Group& group : stream.groups) {
    StreamGroup stored = StreamGroup::create(
        keys, key, group.name, group.last,
        group.entries_read ? *group.entries_read : entries_up_to(key, group.last));
    for (const RdbStream::Consumer& consumer : group.consumers)
      TRY(stored.add_consumer(consumer.name, consumer.seen_ms));
    for (const PendingEntry& entry : group.pending) TRY(stored.put_pending(entry, {}));
    stored.save();
  }
  return {};
}

}  // namespace trellis
