// `trellis fs cat, get`: files of the server.
#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <memory>

#include "base/crc32c.h"
#include "cli/arguments.h"
#include "cli/bytes_json.h"
#include "cli/fs_command.h"
#include "cli/partial_file.h"
#include "cli/remote_files.h"
#include "cli/transfer.h"
#include "fs/paths.h"

namespace trellis {
namespace {

namespace json = boost::json;
namespace local = std::filesystem;

constexpr unsigned status_partial = 206;
constexpr unsigned status_no_such_range = 416;

// --- cat ---

struct CatArguments {
  PathArguments paths;
  std::string offset;
  std::string size;
  std::string tail;
};

// The header that asks for a part; "": all of it. Absent: nothing is asked for.
Result<std::optional<std::string>> range_header(const CatArguments& arguments) {
  if (!arguments.tail.empty()) {
    TRY_ASSIGN(const uint64_t tail, parse_size_bytes(arguments.tail));
    if (tail == 0) return std::optional<std::string>();
    return std::optional(fmt::format("bytes=-{}", tail));
  }
  if (arguments.offset.empty() && arguments.size.empty()) return std::optional(std::string());
  uint64_t offset = 0;
  if (!arguments.offset.empty()) {
    TRY_ASSIGN(offset, parse_size_bytes(arguments.offset));
  }
  if (arguments.size.empty()) return std::optional(fmt::format("bytes={}-", offset));
  TRY_ASSIGN(const uint64_t size, parse_size_bytes(arguments.size));
  if (size == 0) return std::optional<std::string>();
  if (size > UINT64_MAX - offset) return wrong_use("--offset and --size are too large together");
  return std::optional(fmt::format("bytes={}-{}", offset, offset + size - 1));
}

Status cat_file(ClientSession& session, const std::optional<std::string>& range,
                const RemoteFile& file) {
  if (file.is_directory()) return Error{Code::invalid, fmt::format("{} is a directory", file.path)};
  ApiCall call{.target = file_target(session, file.path)};
  if (range && !range->empty()) {
    call.headers.push_back({"Range", *range});
    call.expected_status = status_no_such_range;  // there is nothing to print
  }
  if (!session.json) {
    if (!range) return {};
    call.receive = [&](const HttpAnswer&, ByteView piece) { return session.out.write(piece); };
    TRY(session.api.call(call));
    return {};
  }
  HttpAnswer answer;
  if (range) {
    TRY_ASSIGN(answer, session.api.call(call));
  }
  json::object printed;
  add_bytes(printed, "path", file.path);
  add_bytes(printed, "content",
            answer.status == status_no_such_range ? ByteView() : ByteView(answer.body));
  printed["etag"] = text_at(file.object, "etag");
  return print_json(session, printed);
}

Status cat(ClientSession& session, const CatArguments& arguments) {
  TRY_ASSIGN(const auto range, range_header(arguments));
  for (const std::string& path : arguments.paths.get())
    TRY(each_file(session, path, [&](const FoundFile& found) -> Status {
      if (found.by_glob && found.file.is_directory()) return {};
      return cat_file(session, range, found.file);
    }));
  return {};
}

void add_cat(CLI::App& fs, ClientCommands& commands) {
  auto arguments = std::make_shared<CatArguments>();
  CLI::App* command =
      commands.add_raw(fs, "cat", "Print files, byte for byte",
                       [arguments](ClientSession& session) { return cat(session, *arguments); });
  arguments->paths.add(*command, "PATH", "Files or globs");
  CLI::Option* offset =
      add_text(*command, "--offset", arguments->offset, "SIZE", "From that byte on (default 0)")
          ->check(checked_by(parse_size_bytes));
  CLI::Option* size = add_text(*command, "--size", arguments->size, "SIZE",
                               "At most so many bytes, such as 1MiB (default all)")
                          ->check(checked_by(parse_size_bytes));
  add_text(*command, "--tail", arguments->tail, "SIZE", "The last bytes")
      ->check(checked_by(parse_size_bytes))
      ->excludes(offset)
      ->excludes(size);
  command->footer(std::string(fs_glob_help) +
                  "Examples:\n"
                  "  trellis fs cat notes.txt\n"
                  "  trellis fs cat --tail 4KiB logs/today.txt");
}

// --- get ---

struct GetArguments {
  PathArguments paths;
  bool recursive = false;
};

// What is smaller is got anew after an interruption.
constexpr uint64_t resumed_bytes_min = uint64_t{1} << 20;
constexpr unsigned get_tries_max = 5;
constexpr uint64_t get_retry_us = 200'000;

class Downloader {
 public:
  Downloader(ClientSession& session, Transfer& transfer) : session_(session), transfer_(transfer) {}

  Status get_to_output(const RemoteFile& file) {
    TRY(session_.api.call({.target = file_target(session_, file.path),
                           .receive = [&](const HttpAnswer&, ByteView piece) {
                             transfer_.add_bytes(piece.size());
                             return session_.out.write(piece);
                           }}));
    return session_.out.flush();
  }

  // It appears when it is complete, in place of what is there.
  Status get_file(const RemoteFile& file, const local::path& path) {
    std::error_code failed;
    const local::file_status there = local::status(path, failed);
    if (local::is_directory(there))
      return Error{Code::invalid, fmt::format("{} is a folder here", path.native())};
    if (local::exists(there) && !local::is_regular_file(there)) return get_to_device(file, path);
    TRY_ASSIGN(const RemoteFile wanted, with_tag(file));
    const std::string tag =
        wanted.size() < resumed_bytes_min ? std::string() : text_at(wanted.object, "etag");
    TRY_ASSIGN(PartialFile partial, PartialFile::open(partial_path(path, tag), !tag.empty()));
    const Status done = fill(partial, wanted, tag);
    if (!done) {
      const bool is_kept = !tag.empty() && partial.size() > 0;
      if (!is_kept) partial.remove();
      Error error = done.error();
      if (is_kept) error.message += "; the same command again goes on where it broke off";
      return error;
    }
    TRY(partial.rename_to(path.native()));
    return tell(file, path);
  }

 private:
  // Of a file that would be gone on with the tag is known: with it a part of another content is
  // never taken for one of this.
  Result<RemoteFile> with_tag(const RemoteFile& file) {
    if (file.size() < resumed_bytes_min || file.object.contains("etag")) return file;
    TRY_ASSIGN(auto found, find_file(session_, file.path));
    if (!found) return no_such_file(file.path);
    return *std::move(found);
  }

  // In the folder of the file, so that it can be renamed; of one server, file, content and name.
  local::path partial_path(const local::path& path, const std::string& tag) const {
    const std::string whole =
        fmt::format("{} {} {}", session_.api.server(), session_.keyspace, path.filename().native());
    // From the server: nothing that could be another folder's.
    const bool is_plain =
        tag.size() < 100 && tag.find_first_not_of("0123456789abcdef-") == std::string::npos;
    const std::string name =
        fmt::format(".trellis-{:08x}-{}.partial", crc32c(whole),
                    tag.empty() || !is_plain ? std::to_string(::getpid()) : tag);
    return path.parent_path() / name;
  }

  Status fill(PartialFile& partial, const RemoteFile& file, const std::string& tag) {
    transfer_.add_bytes(partial.size());
    for (unsigned tries = 1;; tries++) {
      if (!tag.empty() && partial.size() == file.size() && tries == 1) return {};
      const uint64_t before = partial.size();
      auto answer = session_.api.call(request(partial, file, tag));
      if (answer && answer->status != status_no_such_range) return {};
      if (answer) {  // it became shorter
        start_again(partial);
        continue;
      }
      const Error& error = answer.error();
      const bool may_help = error.code == Code::unavailable || error.code == Code::maybe;
      if (!may_help || tag.empty() || tries >= get_tries_max) return error;
      if (partial.size() > before) tries = 0;
      session_.clock.pause_us(get_retry_us);
    }
  }

  ApiCall request(PartialFile& partial, const RemoteFile& file, const std::string& tag) {
    ApiCall call{.target = file_target(session_, file.path)};
    if (partial.size() > 0) {
      call.headers.push_back({"Range", fmt::format("bytes={}-", partial.size())});
      call.headers.push_back({"If-Range", quoted_tag(tag)});
      call.expected_status = status_no_such_range;
    }
    call.receive = [this, &partial, is_first = true](const HttpAnswer& answer,
                                                     ByteView piece) mutable -> Status {
      // All of it: the content is another one by now.
      if (std::exchange(is_first, false) && answer.status != status_partial) start_again(partial);
      transfer_.add_bytes(piece.size());
      return partial.write(piece);
    };
    return call;
  }

  void start_again(PartialFile& partial) {
    transfer_.take_back(partial.size());
    partial.clear();
  }

  Status get_to_device(const RemoteFile& file, const local::path& path) {
    auto device = StreamFile::open_to_write(path.native());
    if (!device) return Error{Code::invalid, device.error().message};
    StandardOutput out(device->descriptor(), path.native());
    TRY(session_.api.call({.target = file_target(session_, file.path),
                           .receive = [&](const HttpAnswer&, ByteView piece) {
                             transfer_.add_bytes(piece.size());
                             return out.write(piece);
                           }}));
    TRY(out.flush());
    return tell(file, path);
  }

  Status tell(const RemoteFile& file, const local::path& path) {
    if (!session_.json) return {};
    json::object printed;
    add_bytes(printed, "path", file.path);
    add_bytes(printed, "file", path.native());
    return print_json(session_, printed);
  }

  ClientSession& session_;
  Transfer& transfer_;
};

// Where a path of the server goes below a folder. The server cannot have such names; whoever
// answers in its place can.
Result<local::path> place_below(const local::path& folder, ByteView relative) {
  local::path path = folder;
  for (const ByteView name : split_path(relative)) {
    if (name.empty() || name == "." || name == ".." || name.find('\0') != ByteView::npos)
      return Error{Code::invalid, "the server sent a path that no file can have"};
    path /= name;
  }
  return path;
}

Status make_folders(const local::path& folder) {
  std::error_code failed;
  local::create_directories(folder, failed);
  if (failed) return Error{Code::invalid, fmt::format("{}: {}", folder.native(), failed.message())};
  return {};
}

// One found file, or a directory with all that is below it.
class Getting {
 public:
  Getting(ClientSession& session, const GetArguments& arguments, std::string target,
          bool has_several)
      : session_(session),
        arguments_(arguments),
        target_(std::move(target)),
        goes_on_(has_several || arguments.recursive),
        transfer_(session, "got", goes_on_),
        downloader_(session, transfer_) {
    std::error_code failed;
    into_folder_ = has_several || target_.ends_with('/') || local::is_directory(target_, failed);
  }

  Status get(const std::string& argument) {
    const Status got = each_file(session_, argument, [&](const FoundFile& found) -> Status {
      if (found.by_glob) into_folder_ = true;
      if (found.file.is_directory()) return get_directory(found);
      if (target_ == "-")
        return transfer_.take(found.file.path, downloader_.get_to_output(found.file));
      return get_one(found.file, found.name);
    });
    const bool is_missing =
        !got && got.error().code == Code::not_found && got.error().reason.empty();
    return is_missing && goes_on_ ? transfer_.take(argument, got) : got;
  }
  void expect(uint64_t bytes) { transfer_.expect(bytes); }
  Status finish() { return target_ == "-" ? transfer_.outcome() : transfer_.finish(); }

 private:
  Status get_one(const RemoteFile& file, ByteView name) {
    if (file.type() != "file") {
      transfer_.skip(file.path, file.type() == "symlink" ? "a symbolic link" : "no regular file");
      return {};
    }
    if (!into_folder_) return transfer_.take(file.path, downloader_.get_file(file, target_));
    return transfer_.take(file.path, get_below(file, target_, name));
  }

  Status get_below(const RemoteFile& file, const local::path& folder, ByteView name) {
    TRY_ASSIGN(const local::path path, place_below(folder, name));
    TRY(make_folders(path.parent_path()));
    return downloader_.get_file(file, path);
  }

  Status get_directory(const FoundFile& found) {
    if (found.by_glob && !arguments_.recursive) return {};
    if (!arguments_.recursive)
      return wrong_use(fmt::format("{} is a directory: give -r", found.file.path));
    if (target_ == "-") return wrong_use("directories go to folders, not to standard output");
    local::path folder = target_;
    if (into_folder_ && !found.name.empty()) {
      TRY_ASSIGN(folder, place_below(target_, found.name));
    }
    TRY(make_folders(folder));
    const Bytes directory = found.file.path == "/" ? Bytes() : found.file.path;
    TRY(list_files(session_, {.directory = found.file.path, .recursive = true},
                   [&](const RemoteFile& file) -> Status {
                     const ByteView name = without_slash(file.path).substr(directory.size());
                     if (file.is_directory()) {
                       TRY_ASSIGN(const local::path below, place_below(folder, name));
                       const Status made = make_folders(below);
                       return made ? Status() : transfer_.take(file.path, made);
                     }
                     if (file.type() != "file") {
                       transfer_.skip(file.path, file.type() == "symlink" ? "a symbolic link"
                                                                          : "no regular file");
                       return {};
                     }
                     return transfer_.take(file.path, get_below(file, folder, name));
                   }));
    return {};
  }

  ClientSession& session_;
  const GetArguments& arguments_;
  const std::string target_;
  const bool goes_on_;  // with the other sources
  bool into_folder_ = false;
  Transfer transfer_;
  Downloader downloader_;
};

Status get_files(ClientSession& session, const GetArguments& arguments) {
  std::vector<std::string> sources = arguments.paths.get();
  std::string target = ".";
  if (sources.size() > 1) {
    target = sources.back();
    sources.pop_back();
  }
  if (target.empty()) return wrong_use("TARGET must not be empty");
  Getting getting(session, arguments, std::move(target), sources.size() > 1);
  if (session.err_is_terminal)
    if (const auto bytes = bytes_in(session, sources)) getting.expect(*bytes);
  for (const std::string& source : sources) TRY(getting.get(source));
  return getting.finish();
}

void add_fs_get(CLI::App& fs, ClientCommands& commands) {
  auto arguments = std::make_shared<GetArguments>();
  CLI::App* get = commands.add_raw(
      fs, "get", "Fetch files to the local disk; each appears when it is complete",
      [arguments](ClientSession& session) { return get_files(session, *arguments); });
  arguments->paths.add(*get, "SOURCE... TARGET",
                       "Files or globs; and where they go: into TARGET if that is a folder or ends "
                       "with /, - is standard output (default the current folder)");
  get->add_flag("-r,--recursive", arguments->recursive, "Directories with all that is in them");
  get->footer(std::string(fs_glob_help) +
              "A large file that breaks off goes on where it was when the same command runs "
              "again; until then .trellis-*.partial is next to it. Symbolic links and special "
              "files are skipped, and told of.\n"
              "Examples:\n"
              "  trellis fs get reports/2026.pdf\n"
              "  trellis fs get -r backup/photos /tmp/\n"
              "  trellis fs get 'logs/*.txt' logs/");
}

}  // namespace

void add_fs_get_commands(CLI::App& fs, ClientCommands& commands) {
  add_cat(fs, commands);
  add_fs_get(fs, commands);
}

}  // namespace trellis
