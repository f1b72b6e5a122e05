#include "cli/transfer.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>

#include "cli/human.h"

namespace trellis {
namespace {

std::string number_of_files(uint64_t files) {
  return fmt::format("{} {}", files, files == 1 ? "file" : "files");
}

// Of this file, and not of the server or of who asks.
bool is_of_one_file(const Error& error) {
  switch (error.code) {
    case Code::not_found:
    case Code::invalid:
    case Code::refused:
    case Code::conflict:
    case Code::too_large: return error.reason != reason_wrong_use;
    default: return false;
  }
}

}  // namespace

Transfer::Transfer(ClientSession& session, std::string_view done, bool goes_on)
    : session_(session),
      line_(session.err, session.err_is_terminal && !session.json, session.clock),
      done_(done),
      goes_on_(goes_on),
      begin_us_(session.clock.monotonic_us()) {}

void Transfer::add_bytes(uint64_t bytes) {
  bytes_ += bytes;
  if (!line_.is_due()) return;
  const uint64_t us = std::max<uint64_t>(1, session_.clock.monotonic_us() - begin_us_);
  const auto bytes_per_s =
      static_cast<uint64_t>(static_cast<double>(bytes_) * 1e6 / static_cast<double>(us));
  const std::string bar =
      total_bytes_ ? fmt::format(" {}", progress_bar(bytes_, *total_bytes_)) : std::string();
  line_.show(fmt::format("{} {}{}, {}, {}/s", number_of_files(files_), done_, bar,
                         human_bytes(bytes_), human_bytes(bytes_per_s)));
}

void Transfer::tell(std::string_view path, std::string_view what) {
  line_.clear();
  fmt::print(session_.err, "trellis: {}: {}\n", terminal_text(path), terminal_line(what));
}

Status Transfer::take(std::string_view path, const Status& done) {
  if (done) {
    files_++;
    add_bytes(0);
    return {};
  }
  if (!goes_on_ || !is_of_one_file(done.error())) {
    Error error = with_context(terminal_text(path), done.error());
    if (goes_on_)
      error.message += fmt::format("; {} {} before that", number_of_files(files_), done_);
    return error;
  }
  failed_++;
  tell(path, done.error().message);
  return {};
}

void Transfer::skip(std::string_view path, std::string_view why) {
  skipped_++;
  tell(path, fmt::format("skipped, it is {}", why));
}

Status Transfer::outcome() {
  line_.clear();
  if (failed_ == 0) return {};
  return Error{Code::refused, fmt::format("{} could not be {}", number_of_files(failed_), done_)};
}

Status Transfer::finish() {
  line_.clear();
  if (!session_.json) {
    std::string text =
        fmt::format("{} {}, {}", number_of_files(files_), done_, human_bytes(bytes_));
    if (skipped_ > 0) text += fmt::format("; {} skipped", skipped_);
    TRY(print_line(session_, text));
  }
  return outcome();
}

}  // namespace trellis
