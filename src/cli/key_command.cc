#include "cli/key_command.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <boost/json.hpp>
#include <string_view>

#include "base/bytes.h"
#include "codec/key_kinds.h"

namespace trellis {
namespace {

namespace json = boost::json;

// Hex as people paste it: 0x in front, blanks between bytes.
Result<Bytes> parse_hex_key(std::string_view text) {
  std::string digits;
  for (char c : text)
    if (c != ' ' && c != '\t' && c != '\r') digits.push_back(c);
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.erase(0, 2);
  if (digits.empty()) return Error{Code::invalid, "no key given: a key has at least one byte"};
  return from_hex(digits);
}

json::value json_value(const ExplainedField& field) {
  if (field.number && field.value.starts_with('-')) return std::stoll(field.value);
  if (field.number) return std::stoull(field.value);
  std::string_view text = field.value;
  // Bytes are quoted for people; in JSON the quotes are JSON's own.
  if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
  return json::value(json::string(text));
}

json::object to_json(const ExplainedKey& explained, ByteView key) {
  json::array fields;
  for (const ExplainedField& field : explained.explanation.fields)
    fields.push_back(json::object{{"name", field.name},
                                  {"offset", field.offset},
                                  {"length", field.length},
                                  {"hex", to_hex(key.substr(field.offset, field.length))},
                                  {"value", json_value(field)}});
  json::object object{{"area", explained.area},
                      {"kind", explained.explanation.kind},
                      {"pretty", explained.explanation.pretty},
                      {"fields", std::move(fields)}};
  if (!explained.also.empty()) {
    json::array also;
    for (const std::string_view kind : explained.also) also.emplace_back(kind);
    object["also"] = std::move(also);
  }
  return object;
}

// What was given may be any bytes; terminals and JSON take text only.
std::string printable(std::string_view text) {
  const std::string quoted = quote(text);
  return quoted.substr(1, quoted.size() - 2);
}

// Long fields are cut in the table only; the pretty form and JSON have all of it.
std::string shortened(std::string text, size_t width) {
  if (text.size() <= width) return text;
  return text.substr(0, width - 3) + "...";
}

void print_text(const ExplainedKey& explained, ByteView key, std::ostream& out) {
  constexpr size_t hex_width = 34;
  constexpr size_t value_width = 40;
  const Explanation& explanation = explained.explanation;
  fmt::print(out, "{}\n{}  ({})\n", to_hex(key), explanation.pretty, explanation.kind);
  size_t name_columns = 5;
  size_t hex_columns = 3;
  size_t value_columns = 5;
  for (const ExplainedField& field : explanation.fields) {
    name_columns = std::max(name_columns, field.name.size());
    hex_columns = std::max(hex_columns, std::min(field.length * 2, hex_width));
    value_columns = std::max(value_columns, std::min(field.value.size(), value_width));
  }
  fmt::print(out, "offset  length  {:<{}}  {:<{}}  {:<{}}  meaning\n", "field", name_columns, "hex",
             hex_columns, "value", value_columns);
  for (const ExplainedField& field : explanation.fields)
    fmt::print(out, "{:>6}  {:>6}  {:<{}}  {:<{}}  {:<{}}  {}\n", field.offset, field.length,
               field.name, name_columns,
               shortened(to_hex(key.substr(field.offset, field.length)), hex_width), hex_columns,
               shortened(field.value, value_width), value_columns, field.meaning);
  for (const std::string_view kind : explained.also)
    fmt::print(out, "could also be {0}: see `trellis key decode --as {0} {1}`\n", kind,
               to_hex(key));
}

class Decoder {
 public:
  Decoder(const KeyKind* as_kind, const KeyOutput& output) : as_kind_(as_kind), output_(output) {}

  // `where` is "" or "line 3: ".
  void decode(std::string_view text, std::string_view where) {
    const auto key = parse_hex_key(text);
    if (!key) return fail(text, where, std::nullopt, key.error().message);
    const auto explained =
        as_kind_ != nullptr ? explain_key_as(*as_kind_, *key) : explain_key(*key);
    if (!explained) return fail(text, where, explained.error().offset, explained.error().why);
    if (output_.json) {
      fmt::print(output_.out, "{}\n", json::serialize(to_json(*explained, *key)));
      return;
    }
    if (printed_) fmt::print(output_.out, "\n");
    printed_ = true;
    print_text(*explained, *key, output_.out);
  }

  bool all_decoded() const { return all_decoded_; }

 private:
  void fail(std::string_view text, std::string_view where, std::optional<size_t> offset,
            std::string_view why) {
    all_decoded_ = false;
    if (output_.json) {
      json::object object{{"key", printable(text)}, {"error", why}};
      if (offset) object["offset"] = *offset;
      fmt::print(output_.out, "{}\n", json::serialize(object));
      return;
    }
    fmt::print(output_.err, "trellis: {}{}: {}{}\n", where, shortened(printable(text), 80),
               offset ? fmt::format("offset {}: ", *offset) : "", why);
  }

  const KeyKind* as_kind_;
  const KeyOutput& output_;
  bool all_decoded_ = true;
  bool printed_ = false;
};

}  // namespace

bool decode_keys(const std::vector<std::string>& keys, const KeyKind* as_kind, std::istream& in,
                 const KeyOutput& output) {
  Decoder decoder(as_kind, output);
  for (const std::string& key : keys) {
    if (key != "-") {
      decoder.decode(key, "");
      continue;
    }
    std::string line;
    size_t number = 0;
    size_t keys_read = 0;
    while (std::getline(in, line)) {
      number++;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      keys_read++;
      decoder.decode(line, fmt::format("line {}: ", number));
    }
    if (keys_read == 0) {
      fmt::print(output.err,
                 "trellis: standard input has no keys: give them in hex, one per line\n");
      return false;
    }
  }
  return decoder.all_decoded();
}

bool encode_key_command(const std::string& kind_name, const std::vector<std::string>& words,
                        const KeyOutput& output) {
  const auto encode = [&]() -> Result<Bytes> {
    TRY_ASSIGN(const KeyKind* kind, find_key_kind(kind_name));
    TextFields fields;
    for (const std::string& word : words) {
      const size_t equals = word.find('=');
      if (equals == std::string::npos)
        return Error{Code::invalid, fmt::format("{} is not field=value", quote(word))};
      fields.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
    return encode_key(*kind, fields);
  };
  const auto key = encode();
  if (!key) {
    fmt::print(output.err, "trellis: {}\n", key.error().message);
    return false;
  }
  if (!output.json) {
    fmt::print(output.out, "{}\n", to_hex(*key));
    return true;
  }
  json::object object{{"hex", to_hex(*key)}, {"kind", kind_name}};
  fmt::print(output.out, "{}\n", json::serialize(object));
  return true;
}

namespace {

void print_map_json(std::ostream& out) {
  json::array kinds;
  for (const KeyKind& kind : key_kinds()) {
    json::array fields;
    for (const std::string_view name : kind.description.fields) fields.emplace_back(name);
    kinds.push_back(json::object{{"area", kind.area},
                                 {"kind", kind.kind},
                                 {"summary", kind.summary},
                                 {"in_map", kind.place == Place::in_map},
                                 {"bytes", kind.description.bytes},
                                 {"fields", std::move(fields)}});
  }
  fmt::print(out, "{}\n", json::serialize(kinds));
}

}  // namespace

void print_map(MapFormat format, std::ostream& out) {
  if (format == MapFormat::json) return print_map_json(out);
  const bool markdown = format == MapFormat::markdown;
  size_t kind_columns = 0;
  for (const KeyKind& kind : key_kinds()) kind_columns = std::max(kind_columns, kind.kind.size());
  std::string_view area;
  for (const KeyKind& kind : key_kinds()) {
    if (kind.area != area) {
      area = kind.area;
      const std::string_view note =
          kind.place == Place::in_map ? "" : " (not stored here, explained only)";
      if (markdown)
        fmt::print(out, "\n### {}{}\n\n| kind | bytes | what |\n|---|---|---|\n", area, note);
      else
        fmt::print(out, "{}{}\n", area, note);
    }
    const std::string& bytes = kind.description.bytes;
    if (markdown) {
      std::string escaped;
      for (char c : bytes) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
      fmt::print(out, "| `{}` | `{}` | {} |\n", kind.kind, escaped, kind.summary);
    } else {
      fmt::print(out, "  {:<{}}  | {} |  {}\n", kind.kind, kind_columns, bytes, kind.summary);
    }
  }
}

}  // namespace trellis
