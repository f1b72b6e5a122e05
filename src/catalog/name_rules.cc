#include "catalog/name_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "catalog/catalog_error.h"
#include "catalog/secrets.h"

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

struct CodePoints {
  uint32_t first;
  uint32_t last;
};
// What is no letter behind ASCII, near enough: controls and punctuation, marks of numbers and
// arrows, pictures, what is private.
constexpr CodePoints no_letters[] = {
    {0x80, 0xa9},     {0xab, 0xb4},       {0xb6, 0xb9},       {0xbb, 0xbf},       {0xd7, 0xd7},
    {0xf7, 0xf7},     {0x2000, 0x2070},   {0x2072, 0x207e},   {0x2080, 0x208f},   {0x20a0, 0x2101},
    {0x2190, 0x2bff}, {0x2e00, 0x2e2e},   {0x2e30, 0x3004},   {0x3007, 0x3030},   {0x303d, 0x3040},
    {0xd800, 0xf8ff}, {0xfe00, 0xfe6f},   {0xfeff, 0xff20},   {0xff3b, 0xff40},   {0xff5b, 0xff65},
    {0xffe0, 0xffff}, {0x1d000, 0x1d3ff}, {0x1f000, 0x1ffff}, {0xe0000, 0x10ffff}};

uint32_t code_point(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0);
  uint32_t code = byte(0) & (0x7fu >> character.size());
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3fu);
  return code;
}

bool is_letter(uint32_t code) {
  return code >= 0x80 && std::ranges::none_of(no_letters, [&](const CodePoints& points) {
           return points.first <= code && code <= points.last;
         });
}

bool fits_any_letters(std::string_view name) {
  if (name.empty() || characters_in(name) > pattern_characters_max) return false;
  for (bool is_first = true; !name.empty(); is_first = false) {
    const size_t length = utf8_length(name);
    if (length == 0) return false;
    const char c = name[0];
    const bool fits =
        length > 1 ? is_letter(code_point(name.substr(0, length)))
                   : is_word(c) || c == '$' || (!is_first && (c == '/' || c == '=' || c == '-'));
    if (!fits) return false;
    name.remove_prefix(length);
  }
  return true;
}

bool is_reserved_name(CatalogType type, std::string_view name) {
  if (name == "*") return true;
  if (type == CatalogType::metalake) return name == "system";
  return type == CatalogType::catalog && ascii_lowered(name) == "system";
}

bool is_legal_name(CatalogType type, std::string_view name, NamePattern pattern) {
  switch (type) {
    case CatalogType::metalake: return fits_pattern(name, "");
    case CatalogType::catalog: return fits_pattern(name, "-");
    case CatalogType::user:
    case CatalogType::group:
    case CatalogType::role:
    case CatalogType::tag:
    case CatalogType::policy:
      return !is_blank(name) && characters_in(name) <= catalog_name_characters_max;
    case CatalogType::schema:
    case CatalogType::table:
    case CatalogType::column:
      return pattern == NamePattern::any_letters ? fits_any_letters(name)
                                                 : fits_pattern(name, "/=-");
    default: return fits_pattern(name, "/=-");
  }
}

}  // namespace

Status check_name(CatalogType type, std::string_view name, NamePattern pattern) {
  const bool is_reserved = is_reserved_name(type, name);
  if (!is_reserved && is_legal_name(type, name, pattern)) return {};
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
  for (const auto& [name, value] : properties) {
    TRY(check_property(type, name));
    TRY(check_secret(type, name, value));
  }
  return {};
}

}  // namespace trellis
