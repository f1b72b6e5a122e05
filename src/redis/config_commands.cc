// CONFIG.
#include <fmt/format.h>

#include "redis/call.h"
#include "redis/server.h"

namespace trellis {
namespace {

using namespace command_flag;

Status config_get(AloneCall& call) {
  std::map<std::string, std::string> found;
  for (size_t i = 2; i < call.count(); i++)
    call.server.config().get(
        call.session.tenant->id(), call.arg(i),
        [&](std::string_view name, std::string_view value) { found.emplace(name, value); });
  call.reply.map(found.size());
  for (const auto& [name, value] : found) {
    call.reply.bulk(name);
    call.reply.bulk(value);
  }
  return {};
}

Status config_set(AloneCall& call) {
  if (call.count() % 2 != 0) return wrong_arity(full_name(call.command));
  for (size_t i = 2; i < call.count(); i += 2)
    if (!RedisConfig::is_known(call.arg(i)))
      return reply_with(fmt::format(
          "ERR Unknown option or number of arguments for CONFIG SET - '{}'", shown(call.arg(i))));
  for (size_t i = 2; i < call.count(); i += 2)
    TRY(call.server.config().set(call.session.tenant->id(), call.arg(i), call.arg(i + 1)));
  call.reply.ok();
  return {};
}

Status config_resetstat(AloneCall& call) {
  call.reply.ok();
  return {};
}

constexpr uint32_t plain = admin | noscript | loading | stale;
const Command subcommands[] = {
    {.name = "get",
     .arity = -3,
     .flags = plain,
     .handler = config_get,
     .since = "2.0.0",
     .summary = "Settings whose names match.",
     .container = "config"},
    {.name = "resetstat",
     .arity = 2,
     .flags = plain,
     .handler = config_resetstat,
     .since = "2.0.0",
     .summary = "Begins to count anew.",
     .container = "config"},
    {.name = "set",
     .arity = -4,
     .flags = plain,
     .handler = config_set,
     .since = "2.0.0",
     .summary = "Changes settings.",
     .container = "config"},
};

const Command table[] = {
    {.name = "config",
     .arity = -2,
     .since = "2.0.0",
     .summary = "Redis's settings.",
     .subcommands = subcommands},
};

}  // namespace

std::span<const Command> config_commands() { return table; }

}  // namespace trellis
