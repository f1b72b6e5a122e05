// CLIENT: connections, those of the caller's own keyspace only.
#include "redis/client_commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "redis/call.h"
#include "redis/help.h"
#include "redis/number_text.h"
#include "redis/server.h"

namespace trellis {
namespace {

using namespace command_flag;

bool is_printable(ByteView text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '!' && c <= '~'; });
}

// What is kept for as long as the connection is.
Status check_text(std::string_view what, ByteView text) {
  constexpr size_t bytes_max = 1'024;
  if (!is_printable(text))
    return reply_with(
        fmt::format("ERR {} cannot contain spaces, newlines or special characters.", what));
  if (text.size() > bytes_max)
    return reply_with(fmt::format("ERR {} cannot be longer than {} bytes.", what, bytes_max));
  return {};
}

// --- about this one ---

Status client_id(AloneCall& call) {
  call.reply.integer(static_cast<int64_t>(call.session.id));
  return {};
}

Status client_getname(AloneCall& call) {
  if (call.session.name.empty())
    call.reply.null();
  else
    call.reply.bulk(call.session.name);
  return {};
}

Status client_setname(AloneCall& call) {
  TRY(set_client_name(call, call.arg(2)));
  call.reply.ok();
  return {};
}

Status client_setinfo(AloneCall& call) {
  const bool is_name = call.is_word(2, "lib-name");
  if (!is_name && !call.is_word(2, "lib-ver"))
    return reply_with(fmt::format("ERR Unrecognized option '{}'", shown(call.arg(2))));
  TRY(check_text(call.arg(2), call.arg(3)));
  call.server.clients().change(
      [&] { (is_name ? call.session.library_name : call.session.library_version) = call.arg(3); });
  call.reply.ok();
  return {};
}

Status client_reply(AloneCall& call) {
  Session& session = call.session;
  if (call.is_word(2, "on")) {
    session.no_reply = session.skips_this = false;
    call.reply.ok();
  } else if (call.is_word(2, "off")) {
    session.no_reply = true;
  } else if (call.is_word(2, "skip")) {
    session.skip_reply = !session.no_reply;
  } else {
    return syntax_error();
  }
  return {};
}

Status set_on_or_off(AloneCall& call, std::atomic<bool>& value) {
  const bool is_on = call.is_word(2, "on");
  if (!is_on && !call.is_word(2, "off")) return syntax_error();
  value = is_on;
  call.reply.ok();
  return {};
}
// Both are kept and shown. Nothing is evicted here, and no use of keys is kept.
Status client_no_evict(AloneCall& call) { return set_on_or_off(call, call.session.no_evict); }
Status client_no_touch(AloneCall& call) { return set_on_or_off(call, call.session.no_touch); }

// --- about all ---

std::string flags_of(const Session& session) {
  std::string flags;
  if (session.queued >= 0) flags += 'x';
  if (session.is_held) flags += 'b';
  if (session.address.starts_with("unix:")) flags += 'U';
  if (session.no_evict) flags += 'e';
  if (session.no_touch) flags += 'T';
  return flags.empty() ? "N" : flags;
}

// One line of CLIENT LIST. REQUIRES: it is the caller's own, or Clients gives it.
std::string line_of(const Session& session, uint64_t now_ms) {
  const auto seconds_since = [&](uint64_t ms) { return now_ms > ms ? (now_ms - ms) / 1'000 : 0; };
  const Command* command = session.last_command;
  const uint64_t active_ms = std::max<uint64_t>(session.active_ms, session.connected_ms);
  return fmt::format(
      "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags={} db={} sub=0 psub=0 ssub=0 "
      "multi={} qbuf={} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl={} oll=0 omem=0 "
      "tot-mem={} events=r cmd={} user={} redir=-1 resp={} lib-name={} lib-ver={}",
      session.id, session.address, session.local_address, session.name,
      seconds_since(session.connected_ms), seconds_since(active_ms), flags_of(session),
      session.database.load(), session.queued.load(), session.input_bytes.load(),
      session.output_bytes.load(), session.input_bytes + session.output_bytes,
      command == nullptr ? "NULL" : full_name(*command), session.user, session.protocol.load(),
      session.library_name, session.library_version);
}

Status client_info(AloneCall& call) {
  call.reply.verbatim(line_of(call.session, call.now_ms) + "\n");
  return {};
}

// Whether it is that of ordinary clients, as all are here.
Result<bool> parse_type(const AloneCall& call, size_t i) {
  if (call.is_word(i, "normal")) return true;
  for (const std::string_view other : {"master", "slave", "replica", "pubsub"})
    if (call.is_word(i, other)) return false;
  return reply_with(fmt::format("ERR Unknown client type '{}'", shown(call.arg(i))));
}

Status client_list(AloneCall& call) {
  std::vector<uint64_t> ids;
  bool is_normal = true;
  if (call.count() == 4 && call.is_word(2, "type")) {
    TRY_ASSIGN(is_normal, parse_type(call, 3));
  } else if (call.count() > 3 && call.is_word(2, "id")) {
    for (size_t i = 3; i < call.count(); i++) {
      const auto id = parse_integer(call.arg(i));
      if (!id) return reply_with("ERR Invalid client ID");
      ids.push_back(static_cast<uint64_t>(*id));
    }
  } else if (call.count() != 2) {
    return syntax_error();
  }
  std::map<uint64_t, std::string> lines;
  call.server.clients().for_each(call.session.tenant->id(), [&](const Session& session) {
    lines.emplace(session.id, line_of(session, call.now_ms) + "\n");
  });
  std::string text;
  if (call.count() > 3 && call.is_word(2, "id")) {
    for (const uint64_t id : ids)  // in the order in which they were asked for
      if (const auto found = lines.find(id); found != lines.end()) text += found->second;
  } else if (is_normal) {
    for (const auto& [id, line] : lines) text += line;
  }
  call.reply.verbatim(text);
  return {};
}

struct KillFilter {
  std::optional<uint64_t> id;
  std::optional<ByteView> address;
  std::optional<ByteView> local_address;
  std::optional<ByteView> user;
  std::optional<uint64_t> age_s;
  bool is_normal = true;
  bool skips_me = true;

  bool takes(const Session& session, const Session& me, uint64_t now_ms) const {
    if (id && session.id != *id) return false;
    if (address && session.address != *address) return false;
    if (local_address && session.local_address != *local_address) return false;
    if (user && session.user != *user) return false;
    if (age_s && (now_ms - std::min(now_ms, session.connected_ms)) / 1'000 < *age_s) return false;
    return is_normal && !(skips_me && &session == &me);
  }
};

Status parse_kill_option(AloneCall& call, size_t i, KillFilter& filter) {
  const ByteView value = call.arg(i + 1);
  if (call.is_word(i, "id")) {
    const auto id = parse_integer(value);
    if (!id || *id <= 0) return reply_with("ERR client-id should be greater than 0");
    filter.id = static_cast<uint64_t>(*id);
  } else if (call.is_word(i, "maxage")) {
    const auto age_s = parse_integer(value);
    if (!age_s) return reply_with("ERR maxage is not an integer or out of range");
    if (*age_s <= 0) return reply_with("ERR maxage should be greater than 0");
    filter.age_s = static_cast<uint64_t>(*age_s);
  } else if (call.is_word(i, "type")) {
    TRY_ASSIGN(filter.is_normal, parse_type(call, i + 1));
  } else if (call.is_word(i, "addr")) {
    filter.address = value;
  } else if (call.is_word(i, "laddr")) {
    filter.local_address = value;
  } else if (call.is_word(i, "user")) {
    filter.user = value;
  } else if (call.is_word(i, "skipme") &&
             (call.is_word(i + 1, "yes") || call.is_word(i + 1, "no"))) {
    filter.skips_me = call.is_word(i + 1, "yes");
  } else {
    return syntax_error();
  }
  return {};
}

Status client_kill(AloneCall& call) {
  Session& me = call.session;
  KillFilter filter;
  const bool by_address = call.count() == 3;
  if (by_address) {
    filter.address = call.arg(2);
    filter.skips_me = false;
  } else {
    if (call.count() % 2 != 0) return syntax_error();
    for (size_t i = 2; i < call.count(); i += 2) TRY(parse_kill_option(call, i, filter));
  }
  int64_t killed = 0;
  bool user_is_known = !filter.user || *filter.user == "default";
  call.server.clients().for_each(me.tenant->id(), [&](Session& session) {
    user_is_known = user_is_known || session.user == *filter.user;
    if (!filter.takes(session, me, call.now_ms)) return;
    killed++;
    session.closing = true;  // the caller when this was answered
    if (&session != &me) session.kill();
  });
  if (!user_is_known) return reply_with(fmt::format("ERR No such user '{}'", shown(*filter.user)));
  if (!by_address)
    call.reply.integer(killed);
  else if (killed > 0)
    call.reply.ok();
  else
    return reply_with("ERR No such client");
  return {};
}

Status client_pause(AloneCall& call) {
  if (call.count() > 4) return wrong_subcommand(call);
  const auto timeout_ms = parse_integer(call.arg(2));
  const bool writes_only = call.count() == 4 && call.is_word(3, "write");
  if (call.count() == 4 && !writes_only && !call.is_word(3, "all"))
    return reply_with("ERR CLIENT PAUSE mode must be WRITE or ALL");
  if (!timeout_ms) return reply_with("ERR timeout is not an integer or out of range");
  if (*timeout_ms < 0) return reply_with("ERR timeout is negative");
  const auto end_ms =
      std::min<uint64_t>(static_cast<uint64_t>(*timeout_ms), INT64_MAX - call.now_ms);
  call.session.usage->pause(call.now_ms + end_ms, writes_only, call.now_ms);
  call.reply.ok();
  return {};
}

Status client_unpause(AloneCall& call) {
  call.session.usage->unpause();
  call.server.clients().release();
  call.reply.ok();
  return {};
}

// Nobody is ever blocked.
Status client_unblock(AloneCall& call) {
  if (call.count() > 4) return wrong_subcommand(call);
  if (call.count() == 4 && !call.is_word(3, "timeout") && !call.is_word(3, "error"))
    return reply_with("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
  TRY(call.integer(2));
  call.reply.integer(0);
  return {};
}

constexpr Command client_entry(std::string_view name, int arity, uint32_t more_flags,
                               Status (*handler)(AloneCall&), std::string_view since,
                               std::string_view syntax, std::string_view summary) {
  return {.name = name,
          .arity = arity,
          .flags = noscript | loading | stale | more_flags,
          .handler = handler,
          .since = since,
          .summary = summary,
          .container = "client",
          .syntax = syntax};
}

namespace client_table {

const Command table[] = {
    client_entry("getname", 2, 0, client_getname, "2.6.9", "", "The name of the connection."),
    help_entry("client", "5.0.0"),
    client_entry("id", 2, 0, client_id, "5.0.0", "", "The number of the connection."),
    client_entry("info", 2, 0, client_info, "6.2.0", "", "What is known of the connection."),
    client_entry(
        "kill", -3, admin, client_kill, "2.4.0",
        "<ip:port>|<option> <value> [<option> <value> ...]",
        "Closes connections: ADDR, LADDR, ID, TYPE, USER, MAXAGE, and SKIPME (yes or no)."),
    client_entry("list", -2, admin, client_list, "2.4.0", "[TYPE <type> | ID <id> [<id> ...]]",
                 "What is known of all connections."),
    client_entry("no-evict", 3, admin, client_no_evict, "7.0.0", "ON|OFF",
                 "Whether the connection is kept when memory is short."),
    client_entry("no-touch", 3, 0, client_no_touch, "7.2.0", "ON|OFF",
                 "Whether commands leave the time of last use of keys alone."),
    client_entry("pause", -3, admin, client_pause, "3.0.0", "<milliseconds> [WRITE|ALL]",
                 "Lets commands wait."),
    client_entry("reply", 3, 0, client_reply, "3.2.0", "ON|OFF|SKIP",
                 "Whether commands are answered; SKIP leaves out the next one."),
    client_entry("setinfo", 4, 0, client_setinfo, "7.2.0", "LIB-NAME|LIB-VER <text>",
                 "Says which library the client uses."),
    client_entry("setname", 3, 0, client_setname, "2.6.9", "<name>", "Names the connection."),
    client_entry("unblock", -3, admin, client_unblock, "5.0.0", "<id> [TIMEOUT|ERROR]",
                 "Ends the waiting of a client that is blocked."),
    client_entry("unpause", 2, admin, client_unpause, "6.2.0", "", "Ends CLIENT PAUSE."),
};

}  // namespace client_table

}  // namespace

Status set_client_name(AloneCall& call, ByteView name) {
  TRY(check_text("Client names", name));
  call.server.clients().change([&] { call.session.name = name; });
  return {};
}

std::span<const Command> client_commands() { return client_table::table; }

}  // namespace trellis
