#include "catalog/members.h"

namespace trellis {
namespace {

// What keys of a record begin with, up to `id`.
Bytes prefix_of(KeyspaceId keyspace, std::string_view letters, ByteView id) {
  Bytes out;
  append_keyspace_prefix(out, KeyMode::txn, keyspace);
  out.append(model_catalog.bytes);
  out.append(letters);
  out.append(catalog_separator.bytes);
  out.append(id);
  return out;
}

ByteView id_of(const CatalogRef& ref) {
  return {reinterpret_cast<const char*>(ref.id.data()), ref.id_bytes()};
}

// The letters of catalog_relation_words: what may have such a relation to others, and others to it.
std::string_view relations_from(CatalogType type) {
  switch (type) {
    case CatalogType::user:
    case CatalogType::group: return "r";
    case CatalogType::role: return "og";
    case CatalogType::column: return "tp";
    default: return "tpo";
  }
}

std::string_view relations_to(CatalogType type) {
  switch (type) {
    case CatalogType::user:
    case CatalogType::group: return "o";
    case CatalogType::role: return "rg";
    case CatalogType::tag: return "tg";
    case CatalogType::policy: return "pg";
    default: return "g";
  }
}

}  // namespace

std::vector<Bytes> members_of(KeyspaceId keyspace, const Uuid& metalake, const CatalogRef& ref,
                              bool metalake_goes) {
  std::vector<Bytes> prefixes;
  const auto add = [&](std::string_view letters, ByteView id) {
    prefixes.push_back(prefix_of(keyspace, letters, id));
  };
  if (ref.type == CatalogType::table) add("pt", id_of(ref));
  if (ref.type == CatalogType::model) {
    add("mv", id_of(ref));
    add("al", id_of(ref));
  }
  if (ref.type == CatalogType::role) add("ga", id_of(ref));
  if (ref.type <= CatalogType::schema) add("dl", encode_ref(ref));
  const ByteView lake(reinterpret_cast<const char*>(metalake.data()), metalake.size());
  if (ref.type == CatalogType::metalake)
    for (const std::string_view letters : {"st", "rl", "ri", "ix", "lg"}) add(letters, lake);
  if (metalake_goes) return prefixes;

  // All columns of a table: their refs without their own ids.
  Bytes columns = encode_ref(CatalogRef::column(ref.number(), EntityId{0}));
  columns.resize(columns.size() - 8);
  const auto add_statistics = [&](ByteView of) { add("st", Bytes(lake) + '_' + Bytes(of)); };
  const auto add_relations = [&](std::string_view letters, std::string_view relations,
                                 ByteView of) {
    for (const char relation : relations)
      add(letters, Bytes(lake) + '_' + relation + '_' + Bytes(of));
  };
  add_statistics(encode_ref(ref));
  add_relations("rl", relations_from(ref.type), encode_ref(ref));
  add_relations("ri", relations_to(ref.type), encode_ref(ref));
  if (ref.type != CatalogType::table) return prefixes;
  add_statistics(columns);
  add_relations("rl", relations_from(CatalogType::column), columns);
  return prefixes;
}

}  // namespace trellis
