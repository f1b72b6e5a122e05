// What names, comments and properties may be like. Checked when something is made or renamed.
//
//   metalake            \w{1,64}          not "*", "system"
//   catalog             \w[\w-]{0,63}     not "*", "system" in any case
//   users, groups,      not blank, up to 128 characters
//     roles, tags,
//     policies
//   all others          \w[\w/=-]{0,63}   not "*"
//
// \w is a letter, digit or underscore of ASCII; with NamePattern::any_letters a schema, table or
// column has '$' and letters of any script, too. A comment has up to 4,096 characters.
#pragma once

#include <string_view>

#include "base/result.h"
#include "catalog/request_fields.h"
#include "codec/catalog_ref.h"

namespace trellis {

inline constexpr size_t catalog_name_characters_max = 128;
inline constexpr size_t catalog_comment_characters_max = 4'096;

Status check_name(CatalogType type, std::string_view name,
                  NamePattern pattern = NamePattern::plain);  // illegal_name
Status check_comment(std::string_view comment);
// What the server alone sets: "in-use" of metalakes and catalogs, "gravitino.identifier".
Status check_property(CatalogType type, std::string_view property);
// Also that none is what secrets are shown as.
Status check_properties(CatalogType type, const TextMap& properties);

}  // namespace trellis
