#include "map/traffic.h"

#include <gtest/gtest.h>

#include "codec/keyspace_keys.h"
#include "engine/memory_engine.h"
#include "map/transact.h"
#include "support/test_keyspace.h"

namespace trellis {
namespace {

struct Counted final : TrafficObserver {
  size_t reads = 0;
  size_t writes = 0;
  void sampled(const std::vector<Bytes>& read, const WriteSet& written) override {
    reads += read.size();
    writes += written.count();
  }
};

// A client that takes turns is seen as it is: no rhythm hides its writes.
TEST(Traffic, IsSampledByChance) {
  MemoryEngine engine;
  FakeClock clock(1'000);
  Counted counted;
  Transactor transactor(engine, clock, {.check_scope = true, .observer = &counted});
  const Bytes key = encode(RawKey{ks, "k"});
  constexpr size_t rounds = 64'000;
  for (size_t i = 0; i < rounds; i++) {
    const auto turn = [&](View& view) -> Status {
      if (i % 2 == 0) {
        view.put(key, "v");
        return {};
      }
      Value value;
      return view.get(key, value);
    };
    ASSERT_TRUE(transactor.transact(Scope::in(ks).exclusive(key), turn).has_value());
  }
  // 2,000 of each are expected; five standard deviations are 220.
  EXPECT_NEAR(static_cast<double>(counted.reads), 2'000, 250);
  EXPECT_NEAR(static_cast<double>(counted.writes), 2'000, 250);
}

TEST(Traffic, OfWhatFailedIsNotShown) {
  MemoryEngine engine;
  FakeClock clock(1'000);
  Counted counted;
  Transactor transactor(engine, clock, {.observer = &counted});
  const Bytes key = encode(RawKey{ks, "k"});
  for (int i = 0; i < 1'000; i++) {
    const auto fails = [&](View& view) -> Status {
      view.put(key, "v");
      return Error{Code::refused, "no"};
    };
    EXPECT_FALSE(transactor.transact(Scope::in(ks).exclusive(key), fails).has_value());
  }
  EXPECT_EQ(counted.writes, 0u);
}

}  // namespace
}  // namespace trellis
