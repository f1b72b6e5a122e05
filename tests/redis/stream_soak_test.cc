// A stream with 20 consumers in 4 groups that come, die and take over from each other: every entry
// is delivered, and what is pending is what a model says. TRELLIS_TEST_SCALE=long: 10^6 entries,
// a tenth of that where commits validate what was read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "base/random.h"
#include "redis_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr size_t groups = 4;
constexpr size_t consumers_of_each = 5;
constexpr size_t pending_max = 400;  // of a group: then its consumers acknowledge before they read

// The bulks and numbers of a reply, one after the other.
std::vector<Bytes> parts_of(ByteView reply) {
  std::vector<Bytes> parts;
  while (!reply.empty()) {
    const size_t end = reply.find("\r\n");
    const ByteView head = reply.substr(0, end);
    reply.remove_prefix(end + 2);
    EXPECT_NE(head[0], '-') << head;
    if (head[0] == ':') parts.emplace_back(head.substr(1));
    if (head[0] != '$' || head == "$-1") continue;
    const size_t size = std::stoull(Bytes(head.substr(1)));
    parts.emplace_back(reply.substr(0, size));
    reply.remove_prefix(size + 2);
  }
  return parts;
}

// Entries are 1-0, 2-0 and so on.
std::string id_of(uint64_t number) { return fmt::format("{}-0", number); }
uint64_t number_of(ByteView id) { return std::stoull(Bytes(id)); }

// The numbers of entries | id | "f" | value |, from part `first` on.
std::vector<uint64_t> numbers_of(const std::vector<Bytes>& parts, size_t first, size_t stride) {
  std::vector<uint64_t> numbers;
  for (size_t i = first; i < parts.size(); i += stride) numbers.push_back(number_of(parts[i]));
  return numbers;
}

struct PendingModel {
  Bytes consumer;
  uint64_t deliveries;
};

struct GroupModel {
  std::string name;
  uint64_t last = 0;  // that was delivered
  std::map<uint64_t, PendingModel> pending;
  std::vector<Bytes> consumers;
  uint64_t acknowledged = 0;
  uint64_t dropped = 0;  // pending of a consumer that was deleted

  std::vector<uint64_t> of(const Bytes& consumer) const {
    std::vector<uint64_t> numbers;
    for (const auto& [number, entry] : pending)
      if (entry.consumer == consumer) numbers.push_back(number);
    return numbers;
  }
  uint64_t lowest() const { return pending.empty() ? last + 1 : pending.begin()->first; }
};

class StreamSoak : public RedisFixture {
 protected:
  void SetUp() override {
    RedisFixture::SetUp();
    say("XGROUP CREATE s g0 0 MKSTREAM");
    for (size_t i = 0; i < groups; i++) {
      GroupModel& group = model_[i];
      group.name = fmt::format("g{}", i);
      if (i > 0) say(fmt::format("XGROUP CREATE s {} 0 ENTRIESREAD 0", group.name));
      for (size_t j = 0; j < consumers_of_each; j++) group.consumers.push_back(new_consumer());
    }
    say("XGROUP SETID s g0 0 ENTRIESREAD 0");
  }

  Bytes new_consumer() { return fmt::format("consumer{}", next_consumer_++); }
  std::vector<Bytes> ask(std::string_view line) { return parts_of(say(line)); }
  static std::string list_of(const std::vector<uint64_t>& numbers) {
    std::string list;
    for (const uint64_t number : numbers) list += ' ' + id_of(number);
    return list;
  }

  void add(uint64_t count) {
    for (uint64_t i = 0; i < count && added_ < wanted_; i++) {
      added_++;
      ASSERT_EQ(ask(fmt::format("XADD s {} f v", id_of(added_))),
                (std::vector<Bytes>{id_of(added_)}));
    }
  }

  void read(GroupModel& group, const Bytes& consumer, uint64_t count) {
    const auto parts = ask(
        fmt::format("XREADGROUP GROUP {} {} COUNT {} STREAMS s >", group.name, consumer, count));
    std::vector<uint64_t> expected;
    while (expected.size() < count && group.last < added_) expected.push_back(++group.last);
    ASSERT_EQ(numbers_of(parts, 1, 3), expected);
    for (const uint64_t number : expected) group.pending[number] = {consumer, 1};
  }

  void acknowledge(GroupModel& group, std::vector<uint64_t> numbers) {
    if (numbers.empty()) return;
    const auto parts = ask(fmt::format("XACK s {}{}", group.name, list_of(numbers)));
    uint64_t expected = 0;
    for (const uint64_t number : numbers) expected += group.pending.erase(number);
    ASSERT_EQ(parts, (std::vector<Bytes>{std::to_string(expected)}));
    group.acknowledged += expected;
  }

  void read_again(GroupModel& group, const Bytes& consumer) {
    const auto parts = ask(fmt::format("XREADGROUP GROUP {} {} STREAMS s 0", group.name, consumer));
    const std::vector<uint64_t> expected = group.of(consumer);
    ASSERT_EQ(numbers_of(parts, 1, 3), expected);
    for (const uint64_t number : expected) group.pending[number].deliveries++;
  }

  void claim(GroupModel& group, const Bytes& consumer, const std::vector<uint64_t>& numbers) {
    if (numbers.empty()) return;
    const auto parts =
        ask(fmt::format("XCLAIM s {} {} 0{}", group.name, consumer, list_of(numbers)));
    std::vector<uint64_t> expected;
    for (const uint64_t number : numbers)
      if (group.pending.contains(number)) expected.push_back(number);
    ASSERT_EQ(numbers_of(parts, 0, 3), expected);
    for (const uint64_t number : expected)
      group.pending[number] = {consumer, group.pending[number].deliveries + 1};
  }

  void take_over(GroupModel& group, const Bytes& consumer, uint64_t from, uint64_t count) {
    const auto parts = ask(
        fmt::format("XAUTOCLAIM s {} {} 0 {} COUNT {}", group.name, consumer, id_of(from), count));
    std::vector<uint64_t> expected;
    auto next = group.pending.lower_bound(from);
    for (; next != group.pending.end() && expected.size() < count; ++next) {
      expected.push_back(next->first);
      next->second = {consumer, next->second.deliveries + 1};
    }
    ASSERT_FALSE(parts.empty());
    EXPECT_EQ(number_of(parts[0]), next == group.pending.end() ? 0 : next->first);
    ASSERT_EQ(numbers_of(parts, 1, 3), expected);
  }

  // Its place is taken by another one; what it had stays pending, or is dropped with it.
  void kill(GroupModel& group, Bytes& consumer, bool is_deleted) {
    if (is_deleted) {
      const std::vector<uint64_t> numbers = group.of(consumer);
      const int64_t dropped =
          number(fmt::format("XGROUP DELCONSUMER s {} {}", group.name, consumer));
      ASSERT_EQ(static_cast<size_t>(dropped), numbers.size());
      for (const uint64_t one : numbers) group.pending.erase(one);
      group.dropped += numbers.size();
    }
    consumer = new_consumer();
  }

  // What all groups are done with.
  void trim() {
    uint64_t lowest = added_ + 1;
    for (const GroupModel& group : model_) lowest = std::min(lowest, group.lowest());
    ASSERT_EQ(number(fmt::format("XTRIM s MINID {}", id_of(lowest))),
              static_cast<int64_t>(lowest - first_));
    first_ = lowest;
    ASSERT_EQ(number("XLEN s"), static_cast<int64_t>(added_ + 1 - first_));
  }

  void check(GroupModel& group) {
    const auto rows = ask(fmt::format("XPENDING s {} - + 1000000", group.name));
    ASSERT_EQ(rows.size(), 4 * group.pending.size());
    size_t i = 0;
    std::map<Bytes, uint64_t> owned;
    for (const auto& [number, entry] : group.pending) {
      ASSERT_EQ(number_of(rows[i]), number);
      ASSERT_EQ(rows[i + 1], entry.consumer);
      ASSERT_EQ(rows[i + 3], std::to_string(entry.deliveries));
      owned[entry.consumer]++;
      i += 4;
    }
    for (const Bytes& consumer : group.consumers) {
      const auto own = ask(fmt::format("XPENDING s {} - + 1000000 {}", group.name, consumer));
      ASSERT_EQ(numbers_of(own, 0, 4), group.of(consumer));
    }
    auto summary = ask(fmt::format("XPENDING s {}", group.name));
    ASSERT_EQ(summary[0], std::to_string(group.pending.size()));
    std::vector<Bytes> expected = {summary[0]};
    if (!owned.empty()) {
      expected.push_back(id_of(group.pending.begin()->first));
      expected.push_back(id_of(group.pending.rbegin()->first));
    }
    for (const auto& [consumer, count] : owned) {
      expected.push_back(consumer);
      expected.push_back(std::to_string(count));
    }
    ASSERT_EQ(summary, expected);
    ASSERT_EQ(group.acknowledged + group.dropped + group.pending.size(), group.last);
  }

  void check_all() {
    for (GroupModel& group : model_) ASSERT_NO_FATAL_FAILURE(check(group));
    const auto shown = ask("XINFO GROUPS s");
    constexpr size_t parts = 12;
    ASSERT_EQ(shown.size(), parts * groups);
    for (size_t i = 0; i < groups; i++) {
      const GroupModel& group = model_[i];
      ASSERT_EQ(shown[parts * i + 1], group.name);
      ASSERT_EQ(shown[parts * i + 5], std::to_string(group.pending.size()));
      ASSERT_EQ(shown[parts * i + 7], id_of(group.last));
      ASSERT_EQ(shown[parts * i + 9], std::to_string(group.last));
      ASSERT_EQ(shown[parts * i + 11], std::to_string(added_ - group.last));
    }
  }

  void act(Random& random) {
    GroupModel& group = model_[random.below(groups)];
    Bytes& consumer = group.consumers[random.below(consumers_of_each)];
    const uint64_t count = 1 + random.below(20);
    std::vector<uint64_t> some;
    for (uint64_t i = 0; i < count && !group.pending.empty(); i++) {
      const uint64_t from = group.lowest() + random.below(group.last - group.lowest() + 2);
      const auto found = group.pending.lower_bound(from);
      if (found != group.pending.end()) some.push_back(found->first);
    }
    std::sort(some.begin(), some.end());
    some.erase(std::unique(some.begin(), some.end()), some.end());
    const uint64_t chance = random.below(100);
    const bool is_full = group.pending.size() > pending_max;
    if (chance < 25) {
      add(5 * count);
    } else if (chance < 60 && !is_full) {
      read(group, consumer, count);
    } else if (chance < 80 || is_full) {
      std::vector<uint64_t> own = group.of(consumer);
      acknowledge(group, is_full || random.one_in(2) ? own : some);
      if (is_full) take_over(group, consumer, group.lowest(), 100);
    } else if (chance < 86) {
      claim(group, consumer, some);
    } else if (chance < 92) {
      take_over(group, consumer, group.lowest() + random.below(50), count);
    } else if (chance < 95) {
      read_again(group, consumer);
    } else if (chance < 98) {
      kill(group, consumer, random.one_in(4));
    } else {
      trim();
    }
  }

  std::array<GroupModel, groups> model_;
  uint64_t wanted_ = 0;
  uint64_t added_ = 0;
  uint64_t first_ = 1;  // that is not trimmed
  int next_consumer_ = 0;
};
INSTANTIATE_TEST_SUITE_P(BothWays, StreamSoak, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(StreamSoak, EveryEntryIsDeliveredAndWhatIsPendingIsWhatAModelSays) {
  const uint64_t seed = test_seed(1);
  Random random(seed);
  wanted_ = test_rounds(may_conflict() ? 1'000 : 10'000);
  const auto is_done = [&] {
    bool all = added_ == wanted_;
    for (const GroupModel& group : model_) all = all && group.last == added_;
    return all;
  };
  uint64_t actions = 0;
  while (!is_done()) {
    act(random);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << ", action " << actions;
    if (++actions % (wanted_ / 10) == 0) {
      ASSERT_NO_FATAL_FAILURE(check_all());
    }
    if (actions % 1'000 == 0) {
      clock_.advance_ms(61'000);
      for (int i = 0; i < 5 && step(); i++) continue;
    }
  }
  ASSERT_NO_FATAL_FAILURE(check_all());
  for (GroupModel& group : model_) {
    take_over(group, "last", 0, wanted_);
    ASSERT_FALSE(HasFatalFailure());
    while (!group.pending.empty()) {
      std::vector<uint64_t> page;
      for (const auto& [number, entry] : group.pending)
        if (page.size() < 1'000) page.push_back(number);
      acknowledge(group, page);
      ASSERT_FALSE(HasFatalFailure());
    }
    EXPECT_EQ(group.acknowledged + group.dropped, wanted_);
  }
  ASSERT_NO_FATAL_FAILURE(check_all());
  expect_exact();
  // Nothing is left of it when it is gone.
  EXPECT_EQ(number("DEL s"), 1);
  for (int i = 0; i < 200; i++) {
    clock_.advance_ms(61'000);
    while (step()) continue;
  }
  EXPECT_EQ(records(), 0U);
  expect_exact();
}

// The same by threads: what is not known is who was faster, so only what holds whoever was.
TEST_P(StreamSoak, ConsumersAtTheSameTime) {
  if (may_conflict()) GTEST_SKIP() << "without latches a transaction may lose for ever";
  const uint64_t seed = test_seed(2);
  wanted_ = test_rounds(3'000);
  std::array<std::atomic<uint64_t>, groups> done{};  // acknowledged, or dropped
  std::array<std::vector<std::atomic<bool>>, groups> delivered;
  for (auto& of_group : delivered) of_group = std::vector<std::atomic<bool>>(wanted_ + 1);
  std::atomic<int> names{0};
  const auto consume = [&](size_t g, uint64_t own_seed) {
    Random random(own_seed);
    const auto session = connect();
    const auto ask_own = [&](const std::string& line) { return parts_of(say(*session, line)); };
    std::string name = fmt::format("thread{}", names++);
    while (done[g] < wanted_) {
      const bool takes_over = random.one_in(3);
      const auto parts = ask_own(
          takes_over ? fmt::format("XAUTOCLAIM s g{} {} 0 0 COUNT 10", g, name)
                     : fmt::format("XREADGROUP GROUP g{} {} COUNT 10 STREAMS s >", g, name));
      const std::vector<uint64_t> numbers = numbers_of(parts, 1, 3);
      for (const uint64_t number : numbers) delivered[g][number] = true;
      if (random.one_in(10)) {  // it dies with what it has
        if (random.one_in(4)) {
          const auto dropped = ask_own(fmt::format("XGROUP DELCONSUMER s g{} {}", g, name));
          done[g] += std::stoull(dropped[0]);
        }
        name = fmt::format("thread{}", names++);
        continue;
      }
      if (numbers.empty()) continue;
      const auto acknowledged = ask_own(fmt::format("XACK s g{}{}", g, list_of(numbers)));
      done[g] += std::stoull(acknowledged[0]);
    }
    server_->leave(*session);
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < groups * consumers_of_each; i++)
    threads.emplace_back(consume, i % groups, seed + i);
  add(wanted_);
  for (std::thread& thread : threads) thread.join();
  for (size_t g = 0; g < groups; g++) {
    EXPECT_EQ(done[g], wanted_);
    for (uint64_t number = 1; number <= wanted_; number++)
      ASSERT_TRUE(delivered[g][number]) << number << " of group " << g << ", seed " << seed;
    EXPECT_EQ(ask(fmt::format("XPENDING s g{}", g)), (std::vector<Bytes>{"0"}));
    EXPECT_TRUE(ask(fmt::format("XPENDING s g{} - + 10", g)).empty());
  }
  expect_exact();
}

}  // namespace
}  // namespace trellis
