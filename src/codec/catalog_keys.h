// The catalog (seed 001, Gravitino): entity keys of the seed's shape with binary ids, behind
// 'x' keyspace 'c'. Two letters name the type; ids are joined by '_'.
//
//   ml_ ml                      metalake        ids of metalakes and catalogs: UUID (version 7)
//   ca_ ml _ ca                 catalog         all others: u64, from a generator, never reused
//   sc_ br_  ml _ ca _ id       schema, broker
//   ta_ to_ fi_ mo_ vi_ fu_  ml _ ca _ parent _ id     parent: the schema (topic: or the broker)
//   tg_ po_ us_ gr_ ro_      ml _ id            tag, policy, user, group, role
//   nm_ parent _ type _ name    name to id, scoped by parent and type: a list is one scan
//   id_ type _ id               id to name
//
// Names never stand in entity keys, so a rename changes one nm_ and one id_ record.
#pragma once

#include "base/strong_id.h"
#include "codec/field_codecs.h"
#include "codec/keyspace_keys.h"

namespace trellis {

inline constexpr Literal model_catalog = literal("model", "c", "catalog", "/Catalog");
inline constexpr Literal catalog_separator = literal("separator", "_", "");

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
};

// Letters, name and pretty form by CatalogType.
inline constexpr Word catalog_types[] = {
    {"ml", "metalake", "/Metalake"}, {"ca", "catalog", "/Catalog"}, {"sc", "schema", "/Schema"},
    {"br", "broker", "/Broker"},     {"ta", "table", "/Table"},     {"to", "topic", "/Topic"},
    {"fi", "fileset", "/Fileset"},   {"mo", "model", "/Model"},     {"vi", "view", "/View"},
    {"fu", "function", "/Function"}, {"tg", "tag", "/Tag"},         {"po", "policy", "/Policy"},
    {"us", "user", "/User"},         {"gr", "group", "/Group"},     {"ro", "role", "/Role"}};

constexpr const Word& catalog_word(CatalogType type) {
  return catalog_types[static_cast<size_t>(type)];
}
constexpr Literal catalog_letters(CatalogType type) {
  const Word& word = catalog_word(type);
  return {"type", word.bytes, word.name, word.pretty};
}

namespace catalog_detail {
// "catalog." + the type's name, as a constant.
template <CatalogType type>
struct KindName {
  static constexpr size_t size = 8 + catalog_word(type).name.size();
  static constexpr auto text = [] {
    std::array<char, size> text{};
    size_t at = 0;
    for (char c : std::string_view("catalog.")) text[at++] = c;
    for (char c : catalog_word(type).name) text[at++] = c;
    return text;
  }();
  static constexpr std::string_view value{text.data(), size};
};
}  // namespace catalog_detail

// | 'x' | keyspace u24 | 'c' | 'ml' '_' | metalake uuid |
struct CatalogMetalakeKey {
  KeyspaceId keyspace;
  Uuid metalake;
  static constexpr std::string_view kind = "catalog.metalake";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&CatalogMetalakeKey::keyspace), model_catalog,
                  catalog_letters(CatalogType::metalake), catalog_separator,
                  field<UuidBytes>("metalake", &CatalogMetalakeKey::metalake, "metalake id"));
  }
};

// | 'x' | keyspace u24 | 'c' | 'ca' '_' | metalake uuid | '_' | catalog uuid |
struct CatalogCatalogKey {
  KeyspaceId keyspace;
  Uuid metalake;
  Uuid catalog;
  static constexpr std::string_view kind = "catalog.catalog";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&CatalogCatalogKey::keyspace), model_catalog,
                  catalog_letters(CatalogType::catalog), catalog_separator,
                  field<UuidBytes>("metalake", &CatalogCatalogKey::metalake, "metalake id"),
                  catalog_separator,
                  field<UuidBytes>("catalog", &CatalogCatalogKey::catalog, "catalog id"));
  }
};

// | 'x' | keyspace u24 | 'c' | type '_' | metalake uuid | '_' | catalog uuid | '_' | id u64 |
template <CatalogType type>
struct CatalogMiddleKey {
  KeyspaceId keyspace;
  Uuid metalake;
  Uuid catalog;
  EntityId id;
  static constexpr std::string_view kind = catalog_detail::KindName<type>::value;
  static constexpr auto layout() {
    return record(
        mode_txn, keyspace_field(&CatalogMiddleKey::keyspace), model_catalog, catalog_letters(type),
        catalog_separator, field<UuidBytes>("metalake", &CatalogMiddleKey::metalake, "metalake id"),
        catalog_separator, field<UuidBytes>("catalog", &CatalogMiddleKey::catalog, "catalog id"),
        catalog_separator, field<BigEndian<8>>("id", &CatalogMiddleKey::id, "its own id"));
  }
};
using CatalogSchemaKey = CatalogMiddleKey<CatalogType::schema>;
using CatalogBrokerKey = CatalogMiddleKey<CatalogType::broker>;

// | 'x' | keyspace u24 | 'c' | type '_' | metalake uuid | '_' | catalog uuid | '_' |
//                                                                    parent u64 | '_' | id u64 |
template <CatalogType type>
struct CatalogLeafKey {
  KeyspaceId keyspace;
  Uuid metalake;
  Uuid catalog;
  EntityId parent;
  EntityId id;
  static constexpr std::string_view kind = catalog_detail::KindName<type>::value;
  static constexpr auto layout() {
    return record(
        mode_txn, keyspace_field(&CatalogLeafKey::keyspace), model_catalog, catalog_letters(type),
        catalog_separator, field<UuidBytes>("metalake", &CatalogLeafKey::metalake, "metalake id"),
        catalog_separator, field<UuidBytes>("catalog", &CatalogLeafKey::catalog, "catalog id"),
        catalog_separator,
        field<BigEndian<8>>("parent", &CatalogLeafKey::parent, "schema or broker id"),
        catalog_separator, field<BigEndian<8>>("id", &CatalogLeafKey::id, "its own id"));
  }
};
using CatalogTableKey = CatalogLeafKey<CatalogType::table>;
using CatalogTopicKey = CatalogLeafKey<CatalogType::topic>;
using CatalogFilesetKey = CatalogLeafKey<CatalogType::fileset>;
using CatalogModelKey = CatalogLeafKey<CatalogType::model>;
using CatalogViewKey = CatalogLeafKey<CatalogType::view>;
using CatalogFunctionKey = CatalogLeafKey<CatalogType::function>;

// | 'x' | keyspace u24 | 'c' | type '_' | metalake uuid | '_' | id u64 |
template <CatalogType type>
struct CatalogMemberKey {
  KeyspaceId keyspace;
  Uuid metalake;
  EntityId id;
  static constexpr std::string_view kind = catalog_detail::KindName<type>::value;
  static constexpr auto layout() {
    return record(
        mode_txn, keyspace_field(&CatalogMemberKey::keyspace), model_catalog, catalog_letters(type),
        catalog_separator, field<UuidBytes>("metalake", &CatalogMemberKey::metalake, "metalake id"),
        catalog_separator, field<BigEndian<8>>("id", &CatalogMemberKey::id, "its own id"));
  }
};
using CatalogTagKey = CatalogMemberKey<CatalogType::tag>;
using CatalogPolicyKey = CatalogMemberKey<CatalogType::policy>;
using CatalogUserKey = CatalogMemberKey<CatalogType::user>;
using CatalogGroupKey = CatalogMemberKey<CatalogType::group>;
using CatalogRoleKey = CatalogMemberKey<CatalogType::role>;

// What may stand under a UUID (the nil UUID: the root, above the metalakes), and under a u64.
inline constexpr Word catalog_types_under_uuid[] = {
    catalog_types[0],  catalog_types[1],  catalog_types[2],  catalog_types[3], catalog_types[10],
    catalog_types[11], catalog_types[12], catalog_types[13], catalog_types[14]};
inline constexpr Word catalog_types_under_number[] = {catalog_types[4], catalog_types[5],
                                                      catalog_types[6], catalog_types[7],
                                                      catalog_types[8], catalog_types[9]};
// Types whose own id is a UUID, and a u64.
inline constexpr Word catalog_types_with_uuid[] = {catalog_types[0], catalog_types[1]};
inline constexpr Word catalog_types_with_number[] = {
    catalog_types[2],  catalog_types[3],  catalog_types[4], catalog_types[5],  catalog_types[6],
    catalog_types[7],  catalog_types[8],  catalog_types[9], catalog_types[10], catalog_types[11],
    catalog_types[12], catalog_types[13], catalog_types[14]};

// The enum value of a CatalogType field is its index in the whole table, whichever subset its
// place in a key allows.
template <const auto& Subset>
struct CatalogTypeWord : OneOf<catalog_types> {
  static constexpr std::span<const Word> words() { return Subset; }
  static bool read(Reader& reader, CatalogType& type) {
    size_t index = 0;
    return field_detail::read_word(reader, Subset, index) && whole(Subset[index], type);
  }
  static Status parse(std::string_view text, TextArena&, CatalogType& type) {
    size_t index = 0;
    TRY(field_detail::parse_word(text, Subset, index));
    whole(Subset[index], type);
    return {};
  }
  static const char* invalid(CatalogType type) {
    if (static_cast<size_t>(type) < std::size(catalog_types))
      for (const Word& word : Subset)
        if (word.bytes == catalog_word(type).bytes) return nullptr;
    return "a type that has no such key";
  }

 private:
  static bool whole(const Word& word, CatalogType& type) {
    for (size_t i = 0; i < std::size(catalog_types); i++)
      if (catalog_types[i].bytes == word.bytes) type = static_cast<CatalogType>(i);
    return true;
  }
};

// A parent of 16 bytes. Its byte 8 holds the variant of a UUID and is never '_', which is what
// tells it from a parent of 8 bytes.
struct CatalogParentUuid : UuidBytes {
  static bool read(Reader& reader, Uuid& uuid) {
    const size_t start = reader.offset();
    if (!UuidBytes::read(reader, uuid)) return false;
    return uuid[8] != '_' || reader.fail("not a UUID: its variant is wrong", start + 8);
  }
  static const char* invalid(const Uuid& uuid) {
    return uuid[8] != '_' ? nullptr : "not a UUID: its variant is wrong";
  }
};

inline constexpr Literal catalog_name_tag = literal("record", "nm", "name to id", "/Name");
inline constexpr Literal catalog_id_tag = literal("record", "id", "id to name", "/Id");

// | 'x' | keyspace u24 | 'c' | 'nm' '_' | parent uuid | '_' | type | '_' | name bytes |
struct CatalogNameKey {
  KeyspaceId keyspace;
  Uuid parent;
  CatalogType type;
  ByteView name;
  static constexpr std::string_view kind = "catalog.name";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&CatalogNameKey::keyspace), model_catalog,
                  catalog_name_tag, catalog_separator,
                  field<CatalogParentUuid>("parent", &CatalogNameKey::parent,
                                           "metalake or catalog id; zero: the root"),
                  catalog_separator,
                  field<CatalogTypeWord<catalog_types_under_uuid>>("type", &CatalogNameKey::type),
                  catalog_separator, field<Remaining>("name", &CatalogNameKey::name, "its name"));
  }
};

// | 'x' | keyspace u24 | 'c' | 'nm' '_' | parent u64 | '_' | type | '_' | name bytes |
struct CatalogLeafNameKey {
  KeyspaceId keyspace;
  EntityId parent;
  CatalogType type;
  ByteView name;
  static constexpr std::string_view kind = "catalog.leaf_name";
  static constexpr auto layout() {
    return record(
        mode_txn, keyspace_field(&CatalogLeafNameKey::keyspace), model_catalog, catalog_name_tag,
        catalog_separator,
        field<BigEndian<8>>("parent", &CatalogLeafNameKey::parent, "schema or broker id"),
        catalog_separator,
        field<CatalogTypeWord<catalog_types_under_number>>("type", &CatalogLeafNameKey::type),
        catalog_separator, field<Remaining>("name", &CatalogLeafNameKey::name, "its name"));
  }
};

// | 'x' | keyspace u24 | 'c' | 'id' '_' | type | '_' | id uuid |
struct CatalogUuidKey {
  KeyspaceId keyspace;
  CatalogType type;
  Uuid id;
  static constexpr std::string_view kind = "catalog.uuid";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&CatalogUuidKey::keyspace), model_catalog,
                  catalog_id_tag, catalog_separator,
                  field<CatalogTypeWord<catalog_types_with_uuid>>("type", &CatalogUuidKey::type),
                  catalog_separator, field<UuidBytes>("id", &CatalogUuidKey::id, "its id"));
  }
};

// | 'x' | keyspace u24 | 'c' | 'id' '_' | type | '_' | id u64 |
struct CatalogIdKey {
  KeyspaceId keyspace;
  CatalogType type;
  EntityId id;
  static constexpr std::string_view kind = "catalog.id";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&CatalogIdKey::keyspace), model_catalog, catalog_id_tag,
                  catalog_separator,
                  field<CatalogTypeWord<catalog_types_with_number>>("type", &CatalogIdKey::type),
                  catalog_separator, field<BigEndian<8>>("id", &CatalogIdKey::id, "its id"));
  }
};

}  // namespace trellis
