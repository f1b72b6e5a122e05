#include "cli/remote_files.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "cli/bytes_json.h"
#include "cli/glob.h"
#include "fs/paths.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr unsigned page_files = 1'000;
constexpr unsigned status_not_found = 404;

std::string in_keyspace(const ClientSession& session, std::string_view path) {
  if (session.keyspace.empty()) return std::string(path);
  return fmt::format("/k/{}{}", percent_encode(session.keyspace), path);
}

// With a '/' behind directories, wherever it comes from.
Bytes path_of_type(Bytes path, std::string_view type) {
  if (type == "directory" && !path.ends_with('/')) path += '/';
  return path;
}

// Of one glob: what is listed, and what it is compared with.
class Expansion {
 public:
  Expansion(ClientSession& session, std::vector<Bytes> parts, bool only_directories,
            FunctionRef<Status(const FoundFile&)> visit)
      : session_(session),
        parts_(std::move(parts)),
        only_directories_(only_directories),
        visit_(visit) {
    Bytes literal;
    for (const Bytes& part : parts_) {
      if (is_glob(part)) break;
      literal += without_escapes(part) + "/";
    }
    base_bytes_ = literal.size();
  }

  // `directory` has matched the parts before `at`; empty: the root.
  Status expand(Bytes directory, size_t at) {
    for (; at < parts_.size() && !is_glob(parts_[at]); at++)
      directory += without_escapes(parts_[at]) + "/";
    if (at == parts_.size()) {
      TRY_ASSIGN(const auto file, find_file(session_, without_slash(directory), Symlinks::keep));
      return file ? found(*file) : Status();
    }
    const std::span<const Bytes> rest = std::span(parts_).subspan(at);
    const bool is_deep = rest.front() == "**";
    const auto look = [&](const RemoteFile& file) -> Status {
      const ByteView name = without_slash(file.path).substr(directory.size());
      if (is_deep) return matches_path_glob(rest, split_path(name)) ? found(file) : Status();
      if (!matches_path_glob(rest.front(), name)) return {};
      if (rest.size() == 1) return found(file);
      return file.is_directory() ? expand(file.path, at + 1) : Status();
    };
    TRY(list_files(session_,
                   {.directory = directory.empty() ? "/" : directory,
                    .prefix = is_deep ? Bytes() : path_glob_prefix(rest.front()),
                    .recursive = is_deep},
                   look));
    return {};
  }
  uint64_t count() const { return count_; }

 private:
  Status found(const RemoteFile& file) {
    if (only_directories_ && !file.is_directory()) return {};
    count_++;
    return visit_({.file = file,
                   .name = Bytes(without_slash(file.path).substr(base_bytes_)),
                   .by_glob = true});
  }

  ClientSession& session_;
  const std::vector<Bytes> parts_;
  const bool only_directories_;
  FunctionRef<Status(const FoundFile&)> visit_;
  size_t base_bytes_ = 0;
  uint64_t count_ = 0;
};

Status expand_glob(ClientSession& session, const std::string& argument,
                   FunctionRef<Status(const FoundFile&)> visit) {
  std::vector<Bytes> parts;
  for (const ByteView part : split_path(argument)) {
    if (part == "..") return wrong_use(fmt::format("{}: .. does not go with globs", argument));
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  Expansion expansion(session, std::move(parts), argument.ends_with('/'), visit);
  TRY(expansion.expand({}, 0));
  if (expansion.count() == 0)
    return Error{Code::not_found, fmt::format("nothing matches {}", argument)};
  return {};
}

}  // namespace

std::string file_target(const ClientSession& session, ByteView path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  return in_keyspace(session, "/v1/files/" + percent_encode_path(path));
}

std::string fs_target(const ClientSession& session, std::string_view rest) {
  return in_keyspace(session, fmt::format("/v1/fs{}", rest));
}

Result<Bytes> parse_remote_path(ByteView text) {
  if (text.empty()) return wrong_use("a path has at least one character; / is all there is");
  const auto path = parse_path(text);
  if (!path) return wrong_use(path.error().message);
  return path->text();
}

ByteView without_slash(ByteView path) {
  if (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

ByteView last_name(ByteView path) {
  path = without_slash(path);
  return path.substr(path.rfind('/') + 1);
}

Bytes path_below(ByteView directory, ByteView name) {
  directory = without_slash(directory);
  return directory.empty() ? Bytes(name) : fmt::format("{}/{}", directory, name);
}

Error no_such_file(ByteView path) {
  return Error{Code::not_found, fmt::format("there is no {}", path)};
}

Result<std::optional<RemoteFile>> find_file(ClientSession& session, ByteView path,
                                            Symlinks symlinks) {
  const bool is_root = path.empty() || path == "/";
  std::string target =
      fs_target(session, "/stat?path=" + percent_encode(is_root ? ByteView("/") : path));
  if (symlinks == Symlinks::keep) target += "&follow=false";
  TRY_ASSIGN(ApiAnswer answer,
             session.api.ask({.target = target, .expected_status = status_not_found}));
  if (answer.status == status_not_found) {
    // It may be the keyspace that is not there.
    const std::string code = text_at(answer.object, "code");
    if (code == "no_entry" || code == "stale") return std::optional<RemoteFile>();
    return Error{Code::not_found, text_at(answer.object, "message")};
  }
  Bytes found = is_root ? Bytes("/") : path_of_type(Bytes(path), text_at(answer.object, "type"));
  return std::optional(RemoteFile{std::move(found), std::move(answer.object)});
}

Result<bool> list_files(ClientSession& session, const ListedFiles& what,
                        FunctionRef<Status(const RemoteFile&)> visit) {
  std::string begin = fmt::format("{}?limit={}", file_target(session, what.directory), page_files);
  if (what.recursive) begin += "&recursive=true";
  if (!what.prefix.empty()) begin += "&prefix=" + percent_encode(what.prefix);
  bool is_there = false;
  std::optional<Bytes> resume;
  do {
    const std::string target = resume ? begin + "&start_after=" + percent_encode(*resume) : begin;
    TRY_ASSIGN(ApiAnswer page, session.api.ask({.target = target}));
    for (const json::value& value : array_at(page.object, "entries")) {
      if (!value.is_object()) continue;
      const json::object& object = value.get_object();
      TRY_ASSIGN(Bytes path, bytes_of(object, "path"));
      is_there = true;
      if (path == what.directory || ByteView(path) == ByteView("/")) continue;
      // Whoever takes the directory off the front relies on it.
      if (what.directory != "/" && !path.starts_with(what.directory))
        return Error{Code::corrupt, "the server sent a path of another directory"};
      TRY(visit({path_of_type(std::move(path), text_at(object, "type")), object}));
    }
    std::optional<Bytes> next;
    if (page.object.contains("resume") || page.object.contains("resume_base64")) {
      TRY_ASSIGN(next, bytes_of(page.object, "resume"));
    }
    if (next == resume) break;  // a server that does not move on
    resume = std::move(next);
  } while (resume);
  if (is_there) return true;
  TRY_ASSIGN(const auto directory, find_file(session, what.directory));
  return directory && directory->is_directory();
}

Status each_file(ClientSession& session, const std::string& argument,
                 FunctionRef<Status(const FoundFile&)> visit, Symlinks symlinks) {
  if (is_glob(argument)) return expand_glob(session, argument, visit);
  TRY_ASSIGN(const Bytes path, parse_remote_path(without_escapes(argument)));
  TRY_ASSIGN(auto file, find_file(session, path, symlinks));
  if (!file) return no_such_file(path);
  Bytes name(last_name(file->path));
  return visit({.file = *std::move(file), .name = std::move(name)});
}

std::optional<uint64_t> bytes_in(ClientSession& session,
                                 const std::vector<std::string>& arguments) {
  uint64_t sum = 0;
  for (const std::string& argument : arguments) {
    if (is_glob(argument)) return std::nullopt;
    const auto path = parse_remote_path(without_escapes(argument));
    if (!path) return std::nullopt;
    const auto below =
        session.api.ask({.target = fs_target(session, "/du?path=" + percent_encode(*path))});
    if (!below) return std::nullopt;
    sum += number_at(below->object, "length").value_or(0);
  }
  return sum;
}

void PathArguments::add(CLI::App& command, const std::string& name, const std::string& help,
                        Need need) {
  // CLI11 takes "[a,b]" for two wherever it takes as many as come, and not where it waits for more
  // than anybody gives; with TakeLast it does not mind that they are less.
  constexpr int more_than_come = 1 << 20;
  option_ = command.add_option(name, bound_, help)->type_name("");
  option_->required(need == Need::at_least_one)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->expected(more_than_come, CLI::detail::expected_max_vector_size)
      ->allow_extra_args(false);
}

}  // namespace trellis
