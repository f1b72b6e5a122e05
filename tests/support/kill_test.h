// Kills a process with SIGKILL under a load of a model (support/load_process.h), again and again on
// the same store. The death of the process alone loses nothing that was acknowledged, whatever the
// durability.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "base/log.h"
#include "base/random.h"
#include "durability/temporary_folder.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {

// Runs the load until so many steps were told; what was told.
template <class Load>
typename Load::Positions run_and_kill(const char* program, const std::string& folder,
                                      const char* durability, const typename Load::Positions& from,
                                      uint64_t steps) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  std::vector<std::string> words{program, folder, durability};
  for (const uint64_t position : from) words.push_back(std::to_string(position));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv(program, arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  typename Load::Positions told = from;
  uint64_t message[2];
  uint64_t count = 0;
  // What is in the pipe when it dies was acknowledged.
  while (::read(ends[0], message, sizeof message) == sizeof message) {
    told[message[0]] = std::max(told[message[0]], message[1]);
    if (++count == steps + 1) ::kill(pid, SIGKILL);
  }
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "exit status " << status;
  return told;
}

template <class Load>
void kill_often(const char* program, uint64_t seed, uint64_t kills) {
  setup_log(LogLevel::error, LogFormat::text);
  Random random(test_seed(seed));
  const TemporaryFolder folder;
  const std::string data = (folder.path() / "store").string();
  SystemClock clock;
  typename Load::Positions positions{};
  uint64_t steps = 0;
  for (uint64_t i = 0; i < kills && !testing::Test::HasFailure(); i++) {
    SCOPED_TRACE(i);
    const char* const durabilities[] = {"always", "everysec", "off"};
    const auto told = run_and_kill<Load>(program, data, durabilities[random.below(3)], positions,
                                         random.below(600));
    const auto engine = open_rocksdb_engine({.path = data, .clock = clock, .cache_bytes = 8 << 20});
    ASSERT_OK(engine);
    const auto load = Load::open(**engine, clock, Durability::always);
    ASSERT_OK(load);
    for (size_t lane = 0; lane < Load::lanes; lane++) {
      const auto found = (*load)->position(lane, told[lane], told[lane] + 1);
      ASSERT_OK(found);
      steps += *found - positions[lane];
      positions[lane] = *found;
    }
    ASSERT_OK((*load)->check());
  }
  std::cout << fmt::format("{} kills, {} steps are there\n", kills, steps);
  EXPECT_GT(steps, 0u);
}

}  // namespace trellis
