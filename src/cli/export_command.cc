// `trellis raw export`: all entries of a keyspace as JSON lines, in order, fetched in parts.
//
//   borders of the ranges ─► parts ─► several requests at a time ─► a spool each ─► in order, out
//
// What was fetched is whole lines, and the last one's key says where to go on: after a connection
// that broke off (the server was restarted, or this process stopped for longer than the server
// waits), and in a later run, for which the partial file is all that must be kept.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

#include "cli/arguments.h"
#include "cli/bytes_json.h"
#include "cli/human.h"
#include "cli/raw_command.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t spool_bytes_max = 64 << 20;
constexpr size_t spool_piece_bytes = 256 << 10;
constexpr unsigned tries_max = 5;  // without a line in between
constexpr uint64_t retry_us = 500'000;
constexpr uint64_t refused_wait_ms_max = 60'000;
constexpr unsigned status_refused = 429;

struct ExportArguments {
  std::string prefix;
  std::string file;
  std::string speed;
  unsigned threads = 4;
  bool escaped = false;
  bool resumes = false;
};

// Bytes that wait for their turn, on the disk: a ring in a file that has no name.
class Spool {
 public:
  explicit Spool(StreamFile file) : file_(std::move(file)) {}
  uint64_t room() const { return spool_bytes_max - (written_ - read_); }
  bool empty() const { return written_ == read_; }

  // REQUIRES: no more than there is room for.
  Status write(ByteView bytes) {
    while (!bytes.empty()) {
      const uint64_t at = written_ % spool_bytes_max;
      const size_t count = std::min<uint64_t>(bytes.size(), spool_bytes_max - at);
      const ssize_t done =
          ::pwrite(file_.descriptor(), bytes.data(), count, static_cast<off_t>(at));
      if (done <= 0)
        return Error{Code::no_space, "a temporary file cannot be written: is the disk full?"};
      written_ += static_cast<uint64_t>(done);
      bytes.remove_prefix(static_cast<size_t>(done));
    }
    return {};
  }
  Result<Bytes> read() {
    const uint64_t at = read_ % spool_bytes_max;
    Bytes bytes(std::min({written_ - read_, spool_bytes_max - at, uint64_t{spool_piece_bytes}}),
                '\0');
    const ssize_t done =
        ::pread(file_.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (done <= 0) return Error{Code::unavailable, "a temporary file cannot be read"};
    bytes.resize(static_cast<size_t>(done));
    read_ += static_cast<uint64_t>(done);
    return bytes;
  }

 private:
  StreamFile file_;
  uint64_t written_ = 0;
  uint64_t read_ = 0;
};

// What one request is for. Bounds are keys; an empty end is none.
struct ExportPart {
  Bytes begin;
  Bytes end;
  std::optional<Spool> spool = {};  // while it is under way
  bool is_fetched = false;
  Status fetched = {};
};

// The first key behind that of a line's entry.
Result<Bytes> key_behind(ByteView line) {
  boost::system::error_code failed;
  const boost::json::value value = boost::json::parse(line, failed);
  if (failed || !value.is_object()) return Error{Code::corrupt, "a line is no entry"};
  TRY_ASSIGN(Bytes key, bytes_of(value.get_object(), "key"));
  return std::move(key) + '\0';
}

// Fetches parts, several at a time, and gives their lines in order.
class ParallelExport {
 public:
  // What waits for its turn is in files of `folder`.
  ParallelExport(ClientSession& session, Bytes prefix, std::vector<ExportPart> parts,
                 uint64_t bytes_per_s, std::string folder)
      : session_(session),
        prefix_(std::move(prefix)),
        bytes_per_s_(bytes_per_s),
        folder_(std::move(folder)),
        parts_(std::move(parts)) {}
  ~ParallelExport() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
  }

  void start(unsigned threads) {
    window_ = 2 * size_t{threads};
    for (size_t i = 0; i < std::min<size_t>(threads, parts_.size()); i++)
      threads_.emplace_back([this] { fetch_parts(); });
  }

  // The next bytes; empty at the end. What was given before an error is whole lines.
  Result<Bytes> next() {
    std::unique_lock lock(mutex_);
    while (head_ < parts_.size()) {
      ExportPart& part = parts_[head_];
      changed_.wait(lock, [&] { return part.is_fetched || (part.spool && !part.spool->empty()); });
      if (part.spool && !part.spool->empty()) {
        TRY_ASSIGN(Bytes bytes, part.spool->read());
        changed_.notify_all();
        return bytes;
      }
      TRY(part.fetched);
      part.spool.reset();
      head_++;
      changed_.notify_all();
    }
    return Bytes();
  }
  size_t parts() const { return parts_.size(); }
  size_t parts_done() const { return head_; }  // of the thread that calls next

 private:
  void fetch_parts() {
    ApiClient api = session_.api.another();
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock,
                    [&] { return stopped_ || next_ == parts_.size() || next_ < head_ + window_; });
      if (stopped_ || next_ == parts_.size()) return;
      ExportPart& part = parts_[next_++];
      auto file = StreamFile::open_unnamed(folder_);
      Status fetched;
      if (file) {
        part.spool.emplace(*std::move(file));
        lock.unlock();
        fetched = fetch(api, part);
        lock.lock();
      } else {
        fetched = std::move(file).error();
      }
      part.fetched = std::move(fetched);
      part.is_fetched = true;
      changed_.notify_all();
    }
  }

  // One part, in as many requests as it takes.
  Status fetch(ApiClient& api, ExportPart& part) {
    Bytes begin = part.begin;
    for (unsigned tries = 0;;) {
      Bytes last_line;
      Bytes rest;  // of a line that has not ended
      const auto receive = [&](const HttpAnswer&, ByteView piece) -> Status {
        TRY(keep_pace(piece.size()));
        const size_t end = piece.rfind('\n');
        if (end == ByteView::npos) {
          rest += piece;
          return {};
        }
        rest += piece.substr(0, end + 1);
        const size_t line = rest.size() < 2 ? Bytes::npos : rest.rfind('\n', rest.size() - 2);
        last_line = rest.substr(line == Bytes::npos ? 0 : line + 1);
        TRY(put(part, rest));
        rest = piece.substr(end + 1);
        return {};
      };
      auto answer = api.call(request(begin, part.end, receive));
      if (answer && answer->status == status_refused) {
        TRY(wait_as_told(*answer));
        continue;
      }
      if (answer && rest.empty()) return {};
      const Error error =
          answer ? Error{Code::unavailable, "the answer broke off"} : std::move(answer).error();
      const bool may_help = error.code == Code::unavailable || error.code == Code::maybe;
      tries = last_line.empty() ? tries + 1 : 0;
      if (!may_help || tries == tries_max || is_stopped()) return error;
      if (!last_line.empty()) {
        TRY_ASSIGN(begin, key_behind(last_line));
      }
      session_.clock.pause_us(retry_us);
    }
  }

  ApiCall request(const Bytes& begin, const Bytes& end,
                  std::function<Status(const HttpAnswer&, ByteView)> receive) const {
    boost::json::object body;
    add_bytes(body, "prefix", prefix_);
    add_bytes(body, "begin", begin);
    add_bytes(body, "end", end);
    ApiCall call = json_call(HttpMethod::post, raw_path(session_, "/export"), body);
    call.expected_status = status_refused;
    call.receive = std::move(receive);
    return call;
  }

  // Over the rate of the keyspace.
  Status wait_as_told(const HttpAnswer& answer) {
    const Error refusal = answer_error(answer, session_.api.server());
    boost::system::error_code failed;
    const boost::json::value body = boost::json::parse(answer.body, failed);
    if (failed || !body.is_object() || text_at(body.get_object(), "code") != "rate_exceeded")
      return refusal;
    const auto& details = object_at(body.get_object(), "details");
    const uint64_t wait_ms = number_at(details, "retry_after_ms").value_or(1'000);
    session_.clock.pause_us(std::min(wait_ms, refused_wait_ms_max) * 1'000);
    return is_stopped() ? refusal : Status();
  }

  // Waits for room.
  Status put(ExportPart& part, ByteView bytes) {
    std::unique_lock lock(mutex_);
    while (!bytes.empty()) {
      changed_.wait(lock, [&] { return stopped_ || part.spool->room() > 0; });
      if (stopped_) return stopped();
      const ByteView now = bytes.substr(0, part.spool->room());
      TRY(part.spool->write(now));
      bytes.remove_prefix(now.size());
      changed_.notify_all();
    }
    return {};
  }

  // All threads together are no faster than the limit.
  Status keep_pace(uint64_t bytes) {
    uint64_t due_us = 0;
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return stopped();
      if (bytes_per_s_ == 0) return {};
      const auto cost_us = static_cast<uint64_t>(static_cast<double>(bytes) * 1e6 /
                                                 static_cast<double>(bytes_per_s_));
      due_us = std::max(free_us_, session_.clock.monotonic_us()) + cost_us;
      free_us_ = due_us;
    }
    constexpr uint64_t slice_us = 50'000;
    for (;;) {
      const uint64_t now_us = session_.clock.monotonic_us();
      if (now_us >= due_us) return {};
      if (is_stopped()) return stopped();
      session_.clock.pause_us(std::min(slice_us, due_us - now_us));
    }
  }

  static Error stopped() { return {Code::refused, "the export ends"}; }
  bool is_stopped() const {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }

  ClientSession& session_;
  const Bytes prefix_;
  const uint64_t bytes_per_s_;
  const std::string folder_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ExportPart> parts_;
  size_t window_ = 0;
  size_t next_ = 0;  // to be fetched
  size_t head_ = 0;  // to be given
  uint64_t free_us_ = 0;
  bool stopped_ = false;
  std::vector<std::jthread> threads_;  // last: they end before the rest goes
};

// How far it is, for whoever sits at the terminal.
class ExportProgress {
 public:
  ExportProgress(ClientSession& session, std::optional<uint64_t> total)
      : clock_(session.clock),
        line_(session.err, session.err_is_terminal, session.clock),
        total_(total),
        begin_us_(session.clock.monotonic_us()) {}

  // What is there already.
  void go_on_with(uint64_t entries, uint64_t bytes) {
    entries_ = entries;
    bytes_ = bytes_before_ = bytes;
  }
  void add(ByteView piece, const ParallelExport& from) {
    bytes_ += piece.size();
    entries_ += static_cast<uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
    if (!line_.is_due()) return;
    const uint64_t us = std::max<uint64_t>(1, clock_.monotonic_us() - begin_us_);
    // Entries that have expired are counted, and not exported: the end may come before 100%.
    const std::string bar =
        total_ ? progress_bar(entries_, *total_) : progress_bar(from.parts_done(), from.parts());
    line_.show(
        fmt::format("exporting: {} entries {}, {}, {}/s", entries_, bar, human_bytes(bytes_),
                    human_bytes(static_cast<uint64_t>(static_cast<double>(bytes_ - bytes_before_) *
                                                      1e6 / static_cast<double>(us)))));
  }
  void clear() { line_.clear(); }
  uint64_t entries() const { return entries_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Clock& clock_;
  ProgressLine line_;
  std::optional<uint64_t> total_;
  uint64_t begin_us_;
  uint64_t bytes_ = 0;
  uint64_t bytes_before_ = 0;
  uint64_t entries_ = 0;
};

struct ExportPlan {
  Bytes prefix;
  std::vector<Bytes> borders;
  std::optional<uint64_t> keys;
};

Result<ExportPlan> make_plan(ClientSession& session, const ExportArguments& arguments) {
  ExportPlan plan;
  std::string target = raw_path(session, "/parts");
  if (!arguments.prefix.empty()) {
    TRY_ASSIGN(plan.prefix, parse_bytes(arguments.prefix, arguments.escaped));
    target += "?prefix=" + percent_encode(plan.prefix);
  }
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = target}));
  for (const boost::json::value& border : array_at(answer.object, "borders")) {
    if (!border.is_object()) continue;
    TRY_ASSIGN(Bytes key, bytes_of(border.get_object(), "key"));
    plan.borders.push_back(std::move(key));
  }
  plan.keys = number_at(answer.object, "keys");
  return plan;
}

std::vector<ExportPart> parts_of(const ExportPlan& plan, Bytes begin) {
  std::vector<ExportPart> parts;
  for (const Bytes& border : plan.borders) {
    if (border <= begin) continue;
    parts.push_back({.begin = std::move(begin), .end = border});
    begin = border;
  }
  parts.push_back({.begin = std::move(begin), .end = {}});
  return parts;
}

Status export_to(ClientSession& session, const ExportArguments& arguments, const ExportPlan& plan,
                 Bytes begin, StandardOutput& out, ExportProgress& progress) {
  TRY_ASSIGN(const uint64_t bytes_per_s,
             arguments.speed.empty() ? Result<uint64_t>(0) : parse_size_bytes(arguments.speed));
  std::error_code failed;
  const fs::path folder = arguments.file.empty() ? fs::temp_directory_path(failed)
                                                 : fs::path(arguments.file).parent_path();
  ParallelExport source(session, plan.prefix, parts_of(plan, std::move(begin)), bytes_per_s,
                        folder.empty() ? "." : folder.string());
  source.start(arguments.threads);
  for (;;) {
    auto bytes = source.next();
    if (!bytes) {
      discard(out.flush());  // what came before is good
      return std::move(bytes).error();
    }
    if (bytes->empty()) return out.flush();
    progress.add(*bytes, source);
    TRY(out.write(*bytes));
  }
}

// What an export that was interrupted left.
struct PartialExport {
  uint64_t bytes = 0;  // up to the end of its last whole line
  uint64_t entries = 0;
  Bytes behind;  // the key to go on with
};

Result<PartialExport> read_partial(const std::string& path, ByteView prefix) {
  PartialExport partial;
  TRY_ASSIGN(const StreamFile file, StreamFile::open_to_read(path));
  StandardInput in(file.descriptor(), path);
  Bytes rest;
  Bytes last_line;
  for (;;) {
    TRY_ASSIGN(const Bytes piece, in.read_some());
    if (piece.empty()) break;
    rest += piece;
    const size_t end = rest.rfind('\n');
    if (end == Bytes::npos) continue;
    partial.entries += static_cast<uint64_t>(std::count(rest.begin(), rest.end(), '\n'));
    partial.bytes += end + 1;
    const size_t line = end == 0 ? Bytes::npos : rest.rfind('\n', end - 1);
    const size_t line_begin = line == Bytes::npos ? 0 : line + 1;
    last_line = rest.substr(line_begin, end - line_begin);
    rest.erase(0, end + 1);
  }
  if (partial.entries == 0) return partial;
  auto behind = key_behind(last_line);
  if (!behind || !behind->starts_with(prefix))
    return Error{Code::corrupt,
                 fmt::format("{} is not what an export of this prefix left: remove it, or export "
                             "without --resume",
                             path)};
  partial.behind = *std::move(behind);
  return partial;
}

Error half_done(Error error, const std::string& path) {
  error.message += fmt::format("; {} has what came before: go on with --resume", path);
  return error;
}

// Under another name until it is whole, so that half an export is never taken for one. What is no
// regular file (a pipe, a device) is written as it is.
Status export_to_file(ClientSession& session, const ExportArguments& arguments) {
  std::error_code failed;
  const fs::file_status there = fs::status(arguments.file, failed);
  const bool is_replaced = !fs::exists(there) || fs::is_regular_file(there);
  const std::string path = is_replaced ? arguments.file + ".partial" : arguments.file;
  if (arguments.resumes && !is_replaced)
    return wrong_use(fmt::format("{} is no regular file: --resume needs one", arguments.file));
  TRY_ASSIGN(const ExportPlan plan, make_plan(session, arguments));
  ExportProgress progress(session, plan.keys);
  PartialExport partial;
  if (arguments.resumes && fs::exists(path, failed)) {
    TRY_ASSIGN(partial, read_partial(path, plan.prefix));
  }
  progress.go_on_with(partial.entries, partial.bytes);
  {
    TRY_ASSIGN(const StreamFile file, StreamFile::open_to_write(path, partial.bytes));
    StandardOutput out(file.descriptor(), path);
    Status done = export_to(session, arguments, plan, partial.behind, out, progress);
    if (done && is_replaced) done = file.sync();
    if (!done && is_replaced && file.size().value_or(0) > 0)
      return half_done(std::move(done).error(), path);
    if (!done && is_replaced) fs::remove(path, failed);
    TRY(done);
  }
  if (is_replaced && std::rename(path.c_str(), arguments.file.c_str()) != 0)
    return Error{Code::unavailable, fmt::format("{} could not be renamed to {}; it has all "
                                                "entries",
                                                path, arguments.file)};
  progress.clear();
  if (session.json)
    return print_json(session, {{"exported", progress.entries()}, {"bytes", progress.bytes()}});
  return session.out.write(
      fmt::format("{} entries exported, {}\n", progress.entries(), human_bytes(progress.bytes())));
}

Status export_entries(ClientSession& session, const ExportArguments& arguments) {
  if (!arguments.file.empty()) return export_to_file(session, arguments);
  if (arguments.resumes) return wrong_use("--resume needs --file: a pipe remembers nothing");
  TRY_ASSIGN(const ExportPlan plan, make_plan(session, arguments));
  ExportProgress progress(session, plan.keys);
  return export_to(session, arguments, plan, {}, session.out, progress);
}

}  // namespace

void add_export_command(CLI::App& raw, ClientCommands& commands) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = commands.add_raw(
      raw, "export", "Write all entries as JSON lines",
      [arguments](ClientSession& session) { return export_entries(session, *arguments); });
  add_text(*command, "--prefix", arguments->prefix, "KEY", "Only keys that begin so");
  add_text(*command, "--file", arguments->file, "FILE",
           "There (default standard output); it appears when it is whole");
  command->add_flag("--resume", arguments->resumes,
                    "Go on with FILE.partial, which an export that was interrupted left");
  command->add_option("--threads", arguments->threads, "Requests at a time (default 4)")
      ->type_name("N")
      ->check(CLI::Range(1, 16));
  add_text(*command, "--speed", arguments->speed, "SIZE",
           "Bytes per second at most, such as 10MiB (default 0, no limit)")
      ->check(checked_by(parse_size_bytes));
  add_escaped(*command, arguments->escaped);
  command->footer(
      "A line for each entry: {\"key\":\"a\",\"value\":\"1\",\"expires_at_ms\":n}; bytes that are "
      "no text are in key_base64 and value_base64.\n"
      "It is not of one instant: writes that come meanwhile are in it or not; `trellis backup` "
      "is.\n"
      "Ctrl-Z pauses it for as long as you like, `fg` goes on. --resume is for the same keyspace "
      "and prefix.\n"
      "Examples:\n"
      "  trellis raw export --keyspace shop --file shop.jsonl\n"
      "  trellis raw export --prefix user/ | zstd > users.zst");
}

}  // namespace trellis
