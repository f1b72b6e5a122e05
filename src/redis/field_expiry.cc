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

FieldTimes::FieldTimes(Keys& keys, const Key& key)
    : keys_(keys), prefix_(keys.fields_prefix(key)), key_(key) {}

Bytes FieldTimes::time_key(ByteView field) const {
  Bytes key = prefix_ + order_by_field;
  return key += field;
}

Bytes FieldTimes::due_key(uint64_t expire_ms, ByteView field) const {
  Bytes key = prefix_ + order_by_time;
  append_be64(key, expire_ms);
  return key += field;
}

Result<std::vector<uint64_t>> FieldTimes::times(std::span<const ByteView> fields) const {
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

Status FieldTimes::find_over() const {
  const Bytes due = prefix_ + order_by_time;
  return keys_.scan(due, due, due_key(keys_.now_ms() + 1, {}), false, [&](ByteView rest, ByteView) {
    if (rest.size() >= sizeof(uint64_t)) key_.over_.emplace(rest.substr(sizeof(uint64_t)));
    return Visit::go_on;
  });
}

Result<bool> FieldTimes::has_others() const {
  constexpr size_t page_fields = 256;
  bool found = false;
  const Bytes due = prefix_ + order_by_time;
  TRY(keys_.scan(due, due_key(keys_.now_ms() + 1, {}), prefix_end(due), false,
                 [&](ByteView, ByteView) {
                   found = true;
                   return Visit::stop;
                 }));
  const Bytes subs = keys_.subs_prefix(key_);
  Bytes begin = subs;
  for (size_t i = 0; !found; i++) {
    const bool from_end = i == 1;  // what came last is likely to be the last
    std::vector<Bytes> page;
    TRY(keys_.scan(subs, begin, prefix_end(subs), from_end, [&](ByteView field, ByteView) {
      page.emplace_back(field);
      return page.size() == page_fields ? Visit::stop : Visit::go_on;
    }));
    if (page.empty()) return false;
    TRY_ASSIGN(const auto all, times(std::vector<ByteView>(page.begin(), page.end())));
    found = !std::all_of(all.begin(), all.end(), [&](uint64_t time) { return is_over(time); });
    if (!from_end) begin = successor(subs + page.back());
  }
  return true;
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
    if (!is_over(was[i])) set(fields[i], 0, was[i]);
  return {};
}

Status FieldExpiry::remove(std::span<const ByteView> fields, std::span<const uint64_t> times,
                           size_t& bytes) {
  std::vector<Bytes> keys;
  std::vector<ByteView> views;
  keys.reserve(fields.size());
  for (const ByteView field : fields)
    views.push_back(keys.emplace_back(keys_.sub_key(key_, field)));
  std::vector<Value> old(fields.size());
  TRY(keys_.view_.multi_get(views, old));
  for (size_t i = 0; i < fields.size(); i++) {
    set(fields[i], 0, times[i]);
    if (const auto known = key_.over_.find(fields[i]); known != key_.over_.end())
      key_.over_.erase(known);
    if (!old[i].found()) continue;
    keys_.remove_sub(key_, fields[i], old[i]);
    key_.now_.size--;
    bytes += old[i].bytes().size();
  }
  key_.touch();
  return {};
}

Status FieldExpiry::remove_over(std::span<const ByteView> fields) {
  if (key_.over_.empty() && !key_.has_unknown_) return {};
  TRY_ASSIGN(const std::vector<uint64_t> was, times(fields));
  for (size_t i = 0; i < fields.size(); i++) {
    size_t bytes = 0;
    if (is_over(was[i])) TRY(remove(fields.subspan(i, 1), {&was[i], 1}, bytes));
  }
  return {};
}

Status FieldExpiry::collect() {
  constexpr size_t fields_max = 4'096;
  constexpr size_t names_bytes_max = 1024 * 1024;
  constexpr size_t values_bytes_max = 16 * 1024 * 1024;
  constexpr size_t removed_together = 64;
  std::vector<Bytes> fields;
  std::vector<uint64_t> times;
  size_t names_bytes = 0;
  uint64_t next = 0;
  const Bytes due = prefix_ + order_by_time;
  TRY(keys_.scan(due, due, prefix_end(due), false, [&](ByteView rest, ByteView) {
    if (rest.size() < sizeof(uint64_t)) return Visit::go_on;
    const uint64_t time = load_be(rest.data(), sizeof(uint64_t));
    if (!is_over(time) || fields.size() == fields_max || names_bytes > names_bytes_max) {
      next = time;
      return Visit::stop;
    }
    times.push_back(time);
    fields.emplace_back(rest.substr(sizeof(uint64_t)));
    names_bytes += rest.size();
    return Visit::go_on;
  }));
  const std::vector<ByteView> views(fields.begin(), fields.end());
  size_t values_bytes = 0;
  for (size_t i = 0; i < views.size(); i += removed_together) {
    if (values_bytes > values_bytes_max) {
      next = times[i];
      break;
    }
    const size_t count = std::min(removed_together, views.size() - i);
    TRY(remove(std::span(views).subspan(i, count), std::span(times).subspan(i, count),
               values_bytes));
  }
  key_.touch();
  key_.now_.next_field_ms = next;
  if (key_.now_.size == 0) key_.remove();
  return {};
}

}  // namespace trellis
