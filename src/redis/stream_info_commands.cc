// XINFO: what streams, their groups and consumers are like.
#include <fmt/format.h>

#include <algorithm>

#include "redis/help.h"
#include "redis/server.h"
#include "redis/stream_group.h"
#include "redis/stream_handlers.h"

namespace trellis {
namespace {

using namespace command_flag;

Result<Key*> open_to_show(Call& call) {
  TRY_ASSIGN(Key* const key, call.open(2, RedisType::stream));
  if (!key->exists()) return no_such_key();
  return key;
}

void reply_number(Reply& reply, std::string_view name, uint64_t number) {
  reply.bulk(name);
  reply.integer(static_cast<int64_t>(number));
}

void reply_id(Reply& reply, std::string_view name, const StreamId& id) {
  reply.bulk(name);
  reply.bulk(id_text(id));
}

// --- of groups ---

void reply_progress(Reply& reply, const StreamGroup& group) {
  reply_id(reply, "last-delivered-id", group.last());
  reply.bulk("entries-read");
  if (group.entries_read() == entries_read_unknown)
    reply.null();
  else
    reply.integer(group.entries_read());
  reply.bulk("lag");
  if (const auto lag = group.lag())
    reply.integer(*lag);
  else
    reply.null();
}

// All groups of a stream, in order.
Status visit_groups(Call& call, Key& key, FunctionRef<Status(StreamGroup&)> visit) {
  TRY_ASSIGN(const std::vector<Bytes> names, group_names(call.keys, key));
  call.reply.array(names.size());
  for (const Bytes& name : names) {
    TRY_ASSIGN(StreamGroup* const group, StreamGroup::open(call.keys, key, name));
    if (group == nullptr) return Error{Code::corrupt, "a stream does not count its groups"};
    TRY(visit(*group));
  }
  return {};
}

Status show_groups(Call& call) {
  TRY_ASSIGN(Key* const key, open_to_show(call));
  return visit_groups(call, *key, [&](StreamGroup& group) -> Status {
    call.reply.map(6);
    call.reply.bulk("name");
    call.reply.bulk(group.name());
    reply_number(call.reply, "consumers", group.consumers());
    reply_number(call.reply, "pending", group.pending());
    reply_progress(call.reply, group);
    return {};
  });
}

Status show_consumers(Call& call) {
  TRY_ASSIGN(Key* const key, open_to_show(call));
  TRY_ASSIGN(const StreamGroup* const group, StreamGroup::open(call.keys, *key, call.arg(3)));
  if (group == nullptr)
    return reply_with(fmt::format("NOGROUP No such consumer group '{}' for key name '{}'",
                                  shown(call.arg(3)), shown(call.arg(2))));
  TRY_ASSIGN(const auto consumers, group->all_consumers());
  call.reply.array(consumers.size());
  for (const auto& [name, consumer] : consumers) {
    const auto idle_ms = static_cast<int64_t>(call.now_ms() - consumer.last_attempt_ms);
    call.reply.map(3);
    call.reply.bulk("name");
    call.reply.bulk(name);
    reply_number(call.reply, "pending", consumer.pending);
    call.reply.bulk("idle");
    call.reply.integer(std::max<int64_t>(idle_ms, 0));
  }
  return {};
}

// --- of a stream ---

// Redis keeps entries in nodes of so many. Here they are records: it would have so many nodes.
uint64_t nodes_of(Call& call, const Key& key) {
  const auto most = static_cast<uint64_t>(
      call.server.config().number(call.session.tenant->id(), "stream-node-max-entries"));
  if (most == 0) return key.size() == 0 ? 0 : 1;
  return key.size() / most + (key.size() % most == 0 ? 0 : 1);
}

void reply_head(Call& call, const Key& key) {
  const RedisMetadata::Stream& stream = key.stream();
  const uint64_t nodes = nodes_of(call, key);
  reply_number(call.reply, "length", key.size());
  reply_number(call.reply, "radix-tree-keys", nodes);
  reply_number(call.reply, "radix-tree-nodes", nodes + 1);
  reply_id(call.reply, "last-generated-id", stream.last_generated);
  reply_id(call.reply, "max-deleted-entry-id", stream.max_deleted);
  reply_number(call.reply, "entries-added", stream.entries_added);
  reply_id(call.reply, "recorded-first-entry-id", stream.first);
}

Status reply_end(Call& call, const Key& key, std::string_view name, bool reverse) {
  call.reply.bulk(name);
  if (key.size() == 0) {
    call.reply.null();
    return {};
  }
  Status bad;
  TRY(scan_entries(call.keys, key, {.count = 1}, reverse, [&](const StreamId& id, ByteView entry) {
    bad = reply_entry(call.reply, id, entry);
    return Visit::stop;
  }));
  return bad;
}

// Of all, or of one consumer, who is not named again.
Status reply_some_pending(Call& call, const StreamGroup& group, std::optional<ByteView> consumer,
                          uint64_t count) {
  call.reply.bulk("pending");
  const size_t mark = call.reply.mark();
  size_t shown = 0;
  TRY(group.visit_pending(consumer, {}, [&](const PendingEntry& entry) {
    call.reply.array(consumer ? 3 : 4);
    call.reply.bulk(id_text(entry.id));
    if (!consumer) call.reply.bulk(entry.consumer);
    call.reply.integer(static_cast<int64_t>(entry.delivered_ms));
    call.reply.integer(static_cast<int64_t>(entry.deliveries));
    return ++shown == count ? Visit::stop : Visit::go_on;
  }));
  call.reply.insert_array(mark, shown);
  return {};
}

Status reply_whole_group(Call& call, StreamGroup& group, uint64_t count) {
  call.reply.map(7);
  call.reply.bulk("name");
  call.reply.bulk(group.name());
  reply_progress(call.reply, group);
  reply_number(call.reply, "pel-count", group.pending());
  TRY(reply_some_pending(call, group, {}, count));
  TRY_ASSIGN(const auto consumers, group.all_consumers());
  call.reply.bulk("consumers");
  call.reply.array(consumers.size());
  for (const auto& [name, consumer] : consumers) {
    call.reply.map(4);
    call.reply.bulk("name");
    call.reply.bulk(name);
    reply_number(call.reply, "seen-time", consumer.last_attempt_ms);
    reply_number(call.reply, "pel-count", consumer.pending);
    TRY(reply_some_pending(call, group, name, count));
  }
  return {};
}

Error wrong_info_option(const Call& call) {
  return reply_with(
      fmt::format("ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
                  shown(call.arg(1), 128), upper(shown(call.arg(0)))));
}

// Absent: not all of it is asked for; else how much of each list; 0: all of it.
Result<std::optional<uint64_t>> parse_full(const Call& call) {
  constexpr int64_t count_usual = 10;
  if (call.count() == 3) return std::optional<uint64_t>();
  if ((call.count() != 4 && call.count() != 6) || !call.is_word(3, "full"))
    return wrong_info_option(call);
  int64_t count = count_usual;
  if (call.count() == 6) {
    if (!call.is_word(4, "count")) return wrong_info_option(call);
    TRY_ASSIGN(count, call.integer(5));
    if (count < 0) count = count_usual;
  }
  return std::optional<uint64_t>(static_cast<uint64_t>(count));
}

Status show_stream(Call& call) {
  TRY_ASSIGN(Key* const key, open_to_show(call));
  TRY_ASSIGN(const std::optional<uint64_t> count, parse_full(call));
  call.reply.map(count ? 9 : 10);
  reply_head(call, *key);
  if (!count) {
    reply_number(call.reply, "groups", key->stream().groups);
    TRY(reply_end(call, *key, "first-entry", false));
    return reply_end(call, *key, "last-entry", true);
  }
  call.reply.bulk("entries");
  TRY(reply_entries(call, *key, {}, false, *count));
  call.reply.bulk("groups");
  return visit_groups(call, *key,
                      [&](StreamGroup& group) { return reply_whole_group(call, group, *count); });
}

constexpr Command about_stream(std::string_view name, int arity, Status (*handler)(Call&),
                               std::string_view syntax, std::string_view summary) {
  return {.name = name,
          .arity = arity,
          .flags = readonly,
          .keys = {2, 2, 1},
          .handler = handler,
          .since = "5.0.0",
          .summary = summary,
          .container = "xinfo",
          .syntax = syntax};
}

const Command xinfo_table[] = {
    about_stream("consumers", 4, show_consumers, "<key> <groupname>", "The consumers of a group."),
    about_stream("groups", 3, show_groups, "<key>", "The groups of a stream."),
    help_entry("xinfo", "5.0.0"),
    about_stream("stream", -3, show_stream, "<key> [FULL [COUNT <count>]]",
                 "A stream, with its groups and what is pending if that is asked for."),
};

}  // namespace

std::span<const Command> xinfo_commands() { return xinfo_table; }

}  // namespace trellis
