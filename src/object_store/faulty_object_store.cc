#include "object_store/faulty_object_store.h"

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "base/assert.h"

namespace trellis {

std::string_view to_string(FaultMode mode) {
  static constexpr std::string_view names[] = {"error", "crash_before", "crash_after", "timed_out",
                                               "lost",  "delayed",      "duplicated"};
  return names[static_cast<size_t>(mode)];
}

void FaultyObjectStore::plan(Fault fault) {
  const std::scoped_lock lock(mutex_);
  plans_.push_back(std::move(fault));
}

std::vector<PassedPoint> FaultyObjectStore::passed() const {
  const std::scoped_lock lock(mutex_);
  return passed_;
}

bool FaultyObjectStore::dead() const {
  const std::scoped_lock lock(mutex_);
  return dead_;
}

void FaultyObjectStore::kill() {
  const std::scoped_lock lock(mutex_);
  dead_ = true;
}

size_t FaultyObjectStore::release() {
  std::vector<ObjectWrite> held;
  {
    const std::scoped_lock lock(mutex_);
    held.swap(held_);
  }
  for (const ObjectWrite& write : held) inner_.write("released", write.object, write.operation);
  return held.size();
}

std::optional<FaultMode> FaultyObjectStore::pass(FaultPoint point, bool is_write) {
  PassedPoint passed{std::string(point), 0, is_write};
  std::optional<FaultMode> mode;
  {
    const std::scoped_lock lock(mutex_);
    if (dead_) return FaultMode::crash_before;
    passed.nth = ++passes_[passed.point];
    passed_.push_back(passed);
    const auto planned = std::ranges::find_if(plans_, [&](const Fault& fault) {
      return fault.point == passed.point && fault.nth == passed.nth;
    });
    if (planned != plans_.end()) {
      mode = planned->mode;
      plans_.erase(planned);
    }
  }
  if (hook_) hook_(passed);
  const std::scoped_lock lock(mutex_);
  if (mode == FaultMode::crash_before || mode == FaultMode::crash_after) dead_ = true;
  return mode;
}

int FaultyObjectStore::read(FaultPoint point, ByteView object, const ReadOperation& operation,
                            ReadAnswer& answer) {
  switch (pass(point, false).value_or(FaultMode::duplicated)) {
    case FaultMode::duplicated: return inner_.read(point, object, operation, answer);
    case FaultMode::error: return -EIO;
    case FaultMode::crash_before:
    case FaultMode::crash_after: return -ESHUTDOWN;
    case FaultMode::timed_out:
    case FaultMode::lost:
    case FaultMode::delayed: return -ETIMEDOUT;
  }
  return -EIO;
}

int FaultyObjectStore::write(FaultPoint point, ByteView object, const WriteOperation& operation) {
  const std::optional<FaultMode> mode = pass(point, true);
  const auto hold = [&] {
    const std::scoped_lock lock(mutex_);
    held_.push_back({"released", Bytes(object), operation});
  };
  if (!mode) return inner_.write(point, object, operation);
  switch (*mode) {
    case FaultMode::error: return -EIO;
    case FaultMode::crash_before: return -ESHUTDOWN;
    case FaultMode::crash_after: inner_.write(point, object, operation); return -ESHUTDOWN;
    case FaultMode::timed_out: inner_.write(point, object, operation); return -ETIMEDOUT;
    case FaultMode::lost: return -ETIMEDOUT;
    case FaultMode::delayed: hold(); return -ETIMEDOUT;
    case FaultMode::duplicated: hold(); return inner_.write(point, object, operation);
  }
  return -EIO;
}

void FaultyObjectStore::write_many(std::span<const ObjectWrite> writes, std::span<int> answers) {
  ASSERT(writes.size() == answers.size());
  std::vector<size_t> order(writes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  {
    const std::scoped_lock lock(mutex_);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
  }
  for (const size_t i : order)
    answers[i] = write(writes[i].point, writes[i].object, writes[i].operation);
}

int FaultyObjectStore::list(ByteView prefix, FunctionRef<void(ByteView object)> visit) {
  if (dead()) return -ESHUTDOWN;
  return inner_.list(prefix, visit);
}

}  // namespace trellis
