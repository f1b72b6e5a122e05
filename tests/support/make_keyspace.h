#pragma once

#include <string>
#include <utility>

#include "codec/system_keys.h"
#include "engine/engine.h"
#include "tenant/keyspace.h"

namespace trellis {

// The record of a keyspace and nothing else of it, for tests of a model on its own.
inline Status make_keyspace(Engine& engine, KeyspaceId id, std::string name = "test") {
  Keyspace made;
  made.id = id;
  made.name = std::move(name);
  Commit one;
  one.writes.put(encode(KeyspaceMetaKey{id}), encode_keyspace(made));
  one.durability = Durability::always;
  return commit(engine, one);
}

}  // namespace trellis
