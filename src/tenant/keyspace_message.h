// A Keyspace and its stored message, for messages that hold one.
#pragma once

#include "tenant/keyspace.h"

namespace trellis {

namespace stored {
class KeyspaceMeta;
}

void fill_message(const Keyspace& keyspace, stored::KeyspaceMeta& meta);
Result<Keyspace> keyspace_of(const stored::KeyspaceMeta& meta);

}  // namespace trellis
