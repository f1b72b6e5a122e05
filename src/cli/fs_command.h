// `trellis fs ...`: files of a keyspace.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/bytes.h"
#include "cli/client_command.h"

namespace trellis {

void add_fs_commands(CLI::App& app, ClientCommands& commands);

// Parts of it, in their own files.
void add_fs_look_commands(CLI::App& fs, ClientCommands& commands);  // ls, stat, du, df, quota
void add_fs_get_commands(CLI::App& fs, ClientCommands& commands);   // cat, get
void add_fs_put_command(CLI::App& fs, ClientCommands& commands);
void add_fs_change_commands(CLI::App& fs, ClientCommands& commands);  // mkdir, rm, mv, cp
void add_fs_trash_commands(CLI::App& fs, ClientCommands& commands);
void add_fs_fsck_command(CLI::App& fs, ClientCommands& commands);

inline constexpr std::string_view fs_glob_help =
    "Globs are in quotes, so that the shell leaves them alone: * and ? within a name, [a-z], ** "
    "for any directories; \\* is a star.\n";

// Where the sources of put, cp and mv go: into a directory, or to one name.
struct RemoteTarget {
  Bytes path;
  bool is_directory = false;  // the sources go into it
};
// Several sources need a directory. `text` is a path, not a glob.
Result<RemoteTarget> find_target(ClientSession& session, const std::string& text, bool has_several);

}  // namespace trellis
