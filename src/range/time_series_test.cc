#include "range/time_series.h"

#include <gtest/gtest.h>

#include "engine/memory_engine.h"

namespace trellis {
namespace {

constexpr uint64_t hour_ms = 3'600'000;
constexpr uint64_t day_ms = 24 * hour_ms;
constexpr uint64_t start_ms = 1'700'000'000'000 / day_ms * day_ms;

constexpr uint64_t end_ms = start_ms + 2 * day_ms;

size_t records(MemoryEngine& engine) {
  size_t count = 0;
  const auto visit = [&](ByteView, ByteView) {
    count++;
    return Visit::go_on;
  };
  EXPECT_TRUE(engine.scan({}, visit).has_value());
  return count;
}

TEST(TimeSeries, KeepsSamplesThenAveragesThenNothing) {
  MemoryEngine engine;
  TimeSeries series(engine);
  for (uint64_t at = 0; at < 2 * hour_ms; at += 10'000) {
    const TimeSeries::Sample samples[] = {{"range.bytes", "7", at / 10'000},
                                          {"range.bytes", "8", 5}};
    ASSERT_TRUE(series.append(start_ms + at, samples).has_value());
  }
  EXPECT_EQ(records(engine), 4u);  // two hours of two sources
  auto points = series.read("range.bytes", "7", start_ms + hour_ms, end_ms);
  ASSERT_TRUE(points.has_value());
  ASSERT_EQ(points->size(), 360u);
  EXPECT_EQ(points->front(), (TimeSeries::Point{start_ms + hour_ms, 360}));

  EXPECT_EQ(*series.roll_up("range.bytes", start_ms + day_ms), 0u);
  EXPECT_EQ(*series.roll_up("range.bytes", start_ms + day_ms + hour_ms), 2u);
  points = series.read("range.bytes", "7", start_ms, end_ms);
  ASSERT_EQ(points->size(), 2u + 360u);
  EXPECT_EQ((*points)[0], (TimeSeries::Point{start_ms, 89}));  // of 0 to 179
  EXPECT_EQ((*points)[1], (TimeSeries::Point{start_ms + hour_ms / 2, 269}));
  EXPECT_EQ((*points)[2], (TimeSeries::Point{start_ms + hour_ms, 360}));

  EXPECT_EQ(*series.roll_up("range.bytes", start_ms + 2 * day_ms), 2u);
  EXPECT_EQ(series.read("range.bytes", "7", start_ms, end_ms)->size(), 4u);
  EXPECT_EQ(*series.roll_up("range.bytes", start_ms + 32 * day_ms), 2u);
  EXPECT_EQ(records(engine), 0u);
}

TEST(TimeSeries, ASecondSampleReplacesTheFirst) {
  MemoryEngine engine;
  TimeSeries series(engine);
  for (const uint64_t value : {1, 2}) {
    const TimeSeries::Sample sample[] = {{"x", "1", value}};
    ASSERT_TRUE(series.append(start_ms + value, sample).has_value());
  }
  EXPECT_EQ(*series.read("x", "1", start_ms, end_ms),
            (std::vector<TimeSeries::Point>{{start_ms, 2}}));
}

}  // namespace
}  // namespace trellis
