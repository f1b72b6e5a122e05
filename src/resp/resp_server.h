// The RESP server: Redis's protocol on net's streams, the redis model behind it.
//
// All connections of a loop that are ready in one turn run their commands as one batch.
#pragma once

#include <memory>

#include "net/stream_server.h"
#include "redis/server.h"

namespace trellis {

// `redis` must outlive the stream server that this is given to.
MakeStreamProtocol make_resp_protocol(RedisServer& redis);

}  // namespace trellis
