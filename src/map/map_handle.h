// What a model stands on: one map, how to change it, and the time.
#pragma once

#include "base/clock.h"
#include "engine/engine.h"
#include "map/transact.h"

namespace trellis {

// All of it outlives whoever holds the handle.
struct MapHandle {
  Engine& engine;
  Transactor& transactor;
  Clock& clock;
  Durability durability = Durability::everysec;

  // Whether latches order transactions. If not, others may change the map at any time, and only
  // what a transaction reads in its View is sure to hold.
  bool latched() const { return transactor.way() == Way::latched; }

  Status transact(const Scope& scope, FunctionRef<Status(View&)> fn) const {
    return transactor.transact(scope, fn, durability);
  }
  // For what an operator relies on at once, whatever the data's durability: a power cut must not
  // bring a revoked token back to life.
  Status transact_durably(const Scope& scope, FunctionRef<Status(View&)> fn) const {
    return transactor.transact(scope, fn, Durability::always);
  }
};

}  // namespace trellis
