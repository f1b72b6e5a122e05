// Streams: entries by id. What belongs to consumer groups is in stream_group_commands.cc.
#include <fmt/format.h>

#include "redis/server.h"
#include "redis/stream_handlers.h"

namespace trellis {
namespace {

using namespace command_flag;

constexpr const char* exhausted =
    "ERR The stream has exhausted the last possible ID, unable to add more items";

// --- XADD and XTRIM ---

struct NewId {
  bool is_given = false;  // else it is made of the clock
  bool has_seq = true;    // else that follows from the last one
  StreamId id = {};
};

struct XaddOptions {
  Trim trim;
  bool is_limited = false;
  bool must_exist = false;
  NewId id;
  size_t id_at = 0;
};

Status parse_trim(const Call& call, size_t& i, XaddOptions& options) {
  Trim& trim = options.trim;
  if (trim.by != Trim::By::none)
    return reply_with(
        "ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
  const bool by_length = call.is_word(i, "maxlen");
  const size_t left = call.count() - 1 - i;
  trim.is_rough = left >= 2 && call.arg(i + 1) == "~";
  if (trim.is_rough || (left >= 2 && call.arg(i + 1) == "=")) i++;
  i++;
  trim.by = by_length ? Trim::By::length : Trim::By::id;
  if (!by_length) {
    TRY_ASSIGN(trim.first, id_at(call, i));
    return {};
  }
  TRY_ASSIGN(const int64_t length, call.integer(i));
  if (length < 0) return reply_with("ERR The MAXLEN argument must be >= 0.");
  trim.length = static_cast<uint64_t>(length);
  return {};
}

Result<NewId> parse_new_id(const Call& call, size_t i) {
  NewId id{.is_given = true};
  Bytes text(shown(call.arg(i)));
  if (text.ends_with("-*") && text.find('-') == text.size() - 2) {
    id.has_seq = false;
    text.back() = '0';
  }
  const auto parsed = parse_id(text);
  if (!parsed || call.arg(i).size() > 127) return invalid_id();
  id.id = *parsed;
  return id;
}

// A rough trim may leave what would be much work; LIMIT says how much, or Redis's default does.
Status finish_trim(Call& call, bool adds, XaddOptions& options) {
  constexpr int64_t limit_usual = 10'000;
  constexpr int64_t limit_max = 1'000'000;
  Trim& trim = options.trim;
  if (trim.limit != 0 && trim.by == Trim::By::none)
    return reply_with(
        "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
  if (!adds && trim.by == Trim::By::none)
    return reply_with("ERR syntax error, XTRIM must be called with a trimming strategy");
  if (options.is_limited && !trim.is_rough)
    return reply_with("ERR syntax error, LIMIT cannot be used without the special ~ option");
  if (!trim.is_rough) return {};
  const int64_t unit =
      call.server.config().number(call.session.tenant->id(), "stream-node-max-entries");
  trim.unit = static_cast<uint64_t>(unit);
  if (options.is_limited) return {};
  const int64_t limit = unit > limit_max ? limit_max : 100 * unit;
  trim.limit = static_cast<uint64_t>(limit == 0 ? limit_usual : std::min(limit, limit_max));
  return {};
}

Result<XaddOptions> parse_options(Call& call, bool adds) {
  XaddOptions options;
  size_t i = 2;
  for (; i < call.count(); i++) {
    const bool has_more = i + 1 < call.count();
    if (adds && call.arg(i) == "*") break;
    if ((call.is_word(i, "maxlen") || call.is_word(i, "minid")) && has_more) {
      TRY(parse_trim(call, i, options));
    } else if (call.is_word(i, "limit") && has_more) {
      TRY_ASSIGN(const int64_t limit, call.integer(++i));
      if (limit < 0) return reply_with("ERR The LIMIT argument must be >= 0.");
      options.trim.limit = static_cast<uint64_t>(limit);
      options.is_limited = true;
    } else if (adds && call.is_word(i, "nomkstream")) {
      options.must_exist = true;
    } else if (adds) {
      TRY_ASSIGN(options.id, parse_new_id(call, i));
      break;
    } else {
      return syntax_error();
    }
  }
  options.id_at = i;
  TRY(finish_trim(call, adds, options));
  return options;
}

Result<StreamId> make_id(const NewId& wanted, const StreamId& last, uint64_t now_ms) {
  if (last == highest_id) return reply_with(exhausted);
  StreamId id = wanted.id;
  if (!wanted.is_given) {
    id = now_ms > last.ms ? StreamId{now_ms, 0} : *id_behind(last);
  } else if (!wanted.has_seq && id.ms == last.ms) {
    // What Redis says of a second that is full.
    if (last.seq == UINT64_MAX) return reply_with("ERR Elements are too large to be stored");
    id.seq = last.seq + 1;
  }
  if (id <= last)
    return reply_with(
        "ERR The ID specified in XADD is equal or smaller than the target stream top item");
  if (!is_entry_id(id)) return reply_with(exhausted);
  return id;
}

Status xadd(Call& call) {
  TRY_ASSIGN(const XaddOptions options, parse_options(call, true));
  const size_t fields_at = options.id_at + 1;
  if (call.count() < fields_at + 2 || (call.count() - fields_at) % 2 != 0)
    return wrong_arity(call.command.name);
  if (options.id.is_given && options.id.has_seq && options.id.id == lowest_id)
    return reply_with("ERR The ID specified in XADD must be greater than 0-0");
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::stream));
  if (!key->exists() && options.must_exist) {
    call.reply.null();
    return {};
  }
  const StreamId last = key->exists() ? key->stream().last_generated : lowest_id;
  TRY_ASSIGN(const StreamId id, make_id(options.id, last, call.now_ms()));
  Bytes entry;
  append_stream_entry(entry, call.args.subspan(fields_at));
  if (entry.size() > string_bytes_max) return reply_with("ERR Elements are too large to be stored");
  if (!key->exists()) key->create(RedisType::stream, call.keys.new_version());
  add_entry(call.keys, *key, id, entry);
  TRY(trim_stream(call.keys, *key, options.trim));
  call.reply.bulk(id_text(id));
  return {};
}

Status xtrim(Call& call) {
  TRY_ASSIGN(const XaddOptions options, parse_options(call, false));
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::stream));
  uint64_t trimmed = 0;
  if (key->exists()) {
    TRY_ASSIGN(trimmed, trim_stream(call.keys, *key, options.trim));
  }
  call.reply.integer(static_cast<int64_t>(trimmed));
  return {};
}

// --- the rest of what changes ---

Status xdel(Call& call) {
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::stream));
  uint64_t deleted = 0;
  if (key->exists()) {
    TRY_ASSIGN(std::vector<StreamId> ids, ids_from(call, 2));
    TRY_ASSIGN(deleted, delete_entries(call.keys, *key, std::move(ids)));
  }
  call.reply.integer(static_cast<int64_t>(deleted));
  return {};
}

struct SetIdOptions {
  int64_t entries_added = -1;
  StreamId max_deleted = {};
};

Result<SetIdOptions> parse_set_id(const Call& call, const StreamId& id) {
  SetIdOptions options;
  for (size_t i = 3; i < call.count(); i += 2) {
    const bool has_more = i + 1 < call.count();
    if (call.is_word(i, "entriesadded") && has_more) {
      TRY_ASSIGN(options.entries_added, call.integer(i + 1));
      if (options.entries_added < 0) return reply_with("ERR entries_added must be positive");
    } else if (call.is_word(i, "maxdeletedid") && has_more) {
      TRY_ASSIGN(options.max_deleted, id_at(call, i + 1));
      if (id < options.max_deleted)
        return reply_with(
            "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
    } else {
      return syntax_error();
    }
  }
  return options;
}

Status xsetid(Call& call) {
  TRY_ASSIGN(const StreamId id, id_at(call, 2));
  TRY_ASSIGN(const SetIdOptions options, parse_set_id(call, id));
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::stream));
  if (!key->exists()) return no_such_key();
  RedisMetadata::Stream stream = key->stream();
  if (key->size() > 0 && id < stream.last)
    return reply_with("ERR The ID specified in XSETID is smaller than the target stream top item");
  if (key->size() > 0 && options.entries_added != -1 &&
      key->size() > static_cast<uint64_t>(options.entries_added))
    return reply_with(
        "ERR The entries_added specified in XSETID is smaller than the target stream length");
  // Ids come again: what was trimmed and is not collected yet must not be among them.
  if (id < stream.last_generated && key->size() == 0) TRY(call.keys.renew(*key, {}));
  stream.last_generated = id;
  if (options.entries_added != -1)
    stream.entries_added = static_cast<uint64_t>(options.entries_added);
  if (options.max_deleted != lowest_id) stream.max_deleted = options.max_deleted;
  key->set_stream_quietly(stream);
  call.reply.ok();
  return {};
}

// --- reading ---

Status xlen(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::stream));
  call.reply.integer(key->exists() ? static_cast<int64_t>(key->size()) : 0);
  return {};
}

Status reply_range(Call& call, bool reverse) {
  IdRange range;
  TRY_ASSIGN(range.first, first_of_range(call, reverse ? 3 : 2));
  TRY_ASSIGN(range.last, last_of_range(call, reverse ? 2 : 3));
  std::optional<int64_t> count;
  for (size_t i = 4; i < call.count(); i += 2) {
    if (!call.is_word(i, "count") || i + 1 == call.count()) return syntax_error();
    TRY_ASSIGN(const int64_t given, call.integer(i + 1));
    count = std::max<int64_t>(given, 0);
  }
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::stream));
  if (!key->exists()) {
    call.reply.array(0);
  } else if (count == 0) {
    call.reply.null_array();
  } else {
    TRY(reply_entries(call, *key, range, reverse, static_cast<uint64_t>(count.value_or(0))));
  }
  return {};
}
Status xrange(Call& call) { return reply_range(call, false); }
Status xrevrange(Call& call) { return reply_range(call, true); }

Status xread(Call& call) {
  TRY_ASSIGN(const ReadOptions options, parse_read_options(call));
  std::vector<const Key*> keys;
  std::vector<std::optional<StreamId>> firsts;
  for (size_t i = 0; i < options.streams; i++) {
    const size_t at = options.streams_at + options.streams + i;
    TRY_ASSIGN(const Key* const key, call.open(options.streams_at + i, RedisType::stream));
    if (call.arg(at) == ">")
      return reply_with(
          "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> "
          "<consumer> option.");
    StreamId id = key->exists() ? key->stream().last_generated : lowest_id;
    if (call.arg(at) != "$") {
      TRY_ASSIGN(id, id_at(call, at));
    }
    keys.push_back(key);
    firsts.push_back(id_behind(id));
  }
  StreamsReply reply(call.reply);
  for (size_t i = 0; i < keys.size(); i++) {
    const bool has_some = keys[i]->exists() && keys[i]->size() > 0 && firsts[i] &&
                          *firsts[i] <= keys[i]->stream().last;
    if (!has_some) continue;
    reply.add(call.arg(options.streams_at + i));
    TRY(reply_entries(call, *keys[i], {.first = *firsts[i]}, false, options.count));
  }
  reply.finish();
  return {};
}

namespace stream_table {

constexpr KeyPositions one{1, 1, 1};

const Command table[] = {
    {"xack", -4, write | fast, one, xack, "5.0.0", "Takes entries off what is pending.",
     SubPositions{3, 1, SubPositions::Of::pending}},
    {"xadd", -5, write | denyoom | fast, one, xadd, "5.0.0", "Adds an entry to a stream."},
    {"xautoclaim", -6, write | fast, one, xautoclaim, "6.2.0",
     "Gives what others have had for long to a consumer."},
    {"xclaim", -6, write | fast, one, xclaim, "5.0.0", "Gives pending entries to a consumer."},
    {"xdel", -3, write | fast, one, xdel, "5.0.0", "Deletes entries of a stream."},
    {.name = "xgroup",
     .arity = -2,
     .since = "5.0.0",
     .summary = "Consumer groups of streams.",
     .subcommands = xgroup_commands()},
    {.name = "xinfo",
     .arity = -2,
     .since = "5.0.0",
     .summary = "What streams, their groups and consumers are like.",
     .subcommands = xinfo_commands()},
    {"xlen", 2, readonly | fast, one, xlen, "5.0.0", "How many entries a stream has."},
    {"xpending", -3, readonly, one, xpending, "5.0.0",
     "What was delivered to consumers and is not acknowledged."},
    {"xrange", -4, readonly, one, xrange, "5.0.0", "Entries of a stream in a range of ids."},
    {.name = "xread",
     .arity = -4,
     .flags = readonly | blocking | movablekeys,
     .handler = xread,
     .since = "5.0.0",
     .summary = "Entries of streams behind an id.",
     .find_keys = find_streams<1>},
    {.name = "xreadgroup",
     .arity = -7,
     .flags = write | blocking | movablekeys,
     .handler = xreadgroup,
     .since = "5.0.0",
     .summary = "Entries of streams for a consumer of a group.",
     .find_keys = find_streams<4>},
    {"xrevrange", -4, readonly, one, xrevrange, "5.0.0",
     "Entries of a stream in a range of ids, from the last one on."},
    {"xsetid", -3, write | denyoom | fast, one, xsetid, "5.0.0", "Sets the last id of a stream."},
    {"xtrim", -4, write, one, xtrim, "5.0.0", "Removes the first entries of a stream."},
};

}  // namespace stream_table

}  // namespace

// --- XREAD and XREADGROUP ---

Result<ReadOptions> parse_read_options(Call& call) {
  ReadOptions options;
  const bool for_group = call.command.name == "xreadgroup";
  const auto only_for_group = [&](std::string_view option) {
    return reply_with(fmt::format(
        "ERR The {} option is only supported by XREADGROUP. You called XREAD instead.", option));
  };
  for (size_t i = 1; i < call.count() && options.streams_at == 0; i++) {
    const size_t left = call.count() - i - 1;
    if (call.is_word(i, "block") && left >= 1) {
      const auto timeout = call.integer(++i);
      if (!timeout) return reply_with("ERR timeout is not an integer or out of range");
      if (*timeout < 0) return reply_with("ERR timeout is negative");
      return reply_with("ERR BLOCK is not supported yet: ask again without it");
    }
    if (call.is_word(i, "count") && left >= 1) {
      TRY_ASSIGN(const int64_t count, call.integer(++i));
      options.count = static_cast<uint64_t>(std::max<int64_t>(count, 0));
    } else if (call.is_word(i, "streams") && left >= 1) {
      options.streams_at = i + 1;
      options.streams = left / 2;
      if (left % 2 != 0)
        return reply_with(
            "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be "
            "specified.");
    } else if (call.is_word(i, "group") && left >= 2) {
      if (!for_group) return only_for_group("GROUP");
      options.group = call.arg(i + 1);
      options.consumer = call.arg(i + 2);
      i += 2;
    } else if (call.is_word(i, "noack")) {
      if (!for_group) return only_for_group("NOACK");
      options.no_ack = true;
    } else {
      return syntax_error();
    }
  }
  if (options.streams_at == 0) return syntax_error();
  if (for_group && !options.group) return reply_with("ERR Missing GROUP option for XREADGROUP");
  return options;
}

// As parse_read_options reads them, or, if it would refuse them, behind the first STREAMS, which is
// what COMMAND GETKEYS goes by.
Status append_streams(Args args, size_t first, std::vector<size_t>& positions) {
  size_t at = 1;
  while (at < args.size() && !equals_word(args[at], "streams")) {
    if (equals_word(args[at], "noack"))
      at++;
    else if (equals_word(args[at], "group"))
      at += 3;
    else if (equals_word(args[at], "count") || equals_word(args[at], "block"))
      at += 2;
    else
      at = args.size();
  }
  for (size_t i = first; i < args.size() && at >= args.size(); i++)
    if (equals_word(args[i], "streams")) at = i;
  if (at >= args.size()) return reply_with("ERR Invalid arguments specified for command");
  const size_t streams = (args.size() - at - 1) / 2;
  for (size_t i = 1; i <= streams; i++) positions.push_back(at + i);
  return {};
}

void StreamsReply::add(ByteView key) {
  if (reply_.protocol() == 2) reply_.array(2);
  reply_.bulk(key);
  streams_++;
}

void StreamsReply::finish() {
  if (streams_ == 0)
    reply_.null_array();
  else if (reply_.protocol() == 2)
    reply_.insert_array(mark_, streams_);
  else
    reply_.insert_map(mark_, streams_);
}

std::span<const Command> stream_commands() { return stream_table::table; }

}  // namespace trellis
