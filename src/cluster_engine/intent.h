// What a commit over several ranges leaves in them until it is decided, and the decision.
//
//   i <address>              | 01 | incarnation u64 | sequence u64 | op 'p' or 'r' | value |
//   tx.<incarnation> <txn>   | 'C' | { size u32 | first address | size u32 | last address } ... |
//                            | 'A' |
//
// <txn> is the writer of the commit, whose version the values get. The addresses are, for each part
// of the commit, the first and the last that it writes: where to look for intents after a crash.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cluster_engine/range_object.h"

namespace trellis {

struct Intent {
  Writer txn;
  std::optional<ByteView> value;  // absent: the key is removed
};

Bytes encode_intent(const Intent& intent);
// Views into `bytes`. Code::corrupt if they are no intent.
Result<Intent> decode_intent(ByteView bytes);

struct Decision {
  bool committed = false;
  std::vector<std::pair<Bytes, Bytes>> written;  // first and last address of each part
};

Bytes encode_decision(const Decision& decision);
Result<Decision> decode_decision(ByteView bytes);

inline constexpr ByteView log_object_name_prefix = "tx.";
Bytes log_object_name(uint64_t incarnation);
// Absent if it is no log.
std::optional<uint64_t> parse_log_object_name(ByteView object);

// Length-prefixed bytes in records that never leave the store: | size u32 | bytes |.
void append_sized(Bytes& out, ByteView bytes);
// Takes one off the front; false if there is none.
bool take_sized(ByteView& in, ByteView& out);

}  // namespace trellis
