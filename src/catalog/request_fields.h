// The members of a JSON object that a client sent, read as Gravitino's server reads them: what is
// null counts as absent, numbers and booleans stand for their text, flags may be text. All errors
// are illegal_argument.
//
//   TRY_ASSIGN(RequestFields fields, RequestFields::of(body, "request"));
//   TRY_ASSIGN(const std::string name, fields.required_text("name"));
//   TRY(fields.finish());  // refuses what nobody asked for
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json_body.h"

namespace trellis {

using TextMap = std::map<std::string, std::string>;

// JSON as it is stored and answered: short, and a number keeps its kind (1.0 is not 1).
std::string json_text(const json::value& value);
// The same for messages: no longer than a line.
std::string shown(const json::value* value);
// What json_text() made.
Result<json::value> stored_json(std::string_view text);

bool is_blank(std::string_view text);
std::string ascii_lowered(std::string_view text);
std::string ascii_uppered(std::string_view text);

// A text, or the text of a number or boolean; nothing for objects, arrays and null.
std::optional<std::string> scalar_text(const json::value& value);

// What names of schemas, tables and columns may be like (name_rules.h): some providers allow more.
enum class NamePattern : uint8_t { plain, any_letters };

class RequestFields {
 public:
  // `what` is static text.
  static Result<RequestFields> of(const json::value& value, std::string_view what);

  // nullptr: it is not there, or null. Names are static text.
  const json::value* find(std::string_view name);
  Result<std::optional<std::string>> text(std::string_view name);
  // "name" field is required and cannot be empty
  Result<std::string> required_text(std::string_view name);
  Result<bool> flag(std::string_view name, bool by_default);
  // A whole number of 32 bits.
  Result<int32_t> number(std::string_view name);
  Result<TextMap> text_map(std::string_view name);
  Result<std::vector<std::string>> text_list(std::string_view name);
  // Empty if it is absent.
  Result<std::vector<const json::value*>> list(std::string_view name);

  Status finish() const;

  NamePattern name_pattern = NamePattern::plain;  // of names in it

 private:
  explicit RequestFields(JsonMembers members) : members_(std::move(members)) {}
  JsonMembers members_;
};

}  // namespace trellis
