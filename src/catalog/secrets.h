// Properties of catalogs that hold passwords and keys: with authorization on, only owners see their
// values. What a name says is all that is known, as providers and what is passed on to them
// (gravitino.bypass.*) have names of their own.
#pragma once

#include <string_view>

#include "base/result.h"
#include "catalog.pb.h"
#include "codec/catalog_ref.h"

namespace trellis {

inline constexpr std::string_view shown_in_place_of_secret = "******";

// "jdbc-password", "s3-secret-access-key", "gravitino.bypass.fs.s3a.secret.key", ...
bool is_secret_property(std::string_view name);
// Whether there were any.
bool hide_secrets(stored::CatalogEntity& catalog);
// Whoever writes back what they were shown would lose the secret: its place is no value of one.
Status check_secret(CatalogType type, std::string_view property, std::string_view value);

}  // namespace trellis
