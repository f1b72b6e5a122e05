#include "catalog/request_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "catalog/catalog_error.h"
#include "json/json_text.h"

namespace trellis {
namespace {

constexpr size_t shown_bytes_max = 200;
// Whoever sent it was held to tighter limits.
constexpr JsonLimits stored_limits{.depth_max = 100, .values_max = 4'000'000};

std::string_view view_of(const json::string& text) { return {text.data(), text.size()}; }

char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }
char uppered(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c; }

Error is_no(std::string_view name, std::string_view what, const json::value* value) {
  return illegal_argument(
      fmt::format("\"{}\" must be {}, but found: {}", name, what, shown(value)));
}

}  // namespace

std::string json_text(const json::value& value) {
  Bytes text;
  append_json(text, value, JsonReals::as_java);
  return text;
}

std::string shown(const json::value* value) {
  if (value == nullptr) return "nothing";
  std::string text = json_text(*value);
  if (text.size() > shown_bytes_max) text = text.substr(0, shown_bytes_max) + "...";
  return text;
}

Result<json::value> stored_json(std::string_view text) {
  auto value = parse_json(text, stored_limits);
  if (!value) return Error{Code::corrupt, "stored JSON: " + value.error().message};
  return value;
}

bool is_blank(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
  });
}

std::string ascii_lowered(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), lowered);
  return result;
}

std::string ascii_uppered(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), uppered);
  return result;
}

std::optional<std::string> scalar_text(const json::value& value) {
  if (const json::string* text = value.if_string()) return std::string(view_of(*text));
  if (value.is_number() || value.is_bool()) return json_text(value);
  return std::nullopt;
}

Result<RequestFields> RequestFields::of(const json::value& value, std::string_view what) {
  auto members = JsonMembers::of(value, what);
  if (!members) {
    return illegal_argument(
        fmt::format("{} must be a JSON object, but found: {}", what, shown(&value)));
  }
  return RequestFields(std::move(*members));
}

const json::value* RequestFields::find(std::string_view name) {
  const json::value* value = members_.find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::optional<std::string>> RequestFields::text(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  std::optional<std::string> text = scalar_text(*value);
  if (!text) return is_no(name, "a string", value);
  return text;
}

Result<std::string> RequestFields::required_text(std::string_view name) {
  TRY_ASSIGN(std::optional<std::string> value, text(name));
  if (!value || is_blank(*value)) {
    return illegal_argument(fmt::format("\"{}\" field is required and cannot be empty", name));
  }
  return std::move(*value);
}

Result<bool> RequestFields::flag(std::string_view name, bool by_default) {
  const json::value* value = find(name);
  if (value == nullptr) return by_default;
  if (const bool* flag = value->if_bool()) return *flag;
  if (const json::string* text = value->if_string()) {
    const std::string word = ascii_lowered(view_of(*text));
    if (word == "true" || word == "false") return word == "true";
  }
  return is_no(name, "true or false", value);
}

Result<int32_t> RequestFields::number(std::string_view name) {
  const json::value* value = members_.find(name);
  if (value == nullptr) {
    return illegal_argument(fmt::format("Cannot parse missing property: {}", name));
  }
  const int64_t* number = value->if_int64();
  if (number == nullptr || *number < std::numeric_limits<int32_t>::min() ||
      *number > std::numeric_limits<int32_t>::max()) {
    return illegal_argument(fmt::format("Cannot parse to an int value {}: {}", name, shown(value)));
  }
  return static_cast<int32_t>(*number);
}

Result<TextMap> RequestFields::text_map(std::string_view name) {
  TextMap map;
  const json::value* value = find(name);
  if (value == nullptr) return map;
  const json::object* object = value->if_object();
  if (object == nullptr) return is_no(name, "a JSON object", value);
  for (const auto& member : *object) {
    std::optional<std::string> text = scalar_text(member.value());
    if (!text) return is_no(name, "an object of strings", &member.value());
    map.emplace(std::string_view(member.key().data(), member.key().size()), std::move(*text));
  }
  return map;
}

Result<std::vector<const json::value*>> RequestFields::list(std::string_view name) {
  std::vector<const json::value*> list;
  const json::value* value = find(name);
  if (value == nullptr) return list;
  const json::array* array = value->if_array();
  if (array == nullptr) return is_no(name, "an array", value);
  list.reserve(array->size());
  for (const json::value& element : *array) list.push_back(&element);
  return list;
}

Result<std::vector<std::string>> RequestFields::text_list(std::string_view name) {
  TRY_ASSIGN(const std::vector<const json::value*> values, list(name));
  std::vector<std::string> texts;
  for (const json::value* value : values) {
    std::optional<std::string> text = scalar_text(*value);
    if (!text) return is_no(name, "an array of strings", value);
    texts.push_back(std::move(*text));
  }
  return texts;
}

Status RequestFields::finish() const {
  const Status known = members_.finish();
  if (!known) return illegal_argument("Malformed json request: " + known.error().message);
  return {};
}

}  // namespace trellis
