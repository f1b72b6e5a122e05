// Consumer groups: what is read through them, acknowledged and pending.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "redis/help.h"
#include "redis/stream_group.h"
#include "redis/stream_handlers.h"

namespace trellis {
namespace {

using namespace command_flag;

Error no_key_or_group(ByteView key, ByteView group, std::string_view where = {}) {
  return reply_with(fmt::format("NOGROUP No such key '{}' or consumer group '{}'{}", shown(key),
                                shown(group), where));
}

Error no_group(ByteView key, ByteView group) {
  return reply_with(fmt::format("NOGROUP No such consumer group '{}' for key name '{}'",
                                shown(group), shown(key)));
}

Error wrong_option(const Call& call) {
  return reply_with(
      fmt::format("ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
                  shown(call.arg(1), 128), upper(shown(call.arg(0)))));
}

// --- XGROUP ---

struct GroupOptions {
  bool make_stream = false;
  int64_t entries_read = entries_read_unknown;
};

Result<GroupOptions> parse_group_options(const Call& call, bool creates) {
  GroupOptions options;
  for (size_t i = 5; i < call.count(); i++) {
    if (creates && call.is_word(i, "mkstream")) {
      options.make_stream = true;
    } else if (call.is_word(i, "entriesread") && i + 1 < call.count()) {
      TRY_ASSIGN(options.entries_read, call.integer(++i));
      if (options.entries_read < 0 && options.entries_read != entries_read_unknown)
        return reply_with("ERR value for ENTRIESREAD must be positive or -1");
    } else {
      return wrong_option(call);
    }
  }
  return options;
}

Result<Key*> open_stream(Call& call, bool must_exist) {
  TRY_ASSIGN(Key* const key, call.open(2, RedisType::stream));
  if (!key->exists() && must_exist)
    return reply_with(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to "
        "use the MKSTREAM option to create an empty stream automatically.");
  return key;
}

Result<StreamGroup*> open_group(Call& call) {
  TRY_ASSIGN(Key* const key, open_stream(call, true));
  TRY_ASSIGN(StreamGroup* const group, StreamGroup::open(call.keys, *key, call.arg(3)));
  if (group == nullptr) return no_group(call.arg(2), call.arg(3));
  return group;
}

// "$" is the last one of the stream.
Result<StreamId> group_id(const Call& call, const Key& key) {
  if (call.arg(4) != "$") return id_at(call, 4);
  return key.exists() ? key.stream().last_generated : lowest_id;
}

Status create_group(Call& call) {
  TRY_ASSIGN(const GroupOptions options, parse_group_options(call, true));
  TRY_ASSIGN(Key* const key, open_stream(call, !options.make_stream));
  TRY_ASSIGN(const StreamId id, group_id(call, *key));
  TRY_ASSIGN(const StreamGroup* const group, StreamGroup::open(call.keys, *key, call.arg(3)));
  if (group != nullptr) return reply_with("BUSYGROUP Consumer Group name already exists");
  if (!key->exists()) key->create(RedisType::stream, call.keys.new_version());
  StreamGroup::create(call.keys, *key, call.arg(3), id, options.entries_read).save();
  call.reply.ok();
  return {};
}

Status set_group_id(Call& call) {
  TRY_ASSIGN(const GroupOptions options, parse_group_options(call, false));
  TRY_ASSIGN(StreamGroup* const group, open_group(call));
  TRY_ASSIGN(const Key* const key, call.open(2));
  StreamId id = call.arg(4) == "+" ? highest_id : lowest_id;
  if (call.arg(4) != "+" && call.arg(4) != "-") {
    TRY_ASSIGN(id, group_id(call, *key));
  }
  group->set_last(id);
  group->set_entries_read(options.entries_read);
  call.reply.ok();
  return {};
}

Status destroy_group(Call& call) {
  TRY_ASSIGN(Key* const key, open_stream(call, true));
  TRY_ASSIGN(StreamGroup* const group, StreamGroup::open(call.keys, *key, call.arg(3)));
  if (group != nullptr) TRY(group->destroy(*key));
  call.reply.integer(group == nullptr ? 0 : 1);
  return {};
}

Status create_consumer(Call& call) {
  TRY_ASSIGN(StreamGroup* const group, open_group(call));
  TRY_ASSIGN(const StreamGroup::Consumer* const consumer, group->consumer(call.arg(4)));
  const bool creates = !consumer->exists;
  if (creates) TRY(group->add_consumer(call.arg(4), call.now_ms()));
  call.reply.integer(creates ? 1 : 0);
  return {};
}

Status delete_consumer(Call& call) {
  TRY_ASSIGN(StreamGroup* const group, open_group(call));
  TRY_ASSIGN(const StreamGroup::Consumer* const consumer, group->consumer(call.arg(4)));
  uint64_t pending = 0;
  if (consumer->exists) {
    TRY_ASSIGN(pending, group->remove_consumer(call.arg(4)));
  }
  call.reply.integer(static_cast<int64_t>(pending));
  return {};
}

constexpr Command about_group(std::string_view name, int arity, uint32_t flags,
                              Status (*handler)(Call&), std::string_view since,
                              std::string_view syntax, std::string_view summary) {
  return {.name = name,
          .arity = arity,
          .flags = write | flags,
          .keys = {2, 2, 1},
          .handler = handler,
          .since = since,
          .summary = summary,
          .container = "xgroup",
          .syntax = syntax};
}

const Command xgroup_table[] = {
    about_group("create", -5, denyoom, create_group, "5.0.0",
                "<key> <groupname> <id|$> [MKSTREAM] [ENTRIESREAD <entries_read>]",
                "Makes a group that goes on behind an id."),
    about_group("createconsumer", 5, denyoom, create_consumer, "6.2.0",
                "<key> <groupname> <consumer>", "Makes a consumer of a group."),
    about_group("delconsumer", 5, 0, delete_consumer, "5.0.0", "<key> <groupname> <consumer>",
                "Removes a consumer, with what is pending of it."),
    about_group("destroy", 4, 0, destroy_group, "5.0.0", "<key> <groupname>", "Removes a group."),
    help_entry("xgroup", "5.0.0"),
    about_group("setid", -5, 0, set_group_id, "5.0.0",
                "<key> <groupname> <id|$> [ENTRIESREAD <entries_read>]",
                "Says behind which id a group goes on."),
};

// --- XREADGROUP ---

// What was delivered to the consumer before. What is not in the stream any more has no fields.
Status reply_history(Call& call, const Key& key, StreamGroup& group, const ReadOptions& options,
                     const StreamId& id) {
  constexpr size_t page_entries = 256;
  std::vector<PendingEntry> pending;
  if (const auto first = id_behind(id))
    TRY(group.visit_pending(options.consumer, {.first = *first}, [&](const PendingEntry& entry) {
      pending.push_back(entry);
      return pending.size() == options.count ? Visit::stop : Visit::go_on;
    }));
  call.reply.array(pending.size());
  for (size_t begin = 0; begin < pending.size(); begin += page_entries) {
    const size_t count = std::min(page_entries, pending.size() - begin);
    std::vector<StreamId> ids;
    for (size_t i = 0; i < count; i++) ids.push_back(pending[begin + i].id);
    std::vector<Value> entries(count);
    TRY(get_entries(call.keys, key, ids, entries));
    for (size_t i = 0; i < count; i++) {
      if (!entries[i].found()) {
        call.reply.array(2);
        call.reply.bulk(id_text(ids[i]));
        call.reply.null_array();
        continue;
      }
      TRY(reply_entry(call.reply, ids[i], entries[i].bytes()));
      PendingEntry again = pending[begin + i];
      again.delivered_ms = call.now_ms();
      again.deliveries++;
      TRY(group.put_pending(again, pending[begin + i]));
    }
  }
  return {};
}

// What was delivered to nobody yet.
Status reply_new(Call& call, const Key& key, StreamGroup& group, const ReadOptions& options) {
  std::vector<StreamId> ids;
  const size_t mark = call.reply.mark();
  Status bad;
  TRY(scan_entries(call.keys, key, {.first = *id_behind(group.last()), .count = options.count},
                   false, [&](const StreamId& id, ByteView entry) {
                     ids.push_back(id);
                     bad = reply_entry(call.reply, id, entry);
                     return !bad || ids.size() == options.count ? Visit::stop : Visit::go_on;
                   }));
  TRY(bad);
  call.reply.insert_array(mark, ids.size());
  for (const StreamId& id : ids) group.pass(id);
  TRY(group.serve(options.consumer));
  if (options.no_ack) return {};
  TRY_ASSIGN(const std::vector<StreamGroup::Pending> was, group.get_pending(ids));
  for (size_t i = 0; i < ids.size(); i++)
    TRY(group.put_pending({ids[i], call.now_ms(), 1, Bytes(options.consumer)}, was[i]));
  return {};
}

Result<StreamId> read_group_id(const Call& call, size_t i) {
  if (call.arg(i) == "$")
    return reply_with(
        "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of "
        "this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID "
        "would just return an empty result set.");
  if (call.arg(i) == ">") return highest_id;
  return id_at(call, i);
}

}  // namespace

std::span<const Command> xgroup_commands() { return xgroup_table; }

Status xreadgroup(Call& call) {
  TRY_ASSIGN(const ReadOptions options, parse_read_options(call));
  std::vector<StreamId> ids;
  const auto open = [&](size_t i) -> Result<StreamGroup*> {
    TRY_ASSIGN(Key* const key, call.open(options.streams_at + i, RedisType::stream));
    return StreamGroup::open(call.keys, *key, *options.group);
  };
  for (size_t i = 0; i < options.streams; i++) {
    TRY_ASSIGN(const StreamGroup* const group, open(i));
    if (group == nullptr)
      return no_key_or_group(call.arg(options.streams_at + i), *options.group,
                             " in XREADGROUP with GROUP option");
    TRY_ASSIGN(const StreamId id, read_group_id(call, options.streams_at + options.streams + i));
    ids.push_back(id);
  }
  StreamsReply reply(call.reply);
  for (size_t i = 0; i < options.streams; i++) {
    TRY_ASSIGN(StreamGroup* const group, open(i));
    TRY_ASSIGN(const Key* const key, call.open(options.streams_at + i));
    const bool is_history = ids[i] != highest_id;
    const bool has_new = key->size() > 0 && key->stream().last > group->last();
    if (!is_history && !has_new) continue;  // then nobody was seen either, as in Redis
    reply.add(call.arg(options.streams_at + i));
    TRY(group->see(options.consumer));
    TRY(is_history ? reply_history(call, *key, *group, options, ids[i])
                   : reply_new(call, *key, *group, options));
  }
  reply.finish();
  return {};
}

Status xack(Call& call) {
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::stream));
  TRY_ASSIGN(StreamGroup* const group, StreamGroup::open(call.keys, *key, call.arg(2)));
  if (group == nullptr) {
    call.reply.integer(0);
    return {};
  }
  TRY_ASSIGN(std::vector<StreamId> ids, ids_from(call, 3));
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  TRY_ASSIGN(const std::vector<StreamGroup::Pending> pending, group->get_pending(ids));
  int64_t acknowledged = 0;
  for (const StreamGroup::Pending& entry : pending) {
    if (!entry) continue;
    TRY(group->remove_pending(*entry));
    acknowledged++;
  }
  call.reply.integer(acknowledged);
  return {};
}

// --- XPENDING ---

namespace {

struct PendingQuery {
  int64_t idle_ms = 0;
  IdRange range;
  int64_t count = 0;
  std::optional<ByteView> consumer;
};

Result<PendingQuery> parse_pending_query(const Call& call) {
  PendingQuery query;
  size_t at = 3;
  if (call.is_word(3, "idle")) {
    TRY_ASSIGN(query.idle_ms, call.integer(4));
    if (call.count() < 8) return syntax_error();
    at = 5;
  }
  TRY_ASSIGN(const int64_t count, call.integer(at + 2));
  query.count = std::max<int64_t>(count, 0);
  TRY_ASSIGN(query.range.first, first_of_range(call, at));
  TRY_ASSIGN(query.range.last, last_of_range(call, at + 1));
  if (at + 3 < call.count()) query.consumer = call.arg(at + 3);
  return query;
}

Status reply_summary(Call& call, const StreamGroup& group) {
  call.reply.array(4);
  call.reply.integer(static_cast<int64_t>(group.pending()));
  if (group.pending() == 0) {
    call.reply.null();
    call.reply.null();
    call.reply.null_array();
    return {};
  }
  TRY_ASSIGN(const IdRange ends, group.pending_ends());
  call.reply.bulk(id_text(ends.first));
  call.reply.bulk(id_text(ends.last));
  TRY_ASSIGN(const auto consumers, group.all_consumers());
  const size_t mark = call.reply.mark();
  size_t shown = 0;
  for (const auto& [name, consumer] : consumers) {
    if (consumer.pending == 0) continue;
    call.reply.array(2);
    call.reply.bulk(name);
    call.reply.bulk(std::to_string(consumer.pending));
    shown++;
  }
  call.reply.insert_array(mark, shown);
  return {};
}

Status reply_pending(Call& call, StreamGroup& group, const PendingQuery& query) {
  if (query.consumer) {
    TRY_ASSIGN(const StreamGroup::Consumer* const consumer, group.consumer(*query.consumer));
    if (!consumer->exists) {
      call.reply.array(0);
      return {};
    }
  }
  const size_t mark = call.reply.mark();
  int64_t shown = 0;
  const auto show = [&](const PendingEntry& entry) {
    const auto idle_ms = static_cast<int64_t>(call.now_ms() - entry.delivered_ms);
    if (query.idle_ms != 0 && idle_ms < query.idle_ms) return Visit::go_on;
    call.reply.array(4);
    call.reply.bulk(id_text(entry.id));
    call.reply.bulk(entry.consumer);
    call.reply.integer(std::max<int64_t>(idle_ms, 0));
    call.reply.integer(static_cast<int64_t>(entry.deliveries));
    return ++shown == query.count ? Visit::stop : Visit::go_on;
  };
  if (query.count > 0) TRY(group.visit_pending(query.consumer, query.range, show));
  call.reply.insert_array(mark, static_cast<size_t>(shown));
  return {};
}

}  // namespace

Status xpending(Call& call) {
  const bool is_summary = call.count() == 3;
  if (!is_summary && (call.count() < 6 || call.count() > 9)) return syntax_error();
  PendingQuery query;
  if (!is_summary) {
    TRY_ASSIGN(query, parse_pending_query(call));
  }
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::stream));
  TRY_ASSIGN(StreamGroup* const group, StreamGroup::open(call.keys, *key, call.arg(2)));
  if (group == nullptr) return no_key_or_group(call.arg(1), call.arg(2));
  return is_summary ? reply_summary(call, *group) : reply_pending(call, *group, query);
}

}  // namespace trellis
