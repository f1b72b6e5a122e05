// A handler of the table of bitmap commands that lies in a file of its own.
#pragma once

#include "redis/call.h"

namespace trellis {

Status bitop(Call& call);

}  // namespace trellis
