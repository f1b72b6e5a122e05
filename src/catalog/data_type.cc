#include "catalog/data_type.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "catalog/catalog_error.h"
#include "catalog/request_fields.h"

namespace trellis {
namespace {

constexpr std::string_view simple_types[] = {"boolean",
                                             "byte",
                                             "byte unsigned",
                                             "short",
                                             "short unsigned",
                                             "integer",
                                             "integer unsigned",
                                             "long",
                                             "long unsigned",
                                             "float",
                                             "double",
                                             "date",
                                             "time",
                                             "timestamp_tz",
                                             "timestamp",
                                             "string",
                                             "uuid",
                                             "binary",
                                             "interval_year",
                                             "interval_day",
                                             "null"};

struct TypeWithNumbers {
  std::string_view name;
  size_t numbers;
  bool blanks;        // around the numbers
  bool zero_is_none;  // "time(0)" is "time"
};
constexpr TypeWithNumbers types_with_numbers[] = {
    {"fixed", 1, true, false},    {"char", 1, true, false}, {"varchar", 1, true, false},
    {"decimal", 2, true, false},  {"time", 1, false, true}, {"timestamp_tz", 1, false, true},
    {"timestamp", 1, false, true}};
constexpr int decimal_precision_max = 38;

std::string_view string_of(const json::value& value) {
  const json::string& text = value.get_string();
  return {text.data(), text.size()};
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.substr(0, 1))) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.substr(text.size() - 1))) text.remove_suffix(1);
  return text;
}

// The digits between the parentheses; nothing if the text is of another form.
std::optional<std::array<std::string_view, 2>> digits_of(const TypeWithNumbers& type,
                                                         std::string_view text) {
  if (!text.starts_with(type.name) || !text.ends_with(')')) return std::nullopt;
  text.remove_prefix(type.name.size());
  if (!text.starts_with('(')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::array<std::string_view, 2> digits = {text, "0"};
  if (type.numbers == 2) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    digits = {text.substr(0, comma), text.substr(comma + 1)};
  }
  for (std::string_view& part : digits) {
    if (type.blanks) part = without_blanks(part);
    if (part.empty() || part.find_first_not_of("0123456789") != std::string_view::npos) {
      return std::nullopt;
    }
  }
  return digits;
}

Result<int> number_of(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc()) return number;
  return illegal_argument(fmt::format("For input string: \"{}\"", digits.substr(0, 100)));
}

json::value unparsed_type(std::string_view text) {
  return json::object{{"type", "unparsed"}, {"unparsedType", text}};
}

Result<json::value> normal_text_type(std::string_view text) {
  const std::string lower = ascii_lowered(text);
  if (std::ranges::find(simple_types, lower) != std::end(simple_types)) return json::value(lower);
  for (const TypeWithNumbers& type : types_with_numbers) {
    const auto digits = digits_of(type, lower);
    if (!digits) continue;
    TRY_ASSIGN(const int first, number_of((*digits)[0]));
    TRY_ASSIGN(const int second, number_of((*digits)[1]));
    if (type.zero_is_none && first == 0) return json::value(type.name);
    if (type.numbers == 1) return json::value(fmt::format("{}({})", type.name, first));
    if (first < 1 || first > decimal_precision_max) {
      return illegal_argument(
          fmt::format("Decimal precision must be in range[1, 38]: precision: {}", first));
    }
    if (second > first) {
      return illegal_argument(fmt::format(
          "Decimal scale must be in range [0, precision ({})]: scala: {}", first, second));
    }
    return json::value(fmt::format("decimal({},{})", first, second));
  }
  return unparsed_type(text);
}

// As lenient as the server here: what is no boolean is read as one.
bool nullable_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr) return true;
  if (const bool* flag = value->if_bool()) return *flag;
  if (const json::string* text = value->if_string()) return *text == "true";
  return value->is_number() && value->to_number<double>() != 0;
}

Result<const json::value*> part_of(const json::object& object, std::string_view name,
                                   std::string_view type, std::string_view what) {
  const json::value* part = object.if_contains(name);
  if (part != nullptr) return part;
  const json::value whole(object);
  return illegal_argument(
      fmt::format("Cannot parse {} type from missing {}: {}", type, what, shown(&whole)));
}

Result<json::value> normal_struct_field(const json::value& value) {
  const json::object* field = value.if_object();
  if (field == nullptr) {
    return illegal_argument("Cannot parse struct field from invalid JSON: " + shown(&value));
  }
  const json::value* name = field->if_contains("name");
  const json::value* type = field->if_contains("type");
  if (name == nullptr || type == nullptr) {
    return illegal_argument(fmt::format("Cannot parse struct field from missing {}: {}",
                                        name == nullptr ? "name" : "type", shown(&value)));
  }
  if (!name->is_string()) {
    return illegal_argument("Cannot parse to a string value name: " + shown(name));
  }
  TRY_ASSIGN(json::value normal, normal_type(*type));
  json::object result{
      {"name", *name}, {"type", std::move(normal)}, {"nullable", nullable_of(*field, "nullable")}};
  const json::value* comment = field->if_contains("comment");
  if (comment != nullptr && !comment->is_null()) {
    if (!comment->is_string()) {
      return illegal_argument("Cannot parse to a string value comment: " + shown(comment));
    }
    result["comment"] = *comment;
  }
  return json::value(std::move(result));
}

Result<json::value> normal_struct(const json::object& type) {
  const json::value* fields = type.if_contains("fields");
  if (fields == nullptr || !fields->is_array()) {
    return illegal_argument("Cannot parse struct fields from non-array: " + shown(fields));
  }
  if (fields->get_array().empty()) return illegal_argument("fields cannot be null or empty");
  json::array result;
  for (const json::value& field : fields->get_array()) {
    TRY_ASSIGN(json::value normal, normal_struct_field(field));
    result.push_back(std::move(normal));
  }
  return json::value(json::object{{"type", "struct"}, {"fields", std::move(result)}});
}

Result<json::value> normal_list(const json::object& type) {
  TRY_ASSIGN(const json::value* element, part_of(type, "elementType", "list", "element type"));
  TRY_ASSIGN(json::value normal, normal_type(*element));
  return json::value(json::object{{"type", "list"},
                                  {"containsNull", nullable_of(type, "containsNull")},
                                  {"elementType", std::move(normal)}});
}

Result<json::value> normal_map(const json::object& type) {
  TRY_ASSIGN(const json::value* key, part_of(type, "keyType", "map", "key type"));
  TRY_ASSIGN(const json::value* value, part_of(type, "valueType", "map", "value type"));
  TRY_ASSIGN(json::value normal_key, normal_type(*key));
  TRY_ASSIGN(json::value normal_value, normal_type(*value));
  return json::value(json::object{{"type", "map"},
                                  {"valueContainsNull", nullable_of(type, "valueContainsNull")},
                                  {"keyType", std::move(normal_key)},
                                  {"valueType", std::move(normal_value)}});
}

Result<json::value> normal_union(const json::object& type) {
  TRY_ASSIGN(const json::value* types, part_of(type, "types", "union", "types"));
  if (!types->is_array()) {
    return illegal_argument("Cannot parse union types from non-array: " + shown(types));
  }
  json::array result;
  for (const json::value& member : types->get_array()) {
    TRY_ASSIGN(json::value normal, normal_type(member));
    result.push_back(std::move(normal));
  }
  return json::value(json::object{{"type", "union"}, {"types", std::move(result)}});
}

Result<json::value> text_part(const json::object& type, std::string_view kind,
                              std::string_view name, std::string_view what) {
  TRY_ASSIGN(const json::value* text, part_of(type, name, kind, what));
  return json::value(json::object{
      {"type", kind}, {name, text->is_null() ? "null" : scalar_text(*text).value_or("")}});
}

Result<json::value> normal_unparsed(const json::object& type) {
  return text_part(type, "unparsed", "unparsedType", "unparsed type");
}
Result<json::value> normal_external(const json::object& type) {
  return text_part(type, "external", "catalogString", "catalogString");
}

struct ObjectType {
  std::string_view name;
  Result<json::value> (*normal)(const json::object&);
};
constexpr ObjectType object_types[] = {
    {"struct", normal_struct}, {"list", normal_list},         {"map", normal_map},
    {"union", normal_union},   {"unparsed", normal_unparsed}, {"external", normal_external}};

std::string joined_types(const json::array& types) {
  std::string text;
  for (const json::value& type : types) {
    if (!text.empty()) text += ',';
    text += simple_type(type);
  }
  return text;
}

std::string simple_field(const json::object& field) {
  const json::value* comment = field.if_contains("comment");
  return fmt::format("{}: {} {} COMMENT {}", string_of(field.at("name")),
                     simple_type(field.at("type")),
                     field.at("nullable").get_bool() ? "NULL" : "NOT NULL",
                     comment == nullptr ? "" : fmt::format("'{}'", string_of(*comment)));
}

}  // namespace

std::string known_types() {
  std::string known = fmt::format("{}", fmt::join(simple_types, ", "));
  for (const TypeWithNumbers& type : types_with_numbers)
    known += fmt::format(", {}({})", type.name, type.numbers == 2 ? "n,n" : "n");
  return known;
}

Result<json::value> normal_type(const json::value& type) {
  if (type.is_null()) return illegal_argument("Cannot parse type from invalid JSON: null");
  if (type.is_string()) return normal_text_type(string_of(type));
  if (const json::object* object = type.if_object()) {
    const json::value* name = object->if_contains("type");
    for (const ObjectType& known : object_types) {
      if (name == nullptr || !name->is_string() || string_of(*name) != known.name) continue;
      return known.normal(*object);
    }
  }
  return unparsed_type(json_text(type));
}

std::string simple_type(const json::value& type) {
  if (type.is_string()) return std::string(string_of(type));
  const json::object& object = type.get_object();
  const std::string_view kind = string_of(object.at("type"));
  if (kind == "struct") {
    std::string fields;
    for (const json::value& field : object.at("fields").get_array()) {
      if (!fields.empty()) fields += ',';
      fields += simple_field(field.get_object());
    }
    return fmt::format("struct<{}>", fields);
  }
  if (kind == "list") {
    return fmt::format("list<{}{}>", simple_type(object.at("elementType")),
                       object.at("containsNull").get_bool() ? "" : ", NOT NULL");
  }
  if (kind == "map") {
    return fmt::format("map<{},{}>", simple_type(object.at("keyType")),
                       simple_type(object.at("valueType")));
  }
  if (kind == "union")
    return fmt::format("union<{}>", joined_types(object.at("types").get_array()));
  const char* text = kind == "unparsed" ? "unparsedType" : "catalogString";
  return fmt::format("{}({})", kind, string_of(object.at(text)));
}

bool has_unparsed(const json::value& type) {
  if (const json::array* array = type.if_array()) {
    return std::ranges::any_of(*array, has_unparsed);
  }
  const json::object* object = type.if_object();
  if (object == nullptr) return false;
  const json::value* name = object->if_contains("type");
  if (name != nullptr && name->is_string() && string_of(*name) == "unparsed" &&
      object->contains("unparsedType")) {
    return true;
  }
  return std::ranges::any_of(*object,
                             [](const auto& member) { return has_unparsed(member.value()); });
}

}  // namespace trellis
