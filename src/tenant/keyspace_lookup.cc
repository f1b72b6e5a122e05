#include "tenant/keyspace_lookup.h"

#include <fmt/format.h>

#include "base/limits.h"
#include "codec/system_keys.h"

namespace trellis {
namespace {

Error not_found(KeyspaceId keyspace) {
  return {
      Code::not_found,
      fmt::format("keyspace {} does not exist: list the keyspaces to see which do", keyspace.value),
      "keyspace_not_found"};
}

template <class Map>
Result<Keyspace> look_up(Map& map, KeyspaceId keyspace) {
  if (keyspace.value > keyspace_id_max) return not_found(keyspace);  // has no key
  Value value;
  TRY(map.get(encode(KeyspaceMetaKey{keyspace}), value));
  if (!value.found()) return not_found(keyspace);
  TRY_ASSIGN(Keyspace found, decode_keyspace(value.bytes()));
  if (found.purged_at_s != 0) return not_found(keyspace);
  return found;
}

}  // namespace

Status lock_keyspace_meta(Scope& scope, KeyspaceId keyspace) {
  if (keyspace.value > keyspace_id_max) return not_found(keyspace);
  scope.shared(encode(KeyspaceMetaKey{keyspace}));
  return {};
}

Result<Keyspace> look_up_keyspace(View& view, KeyspaceId keyspace) {
  return look_up(view, keyspace);
}

Result<Keyspace> look_up_keyspace(Engine& engine, KeyspaceId keyspace) {
  return look_up(engine, keyspace);
}

Result<Keyspace> look_up_living_keyspace(View& view, KeyspaceId keyspace) {
  TRY_ASSIGN(Keyspace found, look_up(view, keyspace));
  if (found.state == KeyspaceState::tombstone) return not_found(keyspace);
  return found;
}

}  // namespace trellis
