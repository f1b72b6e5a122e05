// Numbers that are given once: for nodes, stores, ranges and descriptors.
//
//   04 'range-idgen' and its like  ->  | 01 | last number of the last block taken, u64be |
//
// A block of them is taken by one commit; what is left of it when the process ends is lost, so
// there are gaps, but no number comes twice, also among several servers on one map.
//
// Threads: any. Blocking: every tenth call commits.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/bytes.h"
#include "base/result.h"
#include "codec/system_keys.h"
#include "engine/engine.h"

namespace trellis {

constexpr uint64_t id_block = 10;

class IdGenerator {
 public:
  // `taken`: numbers up to it are in use without having been given (first_range_id).
  IdGenerator(Engine& engine, SystemKey::What generator, uint64_t taken = 0);

  // At least 1 and more than every one before; 0 stands for none. Code::corrupt if the stored
  // number went back: going on would give numbers twice.
  Result<uint64_t> next();

 private:
  Status take_block();

  Engine& engine_;
  const Bytes key_;
  const uint64_t taken_;
  std::mutex mutex_;
  uint64_t last_ = 0;       // given
  uint64_t block_end_ = 0;  // the last number of the block
};

}  // namespace trellis
