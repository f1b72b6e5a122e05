// What things of the catalog are called in keys: types by two letters, each thing by a ref.
//
//   ref of a metalake or catalog    | letters | uuid |
//   of a column                     | 'co' | table u64 | column u64 |
//   of everything else              | letters | id u64 |
//
// A ref names one thing for ever: ids are never given again. The root, in which metalakes stand, is
// the nil UUID.
#pragma once

#include <array>
#include <compare>

#include "base/strong_id.h"
#include "codec/field_codecs.h"

namespace trellis {

enum class CatalogType : unsigned char {
  metalake,
  catalog,
  schema,
  broker,
  table,
  topic,
  fileset,
  model,
  view,
  function,
  tag,
  policy,
  user,
  group,
  role,
  column,  // has no key of its own: it stands in its table's record
};

// Letters, name and pretty form by CatalogType.
inline constexpr Word catalog_types[] = {
    {"ml", "metalake", "/Metalake"}, {"ca", "catalog", "/Catalog"}, {"sc", "schema", "/Schema"},
    {"br", "broker", "/Broker"},     {"ta", "table", "/Table"},     {"to", "topic", "/Topic"},
    {"fi", "fileset", "/Fileset"},   {"mo", "model", "/Model"},     {"vi", "view", "/View"},
    {"fu", "function", "/Function"}, {"tg", "tag", "/Tag"},         {"po", "policy", "/Policy"},
    {"us", "user", "/User"},         {"gr", "group", "/Group"},     {"ro", "role", "/Role"},
    {"co", "column", "/Column"}};

constexpr const Word& catalog_word(CatalogType type) {
  return catalog_types[static_cast<size_t>(type)];
}
constexpr bool catalog_type_has_uuid(CatalogType type) {
  return type == CatalogType::metalake || type == CatalogType::catalog;
}

struct CatalogRef {
  CatalogType type = CatalogType::metalake;
  Uuid id = {};  // a number: its first 8 bytes, then zeros; a column: its table's and its own

  static CatalogRef of(CatalogType type, const Uuid& id) { return {type, id}; }
  static CatalogRef of(CatalogType type, EntityId id) { return CatalogRef{type, {}}.with(0, id); }
  static CatalogRef column(EntityId table, EntityId column) {
    return CatalogRef{CatalogType::column, {}}.with(0, table).with(8, column);
  }

  bool has_uuid() const { return catalog_type_has_uuid(type); }
  // REQUIRES: no UUID. Of a column: its table's.
  EntityId number() const { return {load_be(reinterpret_cast<const char*>(id.data()), 8)}; }
  // REQUIRES: a column.
  EntityId column_number() const {
    return {load_be(reinterpret_cast<const char*>(id.data()) + 8, 8)};
  }
  // How many bytes of the id are written.
  size_t id_bytes() const { return has_uuid() || type == CatalogType::column ? 16 : 8; }
  auto operator<=>(const CatalogRef&) const = default;

 private:
  CatalogRef& with(size_t offset, EntityId number) {
    for (size_t i = 0; i < 8; i++)
      id[offset + i] = static_cast<unsigned char>(number.value >> (8 * (7 - i)));
    return *this;
  }
};

// Its text is "table:95", "catalog:018f6e2a-...", "column:95:3".
struct CatalogRefBytes {
  static constexpr bool needs_scratch = false;
  static constexpr bool number = false;
  static constexpr std::string_view form = "ref";
  static void append(Bytes& out, const CatalogRef& ref);
  static bool read(Reader& reader, CatalogRef& ref);
  static std::string text(const CatalogRef& ref);
  static void append_pretty(std::string& out, const CatalogRef& ref);
  static Status parse(std::string_view text, TextArena&, CatalogRef& ref);
  static const char* invalid(const CatalogRef& ref);
};

// The same for values that hold refs.
Bytes encode_ref(const CatalogRef& ref);
Result<CatalogRef> decode_ref(ByteView bytes);

}  // namespace trellis

template <>
struct std::hash<trellis::CatalogRef> {
  size_t operator()(const trellis::CatalogRef& ref) const noexcept {
    const std::string_view id(reinterpret_cast<const char*>(ref.id.data()), ref.id.size());
    return std::hash<std::string_view>{}(id) + static_cast<size_t>(ref.type);
  }
};
