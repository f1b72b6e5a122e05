#include "json/json_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <cmath>
#include <set>

namespace trellis {
namespace {

using boost::system::error_code;
using JsonText = boost::json::string_view;

// Builds the tree as the library's own handler does, and refuses what that one lets pass: the
// second of two members of a name, numbers without end, and more values than are allowed.
class TreeHandler {
 public:
  static constexpr size_t max_object_size = json::object::max_size();
  static constexpr size_t max_array_size = json::array::max_size();
  static constexpr size_t max_key_size = json::string::max_size();
  static constexpr size_t max_string_size = json::string::max_size();

  explicit TreeHandler(size_t values_max) : values_left_(values_max) {}

  const std::string& problem() const { return problem_; }
  json::value release() { return stack_.release(); }

  bool on_document_begin(error_code&) {
    stack_.reset();
    return true;
  }
  bool on_document_end(error_code&) { return true; }

  bool on_object_begin(error_code&) {
    if (depth_ == names_.size()) names_.emplace_back();
    ++depth_;
    return true;
  }
  bool on_object_end(size_t size, error_code& ec) {
    names_[--depth_].clear();
    stack_.push_object(size);
    return count(ec);
  }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(size_t size, error_code& ec) {
    stack_.push_array(size);
    return count(ec);
  }

  bool on_key_part(JsonText part, size_t, error_code&) {
    key_.append(part.data(), part.size());
    stack_.push_chars(part);
    return true;
  }
  bool on_key(JsonText part, size_t, error_code& ec) {
    key_.append(part.data(), part.size());
    stack_.push_key(part);
    if (!names_[depth_ - 1].insert(key_).second) {
      return fail(fmt::format("the member {} is given twice", quote(key_)), ec);
    }
    key_.clear();
    return true;
  }

  bool on_string_part(JsonText part, size_t, error_code&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(JsonText part, size_t, error_code& ec) {
    stack_.push_string(part);
    return count(ec);
  }
  bool on_number_part(JsonText, error_code&) { return true; }
  bool on_int64(int64_t number, JsonText, error_code& ec) {
    stack_.push_int64(number);
    return count(ec);
  }
  bool on_uint64(uint64_t number, JsonText, error_code& ec) {
    stack_.push_uint64(number);
    return count(ec);
  }
  bool on_double(double number, JsonText, error_code& ec) {
    // 1e999, which no answer could show.
    if (!std::isfinite(number)) return fail("it has a number that is too large", ec);
    stack_.push_double(number);
    return count(ec);
  }
  bool on_bool(bool value, error_code& ec) {
    stack_.push_bool(value);
    return count(ec);
  }
  bool on_null(error_code& ec) {
    stack_.push_null();
    return count(ec);
  }
  bool on_comment_part(JsonText, error_code&) { return true; }
  bool on_comment(JsonText, error_code&) { return true; }

 private:
  bool count(error_code& ec) {
    if (values_left_-- > 0) return true;
    return fail("it has too many values: send fewer at once", ec);
  }
  bool fail(std::string problem, error_code& ec) {
    problem_ = std::move(problem);
    ec = make_error_code(boost::system::errc::invalid_argument);
    return false;
  }

  json::value_stack stack_;
  size_t values_left_;
  std::string key_;
  // Of the objects that are open. In trees, because nobody can choose names that make one slow.
  std::vector<std::set<std::string>> names_;
  size_t depth_ = 0;
  std::string problem_;
};

}  // namespace

Error bad_body(std::string message) { return {Code::invalid, std::move(message), bad_body_reason}; }

Result<json::value> parse_json(ByteView text, const JsonLimits& limits) {
  json::parse_options options;
  options.max_depth = limits.depth_max;
  json::basic_parser<TreeHandler> parser(options, limits.values_max);
  error_code ec;
  const size_t parsed = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && parsed < text.size()) ec = json::error::extra_data;
  if (!ec) return parser.handler().release();
  const std::string& problem = parser.handler().problem();
  if (!problem.empty()) return bad_body(problem);
  return bad_body(fmt::format("no JSON at byte {}: {}", parsed, ec.message()));
}

Result<JsonMembers> JsonMembers::of(const json::value& value, std::string_view what) {
  const json::object* object = value.if_object();
  if (object == nullptr) return bad_body(fmt::format("{} is no JSON object", what));
  return JsonMembers(*object, what);
}

const json::value* JsonMembers::find(std::string_view name) {
  asked_.push_back(name);
  return object_.if_contains(name);
}

Result<std::optional<std::string_view>> JsonMembers::text(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr || value->is_null()) return std::nullopt;
  const json::string* text = value->if_string();
  if (text == nullptr) return bad_body(fmt::format("{}: {} is no text", what_, quote(name)));
  return std::string_view(text->data(), text->size());
}

Result<std::optional<uint64_t>> JsonMembers::number(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (const uint64_t* number = value->if_uint64()) return *number;
  if (const int64_t* number = value->if_int64(); number != nullptr && *number >= 0) {
    return static_cast<uint64_t>(*number);
  }
  return bad_body(
      fmt::format("{}: {} is no whole number from 0 to {}", what_, quote(name), UINT64_MAX));
}

Status JsonMembers::finish() const {
  for (const auto& member : object_) {
    const std::string_view name(member.key().data(), member.key().size());
    if (std::ranges::find(asked_, name) != asked_.end()) continue;
    return bad_body(fmt::format("{} has the unknown member {}", what_, quote(name)));
  }
  return {};
}

}  // namespace trellis
