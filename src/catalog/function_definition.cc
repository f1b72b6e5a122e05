#include "catalog/function_definition.h"

#include <fmt/format.h>

#include <algorithm>

#include "catalog/catalog_error.h"
#include "catalog/data_type.h"
#include "catalog/entity.h"
#include "catalog/request_fields.h"
#include "catalog/table_parts.h"

namespace trellis {
namespace {

std::string_view letters_of(const json::value& value) {
  const json::string& text = value.get_string();
  return {text.data(), text.size()};
}

Error required_field(const std::string& path) {
  return illegal_argument(fmt::format("\"{}\" field is required and cannot be null", path));
}

// Neither unparsed, nor external without a name.
Result<json::value> known_type(const json::value* type, const std::string& path) {
  if (type == nullptr) return required_field(path);
  TRY_ASSIGN(json::value normal, normal_type(*type));
  if (has_unparsed(normal)) {
    return illegal_argument(
        fmt::format("\"{}\" must be a Gravitino-recognized data type or an explicit ExternalType; "
                    "UnparsedType is not allowed for new function definitions",
                    path));
  }
  return normal;
}

// A parameter or a column that is returned.
Result<json::value> named_type(const json::value& value, const std::string& path,
                               bool has_default) {
  if (value.is_null()) return required_field(path);
  TRY_ASSIGN(RequestFields fields, RequestFields::of(value, "it"));
  json::object result;
  TRY_ASSIGN(result["name"], fields.required_text("name"));
  TRY_ASSIGN(result["dataType"], known_type(fields.find("dataType"), path + ".dataType"));
  TRY_ASSIGN(const std::optional<std::string> comment, fields.text("comment"));
  if (comment) result["comment"] = *comment;
  if (has_default) {
    if (const json::value* by_default = fields.find("defaultValue")) {
      TRY_ASSIGN(result["defaultValue"], normal_expression(*by_default));
    }
  }
  TRY(fields.finish());
  return json::value(std::move(result));
}

Result<json::value> named_types(const json::value& list, const std::string& path,
                                bool has_default) {
  const json::array* array = list.if_array();
  if (array == nullptr) return illegal_argument(fmt::format("\"{}\" must be an array", path));
  const size_t count_max = has_default ? function_parameters_max : catalog_columns_max;
  if (array->size() > count_max) {
    return illegal_argument(fmt::format("\"{}\" has at most {} elements", path, count_max));
  }
  json::array result;
  for (size_t i = 0; i < array->size(); ++i) {
    TRY_ASSIGN(json::value one,
               named_type((*array)[i], fmt::format("{}[{}]", path, i), has_default));
    result.push_back(std::move(one));
  }
  return json::value(std::move(result));
}

struct Language {
  std::string_view name;
  const char* required;
  const char* optional;  // may be nullptr
};
constexpr Language languages[] = {
    {"SQL", "sql", nullptr}, {"JAVA", "className", nullptr}, {"PYTHON", "handler", "codeBlock"}};

Result<json::value> normal_resources(const json::value& value) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(value, "resources"));
  json::object result;
  for (const char* kind : {"jars", "files", "archives"}) {
    TRY_ASSIGN(const std::vector<std::string> uris, fields.text_list(kind));
    result[kind] = json::array(uris.begin(), uris.end());
  }
  TRY(fields.finish());
  return json::value(std::move(result));
}

// Parameters with default values stand at the end.
Status check_order(const json::array& parameters) {
  bool is_optional = false;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const json::object& parameter = parameters[i].get_object();
    const bool has_default = parameter.contains("defaultValue");
    if (is_optional && !has_default) {
      return illegal_argument(fmt::format(
          "Invalid parameter order: required parameter '{}' at position {} follows optional "
          "parameter(s). All parameters with default values must appear at the end of the "
          "parameter list.",
          letters_of(parameter.at("name")), i));
    }
    is_optional = has_default;
  }
  return {};
}

// A call with the first so many parameters, as messages show it: "integer,string".
std::string arity_text(const json::value& definition, size_t count) {
  constexpr size_t shown_max = 200;
  const json::array& parameters = definition.at("parameters").get_array();
  std::string text;
  for (size_t i = 0; i < count && text.size() <= shown_max; ++i) {
    if (i > 0) text += ',';
    text += simple_type(parameters[i].at("dataType"));
  }
  if (text.size() > shown_max) text = text.substr(0, shown_max) + "...";
  return text;
}

bool same_parameters(const json::array& a, const json::array& b) {
  return std::ranges::equal(a, b, [](const json::value& x, const json::value& y) {
    return x.at("name") == y.at("name") && x.at("dataType") == y.at("dataType");
  });
}

json::array::iterator find_impl(json::array& impls, std::string_view runtime) {
  return std::ranges::find_if(
      impls, [&](const json::value& impl) { return letters_of(impl.at("runtime")) == runtime; });
}

Error no_runtime(std::string_view what, std::string_view runtime) {
  return illegal_argument(fmt::format(
      "Cannot {} implementation: runtime '{}' not found in the definition", what, runtime));
}

}  // namespace

Result<std::string> normal_runtime(std::string_view runtime) {
  std::string upper = ascii_uppered(runtime);
  if (upper == "SPARK" || upper == "TRINO") return upper;
  return illegal_argument(
      fmt::format("Unknown function runtime: {}. Valid values are: [SPARK, TRINO]", runtime));
}

Result<json::value> normal_impl(const json::value& value) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(value, "implementation"));
  TRY_ASSIGN(const std::string name, fields.required_text("language"));
  const std::string upper = ascii_uppered(name);
  const auto* language = std::ranges::find(languages, upper, &Language::name);
  if (language == std::end(languages)) {
    return illegal_argument("Unsupported implementation language: " + name);
  }
  json::object result{{"language", upper}};
  TRY_ASSIGN(const std::string runtime, fields.required_text("runtime"));
  TRY_ASSIGN(result["runtime"], normal_runtime(runtime));
  TRY_ASSIGN(result[language->required], fields.required_text(language->required));
  if (language->optional != nullptr) {
    TRY_ASSIGN(const std::optional<std::string> text, fields.text(language->optional));
    if (text) result[language->optional] = *text;
  }
  if (const json::value* resources = fields.find("resources")) {
    TRY_ASSIGN(result["resources"], normal_resources(*resources));
  }
  TRY_ASSIGN(const TextMap properties, fields.text_map("properties"));
  json::object& map = result["properties"].emplace_object();
  for (const auto& [property, text] : properties) map[property] = text;
  return json::value(std::move(result));  // others are ignored, as the server does
}

Result<json::value> normal_function_columns(const json::value& columns, const std::string& path) {
  return named_types(columns, path, false);
}

Result<json::value> normal_parameters(const json::value* parameters, const std::string& path) {
  if (parameters == nullptr) return required_field(path);
  return named_types(*parameters, path, true);
}

Result<json::value> normal_definition(const json::value& value, const std::string& path) {
  if (value.is_null()) return required_field(path);
  TRY_ASSIGN(RequestFields fields, RequestFields::of(value, "definition"));
  json::object result{{"parameters", json::array()}};
  if (const json::value* parameters = fields.find("parameters")) {
    TRY_ASSIGN(result["parameters"], named_types(*parameters, path + ".parameters", true));
  }
  if (const json::value* type = fields.find("returnType")) {
    TRY_ASSIGN(result["returnType"], known_type(type, path + ".returnType"));
  }
  if (const json::value* columns = fields.find("returnColumns")) {
    TRY_ASSIGN(result["returnColumns"], normal_function_columns(*columns, path + ".returnColumns"));
  }
  json::array& impls = result["impls"].emplace_array();
  TRY_ASSIGN(const std::vector<const json::value*> given, fields.list("impls"));
  for (const json::value* impl : given) {
    TRY_ASSIGN(json::value normal, normal_impl(*impl));
    impls.push_back(std::move(normal));
  }
  TRY(fields.finish());
  return json::value(std::move(result));
}

// --- calls ---

std::vector<size_t> FunctionCalls::calls_of(const json::value& definition) {
  std::vector<size_t> calls;
  size_t call = 0;  // without arguments
  for (const json::value& parameter : definition.at("parameters").get_array()) {
    if (parameter.get_object().contains("defaultValue")) calls.push_back(call);
    call = longer_.try_emplace({call, simple_type(parameter.at("dataType"))}, longer_.size() + 1)
               .first->second;
  }
  calls.push_back(call);
  return calls;
}

Result<std::optional<FunctionCalls::Clash>> FunctionCalls::add(const json::value& definition,
                                                               size_t owner) {
  const json::array& parameters = definition.at("parameters").get_array();
  TRY(check_order(parameters));
  const std::vector<size_t> calls = calls_of(definition);
  for (size_t i = 0; i < calls.size(); ++i) {
    if (const auto other = owners_.find(calls[i]); other != owners_.end())
      return std::optional(Clash{parameters.size() + 1 - calls.size() + i, other->second});
  }
  for (const size_t call : calls) owners_[call] = owner;
  return std::optional<Clash>();
}

void FunctionCalls::remove(const json::value& definition) {
  for (const size_t call : calls_of(definition)) owners_.erase(call);
}

Status check_definitions(const json::array& definitions) {
  FunctionCalls calls;
  for (size_t i = 0; i < definitions.size(); ++i) {
    TRY_ASSIGN(const auto clash, calls.add(definitions[i], i));
    if (!clash) continue;
    return illegal_argument(fmt::format(
        "Cannot register function: definitions at index {} and {} have overlapping arity '{}'. "
        "This would create ambiguous function invocations.",
        clash->owner, i, arity_text(definitions[i], clash->parameters)));
  }
  return {};
}

// --- changes ---

json::array::iterator FunctionDefinitions::find(const json::value& parameters) {
  return std::ranges::find_if(definitions_, [&](const json::value& definition) {
    return same_parameters(definition.at("parameters").get_array(), parameters.get_array());
  });
}

Result<json::array*> FunctionDefinitions::impls_of(const json::value& parameters,
                                                   std::string_view what) {
  const auto found = find(parameters);
  if (found != definitions_.end()) return &found->at("impls").get_array();
  return illegal_argument(fmt::format(
      "Cannot {} implementation: no definition found with the specified parameters", what));
}

Status FunctionDefinitions::add(json::value definition) {
  if (!calls_) {
    calls_.emplace();
    for (const json::value& existing : definitions_) TRY(calls_->add(existing, 0));
  }
  TRY_ASSIGN(const auto clash, calls_->add(definition, 0));
  if (clash) {
    return illegal_argument(fmt::format(
        "Cannot add definition: arity '{}' overlaps with an existing definition. This would "
        "create ambiguous function invocations.",
        arity_text(definition, clash->parameters)));
  }
  definitions_.push_back(std::move(definition));
  return {};
}

Status FunctionDefinitions::remove(const json::value& parameters) {
  if (definitions_.size() == 1) {
    return illegal_argument(
        "Cannot remove the only definition. Use dropFunction to remove the entire function.");
  }
  const auto found = find(parameters);
  if (found == definitions_.end()) {
    return illegal_argument(
        "Cannot remove definition: no definition found with the specified parameters");
  }
  if (calls_) calls_->remove(*found);
  definitions_.erase(found);
  return {};
}

Status FunctionDefinitions::add_impl(const json::value& parameters, json::value impl) {
  TRY_ASSIGN(json::array * impls, impls_of(parameters, "add"));
  const std::string_view runtime = letters_of(impl.at("runtime"));
  if (find_impl(*impls, runtime) != impls->end()) {
    return illegal_argument(fmt::format(
        "Cannot add implementation: runtime '{}' already exists in this definition. Use "
        "updateImpl to replace it.",
        runtime));
  }
  impls->push_back(std::move(impl));
  return {};
}

Status FunctionDefinitions::update_impl(const json::value& parameters, std::string_view runtime,
                                        json::value impl) {
  TRY_ASSIGN(json::array * impls, impls_of(parameters, "update"));
  const auto found = find_impl(*impls, runtime);
  if (found == impls->end()) return no_runtime("update", runtime);
  *found = std::move(impl);
  return {};
}

Status FunctionDefinitions::remove_impl(const json::value& parameters, std::string_view runtime) {
  TRY_ASSIGN(json::array * impls, impls_of(parameters, "remove"));
  const auto found = find_impl(*impls, runtime);
  if (found == impls->end()) return no_runtime("remove", runtime);
  if (impls->size() == 1) {
    return illegal_argument(
        "Cannot remove the only implementation. Use removeDefinition to remove the entire "
        "definition.");
  }
  impls->erase(found);
  return {};
}

}  // namespace trellis
