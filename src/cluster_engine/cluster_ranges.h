// All that a client of a cluster has of ranges beside its engine: who decides on splits and merges,
// and the log of them. Any number of clients may have one; each learns what the others did.
#pragma once

#include <memory>

#include "cluster_engine/cluster_home.h"
#include "range/range_keeper.h"

namespace trellis {

// An object holds two entries or three for each key, and one with 200,000 is warned of. The rest is
// what objects need that are copied and shared; sizes come from walks, and from the traffic of this
// client.
KeeperOptions cluster_keeper_options();

// Any thread.
class ClusterRanges {
 public:
  struct Options {
    KeeperOptions keeper = cluster_keeper_options();
    RangeChangeOptions changes = {};
  };
  // `engine` is the map on `store`, which has its first range. The accounting is filled.
  static Result<std::unique_ptr<ClusterRanges>> open(ObjectStore& store, Engine& engine,
                                                     Clock& clock, RangeAccounting& accounting,
                                                     Options options);
  // The threads of the keeper.
  void start() { keeper_.start(); }
  void stop() { keeper_.stop(); }

  ClusterHome& home() { return home_; }
  RangeKeeper& keeper() { return keeper_; }
  const RangeLog& log() const { return log_; }

 private:
  ClusterRanges(ObjectStore& store, Engine& engine, Clock& clock, RangeAccounting& accounting,
                Options options);

  RangeIdCounter ids_;
  RangeLog log_;
  ClusterHome home_;
  RangeKeeper keeper_;
};

}  // namespace trellis
