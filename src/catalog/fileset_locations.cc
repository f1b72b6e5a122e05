#include <fmt/format.h>

#include <algorithm>

#include "catalog/catalog_error.h"
#include "catalog/drafts.h"
#include "catalog/entity.h"

namespace trellis {
namespace {

constexpr std::string_view default_location_property = "default-location-name";
constexpr std::string_view location_property = "location";
constexpr std::string_view placeholder_property = "placeholder-";

bool has_placeholder(std::string_view path) { return path.find("{{") != std::string_view::npos; }

// A folder's path below another's, unless that says itself where names go.
std::string below(std::string path, std::string_view name) {
  if (has_placeholder(path)) return path;
  if (!path.ends_with('/')) path += '/';
  return path.append(name);
}

// "location" and "location-NAME" among the properties, by name.
TextMap locations_in(const TextMap& properties) {
  TextMap locations;
  for (const auto& [name, value] : properties) {
    if (is_blank(value) || !name.starts_with(location_property)) continue;
    const std::string_view rest = std::string_view(name).substr(location_property.size());
    if (rest.empty()) {
      locations.insert_or_assign(std::string(unknown_location), value);
    } else if (rest.size() > 1 && rest[0] == '-') {
      locations.insert_or_assign(std::string(rest.substr(1)), value);
    }
  }
  return locations;
}

// What a fileset's locations may still take, all of them together: values are filled in as often as
// a path asks for them, so that a small request could name a large one.
struct RoomForPaths {
  size_t bytes = catalog_entity_bytes_max;

  Status take(size_t more) {
    if (more > bytes) {
      return illegal_argument(fmt::format("The locations of a fileset have at most {} bytes",
                                          catalog_entity_bytes_max));
    }
    bytes -= more;
    return {};
  }
};

// With what stands in {{braces}} filled in.
Status fill_in(std::string_view path, const TextMap& values, RoomForPaths& room,
               std::string& filled) {
  for (;;) {
    const size_t begin = path.find("{{");
    const size_t end = begin == std::string_view::npos ? begin : path.find("}}", begin);
    const size_t plain = end == std::string_view::npos ? path.size() : begin;
    TRY(room.take(plain));
    filled += path.substr(0, plain);
    if (end == std::string_view::npos) return {};
    const std::string name(path.substr(begin + 2, end - begin - 2));
    const auto value = values.find(name);
    if (value == values.end() || value->second.empty()) {
      return illegal_argument("No value found for placeholder: {{" + name + "}}");
    }
    TRY(room.take(value->second.size()));
    filled += value->second;
    path.remove_prefix(end + 2);
  }
}

Status set_default_location(stored::CatalogEntity& draft) {
  auto& properties = *draft.mutable_properties();
  const auto& locations = draft.fileset().locations();
  const std::string key(default_location_property);
  const auto given = properties.find(key);
  if (locations.size() == 1) {
    const std::string& only = locations.begin()->first;
    if (given == properties.end()) {
      properties[key] = only;
    } else if (given->second != only) {
      return illegal_argument(
          "Default location name must be the same as the fileset location name");
    }
    return {};
  }
  if (given != properties.end() && locations.contains(given->second)) return {};
  std::vector<std::string> names;
  for (const auto& [name, path] : locations) names.push_back(name);
  std::ranges::sort(names);
  return illegal_argument(fmt::format(
      "The fileset property {} must be set and must be one of the fileset locations, location "
      "names: [{}], default location name: {}",
      key, fmt::join(names, ", "), given == properties.end() ? "null" : given->second));
}

// Whether a name of the path is "..", which leads out of what it stands in.
bool leads_up(std::string_view path) {
  for (;;) {
    const size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") return true;
    if (slash == std::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace

Status place_fileset(const FilesetPlace& place, stored::CatalogEntity& draft) {
  stored::CatalogFileset& fileset = *draft.mutable_fileset();
  if (fileset.type() == "external" && fileset.locations().empty()) {
    return illegal_argument("Storage location must be set for external fileset " + draft.name());
  }
  TextMap locations;
  for (const auto& [name, path] : locations_in(place.catalog_properties)) {
    locations[name] = below(below(path, place.schema), draft.name());
  }
  for (const auto& [name, path] : locations_in(place.schema_properties)) {
    locations[name] = below(path, draft.name());
  }
  if (fileset.type() == "external") locations.clear();
  for (const auto& [name, path] : fileset.locations()) locations[name] = path;
  if (locations.empty()) {
    return illegal_argument(fmt::format(
        "Storage location must be set for fileset {} when it's catalog and schema location are not "
        "set",
        draft.name()));
  }
  TextMap values;
  for (const auto& [name, value] : draft.properties()) {
    if (name.starts_with(placeholder_property)) {
      values[name.substr(placeholder_property.size())] = value;
    }
  }
  values["catalog"] = place.catalog;
  values["schema"] = place.schema;
  values["fileset"] = draft.name();
  fileset.clear_locations();
  RoomForPaths room;
  for (const auto& [name, path] : locations) {
    std::string& location = (*fileset.mutable_locations())[name];
    TRY(fill_in(path, values, room, location));
    // As Hadoop writes a path of the machine's own file system.
    if (location.starts_with('/')) location.insert(0, "file:");
  }
  return set_default_location(draft);
}

Result<std::string> fileset_location(const stored::CatalogEntity& fileset,
                                     std::string_view location_name, std::string_view sub_path) {
  const auto& locations = fileset.fileset().locations();
  std::string name(location_name);
  if (name.empty()) {
    const auto by_default = fileset.properties().find(std::string(default_location_property));
    if (by_default != fileset.properties().end()) name = by_default->second;
    if (locations.size() == 1) name = locations.begin()->first;
  }
  const auto found = locations.find(name);
  if (found == locations.end()) {
    return Error{Code::not_found,
                 fmt::format("Location name {} does not exist in fileset {}", name, fileset.name()),
                 "no_such_location_name"};
  }
  std::string location = found->second;
  while (!sub_path.empty() && is_blank(sub_path.substr(0, 1))) sub_path.remove_prefix(1);
  while (!sub_path.empty() && is_blank(sub_path.substr(sub_path.size() - 1))) {
    sub_path.remove_suffix(1);
  }
  if (sub_path.empty()) return location;
  if (leads_up(sub_path)) return illegal_argument("A path in a fileset must not contain ..");
  if (location.ends_with('/')) location.pop_back();
  if (!sub_path.starts_with('/')) location += '/';
  return location.append(sub_path);
}

}  // namespace trellis
