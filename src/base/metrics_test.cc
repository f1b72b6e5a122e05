#include "base/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <latch>
#include <limits>
#include <set>
#include <thread>

#include "base/random.h"

namespace trellis {
namespace {

static_assert(sizeof(metrics_detail::Line) == 64 && alignof(metrics_detail::Line) == 64);

TEST(Metrics, ExactText) {
  Registry registry;
  Counter hits = registry.counter("hits_total", "Reads that hit.", {{"cache", "block"}}).value();
  Counter misses = registry.counter("hits_total", "Reads that hit.", {{"cache", "row"}}).value();
  Gauge open = registry.gauge("connections", "Open now.").value();
  Histogram took = registry.histogram("took_us", "Time taken.", {1, 2, 4}, {{"op", "get"}}).value();
  Histogram plain = registry.histogram("plain_us", "No labels.", {10}).value();
  ASSERT_TRUE(registry.watch("ratio", "Asked for.", [] { return 0.25; }).has_value());
  hits.add();
  hits.add(41);
  misses.add(std::numeric_limits<uint64_t>::max());
  open.add(2);
  open.add(-5);
  for (const uint64_t us : {0, 1, 2, 3, 4, 5, 100}) took.observe(us);
  plain.observe(11);

  EXPECT_EQ(prometheus_text(registry), R"(# HELP connections Open now.
# TYPE connections gauge
connections -3
# HELP hits_total Reads that hit.
# TYPE hits_total counter
hits_total{cache="block"} 42
hits_total{cache="row"} 18446744073709551615
# HELP plain_us No labels.
# TYPE plain_us histogram
plain_us_bucket{le="10"} 0
plain_us_bucket{le="+Inf"} 1
plain_us_sum 11
plain_us_count 1
# HELP ratio Asked for.
# TYPE ratio gauge
ratio 0.25
# HELP took_us Time taken.
# TYPE took_us histogram
took_us_bucket{op="get",le="1"} 2
took_us_bucket{op="get",le="2"} 3
took_us_bucket{op="get",le="4"} 5
took_us_bucket{op="get",le="+Inf"} 7
took_us_sum{op="get"} 115
took_us_count{op="get"} 7
)");
  EXPECT_EQ(hits.value(), 42u);
  EXPECT_EQ(open.value(), -3);
  EXPECT_EQ(took.count(), 7u);
}

TEST(Metrics, EscapesHelpAndLabelValues) {
  Registry registry;
  const std::string hostile = "a\\b\"c\nd";
  ASSERT_TRUE(registry.gauge("g", hostile, {{"l", hostile}}).has_value());
  EXPECT_EQ(prometheus_text(registry),
            "# HELP g a\\\\b\"c\\nd\n"
            "# TYPE g gauge\n"
            "g{l=\"a\\\\b\\\"c\\nd\"} 0\n");
}

TEST(Metrics, WatchedValuesThatAreNoNumbers) {
  Registry registry;
  const double infinity = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(registry.watch("a", "", [] { return std::nan(""); }).has_value());
  ASSERT_TRUE(registry.watch("b", "", [&] { return infinity; }).has_value());
  ASSERT_TRUE(registry.watch("c", "", [&] { return -infinity; }).has_value());
  const std::string text = prometheus_text(registry);
  EXPECT_NE(text.find("\na NaN\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nb +Inf\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nc -Inf\n"), std::string::npos) << text;
}

TEST(Metrics, RefusesWhatPrometheusWouldNotRead) {
  Registry registry;
  for (const std::string name : {"", "1a", "a-b", "a b", "ä", "a\n", "a{"}) {
    SCOPED_TRACE(name);
    EXPECT_FALSE(registry.counter(name, "").has_value());
    EXPECT_FALSE(registry.gauge("g", "", {{name, ""}}).has_value());
  }
  EXPECT_TRUE(registry.counter("ns:a_1", "").has_value());
  EXPECT_FALSE(registry.gauge("g", "", {{"with:colon", ""}}).has_value());
  EXPECT_FALSE(registry.gauge("g", "", {{"__reserved", ""}}).has_value());
  EXPECT_FALSE(registry.gauge("g", "", {{"l", "1"}, {"l", "2"}}).has_value());
  EXPECT_FALSE(registry.histogram("h", "", {1}, {{"le", "1"}}).has_value());
  EXPECT_FALSE(registry.histogram("h", "", {}).has_value());
  EXPECT_FALSE(registry.histogram("h", "", {2, 2}).has_value());
  EXPECT_FALSE(registry.histogram("h", "", {2, 1}).has_value());
  EXPECT_EQ(prometheus_text(registry), "# HELP ns:a_1 \n# TYPE ns:a_1 counter\nns:a_1 0\n");
}

TEST(Metrics, OneFamilyHasOneKindHelpAndBounds) {
  Registry registry;
  ASSERT_TRUE(registry.histogram("h", "help", {1, 2}).has_value());
  EXPECT_TRUE(registry.histogram("h", "help", {1, 2}, {{"l", "1"}}).has_value());
  EXPECT_FALSE(registry.histogram("h", "help", {1, 3}).has_value());
  EXPECT_FALSE(registry.histogram("h", "other", {1, 2}).has_value());
  EXPECT_FALSE(registry.counter("h", "help").has_value());
  EXPECT_FALSE(registry.counter("h_count", "").has_value());
  EXPECT_FALSE(registry.gauge("h_bucket", "").has_value());

  ASSERT_TRUE(registry.counter("x_sum", "").has_value());
  EXPECT_FALSE(registry.gauge("x_sum", "").has_value());
  EXPECT_FALSE(registry.histogram("x", "", {1}).has_value());
  EXPECT_TRUE(registry.gauge("x", "").has_value());
  EXPECT_TRUE(registry.counter("x_count", "").has_value());  // x is no histogram
}

TEST(Metrics, SameNameAndLabelsAreTheSameSeries) {
  Registry registry;
  Counter one = registry.counter("c", "", {{"a", "1"}, {"b", "2"}}).value();
  Counter two = registry.counter("c", "", {{"b", "2"}, {"a", "1"}}).value();
  one.add(1);
  two.add(2);
  EXPECT_EQ(one.value(), 3u);
  EXPECT_EQ(prometheus_text(registry), "# HELP c \n# TYPE c counter\nc{a=\"1\",b=\"2\"} 3\n");

  ASSERT_TRUE(registry.watch("w", "", [] { return 1.0; }).has_value());
  EXPECT_FALSE(registry.watch("w", "", [] { return 2.0; }).has_value());
  EXPECT_FALSE(registry.gauge("w", "").has_value());
  ASSERT_TRUE(registry.gauge("g", "").has_value());
  EXPECT_FALSE(registry.watch("g", "", [] { return 2.0; }).has_value());
}

TEST(Metrics, DoublingBounds) {
  EXPECT_EQ(doubling_bounds(5, 4), (std::vector<uint64_t>{5, 10, 20, 40}));
  EXPECT_EQ(doubling_bounds(1, 64).back(), uint64_t{1} << 63);
}

// Every bucket of a wide histogram, against a count by hand.
TEST(Metrics, HistogramAgreesWithModel) {
  const uint64_t seed = 20261115;
  SCOPED_TRACE(seed);
  Random random(seed);
  for (const size_t bounds_count : {1, 6, 7, 8, 20, 64}) {
    Registry registry;
    const auto bounds = doubling_bounds(1, bounds_count);
    Histogram histogram = registry.histogram("h", "", bounds).value();
    std::vector<uint64_t> below(bounds_count);  // how many were at most bounds[i]
    uint64_t sum = 0, count = 0;
    for (; count < 1000; count++) {
      uint64_t value = random.next() >> random.below(64);
      if (random.one_in(3)) value = bounds[random.below(bounds_count)];  // just on the border
      histogram.observe(value);
      sum += value;
      for (size_t i = 0; i < bounds_count; i++) below[i] += value <= bounds[i];
    }
    std::string expected = "# HELP h \n# TYPE h histogram\n";
    for (size_t i = 0; i < bounds_count; i++)
      expected +=
          "h_bucket{le=\"" + std::to_string(bounds[i]) + "\"} " + std::to_string(below[i]) + "\n";
    expected += "h_bucket{le=\"+Inf\"} 1000\nh_sum " + std::to_string(sum) + "\nh_count 1000\n";
    EXPECT_EQ(prometheus_text(registry), expected);
  }
}

TEST(Metrics, ThreadsThatEndLeaveTotalsAndSlots) {
  Registry registry;
  Counter counter = registry.counter("c", "").value();
  std::set<uint32_t> slots;
  for (int i = 0; i < 300; i++) {  // more than there are slots
    std::thread([&] {
      counter.add();
      slots.insert(metrics_detail::slot());
    }).join();
  }
  EXPECT_EQ(counter.value(), 300u);
  EXPECT_EQ(slots.size(), 1u) << "each thread should take the slot of the one before";
  EXPECT_FALSE(slots.contains(metrics_detail::shared_slot));
}

// More threads at once than slots: some share one, and nothing is lost.
TEST(Metrics, MoreThreadsThanSlots) {
  constexpr int threads_count = metrics_detail::slots_max + 40;
  constexpr int adds_count = 2000;
  Registry registry;
  Counter counter = registry.counter("c", "").value();
  Gauge gauge = registry.gauge("g", "").value();
  Histogram histogram = registry.histogram("h", "", {10}).value();
  std::atomic<int> sharing = 0;
  std::latch all_have_slots(threads_count);
  std::vector<std::jthread> threads;
  for (int i = 0; i < threads_count; i++) {
    threads.emplace_back([&] {
      if (metrics_detail::slot() == metrics_detail::shared_slot) sharing++;
      all_have_slots.arrive_and_wait();
      for (int n = 0; n < adds_count; n++) {
        counter.add();
        gauge.add(n % 2 == 0 ? 1 : -1);
        histogram.observe(static_cast<uint64_t>(n % 20));
      }
    });
  }
  threads.clear();
  EXPECT_GE(sharing, 40);
  EXPECT_EQ(counter.value(), uint64_t{threads_count} * adds_count);
  EXPECT_EQ(gauge.value(), 0);
  EXPECT_EQ(histogram.count(), uint64_t{threads_count} * adds_count);
}

TEST(Metrics, ScrapesAndRegistrationsBesideWriters) {
  Registry registry;
  Counter counter = registry.counter("c", "").value();
  Histogram histogram = registry.histogram("h", "", {1, 2}).value();
  std::atomic<bool> stop = false;
  std::vector<std::jthread> writers;
  for (int i = 0; i < 2; i++) {
    writers.emplace_back([&] {
      do {
        counter.add();
        histogram.observe(2);
      } while (!stop);
    });
  }
  uint64_t last = 0;
  for (int i = 0; i < 200; i++) {
    ASSERT_TRUE(registry.gauge("g" + std::to_string(i % 10), "").has_value());
    const std::string text = prometheus_text(registry);
    const uint64_t now = counter.value();
    EXPECT_GE(now, last);  // a counter never goes back
    last = now;
    // The bucket of everything and the count are one number in every scrape.
    auto after = [&](std::string_view key) {
      const size_t at = text.find(key) + key.size();
      return text.substr(at, text.find('\n', at) - at);
    };
    EXPECT_EQ(after("h_bucket{le=\"+Inf\"} "), after("h_count ")) << text;
  }
  stop = true;
  writers.clear();
  EXPECT_EQ(counter.value(), histogram.count());
}

// Destructors of thread_local objects may run after the thread gave its slot back. They must not
// write to it as if it were their own.
struct AddsAtThreadEnd {
  Counter* counter = nullptr;
  uint32_t* slot = nullptr;
  ~AddsAtThreadEnd() {
    if (counter == nullptr) return;
    counter->add();
    *slot = metrics_detail::slot();
  }
};

TEST(Metrics, AddWhileThreadEnds) {
  Registry registry;
  Counter counter = registry.counter("c", "").value();
  uint32_t slot_at_end = metrics_detail::no_slot;
  std::thread([&] {
    thread_local AddsAtThreadEnd at_end;  // made before the slot is taken: destroyed after it
    at_end.counter = &counter;
    at_end.slot = &slot_at_end;
    counter.add();
  }).join();
  EXPECT_EQ(counter.value(), 2u);
  EXPECT_EQ(slot_at_end, metrics_detail::shared_slot);
}

}  // namespace
}  // namespace trellis
