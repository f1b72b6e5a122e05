// A load whose traces show, after a crash, which commits are there and that each is there whole.
//
// Each lane is one thread's own sequence of commits 1, 2, 3 ... Commit n of a lane first writes a
// block, then in one commit: the same stamp under several keys, a put and a range delete in a log
// that keeps the last entries, an add to a counter, and how far every other lane was when it began.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/random.h"
#include "engine/engine.h"

namespace trellis {

constexpr size_t lanes = 4;
using LanePositions = std::array<uint64_t, lanes>;

class StampedCommits {
 public:
  // Continues behind `found`, which is what an earlier crash left.
  explicit StampedCommits(const LanePositions& found);

  // Makes the lane's next commit and answers its outcome. One thread per lane.
  Status step(Engine& engine, size_t lane, Durability durability, Random& random);

  // The number of the lane's latest commit that was ordered: commit_many answered without error.
  uint64_t ordered(size_t lane) const { return ordered_[lane].load(); }
  // And of the latest whose call as a whole said yes.
  uint64_t acknowledged(size_t lane) const { return acknowledged_[lane].load(); }
  uint64_t begun(size_t lane) const { return begun_[lane].load(); }

 private:
  Commit next_commit(size_t lane, uint64_t n) const;

  std::array<std::atomic<uint64_t>, lanes> begun_;
  std::array<std::atomic<uint64_t>, lanes> ordered_;
  std::array<std::atomic<uint64_t>, lanes> acknowledged_;
};

// How far each lane is, or Code::corrupt with what is wrong: half a commit, a commit without one
// that was ordered before it began, or a commit without its block.
Result<LanePositions> find_positions(Engine& engine);

}  // namespace trellis
