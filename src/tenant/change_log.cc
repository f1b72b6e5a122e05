#include "tenant/change_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "codec/stored_message.h"
#include "codec/system_keys.h"
#include "keyspace.pb.h"
#include "tenant/keyspace_message.h"

namespace trellis {
namespace {

constexpr char revision_format = 0x01;
constexpr char head_format = 0x02;
// How many one append removes. More than one of the largest entries makes necessary; fewer than a
// log that shall be much smaller than it was would need at once.
constexpr size_t trimmed_max = 2'000;

Bytes encode_change(const Change& change) {
  stored::Change message;
  message.set_time_ms(change.time_ms);
  message.set_actor(change.actor);
  message.set_action(change.action);
  message.set_keyspace(change.keyspace.value);
  message.set_name(change.name);
  message.set_detail(change.detail);
  if (change.after) fill_message(*change.after, *message.mutable_after());
  return encode_message(message);
}

Result<Change> decode_change(uint64_t revision, ByteView bytes) {
  stored::Change message;
  TRY(decode_message(bytes, message, "change of a keyspace"));
  Change change{.revision = revision,
                .time_ms = message.time_ms(),
                .actor = message.actor(),
                .action = message.action(),
                .keyspace = KeyspaceId{message.keyspace()},
                .name = message.name(),
                .detail = message.detail(),
                .after = std::nullopt};
  if (message.has_after()) {
    TRY_ASSIGN(change.after, keyspace_of(message.after()));
  }
  return change;
}

}  // namespace

// What was there before bytes were counted goes by its number alone.
Result<ChangeLog::Head> ChangeLog::decode_head(const Value& value) {
  if (!value.found()) return Head();
  const ByteView bytes = value.bytes();
  if (bytes.size() == 9 && bytes[0] == revision_format) {
    const uint64_t revision = load_be(bytes.data() + 1, 8);
    return Head{.revision = revision, .first = revision + 1};
  }
  if (bytes.size() != 25 || bytes[0] != head_format)
    return Error{Code::corrupt, "the stored revision of keyspaces does not make sense"};
  return Head{.revision = load_be(bytes.data() + 1, 8),
              .first = load_be(bytes.data() + 9, 8),
              .bytes = load_be(bytes.data() + 17, 8)};
}

Bytes ChangeLog::encode_head(const Head& head) {
  Bytes out(1, head_format);
  append_be64(out, head.revision);
  append_be64(out, head.first);
  append_be64(out, head.bytes);
  return out;
}

void ChangeLog::lock(Scope& scope) { scope.exclusive(encode(KeyspaceRevisionKey{})); }

Result<uint64_t> ChangeLog::append(View& view, Change& change) const {
  const Bytes head_key = encode(KeyspaceRevisionKey{});
  Value value;
  TRY(view.get(head_key, value));
  TRY_ASSIGN(Head head, decode_head(value));
  change.revision = ++head.revision;
  change.time_ms = map_.clock.unix_ms();
  if (change.after) change.after->revision = change.revision;
  const Bytes key = encode(KeyspaceChangeKey{change.revision});
  const Bytes entry = encode_change(change);
  head.bytes += key.size() + entry.size();
  TRY(trim(view, head));
  view.put(key, entry);
  view.put(head_key, encode_head(head));
  return change.revision;
}

// Removes the oldest entries that are over a limit, but for the one that is being appended.
Status ChangeLog::trim(View& view, Head& head) const {
  // One from before bytes were counted may be there.
  if (head.revision > limits_.entries_max && head.revision - limits_.entries_max < head.first)
    view.remove(encode(KeyspaceChangeKey{head.revision - limits_.entries_max}));
  const auto over = [&] {
    return head.bytes > limits_.bytes_max || head.revision - head.first >= limits_.entries_max;
  };
  if (!over()) return {};
  const Bytes begin = encode(KeyspaceChangeKey{head.first});
  const Bytes end = encode(KeyspaceChangeKey{head.revision});
  std::vector<Bytes> removed;
  const auto visit = [&](ByteView key, ByteView entry) {
    removed.emplace_back(key);
    head.bytes -= std::min<uint64_t>(head.bytes, key.size() + entry.size());
    if (const auto decoded = decode<KeyspaceChangeKey>(key)) head.first = decoded->revision + 1;
    return over() ? Visit::go_on : Visit::stop;
  };
  TRY(view.scan({.begin = begin, .end = end, .entries_max = trimmed_max}, visit));
  for (const Bytes& key : removed) view.remove(key);
  return {};
}

void ChangeLog::announce() const {
  std::vector<Subscription> awake;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(subscribers_, [&](const auto& weak) {
      Subscription subscriber = weak.lock();
      if (subscriber == nullptr) return true;
      awake.push_back(std::move(subscriber));
      return false;
    });
  }
  for (const Subscription& subscriber : awake) (*subscriber)();
}

Status ChangeLog::record(Change change) const {
  Scope scope = Scope::system();
  lock(scope);
  Status status = map_.transact_durably(scope, [&](View& view) -> Status {
    TRY(append(view, change));
    return {};
  });
  if (status || status.error().code == Code::maybe) announce();
  return status;
}

Result<ChangeLog::Head> ChangeLog::load_head() const {
  Value value;
  TRY(map_.engine.get(encode(KeyspaceRevisionKey{}), value));
  return decode_head(value);
}

Result<uint64_t> ChangeLog::revision() const {
  TRY_ASSIGN(const Head head, load_head());
  return head.revision;
}

Result<std::vector<Change>> ChangeLog::read(uint64_t since, size_t limit) const {
  std::vector<Change> changes;
  Status bad;
  const auto visit = [&](ByteView key, ByteView value) {
    const auto decoded = decode<KeyspaceChangeKey>(key);
    auto change = decoded ? decode_change(decoded->revision, value) : decoded.error();
    if (!change) {
      bad = std::move(change).error();
      return Visit::stop;
    }
    changes.push_back(std::move(*change));
    return Visit::go_on;
  };
  std::optional<Bytes> begin =
      encode(KeyspaceChangeKey{since == UINT64_MAX ? UINT64_MAX : since + 1});
  const Bytes end = encode(KeyspaceChangeKey{UINT64_MAX});
  // Large ones are more than a page.
  while (begin && bad.has_value() && changes.size() < limit) {
    TRY_ASSIGN(ScanPage page,
               map_.engine.scan(
                   {.begin = *begin, .end = end, .entries_max = limit - changes.size()}, visit));
    begin = std::move(page.resume);
  }
  TRY(bad);
  // Trimmed between two pages: whoever asks for what follows is told so.
  const auto last_before_gap = std::ranges::adjacent_find(
      changes, [](const Change& a, const Change& b) { return b.revision != a.revision + 1; });
  if (last_before_gap != changes.end()) changes.erase(last_before_gap + 1, changes.end());
  // Read after the entries: whatever was trimmed before they were read is seen here.
  TRY_ASSIGN(const Head head, load_head());
  const uint64_t last = head.revision;
  const bool gap = changes.empty() ? since < head.first - 1 : changes[0].revision != since + 1;
  if (since > last)
    return Error{Code::invalid,
                 fmt::format("revision {} is not there yet: the last one is {}", since, last),
                 "revision_in_future"};
  if (gap)
    return Error{Code::not_found,
                 fmt::format("changes since revision {} are no longer kept: list the keyspaces, "
                             "then watch from {}",
                             since, last),
                 "compacted"};
  return changes;
}

ChangeLog::Subscription ChangeLog::subscribe(std::function<void()> wake) const {
  auto subscription = std::make_shared<std::function<void()>>(std::move(wake));
  const std::lock_guard lock(mutex_);
  // Those who left since: there may be no announce for a long time.
  std::erase_if(subscribers_, [](const auto& weak) { return weak.expired(); });
  subscribers_.push_back(subscription);
  return subscription;
}

}  // namespace trellis
