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

#include <string>
#include <string_view>

#include "base/result.h"
#include "json/json_body.h"

namespace trellis {

// `path` is what messages call it.
Result<json::value> normal_definition(const json::value& definition, const std::string& path);
Result<json::value> normal_function_columns(const json::value& columns, const std::string& path);
Result<json::value> normal_impl(const json::value& impl);
Result<std::string> normal_runtime(std::string_view runtime);

// Those of a new function.
Status check_definitions(const json::array& definitions);

// Changes of the definitions of a stored function; `parameters` name one of them.
Status add_definition(json::array& definitions, json::value definition);
Status remove_definition(json::array& definitions, const json::value& parameters);
Status add_impl(json::array& definitions, const json::value& parameters, json::value impl);
Status update_impl(json::array& definitions, const json::value& parameters,
                   std::string_view runtime, json::value impl);
Status remove_impl(json::array& definitions, const json::value& parameters,
                   std::string_view runtime);
// Names and types are what counts.
Result<json::value> normal_parameters(const json::value* parameters, const std::string& path);

}  // namespace trellis
