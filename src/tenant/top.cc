#include "tenant/top.h"

#include <algorithm>
#include <unordered_map>

namespace trellis {
namespace {

constexpr size_t page_keyspaces = 1'000;

double rank_of(const TopEntry& entry, TopBy by) {
  switch (by) {
    case TopBy::bytes: return static_cast<double>(entry.figures.bytes);
    case TopBy::keys: return static_cast<double>(entry.figures.keys);
    case TopBy::operations: return entry.load.reads_per_second + entry.load.writes_per_second;
  }
  return 0;
}

// The `limit` best of all that are added. The worst of them is at the front, to go first.
class Best {
 public:
  Best(TopBy by, size_t limit) : by_(by), limit_(limit) {}

  bool takes(const TopEntry& entry) const {
    return entries_.size() < limit_ || (limit_ > 0 && is_before(entry, entries_.front()));
  }
  void add(TopEntry entry) {
    const auto before = [this](const TopEntry& a, const TopEntry& b) { return is_before(a, b); };
    if (entries_.size() == limit_) {
      std::ranges::pop_heap(entries_, before);
      entries_.pop_back();
    }
    entries_.push_back(std::move(entry));
    std::ranges::push_heap(entries_, before);
  }
  std::vector<TopEntry> take() && {
    std::ranges::sort(entries_,
                      [this](const TopEntry& a, const TopEntry& b) { return is_before(a, b); });
    return std::move(entries_);
  }

 private:
  // Equal ones in the order of ids, so that the answer is the same each time.
  bool is_before(const TopEntry& a, const TopEntry& b) const {
    const double rank_a = rank_of(a, by_);
    const double rank_b = rank_of(b, by_);
    return rank_a != rank_b ? rank_a > rank_b : a.id < b.id;
  }

  const TopBy by_;
  const size_t limit_;
  std::vector<TopEntry> entries_;
};

using Loads = std::unordered_map<KeyspaceId, Tenant::Load>;

Loads active_loads(const Keyspaces& keyspaces) {
  Loads loads;
  for (const auto& tenant : keyspaces.active_tenants()) loads.emplace(tenant->id(), tenant->load());
  return loads;
}

Result<std::vector<TopEntry>> top_of_all(Keyspaces& keyspaces, TopBy by, size_t limit) {
  const Loads loads = active_loads(keyspaces);
  Best best(by, limit);
  std::optional<KeyspaceId> from = default_keyspace;
  while (from.has_value()) {
    TRY_ASSIGN(const Keyspaces::Page page, keyspaces.list(*from, page_keyspaces));
    for (const Keyspace& keyspace : page.keyspaces) {
      TopEntry entry{.id = keyspace.id, .name = {}, .figures = {}, .load = {}};
      TRY_ASSIGN(entry.figures, stored_figures(keyspaces.map().engine, keyspace.id));
      if (!best.takes(entry)) continue;
      entry.name = keyspace.name;
      if (const auto load = loads.find(keyspace.id); load != loads.end()) entry.load = load->second;
      best.add(std::move(entry));
    }
    from = page.next;
  }
  return std::move(best).take();
}

Result<std::vector<TopEntry>> top_of_active(Keyspaces& keyspaces, size_t limit) {
  Best best(TopBy::operations, limit);
  for (const auto& tenant : keyspaces.active_tenants()) {
    TopEntry entry{.id = tenant->id(), .name = {}, .figures = {}, .load = tenant->load()};
    if (best.takes(entry)) best.add(std::move(entry));
  }
  std::vector<TopEntry> entries = std::move(best).take();
  // What costs a read only for those that are shown.
  for (TopEntry& entry : entries) {
    TRY_ASSIGN(const Keyspace keyspace, keyspaces.load(entry.id));
    entry.name = keyspace.name;
    TRY_ASSIGN(entry.figures, stored_figures(keyspaces.map().engine, entry.id));
  }
  return entries;
}

}  // namespace

Result<std::vector<TopEntry>> top(Keyspaces& keyspaces, TopBy by, size_t limit) {
  if (by == TopBy::operations) return top_of_active(keyspaces, limit);
  return top_of_all(keyspaces, by, limit);
}

}  // namespace trellis
