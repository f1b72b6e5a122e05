#include "catalog/catalog_error.h"

#include <fmt/format.h>

#include <array>

#include "base/bytes.h"

namespace trellis {
namespace {

constexpr size_t type_count = std::size(catalog_types);
using Reasons = std::array<std::string_view, type_count>;

// By CatalogType.
constexpr Reasons no_such_reasons = {
    "no_such_metalake", "no_such_catalog",  "no_such_schema",  "no_such_broker",
    "no_such_table",    "no_such_topic",    "no_such_fileset", "no_such_model",
    "no_such_view",     "no_such_function", "no_such_tag",     "no_such_policy",
    "no_such_user",     "no_such_group",    "no_such_role",    "no_such_metadata_object"};
constexpr Reasons exists_reasons = {
    "metalake_exists", "catalog_exists",  "schema_exists",  "broker_exists",
    "table_exists",    "topic_exists",    "fileset_exists", "model_exists",
    "view_exists",     "function_exists", "tag_exists",     "policy_exists",
    "user_exists",     "group_exists",    "role_exists",    "column_exists"};
constexpr Reasons non_empty_reasons = {"non_empty_metalake", "non_empty_catalog",
                                       "non_empty_schema"};
constexpr Reasons not_in_use_reasons = {"metalake_not_in_use", "catalog_not_in_use"};
constexpr Reasons in_use_reasons = {"metalake_in_use", "catalog_in_use"};

Error about(Code code, const Reasons& reasons, CatalogType type, std::string_view name,
            std::string_view what) {
  return {code, fmt::format("{} {} {}", catalog_word(type).name, quote(name), what),
          reasons[static_cast<size_t>(type)]};
}

}  // namespace

Error illegal_argument(std::string message) {
  return {Code::invalid, std::move(message), "illegal_argument"};
}

Error illegal_name(std::string message) {
  return {Code::invalid, std::move(message), "illegal_name"};
}

Error no_such(CatalogType type, std::string_view name) {
  return about(Code::not_found, no_such_reasons, type, name, "does not exist");
}

Error already_exists(CatalogType type, std::string_view name) {
  return about(Code::exists, exists_reasons, type, name, "already exists");
}

Error non_empty(CatalogType type, std::string_view name) {
  return about(Code::refused, non_empty_reasons, type, name,
               "is not empty: drop what is in it, or force it");
}

Error not_in_use(CatalogType type, std::string_view name) {
  return about(Code::refused, not_in_use_reasons, type, name, "is not in use: enable it first");
}

Error in_use(CatalogType type, std::string_view name) {
  return about(Code::refused, in_use_reasons, type, name,
               "is in use: disable it first, or force it");
}

Error version_changed(CatalogType type, std::string_view name) {
  return {Code::conflict,
          fmt::format("{} {} was changed by somebody else: load it and try again",
                      catalog_word(type).name, quote(name)),
          "version_changed"};
}

Error does_not_support(CatalogType type) {
  return {Code::unsupported,
          fmt::format("Catalog does not support {} operations", catalog_word(type).name),
          "unsupported"};
}

Error illegal_privilege(std::string message) {
  return {Code::invalid, std::move(message), "illegal_privilege"};
}

Error forbidden(std::string message) { return {Code::denied, std::move(message), "forbidden"}; }

Status as_object(Status status) {
  if (status) return status;
  Error error = status.error();
  if (error.reason.starts_with("no_such_") && error.reason != "no_such_metalake")
    error.reason = "no_such_metadata_object";
  return error;
}

}  // namespace trellis
