// Handlers of the table of stream commands that lie in files of their own, and what they share.
#pragma once

#include "redis/stream.h"

namespace trellis {

// stream_group_commands.cc
Status xreadgroup(Call& call);
Status xack(Call& call);
Status xpending(Call& call);
std::span<const Command> xgroup_commands();

// stream_claim_commands.cc
Status xclaim(Call& call);
Status xautoclaim(Call& call);

// stream_info_commands.cc: the subcommands of XINFO
std::span<const Command> xinfo_commands();

// What XREAD and XREADGROUP are asked for.
struct ReadOptions {
  uint64_t count = 0;  // of each stream; 0: any number
  std::optional<ByteView> group = {};
  ByteView consumer = {};
  bool no_ack = false;
  size_t streams_at = 0;  // the argument that is the first key; the ids follow the keys
  size_t streams = 0;
};
Result<ReadOptions> parse_read_options(Call& call);

// Where its keys are; COMMAND GETKEYS looks for STREAMS from `first` on.
Status append_streams(Args args, size_t first, std::vector<size_t>& positions);
template <size_t first>
Status find_streams(Args args, std::vector<size_t>& positions) {
  return append_streams(args, first, positions);
}

// Streams with what was read of them: a map in RESP3, pairs in RESP2, nothing if there is none.
class StreamsReply {
 public:
  explicit StreamsReply(Reply& reply) : reply_(reply), mark_(reply.mark()) {}
  void add(ByteView key);  // then its entries are written
  void finish();

 private:
  Reply& reply_;
  const size_t mark_;
  size_t streams_ = 0;
};

}  // namespace trellis
