#include "rocksdb_engine/entry_tree.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <new>
#include <thread>

#include "base/assert.h"

namespace trellis {
namespace {

constexpr size_t entries_max = 64;
constexpr size_t trailer_bytes = 8;
constexpr size_t prefix_words = 6;
constexpr unsigned levels_max = 16;
constexpr size_t prefetched_entries = 6;
constexpr size_t line_bytes = 64;    // of the processor's caches
constexpr unsigned spins_max = 128;  // before others may have the core, the writer perhaps

uint64_t load_le64(const char* bytes) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

// Eight bytes from `skipped` on, as a number that is ordered as they are; zeros behind the end, so
// that of two equal windows the keys may still differ.
uint64_t window_of(ByteView user, size_t skipped) {
  const size_t left = user.size() - skipped;
  if (left >= 8) return __builtin_bswap64(load_le64(user.data() + skipped));
  if (left == 0) return 0;
  if (user.size() >= 8)  // the end of the key, without what is before the window
    return __builtin_bswap64(load_le64(user.data() + user.size() - 8)) << (8 * (8 - left));
  uint64_t window = 0;
  for (size_t i = 0; i < 8; i++)
    window = window << 8 | (i < left ? static_cast<unsigned char>(user[skipped + i]) : 0);
  return window;
}

// Its first `bytes` bytes.
uint64_t first_of_window(uint64_t window, size_t bytes) {
  return bytes >= 8 ? window : window & ~(~uint64_t{0} >> (8 * bytes));
}

bool is_before(const EntryKey& a, const EntryKey& b) {
  const int order = a.user.compare(b.user);
  return order != 0 ? order < 0 : a.trailer > b.trailer;
}

// As much of it as small records have.
void prefetch_entry(const char* entry) {
  for (size_t i = 0; i < 3; i++) __builtin_prefetch(entry + i * line_bytes);
}

size_t common_prefix(ByteView a, ByteView b) {
  const size_t most = std::min(a.size(), b.size());
  size_t same = 0;
  while (same < most && a[same] == b[same]) same++;
  return same;
}

}  // namespace

EntryKey EntryKey::of_internal_key(ByteView internal_key) {
  const size_t user_bytes = internal_key.size() - trailer_bytes;
  return {internal_key.substr(0, user_bytes), load_le64(internal_key.data() + user_bytes)};
}

EntryKey EntryKey::of_entry(const char* entry) {
  uint32_t bytes = static_cast<unsigned char>(*entry);
  if (bytes < 0x80) return of_internal_key({entry + 1, bytes});  // as most are
  bytes = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*entry++);
    bytes |= static_cast<uint32_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return of_internal_key({entry, bytes});
}

// What a reader sees of a node while it is changed may be of no instant, but is always memory that
// it may read. Each store releases and each load acquires: who sees anything new sees, when it
// looks at the version again, that it changed.
struct EntryTree::Node {
  std::atomic<uint32_t> version{0};
  std::atomic<uint32_t> count{0};
  std::atomic<uint32_t> skipped{0};  // what all user keys of the node begin with
  const unsigned level;              // 0: a leaf
  std::atomic<Node*> next{nullptr};
  std::array<std::atomic<uint64_t>, prefix_words> prefix;  // as much of it as there is room for
  std::array<std::atomic<uint64_t>, entries_max> windows;
  std::array<std::atomic<const char*>, entries_max> entries;
  std::atomic<Node*> children[];  // entries_max of them, of inner nodes only

  explicit Node(unsigned node_level) : level(node_level) {}

  template <class T>
  static T get(const std::atomic<T>& from) {
    return from.load(std::memory_order_acquire);
  }
  template <class T>
  static void set(std::atomic<T>& to, T value) {
    to.store(value, std::memory_order_release);
  }

  uint32_t stable_version() const {
    for (unsigned spins = 0;; spins++) {
      const uint32_t now = get(version);
      if (now % 2 == 0) return now;
      if (spins > spins_max) std::this_thread::yield();
    }
  }
  bool is_still(uint32_t seen) const { return get(version) == seen; }
  void begin_change() { version.store(version.load() + 1, std::memory_order_relaxed); }
  void end_change() { set(version, version.load(std::memory_order_relaxed) + 1); }

  EntryKey key(size_t i) const { return EntryKey::of_entry(get(entries[i])); }

  // What a search reads; of a leaf all of it, for much of it moves when an entry is put in.
  void prefetch(bool is_leaf) const {
    const size_t bytes = is_leaf ? sizeof(Node) : offsetof(Node, entries);
    for (size_t i = 0; i < bytes; i += line_bytes)
      __builtin_prefetch(reinterpret_cast<const char*>(this) + i);
  }

  // How the beginning of a user key compares to what is skipped; if equal, `skip` is no longer than
  // the key, whatever the writer does.
  int compare_prefix(ByteView user, size_t& skip) const {
    if (skip > 8 * prefix_words || skip > user.size()) {
      const ByteView first = key(0).user;
      skip = std::min(skip, first.size());
      return user.substr(0, skip).compare(first.substr(0, skip));
    }
    for (size_t i = 0; 8 * i < skip; i++) {
      const uint64_t ours = first_of_window(window_of(user, 8 * i), skip - 8 * i);
      const uint64_t theirs = get(prefix[i]);
      if (ours != theirs) return ours < theirs ? -1 : 1;
    }
    return 0;
  }

  struct Place {
    size_t all;        // entries of the node
    size_t before;     // as their windows say
    bool is_doubtful;  // the next entry has the same window
    uint64_t window;
  };
  // By windows alone, without reading an entry. No branch depends on them: it would be guessed
  // wrong half the time.
  Place place_of(ByteView user) const {
    const size_t all = std::min<size_t>(get(count), entries_max);
    if (all == 0) return {0, 0, false, 0};
    size_t skip = get(skipped);
    if (const int order = compare_prefix(user, skip); order != 0)
      return {all, order < 0 ? 0 : all, false, 0};
    const uint64_t window = window_of(user, skip);
    size_t before = 0;
    for (size_t left = all; left > 0;) {
      const size_t half = (left + 1) / 2;
      before += half & (size_t{0} - size_t{get(windows[before + half - 1]) < window});
      left -= half;
    }
    return {all, before, before < all && get(windows[before]) == window, window};
  }

  // How many entries are before the key. Right if the node did not change meanwhile.
  size_t count_before(const EntryKey& wanted) const {
    const auto [all, before_window, is_doubtful, window] = place_of(wanted.user);
    if (!is_doubtful || !is_before(key(before_window), wanted)) return before_window;
    size_t low = before_window + 1;
    size_t high = all;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      const uint64_t there = get(windows[middle]);
      const bool before = there != window ? there < window : is_before(key(middle), wanted);
      if (before)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  // REQUIRES of these: the writer, inside a change.
  void skip(size_t bytes) {
    set(skipped, static_cast<uint32_t>(bytes));
    const ByteView first = key(0).user.substr(0, bytes);
    for (size_t i = 0; i < prefix_words && 8 * i < bytes; i++)
      set(prefix[i], window_of(first, 8 * i));
    for (size_t i = 0; i < count.load(); i++) set(windows[i], window_of(key(i).user, bytes));
  }
  // Where windows do not tell entries apart: to make them anew reads all of these.
  void skip_more_if_useful() {
    size_t same = 0;
    for (size_t i = 1; i < count.load(); i++) same += get(windows[i]) == get(windows[i - 1]);
    if (same > count.load() / 4) skip(common_prefix(key(0).user, key(count.load() - 1).user));
  }
  // Of an entry that is new. If it begins unlike the others, all windows change. What the others
  // are is read only then: an entry is far away.
  void place_window(size_t i) {
    size_t skip_now = skipped.load();
    const ByteView user = key(i).user;
    if (count.load() > 1 && skip_now <= std::min(8 * prefix_words, user.size()) &&
        compare_prefix(user, skip_now) == 0)
      return set(windows[i], window_of(user, skip_now));
    const size_t other = i == 0 ? count.load() - 1 : 0;
    const size_t common = common_prefix(key(i).user, key(other).user);
    if (common < skipped.load() || count.load() == 1)
      skip(common);
    else
      set(windows[i], window_of(key(i).user, skipped.load()));
  }
};

EntryTree::EntryTree(Allocate allocate) : allocate_(std::move(allocate)), root_(make_node(0)) {}

EntryTree::Node* EntryTree::make_node(unsigned level) {
  static_assert(alignof(Node) <= 8);
  const size_t bytes = sizeof(Node) + (level == 0 ? 0 : entries_max * sizeof(std::atomic<Node*>));
  const auto begin = reinterpret_cast<uintptr_t>(allocate_(bytes + 7));
  char* const memory = reinterpret_cast<char*>((begin + 7) / 8 * 8);
  Node* const node = new (memory) Node(level);
  if (level != 0)
    for (size_t i = 0; i < entries_max; i++) new (&node->children[i]) std::atomic<Node*>(nullptr);
  return node;
}

void EntryTree::insert_at(Node& node, const char* entry, Node* child) {
  const EntryKey key = EntryKey::of_entry(entry);
  const size_t all = node.count.load();
  const size_t at = node.count_before(key);
  node.begin_change();
  for (size_t i = all; i > at; i--) {
    Node::set(node.entries[i], Node::get(node.entries[i - 1]));
    Node::set(node.windows[i], Node::get(node.windows[i - 1]));
  }
  for (size_t i = child == nullptr ? at : all; i > at; i--)
    Node::set(node.children[i], Node::get(node.children[i - 1]));
  Node::set(node.entries[at], entry);
  if (child != nullptr) Node::set(node.children[at], child);
  Node::set(node.count, static_cast<uint32_t>(all + 1));
  node.place_window(at);
  node.end_change();
}

// In an inner node no entry may be behind the keys of its child: of the first child that would be
// one that came later.
void EntryTree::lower_first(Node& node, const char* entry) {
  node.begin_change();
  Node::set(node.entries[0], entry);
  node.place_window(0);
  node.end_change();
}

// The upper half moves into a new node on the right, which nobody knows before it is complete.
EntryTree::Node* EntryTree::split(Node& node) {
  Node* const right = make_node(node.level);
  const size_t kept = entries_max / 2;
  for (size_t i = kept; i < entries_max; i++) {
    Node::set(right->entries[i - kept], Node::get(node.entries[i]));
    Node::set(right->windows[i - kept], Node::get(node.windows[i]));
    if (node.level != 0) Node::set(right->children[i - kept], Node::get(node.children[i]));
  }
  Node::set(right->count, static_cast<uint32_t>(entries_max - kept));
  Node::set(right->skipped, Node::get(node.skipped));
  for (size_t i = 0; i < prefix_words; i++) Node::set(right->prefix[i], Node::get(node.prefix[i]));
  right->skip_more_if_useful();
  Node::set(right->next, Node::get(node.next));
  node.begin_change();
  Node::set(node.next, right);
  Node::set(node.count, static_cast<uint32_t>(kept));
  node.skip_more_if_useful();
  node.end_change();
  return right;
}

void EntryTree::insert(const char* entry) {
  const EntryKey key = EntryKey::of_entry(entry);
  std::array<Node*, levels_max> path;
  Node* node = root_.load();
  while (node->level != 0) {
    path[node->level] = node;
    const size_t before = node->count_before(key);
    if (before == 0) lower_first(*node, entry);
    node = Node::get(node->children[before == 0 ? 0 : before - 1]);
  }
  const char* added = entry;
  Node* child = nullptr;
  for (;;) {
    if (node->count.load() < entries_max) return insert_at(*node, added, child);
    Node* const right = split(*node);
    const char* const first_right = Node::get(right->entries[0]);
    Node& half =
        is_before(EntryKey::of_entry(added), EntryKey::of_entry(first_right)) ? *node : *right;
    insert_at(half, added, child);
    // What is inserted is never before all of the right half, so that its first stays its first.
    added = first_right;
    child = right;
    if (node == root_.load()) {
      const unsigned level = node->level + 1;
      ASSERT(level < levels_max);
      Node* const root = make_node(level);
      insert_at(*root, Node::get(node->entries[0]), node);
      insert_at(*root, added, child);
      root_.store(root, std::memory_order_release);
      return;
    }
    node = path[node->level + 1];
  }
}

const EntryTree::Node* EntryTree::leaf_for(const EntryKey& key) const {
  const Node* node = root_.load(std::memory_order_acquire);
  while (node->level != 0) {
    const uint32_t version = node->stable_version();
    const size_t before = std::min(node->count_before(key), entries_max);
    const Node* const child = Node::get(node->children[before == 0 ? 0 : before - 1]);
    if (node->is_still(version)) node = child;
  }
  return node;
}

// Level by level for some at a time: while one waits for its node, so do the others.
void EntryTree::prefetch(std::span<const ByteView> user_keys) const {
  constexpr size_t group_max = 16;
  while (!user_keys.empty()) {
    const auto group = user_keys.first(std::min(user_keys.size(), group_max));
    user_keys = user_keys.subspan(group.size());
    std::array<const Node*, group_max> nodes;
    const Node* const root = root_.load(std::memory_order_acquire);
    nodes.fill(root);
    for (unsigned level = root->level; level > 0; level--) {
      for (size_t i = 0; i < group.size(); i++) {
        if (nodes[i] == nullptr) continue;  // what led to it was just changing
        const size_t before = nodes[i]->place_of(group[i]).before;
        nodes[i] = Node::get(nodes[i]->children[before == 0 ? 0 : before - 1]);
        if (nodes[i] != nullptr) nodes[i]->prefetch(level == 1);
      }
    }
    // What was written to the same key before is looked at: it may be another key.
    for (size_t i = 0; i < group.size(); i++) {
      if (nodes[i] == nullptr) continue;
      const Node::Place place = nodes[i]->place_of(group[i]);
      if (place.is_doubtful) __builtin_prefetch(Node::get(nodes[i]->entries[place.before]));
    }
  }
}

bool EntryTree::contains(const EntryKey& key) const {
  Position position(*this);
  position.to_lower_bound(key);
  return position.valid() && !is_before(key, EntryKey::of_entry(position.entry()));
}

// --- positions ---

void EntryTree::Position::to_first_of(const Node* leaf) {
  do {
    node_ = leaf;
    version_ = leaf->stable_version();
    index_ = 0;
    entry_ = Node::get(leaf->count) == 0 ? nullptr : Node::get(leaf->entries[0]);
  } while (!leaf->is_still(version_));
}

void EntryTree::Position::to_first() {
  const Node* node = tree_->root_.load(std::memory_order_acquire);
  while (node->level != 0) node = Node::get(node->children[0]);  // the first child stays the first
  to_first_of(node);
}

void EntryTree::Position::to_lower_bound(const EntryKey& key) {
  const Node* node = tree_->leaf_for(key);
  for (;;) {
    const uint32_t version = node->stable_version();
    const size_t index = node->count_before(key);
    const bool is_in = index < Node::get(node->count);
    const char* const entry = is_in ? Node::get(node->entries[index]) : nullptr;
    const Node* const right = Node::get(node->next);
    if (!node->is_still(version)) continue;
    node_ = node;
    version_ = version;
    index_ = index;
    entry_ = entry;
    if (is_in || right == nullptr) return;
    node = right;
  }
}

void EntryTree::Position::to_last_before(const EntryKey& key) {
  const Node* node = tree_->leaf_for(key);
  const char* found = nullptr;
  for (;;) {
    const uint32_t version = node->stable_version();
    const size_t index = node->count_before(key);
    const char* const entry = index == 0 ? nullptr : Node::get(node->entries[index - 1]);
    const bool may_go_on = index == Node::get(node->count);
    const Node* const right = Node::get(node->next);
    if (!node->is_still(version)) continue;
    if (index == 0) break;  // it is the one found before, or there is none
    found = entry;
    node_ = node;
    version_ = version;
    index_ = index - 1;
    if (!may_go_on || right == nullptr) break;
    node = right;  // it may have been split
  }
  entry_ = found;
}

void EntryTree::Position::to_last_not_after(const EntryKey& key) {
  to_lower_bound(key);
  if (valid() && !is_before(key, EntryKey::of_entry(entry_))) return;  // that very key
  to_last_before(key);
}

void EntryTree::Position::to_last() {
  const Node* node = tree_->root_.load(std::memory_order_acquire);
  for (;;) {
    const uint32_t version = node->stable_version();
    const size_t all = std::min<size_t>(Node::get(node->count), entries_max);
    const Node* const right = Node::get(node->next);
    const Node* const child =
        node->level != 0 && all != 0 ? Node::get(node->children[all - 1]) : nullptr;
    const char* const entry = all == 0 ? nullptr : Node::get(node->entries[all - 1]);
    if (!node->is_still(version)) continue;
    if (right != nullptr) {
      node = right;
    } else if (child != nullptr) {
      node = child;
    } else {
      node_ = node;
      version_ = version;
      index_ = all == 0 ? 0 : all - 1;
      entry_ = entry;
      return;
    }
  }
}

void EntryTree::Position::next() {
  for (;;) {
    const size_t index = index_ + 1;
    const bool is_in = index < Node::get(node_->count);
    const char* const entry = is_in ? Node::get(node_->entries[index]) : nullptr;
    const Node* const right = Node::get(node_->next);
    if (!node_->is_still(version_)) {
      to_lower_bound(EntryKey::of_entry(entry_));  // where it is now
      continue;
    }
    index_ = index;
    entry_ = entry;
    // Who passes over all of them, as a flush does, need not wait for each.
    if (index + prefetched_entries < entries_max)
      prefetch_entry(Node::get(node_->entries[index + prefetched_entries]));
    if (index == 1 && right != nullptr) right->prefetch(true);
    // Nothing is ever put before the first entry of a node that has one on its left.
    if (!is_in && right != nullptr) to_first_of(right);
    return;
  }
}

void EntryTree::Position::previous() {
  const EntryKey key = EntryKey::of_entry(entry_);
  if (index_ > 0) {
    const char* const entry = Node::get(node_->entries[index_ - 1]);
    if (node_->is_still(version_)) {
      index_--;
      entry_ = entry;
      return;
    }
  }
  to_last_before(key);
}

}  // namespace trellis
