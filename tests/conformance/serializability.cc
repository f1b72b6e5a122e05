#include "conformance/serializability.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace trellis {
namespace {

using Outcome = ListTransaction::Outcome;
using Anomaly = std::optional<std::string>;

enum class EdgeKind : uint8_t { ww, wr, rw, rt };

const char* name_of(EdgeKind kind) {
  constexpr const char* names[] = {"ww", "wr", "rw", "rt"};
  return names[static_cast<size_t>(kind)];
}

class Checker {
 public:
  explicit Checker(const std::vector<ListTransaction>& history) : history_(history) {}

  Anomaly check() {
    if (Anomaly anomaly = index_appends()) return anomaly;
    for (size_t reader = 0; reader < history_.size(); reader++) {
      if (history_[reader].outcome == Outcome::failed) continue;
      if (Anomaly anomaly = check_reads(reader)) return anomaly;
    }
    edges_.resize(history_.size());
    settle_outcomes();
    add_write_edges();
    for (size_t reader = 0; reader < history_.size(); reader++) {
      if (happened_[reader]) add_read_edges(reader);
    }
    add_real_time_edges();
    return find_cycle();
  }

 private:
  struct Append {
    size_t writer;
    uint64_t key;
    bool last;  // of its transaction on that key: the only one that others may see as the end
  };
  struct Edge {
    size_t to;
    EdgeKind kind;
  };

  Anomaly index_appends() {
    for (size_t writer = 0; writer < history_.size(); writer++) {
      std::map<uint64_t, uint64_t> last;
      for (const ListAccess& access : history_[writer].accesses) {
        if (!access.appended) continue;
        if (!appends_.emplace(*access.appended, Append{writer, access.key, false}).second) {
          return fmt::format("broken workload: {} was appended twice", *access.appended);
        }
        last[access.key] = *access.appended;
      }
      for (const auto& [key, value] : last) appends_[value].last = true;
    }
    return std::nullopt;
  }

  // Each read alone, and that all reads of a key are prefixes of one list.
  Anomaly check_reads(size_t reader) {
    std::map<uint64_t, std::vector<uint64_t>> own;
    for (const ListAccess& access : history_[reader].accesses) {
      if (access.appended) {
        own[access.key].push_back(*access.appended);
        continue;
      }
      std::vector<uint64_t> list = access.list;
      for (auto at = own[access.key].rbegin(); at != own[access.key].rend(); ++at) {
        if (list.empty() || list.back() != *at) {
          return fmt::format("T{} does not see its own append of {} to key {}", reader, *at,
                             access.key);
        }
        list.pop_back();
      }
      if (Anomaly anomaly = check_foreign_list(reader, access.key, list)) return anomaly;
    }
    return std::nullopt;
  }

  Anomaly check_foreign_list(size_t reader, uint64_t key, const std::vector<uint64_t>& list) {
    for (size_t i = 0; i < list.size(); i++) {
      const auto found = appends_.find(list[i]);
      if (found == appends_.end() || found->second.key != key) {
        return fmt::format("T{} read {} at key {}, which nobody appended there", reader, list[i],
                           key);
      }
      const Append& append = found->second;
      if (history_[append.writer].outcome == Outcome::failed) {
        return fmt::format("aborted read: T{} read {} of T{}, which failed", reader, list[i],
                           append.writer);
      }
      if (append.writer == reader) {
        return fmt::format("T{} read {} before it appended it", reader, list[i]);
      }
      if (i + 1 == list.size() && !append.last) {
        return fmt::format("dirty read: T{} read {}, in the middle of T{}", reader, list[i],
                           append.writer);
      }
    }
    std::vector<uint64_t>& longest = orders_[key];
    const size_t common = std::min(longest.size(), list.size());
    if (!std::equal(list.begin(), list.begin() + static_cast<ptrdiff_t>(common), longest.begin())) {
      return fmt::format("the list that T{} read at key {} is no prefix of what others read",
                         reader, key);
    }
    if (list.size() > longest.size()) longest = list;
    return std::nullopt;
  }

  // A maybe of which something was seen did happen; one that nobody saw is left out, as if not.
  void settle_outcomes() {
    happened_.resize(history_.size());
    for (size_t i = 0; i < history_.size(); i++) {
      happened_[i] = history_[i].outcome == Outcome::done;
    }
    for (const auto& [key, order] : orders_) {
      for (const uint64_t value : order) {
        happened_[appends_.at(value).writer] = true;
        seen_.insert(value);
      }
    }
    for (const auto& [value, append] : appends_) {
      if (happened_[append.writer] && !seen_.contains(value)) unseen_[append.key].push_back(value);
    }
  }

  void add_edge(size_t from, size_t to, EdgeKind kind) {
    if (from != to) edges_[from].push_back({to, kind});
  }

  void add_write_edges() {
    for (const auto& [key, order] : orders_) {
      for (size_t i = 0; i + 1 < order.size(); i++) {
        add_edge(appends_.at(order[i]).writer, appends_.at(order[i + 1]).writer, EdgeKind::ww);
      }
      if (order.empty()) continue;
      for (const uint64_t value : unseen_[key]) {  // whatever its place, it is behind all of these
        add_edge(appends_.at(order.back()).writer, appends_.at(value).writer, EdgeKind::ww);
      }
    }
  }

  void add_read_edges(size_t reader) {
    for (const ListAccess& access : history_[reader].accesses) {
      if (access.appended) continue;
      const std::vector<uint64_t>& order = orders_[access.key];
      size_t length = access.list.size();
      while (length > 0 && appends_.at(access.list[length - 1]).writer == reader) length--;
      if (length > 0) {
        add_edge(appends_.at(access.list[length - 1]).writer, reader, EdgeKind::wr);
      }
      if (length < order.size()) {
        add_edge(reader, appends_.at(order[length]).writer, EdgeKind::rw);
      } else {
        for (const uint64_t value : unseen_[access.key]) {
          add_edge(reader, appends_.at(value).writer, EdgeKind::rw);
        }
      }
    }
  }

  // One node per answer, in order of time: so the edges are as many as the transactions, not as
  // many as their pairs.
  void add_real_time_edges() {
    std::vector<std::pair<uint64_t, size_t>> ends;
    for (size_t i = 0; i < history_.size(); i++) {
      if (happened_[i] && history_[i].outcome == Outcome::done)
        ends.emplace_back(history_[i].end, i);
    }
    std::sort(ends.begin(), ends.end());
    const size_t first_node = edges_.size();
    edges_.resize(first_node + ends.size());
    for (size_t i = 0; i < ends.size(); i++) {
      add_edge(ends[i].second, first_node + i, EdgeKind::rt);
      if (i + 1 < ends.size()) add_edge(first_node + i, first_node + i + 1, EdgeKind::rt);
    }
    for (size_t i = 0; i < history_.size(); i++) {
      if (!happened_[i]) continue;
      const auto later = std::lower_bound(ends.begin(), ends.end(),
                                          std::pair<uint64_t, size_t>(history_[i].begin, 0));
      if (later == ends.begin()) continue;
      add_edge(first_node + static_cast<size_t>(later - ends.begin()) - 1, i, EdgeKind::rt);
    }
  }

  Anomaly find_cycle() const {
    enum class Mark : uint8_t { unvisited, on_path, finished };
    std::vector<Mark> marks(edges_.size(), Mark::unvisited);
    std::vector<size_t> path;
    std::vector<size_t> next(edges_.size(), 0);  // the edge of each node that is taken next
    for (size_t root = 0; root < edges_.size(); root++) {
      if (marks[root] != Mark::unvisited) continue;
      path.push_back(root);
      marks[root] = Mark::on_path;
      while (!path.empty()) {
        const size_t node = path.back();
        if (next[node] == edges_[node].size()) {
          marks[node] = Mark::finished;
          path.pop_back();
          continue;
        }
        const size_t to = edges_[node][next[node]++].to;
        if (marks[to] == Mark::on_path) return describe(path, to, next);
        if (marks[to] == Mark::finished) continue;
        marks[to] = Mark::on_path;
        path.push_back(to);
      }
    }
    return std::nullopt;
  }

  std::string describe(const std::vector<size_t>& path, size_t first,
                       const std::vector<size_t>& next) const {
    std::string text = "cycle:";
    auto at = std::find(path.begin(), path.end(), first);
    for (; at != path.end(); ++at) {
      const Edge& edge = edges_[*at][next[*at] - 1];
      if (*at < history_.size()) text += fmt::format(" T{} {}", *at, name_of(edge.kind));
    }
    return text + fmt::format(" T{}", first < history_.size() ? first : path.back());
  }

  const std::vector<ListTransaction>& history_;
  std::unordered_map<uint64_t, Append> appends_;      // by value
  std::map<uint64_t, std::vector<uint64_t>> orders_;  // by key: the longest list read
  std::map<uint64_t, std::vector<uint64_t>> unseen_;  // by key: appended, in no list read
  std::unordered_set<uint64_t> seen_;
  std::vector<bool> happened_;
  std::vector<std::vector<Edge>> edges_;
};

}  // namespace

std::optional<std::string> find_anomaly(const std::vector<ListTransaction>& history) {
  return Checker(history).check();
}

}  // namespace trellis
