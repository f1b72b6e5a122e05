// The subcommands of CLIENT, and what HELLO has in common with them.
#pragma once

#include "redis/call.h"

namespace trellis {

std::span<const Command> client_commands();
Status set_client_name(AloneCall& call, ByteView name);

}  // namespace trellis
