// Files of the server, as commands see them.
//
//   TRY(each_file(session, "logs/*.txt", [&](const FoundFile& found) { ... }));
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/function_ref.h"
#include "cli/client_command.h"

namespace trellis {

// "/v1/files/" and the path, and "/v1/fs" + rest, in the keyspace of the session.
std::string file_target(const ClientSession& session, ByteView path);
std::string fs_target(const ClientSession& session, std::string_view rest);

struct RemoteFile {
  Bytes path;                  // "a/b", of a directory "a/b/", "/"
  boost::json::object object;  // what the server says of it

  bool is_directory() const { return path.ends_with('/'); }
  std::string type() const { return text_at(object, "type"); }
  uint64_t size() const { return number_at(object, "size").value_or(0); }
};

// The path as the server has it: "a/b", "a/b/" or "/". What is none is wrong use.
Result<Bytes> parse_remote_path(ByteView text);
// The path without a '/' at its end, and its last name.
ByteView without_slash(ByteView path);
ByteView last_name(ByteView path);
// The path of something in a directory, whether or not that has a '/' at its end.
Bytes path_below(ByteView directory, ByteView name);

// "a/b" finds a directory, too.
enum class Symlinks : uint8_t { follow, keep };
Result<std::optional<RemoteFile>> find_file(ClientSession& session, ByteView path,
                                            Symlinks symlinks = Symlinks::follow);
Error no_such_file(ByteView path);

struct ListedFiles {
  Bytes directory;  // with '/' at its end
  Bytes prefix = {};
  bool recursive = false;
};
// What is in a directory, without itself, page by page: all paths begin with it. False: there is
// no such directory.
Result<bool> list_files(ClientSession& session, const ListedFiles& what,
                        FunctionRef<Status(const RemoteFile&)> visit);

// What an argument that is a path or a glob (glob.h) names.
struct FoundFile {
  RemoteFile file;
  // Without the directories of the argument before its first glob: for "logs/**/*.txt" it is
  // "a/b.txt", for "logs/a.txt" it is "a.txt". Empty for the root.
  Bytes name;
  bool by_glob = false;
};
// Code not_found: nothing.
Status each_file(ClientSession& session, const std::string& argument,
                 FunctionRef<Status(const FoundFile&)> visit, Symlinks symlinks = Symlinks::follow);

// How many bytes there are in files, with all that is below directories, for a bar. Absent: nobody
// knows before, because there is a glob, or something that cannot be had, which is told in its
// turn.
std::optional<uint64_t> bytes_in(ClientSession& session, const std::vector<std::string>& arguments);

// Any number of paths, also such as CLI11 would take apart.
class PathArguments {
 public:
  enum class Need : uint8_t { at_least_one, optional };
  void add(CLI::App& command, const std::string& name, const std::string& help,
           Need need = Need::at_least_one);
  std::vector<std::string> get() const { return option_->results(); }

 private:
  std::vector<std::string> bound_;
  CLI::Option* option_ = nullptr;
};

}  // namespace trellis
