// A process to be killed (support/kill_test.h): runs a load on a store, and says which steps are
// done.
//
//   PROGRAM FOLDER DURABILITY POSITION...     (always, everysec or off; one position per lane)
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "rocksdb_engine/rocksdb_engine.h"

namespace trellis {

// What main() is to return.
template <class Load>
int run_load(int count, char** words) {
  if (count != 3 + static_cast<int>(Load::lanes)) return 2;
  setup_log(LogLevel::error, LogFormat::text);
  const std::string_view wanted = words[2];
  const Durability durability = wanted == "always"     ? Durability::always
                                : wanted == "everysec" ? Durability::everysec
                                                       : Durability::off;
  SystemClock clock;
  auto engine = open_rocksdb_engine({.path = words[1], .clock = clock, .cache_bytes = 8 << 20});
  if (!engine) return 3;
  auto load = Load::open(**engine, clock, durability);
  if (!load) return 4;
  const std::atomic<bool> enough = false;
  std::thread([&] { discard((*load)->run_collector(enough)); }).detach();
  std::vector<std::thread> threads;
  for (size_t lane = 0; lane < Load::lanes; lane++)
    threads.emplace_back([&, lane] {
      const uint64_t from = std::strtoull(words[3 + lane], nullptr, 10);
      const Status end = (*load)->run_lane(lane, from, [&](uint64_t steps) {
        const uint64_t told[2] = {lane, steps};
        if (::write(STDOUT_FILENO, told, sizeof told) != sizeof told) std::_Exit(5);
      });
      std::fprintf(stderr, "lane %zu: %s\n", lane, to_string(end.error()).c_str());
    });
  for (std::thread& thread : threads) thread.join();
  return 1;  // a lane ends with an error only
}

}  // namespace trellis
