#include "rocksdb_engine/read_epochs.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "support/test_seed.h"

namespace trellis {
namespace {

TEST(ReadEpochs, EndWhenNobodyReads) {
  ReadEpochs epochs;
  const uint64_t since = epochs.now();
  EXPECT_FALSE(epochs.is_over(since));
  for (int i = 0; i < 10; i++) epochs.advance();
  EXPECT_TRUE(epochs.is_over(since));
  EXPECT_TRUE(epochs.is_over_twice(since));
}

TEST(ReadEpochs, LastAsLongAsAReader) {
  ReadEpochs epochs;
  auto first = std::make_unique<ReadEpochs::Reader>(epochs);
  const uint64_t since = epochs.now();
  for (int i = 0; i < 10; i++) epochs.advance();
  EXPECT_FALSE(epochs.is_over(since));
  // Those who came later keep what they may have seen, and nothing else.
  auto second = std::make_unique<ReadEpochs::Reader>(epochs);
  first.reset();
  for (int i = 0; i < 10; i++) epochs.advance();
  EXPECT_FALSE(epochs.is_over_twice(since));
  const uint64_t later = epochs.now();
  const ReadEpochs::Reader third(epochs);
  second.reset();
  for (int i = 0; i < 10; i++) epochs.advance();
  EXPECT_TRUE(epochs.is_over(since));
  EXPECT_FALSE(epochs.is_over(later));
}

// What is taken out of sight is made unusable when the epoch is over: nobody may find it so.
TEST(ReadEpochs, NobodySeesWhatIsOver) {
  constexpr size_t cells = 1'000;
  constexpr uint64_t unusable = ~uint64_t{0};
  ReadEpochs epochs;
  std::vector<std::atomic<uint64_t>> values(cells);
  std::atomic<size_t> shown{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (unsigned r = 0; r < 3; r++)
    readers.emplace_back([&] {
      // Who is put aside while it reads keeps the epoch for long: better between two reads.
      for (; !done.load(); std::this_thread::yield()) {
        const ReadEpochs::Reader reader(epochs);
        const size_t cell = shown.load();
        for (int i = 0; i < 5; i++) ASSERT_NE(values[cell].load(), unusable);
      }
    });
  for (uint64_t n = 0; n < test_rounds(100); n++) {
    const size_t old = shown.load();
    const size_t next = (old + 1) % cells;
    values[next].store(n);
    shown.store(next, std::memory_order_release);
    const uint64_t since = epochs.now();
    for (; !epochs.is_over(since); epochs.advance()) std::this_thread::yield();
    values[old].store(unusable);
  }
  done.store(true);
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace trellis
