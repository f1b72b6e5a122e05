#include "redis/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "codec/redis_keys.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

// What is trimmed up to here is removed at once; with more it is left to the collector.
constexpr uint64_t trimmed_at_once_max = 128;

Bytes entry_sub(const StreamId& id) { return encode(StreamEntrySub{id.ms, id.seq}); }

// As strtoull has it, which takes more than Redis's own numbers: "01", " 1", "+1". Not "-1".
std::optional<uint64_t> parse_part(const char* text) {
  if (const auto number = parse_integer(text))
    return *number < 0 ? std::nullopt : std::optional<uint64_t>(*number);
  char* end = nullptr;
  errno = 0;
  const uint64_t number = strtoull(text, &end, 10);
  if (errno != 0 || *text == '\0' || *end != '\0') return std::nullopt;
  return number;
}

std::optional<StreamId> parse_bound(ByteView text, uint64_t missing_seq) {
  if (text == "-") return lowest_id;
  if (text == "+") return highest_id;
  return parse_id(text, missing_seq);
}

bool is_exclusive(ByteView text) { return text.size() > 1 && text[0] == '('; }

}  // namespace

// --- ids ---

std::string id_text(const StreamId& id) {
  std::string text = fmt::format_int(id.ms).str();
  text += '-';
  const fmt::format_int seq(id.seq);
  return text.append(seq.data(), seq.size());
}

void append_id_bytes(Bytes& out, const StreamId& id) {
  append_be64(out, id.ms);
  append_be64(out, id.seq);
}

std::optional<StreamId> id_behind(StreamId id) {
  if (id == highest_id) return std::nullopt;
  return ++id.seq != 0 ? id : StreamId{id.ms + 1, 0};
}

std::optional<StreamId> id_before(StreamId id) {
  if (id == lowest_id) return std::nullopt;
  return id.seq-- != 0 ? id : StreamId{id.ms - 1, UINT64_MAX};
}

Error invalid_id() {
  return reply_with("ERR Invalid stream ID specified as stream command argument");
}

// As a C string, as Redis reads it: what is behind a zero byte is not looked at.
std::optional<StreamId> parse_id(ByteView text, uint64_t missing_seq) {
  constexpr size_t id_bytes_max = 127;
  if (text.size() > id_bytes_max) return std::nullopt;
  const Bytes whole(shown(text));
  const size_t dash = whole.find('-');
  const auto ms = parse_part(whole.substr(0, dash).c_str());
  const auto seq = dash == Bytes::npos ? missing_seq : parse_part(whole.c_str() + dash + 1);
  if (!ms || !seq) return std::nullopt;
  return StreamId{*ms, *seq};
}

Result<StreamId> id_at(const Call& call, size_t i) {
  const auto id = parse_id(call.arg(i));
  if (!id) return invalid_id();
  return *id;
}

Result<std::vector<StreamId>> ids_from(const Call& call, size_t first) {
  std::vector<StreamId> ids;
  for (size_t i = first; i < call.count(); i++) {
    TRY_ASSIGN(const StreamId id, id_at(call, i));
    ids.push_back(id);
  }
  return ids;
}

Result<StreamId> first_of_range(const Call& call, size_t i) {
  const ByteView text = call.arg(i);
  const auto id = is_exclusive(text) ? parse_id(text.substr(1)) : parse_bound(text, 0);
  if (!id) return invalid_id();
  if (!is_exclusive(text)) return *id;
  const auto next = id_behind(*id);
  if (!next) return reply_with("ERR invalid start ID for the interval");
  return *next;
}

Result<StreamId> last_of_range(const Call& call, size_t i) {
  const ByteView text = call.arg(i);
  const auto id =
      is_exclusive(text) ? parse_id(text.substr(1), UINT64_MAX) : parse_bound(text, UINT64_MAX);
  if (!id) return invalid_id();
  if (!is_exclusive(text)) return *id;
  const auto before = id_before(*id);
  if (!before) return reply_with("ERR invalid end ID for the interval");
  return *before;
}

// --- reading ---

Status scan_entries(Keys& keys, const Key& key, const IdRange& range, bool reverse,
                    EntryVisitor visit) {
  if (!key.exists() || key.size() == 0) return {};
  const StreamId first = std::max(range.first, key.stream().first);
  const StreamId last = std::min(range.last, key.stream().last);
  if (first > last) return {};
  Status bad;
  const Bytes begin = entry_sub(first);
  const Bytes end = entry_sub(last) + '\0';
  const uint64_t wanted = range.count == 0 ? scan_page_entries_max : range.count;
  TRY(keys.scan_subs(key,
                     {.begin = begin,
                      .end = end,
                      .reverse = reverse,
                      .page_entries = std::min<uint64_t>(wanted, scan_page_entries_max)},
                     [&](ByteView sub, ByteView entry) {
                       const auto id = decode<StreamEntrySub>(sub);
                       if (!id) bad = Error{Code::corrupt, "a stored stream id makes no sense"};
                       return id ? visit({id->ms, id->seq}, entry) : Visit::stop;
                     }));
  return bad;
}

Status get_entries(Keys& keys, const Key& key, std::span<const StreamId> ids,
                   std::span<Value> entries) {
  if (key.size() == 0) return {};
  std::vector<Bytes> subs;
  std::vector<ByteView> views;
  std::vector<size_t> places;
  subs.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); i++) {
    if (ids[i] < key.stream().first || ids[i] > key.stream().last) continue;
    views.push_back(subs.emplace_back(entry_sub(ids[i])));
    places.push_back(i);
  }
  std::vector<Value> found(views.size());
  TRY(keys.get_subs(key, views, found));
  for (size_t i = 0; i < places.size(); i++) entries[places[i]] = std::move(found[i]);
  return {};
}

Status reply_entry(Reply& reply, const StreamId& id, ByteView entry) {
  reply.array(2);
  reply.bulk(id_text(id));
  const size_t mark = reply.mark();
  size_t strings = 0;
  TRY(visit_stream_entry(entry, [&](ByteView string) {
    reply.bulk(string);
    strings++;
  }));
  reply.insert_array(mark, strings);
  return {};
}

Result<size_t> reply_entries(Call& call, const Key& key, IdRange range, bool reverse,
                             uint64_t count) {
  range.count = count;
  const size_t mark = call.reply.mark();
  size_t shown = 0;
  Status bad;
  TRY(scan_entries(call.keys, key, range, reverse, [&](const StreamId& id, ByteView entry) {
    bad = reply_entry(call.reply, id, entry);
    return !bad || ++shown == count ? Visit::stop : Visit::go_on;
  }));
  TRY(bad);
  call.reply.insert_array(mark, shown);
  return shown;
}

// --- writing ---

void add_entry(Keys& keys, Key& key, const StreamId& id, ByteView entry) {
  RedisMetadata::Stream stream = key.stream();
  keys.put_sub(key, entry_sub(id), entry, Value());
  if (key.size() == 0) stream.first = stream.recorded_first = id;
  stream.last = stream.last_generated = id;
  stream.entries_added++;
  key.set_stream(key.size() + 1, stream);
}

namespace {

// Without so many entries; `first` is what is the first one then.
void shrink(Key& key, uint64_t removed, StreamId first, StreamId last) {
  RedisMetadata::Stream stream = key.stream();
  const uint64_t left = key.size() - std::min(key.size(), removed);
  stream.first = stream.recorded_first = left == 0 ? lowest_id : first;
  stream.last = left == 0 ? lowest_id : last;
  key.set_stream(left, stream);
}

Result<StreamId> end_of(Keys& keys, const Key& key, bool reverse) {
  StreamId end;
  TRY(scan_entries(keys, key, {.count = 1}, reverse, [&](const StreamId& id, ByteView) {
    end = id;
    return Visit::stop;
  }));
  return end;
}

}  // namespace

Result<uint64_t> delete_entries(Keys& keys, Key& key, std::vector<StreamId> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::vector<Value> entries(ids.size());
  TRY(get_entries(keys, key, ids, entries));
  RedisMetadata::Stream stream = key.stream();
  uint64_t deleted = 0;
  for (size_t i = 0; i < ids.size(); i++) {
    if (!entries[i].found()) continue;
    keys.remove_sub(key, entry_sub(ids[i]), entries[i]);
    stream.max_deleted = std::max(stream.max_deleted, ids[i]);
    deleted++;
  }
  if (deleted == 0) return 0;
  const bool is_all = deleted >= key.size();
  const auto is_gone = [&](const StreamId& end) {
    const auto found = std::lower_bound(ids.begin(), ids.end(), end);
    return !is_all && found != ids.end() && *found == end;
  };
  if (is_gone(stream.first)) {
    TRY_ASSIGN(stream.first, end_of(keys, key, false));
  }
  if (is_gone(stream.last)) {
    TRY_ASSIGN(stream.last, end_of(keys, key, true));
  }
  key.set_stream(key.size(), stream);
  shrink(key, deleted, stream.first, stream.last);
  return deleted;
}

// --- trimming ---

namespace {

// How many entries a rough trim takes: whole units, or all.
Result<uint64_t> rough_count(Keys& keys, const Key& key, const Trim& trim) {
  const uint64_t limit = trim.limit == 0 ? UINT64_MAX : trim.limit;
  uint64_t wanted = 0;
  if (trim.by == Trim::By::length) {
    wanted = key.size() - std::min(key.size(), trim.length);
  } else if (trim.first > key.stream().last) {
    wanted = key.size();
  } else {
    TRY(scan_entries(keys, key, {.count = limit}, false, [&](const StreamId& id, ByteView) {
      if (id >= trim.first) return Visit::stop;
      return ++wanted >= limit ? Visit::stop : Visit::go_on;
    }));
  }
  if (wanted == key.size() && wanted <= limit) return wanted;
  return trim.unit == 0 ? 0 : std::min(wanted, limit) / trim.unit * trim.unit;
}

struct Trimmed {
  uint64_t count = 0;
  StreamId last;    // of those
  StreamId behind;  // the first that stays
  // All of them, unless they are many.
  std::vector<std::pair<Bytes, Bytes>> records;
};

Result<Trimmed> find_trimmed(Keys& keys, const Key& key, uint64_t count_max, StreamId first) {
  Trimmed trimmed;
  const IdRange range{.count = first == highest_id ? count_max + 1 : 0};
  TRY(scan_entries(keys, key, range, false, [&](const StreamId& id, ByteView entry) {
    if (trimmed.count == count_max || id >= first) {
      trimmed.behind = id;
      return Visit::stop;
    }
    trimmed.last = id;
    if (++trimmed.count <= trimmed_at_once_max) trimmed.records.emplace_back(entry_sub(id), entry);
    return Visit::go_on;
  }));
  return trimmed;
}

}  // namespace

Result<uint64_t> trim_stream(Keys& keys, Key& key, const Trim& trim) {
  uint64_t count = key.size();
  if (trim.by == Trim::By::none || count == 0) return 0;
  if (trim.is_rough) {
    TRY_ASSIGN(count, rough_count(keys, key, trim));
  } else if (trim.by == Trim::By::length) {
    count -= std::min(count, trim.length);
  }
  const StreamId first = trim.by == Trim::By::id ? trim.first : highest_id;
  if (count == 0 || first <= key.stream().first) return 0;
  if (count == key.size() && first > key.stream().last && count > trimmed_at_once_max) {
    keys.leave_trimmed(key, key.stream().last, count);
    shrink(key, count, {}, {});
    return count;
  }
  TRY_ASSIGN(const Trimmed trimmed, find_trimmed(keys, key, count, first));
  if (trimmed.count > trimmed_at_once_max) {
    keys.leave_trimmed(key, trimmed.last, trimmed.count);
  } else {
    for (const auto& [sub, entry] : trimmed.records) {
      Value old;
      old.set_borrowed(entry);
      keys.remove_sub(key, sub, old);
    }
  }
  shrink(key, trimmed.count, trimmed.behind, key.stream().last);
  return trimmed.count;
}

}  // namespace trellis
