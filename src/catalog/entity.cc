#include "catalog/entity.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/no_wait.h"
#include "catalog/catalog_error.h"
#include "codec/stored_message.h"

namespace trellis {
namespace {

constexpr char named_format = 0x01;
constexpr unsigned char flag_disabled = 1;
constexpr size_t searched_bytes_max = 256;

bool stands_in_schema(CatalogType type) {
  return type >= CatalogType::table && type <= CatalogType::function;
}

// | 'x' | keyspace u24 | 'c' | type '_' | ids of all above, each with '_' | its own |: what the
// keys of all types have in common.
void append_id(Bytes& out, const CatalogRef& ref) {
  out.append(reinterpret_cast<const char*>(ref.id.data()), ref.id_bytes());
}

}  // namespace

EntityPath parent_of(const EntityPath& path) {
  ASSERT(!path.names.empty());
  const size_t depth = path.names.size() - 1;
  return {depth == 0 ? CatalogType::metalake : catalog_type_at(path.type, depth),
          std::vector(path.names.begin(), path.names.end() - 1)};
}

Status check_path(const EntityPath& path) {
  if (path.type == CatalogType::column)
    return illegal_argument("a column is read and changed with its table");
  if (path.names.size() == catalog_depth(path.type)) return {};
  return illegal_argument(fmt::format("a {} has {} names from the metalake down; this has {}",
                                      catalog_word(path.type).name, catalog_depth(path.type),
                                      path.names.size()));
}

Result<EntityPath> child_of(const EntityPath& parent, CatalogType type, std::string name) {
  EntityPath child{type, parent.names};
  child.names.push_back(std::move(name));
  TRY(check_path(child));
  return child;
}

std::string to_string(const EntityPath& path) {
  return fmt::format("{}", fmt::join(path.names, "."));
}

size_t catalog_depth(CatalogType type) {
  switch (type) {
    case CatalogType::metalake: return 1;
    case CatalogType::schema:
    case CatalogType::broker: return 3;
    case CatalogType::column: return 5;
    default: return stands_in_schema(type) ? 4 : 2;
  }
}

CatalogType catalog_type_at(CatalogType type, size_t depth) {
  constexpr CatalogType levels[] = {CatalogType::metalake, CatalogType::catalog,
                                    CatalogType::schema, CatalogType::table};
  ASSERT(depth >= 1 && depth <= catalog_depth(type));
  return depth == catalog_depth(type) ? type : levels[depth - 1];
}

bool is_member_of_metalake(CatalogType type) {
  return type >= CatalogType::tag && type <= CatalogType::role;
}

bool is_searchable(CatalogType type) {
  return type != CatalogType::metalake && type != CatalogType::user && type != CatalogType::group &&
         type != CatalogType::role;
}

std::string entity_tag(const Entity& entity) {
  Bytes id;
  append_id(id, entity.ref);
  return fmt::format("{}-{:x}", to_hex(id), entity.stored.version());
}

Status check_tag(const Entity& entity, std::string_view if_match) {
  if (if_match.empty() || if_match == entity_tag(entity)) return {};
  return version_changed(entity.ref.type, entity.name());
}

Status check_loop_bytes(size_t bytes) {
  if (!NoWait::is_on() || bytes <= catalog_loop_entity_bytes_max) return {};
  return Error{Code::busy, "the entity is too large for an event loop", would_wait_reason};
}

Result<Entity> decode_entity(std::span<const CatalogRef> above, const CatalogRef& ref,
                             ByteView value) {
  TRY(check_loop_bytes(value.size()));
  Entity entity{ref, {above.begin(), above.end()}, {}};
  TRY(decode_message(value, entity.stored, "catalog entity"));
  return entity;
}

const stored::CatalogColumn* find_column(const stored::CatalogEntity& entity,
                                         std::string_view name) {
  for (const stored::CatalogColumn& column : entity.table().columns())
    if (column.name() == name) return &column;
  return nullptr;
}

// --- keys ---

Bytes entity_key(KeyspaceId keyspace, std::span<const CatalogRef> above, const CatalogRef& ref) {
  ASSERT(above.size() + 1 == catalog_depth(ref.type) && ref.type != CatalogType::column);
  Bytes out;
  append_keyspace_prefix(out, KeyMode::txn, keyspace);
  out.append(model_catalog.bytes);
  out.append(catalog_word(ref.type).bytes);
  for (const CatalogRef& each : above) {
    out.append(catalog_separator.bytes);
    append_id(out, each);
  }
  out.append(catalog_separator.bytes);
  append_id(out, ref);
  return out;
}

Bytes name_key(KeyspaceId keyspace, const CatalogRef& parent, CatalogType type,
               std::string_view name) {
  if (parent.has_uuid()) return encode(CatalogNameKey{keyspace, parent.id, type, name});
  return encode(CatalogLeafNameKey{keyspace, parent.number(), type, name});
}

Bytes place_key(KeyspaceId keyspace, const CatalogRef& ref) {
  if (ref.has_uuid()) return encode(CatalogUuidKey{keyspace, ref.type, ref.id});
  return encode(CatalogIdKey{keyspace, ref.type, ref.number()});
}

Bytes searched(std::string_view name) {
  Bytes out(name.substr(0, searched_bytes_max));
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::vector<Bytes> search_keys(KeyspaceId keyspace, const Entity& entity) {
  std::vector<Bytes> keys;
  if (!is_searchable(entity.ref.type)) return keys;
  const auto add = [&](CatalogSearchKind kind, std::string_view name, const CatalogRef& ref) {
    keys.push_back(
        encode(CatalogSearchKey{keyspace, entity.metalake(), kind, searched(name), ref}));
  };
  add(CatalogSearchKind::name, entity.name(), entity.ref);
  for (const stored::CatalogColumn& column : entity.stored.table().columns())
    add(CatalogSearchKind::column, column.name(),
        CatalogRef::column(entity.ref.number(), EntityId{column.id()}));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// --- values ---

Bytes encode_named(const NamedRef& named) {
  Bytes out(1, named_format);
  out.push_back(static_cast<char>(named.disabled ? flag_disabled : 0));
  append_id(out, named.ref);
  return out;
}

Result<NamedRef> decode_named(CatalogType type, ByteView value) {
  NamedRef named{{type, {}}, false};
  const size_t head = 2;
  if (value.size() != head + named.ref.id_bytes() || value[0] != named_format ||
      (static_cast<unsigned char>(value[1]) & ~flag_disabled) != 0)
    return Error{Code::corrupt, "the stored name of a catalog entity does not make sense"};
  named.disabled = value[1] != 0;
  std::copy(value.begin() + head, value.end(), named.ref.id.begin());
  return named;
}

Bytes encode_place(const EntityPlace& place) {
  stored::CatalogPlace message;
  message.set_name(place.name);
  for (const CatalogRef& ref : place.above) message.add_above(encode_ref(ref));
  return encode_message(message);
}

Result<EntityPlace> decode_place(ByteView value) {
  stored::CatalogPlace message;
  TRY(decode_message(value, message, "place of a catalog entity"));
  EntityPlace place{message.name(), {}};
  for (const std::string& bytes : message.above()) {
    TRY_ASSIGN(const CatalogRef ref, decode_ref(bytes));
    place.above.push_back(ref);
  }
  return place;
}

}  // namespace trellis
