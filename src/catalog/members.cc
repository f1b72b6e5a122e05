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
  const ByteView lake(reinterpret_cast<const char*>(metalake.data()), metalake.size());
  if (ref.type == CatalogType::metalake)
    for (const std::string_view letters : {"st", "rl", "ri", "ix", "lg"}) add(letters, lake);
  if (metalake_goes) return prefixes;
  const auto add_in_metalake = [&](std::string_view letters, std::string_view relation,
                                   const CatalogRef& of) {
    Bytes id(lake);
    id += '_';
    id += relation;
    if (!relation.empty()) id += '_';
    id += encode_ref(of);
    // All columns of a table: without a column's own id.
    if (of.type == CatalogType::column) id.resize(id.size() - 8);
    add(letters, id);
  };
  std::vector<CatalogRef> refs{ref};
  if (ref.type == CatalogType::table) refs.push_back(CatalogRef::column(ref.number(), EntityId{0}));
  for (const CatalogRef& of : refs) {
    add_in_metalake("st", "", of);
    for (const Word& relation : catalog_relation_words) {
      add_in_metalake("rl", relation.bytes, of);
      add_in_metalake("ri", relation.bytes, of);
    }
  }
  return prefixes;
}

}  // namespace trellis
