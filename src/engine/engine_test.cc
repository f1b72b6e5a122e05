#include "engine/engine.h"

#include <gtest/gtest.h>

#include "codec/counter_value.h"
#include "engine/faulty_engine.h"
#include "engine/memory_engine.h"

namespace trellis {
namespace {

const Bytes counter_key("x\x00\x00\x01kbytes", 10);

Code code_of(const Status& status) {
  EXPECT_FALSE(status.has_value());
  return status.has_value() ? Code::unsupported : status.error().code;
}

Commit one(auto write) {
  Commit commit;
  write(commit.writes);
  return commit;
}

TEST(WriteSet, KnowsItsEnds) {
  WriteSet writes;
  writes.put("first", "1");
  EXPECT_EQ(writes.back().key, "first");
  WriteSet others;
  writes.append(others);
  EXPECT_EQ(writes.back().key, "first");
  others.put("second", "22");
  others.remove("third");
  writes.append(others);
  EXPECT_EQ(writes.front().key, "first");
  EXPECT_EQ(writes.back().key, "third");
  EXPECT_EQ(writes.content_bytes(), std::string_view("first1second22third").size());
  writes.clear();
  EXPECT_EQ(writes.content_bytes(), 0u);
  writes.add("fourth", 4);
  EXPECT_EQ(writes.back().delta, 4);
}

TEST(CheckCommit, KeysAndValuesWithinTheirLimits) {
  const Bytes key(key_bytes_max, 'k');
  const Bytes value(value_bytes_max, 'v');
  EXPECT_TRUE(check_commit(one([&](WriteSet& w) { w.put(key, value); })).has_value());
  EXPECT_TRUE(check_commit(one([&](WriteSet& w) { w.remove(key); })).has_value());
  EXPECT_TRUE(check_commit(one([&](WriteSet& w) { w.put("k", ""); })).has_value());
}

TEST(CheckCommit, RefusesWhatIsOverALimitByItsName) {
  const Bytes long_key(key_bytes_max + 1, 'k');
  const Bytes long_value(value_bytes_max + 1, 'v');
  const Status key = check_commit(one([&](WriteSet& w) { w.put(long_key, "v"); }));
  EXPECT_EQ(code_of(key), Code::too_large);
  EXPECT_NE(key.error().message.find("key_bytes_max"), std::string::npos);
  EXPECT_EQ(code_of(check_commit(one([&](WriteSet& w) { w.remove(long_key); }))), Code::too_large);
  const Status value = check_commit(one([&](WriteSet& w) { w.put("k", long_value); }));
  EXPECT_EQ(code_of(value), Code::too_large);
  EXPECT_NE(value.error().message.find("value_bytes_max"), std::string::npos);
}

TEST(CheckCommit, RefusesACommitOverItsLimit) {
  Commit commit;
  const Bytes value(value_bytes_max, 'v');
  commit.writes.put("a", value);
  EXPECT_TRUE(check_commit(commit).has_value());
  commit.writes.put("b", value);
  const Status status = check_commit(commit);
  EXPECT_EQ(code_of(status), Code::too_large);
  EXPECT_NE(status.error().message.find("commit_bytes_max"), std::string::npos);
}

TEST(CheckCommit, RefusesEmptyKeysAndReversedIntervals) {
  EXPECT_EQ(code_of(check_commit(one([](WriteSet& w) { w.put("", "v"); }))), Code::invalid);
  EXPECT_EQ(code_of(check_commit(one([](WriteSet& w) { w.remove(""); }))), Code::invalid);
  EXPECT_EQ(code_of(check_commit(one([](WriteSet& w) { w.remove_range("b", "a"); }))),
            Code::invalid);
  EXPECT_EQ(code_of(check_commit(one([](WriteSet& w) { w.remove_range("a", "a"); }))),
            Code::invalid);
  EXPECT_TRUE(check_commit(one([](WriteSet& w) { w.remove_range("a", ""); })).has_value());
  EXPECT_TRUE(check_commit(one([](WriteSet& w) { w.remove_range("", "a"); })).has_value());
  EXPECT_TRUE(check_commit(one([](WriteSet& w) { w.remove_range("", ""); })).has_value());
}

TEST(CheckCommit, TheSuccessorOfTheLongestKeyIsABound) {
  const Bytes longest(key_bytes_max, 'k');
  Commit commit = one([&](WriteSet& w) { w.remove_range("a", successor(longest)); });
  commit.expectations.push_back({"a", successor(longest), Bytes()});
  EXPECT_TRUE(check_commit(commit).has_value());
  commit.expectations.push_back({"a", successor(successor(longest)), Bytes()});
  EXPECT_EQ(code_of(check_commit(commit)), Code::too_large);
}

TEST(CheckCommit, Expectations) {
  Commit commit;
  commit.expectations.push_back({"a", std::nullopt, std::nullopt});
  commit.expectations.push_back({"a", "a", Bytes()});
  commit.expectations.push_back({"", "", Bytes()});
  EXPECT_TRUE(check_commit(commit).has_value());
  const Expectation wrong[] = {
      {"", std::nullopt, std::nullopt},                    // the empty key
      {"b", "a", Bytes()},                                 // reversed
      {"a", "b", std::nullopt},                            // an interval cannot be absent
      {Bytes(key_bytes_max + 1, 'k'), std::nullopt, "v"},  // too long
      {Bytes(key_bytes_max + 2, 'k'), "", Bytes()},        // too long for a bound
  };
  for (const Expectation& expectation : wrong) {
    Commit refused;
    refused.expectations.push_back(expectation);
    EXPECT_FALSE(check_commit(refused).has_value()) << quote(expectation.begin).substr(0, 40);
  }
}

TEST(CheckCommit, CounterKeysHoldCountersOnly) {
  EXPECT_TRUE(check_commit(one([](WriteSet& w) { w.add(counter_key, -7); })).has_value());
  EXPECT_TRUE(check_commit(one([](WriteSet& w) {
                w.put(counter_key, encode_counter_value(7));
              })).has_value());
  EXPECT_TRUE(check_commit(one([](WriteSet& w) { w.remove(counter_key); })).has_value());
  EXPECT_EQ(code_of(check_commit(one([](WriteSet& w) { w.put(counter_key, "12345678"); }))),
            Code::invalid);
  Bytes other_format = encode_counter_value(7);
  other_format[0] = 2;
  EXPECT_EQ(code_of(check_commit(one([&](WriteSet& w) { w.put(counter_key, other_format); }))),
            Code::invalid);
  for (const Bytes& key : {Bytes("x\0\0\1d", 5), Bytes("r\0\0\1k", 5), Bytes("x\0\0\1", 4)}) {
    EXPECT_EQ(code_of(check_commit(one([&](WriteSet& w) { w.add(key, 1); }))), Code::invalid)
        << quote(key);
  }
}

TEST(Counter, RoundTripAndWrapping) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  for (const int64_t value : {least, int64_t{-1}, int64_t{0}, int64_t{258}, most}) {
    EXPECT_EQ(decode_counter_value(encode_counter_value(value)), value);
  }
  EXPECT_EQ(to_hex(encode_counter_value(-2)), "01fffffffffffffffe");
  EXPECT_EQ(decode_counter_value(""), std::nullopt);
  EXPECT_EQ(add_wrapping(most, 1), least);
  EXPECT_EQ(add_wrapping(least, -1), most);
  EXPECT_EQ(add_wrapping(most, least), -1);
}

TEST(CommitOne, AFailedWaitIsAMaybe) {
  MemoryEngine memory;
  FaultyEngine engine(memory, {.fail_durable_one_in = 1});
  Commit wanted = one([](WriteSet& w) { w.put("k", "v"); });
  EXPECT_TRUE(commit(engine, wanted).has_value());  // everysec waits for nothing
  wanted.durability = Durability::always;
  EXPECT_EQ(code_of(commit(engine, wanted)), Code::maybe);
  EXPECT_EQ(engine.counts().durables, 1u);
  wanted.expectations.push_back({"k", std::nullopt, std::nullopt});
  EXPECT_EQ(code_of(commit(engine, wanted)), Code::conflict);  // nothing to wait for
  EXPECT_EQ(engine.counts().durables, 1u);
}

TEST(Value, MovesWithItsPin) {
  MemoryEngine engine;
  ASSERT_TRUE(commit(engine, one([](WriteSet& w) { w.put("k", "value"); })).has_value());
  Value first;
  ASSERT_TRUE(engine.get("k", first).has_value());
  Value second = std::move(first);
  EXPECT_FALSE(first.found());  // NOLINT(bugprone-use-after-move): that is what is tested
  ASSERT_TRUE(commit(engine, one([](WriteSet& w) { w.put("k", "other"); })).has_value());
  EXPECT_EQ(second.bytes(), "value");  // what was read stays as it was read
  const Bytes elsewhere = "borrowed";
  second.set_borrowed(elsewhere);
  Value third = std::move(second);
  EXPECT_EQ(third.bytes().data(), elsewhere.data());
}

}  // namespace
}  // namespace trellis
