// A small seeded generator (xoshiro256**): the same seed gives the same run on every machine.
// Not for secrets.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "base/bytes.h"

namespace trellis {

class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {  // splitmix64, so that close seeds give unlike streams
      seed += 0x9e3779b97f4a7c15;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }

  uint64_t next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // In [0, bound). REQUIRES: bound > 0. The bias of a 64-bit product is far below what tests see.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }
  bool one_in(uint64_t n) { return n != 0 && below(n) == 0; }

  Bytes bytes(size_t size) {
    Bytes out(size, '\0');
    for (char& byte : out) byte = static_cast<char>(next() >> 56);
    return out;
  }

 private:
  std::array<uint64_t, 4> state_;
};

}  // namespace trellis
