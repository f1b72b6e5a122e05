// `trellis fs put`: local files to the server.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <boost/json.hpp>
#include <filesystem>
#include <memory>

#include "cli/arguments.h"
#include "cli/bytes_json.h"
#include "cli/fs_command.h"
#include "cli/remote_files.h"
#include "cli/transfer.h"

namespace trellis {
namespace {

namespace local = std::filesystem;

// Up to this a file is sent as one body, which can be sent again on another connection.
constexpr size_t whole_body_bytes_max = size_t{1} << 20;

struct FsPutArguments {
  PathArguments paths;
  bool recursive = false;
  bool append = false;
  bool if_absent = false;
  std::string tag;
  std::string content_type;
};

// Of a file or folder here: the others can do without it.
Error local_error(const std::error_code& failed) { return {Code::invalid, failed.message()}; }

class Uploader {
 public:
  Uploader(ClientSession& session, const FsPutArguments& arguments, Transfer& transfer)
      : session_(session), arguments_(arguments), transfer_(transfer) {}

  Status put_stream(StandardInput& in, ByteView target) {
    ApiCall call = call_to(target);
    call.send = [&]() -> Result<std::optional<Bytes>> {
      TRY_ASSIGN(Bytes piece, in.read_some());
      if (piece.empty()) return std::optional<Bytes>();
      transfer_.add_bytes(piece.size());
      return std::optional(std::move(piece));
    };
    return send(call, target);
  }

  Status put_file(const local::path& path, ByteView target) {
    auto file = StreamFile::open_to_read(path.native());
    if (!file) return Error{Code::invalid, file.error().message};
    StandardInput in(file->descriptor(), path.native());
    const auto size = file->size();
    if (!size || *size > whole_body_bytes_max) return put_stream(in, target);
    ApiCall call = call_to(target);
    // It may grow meanwhile.
    auto body = in.read_all(2 * whole_body_bytes_max);
    if (!body) return Error{Code::invalid, body.error().message};
    call.body = *std::move(body);
    transfer_.add_bytes(call.body.size());
    return send(call, target);
  }

  // A folder with all that is in it, to a directory.
  Status put_folder(const local::path& folder, const Bytes& target) {
    std::error_code failed;
    const uint64_t made_before = made_;
    local::directory_iterator at(folder, failed);
    if (failed) return transfer_.take(folder.native(), local_error(failed));
    for (; at != local::directory_iterator(); at.increment(failed)) {
      TRY(put_entry(*at, path_below(target, at->path().filename().native())));
      if (failed) break;
    }
    if (failed) return transfer_.take(folder.native(), local_error(failed));
    if (made_ > made_before) return {};  // with what is in it
    TRY(session_.api.call(
        {.method = HttpMethod::put, .target = file_target(session_, target + "/")}));
    made_++;
    return {};
  }

 private:
  Status put_entry(const local::directory_entry& entry, const Bytes& target) {
    std::error_code failed;
    const local::path& path = entry.path();
    const local::file_status status = entry.symlink_status(failed);
    if (failed) return transfer_.take(path.native(), local_error(failed));
    switch (status.type()) {
      case local::file_type::directory: return put_folder(path, target);
      case local::file_type::regular: return transfer_.take(path.native(), put_file(path, target));
      case local::file_type::symlink: transfer_.skip(path.native(), "a symbolic link"); break;
      default: transfer_.skip(path.native(), "neither a file nor a folder"); break;
    }
    return {};
  }

  ApiCall call_to(ByteView target) const {
    ApiCall call{.method = HttpMethod::put,
                 .target = file_target(session_, target),
                 .content_type = arguments_.content_type};
    if (arguments_.append) call.target += "?append=true";
    if (arguments_.if_absent) call.headers.push_back({"If-None-Match", "*"});
    if (!arguments_.tag.empty()) call.headers.push_back({"If-Match", quoted_tag(arguments_.tag)});
    return call;
  }

  Status send(const ApiCall& call, ByteView target) {
    TRY_ASSIGN(ApiAnswer answer, session_.api.ask(call));
    made_++;
    if (!session_.json) return {};
    add_bytes(answer.object, "path", target);
    return print_json(session_, answer.object);
  }

  ClientSession& session_;
  const FsPutArguments& arguments_;
  Transfer& transfer_;
  uint64_t made_ = 0;  // files, and directories that have none
};

// How much there is to be sent, as far as it can be known.
uint64_t size_of(const local::path& path) {
  std::error_code failed;
  if (!local::is_directory(path, failed)) {
    const uint64_t size = local::file_size(path, failed);
    return failed ? 0 : size;
  }
  uint64_t sum = 0;
  auto at = local::recursive_directory_iterator(
      path, local::directory_options::skip_permission_denied, failed);
  for (; !failed && at != local::recursive_directory_iterator(); at.increment(failed)) {
    std::error_code unknown;
    if (at->symlink_status(unknown).type() != local::file_type::regular) continue;
    const uint64_t size = at->file_size(unknown);
    if (!unknown) sum += size;
  }
  return sum;
}

// The name that something gets in a directory; "": what is in it goes there, as with "." and "/".
Bytes name_of_source(ByteView source) {
  while (source.ends_with('/')) source.remove_suffix(1);
  const ByteView name = source.substr(source.rfind('/') + 1);
  return name == "." || name == ".." ? Bytes() : Bytes(name);
}

Status put_source(ClientSession& session, Uploader& uploader, const FsPutArguments& arguments,
                  const std::string& source, const RemoteTarget& target, Transfer& transfer) {
  if (source == "-") {
    if (target.is_directory)
      return wrong_use("standard input has no name: say to which file it goes");
    if (session.in.is_terminal())
      fmt::print(session.err, "The content comes from here; Ctrl-D ends it.\n");
    return transfer.take("-", uploader.put_stream(session.in, target.path));
  }
  std::error_code failed;
  const local::file_status status = local::status(source, failed);
  if (!local::exists(status))
    return transfer.take(
        source, failed ? local_error(failed) : Error{Code::not_found, "No such file or directory"});
  const Bytes name = name_of_source(source);
  Bytes path = target.path;
  if (target.is_directory && !name.empty()) path = path_below(path, name);
  if (!local::is_directory(status)) return transfer.take(source, uploader.put_file(source, path));
  if (!arguments.recursive) return wrong_use(fmt::format("{} is a folder: give -r", source));
  return uploader.put_folder(source, Bytes(without_slash(path)));
}

Status put_files(ClientSession& session, const FsPutArguments& arguments) {
  std::vector<std::string> sources = arguments.paths.get();
  if (sources.size() < 2) return wrong_use("it needs a SOURCE and a TARGET");
  const std::string target_text = sources.back();
  sources.pop_back();
  TRY_ASSIGN(const RemoteTarget target, find_target(session, target_text, sources.size() > 1));
  Transfer transfer(session, "put", sources.size() > 1 || arguments.recursive);
  if (session.err_is_terminal && std::ranges::find(sources, "-") == sources.end())
    for (const std::string& source : sources) transfer.expect(size_of(source));
  Uploader uploader(session, arguments, transfer);
  for (const std::string& source : sources)
    TRY(put_source(session, uploader, arguments, source, target, transfer));
  return transfer.finish();
}

}  // namespace

void add_fs_put_command(CLI::App& fs, ClientCommands& commands) {
  auto arguments = std::make_shared<FsPutArguments>();
  CLI::App* put = commands.add_raw(
      fs, "put", "Store local files; each appears when it is complete",
      [arguments](ClientSession& session) { return put_files(session, *arguments); });
  arguments->paths.add(*put, "SOURCE... TARGET",
                       "Local files, or - for standard input; and where they go: into TARGET if "
                       "that is a directory or ends with /");
  put->add_flag("-r,--recursive", arguments->recursive, "Folders with all that is in them");
  CLI::Option* append =
      put->add_flag("--append", arguments->append, "Behind what is in the file already");
  CLI::Option* absent = put->add_flag("--if-absent", arguments->if_absent,
                                      "Only if there is no such file; else exit code 1")
                            ->excludes(append);
  add_text(*put, "--if-tag", arguments->tag, "TAG",
           "Only if the file still has that tag, which `fs stat` prints as etag")
      ->check(check_tag)
      ->excludes(absent);
  add_text(*put, "--content-type", arguments->content_type, "TYPE",
           "What HTTP clients are told that it is, such as text/plain")
      ->check(check_tag);
  put->footer(
      "Symbolic links below a folder, and what is neither a file nor a folder, are skipped, and "
      "told of. A file that is replaced goes for good, not to the trash.\n"
      "Examples:\n"
      "  trellis fs put report.pdf reports/2026.pdf\n"
      "  trellis fs put -r photos music backup/\n"
      "  pg_dump shop | trellis fs put - dumps/shop.sql");
}

}  // namespace trellis
