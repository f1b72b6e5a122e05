// Where a busy range is best cut: a reservoir of sampled addresses, each of which counts what came
// to its left and to its right since.
#pragma once

#include <array>
#include <optional>

#include "base/bytes.h"
#include "base/random.h"

namespace trellis {

// One thread at a time.
class LoadSplit {
 public:
  explicit LoadSplit(uint64_t seed) : random_(seed) {}

  void record(ByteView address);
  // The address with the most even load on both sides, at most three quarters of it on one; absent
  // if there is none, or if too little is known.
  std::optional<Bytes> best() const;

 private:
  static constexpr size_t candidates_max = 20;
  static constexpr uint64_t counts_min = 100;
  struct Candidate {
    Bytes address;
    uint64_t left = 0;
    uint64_t right = 0;
  };
  std::array<Candidate, candidates_max> candidates_;
  uint64_t seen_ = 0;
  Random random_;
};

}  // namespace trellis
