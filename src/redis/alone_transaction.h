// The transaction of a command that runs alone.
#pragma once

#include "redis/call.h"

namespace trellis {

// Runs `fn` with a Call like that of commands in batches: what it changes is committed when it
// returns, and nothing is if it returns an error. It may run several times.
Status transact_alone(AloneCall& call, const Scope& scope, Access access,
                      FunctionRef<Status(Call&)> fn);

}  // namespace trellis
