// Where the files of a fileset are: locations by name, of which one is meant if none is named.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "catalog/entity.h"

namespace trellis {

// Of a location that came without a name, and of a managed fileset's own.
inline constexpr std::string_view unnamed_location = "unknown";
// A property: which location is meant if none is named.
inline constexpr std::string_view default_location_property = "default-location-name";

// The place of `sub_path` (with or without '/' at its begin; may be empty) in the location of that
// name; an empty name: the default one. Reason: no_such_location_name.
Result<std::string> fileset_location(const stored::CatalogEntity& fileset, std::string_view name,
                                     std::string_view sub_path);

// A new fileset needs one: what its schema's or its catalog's property "location" leads to, else a
// place in Trellis itself. `path`: of the fileset.
std::string own_location(const EntityPath& path, const stored::CatalogEntity& catalog,
                         const stored::CatalogEntity& schema);

// The path of trellis:///a/b: "/a/b"; absent: it is elsewhere.
std::optional<std::string> path_in_trellis(std::string_view location);

}  // namespace trellis
