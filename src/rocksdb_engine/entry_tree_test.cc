#include "rocksdb_engine/entry_tree.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <map>
#include <thread>

#include "base/random.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

class Memory {
 public:
  char* take(size_t bytes) { return pieces_.emplace_back(bytes, '\0').data(); }

  const char* entry(ByteView user, uint64_t trailer) {
    Bytes bytes;
    size_t length = user.size() + 8;
    for (; length >= 0x80; length >>= 7) bytes.push_back(static_cast<char>(length | 0x80));
    bytes.push_back(static_cast<char>(length));
    bytes += user;
    for (unsigned i = 0; i < 8; i++) bytes.push_back(static_cast<char>(trailer >> (8 * i)));
    char* const at = take(bytes.size());
    std::copy(bytes.begin(), bytes.end(), at);
    return at;
  }

 private:
  std::deque<Bytes> pieces_;
};

struct Order {
  bool operator()(const std::pair<Bytes, uint64_t>& a, const std::pair<Bytes, uint64_t>& b) const {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  }
};
using Model = std::map<std::pair<Bytes, uint64_t>, const char*, Order>;

// Keys that share much or nothing, are prefixes of each other, hold zeros, or come many times.
Bytes some_key(Random& random) {
  switch (random.below(6)) {
    case 0: return Bytes(random.below(20), '\0');
    case 1: return Bytes(random.below(300), 'a') + Bytes(random.below(3), '\xff');
    case 2: return "counter";
    case 3: return "x" + std::to_string(random.below(100)) + Bytes(random.below(12), '\0');
    case 4: {
      Bytes key(random.below(12), 0);
      for (char& byte : key) byte = static_cast<char>(random.below(256));
      return key;
    }
    default: return "some/long/common/prefix/" + std::to_string(random.below(1'000'000));
  }
}

const char* at(const Model& model, Model::const_iterator place) {
  return place == model.end() ? nullptr : place->second;
}

TEST(EntryTree, EmptyHasNothing) {
  Memory memory;
  const EntryTree tree([&](size_t bytes) { return memory.take(bytes); });
  EntryTree::Position position(tree);
  position.to_first();
  EXPECT_FALSE(position.valid());
  position.to_last();
  EXPECT_FALSE(position.valid());
  position.to_lower_bound({"a", 1});
  EXPECT_FALSE(position.valid());
  position.to_last_not_after({"a", 1});
  EXPECT_FALSE(position.valid());
  EXPECT_FALSE(tree.contains({"", 0}));
}

TEST(EntryTree, EqualsASortedMap) {
  Random random(test_seed(1));
  for (int round = 0; round < 20; round++) {
    Memory memory;
    EntryTree tree([&](size_t bytes) { return memory.take(bytes); });
    Model model;
    uint64_t trailer = 0;
    for (uint64_t n = random.below(test_rounds(10'000)); n > 0; n--) {
      const Bytes key = some_key(random);
      const char* const entry = memory.entry(key, ++trailer);
      tree.insert(entry);
      model.emplace(std::pair(key, trailer), entry);
    }
    EntryTree::Position position(tree);
    position.to_first();
    for (const auto& [key, entry] : model) {
      ASSERT_EQ(position.entry(), entry);
      position.next();
    }
    ASSERT_FALSE(position.valid());
    position.to_last();
    for (auto place = model.rbegin(); place != model.rend(); ++place) {
      ASSERT_EQ(position.entry(), place->second);
      position.previous();
    }
    ASSERT_FALSE(position.valid());
    for (int i = 0; i < 2'000; i++) {
      const std::pair wanted{some_key(random), random.below(trailer + 2)};
      const EntryKey key{wanted.first, wanted.second};
      position.to_lower_bound(key);
      ASSERT_EQ(position.entry(), at(model, model.lower_bound(wanted)));
      auto after = model.upper_bound(wanted);
      position.to_last_not_after(key);
      ASSERT_EQ(position.entry(), after == model.begin() ? nullptr : at(model, std::prev(after)));
      ASSERT_EQ(tree.contains(key), model.contains(wanted));
    }
  }
}

// While one thread inserts, others go both ways: they see an ordered tree, with all that was there
// when they began.
TEST(EntryTree, ReadersBesideTheWriter) {
  const uint64_t seed = test_seed(2);
  Memory memory;
  EntryTree tree([&](size_t bytes) { return memory.take(bytes); });
  std::atomic<uint64_t> inserted{0};
  std::atomic<bool> done{false};
  const auto is_before = [](const char* a, const char* b) {
    const EntryKey x = EntryKey::of_entry(a);
    const EntryKey y = EntryKey::of_entry(b);
    return x.user != y.user ? x.user < y.user : x.trailer > y.trailer;
  };
  std::vector<std::thread> readers;
  for (unsigned r = 0; r < 3; r++)
    readers.emplace_back([&, r] {
      Random random(seed + r + 1);
      while (!done.load()) {
        const uint64_t least = inserted.load();
        EntryTree::Position position(tree);
        const bool forward = random.one_in(2);
        forward ? position.to_first() : position.to_last();
        uint64_t seen = 0;
        const char* last = nullptr;
        for (; position.valid(); forward ? position.next() : position.previous()) {
          if (last != nullptr) {
            ASSERT_TRUE(forward ? is_before(last, position.entry())
                                : is_before(position.entry(), last));
          }
          last = position.entry();
          seen++;
        }
        ASSERT_GE(seen, least);
        const Bytes wanted = some_key(random);
        const ByteView soon[] = {wanted, "counter", ""};
        tree.prefetch(soon);
        position.to_lower_bound({wanted, ~uint64_t{0}});
        if (position.valid()) {
          ASSERT_GE(EntryKey::of_entry(position.entry()).user, wanted);
        }
      }
    });
  Random random(seed);
  for (uint64_t n = 1; n <= test_rounds(20'000); n++) {
    tree.insert(memory.entry(some_key(random), n));
    inserted.store(n);
  }
  done.store(true);
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace trellis
