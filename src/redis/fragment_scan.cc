#include "redis/fragment_scan.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "codec/redis_keys.h"

namespace trellis {

StoredOrder::StoredOrder(uint64_t bytes, size_t part_fragments)
    : bytes_(bytes), part_fragments_(part_fragments) {
  uint64_t begin = 0;
  uint64_t scale = 1'000'000'000;
  for (uint64_t end = 10; begin < bytes; end *= 10, scale /= 10) {
    const uint64_t first = (begin + fragment_bytes - 1) / fragment_bytes * fragment_bytes;
    if (first < std::min(end, bytes)) all_.push_back({first, std::min(end, bytes), scale});
    begin = end;
  }
}

std::vector<uint64_t> StoredOrder::next_part() {
  std::vector<uint64_t> part;
  part.reserve(part_fragments_);
  while (!all_.empty() && part.size() < part_fragments_) {
    // Of equals the shorter one: 1024 is before 10240.
    const auto least = std::ranges::min_element(
        all_, {}, [](const Digits& digits) { return digits.next * digits.scale; });
    part.push_back(least->next);
    least->next += fragment_bytes;
    if (least->next >= least->end) all_.erase(least);
  }
  return part;
}

Result<FragmentScan> FragmentScan::open(Keys& keys, const Key& key) {
  Bytes prefix = keys.subs_prefix(key);
  TRY_ASSIGN(Engine* const engine, keys.view().stored(prefix, prefix_end(prefix)));
  return FragmentScan(keys, engine, std::move(prefix), key.size());
}

namespace {

// Most have the next one behind them, in a block of the cache, and the processor does not foresee
// that they do.
void prefetch_behind(ByteView fragment) {
  const char* const next = fragment.data() + fragment.size();
  constexpr size_t line_bytes = 64;
  for (size_t i = 0; i < fragment_bytes + line_bytes; i += line_bytes) __builtin_prefetch(next + i);
}

}  // namespace

Status FragmentScan::visit(std::span<const uint64_t> part, FragmentVisitor visit) const {
  if (part.empty()) return {};
  Bytes begin = prefix_ + encode(RedisBitmapSub{part.front()});
  const Bytes end = successor(prefix_ + encode(RedisBitmapSub{part.back()}));
  Status bad;
  const auto take = [&](ByteView key, ByteView stored) {
    const auto offset = decode_fragment_offset(key.substr(prefix_.size()));
    if (!offset) {
      bad = offset.error();
      return Visit::stop;
    }
    prefetch_behind(stored);
    if (*offset < bytes_)
      visit(*offset, stored.substr(0, std::min(fragment_bytes, bytes_ - *offset)));
    return Visit::go_on;
  };
  for (;;) {
    const ScanRequest request{.begin = begin, .end = end, .reading = bitmap_reading(bytes_)};
    TRY_ASSIGN(ScanPage page, engine_ == nullptr ? keys_->view().scan(request, take)
                                                 : engine_->scan(request, take));
    TRY(bad);
    if (!page.resume) return {};
    begin = std::move(*page.resume);
  }
}

namespace {

// Parts are made by the caller, while it waits for one, and by threads beside it; what they are to
// make, and what is made, is in the slots.
class PartMakers {
 public:
  PartMakers(const PartWork& work, unsigned threads) : work_(work) {
    threads_.reserve(threads);
    try {
      for (unsigned i = 0; i < threads; i++) threads_.emplace_back([this, i] { run(i + 1); });
    } catch (const std::system_error&) {  // those that there are do it
    }
  }
  ~PartMakers() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    given_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  PartMakers(const PartMakers&) = delete;
  PartMakers& operator=(const PartMakers&) = delete;

  // REQUIRES: the slot was waited for since it was given.
  void give(PartWork::Slot slot, std::vector<uint64_t> part) {
    slots_[slot].part = std::move(part);
    const std::lock_guard lock(mutex_);
    slots_[slot].is_made = false;
    waiting_.push_back(slot);
    given_.notify_one();
  }
  Status wait(PartWork::Slot slot) {
    std::unique_lock lock(mutex_);
    while (!slots_[slot].is_made) {
      if (waiting_.empty())
        made_.wait(lock);
      else
        make_next(lock, 0);
    }
    return std::move(slots_[slot].status);
  }

 private:
  struct Slot {
    bool is_made = true;
    std::vector<uint64_t> part;
    Status status;
  };

  void run(PartWork::Maker maker) {
    std::unique_lock lock(mutex_);
    for (;;) {
      given_.wait(lock, [&] { return is_over_ || !waiting_.empty(); });
      if (is_over_) return;
      make_next(lock, maker);
      made_.notify_one();
    }
  }
  void make_next(std::unique_lock<std::mutex>& lock, PartWork::Maker maker) {
    const PartWork::Slot number = waiting_.front();
    Slot& slot = slots_[number];
    waiting_.pop_front();
    lock.unlock();
    Status status;
    try {
      status = work_.make(maker, number, slot.part);
    } catch (const std::exception& exception) {
      status = Error{Code::unavailable, exception.what()};
    }
    lock.lock();
    slot.status = std::move(status);
    slot.is_made = true;
  }

  const PartWork& work_;
  std::mutex mutex_;
  std::condition_variable given_;
  std::condition_variable made_;
  std::deque<PartWork::Slot> waiting_;
  std::array<Slot, PartWork::slots> slots_;
  bool is_over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

Status work_in_parts(StoredOrder order, bool on_threads, const PartWork& work) {
  on_threads = on_threads && order.is_for_threads();
  constexpr unsigned makers_max = PartWork::makers;
  const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1U, makers_max);
  PartMakers makers(work, on_threads ? cores - 1 : 0);
  const size_t ahead = on_threads ? PartWork::slots : 1;
  size_t given = 0;
  bool is_all = false;
  for (size_t taken = 0;; taken++) {
    while (!is_all && given < taken + ahead) {
      std::vector<uint64_t> part = order.next_part();
      is_all = part.empty();
      if (!is_all) makers.give(given++ % PartWork::slots, std::move(part));
    }
    if (taken == given) return {};
    TRY(makers.wait(taken % PartWork::slots));
    TRY(work.take(taken % PartWork::slots));
  }
}

}  // namespace trellis
