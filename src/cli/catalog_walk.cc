#include "cli/catalog_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

// Tables may be large, and an answer is held in memory.
constexpr uint64_t page_in_full = 250;

bool is_disabled(const json::object& entity) {
  return text_at(object_at(entity, "properties"), "in-use") == "false";
}

std::vector<std::string> with(std::span<const std::string> above, std::string name) {
  std::vector<std::string> names(above.begin(), above.end());
  names.push_back(std::move(name));
  return names;
}

}  // namespace

Result<ApiAnswer> CatalogWalk::get(const std::string& rest) {
  return api_.ask({.target = options_.front + rest, .headers = options_.headers});
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
    if (value.is_object()) TRY(visit_({std::string(type), path.names, value.get_object()}));
  return {};
}

Status CatalogWalk::visit_contents(const CatalogPath& path, const json::object& entity) {
  const CatalogKind& kind = *path.kind;
  const auto go_into = [&](const CatalogKind& child) {
    return each(child, path.names, [&](const json::object& found) {
      return visit_one(child, with(path.names, text_at(found, "name")), found);
    });
  };
  if (is_disabled(entity)) {
    if (options_.skipped) options_.skipped(path.text(), "disabled: what is in it is left out");
    return {};
  }
  if (&kind == &metalake_kind) {
    for (const CatalogKind& label : label_kinds) {
      const Status done = go_into(label);
      // Older ones have no policies.
      if (!done && done.error().code != Code::not_found) return done;
    }
    return go_into(catalog_kind);
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
      if (!done && !(options_.is_gravitino && is_rare)) return done;
    }
    return {};
  }
  if (kind.name == "model")
    return visit_members(path, "/versions?details=true", "infos", model_version_record);
  if (kind.name == "table" && !array_at(entity, "partitioning").empty())
    return visit_members(path, "/partitions?details=true", "partitions", partition_record);
  return {};
}

Status CatalogWalk::visit_one(const CatalogKind& kind, std::vector<std::string> names,
                              const json::object& entity) {
  const CatalogPath path{&kind, std::move(names)};
  TRY(visit_({std::string(kind.name), path.names, entity}));
  return visit_contents(path, entity);
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
