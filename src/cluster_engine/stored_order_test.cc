#include "cluster_engine/stored_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "codec/address.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

// Few letters, so that keys are prefixes of each other and bounds meet them.
Bytes small(Random& random, size_t size_max) {
  Bytes out;
  for (uint64_t i = random.below(size_max + 1); i > 0; i--)
    out.push_back(
        ByteView("\x00\x01\xff"
                 "ab",
                 5)[random.below(5)]);
  return out;
}

Bytes group(Random& random, char model) {
  return {'x', '\0', '\0', static_cast<char>(random.below(2)), model};
}

Bytes redis_key(Random& random) {
  Bytes key = group(random, 'd');
  const char tag = "chmnstz"[random.below(7)];
  key.push_back(tag);
  const Bytes ns = small(random, 1);
  key.push_back(static_cast<char>(ns.size()));
  key.append(ns);
  const Bytes user = small(random, 3);
  if (tag == 'm' || tag == 'n') return key + user;
  append_be32(key, static_cast<uint32_t>(user.size()));
  key.append(user);
  append_be64(key, random.one_in(4) ? ~uint64_t{0} : random.below(2));
  return key + small(random, 2);
}

Bytes file_key(Random& random) {
  Bytes key = group(random, 'f');
  const char scope = static_cast<char>(random.below(10));
  key.push_back(scope);
  append_be64(key, random.one_in(5) ? ~uint64_t{0} : random.below(3));
  return key + small(random, 2);
}

Bytes any_record(Random& random) {
  switch (random.below(5)) {
    case 0:
    case 1: return redis_key(random);
    case 2:
    case 3: return file_key(random);
    default: break;
  }
  static constexpr ByteView heads[] = {{"x\0\0\0e", 5}, {"x\0\0\1c", 5}, {"x\0\0\1g", 5},
                                       {"x\0", 2},      {"r\0\0\1", 4},  {"\x02", 1},
                                       {"y", 1},        {"\xff", 1}};
  return Bytes(heads[random.below(8)]) + small(random, 3);
}

// Any bytes may bound an interval, also those that are no key.
Bytes any_bound(Random& random) {
  Bytes bound = any_record(random);
  if (random.one_in(3)) bound.resize(random.below(bound.size() + 1));
  if (random.one_in(4)) bound = prefix_end(bound);
  if (random.one_in(4)) bound += small(random, 2);
  return bound;
}

class StoredOrder : public testing::Test {
 protected:
  // Gives at most a few entries at a time, as a store does.
  Status read(ByteView begin, ByteView end, bool reverse, AddressChunk& chunk) {
    auto first = stored_.lower_bound(Bytes(begin));
    auto last = end.empty() ? stored_.end() : stored_.lower_bound(Bytes(end));
    EXPECT_TRUE(end.empty() || begin < end);
    for (uint64_t left = 1 + random_.below(4); first != last; left--) {
      if (left == 0) {
        chunk.covered = reverse ? chunk.entries.back().address : first->first;
        break;
      }
      const auto at = reverse ? --last : first++;
      chunk.entries.push_back({at->first, at->second, "version"});
    }
    reads_++;
    return {};
  }

  std::vector<Bytes> walk(ByteView begin, ByteView end, bool reverse, size_t kept_max) {
    std::vector<Bytes> keys;
    Bytes from(begin);
    Bytes to(end);
    while (true) {
      const StoredWalk walk{from, to, reverse, kept_max};
      const auto cut = walk_stored_order(
          walk,
          [&](ByteView b, ByteView e, bool r, AddressChunk& chunk) { return read(b, e, r, chunk); },
          [&](ByteView key, StoredEntry& entry) {
            EXPECT_EQ(entry.value, key);
            keys.emplace_back(key);
            return Visit::go_on;
          });
      EXPECT_OK(cut);
      if (!cut || !*cut) return keys;
      (reverse ? to : from) = **cut;
    }
  }

  static void expect_same(const std::vector<Bytes>& keys, const std::vector<Bytes>& expected) {
    EXPECT_EQ(keys.size(), expected.size());
    const auto [at, wanted] =
        std::mismatch(keys.begin(), keys.end(), expected.begin(), expected.end());
    if (at != keys.end() || wanted != expected.end())
      ADD_FAILURE() << "after " << at - keys.begin() << ": "
                    << (at == keys.end() ? "the end" : quote(*at)) << " instead of "
                    << (wanted == expected.end() ? "the end" : quote(*wanted));
  }

  std::map<Bytes, Bytes> stored_;  // by address
  Random random_{1};
  size_t reads_ = 0;
};

TEST_F(StoredOrder, IsThatOfTheKeys) {
  random_ = Random(test_seed(5));
  const uint64_t rounds = test_rounds(300);
  size_t visited = 0;
  for (uint64_t round = 0; round < rounds && !HasFailure(); round++) {
    stored_.clear();
    std::vector<Bytes> keys;
    for (uint64_t i = random_.below(200); i > 0; i--) {
      const Bytes key = any_record(random_);
      Bytes address;
      ASSERT_OK(append_address(address, key));
      if (stored_.emplace(address, key).second) keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    for (int i = 0; i < 20; i++) {
      const Bytes begin = random_.one_in(5) ? Bytes() : any_bound(random_);
      const Bytes end = random_.one_in(5) ? Bytes() : any_bound(random_);
      std::vector<Bytes> expected;
      for (const Bytes& key : keys)
        if (begin <= key && (end.empty() || key < end)) expected.push_back(key);
      if (!end.empty() && begin >= end) continue;
      const size_t kept_max = random_.one_in(2) ? 1 + random_.below(3) : 1000;
      SCOPED_TRACE(quote(begin) + " to " + quote(end));
      expect_same(walk(begin, end, false, kept_max), expected);
      std::reverse(expected.begin(), expected.end());
      expect_same(walk(begin, end, true, kept_max), expected);
      visited += expected.size();
    }
  }
  EXPECT_GT(visited, rounds * 100);
}

// What one user key has is read in order, without reading what others have.
TEST_F(StoredOrder, OneKeyIsReadAlone) {
  const auto record = [](ByteView user, uint64_t number) {
    Bytes key(
        "x\0\0\1ds\1"
        "0",
        8);
    append_be32(key, static_cast<uint32_t>(user.size()));
    key.append(user);
    append_be64(key, 7);
    append_be64(key, number);
    return key;
  };
  for (const ByteView user : {ByteView("a"), ByteView("b"), ByteView("c")}) {
    for (uint64_t i = 0; i < 1000; i++) {
      Bytes address;
      ASSERT_OK(append_address(address, record(user, i)));
      stored_.emplace(address, record(user, i));
    }
  }
  const Bytes head = record("b", 0).substr(0, 13);
  size_t count = 0;
  const Bytes end = prefix_end(head);
  ASSERT_OK(walk_stored_order(
      {head, end, false, 10},
      [&](ByteView b, ByteView e, bool r, AddressChunk& chunk) { return read(b, e, r, chunk); },
      [&](ByteView, StoredEntry&) { return ++count < 10 ? Visit::go_on : Visit::stop; }));
  EXPECT_EQ(count, 10u);
  EXPECT_LE(reads_, 10u);
}

// A walk over all 'm' records does not read the members of large collections one by one.
TEST_F(StoredOrder, OtherTablesAreSkipped) {
  for (int user = 0; user < 10; user++) {
    Bytes key(
        "x\0\0\1dm\1"
        "0",
        8);
    key.push_back(static_cast<char>('a' + user));
    Bytes address;
    ASSERT_OK(append_address(address, key));
    stored_.emplace(address, key);
    address.back() = 's';
    for (int i = 0; i < 1000; i++) {
      Bytes member = address;
      append_be64(member, static_cast<uint64_t>(i));
      stored_.emplace(member, "member");
    }
  }
  for (const bool reverse : {false, true}) {
    reads_ = 0;
    EXPECT_EQ(walk(Bytes("x\0\0\1dm", 6), Bytes("x\0\0\1dn", 6), reverse, 10).size(), 10u);
    EXPECT_LE(reads_, 50u);
  }
}

}  // namespace
}  // namespace trellis
