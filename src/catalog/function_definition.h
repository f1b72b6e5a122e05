// Definitions of functions: overloads with their implementations.
//
//   {"parameters":[{"name","dataType","comment"?,"defaultValue"?}],
//    "returnType"? | "returnColumns"?:[{"name","dataType","comment"?}],
//    "impls":[{"language":"SQL","runtime":"SPARK","sql", "resources"?,"properties"?}]}
//                  JAVA: "className"; PYTHON: "handler", "codeBlock"?
//
// Parameters with default values stand behind those without. No two definitions may take the same
// arguments. Errors: illegal_argument.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/json_body.h"

namespace trellis {

inline constexpr size_t function_parameters_max = 256;

// `path` is what messages call it.
Result<json::value> normal_definition(const json::value& definition, const std::string& path);
Result<json::value> normal_function_columns(const json::value& columns, const std::string& path);
Result<json::value> normal_impl(const json::value& impl);
Result<std::string> normal_runtime(std::string_view runtime);

// What calls of a function look like, by the types of their arguments: one for each number of
// arguments that a definition takes. They are kept as a tree, so that many of them with long types
// need no more room than one.
class FunctionCalls {
 public:
  // Of one more definition, whose calls must be new: how many parameters one has that is not.
  // `owner` is what the calls are remembered by; none are if there is an error.
  struct Clash {
    size_t parameters;
    size_t owner;
  };
  Result<std::optional<Clash>> add(const json::value& definition, size_t owner);
  void remove(const json::value& definition);

 private:
  // From that without optional parameters on.
  std::vector<size_t> calls_of(const json::value& definition);

  std::map<std::pair<size_t, std::string>, size_t> longer_;  // by one argument of that type
  std::map<size_t, size_t> owners_;
};

// The definitions of a function while they are changed; `parameters` name one of them.
class FunctionDefinitions {
 public:
  // Those of a stored function.
  explicit FunctionDefinitions(json::array definitions) : definitions_(std::move(definitions)) {}
  const json::array& all() const { return definitions_; }

  Status add(json::value definition);
  Status remove(const json::value& parameters);
  Status add_impl(const json::value& parameters, json::value impl);
  Status update_impl(const json::value& parameters, std::string_view runtime, json::value impl);
  Status remove_impl(const json::value& parameters, std::string_view runtime);

 private:
  json::array::iterator find(const json::value& parameters);
  Result<json::array*> impls_of(const json::value& parameters, std::string_view what);

  json::array definitions_;
  std::optional<FunctionCalls> calls_;  // once one was added
};

// Those of a new function.
Status check_definitions(const json::array& definitions);

// Names and types are what counts.
Result<json::value> normal_parameters(const json::value* parameters, const std::string& path);

}  // namespace trellis
