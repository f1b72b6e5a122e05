// Fences of large collections: after any batches they count what is there, ranks and picks by them
// are a model's, and nothing of them stays behind.
#include "redis/fences.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"
#include "redis_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr uint64_t members_max = 128;
constexpr size_t group_max = 128;

struct Counted {
  Bytes place;
  std::optional<uint64_t> members;  // absent: marked, and nobody has counted
};

class RedisFences : public RedisFixture {
 protected:
  // Everything that begins so, without that.
  std::vector<std::pair<Bytes, Bytes>> stored(const Bytes& prefix) {
    std::vector<std::pair<Bytes, Bytes>> entries;
    std::optional<Bytes> from = prefix;
    while (from) {
      auto page = memory_.scan({.begin = *from, .end = prefix_end(prefix)},
                               [&](ByteView key, ByteView value) {
                                 entries.emplace_back(key.substr(prefix.size()), value);
                                 return Visit::go_on;
                               });
      EXPECT_OK(page);
      from = page ? std::move(page->resume) : std::nullopt;
    }
    return entries;
  }

  std::optional<RedisMetadata> metadata(std::string_view name) {
    Value value;
    EXPECT_OK(memory_.get(redis_metadata_key(default_keyspace, 0, name), value));
    if (!value.found()) return std::nullopt;
    return decode_redis_metadata(value.bytes()).value();
  }

  // As they are stored, or what the book says where that is a mark.
  std::vector<Counted> fences(std::string_view name, const RedisMetadata& key, char level) {
    const Bytes prefix = redis_life_prefix(default_keyspace, 'c', 0, name, key.version);
    std::map<Bytes, uint64_t> known;
    const auto learn = [&](const FenceBook::Fence& fence) {
      if (fence.is_known) known[fence.place] = fence.members;
    };
    if (FenceBooks* const books = server_->fence_books(); books != nullptr && key.has_fences)
      for (const FenceBook::Group& group : books->get(prefix, key.size)->groups) {
        if (level == 2) learn(group);
        if (level == 1) std::for_each(group.fences.begin(), group.fences.end(), learn);
      }
    std::vector<Counted> found;
    for (const auto& [place, value] : stored(prefix + level)) {
      const auto in_book = known.find(place);
      found.push_back({place, std::nullopt});
      if (value[0] == 1) found.back().members = load_be(value.data() + 1, 8);
      if (in_book == known.end()) continue;
      if (value[0] == 1) {
        EXPECT_EQ(in_book->second, found.back().members);
      }
      found.back().members = in_book->second;
    }
    return found;
  }
  size_t all_marks() {
    size_t marks = 0;
    for (const auto& [place, value] : stored(redis_slot_prefix(default_keyspace, 'c', 0)))
      marks += value[0] == 2;
    return marks;
  }

  std::vector<Bytes> places(std::string_view name, const RedisMetadata& key) {
    Bytes prefix = redis_life_prefix(default_keyspace, 'z', 0, name, key.version);
    if (key.type != RedisType::zset) prefix[5] = 's';
    std::vector<Bytes> found;
    for (const auto& [place, value] : stored(prefix)) found.push_back(place);
    return found;
  }

  // Whether the fences say what a walk finds.
  void expect_counts(std::string_view name, bool is_cut = true) {
    SCOPED_TRACE(name);
    const auto key = metadata(name);
    if (!key) return;
    const std::vector<Counted> low = fences(name, *key, 1);
    const std::vector<Counted> high = fences(name, *key, 2);
    if (!key->has_fences) {
      EXPECT_TRUE(low.empty() && high.empty());
      EXPECT_LT(key->size, Fences::size_made);
      return;
    }
    EXPECT_GT(key->size, Fences::size_gone);
    const std::vector<Bytes> members = places(name, *key);
    ASSERT_EQ(members.size(), key->size);
    ASSERT_FALSE(low.empty());
    ASSERT_FALSE(high.empty());
    EXPECT_LE(low[0].place, members[0]);
    const auto index_of = [&](const Bytes& place) {
      return std::lower_bound(members.begin(), members.end(), place) - members.begin();
    };
    std::vector<uint64_t> sums(high.size());
    std::vector<size_t> groups(high.size());
    size_t group = 0;
    for (size_t i = 0; i < low.size(); i++) {
      const auto begin = index_of(low[i].place);
      const auto end = i + 1 < low.size() ? index_of(low[i + 1].place)
                                          : static_cast<std::ptrdiff_t>(members.size());
      const auto counted = static_cast<uint64_t>(end - begin);
      if (low[i].members) {
        EXPECT_EQ(*low[i].members, counted) << i << " of " << low.size();
        EXPECT_TRUE(counted > 0 || i + 1 == low.size()) << i << " of " << low.size();
        EXPECT_TRUE(!is_cut || counted <= members_max) << counted;
      }
      while (group + 1 < high.size() && high[group + 1].place <= low[i].place) group++;
      sums[group] += counted;
      groups[group]++;
    }
    for (size_t i = 0; i < high.size(); i++) {
      if (high[i].members) {
        EXPECT_EQ(*high[i].members, sums[i]) << i << " of " << high.size();
      }
      EXPECT_LE(groups[i], group_max);
    }
  }

  // As one transaction.
  std::vector<Bytes> batch(const std::vector<std::vector<Bytes>>& commands) {
    std::vector<std::vector<ByteView>> args;
    std::vector<Bytes> replies(commands.size());
    std::vector<Request> requests;
    for (const auto& command : commands) args.emplace_back(command.begin(), command.end());
    for (size_t i = 0; i < commands.size(); i++)
      requests.push_back({session_.get(), args[i], &replies[i]});
    Executor(*server_).run(requests);
    return replies;
  }

  void collect_all() {
    for (int i = 0; i < 3; i++) {
      clock_.advance_ms(61'000);
      while (step()) {
      }
    }
  }
  size_t all_fences() {
    const Bytes prefix = redis_slot_prefix(default_keyspace, 'c', 0);
    return entries_in(prefix, prefix_end(prefix));
  }
};
INSTANTIATE_TEST_SUITE_P(BothWays, RedisFences, testing::Values(Way::latched, Way::expecting),
                         way_name);

Bytes integer(int64_t number) { return fmt::format(":{}\r\n", number); }
Bytes bulks(const std::vector<Bytes>& texts) {
  Bytes reply = fmt::format("*{}\r\n", texts.size());
  for (const Bytes& text : texts) reply += fmt::format("${}\r\n", text.size()) + text + "\r\n";
  return reply;
}

// Makes commands for a sorted set, and knows what they are answered.
class ZsetModel {
 public:
  explicit ZsetModel(uint64_t seed) : random_(seed), shape_(random_.below(4)) {}

  struct Said {
    std::vector<Bytes> words;
    Bytes reply;
  };
  size_t size() const { return order_.size(); }

  Said next(bool grows) {
    const uint64_t choice = random_.below(20);
    if (choice < (grows ? 10 : 3) || order_.size() < 300) return add();
    if (choice < 12) return remove();
    if (choice == 12) return pop(random_.one_in(2));
    if (choice == 13) return remove_by_rank();
    if (choice < 16) return rank();
    if (choice < 18) return range();
    return count();
  }

 private:
  using Place = std::pair<double, Bytes>;

  Bytes any_member() {
    const uint64_t number = random_.below(30'000);
    if (shape_ == 0) return fmt::format("{:06}", number);
    if (shape_ == 1)
      return "https://example.org/a/long/path/that/all/have/" + std::to_string(number);
    if (shape_ == 2) return Bytes(number % 50, '\xff') + std::to_string(number);
    return fmt::format("{}", number * 7919);
  }
  double any_score() {
    if (shape_ == 3) return 1;  // all alike: members decide
    if (shape_ == 2) return -static_cast<double>(++added_);
    return random_.one_in(3) ? static_cast<double>(++added_)
                             : static_cast<double>(random_.below(500));
  }
  const Place& any_place() {
    auto at = order_.lower_bound({any_score(), any_member()});
    return at == order_.end() ? *order_.begin() : *at;
  }
  void erase(const Place& place) {
    scores_.erase(place.second);
    order_.erase(Place(place));
  }

  Said add() {
    Said said{{"ZADD", "z"}, {}};
    int64_t added = 0;
    const size_t many = random_.one_in(10) ? 400 : random_.below(30) + 1;
    for (size_t i = 0; i < many; i++) {
      const Bytes member = any_member();
      const double score = any_score();
      said.words.insert(said.words.end(), {fmt::format("{}", score), member});
      const auto [known, is_new] = scores_.try_emplace(member, score);
      if (is_new) added++;
      if (!is_new) order_.erase({known->second, member});
      known->second = score;
      order_.insert({score, member});
    }
    said.reply = integer(added);
    return said;
  }
  Said remove() {
    Said said{{"ZREM", "z"}, {}};
    std::set<Bytes> members;
    for (uint64_t left = random_.below(40) + 1; left > 0; left--)
      members.insert(any_place().second);
    for (const Bytes& member : members) {
      said.words.push_back(member);
      erase({scores_.at(member), member});
    }
    said.reply = integer(static_cast<int64_t>(members.size()));
    return said;
  }
  Said pop(bool max) {
    const size_t many = random_.below(60) + 1;
    Said said{{max ? "ZPOPMAX" : "ZPOPMIN", "z", std::to_string(many)}, {}};
    std::vector<Bytes> popped;
    for (size_t i = 0; i < many && !order_.empty(); i++) {
      const Place place = max ? *order_.rbegin() : *order_.begin();
      popped.insert(popped.end(), {place.second, fmt::format("{}", place.first)});
      erase(place);
    }
    said.reply = bulks(popped);
    return said;
  }
  Said remove_by_rank() {
    const size_t first = random_.below(order_.size());
    const size_t last = std::min(first + random_.below(100), order_.size() - 1);
    for (size_t i = first; i <= last; i++)
      erase(*std::next(order_.begin(), static_cast<std::ptrdiff_t>(first)));
    return {{"ZREMRANGEBYRANK", "z", std::to_string(first), std::to_string(last)},
            integer(static_cast<int64_t>(last - first + 1))};
  }
  Said rank() {
    const Place place = any_place();
    const auto before = std::distance(order_.begin(), order_.find(place));
    const auto size = static_cast<int64_t>(order_.size());
    if (random_.one_in(2)) return {{"ZRANK", "z", place.second}, integer(before)};
    return {{"ZREVRANK", "z", place.second}, integer(size - 1 - before)};
  }
  std::vector<Bytes> slice(size_t first, size_t many, bool reverse) const {
    std::vector<Bytes> members;
    for (size_t i = first; i < first + many && i < order_.size(); i++) {
      const size_t at = reverse ? order_.size() - 1 - i : i;
      members.push_back(std::next(order_.begin(), static_cast<std::ptrdiff_t>(at))->second);
    }
    return members;
  }
  Said range() {
    const size_t first = random_.below(order_.size() + 10);
    const size_t many = random_.below(5) + 1;
    const bool reverse = random_.one_in(2);
    const Bytes reply = bulks(slice(first, many, reverse));
    if (random_.one_in(2))
      return {{reverse ? "ZREVRANGE" : "ZRANGE", "z", std::to_string(first),
               std::to_string(first + many - 1)},
              reply};
    return {{reverse ? "ZREVRANGEBYSCORE" : "ZRANGEBYSCORE", "z", reverse ? "+inf" : "-inf",
             reverse ? "-inf" : "+inf", "LIMIT", std::to_string(first), std::to_string(many)},
            reply};
  }
  Said count() {
    if (shape_ == 3) {
      const Bytes min = any_member();
      const Bytes max = any_member();
      const auto first = order_.lower_bound({1, min});
      const auto last = order_.upper_bound({1, max});
      return {{"ZLEXCOUNT", "z", "[" + min, "[" + max},
              integer(min > max ? 0 : std::distance(first, last))};
    }
    const double min = any_place().first;
    const double max = any_place().first;
    const auto first = order_.upper_bound({min, Bytes(99, '\xff')});
    const auto last = order_.upper_bound({max, Bytes(99, '\xff')});
    return {{"ZCOUNT", "z", fmt::format("({}", min), fmt::format("{}", max)},
            integer(min >= max ? 0 : std::distance(first, last))};
  }

  Random random_;
  const uint64_t shape_;
  int64_t added_ = 0;
  std::map<Bytes, double> scores_;
  std::set<Place> order_;
};

TEST_P(RedisFences, SortedSetsEqualAModel) {
  const uint64_t first_seed = test_seed(1);
  const uint64_t rounds = std::max<uint64_t>(test_rounds(8), 1);
  for (uint64_t seed = first_seed; seed < first_seed + rounds; seed++) {
    SCOPED_TRACE(seed);
    Random random(seed);
    ZsetModel model(seed);
    bool is_cut = true;
    say("DEL z");
    for (int i = 0; i < 60; i++) {
      const bool grows = i % 40 < 25;
      std::vector<std::vector<Bytes>> commands;
      std::vector<Bytes> expected;
      for (uint64_t left = random.below(12) + 1; left > 0; left--) {
        ZsetModel::Said said = model.next(grows);
        commands.push_back(std::move(said.words));
        expected.push_back(std::move(said.reply));
      }
      const std::vector<Bytes> replies = batch(commands);
      for (size_t j = 0; j < replies.size(); j++)
        ASSERT_EQ(replies[j], expected[j]) << "batch " << i << ": " << commands[j][0] << " "
                                           << commands[j][2] << ", " << model.size();
      expect_counts("z", is_cut);
      if (HasFailure()) return;
      if (!random.one_in(20)) continue;
      restart();  // without the books: what is not known is cut by the collector
      is_cut = GetParam() == Way::expecting;
    }
    collect_all();
    expect_counts("z");
    expect_exact();
  }
  say("DEL z");
  collect_all();
  EXPECT_EQ(all_fences(), 0u);
}

// Members that come and go by all ways that sets and hashes have.
TEST_P(RedisFences, SetsAndHashesEqualAModel) {
  const uint64_t first_seed = test_seed(1);
  const uint64_t rounds = std::max<uint64_t>(test_rounds(4), 1);
  for (uint64_t seed = first_seed; seed < first_seed + rounds; seed++) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::set<Bytes> model;
    bool is_cut = true;
    say("DEL s h");
    for (int i = 0; i < 60; i++) {
      std::vector<std::vector<Bytes>> commands;
      const bool grows = i % 40 < 25;
      for (uint64_t left = random.below(8) + 1; left > 0; left--) {
        std::vector<Bytes> to_set{"", "s"};
        std::vector<Bytes> to_hash{"", "h"};
        const bool adds = model.size() < 100 || random.below(10) < (grows ? 8 : 2);
        to_set[0] = adds ? "SADD" : "SREM";
        to_hash[0] = adds ? "HSET" : "HDEL";
        for (uint64_t more = random.below(random.one_in(8) ? 500 : 40) + 1; more > 0; more--) {
          const Bytes member = std::to_string(random.below(20'000));
          if (adds ? !model.insert(member).second : model.erase(member) == 0) continue;
          to_set.push_back(member);
          to_hash.push_back(member);
          if (adds) to_hash.push_back("v");
        }
        if (to_set.size() == 2) continue;
        commands.push_back(to_set);
        commands.push_back(to_hash);
      }
      batch(commands);
      for (const char* name : {"s", "h"}) expect_counts(name, is_cut);
      if (HasFailure()) return;
      ASSERT_EQ(number("SCARD s"), static_cast<int64_t>(model.size()));
      ASSERT_EQ(number("HLEN h"), static_cast<int64_t>(model.size()));
      // Each on its own, and all in one transaction: what one took the next must not find.
      const auto popped = batch({{"SPOP", "s"}, {"SPOP", "s"}, {"SPOP", "s", "3"}, {"SPOP", "s"}});
      std::vector<Bytes> fields{"HDEL", "h"};
      for (const Bytes& reply : popped) {
        for (size_t at = reply.find('$'); at != Bytes::npos; at = reply.find('$', at + 1)) {
          const size_t begin = reply.find("\r\n", at) + 2;
          fields.push_back(reply.substr(begin, reply.find("\r\n", begin) - begin));
          ASSERT_EQ(model.erase(fields.back()), 1u) << fields.back();
        }
      }
      ASSERT_EQ(batch({fields})[0], integer(static_cast<int64_t>(fields.size() - 2)));
      for (const char* name : {"s", "h"}) expect_counts(name, is_cut);
      if (HasFailure()) return;
      if (!random.one_in(20)) continue;
      restart();
      is_cut = GetParam() == Way::expecting;
    }
    collect_all();
    for (const char* name : {"s", "h"}) expect_counts(name);
    expect_exact();
  }
  say("UNLINK s h");
  collect_all();
  EXPECT_EQ(all_fences(), 0u);
}

class RedisLargeFences : public RedisFences {
 protected:
  // A sorted set, a set and a hash of so many members.
  void fill(size_t members) {
    for (size_t i = 0; i < members;) {
      std::vector<Bytes> zadd{"ZADD", "z"};
      std::vector<Bytes> sadd{"SADD", "s"};
      std::vector<Bytes> hset{"HSET", "h"};
      for (const size_t end = std::min(members, i + 1'000); i < end; i++) {
        const Bytes member = fmt::format("member:{:07}", i);
        zadd.insert(zadd.end(), {std::to_string(i), member});
        sadd.push_back(member);
        hset.insert(hset.end(), {member, "v"});
      }
      batch({zadd, sadd, hset});
    }
  }
  // As they were before there were fences.
  void take_fences_away() {
    for (const char* name : {"z", "s", "h"}) make_old(name);
  }
};
INSTANTIATE_TEST_SUITE_P(BothWays, RedisLargeFences, testing::Values(Way::latched, Way::expecting),
                         way_name);

TEST_P(RedisLargeFences, OldCollectionsGetThemBitByBit) {
  constexpr size_t members = 30'000;
  fill(members);
  for (const char* name : {"z", "s", "h"}) expect_counts(name);
  take_fences_away();
  const auto expect_found = [&] {
    EXPECT_EQ(number("ZRANK z member:0012345"), 12'345);
    EXPECT_EQ(number("ZREVRANK z member:0012345"), number("ZCARD z") - 12'346);
    EXPECT_EQ(say("ZRANGE z 29998 29998"), bulks({"member:0029998"}));
    EXPECT_EQ(number("ZCOUNT z 7000 (20000"), 13'000);
    EXPECT_TRUE(say("SRANDMEMBER s").starts_with("$"));
  };
  expect_found();
  // One command does little, whatever the size.
  say("ZADD z 1e9 last");
  say("SADD s last");
  say("HSET h last v");
  EXPECT_LE(all_fences(), 6u);
  for (const char* name : {"z", "s", "h"}) expect_counts(name, false);
  expect_found();
  Random random(1);
  for (int i = 0; clock_.advance_ms(i == 0 ? 2'000 : 1), step(); i++) {
    say(fmt::format("ZADD z {} new:{}", 40'000 + random.below(1'000), i));
    say(fmt::format("SREM s member:{:07}", random.below(members)));
    say(fmt::format("HSET h new:{} v", i));
    for (const char* name : {"z", "s", "h"}) expect_counts(name, false);
    if (HasFailure()) return;
  }
  for (const char* name : {"z", "s", "h"}) expect_counts(name);
  EXPECT_GT(all_fences(), 3 * members / members_max);
  expect_found();
  expect_exact();
}

TEST_P(RedisLargeFences, TheyGoWhereTheirMembersGo) {
  fill(5'000);
  for (const Bytes& reply : batch({{"SUNIONSTORE", "s2", "s"},
                                   {"ZUNIONSTORE", "z2", "1", "z"},
                                   {"RENAME", "h", "h2"},
                                   {"SADD", "s", "more"},
                                   {"ZREM", "z", "member:0000001"}}))
    EXPECT_NE(reply[0], '-') << reply;
  say("COPY s s3");
  say("COPY z z3");
  Bytes dump = say("DUMP z");
  dump = dump.substr(dump.find('\n') + 1);
  dump.resize(dump.size() - 2);
  const std::vector<ByteView> restore{"RESTORE", "z4", "0", dump};
  EXPECT_EQ(say(restore), "+OK\r\n");
  for (const char* name : {"s", "s2", "s3", "z", "z2", "z3", "z4", "h2"}) {
    EXPECT_TRUE(metadata(name).value().has_fences) << name;
    expect_counts(name);
  }
  EXPECT_EQ(number("ZRANK z3 member:0003000"), 2'999);
  say("DEL s z");
  say("PEXPIRE s2 1");
  say("ZREMRANGEBYRANK z2 0 -1");
  say("SPOP s3 5000");
  say("ZREMRANGEBYRANK z3 10 -1");
  say("SET h2 text");
  say("DEL s3 z4");
  collect_all();
  EXPECT_EQ(all_fences(), 0u);
  fill(2'000);
  say("FLUSHDB");
  collect_all();
  EXPECT_EQ(records(), 0u);
  EXPECT_EQ(all_fences(), 0u);
  expect_exact();
}

// So whoever pops does not step over what was popped before.
TEST_P(RedisLargeFences, TheyKnowTheEnds) {
  fill(5'000);
  for (int i = 0; i < 10; i++) batch({{"ZPOPMIN", "z", "200"}, {"ZPOPMAX", "z", "200"}});
  expect_counts("z");
  const RedisMetadata key = metadata("z").value();
  const std::vector<Counted> low = fences("z", key, 1);
  const std::vector<Bytes> members = places("z", key);
  EXPECT_GT(low[0].place, scored_place(2'000 - members_max, {}));
  EXPECT_EQ(low.back().members.value(), 0u);
  EXPECT_LE(low.back().place, scored_place(3'000 + members_max, {}));
  EXPECT_EQ(say("ZRANGE z 0 0"), bulks({"member:0002000"}));
  EXPECT_EQ(say("ZREVRANGE z 0 0"), bulks({"member:0002999"}));
  batch({{"ZADD", "z", "-5", "low"}, {"ZADD", "z", "9999", "high"}, {"ZPOPMIN", "z"}});
  EXPECT_EQ(say("ZPOPMAX z"), bulks({"high", "9999"}));
  expect_counts("z");
}

// More fences than a group has, each before all others.
TEST_P(RedisLargeFences, MembersThatComeInFrontOfAllOthers) {
  constexpr int members = 40'000;
  for (int i = members; i > 0; i -= 200) {
    std::vector<Bytes> zadd{"ZADD", "z"};
    for (int j = i; j > i - 200; j--)
      zadd.insert(zadd.end(), {std::to_string(j), fmt::format("m{:06}", j)});
    batch({zadd});
  }
  for (int i = 0; i > -300; i--) say(fmt::format("ZADD z {} n{:06}", i, -i));
  expect_counts("z");
  EXPECT_EQ(number("ZRANK z m000001"), 300);
  EXPECT_EQ(number("ZRANK z m020000"), 20'299);
  EXPECT_EQ(number("ZREM z m000001 m040000 m020000"), 3);
  expect_counts("z");
}

TEST_P(RedisLargeFences, NumbersAreWrittenAfterAWhile) {
  fill(40'000);
  const auto expect_found = [&] {
    EXPECT_EQ(number("ZRANK z member:0012345"), 12'345);
    EXPECT_EQ(number("ZCOUNT z 7000 (20000"), 13'000);
    EXPECT_EQ(say("ZRANGE z 39998 39998"), bulks({"member:0039998"}));
  };
  EXPECT_EQ(all_marks() > 0, GetParam() == Way::latched);
  // Whoever has no book counts.
  restart();
  for (const char* name : {"z", "s", "h"}) expect_counts(name);
  expect_found();
  for (const char* name : {"z", "s", "h"}) expect_counts(name);
  // Also where nobody has counted before.
  restart();
  collect_all();
  EXPECT_EQ(all_marks(), 0u);
  EXPECT_FALSE(step());
  for (const char* name : {"z", "s", "h"}) expect_counts(name);
  expect_found();
  // One that changes costs a mark or two, however often.
  for (int i = 0; i < 20; i++) say(fmt::format("ZADD z {} member:0012345", 12'345 + i % 2 * 0.5));
  EXPECT_LE(all_marks(), 4u);
  expect_counts("z");
  collect_all();
  EXPECT_EQ(all_marks(), 0u);
  expect_exact();
}

// Members so much alike that no fence could be between them are walked.
TEST_P(RedisLargeFences, MembersThatAreLongAndAlike) {
  const Bytes front(2'000, 'x');
  for (int i = 0; i < 1'200; i += 100) {
    std::vector<Bytes> zadd{"ZADD", "z"};
    for (int j = i; j < i + 100; j++)
      zadd.insert(zadd.end(), {"1", front + fmt::format("{:05}", j)});
    batch({zadd});
    expect_counts("z", false);
  }
  EXPECT_EQ(say(std::vector<ByteView>{"ZRANK", "z", front + "00777"}), integer(777));
}

}  // namespace
}  // namespace trellis
