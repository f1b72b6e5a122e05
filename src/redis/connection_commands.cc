// Who a client is, and what its connection is like.
#include <fmt/format.h>

#include "redis/call.h"
#include "redis/client_commands.h"
#include "redis/server.h"

namespace trellis {
namespace {

using namespace command_flag;

Status ping(AloneCall& call) {
  if (call.count() > 2) return wrong_arity("ping");
  if (call.count() == 2)
    call.reply.bulk(call.arg(1));
  else
    call.reply.simple("PONG");
  return {};
}

Status echo(AloneCall& call) {
  call.reply.bulk(call.arg(1));
  return {};
}

Status quit(AloneCall& call) {
  call.session.closing = true;
  call.reply.ok();
  return {};
}

Status select(AloneCall& call) {
  TRY_ASSIGN(const int64_t database, call.integer(1));
  if (database != static_cast<int32_t>(database))
    return reply_with("ERR value is out of range, value must between -2147483648 and 2147483647");
  if (database < 0 || database >= databases_max) return reply_with("ERR DB index is out of range");
  call.session.database = static_cast<uint32_t>(database);
  call.reply.ok();
  return {};
}

// As a connection that has just come in.
Status reset(AloneCall& call) {
  Session& session = call.session;
  call.server.leave_multi(session);
  session.database = 0;
  session.protocol = 2;
  session.no_reply = session.skips_this = false;
  session.no_evict = session.no_touch = false;
  TRY(call.server.start_anew(session));
  call.reply.with_protocol(2).simple("RESET");
  return {};
}

Status auth(AloneCall& call) {
  if (call.count() > 3) return syntax_error();
  const ByteView user = call.count() == 3 ? call.arg(1) : ByteView("default");
  TRY(call.server.authenticate(call.session, user, call.arg(call.count() - 1)));
  call.reply.ok();
  return {};
}

Status hello(AloneCall& call) {
  Session& session = call.session;
  int protocol = session.protocol;
  size_t i = 1;
  if (call.count() > 1) {
    const auto version = call.integer(1);
    if (!version) return reply_with("ERR Protocol version is not an integer or out of range");
    if (*version < 2 || *version > 3) return reply_with("NOPROTO unsupported protocol version");
    protocol = static_cast<int>(*version);
    i = 2;
  }
  std::optional<std::string> name;
  for (; i < call.count(); i++) {
    if (call.is_word(i, "auth") && i + 2 < call.count()) {
      // It would be another's keyspace than the one that EXEC has.
      if (call.keys != nullptr) return reply_with("ERR HELLO with AUTH cannot be part of EXEC");
      TRY(call.server.authenticate(session, call.arg(i + 1), call.arg(i + 2)));
      i += 2;
    } else if (call.is_word(i, "setname") && i + 1 < call.count()) {
      name = std::string(call.arg(++i));
    } else {
      return reply_with(fmt::format("ERR Syntax error in HELLO option '{}'", call.arg(i)));
    }
  }
  if (session.tenant == nullptr)
    return reply_with(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  if (name) TRY(set_client_name(call, *name));
  session.protocol = protocol;
  Reply reply = call.reply.with_protocol(protocol);
  reply.map(7);
  reply.bulk("server");
  reply.bulk("redis");
  reply.bulk("version");
  reply.bulk(redis_version);
  reply.bulk("proto");
  reply.integer(protocol);
  reply.bulk("id");
  reply.integer(static_cast<int64_t>(session.id));
  reply.bulk("mode");
  reply.bulk("standalone");
  reply.bulk("role");
  reply.bulk("master");
  reply.bulk("modules");
  reply.array(0);
  return {};
}

namespace connection_table {

constexpr uint32_t plain = noscript | loading | stale;
const Command table[] = {
    {"auth", -2, plain | fast | no_auth | allow_busy, {}, auth, "1.0.0", "Says who the client is."},
    {.name = "client",
     .arity = -2,
     .since = "2.4.0",
     .summary = "About connections.",
     .subcommands = client_commands()},
    {"echo", 2, loading | stale | fast, {}, echo, "1.0.0", "Gives back what it is given."},
    {"hello",
     -1,
     plain | fast | no_auth | allow_busy | joins_exec,
     {},
     hello,
     "6.0.0",
     "Chooses the protocol, and says who the client is."},
    {"ping", -1, fast, {}, ping, "1.0.0", "Whether the server answers."},
    {"quit", -1, plain | fast | no_auth | allow_busy, {}, quit, "1.0.0", "Ends the connection."},
    {"reset",
     1,
     plain | fast | no_auth | allow_busy,
     {},
     reset,
     "6.2.0",
     "Makes the connection as it was when it came in."},
    {"select",
     2,
     loading | stale | fast | joins_exec,
     {},
     select,
     "1.0.0",
     "Chooses the database."},
};

}  // namespace connection_table

}  // namespace

std::span<const Command> connection_commands() { return connection_table::table; }

}  // namespace trellis
