#include "object_store/faulty_object_store.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "object_store/fake_object_store.h"

namespace trellis {
namespace {

class Faults : public testing::Test {
 protected:
  // A guarded increment from `from`, as every write of ours is guarded.
  int step(int from) {
    return client_.write("step", "o",
                         {false,
                          {NumberAttributeIs{"n", Compare::equal, static_cast<uint64_t>(from)}},
                          {SetAttribute{"n", std::to_string(from + 1)}}});
  }
  int stored() {
    ReadAnswer answer;
    store_.read("look", "o", {.want_attributes = true}, answer);
    return std::stoi(answer.attributes["n"]);
  }
  int client_read() {
    ReadAnswer answer;
    return client_.read("look", "o", {}, answer);
  }
  void SetUp() override { store_.write("test", "o", {true, {}, {SetAttribute{"n", "0"}}}); }

  FakeObjectStore store_;
  FaultyObjectStore client_{store_};
};

TEST_F(Faults, EachModeAnswersAndAppliesAsItSays) {
  struct Case {
    FaultMode mode;
    int answer;
    int applied;
    int applied_later;
    bool dead;
  };
  const Case cases[] = {
      {FaultMode::error, -EIO, 0, 0, false},
      {FaultMode::crash_before, -ESHUTDOWN, 0, 0, true},
      {FaultMode::crash_after, -ESHUTDOWN, 1, 1, true},
      {FaultMode::timed_out, -ETIMEDOUT, 1, 1, false},
      {FaultMode::lost, -ETIMEDOUT, 0, 0, false},
      {FaultMode::delayed, -ETIMEDOUT, 0, 1, false},
      {FaultMode::duplicated, 0, 1, 1, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(to_string(c.mode));
    FakeObjectStore store;
    store.write("test", "o", {true, {}, {SetAttribute{"n", "0"}}});
    store_.copy_from(store);
    FaultyObjectStore client(store_);
    client.plan({"step", 1, c.mode});
    const WriteOperation operation{
        false, {NumberAttributeIs{"n", Compare::equal, 0}}, {SetAttribute{"n", "1"}}};
    EXPECT_EQ(client.write("step", "o", operation), c.answer);
    EXPECT_EQ(stored(), c.applied);
    EXPECT_EQ(client.dead(), c.dead);
    client.release();
    EXPECT_EQ(stored(), c.applied_later);
    EXPECT_EQ(client.release(), 0u);
  }
}

TEST_F(Faults, TheNthPassOfTheNamedPointOnly) {
  client_.plan({"step", 2, FaultMode::error});
  EXPECT_EQ(step(0), 0);
  EXPECT_EQ(client_.write("other", "o", {false, {}, {OmapSet{"k", "v"}}}), 0);
  EXPECT_EQ(step(1), -EIO);
  EXPECT_EQ(step(1), 0);
  EXPECT_EQ(stored(), 2);
}

TEST_F(Faults, ADeadClientDoesNothingAnyMore) {
  client_.plan({"look", 1, FaultMode::crash_after});
  EXPECT_EQ(client_read(), -ESHUTDOWN);
  EXPECT_EQ(client_read(), -ESHUTDOWN);
  EXPECT_EQ(step(0), -ESHUTDOWN);
  EXPECT_EQ(client_.list("", [](ByteView) {}), -ESHUTDOWN);
  EXPECT_EQ(stored(), 0);
}

TEST_F(Faults, ReadsFailToo) {
  client_.plan({"look", 1, FaultMode::error});
  client_.plan({"look", 2, FaultMode::lost});
  client_.plan({"look", 3, FaultMode::duplicated});
  EXPECT_EQ(client_read(), -EIO);
  EXPECT_EQ(client_read(), -ETIMEDOUT);
  EXPECT_EQ(client_read(), 0);
}

TEST_F(Faults, PassedPointsAreNotedAndHooksActBefore) {
  std::vector<int> seen;
  client_.before_each([&](const PassedPoint&) { seen.push_back(stored()); });
  step(0);
  client_read();
  step(1);
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 1}));
  const std::vector<PassedPoint> passed = client_.passed();
  ASSERT_EQ(passed.size(), 3u);
  EXPECT_EQ(passed[2].point, "step");
  EXPECT_EQ(passed[2].nth, 2u);
  EXPECT_TRUE(passed[2].is_write);
  EXPECT_FALSE(passed[1].is_write);
}

TEST_F(Faults, ManyWritesComeInAnyOrderAndStopWhereTheClientDies) {
  std::set<std::vector<int>> outcomes;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    FakeObjectStore store;
    FaultyObjectStore client(store, seed);
    client.plan({"many", 2, FaultMode::crash_before});
    std::vector<ObjectWrite> writes;
    for (const char* name : {"a", "b", "c"})
      writes.push_back({"many", name, {false, {}, {OmapSet{"k", "v"}}}});
    std::vector<int> answers(writes.size());
    client.write_many(writes, answers);
    size_t applied = 0;
    store.list("", [&](ByteView) { ++applied; });
    EXPECT_EQ(applied, 1u);
    outcomes.insert(answers);
  }
  EXPECT_EQ(outcomes.size(), 3u);  // each of them was the first at times
}

}  // namespace
}  // namespace trellis
