// Properties of catalogs that hold passwords and keys: with authorization on, only owners see their
// values. What a name says is all that is known, as providers and what is passed on to them
// (gravitino.bypass.*) have names of their own.
#pragma once

#include <string_view>

#include "catalog.pb.h"

namespace trellis {

inline constexpr std::string_view shown_in_place_of_secret = "******";

// "jdbc-password", "s3-secret-access-key", "gravitino.bypass.fs.s3a.secret.key", ...
bool is_secret_property(std::string_view name);
void hide_secrets(stored::CatalogEntity& catalog);

}  // namespace trellis
