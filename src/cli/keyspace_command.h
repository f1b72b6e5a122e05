// `trellis keyspace ...`: tenants, from birth to burial.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "cli/client_command.h"

namespace trellis {

void add_keyspace_commands(CLI::App& app, ClientCommands& commands);

// Parts of it, each in its own file.
void add_token_commands(CLI::App& keyspace, ClientCommands& commands);
void add_gc_commands(CLI::App& keyspace, ClientCommands& commands);
void add_purge_command(CLI::App& keyspace, ClientCommands& commands);
void add_activity_commands(CLI::App& keyspace, ClientCommands& commands);  // top, audit, watch

// Paths of one keyspace: "/v1/keyspaces/shop" + "/quota".
std::string v1_path(std::string_view keyspace, std::string_view rest = {});
std::string pd_path(std::string_view keyspace, std::string_view rest = {});

// The argument NAME.
CLI::Option* add_keyspace_name(CLI::App& command, std::string& name);

}  // namespace trellis
