// The engine that models are tested on: the map in memory, or, if TRELLIS_TEST_ENGINE is "cluster",
// one on an object store with a few ranges.
#pragma once

#include <memory>

#include "engine/engine.h"

namespace trellis {

struct TestEngine {
  std::shared_ptr<void> world;  // what the engine stands on
  std::unique_ptr<Engine> engine;
};

TestEngine open_test_engine();

}  // namespace trellis
