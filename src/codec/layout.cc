#include "codec/layout.h"

#include <fmt/format.h>

namespace trellis {

Error to_error(const DecodeFailure& failure) {
  std::string message = fmt::format("offset {}: {}", failure.offset, failure.field);
  message += failure.field.empty() ? "" : ": ";
  message += failure.why;
  if (!failure.wanted.empty()) message += fmt::format(", want {}", quote(failure.wanted));
  return {Code::corrupt, std::move(message)};
}

namespace layout_detail {

Result<std::string_view> find_text(const TextFields& fields, std::string_view name) {
  const std::string* found = nullptr;
  for (const auto& [key, value] : fields) {
    if (key != name) continue;
    if (found != nullptr) return Error{Code::invalid, fmt::format("{}: given twice", name)};
    found = &value;
  }
  if (found == nullptr) return Error{Code::invalid, fmt::format("{}: missing", name)};
  return std::string_view(*found);
}

Status check_literal(const TextFields& fields, const Literal& item) {
  for (const auto& [key, value] : fields) {
    if (key != item.name) continue;
    TRY_ASSIGN(const Bytes bytes, unquote(value));
    if (bytes != item.bytes)
      return Error{Code::invalid, fmt::format("{}: is always {}", item.name, quote(item.bytes))};
  }
  return {};
}

namespace {

bool is_printable(char c) { return c > 0x20 && c < 0x7f; }

// Control bytes in hex, the text around them in quotes: 00 'liveness-'
void append_drawn(std::string& out, std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    if (i > 0) out += ' ';
    const size_t start = i;
    while (i < bytes.size() && is_printable(bytes[i])) i++;
    if (i > start)
      out += fmt::format("'{}'", bytes.substr(start, i - start));
    else
      out += to_hex(bytes.substr(i++, 1));
  }
}

}  // namespace

void describe_literal(std::string& out, const Literal& item) {
  if (!out.empty()) out += " | ";
  append_drawn(out, item.bytes);
}

void describe_words(std::string& out, std::string_view name, std::span<const Word> words) {
  if (!out.empty()) out += " | ";
  out += fmt::format("{}:", name);
  for (const Word& word : words) {
    out += ' ';
    append_drawn(out, word.bytes);
  }
}

void describe_field(std::string& out, std::string_view name, std::string_view form) {
  if (!out.empty()) out += " | ";
  out += fmt::format("{} {}", name, form);
}

}  // namespace layout_detail
}  // namespace trellis
