// CONFIG.
#include <fmt/format.h>

#include "redis/call.h"
#include "redis/help.h"
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
  if (call.count() % 2 != 0) return syntax_error();
  std::vector<RedisConfig::Change> changes;
  for (size_t i = 2; i < call.count(); i += 2) changes.push_back({call.arg(i), call.arg(i + 1)});
  const RedisConfig& config = call.server.config();
  const KeyspaceId keyspace = call.session.tenant->id();
  TRY(call.server.config().set(keyspace, changes));
  call.session.usage->set_limits(
      {.slow_us = config.number(keyspace, "slowlog-log-slower-than"),
       .slow_max = static_cast<uint64_t>(config.number(keyspace, "slowlog-max-len")),
       .latency_ms = static_cast<uint64_t>(config.number(keyspace, "latency-monitor-threshold"))});
  call.reply.ok();
  return {};
}

Status config_resetstat(AloneCall& call) {
  call.session.usage->reset_figures();
  call.reply.ok();
  return {};
}

// What was set lives as long as the process.
Status config_rewrite(AloneCall&) {
  return reply_with("ERR The server is running without a config file");
}

constexpr Command config_entry(std::string_view name, int arity, uint32_t more_flags,
                               Status (*handler)(AloneCall&), std::string_view since,
                               std::string_view syntax, std::string_view summary) {
  return {.name = name,
          .arity = arity,
          .flags = admin | noscript | loading | stale | more_flags,
          .handler = handler,
          .since = since,
          .summary = summary,
          .container = "config",
          .syntax = syntax};
}

const Command config_subcommands[] = {
    config_entry("get", -3, for_everyone, config_get, "2.0.0", "<pattern> [<pattern> ...]",
                 "Settings whose names match."),
    help_entry("config", "5.0.0"),
    config_entry("resetstat", 2, 0, config_resetstat, "2.0.0", "", "Begins to count anew."),
    config_entry("rewrite", 2, 0, config_rewrite, "2.8.0", "",
                 "Writes the settings to their file."),
    config_entry("set", -4, 0, config_set, "2.0.0", "<name> <value> [<name> <value> ...]",
                 "Changes settings, all or none."),
};

namespace config_table {

const Command table[] = {
    {.name = "config",
     .arity = -2,
     .since = "2.0.0",
     .summary = "Redis's settings.",
     .subcommands = config_subcommands},
};

}  // namespace config_table

}  // namespace

std::span<const Command> config_commands() { return config_table::table; }

}  // namespace trellis
