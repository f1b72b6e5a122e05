// Tells when all who were reading at some time are done, and nobody waits for anybody.
//
//   const ReadEpochs::Reader reader(epochs);   // before it looks at anything
//
//   shared = next;                             // from now on nobody comes to what it was
//   const uint64_t since = epochs.now();
//   ...
//   epochs.advance();                          // now and then
//   if (epochs.is_over(since)) reuse(old);     // those who came to it before have left
//
// Readers are counted by whether the epoch in which they came was even or odd. An epoch begins when
// none of the one before the last is left. Who has seen an epoch and is counted when the next has
// begun is taken for one of the one after that, so no reader sees more than two begin after it was
// counted: with three, it has left.
//
// Whoever comes later than an epoch sees what was written before it began, for both change the same
// counts: so what is `shared` need only be released.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace trellis {

class ReadEpochs {
 public:
  // Lives as long as the read.
  class Reader {
   public:
    explicit Reader(ReadEpochs& epochs)
        : count_(epochs.counts_of_this_thread()[epochs.epoch_.load() % 2]) {
      count_.fetch_add(1);
    }
    ~Reader() { count_.fetch_sub(1); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    std::atomic<uint64_t>& count_;
  };

  // An epoch and those behind it, in order.
  uint64_t now() const { return epoch_.load(); }
  // One thread at a time.
  void advance() {
    const uint64_t next = epoch_.load() + 1;
    for (const Counts& counts : counts_)
      if (counts.of[next % 2].load() != 0) return;
    for (Counts& counts : counts_)
      if (counts.of[next % 2].fetch_add(0) != 0) return;
    epoch_.store(next);
  }
  // Whether all have left who came before now() was `since`, or while it was.
  bool is_over(uint64_t since) const { return now() >= since + epochs_to_leave; }
  // The same, and all who came while one of these was there.
  bool is_over_twice(uint64_t since) const { return now() >= since + 2 * epochs_to_leave - 1; }

 private:
  static constexpr uint64_t epochs_to_leave = 3;
  struct alignas(64) Counts {
    std::array<std::atomic<uint64_t>, 2> of{};
  };

  // Of some threads: each changes them twice for every read, and would wait for the others.
  std::array<std::atomic<uint64_t>, 2>& counts_of_this_thread() {
    static std::atomic<size_t> threads{0};
    thread_local const size_t number = threads.fetch_add(1, std::memory_order_relaxed);
    return counts_[number % counts_.size()].of;
  }

  alignas(64) std::atomic<uint64_t> epoch_{0};
  std::array<Counts, 16> counts_{};
};

}  // namespace trellis
