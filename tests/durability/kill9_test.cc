// Kills a process with SIGKILL while it commits to a real directory, and looks at what is left.
// A crash of the process alone loses nothing that was acknowledged, whatever its durability.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "stamped_commits.h"
#include "support/test_seed.h"
#include "temporary_folder.h"

namespace trellis {
namespace {

constexpr const char* writer_argument = "--write-to";

struct Report {
  uint64_t lane;
  uint64_t n;
};

Result<std::unique_ptr<RocksdbEngine>> open(const std::string& path) {
  static SystemClock clock;
  return open_rocksdb_engine({.path = path, .clock = clock, .cache_bytes = 8 << 20});
}

// The child: commits until it is killed, and reports each acknowledged commit down the pipe.
int write_until_killed(const std::string& path, int pipe, Durability durability, uint64_t seed) {
  auto engine = open(path);
  if (!engine.has_value()) return 1;
  const Result<LanePositions> found = find_positions(**engine);
  if (!found.has_value()) return 2;
  StampedCommits commits(*found);
  std::vector<std::thread> threads;
  for (size_t lane = 0; lane < lanes; lane++) {
    threads.emplace_back([&, lane] {
      Random random(seed + lane);
      while (commits.step(**engine, lane, durability, random).has_value()) {
        const Report report{lane, commits.acknowledged(lane)};
        if (::write(pipe, &report, sizeof report) != sizeof report) return;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 3;
}

class Kill9 : public testing::Test {
 protected:
  void SetUp() override { setup_log(LogLevel::error, LogFormat::text); }
  // Runs a writer, kills it after that many reports, and returns what it had acknowledged.
  LanePositions kill_after(uint64_t reports, Durability durability, uint64_t seed) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], 3);
      const std::string number = std::to_string(static_cast<int>(durability));
      const std::string seed_text = std::to_string(seed);
      ::execl("/proc/self/exe", "kill9_test", writer_argument, store().c_str(), number.c_str(),
              seed_text.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    LanePositions acknowledged{};
    Report report;
    for (uint64_t seen = 0; ::read(ends[0], &report, sizeof report) == sizeof report; seen++) {
      acknowledged[report.lane] = report.n;
      if (seen == 0) expect_busy();
      if (seen == reports) ::kill(child, SIGKILL);  // and read on to the end of what it wrote
    }
    ::close(ends[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "exit status " << status;
    return acknowledged;
  }

  // A second process is told so, and harms nothing.
  void expect_busy() {
    const auto second = open(store());
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().code, Code::busy) << second.error().message;
  }

  std::string store() const { return (folder_.path() / "store").string(); }

  TemporaryFolder folder_;
};

TEST_F(Kill9, NothingAcknowledgedIsMissing) {
  Random random(test_seed(20240608));
  uint64_t total = 0;
  const uint64_t kills = test_rounds(50);
  for (uint64_t i = 0; i < kills && !HasFailure(); i++) {
    SCOPED_TRACE(i);
    const auto durability = static_cast<Durability>(random.below(3));
    const LanePositions acknowledged = kill_after(random.below(600), durability, random.next());
    const auto engine = open(store());
    ASSERT_TRUE(engine.has_value()) << to_string(engine.error());
    const Result<LanePositions> found = find_positions(**engine);
    ASSERT_TRUE(found.has_value()) << to_string(found.error());
    total = 0;
    for (size_t lane = 0; lane < lanes; lane++) {
      EXPECT_GE((*found)[lane], acknowledged[lane]) << "lane " << lane;
      total += (*found)[lane];
    }
  }
  std::cout << fmt::format("{} kills, {} commits\n", kills, total);
  EXPECT_GT(total, 0);
}

}  // namespace
}  // namespace trellis

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == trellis::writer_argument) {
    return trellis::write_until_killed(argv[2], 3, static_cast<trellis::Durability>(atoi(argv[3])),
                                       std::strtoull(argv[4], nullptr, 10));
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
