#include "tenant/change_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "codec/system_keys.h"
#include "keyspace.pb.h"
#include "tenant/keyspace_message.h"
#include "tenant/stored_message.h"

namespace trellis {
namespace {

constexpr char revision_format = 0x01;

Bytes encode_revision(uint64_t revision) {
  Bytes out(1, revision_format);
  append_be64(out, revision);
  return out;
}

Result<uint64_t> revision_of(const Value& value) {
  if (!value.found()) return 0;
  const ByteView bytes = value.bytes();
  if (bytes.size() != 9 || bytes[0] != revision_format)
    return Error{Code::corrupt, "the stored revision of keyspaces does not make sense"};
  return load_be(bytes.data() + 1, 8);
}

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

ChangeLog::ChangeLog(MapHandle map, uint64_t kept_max) : map_(map), kept_max_(kept_max) {}

void ChangeLog::lock(Scope& scope) { scope.exclusive(encode(KeyspaceRevisionKey{})); }

Result<uint64_t> ChangeLog::append(View& view, Change& change) const {
  const Bytes head = encode(KeyspaceRevisionKey{});
  Value value;
  TRY(view.get(head, value));
  TRY_ASSIGN(const uint64_t last, revision_of(value));
  change.revision = last + 1;
  change.time_ms = map_.clock.unix_ms();
  if (change.after) change.after->revision = change.revision;
  view.put(head, encode_revision(change.revision));
  view.put(encode(KeyspaceChangeKey{change.revision}), encode_change(change));
  if (change.revision > kept_max_)
    view.remove(encode(KeyspaceChangeKey{change.revision - kept_max_}));
  return change.revision;
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

Result<uint64_t> ChangeLog::revision() const {
  Value value;
  TRY(map_.engine.get(encode(KeyspaceRevisionKey{}), value));
  return revision_of(value);
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
  TRY_ASSIGN(const uint64_t last, revision());
  const bool gap = changes.empty() ? last > kept_max_ && since < last - kept_max_
                                   : changes[0].revision != since + 1;
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
