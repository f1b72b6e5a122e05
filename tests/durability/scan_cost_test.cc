// What a page of a scan does not look at.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store_fixture.h"

namespace trellis {
namespace {

class ScanCost : public StoreFixture {
 protected:
  static Bytes key(int i) { return fmt::format("{:06}", i); }
  // So often that a part of them is counted.
  static void scan_often(Engine& engine, const ScanRequest& request, Visit answer) {
    for (uint32_t i = 0; i < 2 * SampledReads::sampled_one_in; i++) {
      const auto page = engine.scan(request, [&](ByteView, ByteView) { return answer; });
      ASSERT_TRUE(page.has_value());
      ASSERT_EQ(page->entries, 1);
      ASSERT_TRUE(page->resume.has_value());
    }
  }
};

// The head of a queue: one entry, and behind it many that were removed.
TEST_F(ScanCost, APageThatIsFullLooksNoFurther) {
  auto engine = open();
  constexpr int removed = 1000;
  Commit all;
  for (int i = 0; i <= 2 * removed; i++) all.writes.put(key(i), "v");
  ASSERT_TRUE(commit(*engine, all).has_value());
  Commit most;
  for (int i = 0; i <= 2 * removed; i++) {
    if (i != removed) most.writes.remove(key(i));
  }
  ASSERT_TRUE(commit(*engine, most).has_value());

  const Bytes begin = key(removed);
  const Bytes end = successor(begin);
  const uint64_t before = engine->figures().sampled.reads;
  scan_often(*engine, {.begin = begin, .entries_max = 1}, Visit::go_on);
  scan_often(*engine, {.begin = begin, .bytes_max = 1}, Visit::go_on);
  scan_often(*engine, {.begin = begin}, Visit::stop);
  scan_often(*engine, {.end = end, .reverse = true, .entries_max = 1}, Visit::go_on);
  scan_often(*engine, {.end = end, .reverse = true}, Visit::stop);
  const SampledReads sampled = engine->figures().sampled;
  EXPECT_GT(sampled.reads, before);
  EXPECT_LT(sampled.tombstones_skipped, removed);
}

// Pages by bytes meet without a gap and without an entry twice, both ways.
TEST_F(ScanCost, PagesByBytesMeet) {
  auto engine = open();
  Random random(4);
  for (int i = 0; i < 200; i++) {
    ASSERT_TRUE(put(*engine, "k" + key(i), Bytes(random.below(200), 'v')).has_value());
  }
  for (const bool reverse : {false, true}) {
    Bytes begin = "k";
    Bytes end = "l";
    int count = 0;
    for (int pages = 0; pages <= 200; pages++) {
      const ScanRequest request{.begin = begin, .end = end, .reverse = reverse, .bytes_max = 300};
      const auto page = engine->scan(request, [&](ByteView found, ByteView) {
        EXPECT_EQ(found, "k" + key(reverse ? 199 - count : count));
        count++;
        return Visit::go_on;
      });
      ASSERT_TRUE(page.has_value());
      if (!page->resume.has_value()) break;
      (reverse ? end : begin) = *page->resume;
    }
    EXPECT_EQ(count, 200);
  }
}

}  // namespace
}  // namespace trellis
