#include "catalog/secrets.h"

#include <algorithm>
#include <string>

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

void hide_secrets(stored::CatalogEntity& catalog) {
  for (auto& [name, value] : *catalog.mutable_properties())
    if (is_secret_property(name)) value = shown_in_place_of_secret;
}

}  // namespace trellis
