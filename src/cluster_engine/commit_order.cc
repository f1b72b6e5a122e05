#include "cluster_engine/commit_order.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace trellis {
namespace {

// An interval of keys that a commit writes or relies on; without an end, to that of the map.
struct Touch {
  Bytes begin;
  std::optional<Bytes> end;
  size_t commit;

  bool ends_before(const Bytes& key) const { return end && *end <= key; }
};

Touch touch_key(ByteView key, size_t commit) { return {Bytes(key), successor(key), commit}; }
Touch touch_interval(ByteView begin, ByteView end, size_t commit) {
  return {Bytes(begin), end.empty() ? std::nullopt : std::optional(Bytes(end)), commit};
}

class Chains {
 public:
  explicit Chains(size_t count) : leader_(count) {
    std::iota(leader_.begin(), leader_.end(), size_t{0});
  }
  // The first of its chain.
  size_t find(size_t commit) {
    while (leader_[commit] != commit) commit = leader_[commit] = leader_[leader_[commit]];
    return commit;
  }
  void join(size_t a, size_t b) {
    a = find(a);
    b = find(b);
    leader_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<size_t> leader_;
};

// Joins those that overlap: what is left is disjoint, and in order.
std::vector<Touch> join_writes(std::vector<Touch> writes, Chains& chains) {
  std::ranges::sort(writes, {}, &Touch::begin);
  std::vector<Touch> joined;
  for (Touch& write : writes) {
    if (joined.empty() || joined.back().ends_before(write.begin)) {
      joined.push_back(std::move(write));
      continue;
    }
    Touch& last = joined.back();
    chains.join(last.commit, write.commit);
    if (!write.end || (last.end && *write.end > *last.end)) last.end = std::move(write.end);
  }
  return joined;
}

void join_reads(const std::vector<Touch>& reads, const std::vector<Touch>& writes, Chains& chains) {
  for (const Touch& read : reads) {
    auto write = std::ranges::partition_point(
        writes, [&](const Touch& each) { return each.ends_before(read.begin); });
    for (; write != writes.end() && !read.ends_before(write->begin); ++write)
      chains.join(read.commit, write->commit);
  }
}

}  // namespace

std::vector<std::vector<size_t>> commit_chains(std::span<const Commit* const> commits) {
  std::vector<Touch> writes;
  std::vector<Touch> reads;
  for (size_t i = 0; i < commits.size(); i++) {
    for (const WriteSet::Write& write : commits[i]->writes)
      writes.push_back(write.op == WriteOp::remove_range ? touch_interval(write.key, write.value, i)
                                                         : touch_key(write.key, i));
    for (const Expectation& expectation : commits[i]->expectations)
      reads.push_back(expectation.end ? touch_interval(expectation.begin, *expectation.end, i)
                                      : touch_key(expectation.begin, i));
  }
  Chains chains(commits.size());
  join_reads(reads, join_writes(std::move(writes), chains), chains);
  std::map<size_t, std::vector<size_t>> by_first;
  for (size_t i = 0; i < commits.size(); i++) by_first[chains.find(i)].push_back(i);
  std::vector<std::vector<size_t>> out;
  for (auto& [first, chain] : by_first) out.push_back(std::move(chain));
  return out;
}

CommitPool::~CommitPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void CommitPool::run_one(std::unique_lock<std::mutex>& lock, Job& job) {
  const size_t index = job.taken++;
  if (job.taken == job.count) std::erase(jobs_, &job);
  lock.unlock();
  job.task(index);
  lock.lock();
  // Whoever waits for it may return now, and the job is gone.
  if (++job.done == job.count) changed_.notify_all();
}

void CommitPool::run(size_t count, FunctionRef<void(size_t)> task) {
  if (count == 0) return;
  if (count == 1) return task(0);
  Job job{task, count};
  std::unique_lock lock(mutex_);
  jobs_.push_back(&job);
  while (threads_.size() < std::min(threads_max_, count - 1))
    threads_.emplace_back([this] { work(); });
  changed_.notify_all();
  while (job.taken < job.count) run_one(lock, job);
  changed_.wait(lock, [&] { return job.done == job.count; });
}

void CommitPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    run_one(lock, *jobs_.front());
  }
}

}  // namespace trellis
