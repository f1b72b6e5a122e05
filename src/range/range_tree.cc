#include "range/range_tree.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <type_traits>

#include "base/assert.h"
#include "range/node_memory.h"

namespace trellis {

namespace {

uint64_t load_8(const char* bytes) {
  uint64_t out;
  std::memcpy(&out, bytes, sizeof out);
  static_assert(std::endian::native == std::endian::little);
  return __builtin_bswap64(out);
}

// The eight bytes from `at` on; what is missing counts as zero.
[[gnu::always_inline]] inline KeyHead narrow_head_of(ByteView bytes, size_t at) {
  if (at + 8 <= bytes.size()) return load_8(bytes.data() + at);
  if (at >= bytes.size()) return 0;
  const size_t missing = at + 8 - bytes.size();
  if (bytes.size() >= 8) return load_8(bytes.data() + bytes.size() - 8) << missing * 8;
  KeyHead head = 0;
  for (const char byte : bytes.substr(at)) head = head << 8 | static_cast<unsigned char>(byte);
  return head << missing * 8;
}

template <class AnyHead>
[[gnu::always_inline]] inline AnyHead head_of(ByteView bytes, size_t at) {
  if constexpr (std::is_same_v<AnyHead, KeyHead>)
    return narrow_head_of(bytes, at);
  else
    return {narrow_head_of(bytes, at), narrow_head_of(bytes, at + 8)};
}

size_t shared_prefix(ByteView a, ByteView b) {
  const size_t most = std::min(a.size(), b.size());
  size_t shared = 0;
  while (shared < most && a[shared] == b[shared]) shared++;
  return shared;
}

// < 0 or > 0: the address lies before or behind all that begins with `shared`.
[[gnu::always_inline]] inline int compare_shared(ByteView address, ByteView shared) {
  const size_t common = std::min(shared.size(), address.size());
  size_t at = 0;
  for (; at + 8 <= common; at += 8) {
    const uint64_t a = load_8(address.data() + at);
    const uint64_t b = load_8(shared.data() + at);
    if (a != b) return a < b ? -1 : 1;
  }
  // In a node some bytes follow what is shared, up to the next eight.
  if (at < common) {
    const uint64_t unused = (8 - (common - at)) * 8;
    const uint64_t a = narrow_head_of(address, at) >> unused;
    const uint64_t b = load_8(shared.data() + at) >> unused;
    if (a != b) return a < b ? -1 : 1;
  }
  return address.size() < shared.size() ? -1 : 0;
}

// The first of `count` heads that is not below one. In leaves, whose heads are narrow nearly
// always, it is anybody's guess which way it goes, so there are no branches to guess. Above them
// guesses are often right, and let the next level be fetched before this one is decided.
template <class AnyHead>
[[gnu::always_inline]] inline size_t first_not_below(const AnyHead& head, const AnyHead* heads,
                                                     size_t count) {
  size_t low = 0;
  for (size_t size = count; size > 0;) {
    const size_t half = (size + 1) / 2;
    const bool below = heads[low + half - 1] < head;
    if constexpr (std::is_same_v<AnyHead, KeyHead>) {
      low += half & -size_t{below};
      size -= half;
    } else {
      low = below ? low + half : low;
      size = below ? size - half : half - 1;
    }
  }
  return low;
}

// The first of `count` keys that is > address (Side::at) or >= address (Side::before).
template <class AnyHead, class KeyAt>
size_t first_after(ByteView address, Side side, ByteView shared, const AnyHead* heads, size_t count,
                   KeyAt key_at) {
  const int order = compare_shared(address, shared);
  if (order != 0) return order < 0 ? 0 : count;
  const auto head = head_of<AnyHead>(address, shared.size());
  size_t low = first_not_below(head, heads, count);
  // Where heads are equal the rest decides.
  size_t high = low;
  while (high < count && heads[high] == head) high++;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const ByteView key = key_at(middle);
    if (side == Side::at ? key <= address : key < address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace

RangeLeaf* RangeLeaf::make(std::span<const RangeView> ranges) {
  const size_t count = ranges.size();
  ASSERT(count > 0 && count <= ranges_max);
  const auto follows = [&](size_t i) { return i > 0 && ranges[i].start == ranges[i - 1].end; };
  const ByteView first_end = ranges[0].end;
  const size_t shared = shared_prefix(first_end, ranges[count - 1].end);
  bool wide = false;
  for (size_t i = 1; i < count; i++)
    wide |= head_of<KeyHead>(ranges[i - 1].end, shared) == head_of<KeyHead>(ranges[i].end, shared);
  const size_t text_at = sizeof(RangeLeaf) + padded_to_8(shared) +
                         count * (head_bytes(wide) + sizeof(Name) + sizeof(Rest));
  size_t size = text_at;
  for (size_t i = 0; i < count; i++)
    size +=
        ranges[i].end.size() + ranges[i].home.size() + (follows(i) ? 0 : ranges[i].start.size());

  auto* leaf = new (allocate_node(size)) RangeLeaf(count, shared, wide, size);
  char* const base = reinterpret_cast<char*>(leaf);
  std::copy_n(first_end.data(), shared, const_cast<char*>(leaf->shared()));
  char* const heads = const_cast<char*>(leaf->heads());
  auto* names = const_cast<Name*>(leaf->names());
  auto* rests = const_cast<Rest*>(leaf->rests());
  size_t at = text_at;
  const auto append = [&](ByteView text) {
    std::copy_n(text.data(), text.size(), base + at);
    at += text.size();
  };
  for (size_t i = 0; i < count; i++) {
    const RangeView& range = ranges[i];
    const auto head = head_of<WideKeyHead>(range.end, shared);
    std::memcpy(heads + i * head_bytes(wide), &head, head_bytes(wide));
    new (&names[i]) Name{range.id.value, range.generation};
    new (&rests[i]) Rest{
        range.sticky_until_ms, static_cast<uint32_t>(at), static_cast<uint32_t>(range.end.size()),
        static_cast<uint32_t>(range.home.size()), static_cast<uint32_t>(range.start.size())};
    append(range.end);
    append(range.home);
    if (follows(i))
      leaf->follows_ |= uint32_t{1} << i;
    else
      append(range.start);
    if (range.touched) leaf->touch(i);
  }
  ASSERT(at == size);
  return leaf;
}

void RangeLeaf::free() const {
  const size_t bytes = memory_bytes();
  this->~RangeLeaf();
  free_node(const_cast<RangeLeaf*>(this), bytes);
}

ByteView RangeLeaf::start(size_t i) const {
  const Rest& at = rests()[i];
  const size_t start_at = (follows_ >> i & 1) != 0 ? rests()[i - 1].end_offset
                                                   : at.end_offset + at.end_bytes + at.home_bytes;
  return {base() + start_at, at.start_bytes};
}
ByteView RangeLeaf::end(size_t i) const {
  return {base() + rests()[i].end_offset, rests()[i].end_bytes};
}
uint64_t RangeLeaf::generation(size_t i) const { return names()[i].generation; }

RangeView RangeLeaf::view(size_t i) const {
  const ByteView last = end(i);
  return {RangeId{names()[i].id},
          start(i),
          last,
          generation(i),
          {last.data() + last.size(), rests()[i].home_bytes},
          rests()[i].sticky_until_ms,
          (touched_.load(std::memory_order_relaxed) >> i & 1) != 0};
}

size_t RangeLeaf::find(ByteView address, Side side) const {
  const ByteView all_share(shared(), shared_bytes_);
  const auto end_of = [&](size_t i) { return end(i); };
  if (wide_)
    return first_after(address, side, all_share, reinterpret_cast<const WideKeyHead*>(heads()),
                       count_, end_of);
  return first_after(address, side, all_share, reinterpret_cast<const KeyHead*>(heads()), count_,
                     end_of);
}

RangeInner* RangeInner::make(std::span<const Child> children) {
  const size_t count = children.size();
  ASSERT(count > 0 && count <= children_max);
  const size_t shared = shared_prefix(children[0].end, children[count - 1].end);
  const size_t ends_at = sizeof(RangeInner) + padded_to_8(shared) +
                         count * (sizeof(WideKeyHead) + sizeof(RangeNode*)) +
                         (count + 1) * sizeof(uint32_t);
  size_t size = ends_at;
  for (const Child& child : children) size += child.end.size();

  auto* node =
      new (allocate_node(size)) RangeInner(children[0].node->height() + 1, count, shared, size);
  char* const base = reinterpret_cast<char*>(node);
  std::copy_n(children[0].end.data(), shared, const_cast<char*>(node->shared()));
  auto* heads = const_cast<WideKeyHead*>(node->heads());
  auto** nodes = const_cast<RangeNode**>(node->children());
  auto* offsets = const_cast<uint32_t*>(node->offsets());
  offsets[0] = static_cast<uint32_t>(ends_at);
  for (size_t i = 0; i < count; i++) {
    const ByteView end = children[i].end;
    heads[i] = head_of<WideKeyHead>(end, shared);
    nodes[i] = children[i].node;
    std::copy_n(end.data(), end.size(), base + offsets[i]);
    offsets[i + 1] = offsets[i] + static_cast<uint32_t>(end.size());
  }
  return node;
}

void RangeInner::free(RangeInner* node) {
  const size_t bytes = node->memory_bytes();
  node->~RangeInner();
  free_node(node, bytes);
}

size_t RangeInner::find(ByteView address, Side side) const {
  return first_after(address, side, {shared(), shared_bytes_}, heads(), count_,
                     [&](size_t i) { return end(i); });
}

RangeTree::Found RangeTree::find(const RangeNode* root, ByteView address, Side side) {
  const RangeNode* node = root;
  if (node == nullptr) return {};
  while (!node->is_leaf()) {
    const auto* inner = static_cast<const RangeInner*>(node);
    const size_t at = inner->find(address, side);
    if (at == inner->count()) return {};
    node = inner->child(at);
    if (inner->height() == 1)
      static_cast<const RangeLeaf*>(node)->prefetch();
    else if (inner->height() == 2)  // those above are few, and near
      static_cast<const RangeInner*>(node)->prefetch();
  }
  const auto* leaf = static_cast<const RangeLeaf*>(node);
  const size_t at = leaf->find(address, side);
  if (at == leaf->count()) return {};
  return {leaf, at};
}

RangeInner::Child RangeTree::made(RangeLeaf* leaf) {
  bytes_ += leaf->memory_bytes();
  leaf->set_in_tree(true);
  return {leaf->end(leaf->count() - 1), leaf};
}

RangeInner::Child RangeTree::made(RangeInner* inner) {
  bytes_ += inner->memory_bytes();
  return {inner->end(inner->count() - 1), inner};
}

void RangeTree::replace(RangeNode* node) {
  bytes_ -= node->memory_bytes();
  replaced_.push_back(node);
}

namespace {

// Where too many are cut in two; what comes in order leaves full nodes behind.
size_t cut_at(size_t count, size_t most, bool at_end) {
  if (count <= most) return count;
  return at_end ? count - 1 : count / 2;
}

}  // namespace

RangeTree::Children RangeTree::pack(std::span<const RangeView> ranges, bool at_end) {
  Children out;
  if (ranges.empty()) return out;
  const size_t left = cut_at(ranges.size(), RangeLeaf::ranges_max, at_end);
  out.push_back(made(RangeLeaf::make(ranges.first(left))));
  if (left < ranges.size()) out.push_back(made(RangeLeaf::make(ranges.subspan(left))));
  return out;
}

RangeTree::Children RangeTree::pack(std::span<const RangeInner::Child> children, bool at_end) {
  Children out;
  if (children.empty()) return out;
  const size_t left = cut_at(children.size(), RangeInner::children_max, at_end);
  out.push_back(made(RangeInner::make(children.first(left))));
  if (left < children.size()) out.push_back(made(RangeInner::make(children.subspan(left))));
  return out;
}

namespace {

std::vector<RangeView> ranges_of(const RangeLeaf& leaf) {
  std::vector<RangeView> out;
  out.reserve(leaf.count() + 1);
  for (size_t i = 0; i < leaf.count(); i++) out.push_back(leaf.view(i));
  return out;
}

std::vector<RangeInner::Child> children_of(const RangeInner& inner) {
  std::vector<RangeInner::Child> out;
  out.reserve(inner.count() + 1);
  for (size_t i = 0; i < inner.count(); i++) out.push_back({inner.end(i), inner.child(i)});
  return out;
}

ptrdiff_t offset_of_index(size_t n) { return static_cast<ptrdiff_t>(n); }

}  // namespace

RangeTree::Children RangeTree::add_below(RangeNode* node, const RangeView& range) {
  replace(node);
  if (node->is_leaf()) {
    const auto& leaf = static_cast<const RangeLeaf&>(*node);
    const size_t at = leaf.find(range.end, Side::before);
    std::vector<RangeView> ranges = ranges_of(leaf);
    ranges.insert(ranges.begin() + offset_of_index(at), range);
    return pack(ranges, at == leaf.count());
  }
  const auto& inner = static_cast<const RangeInner&>(*node);
  const size_t at = std::min(inner.find(range.end, Side::before), inner.count() - 1);
  Children children = children_of(inner);
  const Children now = add_below(inner.child(at), range);
  children[at] = now[0];
  if (now.size() > 1) children.insert(children.begin() + offset_of_index(at + 1), now[1]);
  return pack(children, at + 1 == inner.count());
}

void RangeTree::add(const RangeView& range) {
  entries_++;
  const Children children =
      root_ == nullptr ? pack(std::span(&range, 1), true) : add_below(root_, range);
  root_ = children.size() == 1 ? children[0].node : made(RangeInner::make(children)).node;
}

// Joins the child at `at`, if it became small, with one beside it, if both leave room to grow.
void RangeTree::join_small(Children& children, size_t at) {
  const bool leaves = children[at].node->is_leaf();
  const size_t most = leaves ? RangeLeaf::ranges_max : RangeInner::children_max;
  if (children[at].node->count() >= most / 4 || children.size() == 1) return;
  const size_t left = at + 1 < children.size() ? at : at - 1;
  RangeNode* const nodes[] = {children[left].node, children[left + 1].node};
  if (nodes[0]->count() + nodes[1]->count() > most * 3 / 4) return;
  for (RangeNode* node : nodes) replace(node);
  if (leaves) {
    std::vector<RangeView> all = ranges_of(static_cast<const RangeLeaf&>(*nodes[0]));
    const std::vector<RangeView> more = ranges_of(static_cast<const RangeLeaf&>(*nodes[1]));
    all.insert(all.end(), more.begin(), more.end());
    children[left] = pack(all, false)[0];
  } else {
    Children all = children_of(static_cast<const RangeInner&>(*nodes[0]));
    const Children more = children_of(static_cast<const RangeInner&>(*nodes[1]));
    all.insert(all.end(), more.begin(), more.end());
    children[left] = pack(all, false)[0];
  }
  children.erase(children.begin() + offset_of_index(left + 1));
}

RangeTree::Children RangeTree::remove_below(RangeNode* node, ByteView end) {
  replace(node);
  if (node->is_leaf()) {
    const auto& leaf = static_cast<const RangeLeaf&>(*node);
    const size_t at = leaf.find(end, Side::before);
    ASSERT(at < leaf.count() && leaf.end(at) == end);
    std::vector<RangeView> ranges = ranges_of(leaf);
    ranges.erase(ranges.begin() + offset_of_index(at));
    return pack(ranges, false);
  }
  const auto& inner = static_cast<const RangeInner&>(*node);
  const size_t at = inner.find(end, Side::before);
  ASSERT(at < inner.count());
  Children children = children_of(inner);
  const Children now = remove_below(inner.child(at), end);
  if (now.empty()) {
    children.erase(children.begin() + offset_of_index(at));
  } else {
    children[at] = now[0];
    join_small(children, at);
  }
  return pack(children, false);
}

void RangeTree::remove(ByteView end) {
  entries_--;
  const Children children = remove_below(root_, end);
  root_ = children.empty() ? nullptr : children[0].node;
  while (root_ != nullptr && !root_->is_leaf() && root_->count() == 1) {
    replace(root_);
    root_ = static_cast<const RangeInner*>(root_)->child(0);
  }
}

}  // namespace trellis
