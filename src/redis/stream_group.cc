#include "redis/stream_group.h"

#include <algorithm>
#include <utility>

#include "codec/redis_keys.h"

namespace trellis {
namespace {

constexpr size_t page_records = 256;
constexpr char group_record = '\1';
constexpr char consumer_record = '\2';
constexpr char pending_record = '\3';
constexpr char owned_record = '\4';

Bytes kind_prefix(char kind) { return Bytes(stream_delimiter.bytes) + kind; }

void append_name(Bytes& out, ByteView name) {
  append_be64(out, name.size());
  out += name;
}

Bytes group_prefix(char kind, ByteView name) {
  Bytes bytes;
  bytes.reserve(64);  // with what comes behind it, mostly
  bytes += stream_delimiter.bytes;
  bytes += kind;
  append_name(bytes, name);
  return bytes;
}

constexpr size_t id_bytes = 16;

Bytes behind(Bytes prefix, const StreamId& id) {
  append_id_bytes(prefix, id);
  return prefix;
}

Error bad_record() { return {Code::corrupt, "a stored record of a consumer group makes no sense"}; }

template <class Record>
Result<Record> decode_record(ByteView bytes) {
  const auto record = decode<Record>(bytes);
  if (!record) return bad_record();
  return *record;
}

Bytes encode_pending(const PendingEntry& entry) {
  return encode(StreamPendingValue{entry.delivered_ms, entry.deliveries, entry.consumer});
}

Result<PendingEntry> decode_pending(const StreamId& id, ByteView bytes) {
  TRY_ASSIGN(const auto value, decode_record<StreamPendingValue>(bytes));
  return PendingEntry{id, value.delivered_ms, value.deliveries, Bytes(value.consumer)};
}

// The id is the end of the records of what is pending.
StreamId id_of(ByteView sub) {
  const char* const id = sub.data() + sub.size() - id_bytes;
  return {load_be(id, 8), load_be(id + 8, 8)};
}

// Whether an entry that was deleted lies behind it, and among those that are there.
bool has_gap_behind(const Key& key, const StreamId& id) {
  const StreamId& deleted = key.stream().max_deleted;
  return key.size() != 0 && deleted >= key.stream().first && id <= deleted;
}

uint64_t one_less(uint64_t count) { return count - std::min<uint64_t>(count, 1); }

}  // namespace

int64_t entries_up_to(const Key& key, const StreamId& id) {
  const RedisMetadata::Stream& stream = key.stream();
  const uint64_t added = stream.entries_added;
  if (added == 0) return 0;
  if (id == stream.last_generated || (key.size() == 0 && id < stream.last_generated))
    return static_cast<int64_t>(added);
  const bool is_whole = stream.max_deleted == lowest_id || stream.max_deleted < stream.first;
  if (id > stream.last_generated || id > stream.first || !is_whole) return entries_read_unknown;
  return static_cast<int64_t>(added - key.size() + (id == stream.first ? 1 : 0));
}

Result<std::vector<Bytes>> group_names(Keys& keys, const Key& key) {
  std::vector<Bytes> names;
  Status bad;
  const Bytes begin = kind_prefix(group_record);
  const Bytes end = prefix_end(begin);
  TRY(keys.scan_subs(key, {.begin = begin, .end = end}, [&](ByteView sub, ByteView) {
    const auto group = decode<StreamGroupSub>(sub);
    if (!group) bad = bad_record();
    if (group) names.emplace_back(group->group);
    return group ? Visit::go_on : Visit::stop;
  }));
  TRY(bad);
  std::sort(names.begin(), names.end());  // in the map the shorter come first
  return names;
}

// --- the group ---

Bytes StreamGroup::prefix(char kind) const { return group_prefix(kind, name_); }

Bytes pending_sub(ByteView group, const StreamId& id) {
  return behind(group_prefix(pending_record, group), id);
}

Result<StreamGroup*> StreamGroup::open(Keys& keys, const Key& key, ByteView name) {
  StreamGroup* const none = nullptr;
  if (!key.exists() || key.stream().groups == 0) return none;
  if (key.group_ != nullptr && key.group_->name_ == name) return key.group_.get();
  const std::shared_ptr<StreamGroup> group(new StreamGroup(keys, key, name));
  TRY(keys.get_sub(key, group->prefix(group_record), group->stored_));
  if (!group->stored_.found()) return none;
  TRY(group->read(group->stored_.bytes()));
  if (key.group_ != nullptr) key.group_->save();
  key.group_ = group;
  return group.get();
}

Status StreamGroup::read(ByteView stored) {
  constexpr size_t usual_bytes = 48;
  if (stored.size() > usual_bytes) {
    TRY_ASSIGN(const auto ahead, decode_record<StreamGroupAheadValue>(stored));
    value_ = ahead.group;
    furthest_ = {ahead.furthest_ms, ahead.furthest_seq};
    return {};
  }
  TRY_ASSIGN(value_, decode_record<StreamGroupValue>(stored));
  furthest_ = last();
  return {};
}

StreamGroup StreamGroup::create(Keys& keys, Key& key, ByteView name, StreamId last,
                                int64_t entries_read) {
  StreamGroup group(keys, key, name);
  RedisMetadata::Stream stream = key.stream();
  stream.groups++;
  key.set_stream_quietly(stream);
  group.set_last(last);
  group.set_entries_read(entries_read);
  return group;
}

void StreamGroup::set_last(const StreamId& id) {
  furthest_ = std::max(furthest_, last());
  value_.last_ms = id.ms;
  value_.last_seq = id.seq;
  changed_ = true;
}

void StreamGroup::set_entries_read(int64_t count) {
  value_.entries_read = count;
  changed_ = true;
}

void StreamGroup::pass(const StreamId& id) {
  if (id <= last()) return;
  if (entries_read() != entries_read_unknown && !has_gap_behind(*key_, id))
    set_entries_read(static_cast<int64_t>(static_cast<uint64_t>(entries_read()) + 1));
  else if (key_->stream().entries_added != 0)
    set_entries_read(entries_up_to(*key_, id));
  set_last(id);
}

std::optional<int64_t> StreamGroup::lag() const {
  // Clients may set either to any number; what is beyond 2^63 wraps, as in Redis.
  const uint64_t added = key_->stream().entries_added;
  if (added == 0) return 0;
  const int64_t read = entries_read() != entries_read_unknown && !has_gap_behind(*key_, last())
                           ? entries_read()
                           : entries_up_to(*key_, last());
  if (read == entries_read_unknown) return std::nullopt;
  return static_cast<int64_t>(added - static_cast<uint64_t>(read));
}

void StreamGroup::save() {
  for (auto& [name, consumer] : known_) {
    if (!std::exchange(consumer.changed, false) || !consumer.exists) continue;
    Bytes sub = prefix(consumer_record);
    append_name(sub, name);
    Bytes value = encode(consumer.value);
    keys_->put_sub(*key_, sub, value, consumer.stored);
    consumer.written = std::move(value);
    consumer.stored.set_borrowed(consumer.written);
  }
  if (!std::exchange(changed_, false)) return;
  const bool is_ahead = furthest_ > last() && value_.pending != 0;
  Bytes value = is_ahead ? encode(StreamGroupAheadValue{value_, furthest_.ms, furthest_.seq})
                         : encode(value_);
  keys_->put_sub(*key_, prefix(group_record), value, stored_);
  written_ = std::move(value);
  stored_.set_borrowed(written_);
}

Result<uint64_t> StreamGroup::remove_all(const Bytes& prefix) {
  Bytes begin = prefix;
  const Bytes end = prefix_end(prefix);
  uint64_t removed = 0;
  size_t bytes = 0;
  for (bool is_done = false; !is_done;) {
    std::vector<std::pair<Bytes, Bytes>> records;
    TRY(keys_->scan_subs(*key_, {.begin = begin, .end = end}, [&](ByteView sub, ByteView value) {
      records.emplace_back(sub, value);
      return records.size() == page_records ? Visit::stop : Visit::go_on;
    }));
    for (const auto& [sub, value] : records) {
      Value old;
      old.set_borrowed(value);
      keys_->remove_sub(*key_, sub, old);
      bytes += sub.size();
    }
    removed += records.size();
    TRY(keys_->check_written(bytes));
    is_done = records.size() < page_records;
    if (!is_done) begin = records.back().first + '\0';
  }
  return removed;
}

Status StreamGroup::destroy(Key& key) {
  const auto self = std::exchange(key.group_, nullptr);  // nothing of it is written any more
  for (const char kind : {group_record, consumer_record, pending_record, owned_record})
    TRY(remove_all(prefix(kind)));
  RedisMetadata::Stream stream = key.stream();
  stream.groups = one_less(stream.groups);
  key.set_stream_quietly(stream);
  return {};
}

// --- consumers ---

Result<StreamGroup::Consumer*> StreamGroup::consumer(ByteView name) {
  if (const auto found = known_.find(name); found != known_.end()) return &found->second;
  Consumer consumer;
  Bytes sub = prefix(consumer_record);
  append_name(sub, name);
  TRY(keys_->get_sub(*key_, sub, consumer.stored));
  consumer.exists = consumer.stored.found();
  if (consumer.exists) {
    TRY_ASSIGN(consumer.value, decode_record<StreamConsumerValue>(consumer.stored.bytes()));
  }
  return &known_.emplace(Bytes(name), std::move(consumer)).first->second;
}

Status StreamGroup::add_consumer(ByteView name, uint64_t seen_ms) {
  TRY_ASSIGN(Consumer* const made, consumer(name));
  made->exists = made->changed = true;
  made->value.last_attempt_ms = seen_ms;
  value_.consumers++;
  changed_ = true;
  return {};
}

Result<bool> StreamGroup::see(ByteView name) {
  TRY_ASSIGN(Consumer* const seen, consumer(name));
  if (!seen->exists) {
    TRY(add_consumer(name, keys_->now_ms()));
    return true;
  }
  seen->value.last_attempt_ms = keys_->now_ms();
  seen->changed = true;
  return false;
}

Status StreamGroup::serve(ByteView name) {
  TRY(see(name));
  TRY_ASSIGN(Consumer* const served, consumer(name));
  served->value.last_success_ms = keys_->now_ms();
  return {};
}

Result<uint64_t> StreamGroup::remove_consumer(ByteView name) {
  TRY_ASSIGN(Consumer* const gone, consumer(name));
  std::vector<PendingEntry> page;
  uint64_t removed = 0;
  // Of the keys of both records.
  const size_t entry_bytes = 2 * (prefix(owned_record).size() + id_bytes) + name.size();
  IdRange left;  // behind those that were removed: a scan would have to step over them
  do {
    page.clear();
    TRY(visit_pending(name, left, [&](const PendingEntry& entry) {
      page.push_back(entry);
      return page.size() == page_records ? Visit::stop : Visit::go_on;
    }));
    for (const PendingEntry& entry : page) TRY(remove_pending(entry));
    removed += page.size();
    TRY(keys_->check_written(removed * entry_bytes));
    if (!page.empty()) left.first = id_behind(page.back().id).value_or(highest_id);
  } while (page.size() == page_records);
  Bytes sub = prefix(consumer_record);
  append_name(sub, name);
  keys_->remove_sub(*key_, sub, gone->stored);
  known_.erase(known_.find(name));
  value_.consumers = one_less(value_.consumers);
  changed_ = true;
  return removed;
}

Result<std::map<Bytes, StreamConsumerValue>> StreamGroup::all_consumers() const {
  std::map<Bytes, StreamConsumerValue> all;
  Status bad;
  const Bytes begin = prefix(consumer_record);
  const Bytes end = prefix_end(begin);
  TRY(keys_->scan_subs(*key_, {.begin = begin, .end = end}, [&](ByteView sub, ByteView value) {
    const auto name = decode<StreamConsumerSub>(sub);
    const auto consumer = decode<StreamConsumerValue>(value);
    if (!name || !consumer) {
      bad = bad_record();
      return Visit::stop;
    }
    all.emplace(name->consumer, *consumer);
    return Visit::go_on;
  }));
  TRY(bad);
  return all;
}

// --- what is pending ---

Result<std::vector<StreamGroup::Pending>> StreamGroup::get_pending(
    std::span<const StreamId> ids) const {
  std::vector<Pending> found(ids.size());
  std::vector<size_t> places;
  std::vector<Bytes> subs;
  for (size_t i = 0; i < ids.size() && value_.pending != 0; i++) {
    if (ids[i] > furthest_) continue;
    places.push_back(i);
    subs.push_back(pending_sub(name_, ids[i]));
  }
  if (subs.empty()) return found;
  const std::vector<ByteView> views(subs.begin(), subs.end());
  std::vector<Value> values(subs.size());
  TRY(keys_->get_subs(*key_, views, values));
  for (size_t i = 0; i < subs.size(); i++) {
    if (!values[i].found()) continue;
    const size_t place = places[i];
    TRY_ASSIGN(found[place], decode_pending(ids[place], values[i].bytes()));
  }
  return found;
}

Status StreamGroup::visit_pending(std::optional<ByteView> consumer, const IdRange& range,
                                  PendingVisitor visit) const {
  Bytes prefix = this->prefix(consumer ? owned_record : pending_record);
  if (consumer) append_name(prefix, *consumer);
  Bytes begin = behind(prefix, range.first);
  const Bytes end = behind(prefix, range.last) + '\0';
  if (range.first > range.last) return {};
  if (!consumer) {
    Status bad;
    TRY(keys_->scan_subs(*key_, {.begin = begin, .end = end}, [&](ByteView sub, ByteView value) {
      const auto entry = decode_pending(id_of(sub), value);
      if (!entry) bad = entry.error();
      return entry ? visit(*entry) : Visit::stop;
    }));
    return bad;
  }
  for (;;) {
    std::vector<StreamId> ids;
    TRY(keys_->scan_subs(*key_, {.begin = begin, .end = end}, [&](ByteView sub, ByteView) {
      ids.push_back(id_of(sub));
      return ids.size() == page_records ? Visit::stop : Visit::go_on;
    }));
    TRY_ASSIGN(const std::vector<Pending> page, get_pending(ids));
    for (const Pending& entry : page) {
      if (!entry) return bad_record();
      if (visit(*entry) == Visit::stop) return {};
    }
    if (ids.size() < page_records) return {};
    begin = behind(prefix, ids.back()) + '\0';
  }
}

Result<IdRange> StreamGroup::pending_ends() const {
  IdRange ends;
  const Bytes begin = prefix(pending_record);
  const Bytes end = prefix_end(begin);
  for (const bool reverse : {false, true})
    TRY(keys_->scan_subs(*key_, {.begin = begin, .end = end, .reverse = reverse},
                         [&](ByteView sub, ByteView) {
                           (reverse ? ends.last : ends.first) = id_of(sub);
                           return Visit::stop;
                         }));
  return ends;
}

Status StreamGroup::put_pending(const PendingEntry& entry, const Pending& was) {
  Bytes old_value;
  Value old;
  if (was) {
    old_value = encode_pending(*was);
    old.set_borrowed(old_value);
  }
  if (was && was->consumer != entry.consumer) TRY(remove_pending(*was));
  const bool is_owned = was && was->consumer == entry.consumer;
  furthest_ = std::max(furthest_, entry.id);
  const Value none{};
  keys_->put_sub(*key_, pending_sub(name_, entry.id), encode_pending(entry), is_owned ? old : none);
  if (is_owned) return {};
  Bytes owned = prefix(owned_record);
  append_name(owned, entry.consumer);
  append_id_bytes(owned, entry.id);
  keys_->put_sub(*key_, owned, {}, Value());
  TRY_ASSIGN(Consumer* const owner, consumer(entry.consumer));
  owner->value.pending++;
  owner->changed = true;
  value_.pending++;
  changed_ = true;
  return {};
}

Status StreamGroup::remove_pending(const PendingEntry& was) {
  const Bytes value = encode_pending(was);
  Value old;
  old.set_borrowed(value);
  keys_->remove_sub(*key_, pending_sub(name_, was.id), old);
  Bytes owned = prefix(owned_record);
  append_name(owned, was.consumer);
  append_id_bytes(owned, was.id);
  old.set_borrowed({});
  keys_->remove_sub(*key_, owned, old);
  TRY_ASSIGN(Consumer* const owner, consumer(was.consumer));
  owner->value.pending = one_less(owner->value.pending);
  owner->changed = true;
  value_.pending = one_less(value_.pending);
  changed_ = true;
  return {};
}

}  // namespace trellis
