#include "cli/fs_command.h"

#include "cli/remote_files.h"

namespace trellis {

Result<RemoteTarget> find_target(ClientSession& session, const std::string& text,
                                 bool has_several) {
  TRY_ASSIGN(Bytes path, parse_remote_path(text));
  if (path.ends_with('/') || has_several) return RemoteTarget{std::move(path), true};
  TRY_ASSIGN(const auto found, find_file(session, path));
  return RemoteTarget{std::move(path), found && found->is_directory()};
}

void add_fs_commands(CLI::App& app, ClientCommands& commands) {
  CLI::App* fs = app.add_subcommand("fs", "Files of a keyspace");
  fs->require_subcommand(1);
  add_fs_look_commands(*fs, commands);
  add_fs_get_commands(*fs, commands);
  add_fs_put_command(*fs, commands);
  add_fs_change_commands(*fs, commands);
  add_fs_trash_commands(*fs, commands);
  add_fs_fsck_command(*fs, commands);
  fs->footer(
      "Paths are a/b for a file and a/b/ for a directory; a / in front means nothing. What is "
      "missing on the way to a file is made with it.\n"
      "Examples:\n"
      "  trellis fs put -r photos backup/\n"
      "  trellis fs ls -l 'backup/**/*.jpg'");
}

}  // namespace trellis
