// The transaction of a command that runs alone; within EXEC that of EXEC.
#pragma once

#include <span>

#include "redis/call.h"

namespace trellis {

struct NamedKey {
  uint32_t database;
  ByteView name;
  Access access;
};

// Runs `fn` with a Call like that of commands in batches: what it changes is committed when it
// returns, and nothing is if it returns an error. It may run several times.
Status transact_alone(AloneCall& call, std::span<const NamedKey> names,
                      FunctionRef<Status(Call&)> fn);
// The same with the keyspace to itself.
Status transact_all(AloneCall& call, Access access, FunctionRef<Status(Call&)> fn);

}  // namespace trellis
