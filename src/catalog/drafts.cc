#include "catalog/drafts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "catalog/catalog_error.h"
#include "catalog/data_type.h"
#include "catalog/entity.h"
#include "catalog/function_definition.h"
#include "catalog/name_rules.h"
#include "catalog/table_definition.h"
#include "catalog/table_parts.h"

namespace trellis {
namespace {

using stored::CatalogEntity;

constexpr std::string_view catalog_kinds[] = {"relational", "fileset", "messaging", "model"};
constexpr std::string_view fileset_kinds[] = {"managed", "external"};
constexpr std::string_view function_kinds[] = {"scalar", "aggregate", "table"};
constexpr std::string_view object_kinds[] = {
    "metalake", "catalog",  "schema", "table", "column", "fileset", "topic",       "model",
    "view",     "function", "role",   "tag",   "policy", "job",     "job_template"};
constexpr std::string_view policy_kinds[] = {"custom", "system_iceberg_compaction",
                                             "system_iceberg_rewrite_manifests"};
constexpr size_t allowed_value_characters_max = 256;

// One of some words in any case.
Result<std::string> read_kind(std::string_view name, std::string_view text,
                              std::span<const std::string_view> words) {
  std::string lower = ascii_lowered(text);
  if (std::ranges::find(words, lower) != words.end()) return lower;
  return illegal_argument(fmt::format("Unknown {}: {}. Valid values are: [{}]", name,
                                      text.substr(0, 100), fmt::join(words, ", ")));
}

// An array of normal forms, as it is stored: empty for none.
using Normal = Result<json::value> (*)(const json::value&);
Result<std::string> read_parts(RequestFields& fields, std::string_view name, Normal normal) {
  TRY_ASSIGN(const std::vector<const json::value*> given, fields.list(name));
  if (given.size() > catalog_indexes_max) {
    return illegal_argument(
        fmt::format("\"{}\" has at most {} elements", name, catalog_indexes_max));
  }
  json::array result;
  for (const json::value* one : given) {
    TRY_ASSIGN(json::value part, normal(*one));
    result.push_back(std::move(part));
  }
  return result.empty() ? std::string() : json_text(json::value(std::move(result)));
}

Status draft_nothing_more(RequestFields&, CatalogEntity&) { return {}; }

Status draft_catalog(RequestFields& fields, CatalogEntity& draft) {
  TRY_ASSIGN(const std::string type, fields.required_text("type"));
  TRY_ASSIGN(const std::string kind, read_kind("catalog type", type, catalog_kinds));
  TRY_ASSIGN(std::optional<std::string> provider, fields.text("provider"));
  if (!provider || is_blank(*provider)) {
    if (kind != "fileset" && kind != "model") {
      return illegal_argument("\"provider\" field is required and cannot be empty");
    }
    provider = kind;
  }
  draft.mutable_catalog()->set_type(kind);
  draft.mutable_catalog()->set_provider(*provider);
  return {};
}

Status draft_table(RequestFields& fields, CatalogEntity& draft) {
  stored::CatalogTable& table = *draft.mutable_table();
  TRY_ASSIGN(const std::vector<const json::value*> columns, fields.list("columns"));
  TRY(check_column_count(columns.size()));
  for (const json::value* given : columns) {
    TRY_ASSIGN(stored::CatalogColumn column, read_column(*given));
    TRY(check_name(CatalogType::column, column.name(), fields.name_pattern));
    column.set_id(static_cast<uint64_t>(table.columns_size()) + 1);
    *table.add_columns() = std::move(column);
  }
  table.set_next_column_id(columns.size() + 1);
  TRY_ASSIGN(*table.mutable_sort_orders_json(),
             read_parts(fields, "sortOrders", normal_sort_order));
  if (const json::value* distribution = fields.find("distribution")) {
    TRY_ASSIGN(const json::value normal, normal_distribution(*distribution));
    std::string text = json_text(normal);
    if (text != no_distribution_json) table.set_distribution_json(std::move(text));
  }
  TRY_ASSIGN(*table.mutable_partitioning_json(),
             read_parts(fields, "partitioning", normal_partitioning));
  TRY_ASSIGN(*table.mutable_indexes_json(), read_parts(fields, "indexes", normal_index));
  return check_table(table);
}

Status draft_fileset(RequestFields& fields, CatalogEntity& draft) {
  stored::CatalogFileset& fileset = *draft.mutable_fileset();
  TRY_ASSIGN(const std::optional<std::string> type, fields.text("type"));
  TRY_ASSIGN(*fileset.mutable_type(),
             read_kind("fileset type", type.value_or("managed"), fileset_kinds));
  TRY_ASSIGN(TextMap locations, fields.text_map("storageLocations"));
  TRY_ASSIGN(const std::optional<std::string> location, fields.text("storageLocation"));
  if (location) locations[std::string(unknown_location)] = *location;
  for (const auto& [name, path] : locations) {
    if (is_blank(name)) return illegal_argument("Location name must not be blank");
    if (is_blank(path)) {
      return illegal_argument("Storage location must not be blank for location name: " + name);
    }
  }
  fileset.mutable_locations()->insert(locations.begin(), locations.end());
  return {};
}

Status draft_model(RequestFields&, CatalogEntity& draft) {
  draft.mutable_model();
  return {};
}

Status draft_view(RequestFields& fields, CatalogEntity& draft) {
  stored::CatalogView& view = *draft.mutable_view();
  TRY_ASSIGN(const std::vector<const json::value*> columns, fields.list("columns"));
  TRY(check_column_count(columns.size()));
  for (const json::value* given : columns) {
    TRY_ASSIGN(*view.add_columns(), read_column(*given));
  }
  TRY_ASSIGN(*view.mutable_representations_json(),
             read_representations(fields.find("representations")));
  TRY_ASSIGN(std::optional<std::string> default_catalog, fields.text("defaultCatalog"));
  TRY_ASSIGN(std::optional<std::string> default_schema, fields.text("defaultSchema"));
  if (default_catalog) view.set_default_catalog(std::move(*default_catalog));
  if (default_schema) view.set_default_schema(std::move(*default_schema));
  return {};
}

Status draft_function(RequestFields& fields, CatalogEntity& draft) {
  stored::CatalogFunction& function = *draft.mutable_function();
  TRY_ASSIGN(const std::optional<std::string> type, fields.text("functionType"));
  if (!type) return illegal_argument("\"functionType\" field is required");
  TRY_ASSIGN(const std::string kind, read_kind("function type", *type, function_kinds));
  function.set_type(kind);
  TRY_ASSIGN(const bool deterministic, fields.flag("deterministic", false));
  function.set_deterministic(deterministic);
  json::array definitions;
  TRY_ASSIGN(const std::vector<const json::value*> given, fields.list("definitions"));
  if (given.empty()) {
    return illegal_argument("\"definitions\" field is required and cannot be empty");
  }
  for (size_t i = 0; i < given.size(); ++i) {
    TRY_ASSIGN(json::value one, normal_definition(*given[i], fmt::format("definitions[{}]", i)));
    definitions.push_back(std::move(one));
  }
  TRY(check_definitions(definitions));
  if (const json::value* returned = fields.find("returnType")) {
    TRY_ASSIGN(const json::value normal, normal_type(*returned));
    function.set_return_type_json(json_text(normal));
  }
  if (const json::value* returned = fields.find("returnColumns")) {
    TRY_ASSIGN(const json::value normal, normal_function_columns(*returned, "returnColumns"));
    if (!normal.get_array().empty()) function.set_return_columns_json(json_text(normal));
  }
  // What it returns stands in the function, or in each definition.
  const bool is_table = kind == "table";
  const bool is_said =
      !(is_table ? function.return_columns_json() : function.return_type_json()).empty();
  for (const json::value& one : definitions) {
    if (is_said || one.get_object().contains(is_table ? "returnColumns" : "returnType")) continue;
    return illegal_argument(
        is_table ? "\"returnColumns\" is required for TABLE function type"
                 : "\"returnType\" is required for SCALAR or AGGREGATE function type");
  }
  function.set_definitions_json(json_text(json::value(std::move(definitions))));
  return {};
}

Status draft_tag(RequestFields& fields, CatalogEntity& draft) {
  draft.mutable_tag();
  TRY_ASSIGN(const std::vector<std::string> values, fields.text_list("allowedValues"));
  for (const std::string& value : values) {
    if (is_blank(value)) {
      return illegal_argument("allowedValues cannot contain null or empty values");
    }
    if (value.size() > allowed_value_characters_max) {
      return illegal_argument(
          fmt::format("allowedValues cannot contain values longer than {} characters",
                      allowed_value_characters_max));
    }
    draft.mutable_tag()->add_allowed_values(value);
  }
  return {};
}

Status draft_policy(RequestFields& fields, CatalogEntity& draft) {
  stored::CatalogPolicy& policy = *draft.mutable_policy();
  TRY_ASSIGN(const std::string type, fields.required_text("policyType"));
  TRY_ASSIGN(*policy.mutable_content_json(), read_policy_content(type, fields.find("content")));
  policy.set_policy_type(type);
  TRY_ASSIGN(const bool enabled, fields.flag("enabled", true));
  policy.set_disabled(!enabled);
  return {};
}

struct DraftOf {
  CatalogType type;
  Status (*more)(RequestFields&, CatalogEntity&);
  bool has_properties = true;
  bool ignores_unknown = false;
};
constexpr DraftOf drafts[] = {{CatalogType::metalake, draft_nothing_more},
                              {CatalogType::catalog, draft_catalog},
                              {CatalogType::schema, draft_nothing_more},
                              {CatalogType::table, draft_table},
                              {CatalogType::topic, draft_nothing_more},
                              {CatalogType::fileset, draft_fileset},
                              {CatalogType::model, draft_model},
                              {CatalogType::view, draft_view, true, true},
                              {CatalogType::function, draft_function, false},
                              {CatalogType::tag, draft_tag},
                              {CatalogType::policy, draft_policy, false}};

Result<json::value> normal_custom_content(const json::value& content) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(content, "content"));
  json::object result;
  if (const json::value* rules = fields.find("customRules")) {
    if (!rules->is_object()) return illegal_argument("\"customRules\" must be a JSON object");
    result["customRules"] = *rules;
  }
  if (fields.find("properties") != nullptr) {
    TRY_ASSIGN(const TextMap properties, fields.text_map("properties"));
    json::object& map = result["properties"].emplace_object();
    for (const auto& [name, text] : properties) map[name] = text;
  }
  TRY_ASSIGN(const std::vector<std::string> types, fields.text_list("supportedObjectTypes"));
  if (types.empty()) return illegal_argument("supportedObjectTypes cannot be empty");
  std::set<std::string> kinds;
  for (const std::string& type : types) {
    TRY_ASSIGN(std::string kind, read_kind("object type", type, object_kinds));
    kinds.insert(std::move(kind));
  }
  result["supportedObjectTypes"] = json::array(kinds.begin(), kinds.end());
  TRY(fields.finish());
  return json::value(std::move(result));
}

}  // namespace

Result<CatalogEntity> draft_of(CatalogType type, const json::value& request, NamePattern pattern) {
  const auto* found = std::ranges::find(drafts, type, &DraftOf::type);
  if (found == std::end(drafts)) return illegal_argument("nothing of this type can be made so");
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  fields.name_pattern = pattern;
  CatalogEntity draft;
  TRY_ASSIGN(*draft.mutable_name(), fields.required_text("name"));
  TRY(check_name(type, draft.name(), pattern));
  TRY_ASSIGN(std::optional<std::string> comment, fields.text("comment"));
  if (comment) {
    TRY(check_comment(*comment));
    draft.set_comment(std::move(*comment));
  }
  if (found->has_properties) {
    TRY_ASSIGN(const TextMap properties, fields.text_map("properties"));
    TRY(check_properties(type, properties));
    draft.mutable_properties()->insert(properties.begin(), properties.end());
  }
  TRY(found->more(fields, draft));
  if (!found->ignores_unknown) TRY(fields.finish());
  return draft;
}

Status check_column_count(size_t columns) {
  if (columns <= catalog_columns_max) return {};
  return illegal_argument(fmt::format("It has at most {} columns", catalog_columns_max));
}

Result<stored::CatalogColumn> read_column(const json::value& value) {
  if (value.is_null()) return illegal_argument("column must not be null");
  TRY_ASSIGN(RequestFields fields, RequestFields::of(value, "column"));
  stored::CatalogColumn column;
  TRY_ASSIGN(const std::optional<std::string> name, fields.text("name"));
  if (!name || name->empty()) return illegal_argument("Column name cannot be null or empty.");
  column.set_name(*name);
  const json::value* type = fields.find("type");
  if (type == nullptr) return illegal_argument("Column data type cannot be null.");
  TRY_ASSIGN(const json::value normal, normal_type(*type));
  column.set_type_json(json_text(normal));
  TRY_ASSIGN(std::optional<std::string> comment, fields.text("comment"));
  if (comment) {
    TRY(check_comment(*comment));
    column.set_comment(std::move(*comment));
  }
  TRY_ASSIGN(const bool nullable, fields.flag("nullable", true));
  TRY_ASSIGN(const bool auto_increment, fields.flag("autoIncrement", false));
  column.set_not_null(!nullable);
  column.set_auto_increment(auto_increment);
  if (const json::value* by_default = fields.find("defaultValue")) {
    TRY_ASSIGN(const json::value expression, normal_expression(*by_default));
    column.set_default_json(json_text(expression));
  }
  TRY(check_column(column));
  TRY(fields.finish());
  return column;
}

Result<std::string> read_policy_content(std::string_view policy_type, const json::value* content) {
  TRY_ASSIGN(const std::string kind, read_kind("policy type", policy_type, policy_kinds));
  if (kind != policy_type) {
    return illegal_argument(fmt::format("Unknown policy type: {}", policy_type));
  }
  if (content == nullptr) return illegal_argument("\"content\" is required and cannot be null");
  if (!content->is_object()) return illegal_argument("\"content\" must be a JSON object");
  if (kind != "custom") return json_text(*content);
  TRY_ASSIGN(const json::value normal, normal_custom_content(*content));
  return json_text(normal);
}

Result<std::string> read_representations(const json::value* representations) {
  const json::array* array = representations == nullptr ? nullptr : representations->if_array();
  if (array == nullptr || array->empty()) {
    return illegal_argument("\"representations\" field is required and cannot be empty");
  }
  json::array result;
  std::set<std::string> dialects;
  for (const json::value& value : *array) {
    if (value.is_null()) return illegal_argument("representation must not be null");
    TRY_ASSIGN(RequestFields fields, RequestFields::of(value, "representation"));
    TRY_ASSIGN(const std::optional<std::string> type, fields.text("type"));
    if (type && *type != "sql") {
      return illegal_argument("Unsupported representation type: " + *type);
    }
    TRY_ASSIGN(const std::string dialect, fields.required_text("dialect"));
    TRY_ASSIGN(const std::string sql, fields.required_text("sql"));
    TRY(fields.finish());
    if (!dialects.insert(dialect).second) {
      return illegal_argument("Duplicate SQL representation dialect: " + dialect);
    }
    result.push_back(json::object{{"type", "sql"}, {"dialect", dialect}, {"sql", sql}});
  }
  return json_text(json::value(std::move(result)));
}

}  // namespace trellis
