// `trellis raw import`: entries of a keyspace as JSON lines, streamed.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <memory>

#include "cli/arguments.h"
#include "cli/human.h"
#include "cli/raw_command.h"

namespace trellis {
namespace {

// How far a transfer is, for whoever sits at the terminal.
class TransferProgress {
 public:
  TransferProgress(ClientSession& session, std::string_view doing, std::optional<uint64_t> total)
      : clock_(session.clock),
        line_(session.err, session.err_is_terminal, session.clock),
        doing_(doing),
        total_(total),
        begin_us_(session.clock.monotonic_us()) {}

  void add(ByteView piece) {
    bytes_ += piece.size();
    entries_ += static_cast<uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
    if (!line_.is_due()) return;
    const uint64_t us = std::max<uint64_t>(1, clock_.monotonic_us() - begin_us_);
    std::string text =
        fmt::format("{}: {} entries, {}, {}/s", doing_, entries_, human_bytes(bytes_),
                    human_bytes(static_cast<uint64_t>(static_cast<double>(bytes_) * 1e6 /
                                                      static_cast<double>(us))));
    if (total_ && *total_ > 0)
      text += fmt::format(", {}%", std::min<uint64_t>(100, bytes_ * 100 / *total_));
    line_.show(text);
  }
  void clear() { line_.clear(); }
  uint64_t entries() const { return entries_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Clock& clock_;
  ProgressLine line_;
  std::string doing_;
  std::optional<uint64_t> total_;
  uint64_t begin_us_;
  uint64_t bytes_ = 0;
  uint64_t entries_ = 0;
};

constexpr size_t import_portion_bytes = 1024 * 1024;
constexpr unsigned status_too_many_requests = 429;
constexpr uint64_t import_wait_ms_max = 60'000;

void drop_lines(Bytes& text, uint64_t lines) {
  size_t end = 0;
  for (; lines > 0 && end != Bytes::npos; lines--) {
    end = text.find('\n', end);
    if (end != Bytes::npos) end++;
  }
  text.erase(0, end);
}

// Whole lines of an import. Over its quota of operations the keyspace takes only the first of them;
// the others are sent again when it takes more.
Status import_lines(ClientSession& session, Bytes lines, uint64_t& lines_before,
                    uint64_t& imported) {
  const auto count = static_cast<uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
  uint64_t done = 0;
  for (;;) {
    auto answer = session.api.ask({.method = HttpMethod::post,
                                   .target = raw_path(session, "/import"),
                                   .content_type = "application/x-ndjson",
                                   .body = lines,
                                   .expected_status = status_too_many_requests});
    if (!answer && lines_before + done == 0) return std::move(answer).error();
    if (!answer)
      return with_context(fmt::format("counted from line {}", lines_before + done + 1),
                          std::move(answer).error());
    if (answer->status != status_too_many_requests) {
      imported += number_at(answer->object, "imported").value_or(0);
      break;
    }
    const auto& details = object_at(answer->object, "details");
    const uint64_t stored = number_at(details, "resume_line").value_or(1) - 1;
    imported += number_at(details, "imported").value_or(0);
    if (text_at(answer->object, "code") != "rate_exceeded")
      return Error{Code::exhausted, fmt::format("{}; {} entries are imported and stay",
                                                text_at(answer->object, "message"), imported)};
    drop_lines(lines, stored);
    done += stored;
    const uint64_t wait_ms = number_at(details, "retry_after_ms").value_or(1'000);
    session.clock.pause_us(std::min(wait_ms, import_wait_ms_max) * 1'000);
  }
  lines_before += count;
  return {};
}

Status import_from(ClientSession& session, StandardInput& in, std::optional<uint64_t> total) {
  TransferProgress progress(session, "importing", total);
  uint64_t lines = 0;
  uint64_t imported = 0;
  Bytes rest;
  for (;;) {
    TRY_ASSIGN(const Bytes piece, in.read_some());
    progress.add(piece);
    rest += piece;
    const size_t end = rest.rfind('\n');
    if (piece.empty()) {
      // An import of nothing asks too: whether it may.
      if (!rest.empty() || lines == 0) TRY(import_lines(session, std::move(rest), lines, imported));
      break;
    }
    if (rest.size() < import_portion_bytes || end == Bytes::npos) continue;
    Bytes portion = rest.substr(0, end + 1);
    rest.erase(0, end + 1);
    TRY(import_lines(session, std::move(portion), lines, imported));
  }
  progress.clear();
  if (session.json) return print_json(session, {{"imported", imported}});
  return session.out.write(fmt::format("{} entries imported\n", imported));
}

Status import_entries(ClientSession& session, const std::string& path) {
  if (path.empty()) return import_from(session, session.in, std::nullopt);
  TRY_ASSIGN(const StreamFile file, StreamFile::open_to_read(path));
  StandardInput in(file.descriptor(), path);
  return import_from(session, in, file.size());
}

}  // namespace

void add_import_command(CLI::App& raw, ClientCommands& commands) {
  auto path = std::make_shared<std::string>();
  CLI::App* import_command =
      commands.add_raw(raw, "import", "Store entries from JSON lines, as export writes them",
                       [path](ClientSession& session) { return import_entries(session, *path); });
  add_text(*import_command, "--file", *path, "FILE", "From there (default standard input)");
  import_command->footer(
      "Keys that are there are overwritten, all others stay. It is not one step: after an error "
      "as many of the first entries are stored as it says, and importing again does no harm.\n"
      "Examples:\n"
      "  trellis raw import --keyspace shop --file shop.jsonl\n"
      "  trellis raw export --keyspace a | trellis raw import --keyspace b");
}

}  // namespace trellis
