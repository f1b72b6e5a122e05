#include "redis/reply.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/limits.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

using Digits = std::array<char, 24>;

std::string_view digits_of(int64_t number, Digits& digits) {
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return {digits.data(), static_cast<size_t>(end - digits.data())};
}

}  // namespace

void Reply::head(char kind, int64_t number) {
  Digits digits;
  out_.push_back(kind);
  out_ += digits_of(number, digits);
  out_ += "\r\n";
}

void Reply::insert_head(size_t mark, char kind, size_t items) {
  Digits digits;
  Bytes text(1, kind);
  text += digits_of(static_cast<int64_t>(items), digits);
  text += "\r\n";
  out_.insert(mark, text);
}

void Reply::simple(std::string_view text) {
  out_.push_back('+');
  out_ += text;
  out_ += "\r\n";
}

void Reply::error(std::string_view text) {
  // As Redis does: none at the ends.
  while (text.ends_with('\r') || text.ends_with('\n')) text.remove_suffix(1);
  while (text.starts_with('\r') || text.starts_with('\n')) text.remove_prefix(1);
  out_.push_back('-');
  for (const char c : text) out_.push_back(c == '\r' || c == '\n' ? ' ' : c);
  out_ += "\r\n";
}

void Reply::bulk(ByteView bytes) {
  if (out_.size() > reply_bytes_max) return;  // refused when it is complete
  head('$', static_cast<int64_t>(bytes.size()));
  out_ += bytes;
  out_ += "\r\n";
}

void Reply::bulk_integer(int64_t number) {
  Digits digits;
  bulk(digits_of(number, digits));
}

void Reply::number(double value) {
  const std::string text = double_text(value);
  if (protocol_ == 2) return bulk(text);
  out_.push_back(',');
  out_ += text;
  out_ += "\r\n";
}

void Reply::boolean(bool value) {
  if (protocol_ == 2) return integer(value ? 1 : 0);
  out_ += value ? "#t\r\n" : "#f\r\n";
}

void Reply::verbatim(std::string_view text) {
  if (protocol_ == 2) return bulk(text);
  head('=', static_cast<int64_t>(text.size() + 4));
  out_ += "txt:";
  out_ += text;
  out_ += "\r\n";
}

void Reply::null() { out_ += protocol_ == 2 ? "$-1\r\n" : "_\r\n"; }
void Reply::null_array() { out_ += protocol_ == 2 ? "*-1\r\n" : "_\r\n"; }

void Reply::map(size_t pairs) {
  if (protocol_ == 2) return array(2 * pairs);
  head('%', static_cast<int64_t>(pairs));
}

void Reply::insert_map(size_t mark, size_t pairs) {
  if (protocol_ == 2) return insert_head(mark, '*', 2 * pairs);
  insert_head(mark, '%', pairs);
}

}  // namespace trellis
