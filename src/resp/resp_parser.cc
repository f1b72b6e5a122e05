#include "resp/resp_parser.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>

#include "redis/number_text.h"

namespace trellis {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// A byte of a word in double quotes, which may be escaped; moves `at` behind it.
char take_quoted(ByteView line, size_t& at) {
  if (line[at] != '\\' || at + 1 >= line.size()) return line[at++];
  if (line[at + 1] == 'x' && at + 3 < line.size() && hex_digit(line[at + 2]) >= 0 &&
      hex_digit(line[at + 3]) >= 0) {
    const int byte = hex_digit(line[at + 2]) * 16 + hex_digit(line[at + 3]);
    at += 4;
    return static_cast<char>(byte);
  }
  const char c = line[at + 1];
  at += 2;
  switch (c) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'b': return '\b';
    case 'a': return '\a';
    default: return c;
  }
}

// One word from `at` on. False: a quote is not closed, or something follows it at once.
bool take_word(ByteView line, size_t& at, Bytes& word) {
  while (at < line.size() && !is_blank(line[at])) {
    const char quote = line[at];
    if (quote != '"' && quote != '\'') {
      word.push_back(line[at++]);
      continue;
    }
    at++;
    for (;;) {
      if (at >= line.size()) return false;
      if (line[at] == quote) break;
      if (quote == '"') {
        word.push_back(take_quoted(line, at));
      } else if (line[at] == '\\' && at + 1 < line.size() && line[at + 1] == '\'') {
        word.push_back('\'');
        at += 2;
      } else {
        word.push_back(line[at++]);
      }
    }
    at++;
    if (at < line.size() && !is_blank(line[at])) return false;
  }
  return true;
}

std::optional<std::vector<Bytes>> split_line(ByteView line) {
  std::vector<Bytes> words;
  for (size_t at = 0;;) {
    while (at < line.size() && is_blank(line[at])) at++;
    if (at == line.size()) return words;
    if (!take_word(line, at, words.emplace_back())) return std::nullopt;
  }
}

}  // namespace

RespParser::Step RespParser::fail(std::string text) {
  error_ = "ERR Protocol error: " + std::move(text);
  return Step::error;
}

void RespParser::drop(std::string why) {
  if (is_dropping()) return;
  error_ = std::move(why);
  spans_ = {};
}

RespParser::Step RespParser::next(ByteView input, const RespLimits& limits) {
  if (is_done_) *this = {};
  is_done_ = false;
  if (is_passed_over_) at_ = 0;
  is_passed_over_ = false;
  if (input.empty()) return Step::more;
  if (!is_started_) {
    is_started_ = true;
    is_array_ = input[0] == '*';
  }
  Step step = is_array_ ? next_array(input, limits) : next_line(input);
  is_passed_over_ = step == Step::more && is_dropping() && at_ > 0;
  if (is_passed_over_) return Step::nothing;
  if (step == Step::command && is_dropping()) step = Step::too_large;
  is_done_ = step != Step::more;
  return step;
}

RespParser::Step RespParser::next_line(ByteView input) {
  const size_t end = input.find('\n');
  if (end == ByteView::npos)
    return input.size() > resp_line_bytes_max ? fail("too big inline request") : Step::more;
  at_ = end + 1;
  ByteView line = input.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  auto words = split_line(line);
  if (!words) return fail("unbalanced quotes in request");
  words_ = std::move(*words);
  return words_.empty() ? Step::nothing : Step::command;
}

namespace {

// A number of up to three digits, as almost all are, and what ends it: how many bytes it takes.
size_t take_small_number(ByteView input, int64_t& number) {
  constexpr size_t digits_max = 3;
  number = 0;
  size_t at = 0;
  for (; at < digits_max && at < input.size() && input[at] >= '0' && input[at] <= '9'; at++)
    number = number * 10 + (input[at] - '0');
  const bool is_whole = at > 0 && at + 1 < input.size() && input[at] == '\r';
  return is_whole && (at == 1 || input[0] != '0') ? at + 2 : 0;
}

}  // namespace

RespParser::Step RespParser::take_number(ByteView input, const char* too_long, const char* bad,
                                         int64_t& number) {
  if (const size_t taken = take_small_number(input.substr(at_ + 1), number); taken != 0) {
    at_ += 1 + taken;
    return Step::command;
  }
  constexpr size_t digits_max = 64 * 1024;  // as Redis: what is longer is no number
  const size_t end = input.find('\r', at_ + 1);
  if (end == ByteView::npos || end + 1 >= input.size())
    return end == ByteView::npos && input.size() - at_ > digits_max ? fail(too_long) : Step::more;
  const ByteView text = input.substr(at_ + 1, end - at_ - 1);
  const auto parsed = parse_integer(text);
  if (!parsed) return fail(bad);
  number = *parsed;
  at_ = end + 2;
  return Step::command;
}

RespParser::Step RespParser::take_count(ByteView input, const RespLimits& limits) {
  int64_t count = 0;
  const Step step =
      take_number(input, "too big mbulk count string", "invalid multibulk length", count);
  if (step != Step::command) return step;
  if (count > resp_args_max) return fail("invalid multibulk length");
  if (limits.is_stranger && count > stranger_args_max)
    return fail("unauthenticated multibulk length");
  if (count <= 0) return Step::nothing;
  args_left_ = count;
  if (static_cast<size_t>(count) > limits.args_max)
    drop(fmt::format("ERR a command has at most {} arguments: send several", limits.args_max));
  else  // whoever only says so many has not sent them
    spans_.reserve(std::min<size_t>(static_cast<size_t>(count), 1'024));
  return Step::command;
}

RespParser::Step RespParser::take_bulk_size(ByteView input, const RespLimits& limits) {
  if (at_ >= input.size()) return Step::more;
  if (input[at_] != '$') return fail(fmt::format("expected '$', got '{}'", input[at_]));
  int64_t size = 0;
  const Step step = take_number(input, "too big bulk count string", "invalid bulk length", size);
  if (step != Step::command) return step;
  if (size < 0 || size > resp_bulk_bytes_max) return fail("invalid bulk length");
  if (limits.is_stranger && size > stranger_bulk_bytes_max)
    return fail("unauthenticated bulk length");
  bulk_bytes_ = size;
  if (static_cast<size_t>(size) > limits.bulk_bytes_max)
    drop(string_too_long().message);
  else if (at_ + static_cast<size_t>(size) > limits.command_bytes_max)
    drop(fmt::format("ERR a command has at most {} bytes (client-query-buffer-limit): send several",
                     limits.command_bytes_max));
  return Step::command;
}

RespParser::Step RespParser::next_array(ByteView input, const RespLimits& limits) {
  if (args_left_ < 0) {
    const Step step = take_count(input, limits);
    if (step != Step::command) return step;
  }
  while (args_left_ > 0) {
    if (bulk_bytes_ < 0) {
      const Step step = take_bulk_size(input, limits);
      if (step != Step::command) return step;
    }
    if (is_dropping()) {
      const size_t dropped = std::min(static_cast<size_t>(bulk_bytes_), input.size() - at_);
      bulk_bytes_ -= static_cast<int64_t>(dropped);
      at_ += dropped;
    }
    const auto size = static_cast<size_t>(bulk_bytes_);
    if (input.size() < at_ + size + 2) return Step::more;
    if (!is_dropping()) spans_.push_back({at_, size});
    at_ += size + 2;
    bulk_bytes_ = -1;
    args_left_--;
  }
  return Step::command;
}

void RespParser::take_args(ByteView input, Lines& lines, std::vector<ByteView>& args) {
  if (is_array_) {
    for (const Span& span : spans_) args.push_back(input.substr(span.offset, span.size));
  } else {
    const std::vector<Bytes>& words = lines.emplace_back(std::move(words_));
    args.insert(args.end(), words.begin(), words.end());
  }
}

}  // namespace trellis
