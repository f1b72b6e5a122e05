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

bool fail_literal(Reader& reader, std::string_view name, std::string_view bytes) {
  const ByteView rest = reader.rest();
  size_t same = 0;
  while (same < rest.size() && rest[same] == bytes[same]) same++;
  reader.failure().field = name;
  reader.failure().wanted = bytes;
  return reader.fail("unknown", reader.offset() + same);
}

namespace {

void* field_at(void* record, const Item& item) { return static_cast<char*>(record) + item.offset; }

bool read_item_of(Reader& reader, void* record, const Item& item) {
  if (item.ops != nullptr) {
    if (item.ops->read(reader, field_at(record, item))) return true;
    reader.failure().field = item.name;
    return false;
  }
  if (!reader.rest().starts_with(item.literal))
    return fail_literal(reader, item.name, item.literal);
  reader.skip(item.literal.size());
  return true;
}

}  // namespace

bool explain_items(const Items& items, Reader& reader, void* record, Explanation& out) {
  for (const Item& item : items) {
    const size_t start = reader.offset();
    if (!read_item_of(reader, record, item)) return false;
    const void* value = field_at(record, item);
    out.fields.push_back(
        {.name = std::string(item.name),
         .offset = start,
         .length = reader.offset() - start,
         .value = item.ops != nullptr ? item.ops->text(value) : quote(item.literal),
         .number = item.ops != nullptr && item.ops->number,
         .meaning = std::string(item.meaning)});
    out.pretty += item.pretty;
    if (item.ops != nullptr) item.ops->append_pretty(out.pretty, value);
  }
  return read_end(reader);
}

namespace {

// Looks a field up in the text, in any order; each may be named once.
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

// A literal may be left out, or given as explain shows it.
Status check_literal(const TextFields& fields, const Item& item) {
  for (const auto& [key, value] : fields) {
    if (key != item.name) continue;
    TRY_ASSIGN(const Bytes bytes, unquote(value));
    if (bytes != item.literal)
      return Error{Code::invalid, fmt::format("{}: is always {}", item.name, quote(item.literal))};
  }
  return {};
}

Status parse_field(const TextFields& fields, TextArena& arena, void* record, const Item& item) {
  TRY_ASSIGN(const std::string_view text, find_text(fields, item.name));
  void* value = field_at(record, item);
  if (auto status = item.ops->parse(text, arena, value); !status)
    return with_context(item.name, std::move(status).error());
  if (const char* why = item.ops->invalid(value))
    return Error{Code::invalid, fmt::format("{}: {}", item.name, why)};
  return {};
}

}  // namespace

Status parse_items(const Items& items, const TextFields& fields, TextArena& arena, void* record) {
  for (const Item& item : items)
    TRY(item.ops != nullptr ? parse_field(fields, arena, record, item)
                            : check_literal(fields, item));
  return {};
}

Bytes encode_items(const Items& items, const void* record) {
  Bytes out;
  for (const Item& item : items) {
    if (item.ops != nullptr)
      item.ops->append(out, static_cast<const char*>(record) + item.offset);
    else
      out.append(item.literal);
  }
  return out;
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

Description describe_items(const Items& items) {
  Description description;
  std::string& bytes = description.bytes;
  for (const Item& item : items) {
    if (!bytes.empty()) bytes += " | ";
    (item.ops != nullptr ? description.fields : description.literals).push_back(item.name);
    if (item.ops == nullptr) {
      append_drawn(bytes, item.literal);
      continue;
    }
    bytes += item.name;
    bytes += item.ops->words.empty() ? " " : ":";
    if (item.ops->words.empty()) bytes += item.ops->form;
    for (const Word& word : item.ops->words) {
      bytes += ' ';
      append_drawn(bytes, word.bytes);
    }
  }
  return description;
}

}  // namespace layout_detail
}  // namespace trellis
