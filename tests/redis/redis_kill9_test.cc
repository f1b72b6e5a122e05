// Kills the server with SIGKILL under a load of Redis commands, again and again on the same store.
// The death of the process alone loses nothing that was acknowledged, whatever the durability.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <thread>

#include "base/log.h"
#include "command_load.h"
#include "durability/temporary_folder.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

// A `trellis serve`, up when made.
class ServerProcess {
 public:
  ServerProcess(const std::string& folder, const char* durability) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl(TRELLIS_BINARY, "trellis", "serve", "--data", folder.c_str(), "--durability",
              durability, "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--gc-life-time", "1ms",
              "--cache-bytes", "8MiB", "--log-level", "error", nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    std::string banner;
    char piece[1024];
    while (banner.find("Ctrl-C") == std::string::npos) {
      const ssize_t got = ::read(ends[0], piece, sizeof piece);
      if (got <= 0) break;
      banner.append(piece, static_cast<size_t>(got));
    }
    ::close(ends[0]);
    constexpr std::string_view before = "redis://127.0.0.1:";
    const size_t at = banner.find(before);
    if (at != std::string::npos)
      port_ = static_cast<uint16_t>(std::atoi(banner.c_str() + at + before.size()));
    EXPECT_NE(port_, 0) << "the server did not come up: " << banner;
  }
  ~ServerProcess() { kill(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  uint16_t port() const { return port_; }
  void kill() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "exit status " << status;
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

TEST(RedisKill9, NothingAcknowledgedIsMissing) {
  setup_log(LogLevel::error, LogFormat::text);
  Random random(test_seed(20261116));
  const TemporaryFolder folder;
  const std::string data = (folder.path() / "store").string();
  CommandLoad load;
  const uint64_t kills = test_scale() == "long" ? 100 : std::max<uint64_t>(test_rounds(6), 2);
  uint64_t acknowledged = 0;
  for (uint64_t i = 0; i < kills && !testing::Test::HasFailure(); i++) {
    SCOPED_TRACE(i);
    {
      const char* const durabilities[] = {"always", "everysec", "off"};
      ServerProcess server(data, durabilities[random.below(3)]);
      // So that kills come in the middle of writing, of starting to, of neither.
      const uint64_t answers = load.answers() + random.below(4'000);
      std::vector<std::thread> threads;
      for (size_t lane = 0; lane < CommandLoad::lanes; lane++)
        threads.emplace_back([&, lane, seed = random.next()] {
          SocketClient client(server.port());
          load.run_lane(client, lane, seed);
        });
      threads.emplace_back([&] {
        SocketClient client(server.port());
        load.run_flusher(client);
      });
      load.wait_for_answers(answers);
      server.kill();
      for (std::thread& thread : threads) thread.join();
    }
    for (size_t lane = 0; lane < CommandLoad::lanes; lane++) EXPECT_EQ(load.failure(lane), "gone");
    acknowledged += load.acknowledged_total();
    ServerProcess server(data, "always");
    SocketClient client(server.port());
    ASSERT_OK(load.check(client, load.promised()));
  }
  std::cout << fmt::format("{} kills, {} operations acknowledged\n", kills, acknowledged);
  EXPECT_GT(acknowledged, 0);
}

}  // namespace
}  // namespace trellis
