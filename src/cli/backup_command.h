// `trellis backup ...`: copies of a store or a keyspace, of one instant.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/client_command.h"

namespace trellis {

void add_backup_commands(CLI::App& app, ClientCommands& commands);

}  // namespace trellis
