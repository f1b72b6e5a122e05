// What was removed leaves the disk when the engine is told.
#include <gtest/gtest.h>

#include "store_fixture.h"

namespace trellis {
namespace {

class Reclaim : public StoreFixture {
 protected:
  uint64_t table_bytes() const {
    uint64_t bytes = 0;
    for (const std::string& file : files_ending(".sst")) bytes += files_->read_file(file).size();
    return bytes;
  }
};

TEST_F(Reclaim, TheDiskGetsItBack) {
  auto engine = open();
  Random random(5);
  constexpr int entries = 2'000;
  for (const char* prefix : {"a", "b", "c"}) {
    Commit all;
    for (int i = 0; i < entries; i++)
      all.writes.put(prefix + std::to_string(i), random.bytes(1'000));
    ASSERT_TRUE(commit(*engine, all).has_value());
  }
  ASSERT_TRUE(engine->compact().has_value());
  const uint64_t full = table_bytes();
  ASSERT_GT(full, 3u * entries * 1'000);
  Commit middle;
  middle.writes.remove_range("b", "c");
  ASSERT_TRUE(commit(*engine, middle).has_value());
  std::atomic<bool> canceled = true;
  ASSERT_TRUE(engine->reclaim("b", "c", &canceled).has_value());
  EXPECT_GE(table_bytes(), full) << "nothing was done";
  canceled = false;
  ASSERT_TRUE(engine->reclaim("b", "c", &canceled).has_value());
  EXPECT_LT(table_bytes(), full * 7 / 10);
  size_t left = 0;
  ASSERT_TRUE(engine->scan({}, [&](ByteView, ByteView) {
    left++;
    return Visit::go_on;
  }));
  EXPECT_GE(left, 2u * entries);
}

}  // namespace
}  // namespace trellis
