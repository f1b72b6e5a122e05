// `trellis raw ...`: keys and values of a keyspace.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "cli/client_command.h"

namespace trellis {

void add_raw_commands(CLI::App& app, ClientCommands& commands);

// Parts of it, in their own files.
void add_scan_command(CLI::App& raw, ClientCommands& commands);
void add_export_command(CLI::App& raw, ClientCommands& commands);
void add_import_command(CLI::App& raw, ClientCommands& commands);

// "/v1/raw" + rest, in the keyspace of the session.
std::string raw_path(const ClientSession& session, std::string_view rest);

// --escaped: keys and values on the command line have escapes.
void add_escaped(CLI::App& command, bool& escaped);

}  // namespace trellis
