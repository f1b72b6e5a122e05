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
constexpr size_t piece_bytes_max = 16 * 1024;
constexpr unsigned reclaimed_at_once = 4;  // each is less than what an insert takes
constexpr size_t line_bytes = 64;          // of the processor's caches
constexpr unsigned spins_max = 128;        // before others may have the core, the writer perhaps

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

// Who finds an entry that was taken out is among those who are counted (read_epochs.h).
std::atomic<const char*>& older_than(const char* entry) {
  return reinterpret_cast<std::atomic<const char*>*>(const_cast<char*>(entry))[-1];
}

// The first of a chain that is not before that trailer, or null. No entry has a trailer of 0: with
// that RocksDB looks for the next user key, and a chain may be long.
const char* first_not_before(const char* entry, uint64_t trailer) {
  if (trailer == 0) return nullptr;
  while (entry != nullptr && EntryKey::of_entry(entry).trailer > trailer)
    entry = older_than(entry).load();
  return entry;
}

// The last of a chain that is before that trailer, or null.
const char* last_before(const char* entry, uint64_t trailer) {
  const char* last = nullptr;
  for (; entry != nullptr && EntryKey::of_entry(entry).trailer > trailer;
       entry = older_than(entry).load())
    last = entry;
  return last;
}

// Whether nothing older of its user key is of use to who sees it.
bool hides_older(uint64_t trailer) {
  constexpr uint64_t deletion = 0;
  constexpr uint64_t value = 1;
  const uint64_t kind = trailer & 0xff;
  return kind == deletion || kind == value;
}

size_t varint_of(const char*& at) {
  size_t number = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    number |= size_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return number;
  }
}

size_t bytes_of_entry(const char* entry) {
  const char* at = entry;
  at += varint_of(at);
  const size_t value_bytes = varint_of(at);
  return static_cast<size_t>(at - entry) + value_bytes;
}

// Of memory for an entry of so many bytes, with the pointer before it, in sixteens.
size_t class_of(size_t bytes) { return (sizeof(char*) + bytes + 15) / 16; }

// As much of it as small records have.
void prefetch_entry(const char* entry) {
  for (size_t i = 0; i < 3; i++) __builtin_prefetch(entry + i * line_bytes);
}

// What is read of one that is hidden.
void prefetch_head(const char* entry) {
  __builtin_prefetch(entry - sizeof(char*), 1);
  __builtin_prefetch(entry + line_bytes - sizeof(char*), 1);
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
  const auto bytes = static_cast<unsigned char>(*entry);
  if (bytes < 0x80) return of_internal_key({entry + 1, bytes});  // as most are
  const size_t many = varint_of(entry);
  return of_internal_key({entry, many});
}

// What a reader sees of a node while it is changed may be of no instant, but is always memory that
// it may read. Each store releases and each load acquires: who sees anything new sees, when it
// looks at the version again, that it changed. What lies before `count`, as it was read, was there
// while it was read, and so are its entries.
struct EntryTree::Node {
  static constexpr uint32_t mixed = ~uint32_t{0};
  std::atomic<uint32_t> version{0};
  std::atomic<uint32_t> count{0};
  std::atomic<uint32_t> skipped{0};         // what all user keys of the node begin with
  std::atomic<uint32_t> user_bytes{mixed};  // of all user keys, if they are of one size
  const unsigned level;                     // 0: a leaf
  uint64_t split_change = 0;                // the last one that split it; of the writer
  std::atomic<Node*> next{nullptr};
  std::array<std::atomic<uint64_t>, prefix_words> prefix;  // as much of it as there is room for
  std::array<std::atomic<uint64_t>, entries_max> windows;
  std::array<std::atomic<const char*>, entries_max> entries;
  std::atomic<Node*> children[];  // entries_max of them, of inner nodes only

  explicit Node(unsigned node_level) : level(node_level) {}

  template <class T>
  static T get(const std::atomic<T>& from) {
    return from.load();  // costs no more than to acquire
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

  // What a search reads.
  void prefetch() const {
    for (size_t i = 0; i < offsetof(Node, entries); i += line_bytes)
      __builtin_prefetch(reinterpret_cast<const char*>(this) + i);
  }
  // What moves if an entry is put in there.
  void prefetch_entries(size_t from, size_t end) const {
    for (size_t i = from; i <= std::min(end, entries_max - 1); i += line_bytes / sizeof(char*))
      __builtin_prefetch(&entries[i], 1);
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

  struct Found {
    size_t before;  // how many are before the key
    bool is_equal;  // the one behind these has the key itself
  };
  // Right if the node did not change meanwhile.
  Found find(ByteView user) const {
    const auto [all, before_window, is_doubtful, window] = place_of(user);
    if (!is_doubtful) return {before_window, false};
    // Where the windows have all that is left of keys of one size, nothing is left to be compared.
    if (user.size() == get(user_bytes) && user.size() <= get(skipped) + sizeof window)
      return {before_window, true};
    const int order = key(before_window).user.compare(user);
    if (order >= 0) return {before_window, order == 0};
    size_t low = before_window + 1;
    size_t high = all;
    bool is_equal = false;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      const uint64_t there = get(windows[middle]);
      const int next = there != window ? (there < window ? -1 : 1) : key(middle).user.compare(user);
      if (next < 0) {
        low = middle + 1;
      } else {
        high = middle;
        is_equal = next == 0;
      }
    }
    return {low, is_equal};
  }
  // REQUIRES: an inner node. The child where the key is, if it is anywhere.
  Node* child_for(const Found& found) const {
    const size_t behind = std::min(found.before + (found.is_equal ? 1 : 0), entries_max);
    return get(children[behind == 0 ? 0 : behind - 1]);
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
  void note_size(size_t bytes) {
    const bool is_same = count.load() == 1 || user_bytes.load() == bytes;
    set(user_bytes, is_same ? static_cast<uint32_t>(bytes) : mixed);
  }
  void find_size() {
    const size_t bytes = key(0).user.size();
    bool is_same = true;
    for (size_t i = 1; i < count.load(); i++) is_same &= key(i).user.size() == bytes;
    set(user_bytes, is_same ? static_cast<uint32_t>(bytes) : mixed);
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

namespace {

uint64_t next_tree_number() {
  static std::atomic<uint64_t> trees{0};
  return ++trees;
}

}  // namespace

EntryTree::EntryTree(Allocate allocate, ReadEpochs* epochs, size_t filter_bytes)
    : allocate_(std::move(allocate)),
      epochs_(epochs),
      number_(next_tree_number()),
      filter_(allocate_, filter_bytes),
      root_(make_node(0)) {}

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

// --- memory of entries ---

char* EntryTree::allocate_entry(size_t bytes) {
  reclaim();
  const size_t size_class = class_of(bytes);
  const size_t size = 16 * size_class;
  char* memory = nullptr;
  if (size_class < free_classes && !free_[size_class].empty()) {
    memory = free_[size_class].back();
    free_[size_class].pop_back();
  } else if (size > piece_bytes_max / 4) {
    memory = allocate_(size + 7);
    memory += -reinterpret_cast<uintptr_t>(memory) % 8;
  } else {
    if (piece_bytes_ < size) {
      piece_ = allocate_(piece_bytes_max);
      const size_t skipped = -reinterpret_cast<uintptr_t>(piece_) % 8;
      piece_ += skipped;
      piece_bytes_ = piece_bytes_max - skipped;
    }
    memory = piece_;
    piece_ += size;
    piece_bytes_ -= size;
  }
  new (memory) std::atomic<const char*>(nullptr);
  return memory + sizeof(std::atomic<const char*>);
}

// Who needs what is hidden came before the write that hides it was committed, when its writer was
// there: so two have to leave, one after the other.
void EntryTree::reclaim() {
  constexpr size_t ahead = 8;  // of these the memory is fetched
  if (hiding_.empty() && unlinked_.empty()) return;
  epochs_->advance();
  for (unsigned i = 0; i < reclaimed_at_once && !hiding_.empty(); i++) {
    const Hiding& first = hiding_.front();
    if (!epochs_->is_over_twice(first.since)) break;
    if (hiding_.size() > ahead) {
      __builtin_prefetch(hiding_[ahead].entry - sizeof(char*), 1);
      prefetch_head(hiding_[ahead].older);
    }
    unlink_older(first.entry);
    hiding_.pop_front();
  }
  for (unsigned i = 0; i < reclaimed_at_once && !unlinked_.empty(); i++) {
    const Unlinked& first = unlinked_.front();
    if (!epochs_->is_over(first.since)) break;
    if (unlinked_.size() > ahead) prefetch_head(unlinked_[ahead].entry);
    const size_t size_class = class_of(bytes_of_entry(first.entry));
    if (size_class < free_classes)
      free_[size_class].push_back(const_cast<char*>(first.entry) - sizeof(char*));
    unlinked_.pop_front();
  }
}

// Those that one of them hid were unlinked before.
void EntryTree::unlink_older(const char* entry) {
  const char* older = older_than(entry).load();
  older_than(entry).store(nullptr, std::memory_order_release);
  const uint64_t now = epochs_->now();
  for (; older != nullptr; older = older_than(older).load()) unlinked_.push_back({older, now});
}

const char* EntryTree::copy_key(const char* entry) {
  const ByteView user = EntryKey::of_entry(entry).user;
  const auto bytes = static_cast<size_t>(user.data() + user.size() + trailer_bytes - entry);
  char* const copy = allocate_(bytes);
  std::memcpy(copy, entry, bytes);
  return copy;
}

// --- inserts ---

void EntryTree::insert_at(Node& node, size_t at, const char* entry, Node* child) {
  const size_t all = node.count.load();
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
  node.note_size(EntryKey::of_entry(entry).user.size());
  node.end_change();
}

// In an inner node no key may be behind the keys of its child: of the first child that would be one
// that came later.
void EntryTree::lower_first(Node& node, const char* entry) {
  const char* const key = copy_key(entry);
  node.begin_change();
  Node::set(node.entries[0], key);
  node.place_window(0);
  node.note_size(EntryKey::of_entry(key).user.size());
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
  right->find_size();
  Node::set(right->next, Node::get(node.next));
  node.begin_change();
  Node::set(node.next, right);
  Node::set(node.count, static_cast<uint32_t>(kept));
  node.skip_more_if_useful();
  node.find_size();
  node.end_change();
  return right;
}

void EntryTree::insert(const char* entry, Places* places) {
  const EntryKey key = EntryKey::of_entry(entry);
  ASSERT(key.trailer != 0);
  if (places != nullptr)
    if (Node* const leaf = looked_up(key.user, *places); leaf != nullptr)
      if (insert_into(*leaf, key, entry)) return;
  std::array<Node*, levels_max> path;
  Node* node = root_.load();
  const unsigned levels = node->level + 1;
  while (node->level != 0) {
    path[node->level] = node;
    const Node::Found found = node->find(key.user);
    if (found.before == 0 && !found.is_equal) lower_first(*node, entry);
    node = node->child_for(found);
  }
  path[0] = node;
  if (!insert_into(*node, key, entry))
    insert_new({path.data(), levels}, node->find(key.user).before, entry);
}

// False if that would change the nodes above it too.
bool EntryTree::insert_into(Node& leaf, const EntryKey& key, const char* entry) {
  const auto [before, is_equal] = leaf.find(key.user);
  if (!is_equal) {
    filter_.add(key.user);
    if (before == 0 || leaf.count.load() == entries_max) return false;
    insert_at(leaf, before, entry, nullptr);
    return true;
  }
  const char* const latest = Node::get(leaf.entries[before]);
  older_than(entry).store(latest, std::memory_order_relaxed);
  // A place is as good with the one as with the other. Released, no more: to wait until the entry
  // has left the core took 50 ns.
  Node::set(leaf.entries[before], entry);
  if (epochs_ != nullptr && hides_older(key.trailer))
    hiding_.push_back({entry, latest, epochs_->now()});
  return true;
}

// Where a node is full its upper half, and the key that this begins with, go into the node above.
void EntryTree::insert_new(std::span<Node* const> path, size_t at, const char* entry) {
  if (path[0]->count.load() < entries_max) return insert_at(*path[0], at, entry, nullptr);
  const uint64_t change = changes_.load() + 1;
  changes_.store(change);
  const char* added = entry;
  Node* child = nullptr;
  for (unsigned level = 0;; level++) {
    Node* const node = path[level];
    if (level != 0) at = node->find(EntryKey::of_entry(added).user).before;
    if (node->count.load() < entries_max) {
      insert_at(*node, at, added, child);
      break;
    }
    (level == 0 ? node->split_change : inner_change_) = change;
    Node* const right = split(*node);
    const size_t kept = node->count.load();
    // Never before all of the right half, so that its first stays its first.
    at <= kept ? insert_at(*node, at, added, child) : insert_at(*right, at - kept, added, child);
    const char* const first_right = Node::get(right->entries[0]);
    added = level == 0 ? copy_key(first_right) : first_right;
    child = right;
    if (level + 1 < path.size()) continue;
    ASSERT(level + 1 < levels_max);
    Node* const root = make_node(level + 1);
    const char* const first = Node::get(node->entries[0]);
    insert_at(*root, 0, level == 0 ? copy_key(first) : first, node);
    insert_at(*root, 1, added, child);
    root_.store(root, std::memory_order_release);
    inner_change_ = change;
    break;
  }
  changes_.store(change + 1);
}

const EntryTree::Node* EntryTree::leaf_for(ByteView user, Wanted wanted) const {
  const Node* node = root_.load(std::memory_order_acquire);
  while (node->level != 0) {
    const uint32_t version = node->stable_version();
    Node::Found found = node->find(user);
    if (wanted == Wanted::key_before) found.is_equal = false;
    const Node* const child = node->child_for(found);
    if (node->is_still(version)) node = child;
  }
  return node;
}

// Level by level for some at a time: while one waits for its node, so do the others.
void EntryTree::look_up(std::span<const ByteView> user_keys, Places& places) const {
  constexpr size_t group_max = 16;
  while (!user_keys.empty()) {
    const auto group = user_keys.first(std::min(user_keys.size(), group_max));
    user_keys = user_keys.subspan(group.size());
    const uint64_t change = changes_.load();
    if (change % 2 != 0) continue;
    std::array<Node*, group_max> nodes;
    Node* const root = root_.load(std::memory_order_acquire);
    nodes.fill(root);
    for (unsigned level = root->level; level > 0; level--) {
      for (size_t i = 0; i < group.size(); i++) {
        const Node* const node = nodes[i];
        if (node == nullptr) continue;
        const uint32_t version = Node::get(node->version);
        nodes[i] = node->child_for(node->find(group[i]));
        if (version % 2 != 0 || !node->is_still(version)) nodes[i] = nullptr;
        if (nodes[i] != nullptr) nodes[i]->prefetch();
      }
    }
    for (size_t i = 0; i < group.size(); i++) {
      if (nodes[i] == nullptr) continue;
      const Node::Place place = nodes[i]->place_of(group[i]);
      nodes[i]->prefetch_entries(place.before, place.is_doubtful ? place.before : place.all);
      if (!place.is_doubtful) filter_.prefetch(group[i]);
      places.places_.push_back({group[i], number_, nodes[i], change});
    }
  }
}

// Null if it is not known, or may be elsewhere now.
EntryTree::Node* EntryTree::looked_up(ByteView user, Places& places) const {
  if (places.next_ == places.places_.size()) return nullptr;
  const Places::Place& next = places.places_[places.next_];
  if (next.tree != number_ || next.user != user) return nullptr;
  places.next_++;
  if (next.leaf->split_change > next.change || inner_change_ > next.change) return nullptr;
  return next.leaf;
}

bool EntryTree::contains(const EntryKey& key) const {
  Position position(*this);
  position.to_lower_bound(key);
  if (!position.valid()) return false;
  const EntryKey found = EntryKey::of_entry(position.entry());
  return found.user == key.user && found.trailer == key.trailer;
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
  const Node* node = tree_->leaf_for(key.user, Wanted::key);
  for (;;) {
    const uint32_t version = node->stable_version();
    const Node::Found found = node->find(key.user);
    const size_t all = std::min<size_t>(Node::get(node->count), entries_max);
    size_t index = found.before;
    const char* entry = nullptr;
    if (found.is_equal && index < all) {
      entry = first_not_before(Node::get(node->entries[index]), key.trailer);
      if (entry == nullptr) index++;
    }
    if (entry == nullptr && index < all) entry = Node::get(node->entries[index]);
    const Node* const right = Node::get(node->next);
    if (!node->is_still(version)) continue;
    node_ = node;
    version_ = version;
    index_ = index;
    entry_ = entry;
    if (entry != nullptr || right == nullptr) return;
    node = right;
  }
}

void EntryTree::Position::to_last_before(const EntryKey& key) {
  const Node* node = tree_->leaf_for(key.user, Wanted::key_before);
  const char* found = nullptr;
  for (;;) {
    const uint32_t version = node->stable_version();
    const auto [before, is_equal] = node->find(key.user);
    const size_t all = std::min<size_t>(Node::get(node->count), entries_max);
    size_t index = before;
    const char* entry = nullptr;
    if (is_equal && index < all) entry = last_before(Node::get(node->entries[index]), key.trailer);
    if (entry == nullptr && index != 0) entry = last_before(Node::get(node->entries[--index]), 0);
    const bool may_go_on = before == all;
    const Node* const right = Node::get(node->next);
    if (!node->is_still(version)) continue;
    if (entry == nullptr) break;  // it is the one found before, or there is none
    found = entry;
    node_ = node;
    version_ = version;
    index_ = index;
    if (!may_go_on || right == nullptr) break;
    node = right;  // it may have been split, or begin with that key
  }
  entry_ = found;
}

void EntryTree::Position::to_last_not_after(const EntryKey& key) {
  to_lower_bound(key);
  if (valid()) {
    const EntryKey found = EntryKey::of_entry(entry_);
    if (found.user == key.user && found.trailer == key.trailer) return;  // that very key
  }
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
    const char* const latest = all == 0 ? nullptr : Node::get(node->entries[all - 1]);
    const char* const entry = node->level == 0 ? last_before(latest, 0) : nullptr;
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
  if (const char* const older = older_than(entry_).load(); older != nullptr) {
    entry_ = older;
    return;
  }
  const size_t index = index_ + 1;
  const bool is_in = index < Node::get(node_->count);
  const char* const entry = is_in ? Node::get(node_->entries[index]) : nullptr;
  const Node* const right = Node::get(node_->next);
  if (!node_->is_still(version_)) {  // it may be elsewhere
    const EntryKey key = EntryKey::of_entry(entry_);
    return to_lower_bound({key.user, key.trailer - 1});
  }
  index_ = index;
  entry_ = entry;
  // Who passes over all of them, as a flush does, need not wait for each.
  if (index + prefetched_entries < entries_max)
    prefetch_entry(Node::get(node_->entries[index + prefetched_entries]));
  if (index == 1 && right != nullptr) right->prefetch();
  // Nothing is ever put before the first key of a node that has one on its left.
  if (!is_in && right != nullptr) to_first_of(right);
}

void EntryTree::Position::previous() {
  if (index_ > 0 && Node::get(node_->entries[index_]) == entry_) {
    const char* const entry = last_before(Node::get(node_->entries[index_ - 1]), 0);
    if (node_->is_still(version_)) {
      index_--;
      entry_ = entry;
      return;
    }
  }
  to_last_before(EntryKey::of_entry(entry_));
}

}  // namespace trellis
