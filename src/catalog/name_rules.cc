#include "catalog/name_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "catalog/catalog_error.h"

namespace trellis {
namespace {

constexpr size_t pattern_characters_max = 64;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

size_t characters_in(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// A word character, then also some others.
bool fits_pattern(std::string_view name, std::string_view others) {
  if (name.empty() || name.size() > pattern_characters_max || !is_word(name[0])) return false;
  return std::ranges::all_of(
      name, [&](char c) { return is_word(c) || others.find(c) != std::string_view::npos; });
}

bool is_reserved_name(CatalogType type, std::string_view name) {
  if (name == "*") return true;
  if (type == CatalogType::metalake) return name == "system";
  return type == CatalogType::catalog && ascii_lowered(name) == "system";
}

bool is_legal_name(CatalogType type, std::string_view name) {
  switch (type) {
    case CatalogType::metalake: return fits_pattern(name, "");
    case CatalogType::catalog: return fits_pattern(name, "-");
    case CatalogType::user:
    case CatalogType::group:
    case CatalogType::role:
    case CatalogType::tag:
    case CatalogType::policy:
      return !is_blank(name) && characters_in(name) <= catalog_name_characters_max;
    default: return fits_pattern(name, "/=-");
  }
}

}  // namespace

Status check_name(CatalogType type, std::string_view name) {
  const bool is_reserved = is_reserved_name(type, name);
  if (!is_reserved && is_legal_name(type, name)) return {};
  return illegal_name(fmt::format("The {} name '{}' is {}.", ascii_uppered(catalog_word(type).name),
                                  name.substr(0, 200), is_reserved ? "reserved" : "illegal"));
}

Status check_comment(std::string_view comment) {
  if (characters_in(comment) <= catalog_comment_characters_max) return {};
  return illegal_argument(
      fmt::format("A comment has {} characters at most", catalog_comment_characters_max));
}

Status check_property(CatalogType type, std::string_view property) {
  if (is_blank(property)) {
    return illegal_argument("\"property\" field is required and cannot be empty");
  }
  const bool has_in_use = type == CatalogType::metalake || type == CatalogType::catalog;
  if (property != "gravitino.identifier" && !(has_in_use && property == "in-use")) return {};
  return illegal_argument(fmt::format(
      "Properties or property prefixes are reserved and cannot be set: [{}]", property));
}

Status check_properties(CatalogType type, const TextMap& properties) {
  for (const auto& [name, value] : properties) TRY(check_property(type, name));
  return {};
}

}  // namespace trellis
