// Reading JSON that strangers sent.
//
//   TRY_ASSIGN(const json::value body, parse_json(request.body));
//   TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
//   TRY_ASSIGN(const std::optional<std::string_view> name, members.text("name"));
//   TRY(members.finish());  // refuses what nobody asked for
//
// Strict, so that no two readers of one text can disagree: UTF-8, each member once, whole numbers
// written as such, others no larger than a double. All errors are Code::invalid with the reason
// bad_body.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

namespace json = boost::json;

inline constexpr std::string_view bad_body_reason = "bad_body";
Error bad_body(std::string message);

struct JsonLimits {
  size_t depth_max = 32;
  // Objects, arrays and all that is in them: a short text of many values takes much memory.
  size_t values_max = 20'000;
};

// One value and nothing behind it.
Result<json::value> parse_json(ByteView text, const JsonLimits& limits = {});

// The members of one object. A member that is null counts as absent, as in PD.
class JsonMembers {
 public:
  // `what` is what error messages call the object; static text. The value must outlive this.
  static Result<JsonMembers> of(const json::value& value, std::string_view what);

  // The member, also if it is null; nullptr if it is not there. `name` is static text.
  const json::value* find(std::string_view name);

  // Absent, or of that type; the views live as long as the value.
  Result<std::optional<std::string_view>> text(std::string_view name);
  Result<std::optional<uint64_t>> number(std::string_view name);

  // An error if there is a member that was not asked for.
  Status finish() const;

 private:
  JsonMembers(const json::object& object, std::string_view what) : object_(object), what_(what) {}

  const json::object& object_;
  std::string_view what_;
  std::vector<std::string_view> asked_;
};

}  // namespace trellis
