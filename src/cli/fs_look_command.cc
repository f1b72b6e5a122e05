// `trellis fs ls, stat, du, df, quota`: what there is.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/arguments.h"
#include "cli/bytes_json.h"
#include "cli/fs_command.h"
#include "cli/human.h"
#include "cli/remote_files.h"
#include "cli/table.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr size_t rows_at_a_time = 500;

// --- ls ---

struct LsArguments {
  PathArguments paths;
  bool is_long = false;
  bool recursive = false;
  bool in_bytes = false;
};

// "drwxr-xr-x"
std::string mode_text(const json::object& file) {
  const std::string type = text_at(file, "type");
  const auto mode = std::strtoul(text_at(file, "mode").c_str(), nullptr, 8);
  std::string text = type == "file"               ? "-"
                     : type == "character_device" ? "c"
                     : type == "symlink"          ? "l"
                     : type == "fifo"             ? "p"
                                                  : type.substr(0, 1);
  if (text.empty() || text[0] < 'a' || text[0] > 'z') text = type == "file" ? "-" : "?";
  constexpr std::string_view letters = "rwxrwxrwx";
  for (size_t i = 0; i < letters.size(); i++)
    text += (mode >> (letters.size() - 1 - i) & 1) != 0 ? letters[i] : '-';
  return text;
}

// "2026-11-16 06:00:00", in UTC.
std::string short_time(std::string time) {
  if (const size_t at = time.find('T'); at != std::string::npos) time[at] = ' ';
  return terminal_text(time.substr(0, 19));
}

std::string size_text(uint64_t bytes, bool in_bytes) {
  return in_bytes ? std::to_string(bytes) : human_bytes(bytes);
}

// Rows of ls, printed as they come.
class Listing {
 public:
  Listing(ClientSession& session, const LsArguments& arguments)
      : session_(session),
        arguments_(arguments),
        table_({{"MODE"},
                {"UID", Align::right},
                {"GID", Align::right},
                {"SIZE", Align::right},
                {"MODIFIED (UTC)"},
                {"NAME"}}) {}

  Status add(const RemoteFile& file, ByteView shown) {
    if (session_.json) {
      TRY(print_json(session_, file.object));
    } else if (!arguments_.is_long) {
      TRY(print_line(session_, terminal_text(shown)));
    } else {
      table_.add({mode_text(file.object), std::to_string(number_at(file.object, "uid").value_or(0)),
                  std::to_string(number_at(file.object, "gid").value_or(0)),
                  size_text(file.size(), arguments_.in_bytes),
                  short_time(text_at(file.object, "modified")), terminal_text(shown)});
      if (++rows_ % rows_at_a_time == 0) TRY(session_.out.write(table_.take()));
    }
    return {};
  }
  Status finish() {
    if (session_.json || !arguments_.is_long) return {};
    return session_.out.write(table_.take());
  }

 private:
  ClientSession& session_;
  const LsArguments& arguments_;
  Table table_;
  uint64_t rows_ = 0;
};

Status list_one(ClientSession& session, const LsArguments& arguments, const std::string& argument,
                bool is_only_one, Listing& listing) {
  return each_file(session, argument, [&](const FoundFile& found) -> Status {
    const bool is_entered = found.file.is_directory() && (!found.by_glob || arguments.recursive);
    if (!is_entered) return listing.add(found.file, found.file.path);
    const ByteView directory = found.file.path;
    TRY(list_files(session, {.directory = Bytes(directory), .recursive = arguments.recursive},
                   [&](const RemoteFile& file) {
                     // As other tools: what is in one directory by its names.
                     const bool by_name = is_only_one && !arguments.recursive && directory != "/";
                     return listing.add(file, by_name ? ByteView(file.path).substr(directory.size())
                                                      : ByteView(file.path));
                   }));
    return {};
  });
}

Status list(ClientSession& session, const LsArguments& arguments) {
  Listing listing(session, arguments);
  std::vector<std::string> paths = arguments.paths.get();
  if (paths.empty()) paths.push_back("/");
  for (const std::string& path : paths) {
    const Status listed = list_one(session, arguments, path, paths.size() == 1, listing);
    if (!listed) {
      TRY(listing.finish());
      return listed;
    }
  }
  return listing.finish();
}

void add_ls(CLI::App& fs, ClientCommands& commands) {
  auto arguments = std::make_shared<LsArguments>();
  CLI::App* ls =
      commands.add_raw(fs, "ls", "List directories, or what globs match",
                       [arguments](ClientSession& session) { return list(session, *arguments); });
  arguments->paths.add(*ls, "PATH", "Files, directories or globs (default all that is in /)",
                       PathArguments::Need::optional);
  ls->add_flag("-l,--long", arguments->is_long, "With mode, owner, size and time");
  ls->add_flag("-R,--recursive", arguments->recursive, "With all that is below, by its path");
  ls->add_flag("-b,--bytes", arguments->in_bytes, "Sizes in bytes");
  ls->footer(std::string(fs_glob_help) +
             "Directories end with /. With --json: a line for each file.\n"
             "Examples:\n"
             "  trellis fs ls -l logs/\n"
             "  trellis fs ls 'logs/*.txt'");
}

// --- stat ---

std::string shown_bytes(const json::object& object, std::string_view name) {
  const auto bytes = bytes_of(object, name);
  return bytes ? terminal_text(*bytes) : "";
}

Status print_stat(ClientSession& session, const RemoteFile& file) {
  if (session.json) return print_json(session, file.object);
  const json::object& object = file.object;
  std::vector<std::pair<std::string, std::string>> lines = {
      {"path", terminal_text(file.path)},
      {"type", terminal_text(file.type())},
      {"size", fmt::format("{} ({} bytes)", human_bytes(file.size()), file.size())},
      {"space", human_bytes(number_at(object, "space").value_or(0))},
      {"mode", fmt::format("{} ({})", terminal_text(text_at(object, "mode")), mode_text(object))},
      {"owner", fmt::format("{}:{}", number_at(object, "uid").value_or(0),
                            number_at(object, "gid").value_or(0))},
      {"inode", std::to_string(number_at(object, "inode").value_or(0))},
      {"links", std::to_string(number_at(object, "links").value_or(0))}};
  for (const std::string_view name :
       {"modified", "changed", "accessed", "born", "target", "etag", "content_type",
        "content_disposition", "content_encoding", "cache_control"})
    if (std::string text = shown_bytes(object, name); !text.empty())
      lines.emplace_back(name, std::move(text));
  for (const auto& [name, value] : object_at(object, "user_metadata"))
    if (value.is_string())
      lines.emplace_back("user " + terminal_text(name), terminal_text(value.get_string()));
  return session.out.write(name_value_lines(lines));
}

struct StatArguments {
  PathArguments paths;
  bool keeps_symlinks = false;
};

Status stat_files(ClientSession& session, const StatArguments& arguments) {
  const Symlinks symlinks = arguments.keeps_symlinks ? Symlinks::keep : Symlinks::follow;
  bool is_first = true;
  const auto print = [&](const RemoteFile& file) -> Status {
    if (!is_first && !session.json) TRY(print_line(session, ""));
    is_first = false;
    return print_stat(session, file);
  };
  for (const std::string& path : arguments.paths.get())
    TRY(each_file(
        session, path,
        [&](const FoundFile& found) -> Status {
          if (!found.by_glob) return print(found.file);
          // A listing does not know all.
          TRY_ASSIGN(const auto file, find_file(session, found.file.path, symlinks));
          return file ? print(*file) : Status();
        },
        symlinks));
  return {};
}

void add_stat(CLI::App& fs, ClientCommands& commands) {
  auto arguments = std::make_shared<StatArguments>();
  CLI::App* command = commands.add_raw(
      fs, "stat", "Show what is known of files",
      [arguments](ClientSession& session) { return stat_files(session, *arguments); });
  arguments->paths.add(*command, "PATH", "Files, directories or globs");
  command->add_flag("--no-follow", arguments->keeps_symlinks,
                    "Of a symbolic link, and not of what it leads to");
  command->footer(std::string(fs_glob_help) + "Example: trellis fs stat logs/today.txt");
}

// --- du and df ---

struct DuArguments {
  PathArguments paths;
  bool in_bytes = false;
};

std::vector<std::string> figures_row(const json::object& figures, bool in_bytes) {
  return {size_text(number_at(figures, "space").value_or(0), in_bytes),
          size_text(number_at(figures, "length").value_or(0), in_bytes),
          std::to_string(number_at(figures, "inodes").value_or(0))};
}

Status disk_usage(ClientSession& session, const DuArguments& arguments) {
  std::vector<std::string> paths = arguments.paths.get();
  if (paths.empty()) paths.push_back("/");
  Table table(
      {{"SPACE", Align::right}, {"LENGTH", Align::right}, {"FILES", Align::right}, {"PATH"}});
  for (const std::string& path : paths)
    TRY(each_file(session, path, [&](const FoundFile& found) -> Status {
      TRY_ASSIGN(ApiAnswer answer,
                 session.api.ask({.target = fs_target(
                                      session, "/du?path=" + percent_encode(found.file.path))}));
      if (session.json) {
        add_bytes(answer.object, "path", found.file.path);
        return print_json(session, answer.object);
      }
      std::vector<std::string> row = figures_row(answer.object, arguments.in_bytes);
      row.push_back(terminal_text(found.file.path));
      table.add(std::move(row));
      return {};
    }));
  return session.json ? Status() : session.out.write(table.take());
}

void add_du(CLI::App& fs, ClientCommands& commands) {
  auto arguments = std::make_shared<DuArguments>();
  CLI::App* du = commands.add_raw(
      fs, "du", "How much is in a directory and below, at once however much that is",
      [arguments](ClientSession& session) { return disk_usage(session, *arguments); });
  arguments->paths.add(*du, "PATH", "Directories, files or globs (default /)",
                       PathArguments::Need::optional);
  du->add_flag("-b,--bytes", arguments->in_bytes, "Sizes in bytes");
  du->footer(std::string(fs_glob_help) +
             "SPACE is what is stored, in blocks; LENGTH is what the files would be read as; FILES "
             "counts directories, too. A line for each argument.\n"
             "Example: trellis fs du 'home/*/'");
}

Status show_figures(ClientSession& session) {
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = fs_target(session, "/figures")}));
  if (session.json) return print_line(session, answer.text);
  Table table({{"OF"}, {"SPACE", Align::right}, {"LENGTH", Align::right}, {"FILES", Align::right}});
  for (const std::string_view of : {"used", "trash"}) {
    std::vector<std::string> row = {of == "used" ? "all" : "trash"};
    for (std::string& cell : figures_row(object_at(answer.object, of), false))
      row.push_back(std::move(cell));
    table.add(std::move(row));
  }
  return session.out.write(table.take());
}

void add_df(CLI::App& fs, ClientCommands& commands) {
  CLI::App* df = commands.add_raw(
      fs, "df", "How much is in the file system, and how much of that in its trash",
      [](ClientSession& session) { return show_figures(session); });
  df->footer("Example: trellis fs df --keyspace home");
}

// --- quota ---

struct FsQuotaArguments {
  std::string path;
  std::string bytes;
  std::string files;
};

std::string limit_text(const json::object& quota, std::string_view name, bool is_bytes) {
  const uint64_t limit = number_at(quota, name).value_or(0);
  if (limit == 0) return "none";
  return is_bytes ? human_bytes(limit) : std::to_string(limit);
}

Status show_or_set_quota(ClientSession& session, const FsQuotaArguments& arguments) {
  TRY_ASSIGN(const Bytes path, parse_remote_path(arguments.path));
  const std::string target = fs_target(session, "/quota?path=" + percent_encode(path));
  TRY_ASSIGN(ApiAnswer answer, session.api.ask({.target = target}));
  json::object& quota = answer.object;
  if (!arguments.bytes.empty() || !arguments.files.empty()) {
    if (!arguments.bytes.empty()) {
      TRY_ASSIGN(quota["bytes_max"], parse_limit_of_bytes(arguments.bytes));
    }
    if (!arguments.files.empty()) {
      TRY_ASSIGN(quota["inodes_max"], parse_limit(arguments.files));
    }
    TRY(session.api.call(
        json_call(HttpMethod::put, target,
                  {{"bytes_max", quota["bytes_max"]}, {"inodes_max", quota["inodes_max"]}})));
  }
  if (session.json) return print_json(session, quota);
  const json::object& used = object_at(quota, "used");
  return session.out.write(name_value_lines(
      {{"space", fmt::format("{} of {}", human_bytes(number_at(used, "space").value_or(0)),
                             limit_text(quota, "bytes_max", true))},
       {"files", fmt::format("{} of {}", number_at(used, "inodes").value_or(0),
                             limit_text(quota, "inodes_max", false))}}));
}

void add_fs_quota(CLI::App& fs, ClientCommands& commands) {
  auto arguments = std::make_shared<FsQuotaArguments>();
  CLI::App* quota = commands.add_raw(
      fs, "quota", "Show or set how much may be in a directory and below",
      [arguments](ClientSession& session) { return show_or_set_quota(session, *arguments); });
  add_argument(*quota, "PATH", arguments->path, "The directory")->required();
  add_text(*quota, "--bytes", arguments->bytes, "SIZE", "Space, such as 10GiB, or none")
      ->check(checked_by(parse_limit_of_bytes));
  add_text(*quota, "--files", arguments->files, "N", "Files and directories, or none")
      ->check(checked_by(parse_limit));
  quota->footer(
      "What is not given stays as it is.\n"
      "Example: trellis fs quota home/ann/ --bytes 10GiB --files 100000");
}

}  // namespace

void add_fs_look_commands(CLI::App& fs, ClientCommands& commands) {
  add_ls(fs, commands);
  add_stat(fs, commands);
  add_du(fs, commands);
  add_df(fs, commands);
  add_fs_quota(fs, commands);
}

}  // namespace trellis
