#include "cli/catalog_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "catalog/secrets.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

// Tables may be large, and an answer is held in memory.
constexpr uint64_t page_in_full = 250;

// Of all others it is a property like any.
bool is_disabled(const CatalogKind& kind, const json::object& entity) {
  return (&kind == &metalake_kind || &kind == &catalog_kind) &&
         text_at(object_at(entity, "properties"), "in-use") == "false";
}

std::vector<std::string> with(std::span<const std::string> above, std::string name) {
  std::vector<std::string> names(above.begin(), above.end());
  names.push_back(std::move(name));
  return names;
}

// What users, groups and roles are answered with while authorization is off.
constexpr unsigned status_off = 405;

}  // namespace

bool is_relation_record(std::string_view type) {
  return type == tag_object_record || type == policy_object_record || type == role_record ||
         type == user_record || type == group_record || type == owner_record;
}

bool is_member_record(std::string_view type) {
  return type == partition_record || type == model_version_record || type == statistics_record;
}

Result<ApiAnswer> CatalogWalk::get(const std::string& rest) {
  return api_.ask({.target = options_.front + rest, .headers = options_.headers});
}

Result<std::optional<ApiAnswer>> CatalogWalk::get_if_known(const std::string& rest) {
  auto answer = api_.ask({.target = options_.front + rest,
                          .headers = options_.headers,
                          .expected_status = status_off});
  if (answer && answer->status != status_off) return std::optional(std::move(*answer));
  if (answer || is_unknown_there(answer.error())) return std::optional<ApiAnswer>();
  return std::move(answer).error();
}

bool CatalogWalk::is_unknown_there(const Error& error) const {
  return options_.is_gravitino && !visitor_failed_ &&
         (error.code == Code::not_found || error.code == Code::invalid);
}

Status CatalogWalk::tell(CatalogRecord record) {
  Status told = visit_(std::move(record));
  if (!told) visitor_failed_ = true;
  return told;
}

Result<json::object> CatalogWalk::load(const CatalogPath& path) {
  TRY_ASSIGN(const ApiAnswer answer, get(entity_rest(path)));
  return object_at(answer.object, path.kind->name);
}

Status CatalogWalk::each(const CatalogKind& kind, std::span<const std::string> above,
                         const std::function<Status(const json::object&)>& visit) {
  const std::string rest = entities_rest(kind, above);
  std::string next;
  for (;;) {
    // Gravitino knows nothing of pages, and of details only where it says names otherwise.
    std::string target = fmt::format("{}?details=true&limit={}", rest, page_in_full);
    if (!next.empty()) target += "&pageToken=" + percent_encode(next);
    TRY_ASSIGN(const ApiAnswer answer, get(target));
    for (const json::value& value : array_at(answer.object, kind.plural))
      if (value.is_object()) TRY(visit(value.get_object()));
    for (const json::value& value : array_at(answer.object, "identifiers")) {
      if (!value.is_object()) continue;
      const std::string name = text_at(value.get_object(), "name");
      TRY_ASSIGN(const json::object entity, load({&kind, with(above, name)}));
      TRY(visit(entity));
    }
    const std::string before = std::exchange(next, text_at(answer.object, "nextPageToken"));
    if (next.empty() || next == before) return {};
  }
}

bool CatalogWalk::may_have(const CatalogKind& kind) const {
  if (!options_.is_gravitino) return true;
  if (catalog_type_ == "relational")
    return kind.name == "table" || kind.name == "view" || kind.name == "function";
  return (catalog_type_ == "messaging" ? "topic" : catalog_type_) == kind.name;
}

Status CatalogWalk::visit_members(const CatalogPath& path, std::string_view rest,
                                  std::string_view array, std::string_view type) {
  TRY_ASSIGN(const ApiAnswer answer, get(entity_rest(path) + std::string(rest)));
  for (const json::value& value : array_at(answer.object, array))
    if (value.is_object()) TRY(tell({std::string(type), path.names, value.get_object()}));
  return {};
}

Status CatalogWalk::visit_contents(const CatalogPath& path, const json::object& entity) {
  const CatalogKind& kind = *path.kind;
  const auto go_into = [&](const CatalogKind& child) {
    return each(child, path.names, [&](const json::object& found) {
      return visit_one(child, with(path.names, text_at(found, "name")), found);
    });
  };
  if (is_disabled(kind, entity)) {
    if (options_.skipped) options_.skipped(path.text(), "disabled: what is in it is left out");
    return {};
  }
  if (&kind == &metalake_kind) {
    TRY(visit_principals(path));
    for (const CatalogKind& label : label_kinds) {
      const Status done = go_into(label);
      // Older ones have no policies.
      if (!done && !is_unknown_there(done.error())) return done;
    }
    TRY(go_into(catalog_kind));
    return visit_relations(path);
  }
  if (&kind == &catalog_kind) {
    catalog_type_ = text_at(entity, "type");
    return go_into(schema_kind);
  }
  if (&kind == &schema_kind) {
    for (const CatalogKind& leaf : leaf_kinds) {
      if (!may_have(leaf)) continue;
      const Status done = go_into(leaf);
      const bool is_rare = leaf.name == "view" || leaf.name == "function";
      if (!done && !(is_rare && is_unknown_there(done.error()))) return done;
    }
    return {};
  }
  if (kind.name == "model")
    return visit_members(path, "/versions?details=true", "infos", model_version_record);
  if (kind.name != "table") return {};
  const bool is_partitioned = !array_at(entity, "partitioning").empty();
  if (is_partitioned)
    TRY(visit_members(path, "/partitions?details=true", "partitions", partition_record));
  return visit_statistics(path, is_partitioned);
}

Status CatalogWalk::visit_relations(const CatalogPath& metalake) {
  for (const CatalogKind& label : label_kinds) {
    const Status done = each(label, metalake.names, [&](const json::object& found) {
      return visit_labelled({&label, with(metalake.names, text_at(found, "name"))});
    });
    if (!done && !is_unknown_there(done.error())) return done;
  }
  return visit_roles(metalake);
}

Status CatalogWalk::visit_labelled(const CatalogPath& label) {
  const bool is_tag = label.kind->name == "tag";
  TRY_ASSIGN(const ApiAnswer answer, get(entity_rest(label) + "/objects"));
  for (const json::value& value : array_at(answer.object, "metadataObjects")) {
    if (!value.is_object()) continue;
    json::object object = value.get_object();
    if (is_tag) {
      TRY_ASSIGN(
          const ApiAnswer on,
          get(fmt::format("/metalakes/{}/objects/{}/{}/tags/{}", percent_encode(label.names[0]),
                          text_at(object, "type"), percent_encode(text_at(object, "fullName")),
                          percent_encode(label.names[1]))));
      const json::array& values = array_at(object_at(on.object, "tag"), "assignmentValues");
      if (!values.empty()) object["values"] = values;
    }
    TRY(tell({std::string(is_tag ? tag_object_record : policy_object_record), label.names,
              std::move(object)}));
  }
  return {};
}

Status CatalogWalk::visit_roles(const CatalogPath& metalake) {
  const std::string rest = entity_rest(metalake);
  TRY_ASSIGN(const auto roles, get_if_known(rest + "/roles"));
  if (!roles) return {};
  for (const json::value& name : array_at(roles->object, "names")) {
    if (!name.is_string()) continue;
    const std::string text(name.get_string());
    TRY_ASSIGN(const ApiAnswer answer, get(rest + "/roles/" + percent_encode(text)));
    TRY(tell(
        {std::string(role_record), with(metalake.names, text), object_at(answer.object, "role")}));
  }
  return {};
}

Status CatalogWalk::visit_principals(const CatalogPath& metalake) {
  const std::string rest = entity_rest(metalake);
  for (const auto& [plural, type] :
       {std::pair("users", user_record), std::pair("groups", group_record)}) {
    TRY_ASSIGN(const auto answer, get_if_known(fmt::format("{}/{}?details=true", rest, plural)));
    has_owners_ = answer.has_value();
    if (!answer) return {};
    for (const json::value& value : array_at(answer->object, plural)) {
      if (!value.is_object()) continue;
      const json::object& found = value.get_object();
      TRY(tell({std::string(type), with(metalake.names, text_at(found, "name")), found}));
    }
  }
  return {};
}

Status CatalogWalk::visit_owner(const CatalogPath& path) {
  if (!has_owners_) return {};
  const std::string& metalake = path.names.front();
  const auto first = path.names.begin() + (path.names.size() > 1 ? 1 : 0);
  const std::string full_name = fmt::format("{}", fmt::join(first, path.names.end(), "."));
  TRY_ASSIGN(const auto answer,
             get_if_known(fmt::format("/metalakes/{}/owners/{}/{}", percent_encode(metalake),
                                      path.kind->name, percent_encode(full_name))));
  if (!answer) return {};
  const json::object& owner = object_at(answer->object, "owner");
  if (text_at(owner, "name").empty()) return {};
  json::object object{{"fullName", full_name}, {"type", path.kind->name}};
  object["ownerType"] = text_at(owner, "type");
  return tell({std::string(owner_record), {metalake, text_at(owner, "name")}, std::move(object)});
}

Status CatalogWalk::visit_statistics(const CatalogPath& table, bool is_partitioned) {
  const std::string rest =
      fmt::format("/metalakes/{}/objects/table/{}/statistics", percent_encode(table.names[0]),
                  percent_encode(fmt::format(
                      "{}", fmt::join(table.names.begin() + 1, table.names.end(), "."))));
  // Only those that one can set.
  const auto told = [&](json::object record, const json::array& statistics) -> Status {
    json::object values;
    for (const json::value& value : statistics) {
      if (!value.is_object()) continue;
      const json::object& statistic = value.get_object();
      const std::string name = text_at(statistic, "name");
      if (name.starts_with("custom-") && statistic.contains("value"))
        values[name] = statistic.at("value");
    }
    if (values.empty()) return {};
    record["statistics"] = std::move(values);
    return tell({std::string(statistics_record), table.names, std::move(record)});
  };
  TRY_ASSIGN(const auto own, get_if_known(rest));
  if (!own) return {};
  TRY(told({}, array_at(own->object, "statistics")));
  if (!is_partitioned) return {};
  TRY_ASSIGN(const auto of_partitions, get_if_known(rest + "/partitions?from=%01"));
  if (!of_partitions) return {};
  for (const json::value& value : array_at(of_partitions->object, "partitionStatistics")) {
    if (!value.is_object()) continue;
    const json::object& partition = value.get_object();
    TRY(told({{"partitionName", text_at(partition, "partitionName")}},
             array_at(partition, "statistics")));
  }
  return {};
}

void CatalogWalk::leave_out_secrets(const CatalogPath& path, json::object& catalog) const {
  if (!catalog.contains("properties") || !catalog["properties"].is_object()) return;
  json::object& properties = catalog["properties"].get_object();
  std::vector<std::string> hidden;
  for (const auto& property : properties) {
    // Gravitino has other rules of which they are.
    const bool may_be_hidden = options_.is_gravitino || is_secret_property(property.key());
    if (may_be_hidden && text_at(properties, property.key()) == shown_in_place_of_secret)
      hidden.emplace_back(property.key());
  }
  if (hidden.empty()) return;
  for (const std::string& name : hidden) properties.erase(name);
  if (options_.skipped)
    options_.skipped(path.text(), fmt::format("left out, for only its owners see them: {}",
                                              fmt::join(hidden, ", ")));
}

Status CatalogWalk::visit_one(const CatalogKind& kind, std::vector<std::string> names,
                              const json::object& entity) {
  const CatalogPath path{&kind, std::move(names)};
  CatalogRecord record{std::string(kind.name), path.names, entity};
  if (&kind == &catalog_kind) leave_out_secrets(path, record.entity);
  TRY(tell(std::move(record)));
  TRY(visit_contents(path, entity));
  // Nobody can be made the owner of a metalake that is disabled.
  if (&kind == &metalake_kind && is_disabled(kind, entity)) return {};
  return visit_owner(path);
}

Status CatalogWalk::everything() {
  return each(metalake_kind, {}, [&](const json::object& entity) {
    return visit_one(metalake_kind, {text_at(entity, "name")}, entity);
  });
}

Status CatalogWalk::metalake(const std::string& name) { return below({&metalake_kind, {name}}); }

Status CatalogWalk::below(const CatalogPath& path) {
  if (path.kind->depth > catalog_kind.depth) {
    TRY_ASSIGN(const json::object catalog,
               load({&catalog_kind, {path.names.begin(), path.names.begin() + 2}}));
    catalog_type_ = text_at(catalog, "type");
  }
  TRY_ASSIGN(const json::object entity, load(path));
  return visit_one(*path.kind, path.names, entity);
}

}  // namespace trellis
