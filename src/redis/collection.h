// What hashes, sets and sorted sets do alike with their records: field or member -> value.
#pragma once

#include <vector>

#include "redis/call.h"

namespace trellis {

// Of every `step`-th argument from `first` on: where each distinct one is, the last of equal ones,
// in the order of their bytes.
std::vector<size_t> distinct_args(const Call& call, size_t first, size_t step = 1);
// Those arguments, for Keys::get_subs.
std::vector<ByteView> args_at(const Call& call, std::span<const size_t> positions);

// The view of a record. It dies when the visitor returns; the visitor must not use `Keys`.
using RecordVisitor = FunctionRef<void(ByteView sub, ByteView value)>;

// Removes the records that the arguments from `first` on name, and says how many there were.
Result<uint64_t> remove_args(Call& call, Key& key, size_t first);

// These visit nothing if the key does not exist.
Status visit_records(Call& call, const Key& key, RecordVisitor visit);

// HSCAN, SSCAN and ZSCAN: key cursor [MATCH pattern] [COUNT count]. `show` replies with a record,
// as `parts` bulks.
Status reply_scan(Call& call, RedisType type, size_t parts, RecordVisitor show);

// Records at random, each as likely as any other: `count` of them, or if they are to be distinct
// all that there are, if that is less.
struct RandomPick {
  uint64_t count = 1;
  bool distinct = true;
  bool with_values = false;  // else the visitor may get none
};
Status visit_random(Call& call, const Key& key, RandomPick pick, RecordVisitor visit);

// The count of SRANDMEMBER, HRANDFIELD and ZRANDMEMBER, in argument 2: negative if one record may
// come several times.
Result<RandomPick> random_pick(const Call& call);

}  // namespace trellis
