#include "redis/help.h"

#include <fmt/format.h>

namespace trellis {

void reply_help(Reply& reply, std::string_view container, std::span<const Command> subcommands) {
  reply.array(1 + 2 * subcommands.size());
  reply.simple(
      fmt::format("{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", upper(container)));
  for (const Command& command : subcommands) {
    reply.simple(upper(command.name) + (command.syntax.empty() ? "" : " ") +
                 std::string(command.syntax));
    reply.simple("    " + std::string(command.summary));
  }
}

Error wrong_subcommand(const AloneCall& call) {
  return reply_with(
      fmt::format("ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
                  shown(call.arg(1), 128), upper(shown(call.arg(0)))));
}

Status container_help(AloneCall& call) {
  const Command* container = find_command(call.command.container);
  reply_help(call.reply, container->name, container->subcommands);
  return {};
}

}  // namespace trellis
