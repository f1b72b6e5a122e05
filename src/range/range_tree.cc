#include "range/range_tree.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.h"

namespace trellis {

namespace {

// Below this a node is joined with a neighbour, if both together leave room to grow again.
constexpr size_t small_slots = RangeNode::slots_max / 4;
constexpr size_t joined_slots_max = RangeNode::slots_max * 3 / 4;

// The next eight bytes, as a number that orders like them; what is missing counts as zero.
uint64_t head_of(ByteView bytes) {
  if (bytes.size() >= 8) return load_be(bytes.data(), 8);
  uint64_t head = 0;
  for (size_t i = 0; i < 8; i++)
    head = head << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0);
  return head;
}

size_t shared_prefix(ByteView a, ByteView b) {
  const size_t most = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(most), b.begin()).first -
      a.begin());
}

}  // namespace

CachedRange* CachedRange::make(const RangeDescriptor& range) {
  const size_t size =
      sizeof(CachedRange) + range.start.size() + range.end.size() + range.home.size();
  auto* made = new (::operator new(size)) CachedRange();
  made->id_ = range.id.value;
  made->generation_ = range.generation;
  made->sticky_until_ms_ = range.sticky_until_ms;
  made->start_bytes_ = static_cast<uint32_t>(range.start.size());
  made->end_bytes_ = static_cast<uint32_t>(range.end.size());
  made->home_bytes_ = static_cast<uint32_t>(range.home.size());
  char* at = reinterpret_cast<char*>(made + 1);
  for (const Bytes* part : {&range.start, &range.end, &range.home})
    at = std::copy(part->begin(), part->end(), at);
  return made;
}

void CachedRange::free() const {
  this->~CachedRange();
  ::operator delete(const_cast<CachedRange*>(this));
}

bool CachedRange::is(const RangeDescriptor& range) const {
  return id() == range.id && generation_ == range.generation && start() == range.start &&
         end() == range.end && home() == range.home;
}

RangeDescriptor CachedRange::descriptor() const {
  return {id(), Bytes(start()), Bytes(end()), generation_, Bytes(home()), sticky_until_ms_};
}

RangeNode* RangeNode::make(unsigned height, const Item* items, size_t count) {
  ASSERT(count > 0 && count <= slots_max);
  const ByteView first = items[0].last->end();
  const size_t shared = shared_prefix(first, items[count - 1].last->end());
  auto* node = new (::operator new(memory_bytes(height, count, shared))) RangeNode();
  node->height_ = static_cast<uint16_t>(height);
  node->count_ = static_cast<uint16_t>(count);
  node->shared_bytes_ = static_cast<uint32_t>(shared);
  for (size_t i = 0; i < count; i++) {
    node->slots()[i] = {head_of(items[i].last->end().substr(shared)), items[i].last};
    if (height > 0) node->children()[i] = items[i].child;
  }
  std::copy_n(first.data(), shared, node->shared());
  return node;
}

void RangeNode::free(RangeNode* node) {
  node->~RangeNode();
  ::operator delete(node);
}

size_t RangeNode::find(ByteView address, Side side) const {
  const size_t common = std::min<size_t>(shared_bytes_, address.size());
  const int order = common == 0 ? 0 : std::memcmp(address.data(), shared(), common);
  if (order < 0 || (order == 0 && address.size() < shared_bytes_)) return 0;
  if (order > 0) return count_;
  const uint64_t head = head_of(address.substr(shared_bytes_));
  // The first slot whose head is not below; without branches, for they would be guesses.
  const Slot* const all = slots();
  size_t low = 0;
  for (size_t size = count_; size > 0;) {
    const size_t half = size / 2;
    const bool below = all[low + half].head < head;
    low = below ? low + half + 1 : low;
    size = below ? size - half - 1 : half;
  }
  // Where heads are equal the rest decides.
  size_t high = low;
  while (high < count_ && all[high].head == head) high++;
  const auto passed = [&](const Slot& slot) {
    return side == Side::at ? slot.last->end() <= address : slot.last->end() < address;
  };
  return static_cast<size_t>(std::partition_point(all + low, all + high, passed) - all);
}

const CachedRange* RangeTree::find(const RangeNode* root, ByteView address, Side side) {
  const RangeNode* node = root;
  while (node != nullptr) {
    const size_t at = node->find(address, side);
    if (at == node->count()) return nullptr;
    if (node->height() == 0) {
      return node->last_of(at);
    }
    node = node->child(at);
    node->prefetch();
  }
  return nullptr;
}

RangeNode* RangeTree::make(unsigned height, const RangeNode::Item* items, size_t count) {
  RangeNode* node = RangeNode::make(height, items, count);
  bytes_ += node->memory_bytes();
  return node;
}

void RangeTree::replace(RangeNode* node) {
  bytes_ -= node->memory_bytes();
  replaced_.push_back(node);
}

RangeTree::Items RangeTree::pack(unsigned height, const Items& items, size_t at) {
  const auto node = [&](size_t from, size_t to) {
    return RangeNode::Item{items[to - 1].last, make(height, items.data() + from, to - from)};
  };
  if (items.empty()) return {};
  if (items.size() <= RangeNode::slots_max) return {node(0, items.size())};
  // What comes in order leaves full nodes behind.
  const size_t middle = at + 1 == items.size() ? items.size() - 1 : items.size() / 2;
  return {node(0, middle), node(middle, items.size())};
}

RangeTree::Items RangeTree::add_below(RangeNode* node, const CachedRange* range) {
  Items items;
  for (size_t i = 0; i < node->count(); i++) items.push_back(node->item(i));
  size_t at = node->find(range->end(), Side::before);
  if (node->height() == 0) {
    items.insert(items.begin() + static_cast<ptrdiff_t>(at), {range, nullptr});
  } else {
    at = std::min(at, node->count() - 1);
    const Items children = add_below(node->child(at), range);
    items[at] = children[0];
    if (children.size() > 1)
      items.insert(items.begin() + static_cast<ptrdiff_t>(++at), children[1]);
  }
  replace(node);
  return pack(node->height(), items, at);
}

void RangeTree::add(const CachedRange* range) {
  entries_++;
  bytes_ += range->memory_bytes();
  const RangeNode::Item item{range, nullptr};
  if (root_ == nullptr) {
    root_ = make(0, &item, 1);
    return;
  }
  const unsigned height = root_->height();
  const Items items = add_below(root_, range);
  root_ = items.size() == 1 ? items[0].child : make(height + 1, items.data(), items.size());
}

// Joins the child at `at`, if it became small, with one beside it.
void RangeTree::join_small(Items& items, size_t at) {
  if (items[at].child->count() >= small_slots || items.size() == 1) return;
  const size_t left = at + 1 < items.size() ? at : at - 1;
  RangeNode* const nodes[] = {items[left].child, items[left + 1].child};
  if (nodes[0]->count() + nodes[1]->count() > joined_slots_max) return;
  Items joined;
  for (RangeNode* node : nodes) {
    for (size_t i = 0; i < node->count(); i++) joined.push_back(node->item(i));
    replace(node);
  }
  items[left] = {items[left + 1].last, make(nodes[0]->height(), joined.data(), joined.size())};
  items.erase(items.begin() + static_cast<ptrdiff_t>(left) + 1);
}

RangeTree::Items RangeTree::remove_below(RangeNode* node, const CachedRange* range) {
  Items items;
  for (size_t i = 0; i < node->count(); i++) items.push_back(node->item(i));
  const size_t at = node->find(range->end(), Side::before);
  ASSERT(at < node->count());
  const auto place = items.begin() + static_cast<ptrdiff_t>(at);
  if (node->height() == 0) {
    ASSERT(place->last == range);
    items.erase(place);
  } else {
    const Items children = remove_below(node->child(at), range);
    if (children.empty()) {
      items.erase(place);
    } else {
      *place = children[0];
      join_small(items, at);
    }
  }
  replace(node);
  return pack(node->height(), items, 0);
}

void RangeTree::remove(const CachedRange* range) {
  entries_--;
  bytes_ -= range->memory_bytes();
  removed_.push_back(range);
  const Items items = remove_below(root_, range);
  root_ = items.empty() ? nullptr : items[0].child;
  while (root_ != nullptr && root_->height() > 0 && root_->count() == 1) {
    RangeNode* const only = root_->child(0);
    replace(root_);
    root_ = only;
  }
}

}  // namespace trellis
