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
  char* take(size_t bytes) {
    taken_bytes_ += bytes;
    return pieces_.emplace_back(bytes, '\0').data();
  }

  size_t taken_bytes() const { return taken_bytes_; }

 private:
  std::deque<Bytes> pieces_;
  size_t taken_bytes_ = 0;
};

void append_length(Bytes& out, size_t length) {
  for (; length >= 0x80; length >>= 7) out.push_back(static_cast<char>(length | 0x80));
  out.push_back(static_cast<char>(length));
}

const char* insert(EntryTree& tree, ByteView user, uint64_t trailer, ByteView value = {},
                   EntryTree::Places* places = nullptr) {
  Bytes bytes;
  append_length(bytes, user.size() + 8);
  bytes += user;
  for (unsigned i = 0; i < 8; i++) bytes.push_back(static_cast<char>(trailer >> (8 * i)));
  append_length(bytes, value.size());
  bytes += value;
  char* const entry = tree.allocate_entry(bytes.size());
  std::copy(bytes.begin(), bytes.end(), entry);
  tree.insert(entry, places);
  return entry;
}

constexpr uint64_t removal = 0;
constexpr uint64_t put = 1;
constexpr uint64_t merge_kind = 2;
constexpr uint64_t trailer_of(uint64_t sequence, uint64_t kind) { return sequence << 8 | kind; }

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
      const char* const entry = insert(tree, key, ++trailer);
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
        EntryTree::Places places;
        tree.look_up(soon, places);
        position.to_lower_bound({wanted, ~uint64_t{0}});
        if (position.valid()) {
          ASSERT_GE(EntryKey::of_entry(position.entry()).user, wanted);
        }
      }
    });
  Random random(seed);
  for (uint64_t n = 1; n <= test_rounds(20'000); n++) {
    insert(tree, some_key(random), n);
    inserted.store(n);
  }
  done.store(true);
  for (std::thread& reader : readers) reader.join();
}

// What was looked up before is used, whatever is inserted between: the tree is the same as without.
TEST(EntryTree, PlacesThatWereLookedUp) {
  Random random(test_seed(3));
  for (int round = 0; round < 20; round++) {
    Memory memory;
    EntryTree tree([&](size_t bytes) { return memory.take(bytes); });
    Model model;
    uint64_t trailer = 0;
    EntryTree::Places places;
    for (uint64_t n = random.below(test_rounds(500)); n > 0; n--) {
      std::vector<Bytes> keys(random.below(60));
      for (Bytes& key : keys) key = some_key(random);
      const std::vector<ByteView> expected(keys.begin(), keys.end());
      tree.look_up(expected, places);
      for (const Bytes& key : keys) {
        for (Bytes next = some_key(random); random.one_in(3); next = some_key(random)) {
          const char* const other = insert(tree, next, ++trailer, {}, &places);
          model.emplace(std::pair(next, trailer), other);
        }
        if (random.one_in(20)) continue;
        const char* const entry = insert(tree, key, ++trailer, {}, &places);
        model.emplace(std::pair(key, trailer), entry);
      }
      places.clear();
    }
    EntryTree::Position position(tree);
    position.to_first();
    for (const auto& [key, entry] : model) {
      ASSERT_EQ(position.entry(), entry);
      position.next();
    }
    ASSERT_FALSE(position.valid());
  }
}

TEST(EntryTree, WritingAgainTakesNoMemory) {
  Memory memory;
  ReadEpochs epochs;
  EntryTree tree([&](size_t bytes) { return memory.take(bytes); }, &epochs);
  uint64_t sequence = 0;
  const auto write_all = [&](uint64_t kind) {
    for (int i = 0; i < 1'000; i++) {
      const ReadEpochs::Reader writer(epochs);
      insert(tree, "key" + std::to_string(i), trailer_of(++sequence, kind), Bytes(100, 'v'));
    }
  };
  const auto count = [&] {
    EntryTree::Position position(tree);
    size_t entries = 0;
    for (position.to_first(); position.valid(); position.next()) entries++;
    return entries;
  };
  for (int i = 0; i < 5; i++) write_all(put);
  const size_t before_bytes = memory.taken_bytes();
  for (int i = 0; i < 50; i++) write_all(i % 2 == 0 ? put : removal);
  EXPECT_EQ(memory.taken_bytes(), before_bytes);
  EXPECT_LT(count(), 1'100u);

  // What is added to a value does not hide it.
  const size_t before = count();
  for (int i = 0; i < 3; i++) write_all(merge_kind);
  EXPECT_GE(count(), before + 2'900u);
  for (int i = 0; i < 2; i++) write_all(put);
  EXPECT_LT(count(), 1'100u);

  // Somebody may still be reading.
  const size_t quiet_bytes = memory.taken_bytes();
  const ReadEpochs::Reader reader(epochs);
  for (int i = 0; i < 10; i++) write_all(put);
  EXPECT_GT(memory.taken_bytes(), quiet_bytes + 5'000u * 100);
}

// Every key is written once in each round; what its value is follows from key and sequence number.
class Rounds {
 public:
  static constexpr uint64_t keys = 150;

  void write(uint64_t round) {
    const ReadEpochs::Reader writer(epochs_);
    for (uint64_t i = 0; i < keys; i++) {
      const uint64_t sequence = round * keys + i;
      insert(tree_, key_of(i), trailer_of(sequence, put), value_of(sequence));
    }
    committed_.store((round + 1) * keys - 1);
  }

  // Sees of all keys what was committed when it began.
  void read(Random& random) {
    const ReadEpochs::Reader reader(epochs_);
    const uint64_t sequence = committed_.load();
    const uint64_t trailer = trailer_of(sequence, 0xff);
    EntryTree::Position position(tree_);
    for (int n = 0; n < 20; n++) {
      const uint64_t i = random.below(keys);
      position.to_lower_bound({key_of(i), trailer});
      check(position, i, sequence);
      position.to_lower_bound({key_of(i), 0});
      ASSERT_EQ(position.valid(), i + 1 < keys);
    }
    // Both ways over all of them, past what is older and what is newer.
    uint64_t seen = 0;
    Bytes last;
    for (position.to_first(); position.valid(); position.next()) {
      const EntryKey found = EntryKey::of_entry(position.entry());
      if (found.trailer > trailer || found.user == last) continue;
      last = found.user;
      check(position, seen++, sequence);
    }
    ASSERT_EQ(seen, keys);
    for (position.to_last(); position.valid(); position.previous())
      if (EntryKey::of_entry(position.entry()).trailer == expected_trailer(seen - 1, sequence))
        check(position, --seen, sequence);
    ASSERT_EQ(seen, 0u);
  }

 private:
  static Bytes key_of(uint64_t i) { return "key" + std::to_string(100'000 + i); }
  static Bytes value_of(uint64_t sequence) {
    return Bytes(10 + sequence % 3 * 20, static_cast<char>('a' + sequence % 26));
  }
  static uint64_t expected_trailer(uint64_t i, uint64_t committed) {
    return trailer_of(committed + 1 - keys + i, put);
  }
  static void check(const EntryTree::Position& position, uint64_t i, uint64_t committed) {
    ASSERT_TRUE(position.valid());
    const EntryKey found = EntryKey::of_entry(position.entry());
    ASSERT_EQ(found.user, key_of(i));
    ASSERT_EQ(found.trailer, expected_trailer(i, committed));
    const Bytes value = value_of(found.trailer >> 8);
    ASSERT_EQ(ByteView(found.user.data() + found.user.size() + 9, value.size()), value);
  }

  Memory memory_;
  ReadEpochs epochs_;
  EntryTree tree_{[this](size_t bytes) { return memory_.take(bytes); }, &epochs_};
  std::atomic<uint64_t> committed_{0};
};

// The memory of what is hidden is used again beside them.
TEST(EntryTree, ReadersSeeWhatWasCommittedWhenTheyBegan) {
  const uint64_t seed = test_seed(4);
  Rounds rounds;
  rounds.write(1);
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (unsigned r = 0; r < 3; r++)
    readers.emplace_back([&, r] {
      Random random(seed + r);
      for (; !done.load(); std::this_thread::yield()) rounds.read(random);
    });
  for (uint64_t round = 2; round < test_rounds(500); round++) {
    rounds.write(round);
    std::this_thread::yield();
  }
  done.store(true);
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace trellis
