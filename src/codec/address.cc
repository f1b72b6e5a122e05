#include "codec/address.h"

#include <algorithm>
#include <cstring>

#include "codec/catalog_keys.h"
#include "codec/field_codecs.h"

namespace trellis {
namespace {

constexpr size_t model_offset = 4;  // 'x' and 3 bytes of keyspace
constexpr size_t prefix_bytes = 5;
constexpr size_t inode_bytes = 8;
constexpr size_t version_bytes = 8;
constexpr char inode_group = '\x01';

// The model tag of a tenant's key, 0 if it is no such key.
char model_of(ByteView key) { return key.size() > model_offset && key[0] == 'x' ? key[4] : '\0'; }

// Scopes whose records belong to an inode (or data id), and are placed under it.
bool is_inode_scope(char scope) {
  return scope == 1 || scope == 2 || scope == 3 || scope == 5 || scope == 7;
}

Error malformed(size_t offset, std::string_view why) {
  return to_error({offset, "address", why, {}});
}

// The namespace field, with its length byte.
Result<ByteView> take_namespace(ByteView rest, size_t offset) {
  if (rest.empty()) return malformed(offset, "too short");
  const size_t size = 1 + static_cast<unsigned char>(rest[0]);
  if (size > rest.size()) return malformed(offset, "length goes past the end");
  return rest.substr(0, size);
}

bool is_redis_table(char tag) { return redis_tables.find(tag) != ByteView::npos; }

struct RedisParts {
  char tag;
  ByteView ns;    // with its length byte
  ByteView key;   // user key
  ByteView rest;  // version and what follows; nothing for metadata
};

Result<RedisParts> split_redis(ByteView key) {
  if (key.size() == prefix_bytes) return malformed(prefix_bytes, "too short");
  RedisParts parts{.tag = key[prefix_bytes], .ns = {}, .key = {}, .rest = {}};
  if (!is_redis_table(parts.tag)) return malformed(prefix_bytes, "unknown Redis table");
  size_t offset = prefix_bytes + 1;
  TRY_ASSIGN(parts.ns, take_namespace(key.substr(offset), offset));
  offset += parts.ns.size();
  if (!is_of_lives(parts.tag)) {
    parts.key = key.substr(offset);
    return parts;
  }
  if (key.size() - offset < 4) return malformed(offset, "too short");
  const size_t size = load_be(key.data() + offset, 4);
  if (size > key.size() - offset - 4) return malformed(offset, "length goes past the end");
  parts.key = key.substr(offset + 4, size);
  parts.rest = key.substr(offset + 4 + size);
  return parts;
}

void append_redis_granule(Bytes& out, ByteView key, const RedisParts& parts) {
  const size_t begin = out.size();
  out.resize(begin + prefix_bytes + parts.ns.size());
  std::memcpy(out.data() + begin, key.data(), prefix_bytes);
  std::memcpy(out.data() + begin + prefix_bytes, parts.ns.data(), parts.ns.size());
  Terminated::append(out, parts.key);
}

bool has_inode(ByteView key) {
  return key.size() > prefix_bytes && is_inode_scope(key[prefix_bytes]);
}

// What many write to in one directory at the same time: each entry and each slot of its figures.
bool is_apart(ByteView key) {
  const size_t record = prefix_bytes + 1 + inode_bytes;
  return key[prefix_bytes] == 3 ||
         (key[prefix_bytes] == 1 && key.size() > record && key[record] == 'S');
}

Status append_inode_granule(Bytes& out, ByteView key) {
  if (key.size() < prefix_bytes + 1 + inode_bytes) return malformed(key.size(), "too short");
  out.append(key.substr(0, prefix_bytes));
  out.push_back(inode_group);
  out.append(key.substr(prefix_bytes + 1, inode_bytes));
  return {};
}

Status append_redis_key_at(Bytes& out, ByteView address) {
  size_t offset = prefix_bytes;
  TRY_ASSIGN(const ByteView ns, take_namespace(address.substr(offset), offset));
  offset += ns.size();
  Bytes scratch;
  Reader reader(address.substr(offset), &scratch);
  ByteView user_key;
  if (!Terminated::read(reader, user_key)) {
    reader.failure().offset += offset;
    return to_error(reader.failure());
  }
  offset += reader.offset();
  if (offset == address.size()) return malformed(offset, "too short");
  const char tag = address[offset];
  const ByteView rest = address.substr(offset + 1);
  if (!is_redis_table(tag)) return malformed(offset, "unknown Redis table");
  if (is_of_lives(tag) ? rest.size() < version_bytes : !rest.empty())
    return malformed(offset + 1, "wrong length for its table");
  out.append(address.substr(0, prefix_bytes));
  out.push_back(tag);
  out.append(ns);
  if (is_of_lives(tag)) append_be32(out, static_cast<uint32_t>(user_key.size()));
  out.append(user_key);
  out.append(rest);
  return {};
}

// How long the ref is that `rest` begins with; 0: it is none.
size_t ref_bytes(ByteView rest) {
  Reader reader(rest, nullptr);
  CatalogRef ref;
  return CatalogRefBytes::read(reader, ref) ? reader.offset() : 0;
}

// All that is to be found by one thing's names, wherever it stands among the others' names; a table
// also by those of its columns.
void append_search_granule(Bytes& out, ByteView key) {
  Bytes scratch;
  const auto found = decode<CatalogSearchKey>(key, scratch);
  if (!found) return static_cast<void>(out.append(key));
  out.append(key.substr(0, prefix_bytes + 3));
  const bool is_column = found->ref.type == CatalogType::column;
  CatalogRefBytes::append(
      out, is_column ? CatalogRef::of(CatalogType::table, found->ref.number()) : found->ref);
}

// What the children of one parent share: the key up to its own id, for names up to the parent;
// what the members of one thing share: the key up to the thing.
ByteView catalog_granule(ByteView key) {
  constexpr size_t tag = 3;  // two letters and '_'
  constexpr size_t uuid = 16;
  constexpr size_t number = 8;
  const ByteView record = key.substr(prefix_bytes);
  const ByteView type = record.substr(0, 2);
  const auto is_any_of = [&](ByteView types) { return types.find(type) != ByteView::npos; };
  const auto up_to_ref_at = [&](size_t offset) {
    const size_t size = record.size() > offset ? ref_bytes(record.substr(offset)) : 0;
    return size == 0 ? record.size() : offset + size;
  };
  size_t size = tag + uuid + 1;  // members of a metalake: up to the metalake
  if (type == "nm")
    size = tag + (record.size() > tag + number && record[tag + number] == '_' ? number : uuid);
  else if (type == "id" || type == "ml" || type == "sq")
    return key;
  else if (is_any_of("sc br"))
    size = tag + uuid + 1 + uuid + 1;
  else if (is_any_of("ta to fi mo vi fu"))
    size = tag + uuid + 1 + uuid + 1 + number + 1;
  else if (type == "lg")
    size = tag + uuid;
  else if (is_any_of("pt mv al ga"))
    size = tag + number;
  else if (type == "dl")
    size = up_to_ref_at(tag);
  else if (type == "st")
    size = up_to_ref_at(tag + uuid + 1);
  else if (is_any_of("rl ri"))
    size = up_to_ref_at(tag + uuid + 1 + 1 + 1);
  return key.substr(0, std::min(key.size(), prefix_bytes + size));
}

// What is locked as one: the log of changes, and the tokens or holds of one keyspace, of which a
// transaction scans or adds one whose key it does not know before.
ByteView system_granule(ByteView key) {
  constexpr ByteView log = "\x04/keyspaces/change";
  constexpr size_t digits = 8;
  if (key.starts_with(log)) return log;
  for (const ByteView list :
       {ByteView("\x04/keyspaces/service_safe_point/"), ByteView("\x04/keyspaces/token/")})
    if (key.starts_with(list)) return key.substr(0, std::min(key.size(), list.size() + digits));
  return key;
}

}  // namespace

Status append_address(Bytes& out, ByteView key) {
  const char model = model_of(key);
  if (model == 'd') {
    TRY_ASSIGN(const RedisParts parts, split_redis(key));
    if (is_of_lives(parts.tag) && parts.rest.size() < version_bytes)
      return malformed(key.size(), "too short for a version");
    append_redis_granule(out, key, parts);
    out.push_back(parts.tag);
    out.append(parts.rest);
    return {};
  }
  if (model == 'f' && has_inode(key)) {
    TRY(append_inode_granule(out, key));
    out.push_back(key[prefix_bytes]);
    out.append(key.substr(prefix_bytes + 1 + inode_bytes));
    return {};
  }
  out.append(key);
  return {};
}

Status append_key_at(Bytes& out, ByteView address) {
  const char model = model_of(address);
  if (model == 'd') return append_redis_key_at(out, address);
  if (model == 'f' && has_inode(address)) {
    constexpr size_t scope_offset = prefix_bytes + 1 + inode_bytes;
    if (address[prefix_bytes] != inode_group)
      return malformed(prefix_bytes, "unknown group of file records");
    if (address.size() <= scope_offset) return malformed(address.size(), "too short");
    if (!is_inode_scope(address[scope_offset])) return malformed(scope_offset, "unknown scope");
    out.append(address.substr(0, prefix_bytes));
    out.push_back(address[scope_offset]);
    out.append(address.substr(prefix_bytes + 1, inode_bytes));
    out.append(address.substr(scope_offset + 1));
    return {};
  }
  out.append(address);
  return {};
}

Status append_granule(Bytes& out, ByteView key) {
  const char model = model_of(key);
  if (model == 'd') {
    TRY_ASSIGN(const RedisParts parts, split_redis(key));
    append_redis_granule(out, key, parts);
    return {};
  }
  if (model == 'f' && has_inode(key))
    return is_apart(key) ? append_address(out, key) : append_inode_granule(out, key);
  if (model == 'c' && key.substr(prefix_bytes).starts_with("ix_"))
    append_search_granule(out, key);
  else
    out.append(model == 'c' ? catalog_granule(key) : system_granule(key));
  return {};
}

}  // namespace trellis
