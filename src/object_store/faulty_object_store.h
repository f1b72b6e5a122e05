// One client's handle on an object store, whose operations fail where a test says so.
//
//   FaultyObjectStore client(store);
//   client.plan({.point = "split.copy", .nth = 2, .mode = FaultMode::crash_after});
//
// Without a plan it only notes which fault points are passed: that is how a test learns of all of
// them, to try each. A plan is used up by the operation that it meets.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "base/random.h"
#include "object_store/object_store.h"

namespace trellis {

enum class FaultMode : uint8_t {
  error,         // -EIO, not applied
  crash_before,  // not applied, and the client is dead: from now on -ESHUTDOWN for everything
  crash_after,   // applied, and the client is dead
  timed_out,     // applied, answered -ETIMEDOUT
  lost,          // not applied, answered -ETIMEDOUT
  delayed,       // answered -ETIMEDOUT, applied when the test releases it
  duplicated,    // applied, and once more when the test releases it
};
inline constexpr FaultMode fault_modes[] = {
    FaultMode::error, FaultMode::crash_before, FaultMode::crash_after, FaultMode::timed_out,
    FaultMode::lost,  FaultMode::delayed,      FaultMode::duplicated};
std::string_view to_string(FaultMode mode);

struct Fault {
  std::string point;
  uint64_t nth = 1;  // of all passes of this client; 1 is the first
  FaultMode mode = FaultMode::error;
};

struct PassedPoint {
  std::string point;
  uint64_t nth;
  bool is_write;
};

class FaultyObjectStore final : public ObjectStore {
 public:
  // `inner` must outlive it. The seed shuffles the order in which write_many applies.
  explicit FaultyObjectStore(ObjectStore& inner, uint64_t seed = 1)
      : inner_(inner), random_(seed) {}

  void plan(Fault fault);
  // Called before each operation, by the thread that makes it, without a lock: other clients act
  // in it. REQUIRES: set while no call runs.
  void before_each(std::function<void(const PassedPoint&)> hook) { hook_ = std::move(hook); }

  std::vector<PassedPoint> passed() const;
  bool dead() const;
  void kill();
  // Applies what was delayed or duplicated, in that order, also if the client is dead. Returns how
  // many there were.
  size_t release();

  int read(FaultPoint point, ByteView object, const ReadOperation& operation,
           ReadAnswer& answer) override;
  int write(FaultPoint point, ByteView object, const WriteOperation& operation) override;
  void write_many(std::span<const ObjectWrite> writes, std::span<int> answers) override;
  int list(ByteView prefix, FunctionRef<void(ByteView object)> visit) override;

 private:
  // Absent: it passes.
  std::optional<FaultMode> pass(FaultPoint point, bool is_write);

  ObjectStore& inner_;
  std::function<void(const PassedPoint&)> hook_;
  mutable std::mutex mutex_;  // of everything below
  Random random_;
  std::vector<Fault> plans_;
  std::map<std::string, uint64_t, std::less<>> passes_;
  std::vector<PassedPoint> passed_;
  std::vector<ObjectWrite> held_;
  bool dead_ = false;
};

}  // namespace trellis
