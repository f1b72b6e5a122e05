// The RESP server: Redis's protocol on net's streams, the redis model behind it.
//
// All connections of a loop that are ready in one turn run their commands as one batch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/stream_server.h"
#include "redis/server.h"

namespace trellis {

struct RespOptions {
  // Input and output of all clients. Over it the largest are closed. (To read no more from anybody
  // would be no help: those who fill the memory are those who do not go on, and all others would
  // wait for them.)
  size_t memory_bytes_max = 512 * 1024 * 1024;
  uint64_t idle_timeout_ms = 0;       // says nothing for so long: closed; 0: never
  uint64_t send_timeout_ms = 60'000;  // takes nothing of its replies for so long: closed
};

// `redis` must outlive the stream server that this is given to.
MakeStreamProtocol make_resp_protocol(RedisServer& redis, const RespOptions& options);

}  // namespace trellis
