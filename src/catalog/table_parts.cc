#include "catalog/table_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "catalog/catalog_error.h"
#include "catalog/data_type.h"
#include "catalog/request_fields.h"

namespace trellis {
namespace {

std::string_view chars_of(const json::value& value) {
  const json::string& text = value.get_string();
  return {text.data(), text.size()};
}

Status check_object(const json::value& value, std::string_view what) {
  if (value.is_object()) return {};
  return illegal_argument(
      fmt::format("Cannot parse {} from invalid JSON: {}", what, shown(&value)));
}

// REQUIRES: an object. `what` is the thing, `part` what is missing in it.
Result<const json::value*> needed(const json::value& value, std::string_view name,
                                  std::string_view what, std::string_view part) {
  if (const json::value* found = value.get_object().if_contains(name)) return found;
  return illegal_argument(
      fmt::format("Cannot parse {} from missing {}: {}", what, part, shown(&value)));
}

Result<json::value> needed_text(const json::value& value, std::string_view name) {
  const json::value* found = value.get_object().if_contains(name);
  if (found == nullptr)
    return illegal_argument(fmt::format("Cannot parse missing string: {}", name));
  if (found->is_string()) return *found;
  return illegal_argument(fmt::format("Cannot parse to a string value {}: {}", name, shown(found)));
}

// One of some words in any case; nothing if it is none of them.
std::optional<std::string_view> word_of(std::string_view text,
                                        std::span<const std::string_view> words) {
  const std::string lower = ascii_lowered(text);
  const auto found = std::ranges::find(words, lower);
  if (found == words.end()) return std::nullopt;
  return *found;
}

// A text of the object that is one of some words; `by_default` if it is not there.
Result<std::string_view> needed_word(const json::value& value, std::string_view name,
                                     std::span<const std::string_view> words, std::string_view what,
                                     std::string_view by_default = {}) {
  if (!by_default.empty() && !value.get_object().contains(name)) return by_default;
  TRY_ASSIGN(const json::value text, needed_text(value, name));
  if (const auto word = word_of(chars_of(text), words)) return *word;
  return illegal_argument(fmt::format("Invalid {}: {}. Valid values are: [{}]", what, shown(&text),
                                      fmt::join(words, ", ")));
}

// ["a","b"], not empty.
Result<json::value> field_name(const json::value& value, std::string_view name) {
  const json::array* names = value.if_array();
  if (names == nullptr) {
    return illegal_argument(
        fmt::format("Cannot parse from non-array value: {}: {}", name, shown(&value)));
  }
  if (names->empty()) return illegal_argument(fmt::format("\"{}\" cannot be empty", name));
  for (const json::value& part : *names) {
    if (part.is_string()) continue;
    return illegal_argument(
        fmt::format("Cannot parse to a string value {}: {}", name, shown(&part)));
  }
  return value;
}

Result<json::value> needed_field_name(const json::value& value) {
  const json::value* name = value.get_object().if_contains("fieldName");
  if (name == nullptr) return illegal_argument("Cannot parse missing property: fieldName");
  return field_name(*name, "fieldName");
}

// [["a"],["b","c"]]
Result<json::value> needed_field_names(const json::value& value, std::string_view what) {
  const json::value* names = value.get_object().if_contains("fieldNames");
  if (names == nullptr || !names->is_array()) {
    return illegal_argument(
        fmt::format("{} must have array of fieldNames, but found: {}", what, shown(&value)));
  }
  for (const json::value& name : names->get_array()) TRY(field_name(name, "fieldNames"));
  return *names;
}

using Normal = Result<json::value> (*)(const json::value&);
Result<json::value> normal_each(const json::value& list, std::string_view what, Normal normal) {
  const json::array* array = list.if_array();
  if (array == nullptr) {
    return illegal_argument(fmt::format("Cannot parse {} from non-array: {}", what, shown(&list)));
  }
  json::array result;
  for (const json::value& element : *array) {
    TRY_ASSIGN(json::value one, normal(element));
    result.push_back(std::move(one));
  }
  return json::value(std::move(result));
}

Result<json::value> needed_args(const json::value& value, std::string_view what) {
  TRY_ASSIGN(const json::value* args, needed(value, "funcArgs", what, "function args"));
  return normal_each(*args, "funcArgs", normal_expression);
}

Result<json::value> normal_literal(const json::value& value) {
  TRY(check_object(value, "function arg"));
  TRY_ASSIGN(json::value normal, normal_expression(value));
  if (chars_of(normal.at("type")) == "literal") return normal;
  return illegal_argument("It must be a literal, but found: " + shown(&value));
}

Result<json::value> normal_literals(const json::value& value) {
  return normal_each(value, "literals", normal_literal);
}

Result<json::value> properties_of(const json::value& value) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(value, "it"));
  TRY_ASSIGN(const TextMap properties, fields.text_map("properties"));
  json::object result;
  for (const auto& [name, text] : properties) result[name] = text;
  return json::value(std::move(result));
}

constexpr std::string_view expression_types[] = {"literal", "field", "function", "unparsed"};
constexpr std::string_view partition_types[] = {"range", "list", "identity"};
constexpr std::string_view partitionings[] = {"identity", "year",     "month", "day",   "hour",
                                              "bucket",   "truncate", "list",  "range", "function"};
constexpr std::string_view distributions[] = {"none", "hash", "range", "even"};
constexpr std::string_view directions[] = {"asc", "desc"};
constexpr std::string_view null_orderings[] = {"nulls_first", "nulls_last"};
constexpr std::string_view index_types[] = {"primary_key",
                                            "unique_key",
                                            "scalar",
                                            "btree",
                                            "bitmap",
                                            "label_list",
                                            "inverted",
                                            "vector",
                                            "ivf_flat",
                                            "ivf_sq",
                                            "ivf_pq",
                                            "ivf_hnsw_sq",
                                            "ivf_hnsw_pq",
                                            "data_skipping_minmax",
                                            "data_skipping_bloom_filter",
                                            "data_skipping_set",
                                            "data_skipping_ngrambfv1",
                                            "data_skipping_tokenbfv1",
                                            "data_skipping_vector_similarity",
                                            "data_skipping_annoy",
                                            "data_skipping_usearch"};

// "day=1/hour=2"
Result<std::string> name_of_values(const json::array& names, const json::array& values) {
  if (names.empty() || names.size() != values.size()) {
    return illegal_argument("An identity partition without name needs a value for each field");
  }
  std::string result;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) result += '/';
    std::string field;
    for (const json::value& part : names[i].get_array()) {
      if (!field.empty()) field += '.';
      field += chars_of(part);
    }
    const json::value& value = values[i].at("value");
    result += fmt::format("{}={}", field, value.is_null() ? "null" : chars_of(value));
  }
  return result;
}

Status add_identity(const json::value& value, json::object& result) {
  TRY_ASSIGN(json::value names, needed_field_names(value, "Identity partition"));
  const json::value* values = value.get_object().if_contains("values");
  if (values == nullptr || !values->is_array()) {
    return illegal_argument("Identity partition must have array of values, but found: " +
                            shown(&value));
  }
  TRY_ASSIGN(json::value literals, normal_literals(*values));
  if (!result.contains("name")) {
    TRY_ASSIGN(result["name"], name_of_values(names.get_array(), literals.get_array()));
  }
  result["fieldNames"] = std::move(names);
  result["values"] = std::move(literals);
  return {};
}

Status add_lists(const json::value& value, json::object& result) {
  const json::value* lists = value.get_object().if_contains("lists");
  if (lists == nullptr || !lists->is_array()) {
    return illegal_argument("List partition must have array of lists, but found: " + shown(&value));
  }
  TRY_ASSIGN(result["lists"], normal_each(*lists, "lists", normal_literals));
  return {};
}

Status add_bounds(const json::value& value, json::object& result) {
  for (const char* bound : {"upper", "lower"}) {
    const json::value* literal = value.get_object().if_contains(bound);
    if (literal == nullptr) {
      return illegal_argument(
          fmt::format("Range partition must have {}, but found: {}", bound, shown(&value)));
    }
    TRY_ASSIGN(result[bound], normal_literal(*literal));
  }
  return {};
}

// Of a list or range partitioning: partitions of its own type.
Status add_assignments(const json::value& value, std::string_view type, json::object& result) {
  const json::value* assignments = value.get_object().if_contains("assignments");
  if (assignments == nullptr || assignments->is_null()) {
    result["assignments"] = json::array();
    return {};
  }
  TRY_ASSIGN(json::value normal, normal_each(*assignments, "assignments", normal_partition));
  for (const json::value& assignment : normal.get_array()) {
    if (chars_of(assignment.at("type")) == type) continue;
    return illegal_argument(fmt::format("Cannot parse {} partitioning from non-{} assignment: {}",
                                        type, type, shown(&assignment)));
  }
  result["assignments"] = std::move(normal);
  return {};
}

Status add_number(const json::value& value, const char* name, json::object& result) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(value, "it"));
  TRY_ASSIGN(result[name], fields.number(name));
  return {};
}

}  // namespace

Result<json::value> normal_expression(const json::value& value) {
  TRY(check_object(value, "function arg"));
  TRY(needed(value, "type", "function arg", "type"));
  TRY_ASSIGN(const std::string_view type,
             needed_word(value, "type", expression_types, "function argument type"));
  json::object result{{"type", type}};
  if (type == "literal") {
    TRY_ASSIGN(const json::value* data_type, needed(value, "dataType", "literal arg", "data type"));
    TRY_ASSIGN(const json::value* literal, needed(value, "value", "literal arg", "literal value"));
    TRY_ASSIGN(result["dataType"], normal_type(*data_type));
    if (!literal->is_null()) TRY(needed_text(value, "value"));
    result["value"] = *literal;
  } else if (type == "field") {
    TRY(needed(value, "fieldName", "field reference arg", "field name"));
    TRY_ASSIGN(result["fieldName"], needed_field_name(value));
  } else if (type == "function") {
    TRY(needed(value, "funcName", "function arg", "function name"));
    TRY_ASSIGN(result["funcName"], needed_text(value, "funcName"));
    TRY_ASSIGN(result["funcArgs"], needed_args(value, "function arg"));
  } else {
    TRY_ASSIGN(result["unparsedExpression"], needed_text(value, "unparsedExpression"));
  }
  return json::value(std::move(result));
}

Result<json::value> normal_partition(const json::value& value) {
  if (!value.is_object()) {
    return illegal_argument("Partition must be a valid JSON object, but found: " + shown(&value));
  }
  if (!value.get_object().contains("type")) {
    return illegal_argument("Partition must have a type field, but found: " + shown(&value));
  }
  TRY_ASSIGN(const std::string_view type,
             needed_word(value, "type", partition_types, "partition type"));
  json::object result{{"type", type}};
  const json::value* name = value.get_object().if_contains("name");
  if (name != nullptr && !name->is_null()) {
    TRY_ASSIGN(result["name"], needed_text(value, "name"));
  } else if (type != "identity") {
    return illegal_argument(fmt::format("{} partition must have name, but found: {}",
                                        type == "list" ? "List" : "Range", shown(&value)));
  }
  if (type == "identity") TRY(add_identity(value, result));
  if (type == "list") TRY(add_lists(value, result));
  if (type == "range") TRY(add_bounds(value, result));
  TRY_ASSIGN(result["properties"], properties_of(value));
  return json::value(std::move(result));
}

Result<json::value> normal_partitioning(const json::value& value) {
  TRY(check_object(value, "partitioning"));
  TRY(needed(value, "strategy", "partitioning", "strategy"));
  TRY_ASSIGN(const std::string_view strategy,
             needed_word(value, "strategy", partitionings, "partitioning strategy"));
  json::object result{{"strategy", strategy}};
  if (strategy == "function") {
    TRY_ASSIGN(result["funcName"], needed_text(value, "funcName"));
    TRY_ASSIGN(result["funcArgs"], needed_args(value, "function partitioning"));
    return json::value(std::move(result));
  }
  if (strategy == "bucket") TRY(add_number(value, "numBuckets", result));
  if (strategy == "truncate") TRY(add_number(value, "width", result));
  if (strategy == "bucket" || strategy == "list") {
    TRY_ASSIGN(result["fieldNames"], needed_field_names(value, "Partitioning"));
  } else {
    TRY_ASSIGN(result["fieldName"], needed_field_name(value));
  }
  if (strategy == "list" || strategy == "range") TRY(add_assignments(value, strategy, result));
  return json::value(std::move(result));
}

Result<json::value> normal_distribution(const json::value& value) {
  TRY(check_object(value, "distribution"));
  TRY_ASSIGN(const std::string_view strategy,
             needed_word(value, "strategy", distributions, "distribution strategy", "hash"));
  json::object result{{"strategy", strategy}};
  TRY(add_number(value, "number", result));
  if (result["number"].to_number<int>() < -1) {
    return illegal_argument("bucketNum must be greater than or equal -1");
  }
  TRY_ASSIGN(result["funcArgs"], needed_args(value, "distribution"));
  return json::value(std::move(result));
}

Result<json::value> normal_sort_order(const json::value& value) {
  TRY(check_object(value, "sort order"));
  TRY_ASSIGN(const json::value* term, needed(value, "sortTerm", "sort order", "sort term"));
  json::object result;
  TRY_ASSIGN(result["sortTerm"], normal_expression(*term));
  TRY_ASSIGN(const std::string_view direction,
             needed_word(value, "direction", directions, "sort direction", "asc"));
  TRY_ASSIGN(const std::string_view nulls,
             needed_word(value, "nullOrdering", null_orderings, "null ordering",
                         null_orderings[direction == "desc"]));
  result["direction"] = direction;
  result["nullOrdering"] = nulls;
  return json::value(std::move(result));
}

Result<json::value> normal_index(const json::value& value) {
  if (!value.is_object()) {
    return illegal_argument("Index must be a valid JSON object, but found: " + shown(&value));
  }
  TRY(needed(value, "indexType", "index", "type"));
  TRY_ASSIGN(const std::string_view type,
             needed_word(value, "indexType", index_types, "index type"));
  json::object result{{"indexType", ascii_uppered(type)}};
  const json::value* name = value.get_object().if_contains("name");
  if (name != nullptr && !name->is_null()) {
    TRY_ASSIGN(result["name"], needed_text(value, "name"));
  }
  TRY(needed(value, "fieldNames", "index", "field names"));
  TRY_ASSIGN(json::value fields, needed_field_names(value, "Index"));
  if (fields.get_array().empty()) {
    return illegal_argument("The index must be set with corresponding column names");
  }
  result["fieldNames"] = std::move(fields);
  TRY_ASSIGN(result["properties"], properties_of(value));
  return json::value(std::move(result));
}

}  // namespace trellis
