// HELP of commands that have subcommands, from the entries of these: name, syntax, summary.
#pragma once

#include "redis/call.h"

namespace trellis {

void reply_help(Reply& reply, std::string_view container, std::span<const Command> subcommands);

// ERR unknown subcommand or wrong number of arguments for '...'. Try ... HELP.
Error wrong_subcommand(const AloneCall& call);

// The handler of HELP.
Status container_help(AloneCall& call);
constexpr Command help_entry(std::string_view container, std::string_view since) {
  return {.name = "help",
          .arity = 2,
          .flags = command_flag::loading | command_flag::stale,
          .handler = container_help,
          .since = since,
          .summary = "Prints this help.",
          .container = container};
}

}  // namespace trellis
