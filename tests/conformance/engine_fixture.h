// Which engines the suite runs on, and how each is opened, reopened and crashed.
//
//   class ReadConformance : public EngineConformance {};
//   TEST_P(ReadConformance, ...) { ... }
//   ON_ALL_ENGINES(ReadConformance);     // a TransactConformance: ON_ALL_WAYS or ON_THE_WAY
//
// A transaction runs in every way that applies to its engine: a shared engine has no latches.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "engine/engine.h"
#include "engine/faulty_engine.h"
#include "map/transact.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {

// One map with everything that is open on it.
class EngineUnderTest {
 public:
  virtual ~EngineUnderTest() = default;
  virtual Engine& engine() = 0;
  // Another handle on the same map, if the engine is shared; otherwise the same one.
  virtual Engine& other() { return engine(); }
  // The faults that engine() hides, if it does.
  virtual FaultyEngine* faulty() { return nullptr; }
  // Closes and opens. REQUIRES: no Value of the engine is alive.
  virtual void reopen() = 0;
  // A power cut: what nobody waited for may be lost. Then opens again.
  virtual void crash(Random& random) = 0;
};

struct EngineKind {
  std::string name;
  bool shared;
  std::function<std::unique_ptr<EngineUnderTest>()> open;
};

void PrintTo(const EngineKind& kind, std::ostream* out);
std::vector<EngineKind> engine_kinds();
std::unique_ptr<EngineUnderTest> open_rocksdb_under_test();
// Two clients of a store of several ranges, which a third one splits and merges all the time.
enum class RangesChange : bool { never, all_the_time };
std::unique_ptr<EngineUnderTest> open_cluster_under_test(RangesChange change);

struct WayOfEngine {
  EngineKind kind;
  Way way;
};
std::string name_of(const WayOfEngine& way);
void PrintTo(const WayOfEngine& way, std::ostream* out);
std::vector<WayOfEngine> ways_of_engines();
std::vector<WayOfEngine> engines_on_the(Way way);

#define ON_ALL_ENGINES(suite)                                             \
  INSTANTIATE_TEST_SUITE_P(All, suite, testing::ValuesIn(engine_kinds()), \
                           [](const auto& info) { return info.param.name; })
#define ON_ALL_WAYS(suite)                                                   \
  INSTANTIATE_TEST_SUITE_P(All, suite, testing::ValuesIn(ways_of_engines()), \
                           [](const auto& info) { return name_of(info.param); })
#define ON_THE_WAY(suite, way)                                                 \
  INSTANTIATE_TEST_SUITE_P(All, suite, testing::ValuesIn(engines_on_the(way)), \
                           [](const auto& info) { return name_of(info.param); })

using Entries = std::vector<std::pair<Bytes, Bytes>>;

// Where the keys begin that no engine writes by itself: local records and the directory of ranges
// come before. The last one is before ff ff.
constexpr ByteView first_key = "\x04";

// A raw key of keyspace 1: a granule of its own.
Bytes raw(ByteView name);
// A counter of keyspace 1.
Bytes counter(ByteView name);
// A record of the Redis key `key` of keyspace 1: all records of one key are one granule.
Bytes redis_record(ByteView key, ByteView sub);
Bytes redis_meta(ByteView key);

Commit put(ByteView key, ByteView value);
std::optional<Bytes> get(Engine& engine, ByteView key);
// All pages of the interval, joined, without what lies before first_key.
// Checks of each page that `resume` and the counts are right.
Entries scan_all(Engine& engine, ScanRequest request);
// The first page, with its entries.
ScanPage scan_page(Engine& engine, const ScanRequest& request, Entries& entries);
Expectation expect_value(Engine& engine, ByteView key);
int64_t number_of(const std::optional<Bytes>& value);  // decimal text; 0 if absent

class EngineConformance : public testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override { under_test_ = GetParam().open(); }
  Engine& engine() { return under_test_->engine(); }
  Engine& other() { return under_test_->other(); }

  std::unique_ptr<EngineUnderTest> under_test_;
};

class TransactConformance : public testing::TestWithParam<WayOfEngine> {
 protected:
  void SetUp() override;
  Engine& engine() { return under_test_->engine(); }
  // For thread number `thread`: two servers in the shared case, one otherwise.
  Transactor& transactor(size_t thread = 0) { return *transactors_[thread % transactors_.size()]; }
  bool latched() const { return GetParam().way == Way::latched; }
  // Runs until it is no conflict: more attempts than a transaction makes by itself.
  Status run(size_t thread, const Scope& scope, FunctionRef<Status(View&)> fn);

  SystemClock clock_;
  std::unique_ptr<EngineUnderTest> under_test_;
  std::vector<std::unique_ptr<Transactor>> transactors_;
};

constexpr KeyspaceId keyspace{1};

}  // namespace trellis
