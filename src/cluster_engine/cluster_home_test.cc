#include "cluster_engine/cluster_home.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "cluster_engine/cluster_engine.h"
#include "cluster_engine/range_audit.h"
#include "cluster_engine/range_lookup.h"
#include "object_store/fake_object_store.h"
#include "object_store/faulty_object_store.h"
#include "range/verify.h"
#include "support/expect_ok.h"

namespace trellis {
namespace {

class Home : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(bootstrap_ranges(store_)); }

  FakeObjectStore store_;
  RangeIdCounter ids_{store_};
  std::vector<std::string> events_;
  FakeClock clock_{0};
  ClusterHome home_{
      store_,
      clock_,
      [this] { return ids_.next(); },
      {.page_entries = 3},
      [this](const RangeEvent& event) { events_.push_back(event.action + " " + event.reason); }};
};

TEST_F(Home, IdsAreGivenOnceToAll) {
  std::mutex mutex;
  std::set<RangeId> given;
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&] {
      RangeIdCounter ids(store_);
      for (int n = 0; n < 50; ++n) {
        const Result<RangeId> id = ids.next();
        ASSERT_OK(id);
        const std::scoped_lock lock(mutex);
        EXPECT_TRUE(given.insert(*id).second);
      }
    });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(*given.begin(), RangeId{2});
  EXPECT_EQ(given.size(), 200u);
  store_.write("break", "ids.range", {.changes = {OmapSet{"n", "x"}}});
  EXPECT_CODE(ids_.next(), Code::corrupt);
}

TEST_F(Home, SplitsMergesAndFinds) {
  const RangeDescriptor all = *home_.find("k");
  EXPECT_EQ(all.home, "r.1");
  const auto halves = home_.split({all, "k", 77, "asked"});
  ASSERT_OK(halves);
  EXPECT_EQ(halves->first.end, "k");
  EXPECT_EQ(halves->second.start, "k");
  EXPECT_EQ(halves->second.sticky_until_ms, 77u);
  EXPECT_EQ(*home_.find("z"), halves->second);
  std::vector<RangeDescriptor> seen;
  ASSERT_OK(home_.for_each([&](const RangeDescriptor& range) {
    seen.push_back(range);
    return Visit::go_on;
  }));
  EXPECT_EQ(seen, (std::vector{halves->first, halves->second}));

  EXPECT_CODE(home_.split({all, "m"}), Code::conflict);
  EXPECT_CODE(home_.merge(all, halves->second, "test"), Code::conflict);
  const auto merged = home_.merge(halves->first, halves->second, "small");
  ASSERT_OK(merged);
  EXPECT_EQ(merged->end, all.end);
  EXPECT_EQ(events_, (std::vector<std::string>{"split asked", "merge small"}));
  EXPECT_CODE(home_.merge(halves->first, halves->second, "small"), Code::conflict);
}

TEST_F(Home, NoRangeBeginsInMeta1OrAtTheEndOfMeta2OrOutside) {
  const RangeDescriptor all = *home_.find("k");
  for (const char* at : {"02", "0266", "01", "016b12b2", "03ffff", "03ffffff", ""})
    EXPECT_CODE(home_.split({all, *from_hex(at)}), Code::invalid);
  EXPECT_CODE(home_.split({all, *from_hex("ffff")}), Code::invalid);
  EXPECT_OK(home_.split({all, *from_hex("03")}));
}

TEST_F(Home, AWalkSeesEveryEntryOnceAlsoIfTheRangeIsSplitMeanwhile) {
  std::map<Bytes, Bytes> written;
  for (int i = 0; i < 50; ++i) {
    const Bytes key = fmt::format("r00{:02}", i);
    written[key] = std::to_string(i);
    store_.write(
        "put", "r.1",
        {.changes = {OmapSet{entry_key(EntryKind::payload, key), encode_payload(written[key])}}});
  }
  const RangeDescriptor all = *home_.find("r");
  const auto go_on = [] { return Visit::go_on; };
  const auto walk = [&] {
    std::map<Bytes, Bytes> seen;
    EXPECT_OK(home_.walk(
        all,
        [&](ByteView key, ByteView value) {
          if (!key.starts_with('r')) return Visit::go_on;  // records of the directory
          EXPECT_TRUE(seen.emplace(key, value).second);
          return Visit::go_on;
        },
        go_on));
    return seen;
  };
  EXPECT_EQ(walk(), written);
  ASSERT_OK(home_.split({all, "r0020"}));
  EXPECT_EQ(walk(), written);
  size_t first_half = 0;
  ASSERT_OK(home_.walk(
      *home_.find("r0000"),
      [&](ByteView key, ByteView) {
        first_half += key.starts_with('r') ? 1 : 0;
        return Visit::go_on;
      },
      go_on));
  EXPECT_EQ(first_half, 20u);
  size_t pages = 0;
  ASSERT_OK(home_.walk(
      all, [](ByteView, ByteView) { return Visit::go_on; },
      [&] { return ++pages == 3 ? Visit::stop : Visit::go_on; }));
  EXPECT_EQ(pages, 3u);
}

TEST_F(Home, VerifyKnowsThatGivenUpSplitsAndMergesRaiseGenerations) {
  const auto engine = std::move(*ClusterEngine::open(store_, clock_, {.beat_interval_us = 0}));
  ASSERT_OK(home_.split({*home_.find("k"), "k"}));
  const auto give_up = [&](const char* point, auto change) {
    FaultyObjectStore dying(store_);
    dying.plan({.point = point, .mode = FaultMode::crash_before});
    EXPECT_FALSE(change(dying).has_value());
    ASSERT_OK(settle_range(store_, first_range_id));
  };
  const uint64_t before = home_.find("a")->generation;
  give_up("split.commit", [&](ObjectStore& store) {
    return split_range(store, *find_range(store_, "a"), "a", *ids_.next());
  });
  give_up("merge.commit", [&](ObjectStore& store) {
    return merge_ranges(store, *find_range(store_, "a"), *find_range(store_, "k"));
  });
  const RangeDescriptor raised = *home_.find("a");
  EXPECT_GT(raised.generation, before);
  const auto verify = [&] {
    const Result<VerifyReport> report = verify_directory(home_, *engine);
    EXPECT_OK(report);
    EXPECT_TRUE(report->of_ranges.empty());
    std::vector<std::string> found;
    for (const RangeFinding& finding : report->of_directory)
      found.emplace_back(to_string(finding.kind));
    return found;
  };
  EXPECT_EQ(verify(), std::vector<std::string>());
  EXPECT_EQ(rebuild_directory(home_, *engine)->written, 0u);

  // Newer than the range itself is what no record can be, and other bounds are wrong of any age.
  const auto record = [&](RangeDescriptor range) {
    Commit wrong;
    const Result<std::vector<Bytes>> keys = directory_keys(raised);
    for (const Bytes& key : *keys) wrong.writes.put(key, encode_descriptor(range));
    ASSERT_OK(commit(*engine, wrong));
  };
  RangeDescriptor wrong = raised;
  wrong.generation++;
  record(wrong);
  EXPECT_EQ(verify().at(0), "wrong generation");
  wrong.generation = 1;
  wrong.start = "b";
  record(wrong);
  EXPECT_EQ(verify().at(0), "wrong bounds");
}

}  // namespace
}  // namespace trellis
