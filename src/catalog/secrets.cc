#include "catalog/secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "catalog/catalog_error.h"

namespace trellis {

bool is_secret_property(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c + ('a' - 'A')) : c; });
  // Not all with "credential": credential-providers says which there are, and clients ask for it.
  if (lower.ends_with("credential")) return true;
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"password", "passwd", "secret", "token",
                                              "account-key", "account.key", "private-key",
                                              "private.key"},
      [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

bool hide_secrets(stored::CatalogEntity& catalog) {
  bool has_any = false;
  for (auto& [name, value] : *catalog.mutable_properties()) {
    if (!is_secret_property(name)) continue;
    value = shown_in_place_of_secret;
    has_any = true;
  }
  return has_any;
}

Status check_secret(CatalogType type, std::string_view property, std::string_view value) {
  const bool is_hidden = type == CatalogType::catalog && is_secret_property(property);
  if (!is_hidden || value != shown_in_place_of_secret) return {};
  return illegal_argument(fmt::format("Property {} cannot be {}, which is shown in place of it",
                                      property, shown_in_place_of_secret));
}

}  // namespace trellis
