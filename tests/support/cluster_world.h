// For tests: an object store in memory with ranges on it, which are split and merged if wanted, and
// any number of clients.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "cluster_engine/cluster_engine.h"
#include "object_store/fake_object_store.h"
#include "object_store/faulty_object_store.h"

namespace trellis {

class ClusterWorld {
 public:
  ClusterWorld();
  ~ClusterWorld();  // waits for the changes to stop

  struct Client {
    std::unique_ptr<FaultyObjectStore> store;
    std::unique_ptr<ClusterEngine> engine;
  };
  Client open_client(ClusterEngineOptions options = {.patience_us = 2'000, .beat_interval_us = 0});

  FakeObjectStore& store() { return store_; }
  SystemClock& clock() { return clock_; }

  void split_at(ByteView address);
  // Splits where a key is, or merges, about half of the time from now on until stop_changes. One in
  // four dies somewhere on the way, and is left to whoever meets it.
  void start_changes(uint64_t seed);
  void stop_changes();
  uint64_t changes() const { return changes_; }
  // What must never be in a store whose clients are at rest, in words.
  std::vector<std::string> problems();

 private:
  void change_one(Random& random);
  void split_one(Random& random, ObjectStore& client, const RangeHeader& range);

  FakeObjectStore store_;
  SystemClock clock_;
  uint64_t last_range_ = first_range_id.value;
  std::atomic<uint64_t> changes_ = 0;
  std::atomic<bool> enough_ = false;
  std::thread changer_;
};

}  // namespace trellis
