// `trellis fs mkdir, rm, mv, cp`.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <limits>
#include <memory>

#include "cli/arguments.h"
#include "cli/bytes_json.h"
#include "cli/fs_command.h"
#include "cli/human.h"
#include "cli/remote_files.h"
#include "cli/transfer.h"

namespace trellis {
namespace {

namespace json = boost::json;

// A large file is copied in one request.
constexpr uint32_t copy_timeout_ms = 3'600'000;

// --- mkdir ---

Status make_directories(ClientSession& session, const PathArguments& paths) {
  for (const std::string& text : paths.get()) {
    TRY_ASSIGN(const Bytes path, parse_remote_path(text + "/"));
    TRY_ASSIGN(ApiAnswer answer,
               session.api.ask({.method = HttpMethod::put, .target = file_target(session, path)}));
    if (!session.json) continue;
    add_bytes(answer.object, "path", path);
    TRY(print_json(session, answer.object));
  }
  return {};
}

void add_mkdir(CLI::App& fs, ClientCommands& commands) {
  auto paths = std::make_shared<PathArguments>();
  CLI::App* mkdir = commands.add_raw(
      fs, "mkdir", "Make directories, and those above them",
      [paths](ClientSession& session) { return make_directories(session, *paths); });
  paths->add(*mkdir, "PATH", "Directories; those that are there stay as they are");
  mkdir->footer(
      "Files need no directories: what is missing on the way is made with them.\n"
      "Example: trellis fs mkdir home/ann home/bob");
}

// --- rm ---

struct RmArguments {
  PathArguments paths;
  bool recursive = false;
  bool everything = false;
};

Status say_removed(ClientSession& session, ByteView path, bool was_there) {
  if (session.json) {
    json::object printed;
    add_bytes(printed, "path", path);
    printed["removed"] = was_there;
    return print_json(session, printed);
  }
  return was_there ? Status()
                   : print_line(session, fmt::format("{} was not there", terminal_text(path)));
}

Status remove_one(ClientSession& session, const RmArguments& arguments, const RemoteFile& file) {
  std::string target = file_target(session, file.path);
  if (file.is_directory() && arguments.recursive) target += "?recursive=true";
  const auto removed = session.api.call({.method = HttpMethod::del, .target = target});
  if (!removed) {
    Error error = removed.error();
    if (file.is_directory() && !arguments.recursive && error.code == Code::conflict)
      error.message = fmt::format("{} is not empty: -r removes all that is in it", file.path);
    return error;
  }
  return say_removed(session, file.path, true);
}

Status remove_files(ClientSession& session, const RmArguments& arguments) {
  const std::vector<std::string> paths = arguments.paths.get();
  for (const std::string& argument : paths) {
    const auto remove = [&](const FoundFile& found) -> Status {
      if (found.file.path == "/" && !(arguments.recursive && arguments.everything))
        return wrong_use("/ is every file that there is: if you mean it, give -r --everything");
      // A glob without -r is about files.
      if (found.by_glob && found.file.is_directory() && !arguments.recursive) return {};
      return remove_one(session, arguments, found.file);
    };
    const Status removed = each_file(session, argument, remove, Symlinks::keep);
    if (removed) continue;
    if (removed.error().code != Code::not_found || !removed.error().reason.empty()) return removed;
    TRY(say_removed(session, argument, false));
  }
  return {};
}

void add_rm(CLI::App& fs, ClientCommands& commands) {
  auto arguments = std::make_shared<RmArguments>();
  CLI::App* rm = commands.add_raw(
      fs, "rm", "Remove files; one that is not there is as good as removed",
      [arguments](ClientSession& session) { return remove_files(session, *arguments); });
  arguments->paths.add(*rm, "PATH", "Files, empty directories or globs");
  rm->add_flag("-r,--recursive", arguments->recursive,
               "Directories with all that is in them, at once");
  rm->add_flag("--everything", arguments->everything, "With -r: / too");
  rm->footer(std::string(fs_glob_help) +
             "What is removed stays in the trash for a day unless `trellis fs trash keep` says "
             "otherwise; an empty directory that is removed without -r goes for good, as does what "
             "put, cp and mv replace. Without -r a glob is about files.\n"
             "Examples:\n"
             "  trellis fs rm old.txt 'logs/*.tmp'\n"
             "  trellis fs rm -r build/");
}

// --- mv ---

struct MoveArguments {
  PathArguments paths;
  bool recursive = false;
  bool if_absent = false;
};

json::object from_to(ByteView from, ByteView to, bool if_absent) {
  json::object body;
  add_bytes(body, "from", from);
  add_bytes(body, "to", to);
  if (if_absent) body["if_not_exists"] = true;
  return body;
}

// The target of one of the sources.
Bytes path_at(const RemoteTarget& target, const FoundFile& source) {
  const bool is_in = target.is_directory || source.by_glob;
  Bytes path = is_in && !source.name.empty() ? path_below(target.path, source.name)
                                             : Bytes(without_slash(target.path));
  if (source.file.is_directory()) path += '/';
  return path;
}

struct SourcesAndTarget {
  std::vector<std::string> sources;
  RemoteTarget target;
};

Result<SourcesAndTarget> split_arguments(ClientSession& session, const PathArguments& paths) {
  SourcesAndTarget split;
  split.sources = paths.get();
  if (split.sources.size() < 2) return wrong_use("it needs a SOURCE and a TARGET");
  const std::string target = split.sources.back();
  split.sources.pop_back();
  TRY_ASSIGN(split.target, find_target(session, target, split.sources.size() > 1));
  return split;
}

Status move_files(ClientSession& session, const MoveArguments& arguments) {
  TRY_ASSIGN(const SourcesAndTarget split, split_arguments(session, arguments.paths));
  const auto move = [&](const FoundFile& found) -> Status {
    const Bytes to = path_at(split.target, found);
    // The way there is made, as for all that writes.
    TRY(session.api.call(json_call(HttpMethod::post, fs_target(session, "/rename"),
                                   from_to(found.file.path, to, arguments.if_absent))));
    if (!session.json) return {};
    return print_json(session, from_to(found.file.path, to, false));
  };
  for (const std::string& source : split.sources)
    TRY(each_file(session, source, move, Symlinks::keep));
  return {};
}

void add_mv(CLI::App& fs, ClientCommands& commands) {
  auto arguments = std::make_shared<MoveArguments>();
  CLI::App* mv = commands.add_raw(
      fs, "mv", "Give files and directories another name, at once however much is in them",
      [arguments](ClientSession& session) { return move_files(session, *arguments); });
  arguments->paths.add(*mv, "SOURCE... TARGET",
                       "Files, directories or globs; and where they go: into TARGET if that is a "
                       "directory or ends with /");
  mv->add_flag("--if-absent", arguments->if_absent,
               "Only if nothing has that name; else exit code 1");
  mv->footer(
      std::string(fs_glob_help) +
      "A file takes the place of one that is there, which goes for good, not to the trash; a "
      "directory only that of an empty one.\n"
      "Examples:\n"
      "  trellis fs mv draft.txt final.txt\n"
      "  trellis fs mv 'inbox/*.eml' archive/");
}

// --- cp ---

class Copying {
 public:
  Copying(ClientSession& session, const MoveArguments& arguments, bool goes_on)
      : session_(session), arguments_(arguments), transfer_(session, "copied", goes_on) {}

  Status copy(const FoundFile& found, const Bytes& to) {
    if (!found.file.is_directory()) return copy_file(found.file, to);
    if (found.by_glob && !arguments_.recursive) return {};
    if (!arguments_.recursive)
      return wrong_use(fmt::format("{} is a directory: give -r", found.file.path));
    const Bytes from = found.file.path == "/" ? Bytes() : found.file.path;
    if (to.starts_with(from))
      return wrong_use(fmt::format("{} cannot be copied into itself", found.file.path));
    TRY(make_directory(to));
    TRY(list_files(session_, {.directory = found.file.path, .recursive = true},
                   [&](const RemoteFile& file) -> Status {
                     const Bytes below = path_below(to, ByteView(file.path).substr(from.size()));
                     return file.is_directory() ? make_directory(below) : copy_file(file, below);
                   }));
    return {};
  }
  void expect(uint64_t bytes) { transfer_.expect(bytes); }
  Status finish() { return transfer_.finish(); }

 private:
  Status copy_file(const RemoteFile& file, const Bytes& to) {
    if (file.type() != "file") {
      transfer_.skip(file.path, file.type() == "symlink" ? "a symbolic link" : "no regular file");
      return {};
    }
    const auto copied = session_.api.call(json_call(HttpMethod::post, fs_target(session_, "/copy"),
                                                    from_to(file.path, to, arguments_.if_absent)));
    if (!copied) return transfer_.take(file.path, copied.error());
    transfer_.add_bytes(file.size());
    TRY(transfer_.take(file.path, {}));
    if (!session_.json) return {};
    return print_json(session_, from_to(file.path, to, false));
  }

  Status make_directory(const Bytes& path) {
    TRY(session_.api.call({.method = HttpMethod::put, .target = file_target(session_, path)}));
    return {};
  }

  ClientSession& session_;
  const MoveArguments& arguments_;
  Transfer transfer_;
};

Status copy_files(ClientSession& session, const MoveArguments& arguments) {
  TRY_ASSIGN(const SourcesAndTarget split, split_arguments(session, arguments.paths));
  session.api.wait_at_least_ms(copy_timeout_ms);
  Copying copying(session, arguments, split.sources.size() > 1 || arguments.recursive);
  if (session.err_is_terminal)
    if (const auto bytes = bytes_in(session, split.sources)) copying.expect(*bytes);
  for (const std::string& source : split.sources)
    TRY(each_file(session, source, [&](const FoundFile& found) {
      return copying.copy(found, path_at(split.target, found));
    }));
  return copying.finish();
}

void add_cp(CLI::App& fs, ClientCommands& commands) {
  auto arguments = std::make_shared<MoveArguments>();
  CLI::App* cp = commands.add_raw(
      fs, "cp", "Copy files; the copy shares what is stored until one of them changes",
      [arguments](ClientSession& session) { return copy_files(session, *arguments); });
  arguments->paths.add(*cp, "SOURCE... TARGET",
                       "Files, directories or globs; and where they go: into TARGET if that is a "
                       "directory or ends with /");
  cp->add_flag("-r,--recursive", arguments->recursive,
               "Directories with all that is in them, file by file");
  cp->add_flag("--if-absent", arguments->if_absent,
               "Only to names that nothing has; else exit code 1");
  cp->footer(std::string(fs_glob_help) +
             "Symbolic links below a directory, and what is no regular file, are skipped, and told "
             "of.\n"
             "Examples:\n"
             "  trellis fs cp plan.txt plan-2026.txt\n"
             "  trellis fs cp -r photos/ backup/");
}

}  // namespace

void add_fs_change_commands(CLI::App& fs, ClientCommands& commands) {
  add_mkdir(fs, commands);
  add_rm(fs, commands);
  add_mv(fs, commands);
  add_cp(fs, commands);
}

}  // namespace trellis
