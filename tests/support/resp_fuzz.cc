#include "support/resp_fuzz.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "engine/memory_engine.h"
#include "resp/resp_server.h"
#include "tenant/keyspaces.h"
#include "tenant/tokens.h"

namespace trellis {
namespace {

constexpr size_t input_bytes_max = 64 * 1024;
// A pipeline may ask for the same large value again and again.
constexpr size_t answer_bytes_max = 32 * 1024 * 1024;
constexpr uint64_t stored_bytes_max = 4 * 1024 * 1024;

// Replies that differ from one run to the next.
constexpr std::string_view never_the_same[] = {"rand",   "pop",  "info",    "debug",
                                               "memory", "dump", "latency", "slowlog"};

[[noreturn]] void fail(const char* what, ByteView one, ByteView other) {
  std::fprintf(stderr, "%s:\n%s\n%s\n", what, quote(one).c_str(), quote(other).c_str());
  std::abort();
}

class FakeLoop final : public StreamLoop {
 public:
  void at_end_of_turn(std::function<void()> function) override {
    ending_.push_back(std::move(function));
  }
  std::shared_ptr<LoopPoster> poster() override { return nullptr; }
  bool end_turn() {
    std::vector<std::function<void()>> ending;
    ending.swap(ending_);
    for (const auto& function : ending) function();
    return !ending.empty();
  }

 private:
  std::vector<std::function<void()>> ending_;
};

class FakeDriver final : public StreamDriver {
 public:
  void pump() override {
    while (connection != nullptr && !connection->output().empty()) {
      std::array<ByteView, 4> views;
      size_t bytes = 0;
      for (size_t i = 0, count = connection->output().peek(views); i < count; i++) {
        answers += views[i];
        bytes += views[i].size();
      }
      connection->output().consume(bytes);
      connection->sent();
    }
  }
  std::shared_ptr<LoopPoster> poster() override { return nullptr; }

  std::unique_ptr<StreamConnection> connection;
  Bytes answers;
};

// Everything of a server but its sockets.
class World {
 public:
  World() {
    setup_log(LogLevel::error, LogFormat::text);
    auto opened = Keyspaces::open(map_, {});
    if (!opened) std::abort();
    keyspaces_ = std::move(*opened);
    const Caller root{Role::server_admin, "root"};
    if (!keyspaces_->set_quota("DEFAULT", {.bytes = stored_bytes_max}, root)) std::abort();
    tokens_ = std::make_unique<Tokens>(map_, keyspaces_->changes());
    redis_ = std::make_unique<RedisServer>(*keyspaces_, *tokens_, RedisOptions());
    protocol_ = make_resp_protocol(*redis_, {})(loop_);
    driver_.connection =
        protocol_->make_connection(driver_, {.address = "127.0.0.1:1", .is_loopback = true});
  }
  ~World() { driver_.connection.reset(); }

  // All that is answered to bytes that come in pieces of up to so many.
  Bytes say(ByteView input, FunctionRef<size_t()> piece_bytes) {
    StreamConnection& connection = *driver_.connection;
    while (!connection.is_over() && driver_.answers.size() < answer_bytes_max) {
      driver_.pump();
      if (loop_.end_turn()) continue;
      const std::span<char> space = connection.input_space();
      if (input.empty() || space.empty()) break;
      const size_t bytes = std::min({piece_bytes(), space.size(), input.size()});
      std::copy_n(input.data(), bytes, space.data());
      input.remove_prefix(bytes);
      connection.received(bytes);
    }
    driver_.pump();
    if (!input.empty() && !connection.is_over() && driver_.answers.size() < answer_bytes_max)
      fail("it does not read on", input, driver_.answers);
    return std::move(driver_.answers);
  }

 private:
  MemoryEngine memory_;
  FakeClock clock_{1'700'000'000'000};
  Transactor transactor_{memory_, clock_};
  MapHandle map_{memory_, transactor_, clock_};
  std::unique_ptr<Keyspaces> keyspaces_;
  std::unique_ptr<Tokens> tokens_;
  std::unique_ptr<RedisServer> redis_;
  FakeLoop loop_;
  std::unique_ptr<StreamProtocol> protocol_;
  FakeDriver driver_;
};

bool may_differ(ByteView input) {
  std::string small(input);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  // Quoted words of lines may spell anything.
  return small.find('\\') != std::string::npos ||
         std::ranges::any_of(never_the_same, [&](std::string_view word) {
           return small.find(word) != std::string::npos;
         });
}

}  // namespace

void fuzz_resp(ByteView input) {
  if (input.size() < 2 || input.size() > input_bytes_max) return;
  Random random(static_cast<uint8_t>(input[0]) * 256U + static_cast<uint8_t>(input[1]));
  input.remove_prefix(2);
  const Bytes whole = World().say(input, [] { return input_bytes_max; });
  const Bytes in_pieces =
      World().say(input, [&] { return 1 + random.below(random.one_in(3) ? 3 : 60); });
  if (whole == in_pieces || may_differ(input)) return;
  if (whole.size() >= answer_bytes_max || in_pieces.size() >= answer_bytes_max) return;
  fail("the splits matter", whole, in_pieces);
}

}  // namespace trellis
