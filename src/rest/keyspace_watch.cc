#include "rest/keyspace_watch.h"

#include <fmt/format.h>

#include <iterator>

#include "json/json_text.h"
#include "rest/keyspace_json.h"

namespace trellis {
namespace {

constexpr size_t page_keyspaces = 500;
constexpr size_t page_changes = 500;

// JSON has no line ends, so that it is one line of data.
void append_event(Bytes& out, const Keyspace& keyspace, uint64_t revision, bool has_id) {
  const std::string_view type = keyspace.purged_at_s != 0 ? "delete" : "upsert";
  if (has_id) fmt::format_to(std::back_inserter(out), "id: {}\n", revision);
  fmt::format_to(std::back_inserter(out),
                 "event: {}\ndata: {{\"revision\":{},\"type\":\"{}\",\"keyspace\":", type, revision,
                 type);
  append_json(out, keyspace_json(keyspace));
  out += "}\n\n";
}

}  // namespace

void KeyspaceWatch::on_start(Waker waker) {
  subscription_ = keyspaces_.changes().subscribe([waker] { waker.wake(); });
}

Result<Chunk> KeyspaceWatch::next() { return lists_ ? list() : follow(); }

Result<Chunk> KeyspaceWatch::list() {
  if (!list_from_.has_value()) {
    TRY_ASSIGN(since_, keyspaces_.changes().revision());
    list_from_ = default_keyspace;
  }
  TRY_ASSIGN(const Keyspaces::Page page, keyspaces_.list(*list_from_, page_keyspaces));
  lists_ = page.next.has_value();
  Chunk chunk{.bytes = {}, .then = Chunk::Then::more};
  for (const Keyspace& keyspace : page.keyspaces) {
    const bool is_last = !lists_ && &keyspace == &page.keyspaces.back();
    append_event(chunk.bytes, keyspace, since_, is_last);
  }
  if (lists_) list_from_ = page.next;
  told_ = since_;
  sent_us_ = clock_.monotonic_us();
  return chunk;
}

Result<Chunk> KeyspaceWatch::follow() {
  TRY_ASSIGN(const std::vector<Change> changes, keyspaces_.changes().read(since_, page_changes));
  Chunk chunk{.bytes = {}, .then = Chunk::Then::wait, .wait_ms = watch_heartbeat_ms};
  for (const Change& change : changes) {
    since_ = change.revision;
    if (!change.after.has_value()) continue;
    append_event(chunk.bytes, *change.after, change.revision, true);
    told_ = change.revision;
  }
  if (changes.size() == page_changes) chunk.then = Chunk::Then::more;
  const uint64_t now_us = clock_.monotonic_us();
  const uint64_t quiet_ms = sent_us_.has_value() ? (now_us - *sent_us_) / 1000 : watch_heartbeat_ms;
  if (chunk.bytes.empty() && quiet_ms >= watch_heartbeat_ms) {
    chunk.bytes = ": still here\n\n";
    // What was passed over need not be looked at again by a client that comes back.
    if (since_ > told_) fmt::format_to(std::back_inserter(chunk.bytes), "id: {}\n\n", since_);
    told_ = since_;
  }
  if (!chunk.bytes.empty()) {
    sent_us_ = now_us;
  } else if (chunk.then == Chunk::Then::wait) {
    chunk.wait_ms = static_cast<uint32_t>(watch_heartbeat_ms - quiet_ms);
  }
  return chunk;
}

}  // namespace trellis
