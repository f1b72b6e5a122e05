#include "catalog/entity_json.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <map>
#include <string_view>

#include "catalog/drafts.h"
#include "catalog/table_parts.h"
#include "json/json_text.h"

namespace trellis {
namespace {

// ,"name":
void append_name(Bytes& out, std::string_view name) {
  if (!out.empty() && out.back() != '{') out += ',';
  out += '"';
  out += name;
  out += "\":";
}
void append_member(Bytes& out, std::string_view name, std::string_view text) {
  append_name(out, name);
  append_json_string(out, text);
}
void append_member(Bytes& out, std::string_view name, bool flag) {
  append_name(out, name);
  out += flag ? "true" : "false";
}
void append_number(Bytes& out, std::string_view name, uint64_t number) {
  append_name(out, name);
  fmt::format_to(std::back_inserter(out), "{}", number);
}
// Text that is JSON itself.
void append_json_member(Bytes& out, std::string_view name, std::string_view text) {
  append_name(out, name);
  out += text;
}
void append_list(Bytes& out, std::string_view name, std::string_view text) {
  append_json_member(out, name, text.empty() ? "[]" : text);
}

template <class Texts>
void append_texts(Bytes& out, std::string_view name, const Texts& texts) {
  append_name(out, name);
  out += '[';
  bool is_first = true;
  for (const std::string& text : texts) {
    if (!std::exchange(is_first, false)) out += ',';
    append_json_string(out, text);
  }
  out += ']';
}

void append_column(Bytes& out, const stored::CatalogColumn& column) {
  out += '{';
  append_member(out, "name", column.name());
  append_json_member(out, "type", column.type_json());
  if (column.has_comment()) append_member(out, "comment", column.comment());
  append_member(out, "nullable", !column.not_null());
  append_member(out, "autoIncrement", column.auto_increment());
  if (!column.default_json().empty()) {
    append_json_member(out, "defaultValue", column.default_json());
  }
  out += '}';
}

template <class Columns>
void append_columns(Bytes& out, const Columns& columns) {
  append_name(out, "columns");
  out += '[';
  for (int i = 0; i < columns.size(); ++i) {
    if (i > 0) out += ',';
    append_column(out, columns[i]);
  }
  out += ']';
}

void append_nothing(Bytes&, const stored::CatalogEntity&) {}

void append_catalog(Bytes& out, const stored::CatalogEntity& entity) {
  append_member(out, "type", entity.catalog().type());
  append_member(out, "provider", entity.catalog().provider());
}

void append_table(Bytes& out, const stored::CatalogEntity& entity) {
  const stored::CatalogTable& table = entity.table();
  append_columns(out, table.columns());
  append_list(out, "partitioning", table.partitioning_json());
  append_json_member(
      out, "distribution",
      table.distribution_json().empty() ? no_distribution_json : table.distribution_json());
  append_list(out, "sortOrders", table.sort_orders_json());
  append_list(out, "indexes", table.indexes_json());
}

void append_fileset(Bytes& out, const stored::CatalogEntity& entity) {
  const stored::CatalogFileset& fileset = entity.fileset();
  append_member(out, "type", fileset.type());
  const auto location = fileset.locations().find(std::string(unknown_location));
  if (location != fileset.locations().end()) {
    append_member(out, "storageLocation", location->second);
  }
  append_text_map(out, "storageLocations", fileset.locations());
}

void append_model(Bytes& out, const stored::CatalogEntity& entity) {
  append_number(out, "latestVersion", entity.model().next_version());
}

void append_view(Bytes& out, const stored::CatalogEntity& entity) {
  const stored::CatalogView& view = entity.view();
  append_columns(out, view.columns());
  append_list(out, "representations", view.representations_json());
  if (view.has_default_catalog()) append_member(out, "defaultCatalog", view.default_catalog());
  if (view.has_default_schema()) append_member(out, "defaultSchema", view.default_schema());
}

void append_function(Bytes& out, const stored::CatalogEntity& entity) {
  const stored::CatalogFunction& function = entity.function();
  append_member(out, "functionType", function.type());
  append_member(out, "deterministic", function.deterministic());
  if (!function.return_type_json().empty()) {
    append_json_member(out, "returnType", function.return_type_json());
  }
  if (!function.return_columns_json().empty()) {
    append_json_member(out, "returnColumns", function.return_columns_json());
  }
  append_list(out, "definitions", function.definitions_json());
  append_number(out, "version", entity.version() == 0 ? 0 : entity.version() - 1);
}

void append_tag(Bytes& out, const stored::CatalogEntity& entity) {
  if (entity.tag().allowed_values_size() == 0) return;
  append_texts(out, "allowedValues", entity.tag().allowed_values());
}

void append_policy(Bytes& out, const stored::CatalogEntity& entity) {
  append_member(out, "policyType", entity.policy().policy_type());
  append_member(out, "enabled", !entity.policy().disabled());
  append_json_member(out, "content", entity.policy().content_json());
}

struct EntityForm {
  CatalogType type;
  void (*append)(Bytes&, const stored::CatalogEntity&);
  bool has_properties = true;
};
constexpr EntityForm entity_forms[] = {{CatalogType::metalake, append_nothing},
                                       {CatalogType::catalog, append_catalog},
                                       {CatalogType::schema, append_nothing},
                                       {CatalogType::table, append_table},
                                       {CatalogType::topic, append_nothing},
                                       {CatalogType::fileset, append_fileset},
                                       {CatalogType::model, append_model},
                                       {CatalogType::view, append_view},
                                       {CatalogType::function, append_function, false},
                                       {CatalogType::tag, append_tag},
                                       {CatalogType::policy, append_policy, false}};

using ProtobufMap = google::protobuf::Map<std::string, std::string>;

void append_properties(Bytes& out, CatalogType type, const stored::CatalogEntity& entity,
                       ShowInUse show_in_use) {
  const bool has_in_use = type == CatalogType::metalake || type == CatalogType::catalog;
  if (!has_in_use || show_in_use == ShowInUse::no) {
    append_text_map(out, "properties", entity.properties());
    return;
  }
  ProtobufMap properties = entity.properties();
  properties["in-use"] = entity.disabled() ? "false" : "true";
  append_text_map(out, "properties", properties);
}

}  // namespace

std::string instant_text(uint64_t time_ms) {
  const std::chrono::sys_time<std::chrono::milliseconds> time{std::chrono::milliseconds(time_ms)};
  return fmt::format("{:%FT%T}.{:03}Z", std::chrono::time_point_cast<std::chrono::seconds>(time),
                     time_ms % 1000);
}

void append_audit(Bytes& out, const stored::CatalogAudit& audit) {
  append_name(out, "audit");
  out += '{';
  append_member(out, "creator", audit.creator());
  append_member(out, "createTime", instant_text(audit.created_ms()));
  if (!audit.modifier().empty()) {
    append_member(out, "lastModifier", audit.modifier());
    append_member(out, "lastModifiedTime", instant_text(audit.modified_ms()));
  }
  out += '}';
}

void append_text_map(Bytes& out, std::string_view name, const ProtobufMap& map) {
  const std::map<std::string_view, std::string_view> sorted(map.begin(), map.end());
  append_name(out, name);
  out += '{';
  bool is_first = true;
  for (const auto& [key, value] : sorted) {
    if (!std::exchange(is_first, false)) out += ',';
    append_json_string(out, key);
    out += ':';
    append_json_string(out, value);
  }
  out += '}';
}

void append_entity(Bytes& out, CatalogType type, const stored::CatalogEntity& entity,
                   ShowInUse show_in_use) {
  out += '{';
  append_member(out, "name", entity.name());
  if (entity.has_comment()) append_member(out, "comment", entity.comment());
  for (const EntityForm& form : entity_forms) {
    if (form.type != type) continue;
    form.append(out, entity);
    if (form.has_properties) append_properties(out, type, entity, show_in_use);
  }
  append_audit(out, entity.audit());
  out += '}';
}

void append_model_version(Bytes& out, const stored::CatalogModelVersion& version) {
  out += '{';
  append_number(out, "version", version.version());
  if (version.has_comment()) append_member(out, "comment", version.comment());
  append_texts(out, "aliases", version.aliases());
  const auto uri = version.uris().find(std::string(unknown_location));
  if (uri != version.uris().end()) append_member(out, "uri", uri->second);
  append_text_map(out, "uris", version.uris());
  append_text_map(out, "properties", version.properties());
  append_audit(out, version.audit());
  out += '}';
}

void append_statistic(Bytes& out, std::string_view name,
                      const stored::CatalogStatistic& statistic) {
  out += '{';
  append_member(out, "name", name);
  append_json_member(out, "value", statistic.value_json());
  append_member(out, "reserved", false);
  append_member(out, "modifiable", true);
  append_audit(out, statistic.audit());
  out += '}';
}

}  // namespace trellis
