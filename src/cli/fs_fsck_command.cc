// `trellis fs fsck`: checks the files of a keyspace, and repairs them.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/bytes_json.h"
#include "cli/fs_command.h"
#include "cli/human.h"
#include "cli/remote_files.h"
#include "cli/table.h"
#include "server/offline_fsck.h"

namespace trellis {
namespace {

namespace json = boost::json;

// A server that never ends a line must not fill the memory.
constexpr size_t fsck_line_bytes_max = size_t{16} << 20;

struct FsckArguments {
  bool repair = false;
  bool quick = false;
  std::string data;  // of a store that no server has open
};

bool flag_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

// The lines that the server writes while it checks: progress, findings, and at the end what they
// come to.
class FsckLines {
 public:
  explicit FsckLines(ClientSession& session)
      : session_(session),
        line_(session.err, session.err_is_terminal && !session.json, session.clock),
        table_({{"FINDING"}, {"INODE", Align::right}, {"REPAIRED"}, {"WHAT"}}) {}

  Status feed(ByteView piece) {
    rest_ += piece;
    size_t begin = 0;
    for (size_t end = 0; (end = rest_.find('\n', begin)) != Bytes::npos; begin = end + 1)
      TRY(take(ByteView(rest_).substr(begin, end - begin)));
    rest_.erase(0, begin);
    if (rest_.size() > fsck_line_bytes_max)
      return Error{Code::too_large, "the server sent a line that is too long"};
    return {};
  }

  Status finish() {
    line_.clear();
    if (!end_) return Error{Code::unavailable, "the answer broke off: the check is not complete"};
    if (const std::string error = text_at(*end_, "error"); !error.empty())
      return Error{Code::unavailable, error};
    if (!session_.json)
      TRY(print_line(
          session_,
          fmt::format("{} inodes, {} directories, {} names and {} blocks are checked: "
                      "{}",
                      count("inodes"), count("directories"), count("entries"), count("blocks"),
                      found_ == 0
                          ? "all is well"
                          : fmt::format("{} findings, {} of them repaired", found_, repaired_))));
    if (found_ > repaired_)
      return Error{Code::corrupt, fmt::format("{} findings are not repaired: --repair does what "
                                              "can be done",
                                              found_ - repaired_)};
    return {};
  }

 private:
  uint64_t count(std::string_view name) const { return number_at(*end_, name).value_or(0); }

  Status take(ByteView text) {
    boost::system::error_code failed;
    const json::value value = json::parse(text, failed);
    if (failed || !value.is_object())
      return Error{Code::invalid, "the server sent a line that is no JSON object"};
    const json::object& object = value.get_object();
    const bool is_end = object.contains("done") || object.contains("error");
    const bool is_finding = object.contains("kind");
    if (session_.json && (is_end || is_finding)) TRY(print_line(session_, text));
    if (is_end) end_ = object;
    if (is_finding) return take_finding(object);
    if (!is_end && line_.is_due()) show_progress(object);
    return {};
  }

  Status take_finding(const json::object& object) {
    const bool is_repaired = flag_at(object, "repaired");
    found_++;
    if (is_repaired) repaired_++;
    if (session_.json) return {};
    std::string what = terminal_line(text_at(object, "what"));
    if (const auto name = bytes_of(object, "name"))
      what = fmt::format("{}: {}", terminal_text(*name), what);
    const uint64_t inode = number_at(object, "inode").value_or(0);
    table_.add({terminal_text(text_at(object, "kind")), inode == 0 ? "" : std::to_string(inode),
                is_repaired ? "yes" : "no", std::move(what)});
    line_.clear();
    TRY(session_.out.write(table_.take()));
    return session_.out.flush();
  }

  void show_progress(const json::object& progress) {
    const uint64_t done = number_at(progress, "bytes_done").value_or(0);
    const uint64_t total = number_at(progress, "bytes_total").value_or(0);
    std::string text = fmt::format("checking {}", terminal_line(text_at(progress, "phase")));
    text += total > 0 ? fmt::format(" {}", progress_bar(done, total))
                      : fmt::format(", {}", human_bytes(done));
    line_.show(text);
  }

  ClientSession& session_;
  ProgressLine line_;
  Table table_;
  Bytes rest_;  // of a line that has not ended
  std::optional<json::object> end_;
  uint64_t found_ = 0;
  uint64_t repaired_ = 0;
};

Status check_file_system(ClientSession& session, const FsckArguments& arguments) {
  FsckLines lines(session);
  if (!arguments.data.empty()) {
    TRY(fsck_offline({.data = arguments.data,
                      .keyspace = session.keyspace,
                      .repair = arguments.repair,
                      .quick = arguments.quick,
                      .say = [&](ByteView piece) { return lines.feed(piece); }}));
    return lines.finish();
  }
  ApiCall call = json_call(HttpMethod::post, fs_target(session, "/fsck"),
                           {{"repair", arguments.repair}, {"quick", arguments.quick}});
  call.receive = [&](const HttpAnswer&, ByteView piece) { return lines.feed(piece); };
  TRY(session.api.call(call));
  return lines.finish();
}

}  // namespace

void add_fs_fsck_command(CLI::App& fs, ClientCommands& commands) {
  auto arguments = std::make_shared<FsckArguments>();
  CLI::App* fsck = commands.add_raw(
      fs, "fsck", "Check all files and directories, while they are used or not",
      [arguments](ClientSession& session) { return check_file_system(session, *arguments); });
  fsck->add_flag("--repair", arguments->repair, "Repair what can be repaired");
  fsck->add_flag("--quick", arguments->quick, "Without reading all content");
  add_text(*fsck, "--data", arguments->data, "DIR",
           "The data folder of a server that is stopped: without it, and what crashes left of "
           "unfinished writes is found, too")
      ->check(check_not_empty);
  fsck->footer(
      "What has lost its name is put into lost+found/, and what is lost of a file is told. Exit "
      "code 1 if something was found that is not repaired.\n"
      "Examples:\n"
      "  trellis fs fsck\n"
      "  trellis fs fsck --repair --keyspace home\n"
      "  trellis fs fsck --data /var/lib/trellis");
}

}  // namespace trellis
