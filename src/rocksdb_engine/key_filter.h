// Which user keys a memtable may have: a Bloom filter whose bits of a key lie in one line of the
// processor's caches.
//
// RocksDB's own is told of every write, and each waits for that line: 80 ns of what it takes to put
// a record. Here a key is added when it is new, and its line is fetched ahead.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>

#include "base/bytes.h"

namespace trellis {

class KeyFilter {
 public:
  // Of at most so many bytes; of fewer than a line none, and then it may have everything.
  KeyFilter(const std::function<char*(size_t bytes)>& allocate, size_t bytes)
      : lines_(std::bit_floor(bytes / sizeof(Line))) {
    if (lines_ == 0) return;
    const auto begin = reinterpret_cast<uintptr_t>(allocate((lines_ + 1) * sizeof(Line)));
    auto* const memory = reinterpret_cast<char*>((begin / sizeof(Line) + 1) * sizeof(Line));
    for (size_t i = 0; i < lines_; i++) new (memory + i * sizeof(Line)) Line();
    first_ = reinterpret_cast<Line*>(memory);
  }

  // One thread at a time. Who sees what is done after it sees it.
  void add(ByteView user_key) {
    if (lines_ == 0) return;
    visit(user_key, [](std::atomic<uint64_t>& word, uint64_t bit) {
      word.store(word.load(std::memory_order_relaxed) | bit, std::memory_order_relaxed);
      return true;
    });
  }
  // Any thread.
  bool may_have(ByteView user_key) const {
    return lines_ == 0 || visit(user_key, [](const std::atomic<uint64_t>& word, uint64_t bit) {
             return (word.load(std::memory_order_relaxed) & bit) != 0;
           });
  }
  void prefetch(ByteView user_key) const {
    if (lines_ != 0) __builtin_prefetch(&line_of(hash_of(user_key)), 1);
  }

 private:
  static constexpr int bits_of_key = 6;
  static constexpr unsigned bits_of_place = 9;  // a word of eight, a bit of it
  struct alignas(64) Line {
    std::array<std::atomic<uint64_t>, 8> words{};
  };

  static uint64_t hash_of(ByteView user_key) { return std::hash<ByteView>{}(user_key); }
  Line& line_of(uint64_t hash) const { return first_[hash & (lines_ - 1)]; }

  // Until one says false.
  template <class Visit>
  bool visit(ByteView user_key, Visit visit) const {
    const uint64_t hash = hash_of(user_key);
    Line& line = line_of(hash);
    uint64_t places = hash * 0x9e3779b97f4a7c15;  // the line has used the low bits
    for (int i = 0; i < bits_of_key; i++, places <<= bits_of_place) {
      const uint64_t place = places >> (64 - bits_of_place);
      if (!visit(line.words[place / 64], uint64_t{1} << place % 64)) return false;
    }
    return true;
  }

  const size_t lines_;
  Line* first_ = nullptr;
};

}  // namespace trellis
