// What a client sends to make something, checked, as it is going to be stored.
//
//   TRY_ASSIGN(stored::CatalogEntity draft, draft_of(CatalogType::table, body));
//   const EntityPath path{CatalogType::table, {metalake, catalog, schema, draft.name()}};
//   TRY_ASSIGN(Entity table, catalog.create(call, path, std::move(draft)));
//
// All types but users, groups and roles, which stand in access.h. Errors: illegal_argument,
// illegal_name; a member that nobody knows is one, too.
#pragma once

#include <string>

#include "base/result.h"
#include "catalog.pb.h"
#include "catalog/request_fields.h"
#include "codec/catalog_ref.h"

namespace trellis {

// With its name; filesets still lack locations that come from above them.
Result<stored::CatalogEntity> draft_of(CatalogType type, const json::value& request,
                                       NamePattern pattern = NamePattern::plain);

// The locations of a new fileset. Those that the request does not give come from the properties
// "location" and "location-NAME" of its schema, or else its catalog, each with the names below it;
// {{catalog}}, {{schema}}, {{fileset}} and {{x}} (property "placeholder-x") are filled in. Sets the
// property "default-location-name".
struct FilesetPlace {
  std::string catalog;
  std::string schema;
  TextMap catalog_properties;
  TextMap schema_properties;
};
Status place_fileset(const FilesetPlace& place, stored::CatalogEntity& draft);
// Of the request that names no location.
inline constexpr std::string_view unknown_location = "unknown";
// Where a path in a fileset is: `location_name` empty: its default. no_such_location_name;
// illegal_argument if it leads out of the fileset.
Result<std::string> fileset_location(const stored::CatalogEntity& fileset,
                                     std::string_view location_name, std::string_view sub_path);

// Columns of a table or view. REQUIRES of ids: none is set yet.
Status check_column_count(size_t columns);
Result<stored::CatalogColumn> read_column(const json::value& column);
// The content of a policy in its normal form.
Result<std::string> read_policy_content(std::string_view policy_type, const json::value* content);
// [{"type":"sql","dialect","sql"}] of a view, each dialect once.
Result<std::string> read_representations(const json::value* representations);

}  // namespace trellis
