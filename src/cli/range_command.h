// `trellis range ...` and `trellis key explain`: where keys live, for those who run the server.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/client_command.h"

namespace trellis {

void add_range_commands(CLI::App& app, ClientCommands& commands);
// A part of it: jobs over all ranges.
void add_range_job_commands(CLI::App& range, ClientCommands& commands);
void add_key_explain(CLI::App& key, ClientCommands& commands);

}  // namespace trellis
