#include "redis/field_expiry.h"

#include <algorithm>

namespace trellis {
namespace {

constexpr char order_by_field = 'f';
constexpr char order_by_time = 't';
constexpr char field_value_format = '\x01';
constexpr size_t field_value_bytes = 9;

Bytes encode_field_time(uint64_t expire_ms) {
  Bytes value(1, field_value_format);
  append_be64(value, expire_ms);
  return value;
}

Result<uint64_t> decode_field_time(const Value& value) {
  if (!value.found()) return 0;
  const ByteView bytes = value.bytes();
  if (bytes.size() != field_value_bytes || bytes[0] != field_value_format)
    return Error{Code::corrupt, "the time of a field does not make sense"};
  return load_be(bytes.data() + 1, sizeof(uint64_t));
}

}  // namespace

FieldExpiry::FieldExpiry(Keys& keys, Key& key)
    : keys_(keys), key_(key), prefix_(keys.fields_prefix(key)) {}

Bytes FieldExpiry::time_key(ByteView field) const {
  Bytes key = prefix_ + order_by_field;
  return key += field;
}

Bytes FieldExpiry::due_key(uint64_t expire_ms, ByteView field) const {
  Bytes key = prefix_ + order_by_time;
  append_be64(key, expire_ms);
  return key += field;
}

Result<std::vector<uint64_t>> FieldExpiry::times(std::span<const ByteView> fields) {
  std::vector<uint64_t> times(fields.size());
  if (key_.now_.next_field_ms == 0) return times;
  std::vector<Bytes> keys;
  std::vector<ByteView> views;
  keys.reserve(fields.size());
  for (const ByteView field : fields) views.push_back(keys.emplace_back(time_key(field)));
  std::vector<Value> values(fields.size());
  TRY(keys_.view_.multi_get(views, values));
  for (size_t i = 0; i < fields.size(); i++) {
    TRY_ASSIGN(times[i], decode_field_time(values[i]));
  }
  return times;
}

void FieldExpiry::set(ByteView field, uint64_t expire_ms, uint64_t was) {
  if (expire_ms == was) return;
  Value old_time, old_due;
  const Bytes old = encode_field_time(was);
  if (was != 0) {
    old_time.set_borrowed(old);
    old_due.set_borrowed({});
    keys_.remove(key_, due_key(was, field), old_due);
  }
  if (expire_ms == 0) {
    keys_.remove(key_, time_key(field), old_time);
    return;
  }
  keys_.put(key_, time_key(field), encode_field_time(expire_ms), old_time);
  keys_.put(key_, due_key(expire_ms, field), {}, Value());
  uint64_t& next = key_.now_.next_field_ms;
  next = next == 0 ? expire_ms : std::min(next, expire_ms);
}

Status FieldExpiry::forget(std::span<const ByteView> fields) {
  if (key_.now_.next_field_ms == 0) return {};
  TRY_ASSIGN(const std::vector<uint64_t> was, times(fields));
  for (size_t i = 0; i < fields.size(); i++)
    if (!key_.over_.contains(fields[i])) set(fields[i], 0, was[i]);
  return {};
}

Status FieldExpiry::remove_over(std::span<const ByteView> fields) {
  for (const ByteView field : fields) {
    const auto found = key_.over_.find(field);
    if (found == key_.over_.end()) continue;
    TRY_ASSIGN(const std::vector<uint64_t> was, times({&field, 1}));
    set(field, 0, was[0]);
    Value old;
    TRY(keys_.view_.get(keys_.sub_key(key_, field), old));
    keys_.remove_sub(key_, field, old);
    key_.touch();
    key_.now_.size -= old.found() ? 1 : 0;
    key_.over_.erase(found);
  }
  return {};
}

Status FieldExpiry::hide_over() {
  const Bytes due = prefix_ + order_by_time;
  return keys_.scan(due, due, due_key(keys_.now_ms() + 1, {}), false, [&](ByteView rest, ByteView) {
    if (rest.size() >= sizeof(uint64_t)) key_.over_.emplace(rest.substr(sizeof(uint64_t)));
    return Visit::go_on;
  });
}

Status FieldExpiry::collect(size_t fields_max) {
  std::vector<Bytes> gone;
  for (auto field = key_.over_.begin(); field != key_.over_.end() && gone.size() < fields_max;
       ++field)
    gone.push_back(*field);
  TRY(remove_over(std::vector<ByteView>(gone.begin(), gone.end())));
  key_.touch();
  if (!key_.over_.empty()) return {};
  const Bytes due = prefix_ + order_by_time;
  uint64_t next = 0;
  TRY(keys_.scan(due, due, prefix_end(due), false, [&](ByteView rest, ByteView) {
    if (rest.size() >= sizeof(uint64_t)) next = load_be(rest.data(), sizeof(uint64_t));
    return Visit::stop;
  }));
  key_.now_.next_field_ms = next;
  return {};
}

}  // namespace trellis
