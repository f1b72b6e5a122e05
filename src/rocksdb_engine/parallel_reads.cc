#include "rocksdb_engine/parallel_reads.h"

#include <rocksdb/perf_level.h>
#include <rocksdb/snapshot.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <latch>
#include <utility>

#include "rocksdb_engine/batched_read.h"
#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {
namespace {

constexpr size_t threads_max = 8;
constexpr size_t keys_min = 4;
constexpr uint64_t averaged_reads = 8;

}  // namespace

ParallelReads::~ParallelReads() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Status ParallelReads::read(std::span<const ByteView> keys, std::span<Value> values) {
  const bool is_slow = ns_per_key_.load(std::memory_order_relaxed) >= slow_ns_;
  if (!is_slow || keys.size() < keys_min) return read_part(keys, values, nullptr);
  return read_in_parts(keys, values, std::min(keys.size(), threads_max + 1));
}

Status ParallelReads::read_part(std::span<const ByteView> keys, std::span<Value> values,
                                const rocksdb::Snapshot* snapshot) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  BatchedRead& batch = BatchedRead::of_this_thread();
  batch.keys().clear();
  for (const ByteView key : keys) batch.keys().push_back(to_slice(key));
  Status status = batch.read(db_, family_, values, snapshot);
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start);
  const uint64_t now = static_cast<uint64_t>(ns.count()) / std::max<size_t>(keys.size(), 1);
  // Two at once may lose one of the two: it is an average.
  const uint64_t before = ns_per_key_.load(std::memory_order_relaxed);
  ns_per_key_.store((before * (averaged_reads - 1) + now) / averaged_reads,
                    std::memory_order_relaxed);
  return status;
}

Status ParallelReads::read_in_parts(std::span<const ByteView> keys, std::span<Value> values,
                                    size_t parts) {
  rocksdb::ManagedSnapshot snapshot(&db_);
  std::vector<Status> outcomes(parts);
  std::latch done(static_cast<ptrdiff_t>(parts));
  const std::function<void(size_t)> run = [&](size_t part) {
    const size_t begin = keys.size() * part / parts;
    const size_t count = keys.size() * (part + 1) / parts - begin;
    try {
      outcomes[part] =
          read_part(keys.subspan(begin, count), values.subspan(begin, count), snapshot.snapshot());
    } catch (const std::exception& error) {  // no memory, say
      outcomes[part] = Error{Code::unavailable, error.what()};
    }
    done.count_down();
  };
  const size_t handed_over = hand_over(parts - 1, run);
  for (size_t part = handed_over; part < parts; part++) run(part);
  done.wait();
  const auto failed = std::ranges::find_if(outcomes, [](const Status& one) { return !one; });
  if (failed == outcomes.end()) return {};
  for (Value& value : values) value.set_absent();
  return *failed;
}

// How many of the tasks 0, 1, ... were taken: fewer if there is no memory or no thread for them.
size_t ParallelReads::hand_over(size_t count, const std::function<void(size_t)>& run) {
  const std::lock_guard lock(mutex_);
  size_t taken = 0;
  try {
    while (threads_.size() < threads_max) threads_.emplace_back([this] { work(); });
    for (; taken < count; taken++) tasks_.emplace_back([&run, taken] { run(taken); });
  } catch (const std::exception&) {  // the caller does what is left
  }
  changed_.notify_all();
  return threads_.empty() ? 0 : taken;
}

void ParallelReads::work() {
  rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);  // as ReadSampler leaves it
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace trellis
