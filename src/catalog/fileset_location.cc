#include "catalog/fileset_location.h"

#include <fmt/format.h>

#include "catalog/catalog_error.h"

namespace trellis {
namespace {

constexpr std::string_view trellis_scheme = "trellis://";

std::string_view without_last_slashes(std::string_view text) {
  while (text.ends_with('/')) text.remove_suffix(1);
  return text;
}

}  // namespace

Result<std::string> fileset_location(const stored::CatalogEntity& fileset, std::string_view name,
                                     std::string_view sub_path) {
  const auto& locations = fileset.fileset().locations();
  std::string wanted(name);
  if (wanted.empty()) {
    const auto by_default = fileset.properties().find(std::string(default_location_property));
    if (by_default != fileset.properties().end())
      wanted = by_default->second;
    else
      wanted = locations.size() == 1 ? locations.begin()->first : std::string(unnamed_location);
  }
  const auto found = locations.find(wanted);
  if (found == locations.end()) {
    return Error{Code::not_found,
                 fmt::format("Location name {} does not exist in fileset {}", wanted,
                             fileset.name()),
                 "no_such_location_name"};
  }
  while (sub_path.starts_with('/')) sub_path.remove_prefix(1);
  if (sub_path.empty()) return found->second;
  return fmt::format("{}/{}", without_last_slashes(found->second), sub_path);
}

std::string own_location(const EntityPath& path, const stored::CatalogEntity& catalog,
                         const stored::CatalogEntity& schema) {
  const auto property = schema.properties().find("location");
  if (property != schema.properties().end() && !property->second.empty())
    return fmt::format("{}/{}", without_last_slashes(property->second), path.names[3]);
  const auto above = catalog.properties().find("location");
  if (above != catalog.properties().end() && !above->second.empty()) {
    return fmt::format("{}/{}/{}", without_last_slashes(above->second), path.names[2],
                       path.names[3]);
  }
  return fmt::format("{}/{}", trellis_scheme, fmt::join(path.names, "/"));
}

std::optional<std::string> path_in_trellis(std::string_view location) {
  if (!location.starts_with(trellis_scheme)) return std::nullopt;
  location.remove_prefix(trellis_scheme.size());
  if (!location.starts_with('/')) return std::nullopt;
  return std::string(location);
}

}  // namespace trellis
