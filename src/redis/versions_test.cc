#include "redis/versions.h"

#include <gtest/gtest.h>

#include "engine/memory_engine.h"
#include "support/expect_ok.h"

namespace trellis {
namespace {

// What a backup of a store with a clock that is ahead brings along.
TEST(VersionsTest, GrowBehindThoseOfARestoredKeyspace) {
  MemoryEngine engine;
  FakeClock clock(1'700'000'000'000);
  Transactor transactor(engine, clock);
  const MapHandle map{engine, transactor, clock};
  Versions versions(map);
  ASSERT_OK(versions.prepare());
  const uint64_t before = versions.next();
  const uint64_t restored_end = before + (uint64_t{1} << 50);
  ASSERT_OK(versions.skip_to(before - 1));  // those are long gone
  EXPECT_EQ(versions.next(), before + 1);
  ASSERT_OK(versions.skip_to(restored_end));
  EXPECT_GT(versions.next(), restored_end);
  ASSERT_OK(versions.prepare());
  EXPECT_GT(versions.next(), restored_end);

  Versions after_a_restart(map);
  ASSERT_OK(after_a_restart.prepare());
  EXPECT_GT(after_a_restart.next(), restored_end);
}

}  // namespace
}  // namespace trellis
