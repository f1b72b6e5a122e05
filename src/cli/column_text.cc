#include "cli/column_text.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "catalog/data_type.h"
#include "catalog/request_fields.h"
#include "net/ascii.h"

namespace trellis {
namespace {

constexpr size_t depth_max = 16;

// Where it stands outside of <> and (); npos: nowhere.
size_t find_outside(std::string_view text, char wanted) {
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == wanted && depth == 0) return i;
    if (c == '<' || c == '(') ++depth;
    if ((c == '>' || c == ')') && depth > 0) --depth;
  }
  return std::string_view::npos;
}

std::string_view without_spaces(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t comma = find_outside(text, ',');
    parts.push_back(without_spaces(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

Error no_such_type(std::string_view text) {
  return {Code::invalid,
          fmt::format("there is no type {}: there are {}, list<T>, map<K,V>, struct<NAME:T,...> "
                      "and union<T,...>",
                      quote(text), known_types())};
}

Result<json::value> parse_type(std::string_view text, size_t depth);

// "a:int,b:string"
Result<json::array> parse_fields(std::string_view text, size_t depth) {
  json::array fields;
  for (const std::string_view part : split_at_commas(text)) {
    const size_t colon = part.find(':');
    if (colon == std::string_view::npos || colon == 0)
      return Error{Code::invalid, fmt::format("{} of a struct is not NAME:TYPE", quote(part))};
    TRY_ASSIGN(json::value type, parse_type(part.substr(colon + 1), depth));
    fields.push_back(
        {{"name", without_spaces(part.substr(0, colon))}, {"type", type}, {"nullable", true}});
  }
  return fields;
}

// REQUIRES: it ends with '>'.
Result<json::value> parse_nested(std::string_view text, size_t depth) {
  const size_t open = text.find('<');
  const std::string kind = ascii_lowered(text.substr(0, open));
  const std::string_view inner = text.substr(open + 1, text.size() - open - 2);
  if (kind == "struct") {
    TRY_ASSIGN(json::array fields, parse_fields(inner, depth));
    return json::value{{"type", kind}, {"fields", std::move(fields)}};
  }
  json::array types;
  for (const std::string_view part : split_at_commas(inner)) {
    TRY_ASSIGN(json::value type, parse_type(part, depth));
    types.push_back(std::move(type));
  }
  if (kind == "union") return json::value{{"type", kind}, {"types", std::move(types)}};
  if (kind == "list" && types.size() == 1)
    return json::value{{"type", kind}, {"elementType", types[0]}, {"containsNull", true}};
  if (kind == "map" && types.size() == 2)
    return json::value{{"type", kind},
                       {"keyType", types[0]},
                       {"valueType", types[1]},
                       {"valueContainsNull", true}};
  return no_such_type(text);
}

Result<json::value> parse_type(std::string_view text, size_t depth) {
  text = without_spaces(text);
  if (depth > depth_max) return Error{Code::invalid, "that are too many types in each other"};
  if (text.find('<') != std::string_view::npos && text.ends_with('>'))
    return parse_nested(text, depth + 1);
  if (equals_ignoring_case(text, "int")) return json::value("integer");  // as many say
  TRY_ASSIGN(json::value type, normal_type(json::value(text)));
  if (has_unparsed(type)) return no_such_type(text);
  return type;
}

}  // namespace

Result<ColumnText> parse_column(const std::string& text) {
  const std::string_view all = text;
  const size_t colon = all.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == all.size())
    return Error{Code::invalid, fmt::format("{} is not NAME:TYPE", quote(text))};
  const std::string_view rest = all.substr(colon + 1);
  const size_t second = find_outside(rest, ':');
  ColumnText column{.name = text.substr(0, colon), .type = {}, .comment = {}};
  TRY_ASSIGN(column.type, parse_type(rest.substr(0, second), 0));
  if (second != std::string_view::npos) column.comment = rest.substr(second + 1);
  return column;
}

}  // namespace trellis
