// Whether a keyspace is there, asked inside the transaction that depends on it.
#pragma once

#include "map/transact.h"
#include "tenant/keyspace.h"

namespace trellis {

// What a transaction that looks a keyspace up must hold. Code::not_found, reason
// keyspace_not_found, if there cannot be such an id.
Status lock_keyspace_meta(Scope& scope, KeyspaceId keyspace);

// Code::not_found, reason keyspace_not_found, if there is no such keyspace, or only the record of
// one that was purged. A tombstone is there, as long as it is not purged.
Result<Keyspace> look_up_keyspace(View& view, KeyspaceId keyspace);
// The same outside of a transaction.
Result<Keyspace> look_up_keyspace(Engine& engine, KeyspaceId keyspace);
// A tombstone is refused in the same way.
Result<Keyspace> look_up_living_keyspace(View& view, KeyspaceId keyspace);

}  // namespace trellis
