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
//   dl_ parent _ type _ name* due ref    dropped, and can come back
//   sq_                         the next id that nobody has
//   lg_ ml                      number of the last change;  lg_ ml _ number  a change
//   ix_ ml _ kind _ name* ref   where to find by name
//   pt_ table _ name            partition of a table
//   mv_ model _ version         version of a model;  al_ model _ alias  names one
//   st_ ml _ ref _ partition* name       statistic
//   rl_ ml _ relation _ from _ to        relation;  ri_ ml _ relation _ to _ from  its other end
//   ga_ role _ above _ ref      what a role may do with ref, which stands in above
//
// Names never stand in entity keys, so a rename changes one nm_ and one id_ record. A parent or ref
// is what codec/catalog_ref.h says (in nm_, of the seed, without letters); name* is escaped.
#pragma once

#include "base/strong_id.h"
#include "codec/catalog_ref.h"
#include "codec/field_codecs.h"
#include "codec/keyspace_keys.h"

namespace trellis {

inline constexpr Literal model_catalog = literal("model", "c", "catalog", "/Catalog");
inline constexpr Literal catalog_separator = literal("separator", "_", "");

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

// --- entities ---

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

// --- names and ids ---

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

// --- what is dropped, given and logged ---

// | 'x' | keyspace u24 | 'c' | 'dl' '_' | parent ref | '_' | type | '_' | name* | due u64 | ref |
struct CatalogDroppedKey {
  KeyspaceId keyspace;
  CatalogRef parent;
  CatalogType type;
  ByteView name;
  uint64_t due_ms;
  CatalogRef ref;
  static constexpr std::string_view kind = "catalog.dropped";
  static constexpr auto layout() {
    return record(
        mode_txn, keyspace_field(&CatalogDroppedKey::keyspace), model_catalog,
        literal("record", "dl", "dropped", "/Dropped"), catalog_separator,
        field<CatalogRefBytes>("parent", &CatalogDroppedKey::parent, "where it stood"),
        catalog_separator, field<OneOf<catalog_types>>("type", &CatalogDroppedKey::type),
        catalog_separator, field<Terminated>("name", &CatalogDroppedKey::name, "its name"),
        field<BigEndian<8>>("due", &CatalogDroppedKey::due_ms, "when it was dropped, unix ms"),
        field<CatalogRefBytes>("ref", &CatalogDroppedKey::ref, "itself"));
  }
};

// | 'x' | keyspace u24 | 'c' | 'sq' '_' |
struct CatalogNextIdKey {
  KeyspaceId keyspace;
  static constexpr std::string_view kind = "catalog.next_id";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&CatalogNextIdKey::keyspace), model_catalog,
                  literal("record", "sq", "next id", "/NextId"), catalog_separator);
  }
};

inline constexpr Literal catalog_log_tag = literal("record", "lg", "log of changes", "/Log");

// | 'x' | keyspace u24 | 'c' | 'lg' '_' | metalake uuid |
struct CatalogLogKey {
  KeyspaceId keyspace;
  Uuid metalake;
  static constexpr std::string_view kind = "catalog.log";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&CatalogLogKey::keyspace), model_catalog,
                  catalog_log_tag, catalog_separator,
                  field<UuidBytes>("metalake", &CatalogLogKey::metalake, "metalake id"));
  }
};

// | 'x' | keyspace u24 | 'c' | 'lg' '_' | metalake uuid | '_' | number u64 |
struct CatalogChangeKey {
  KeyspaceId keyspace;
  Uuid metalake;
  uint64_t number;
  static constexpr std::string_view kind = "catalog.change";
  static constexpr auto layout() {
    return record(
        mode_txn, keyspace_field(&CatalogChangeKey::keyspace), model_catalog, catalog_log_tag,
        catalog_separator, field<UuidBytes>("metalake", &CatalogChangeKey::metalake, "metalake id"),
        catalog_separator, field<BigEndian<8>>("number", &CatalogChangeKey::number, "from 1"));
  }
};

inline constexpr Word catalog_search_words[] = {{"n", "name", "/Name"}, {"c", "column", "/Column"}};
enum class CatalogSearchKind : unsigned char { name, column };

// | 'x' | keyspace u24 | 'c' | 'ix' '_' | metalake uuid | '_' | kind | '_' | name* | ref |
struct CatalogSearchKey {
  KeyspaceId keyspace;
  Uuid metalake;
  CatalogSearchKind what;
  ByteView name;
  CatalogRef ref;
  static constexpr std::string_view kind = "catalog.search";
  static constexpr auto layout() {
    return record(
        mode_txn, keyspace_field(&CatalogSearchKey::keyspace), model_catalog,
        literal("record", "ix", "search", "/Search"), catalog_separator,
        field<UuidBytes>("metalake", &CatalogSearchKey::metalake, "metalake id"), catalog_separator,
        field<OneOf<catalog_search_words>>("kind", &CatalogSearchKey::what, "whose name"),
        catalog_separator,
        field<Terminated>("name", &CatalogSearchKey::name, "in lower case, its first 256 bytes"),
        field<CatalogRefBytes>("ref", &CatalogSearchKey::ref, "what has it"));
  }
};

// --- members of one entity ---

// | 'x' | keyspace u24 | 'c' | 'pt' '_' | table u64 | '_' | name bytes |
struct CatalogPartitionKey {
  KeyspaceId keyspace;
  EntityId table;
  ByteView name;
  static constexpr std::string_view kind = "catalog.partition";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&CatalogPartitionKey::keyspace), model_catalog,
                  literal("record", "pt", "partition", "/Partition"), catalog_separator,
                  field<BigEndian<8>>("table", &CatalogPartitionKey::table, "table id"),
                  catalog_separator,
                  field<Remaining>("name", &CatalogPartitionKey::name, "its name"));
  }
};

// | 'x' | keyspace u24 | 'c' | 'mv' '_' | model u64 | '_' | version u32 |
struct CatalogModelVersionKey {
  KeyspaceId keyspace;
  EntityId model;
  uint32_t version;
  static constexpr std::string_view kind = "catalog.model_version";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&CatalogModelVersionKey::keyspace), model_catalog,
                  literal("record", "mv", "version of a model", "/ModelVersion"), catalog_separator,
                  field<BigEndian<8>>("parent", &CatalogModelVersionKey::model, "model id"),
                  catalog_separator,
                  field<BigEndian<4>>("version", &CatalogModelVersionKey::version, "from 0"));
  }
};

// | 'x' | keyspace u24 | 'c' | 'al' '_' | model u64 | '_' | alias bytes |
struct CatalogAliasKey {
  KeyspaceId keyspace;
  EntityId model;
  ByteView alias;
  static constexpr std::string_view kind = "catalog.alias";
  static constexpr auto layout() {
    return record(
        mode_txn, keyspace_field(&CatalogAliasKey::keyspace), model_catalog,
        literal("record", "al", "alias of a model's version", "/Alias"), catalog_separator,
        field<BigEndian<8>>("parent", &CatalogAliasKey::model, "model id"), catalog_separator,
        field<Remaining>("alias", &CatalogAliasKey::alias, "the alias"));
  }
};

// | 'x' | keyspace u24 | 'c' | 'st' '_' | metalake uuid | '_' | ref | '_' | partition* | name bytes
// |
struct CatalogStatisticKey {
  KeyspaceId keyspace;
  Uuid metalake;
  CatalogRef ref;
  ByteView partition;
  ByteView name;
  static constexpr std::string_view kind = "catalog.statistic";
  static constexpr auto layout() {
    return record(
        mode_txn, keyspace_field(&CatalogStatisticKey::keyspace), model_catalog,
        literal("record", "st", "statistic", "/Statistic"), catalog_separator,
        field<UuidBytes>("metalake", &CatalogStatisticKey::metalake, "metalake id"),
        catalog_separator, field<CatalogRefBytes>("ref", &CatalogStatisticKey::ref, "of what"),
        catalog_separator,
        field<Terminated>("partition", &CatalogStatisticKey::partition, "empty: of all of it"),
        field<Remaining>("name", &CatalogStatisticKey::name, "its name"));
  }
};

// --- relations ---

inline constexpr Word catalog_relation_words[] = {{"t", "tag", "/Tag"},
                                                  {"p", "policy", "/Policy"},
                                                  {"o", "owner", "/Owner"},
                                                  {"r", "role", "/Role"},
                                                  {"g", "grant", "/Grant"}};
// Object to tag, object to policy, object to its owner, user or group to role, role to object.
enum class CatalogRelation : unsigned char { tag, policy, owner, role, grant };

// | 'x' | keyspace u24 | 'c' | 'rl' '_' | metalake uuid | '_' | relation | '_' |
//                                                                       from ref | '_' | to ref |
struct CatalogRelationKey {
  KeyspaceId keyspace;
  Uuid metalake;
  CatalogRelation relation;
  CatalogRef from;
  CatalogRef to;
  static constexpr std::string_view kind = "catalog.relation";
  static constexpr auto layout() {
    return record(
        mode_txn, keyspace_field(&CatalogRelationKey::keyspace), model_catalog,
        literal("record", "rl", "relation", "/Relation"), catalog_separator,
        field<UuidBytes>("metalake", &CatalogRelationKey::metalake, "metalake id"),
        catalog_separator,
        field<OneOf<catalog_relation_words>>("relation", &CatalogRelationKey::relation),
        catalog_separator, field<CatalogRefBytes>("from", &CatalogRelationKey::from, "one end"),
        catalog_separator, field<CatalogRefBytes>("to", &CatalogRelationKey::to, "the other end"));
  }
};

// | 'x' | keyspace u24 | 'c' | 'ri' '_' | metalake uuid | '_' | relation | '_' |
//                                                                       to ref | '_' | from ref |
struct CatalogInverseKey {
  KeyspaceId keyspace;
  Uuid metalake;
  CatalogRelation relation;
  CatalogRef to;
  CatalogRef from;
  static constexpr std::string_view kind = "catalog.inverse";
  static constexpr auto layout() {
    return record(
        mode_txn, keyspace_field(&CatalogInverseKey::keyspace), model_catalog,
        literal("record", "ri", "relation from its other end", "/Inverse"), catalog_separator,
        field<UuidBytes>("metalake", &CatalogInverseKey::metalake, "metalake id"),
        catalog_separator,
        field<OneOf<catalog_relation_words>>("relation", &CatalogInverseKey::relation),
        catalog_separator, field<CatalogRefBytes>("to", &CatalogInverseKey::to, "the other end"),
        catalog_separator, field<CatalogRefBytes>("from", &CatalogInverseKey::from, "one end"));
  }
};

// | 'x' | keyspace u24 | 'c' | 'ga' '_' | role u64 | '_' | above ref | '_' | ref |
struct CatalogGrantKey {
  KeyspaceId keyspace;
  EntityId role;
  CatalogRef above;
  CatalogRef ref;
  static constexpr std::string_view kind = "catalog.grant";
  static constexpr auto layout() {
    return record(mode_txn, keyspace_field(&CatalogGrantKey::keyspace), model_catalog,
                  literal("record", "ga", "privileges of a role", "/Grants"), catalog_separator,
                  field<BigEndian<8>>("role", &CatalogGrantKey::role, "role id"), catalog_separator,
                  field<CatalogRefBytes>("above", &CatalogGrantKey::above, "where it stands"),
                  catalog_separator,
                  field<CatalogRefBytes>("ref", &CatalogGrantKey::ref, "with what"));
  }
};

}  // namespace trellis
