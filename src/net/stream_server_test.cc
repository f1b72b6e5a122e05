// A protocol of lines, through sockets: each line is answered with itself, at the end of the turn.
#include "net/stream_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "net/input_buffer.h"
#include "support/raw_socket.h"
#include "support/signal.h"
#include "support/test_certificate.h"

namespace trellis {
namespace {

constexpr size_t input_bytes_max = 64 * 1024;
constexpr size_t output_bytes_max = 256 * 1024;  // more is not made before some is sent

// What the test sees of the server, and does to it.
struct LineWorld {
  std::mutex mutex;
  std::vector<std::shared_ptr<LoopPoster>> loops;
  std::function<void()> release;  // of the connection that holds; any thread
  Signal holds;
  Signal is_full;
  Signal is_abandoned;
  std::atomic<size_t> output_bytes_seen{0};  // at most
  std::atomic<bool> was_released{false};
  bool lets_move = false;
  std::atomic<double> idle_cores{0};
};

class LineConnection;

// Runs the lines of all connections that became ready in one turn together.
class LineProtocol final : public StreamProtocol {
 public:
  LineProtocol(StreamLoop& loop, LineWorld& world)
      : loop_(loop), world_(world), number_(world.loops.size()) {
    const std::lock_guard lock(world.mutex);
    world.loops.push_back(loop.poster());
  }
  std::unique_ptr<StreamConnection> make_connection(StreamDriver& driver, StreamPeer peer) override;

  void join(LineConnection& connection);
  void leave(LineConnection& connection);
  void run_batch();
  LineWorld& world() { return world_; }
  bool lets_move() const override { return world_.lets_move; }
  size_t number() const { return number_; }

 private:
  StreamLoop& loop_;
  LineWorld& world_;
  const size_t number_;
  std::vector<LineConnection*> batch_;
  std::vector<LineConnection*> running_;  // null: left
};

// "batch": how many connections are in the batch; "hold": answers when released; "peer": who asks;
// "throw": fails; "loop": which one has it; "work": takes a while; all else: itself.
class LineConnection final : public StreamConnection {
 public:
  LineConnection(LineProtocol& protocol, StreamDriver& driver, StreamPeer peer)
      : protocol_(&protocol), driver_(driver), peer_(std::move(peer)) {}
  ~LineConnection() override { EXPECT_TRUE(is_abandoned_); }

  std::span<char> input_space() override {
    EXPECT_FALSE(has_end_ || is_over_);
    if (output_.size() < output_bytes_max) return input_.space(input_bytes_max);
    protocol_->world().is_full.set();
    return {};
  }
  void received(size_t bytes) override {
    input_.add(bytes);
    if (input_.data().starts_with("throw\n")) throw std::runtime_error("told to throw");
    join_if_ready();
    // Not waiting for the turn's end when there is much: pumps this connection, which is in hand.
    if (input_.size() > input_bytes_max / 2) protocol_->run_batch();
  }
  void received_end() override {
    has_end_ = true;
    join_if_ready();
    end_if_done();
  }
  OutputQueue& output() override { return output_; }
  void sent() override { join_if_ready(); }
  void refuse() override {
    output_.append("too many\n");
    is_over_ = true;
  }
  void stop() override {
    is_stopping_ = true;
    end_if_done();
  }
  void abandon() override {
    protocol_->leave(*this);
    is_abandoned_ = true;
    protocol_->world().is_abandoned.set();
  }
  void tick(size_t) override {}
  bool is_idle() const override { return input_.empty() && output_.empty() && !is_holding_; }
  bool is_over() const override { return is_over_; }
  bool is_broken() const override { return false; }
  bool leave() override {
    if (!is_idle() || !protocol_->lets_move()) return false;
    protocol_->leave(*this);
    return true;
  }
  void join(StreamProtocol& protocol) override {
    protocol_ = &static_cast<LineProtocol&>(protocol);
  }

  void run(size_t batch_size) {
    while (has_line() && output_.size() < output_bytes_max) {
      const ByteView data = input_.data();
      const size_t size = std::min(data.find('\n'), data.size());
      answer(data.substr(0, size), batch_size);
      input_.consume(std::min(size + 1, data.size()));
    }
    std::atomic<size_t>& seen = protocol_->world().output_bytes_seen;
    seen = std::max(seen.load(), output_.size());
    end_if_done();
  }
  StreamDriver& driver() { return driver_; }

  bool is_joined = false;

 private:
  bool has_line() const {
    if (is_holding_) return false;
    return input_.data().find('\n') != ByteView::npos || (has_end_ && !input_.empty());
  }
  void join_if_ready() {
    if (has_line() && output_.size() < output_bytes_max) protocol_->join(*this);
  }
  void end_if_done() {
    if ((has_end_ || is_stopping_) && !has_line() && !is_holding_) is_over_ = true;
  }
  void answer(ByteView line, size_t batch_size) {
    if (line == "batch") return output_.append(fmt::format("{}\n", batch_size));
    if (line == "peer") {
      return output_.append(fmt::format("{} {} {}\n", peer_.address,
                                        peer_.is_loopback ? "loopback" : "remote",
                                        peer_.secure ? "secure" : "plain"));
    }
    if (line == "loop") return output_.append(fmt::format("{}\n", protocol_->number()));
    if (line == "work") work();
    if (line == "hold") return hold();
    output_.append(line);
    output_.append("\n");
  }
  static void work() {  // for longer than the load of a loop is counted for
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(60)) continue;
  }
  void hold() {
    is_holding_ = true;
    LineWorld& world = protocol_->world();
    {
      const std::lock_guard lock(world.mutex);
      world.release = [this, &world, poster = driver_.poster()] {
        poster->post([this, &world] {
          world.was_released = true;
          is_holding_ = false;
          output_.append("released\n");
          join_if_ready();
          end_if_done();
        });
      };
    }
    world.holds.set();
  }

  LineProtocol* protocol_;
  StreamDriver& driver_;
  const StreamPeer peer_;
  InputBuffer input_;
  OutputQueue output_;
  bool has_end_ = false;
  bool is_holding_ = false;
  bool is_stopping_ = false;
  bool is_over_ = false;
  bool is_abandoned_ = false;
};

std::unique_ptr<StreamConnection> LineProtocol::make_connection(StreamDriver& driver,
                                                                StreamPeer peer) {
  return std::make_unique<LineConnection>(*this, driver, std::move(peer));
}

void LineProtocol::join(LineConnection& connection) {
  if (std::exchange(connection.is_joined, true)) return;
  if (batch_.empty()) loop_.at_end_of_turn([this] { run_batch(); });
  batch_.push_back(&connection);
}

void LineProtocol::leave(LineConnection& connection) {
  std::erase(batch_, &connection);
  std::replace(running_.begin(), running_.end(), &connection,
               static_cast<LineConnection*>(nullptr));
}

void LineProtocol::run_batch() {
  running_.swap(batch_);
  for (LineConnection* connection : running_) {
    connection->is_joined = false;
    connection->run(running_.size());
  }
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i] != nullptr) running_[i]->driver().pump();
  }
  running_.clear();
}

class StreamServerTest : public ::testing::Test {
 protected:
  StreamServerTest() {
    options_.listeners = {{"127.0.0.1", 0}};
    options_.loops = 2;
    options_.sweep_ms = 10;
  }

  Result<std::unique_ptr<StreamServer>> start_with(StreamServerOptions options) {
    return StreamServer::start(
        [this](StreamLoop& loop) { return std::make_unique<LineProtocol>(loop, world_); },
        std::move(options), clock_);
  }
  void start() {
    Result<std::unique_ptr<StreamServer>> server = start_with(options_);
    ASSERT_TRUE(server.has_value()) << server.error().message;
    server_ = std::move(*server);
    port_ = server_->ports().at(0);
  }
  void release() {
    const std::lock_guard lock(world_.mutex);
    world_.release();
  }

  static std::string ask(RawSocket& socket, const std::string& line) {
    socket.send(line + "\n");
    return socket.receive_until("\n");
  }

  TempFolder folder_;
  const std::string path_ = folder_.file("lines.sock");
  SystemClock clock_;
  Registry registry_;
  LineWorld world_;
  StreamServerOptions options_;
  std::unique_ptr<StreamServer> server_;
  uint16_t port_ = 0;
};

TEST_F(StreamServerTest, ServesAndCounts) {
  options_.metrics = StreamMetrics{registry_.gauge("connections", "c").value(),
                                   registry_.counter("received", "r").value(),
                                   registry_.counter("sent", "s").value()};
  start();
  RawSocket socket(port_);
  EXPECT_EQ(ask(socket, "hello"), "hello\n");
  EXPECT_EQ(options_.metrics->connections.value(), 1);
  const std::string peer = ask(socket, "peer");
  EXPECT_TRUE(peer.starts_with("127.0.0.1:")) << peer;
  EXPECT_TRUE(peer.ends_with(" loopback plain\n")) << peer;
  server_->stop();
  EXPECT_EQ(options_.metrics->connections.value(), 0);
  EXPECT_EQ(options_.metrics->received_bytes.value(), 11U);
  EXPECT_EQ(options_.metrics->sent_bytes.value(), 6 + peer.size());
}

std::string many_lines() {
  std::string lines;
  for (int i = 0; i < 100'000; ++i) lines += fmt::format("line {}\n", i);
  return lines;
}

void expect_pipelined(RawSocket& socket) {
  const std::string lines = many_lines();
  std::thread sender([&] {
    EXPECT_TRUE(socket.send(lines));
    socket.end_of_requests();
  });
  const std::string answers = socket.receive_all();
  sender.join();
  EXPECT_TRUE(answers == lines) << answers.size() << " of " << lines.size() << " bytes";
}

TEST_F(StreamServerTest, PipelinedLinesKeepTheirOrder) {
  options_.listeners.push_back({.unix_path = path_});
  start();
  RawSocket tcp(port_);
  expect_pipelined(tcp);
  RawSocket local(path_);
  expect_pipelined(local);
}

TEST_F(StreamServerTest, WhatIsReadyInOneTurnIsOneBatch) {
  options_.loops = 1;
  options_.listeners.push_back({.unix_path = path_});
  start();
  std::vector<std::unique_ptr<RawSocket>> sockets;
  for (int i = 0; i < 20; ++i) {
    if (i % 2 == 0) {
      sockets.push_back(std::make_unique<RawSocket>(port_));
    } else {
      sockets.push_back(std::make_unique<RawSocket>(path_));
    }
    EXPECT_EQ(ask(*sockets.back(), "batch"), "1\n");
  }
  for (int round = 0; round < 10; ++round) {
    Signal is_blocked;
    Signal may_go_on;
    world_.loops.at(0)->post([&] {
      is_blocked.set();
      may_go_on.wait();
    });
    ASSERT_TRUE(is_blocked.wait());
    for (const auto& socket : sockets) socket->send("batch\nbatch\n");
    may_go_on.set();
    for (const auto& socket : sockets) {
      EXPECT_EQ(socket->receive_until("\n"), "20\n");
      EXPECT_EQ(socket->receive_until("\n"), "20\n");
    }
  }
}

TEST_F(StreamServerTest, EachLoopHasItsProtocol) {
  options_.loops = 3;
  start();
  EXPECT_EQ(world_.loops.size(), 3U);
  std::vector<std::thread> clients;
  for (int client = 0; client < 12; ++client) {
    clients.emplace_back([this, client] {
      RawSocket socket(port_);
      for (int i = 0; i < 100; ++i) {
        const std::string line = fmt::format("{} {}", client, i);
        EXPECT_EQ(ask(socket, line), line + "\n");
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

// --- connections that move ---

class MovingTest : public StreamServerTest {
 protected:
  using Sockets = std::vector<std::unique_ptr<RawSocket>>;

  MovingTest() {
    world_.lets_move = true;
    options_.idle_cores = [this] { return world_.idle_cores.load(); };
    start();
    for (int i = 0; i < 20; ++i) sockets_.push_back(std::make_unique<RawSocket>(port_));
  }

  size_t on_second_loop() {
    return static_cast<size_t>(std::ranges::count_if(
        sockets_, [](const auto& socket) { return ask(*socket, "loop") == "1\n"; }));
  }
  // Until so many are on the second loop. The time that it takes depends on the machine.
  bool comes_to(size_t wanted, bool works) {
    for (int tries = 0; tries < 2'000; ++tries) {
      if (on_second_loop() == wanted) return true;
      if (!works) continue;
      EXPECT_EQ(ask(*sockets_[0], "work\nwork"), "work\n");
      EXPECT_EQ(sockets_[0]->receive_until("\n"), "work\n");
    }
    return false;
  }

  Sockets sockets_;
};

TEST_F(MovingTest, OneLoopServesUntilItIsBusyAndACoreIsIdle) {
  EXPECT_EQ(on_second_loop(), 0U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(*sockets_[0], "work"), "work\n");
  EXPECT_EQ(on_second_loop(), 0U);
  world_.idle_cores = 1;
  EXPECT_TRUE(comes_to(10, true));
  RawSocket new_ones[2] = {RawSocket(port_), RawSocket(port_)};
  EXPECT_NE(ask(new_ones[0], "loop"), ask(new_ones[1], "loop"));
  world_.idle_cores = 0;
  for (RawSocket& socket : new_ones) socket.close();
  EXPECT_TRUE(comes_to(0, false));
}

TEST_F(MovingTest, WhatIsPostedFindsThem) {
  for (int round = 0; round < 2; ++round) {
    for (const auto& socket : sockets_) {
      EXPECT_EQ(ask(*socket, "a\nhold"), "a\n");  // is sent when both were run
      release();
      EXPECT_EQ(socket->receive_until("\n"), "released\n");
    }
    world_.idle_cores = 1;
    ASSERT_TRUE(comes_to(10, true));
  }
}

TEST_F(MovingTest, NothingIsLostWhileTheyMove) {
  std::atomic<bool> ends{false};
  std::vector<std::thread> clients;
  for (const auto& socket : sockets_) {
    clients.emplace_back([&ends, &socket] {
      for (int i = 0; !ends; ++i) {
        const std::string line = fmt::format("line {}", i);
        EXPECT_EQ(ask(*socket, line), line + "\n");
      }
    });
  }
  RawSocket worker(port_);
  for (int i = 0; i < 20; ++i) {
    world_.idle_cores = i % 2;
    EXPECT_EQ(ask(worker, "work"), "work\n");
  }
  ends = true;
  for (std::thread& client : clients) client.join();
  world_.idle_cores = 1;
  worker.send("work\nwork\n");
  server_->stop();  // perhaps while some are on their way
  for (const auto& socket : sockets_) EXPECT_EQ(socket->receive_all(), "");
}

TEST_F(StreamServerTest, HalfAConnectionIsEnoughForAnAnswer) {
  options_.listeners.push_back({.unix_path = path_});
  start();
  RawSocket tcp(port_);
  RawSocket local(path_);
  for (RawSocket* socket : {&tcp, &local}) {
    socket->send("a\nb");
    socket->end_of_requests();
    EXPECT_EQ(socket->receive_all(), "a\nb\n");
    EXPECT_FALSE(socket->was_reset());
  }
  RawSocket silent(port_);
  silent.end_of_requests();
  EXPECT_EQ(silent.receive_all(), "");
  // The answer is made long after the end of input.
  RawSocket held(port_);
  held.send("hold\n");
  held.end_of_requests();
  ASSERT_TRUE(world_.holds.wait());
  release();
  EXPECT_EQ(held.receive_all(), "released\n");
}

TEST_F(StreamServerTest, WhoDoesNotReadIsNotReadFrom) {
  start();
  RawSocket socket(port_, 4096);
  std::string lines;
  while (lines.size() < (32U << 20)) lines += "a line that comes back when somebody wants it\n";
  std::thread sender([&] {
    EXPECT_TRUE(socket.send(lines));
    socket.end_of_requests();
  });
  EXPECT_TRUE(world_.is_full.wait());
  const std::string answers = socket.receive_all();
  sender.join();
  EXPECT_TRUE(answers == lines) << answers.size();
  EXPECT_LE(world_.output_bytes_seen, output_bytes_max + input_bytes_max);
}

TEST_F(StreamServerTest, ConnectionsOverTheLimitAreRefused) {
  options_.connections_max = 2;
  start();
  {
    RawSocket first(port_);
    RawSocket second(port_);
    EXPECT_EQ(ask(first, "a"), "a\n");
    EXPECT_EQ(ask(second, "b"), "b\n");
    RawSocket third(port_);
    third.send("c\n");
    EXPECT_EQ(third.receive_all(), "too many\n");
    EXPECT_FALSE(third.was_reset());
    EXPECT_EQ(ask(first, "d"), "d\n");
  }
  // Places become free again.
  std::string answer;
  while (answer != "e\n") {
    RawSocket later(port_);
    answer = ask(later, "e");
  }
}

TEST_F(StreamServerTest, WhatThrowsEndsItsConnectionOnly) {
  const LogCapture log;
  options_.loops = 1;
  start();
  RawSocket good(port_);
  EXPECT_EQ(ask(good, "a"), "a\n");
  RawSocket bad(port_);
  bad.send("throw\n");
  EXPECT_EQ(bad.receive_all(), "");
  EXPECT_TRUE(bad.was_reset());
  world_.loops.at(0)->post([] { throw std::runtime_error("and this"); });
  EXPECT_EQ(ask(good, "b"), "b\n");
  EXPECT_TRUE(log.contains("told to throw"));
}

TEST_F(StreamServerTest, WhatIsPostedTooLateIsNotRun) {
  start();
  {
    RawSocket socket(port_);
    socket.send("hold\n");
    ASSERT_TRUE(world_.holds.wait());
    socket.send("throw\n");  // ends it
  }
  ASSERT_TRUE(world_.is_abandoned.wait());
  release();
  RawSocket socket(port_);
  EXPECT_EQ(ask(socket, "a"), "a\n");
  server_->stop();
  release();  // nor when the loop is gone
  world_.loops.at(0)->post([this] { world_.was_released = true; });
  EXPECT_FALSE(world_.was_released);
}

// --- start and stop ---

TEST_F(StreamServerTest, StopClosesTheIdleAndLetsTheBusyFinish) {
  options_.loops = 1;
  options_.listeners.push_back({.unix_path = path_});
  start();
  RawSocket idle(port_);
  RawSocket local(path_);
  EXPECT_EQ(ask(idle, "a"), "a\n");
  EXPECT_EQ(ask(local, "a"), "a\n");
  RawSocket busy(port_);
  busy.send("hold\nafter\n");
  ASSERT_TRUE(world_.holds.wait());
  std::thread stopper([this] { server_->stop(); });
  EXPECT_EQ(idle.receive_all(), "");
  EXPECT_EQ(local.receive_all(), "");
  EXPECT_FALSE(RawSocket(port_).is_connected());
  EXPECT_FALSE(std::filesystem::exists(path_));
  release();
  EXPECT_EQ(busy.receive_all(), "released\nafter\n");
  busy.close();
  stopper.join();
  server_->stop();  // again
}

TEST_F(StreamServerTest, StopBreaksOffWhatTakesTooLong) {
  const LogCapture log;
  options_.stop_ms = 50;
  start();
  RawSocket busy(port_);
  busy.send("hold\n");
  ASSERT_TRUE(world_.holds.wait());
  server_->stop();
  EXPECT_EQ(busy.receive_all(), "");
  EXPECT_TRUE(busy.was_reset());
  EXPECT_TRUE(log.contains("broken off"));
}

TEST_F(StreamServerTest, WhoStaysAfterTheEndIsClosed) {
  options_.linger_ms = 50;
  options_.connections_max = 0;
  start();
  RawSocket refused(port_);
  EXPECT_EQ(refused.receive_all(), "too many\n");
  ASSERT_TRUE(world_.is_abandoned.wait());
}

TEST_F(StreamServerTest, WhatCannotBeServedIsRefusedAtTheStart) {
  start();
  EXPECT_FALSE(start_with({}).has_value());
  EXPECT_FALSE(start_with({.listeners = {{"127.0.0.1", port_}}}).has_value());
  EXPECT_FALSE(start_with({.listeners = {{"127.0.0.1", 0, true}}}).has_value());
  EXPECT_FALSE(start_with({.listeners = {{.unix_path = folder_.file("none/a.sock")}}}).has_value());
  const auto too_long = start_with({.listeners = {{.unix_path = std::string(108, 'a')}}});
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().code, Code::invalid);
}

// --- Unix sockets ---

class UnixSocketTest : public StreamServerTest {
 protected:
  UnixSocketTest() { options_.listeners = {{.unix_path = path_}}; }

  void expect_serving() {
    RawSocket socket(path_);
    EXPECT_EQ(ask(socket, "a"), "a\n");
  }
  unsigned mode() const {
    struct stat status {};
    return stat(path_.c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
  }
};

TEST_F(UnixSocketTest, IsForItsOwnerUnlessTold) {
  start();
  EXPECT_EQ(port_, 0);
  RawSocket socket(path_);
  EXPECT_EQ(ask(socket, "peer"), fmt::format("unix:{} loopback plain\n", path_));
  EXPECT_EQ(mode(), 0600U);
  server_->stop();
  EXPECT_FALSE(std::filesystem::exists(path_));
  options_.listeners[0].unix_mode = 0666;
  start();
  EXPECT_EQ(mode(), 0666U);
}

TEST_F(UnixSocketTest, AStaleFileIsReplaced) {
  {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ::close(fd);
  }
  ASSERT_TRUE(std::filesystem::exists(path_));
  start();
  expect_serving();
}

TEST_F(UnixSocketTest, AnotherServersFileStays) {
  start();
  const auto second = start_with(options_);
  ASSERT_FALSE(second.has_value());
  EXPECT_NE(second.error().message.find("another server"), std::string::npos);
  expect_serving();
  // Nor does it remove what was put in its place.
  std::filesystem::remove(path_);
  const auto third = start_with(options_);
  ASSERT_TRUE(third.has_value());
  server_->stop();
  expect_serving();
}

TEST_F(UnixSocketTest, AFileThatIsNoSocketStays) {
  std::ofstream(path_) << "precious";
  const auto refused = start_with(options_);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("no socket"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(path_), 8U);
}

// --- TLS ---

class TlsClient {
 public:
  explicit TlsClient(uint16_t port, std::string_view alpn = "")
      : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        ssl_(SSL_new(context_.get()), SSL_free) {
    if (!alpn.empty()) {
      SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(alpn.data()),
                          static_cast<unsigned>(alpn.size()));
    }
    BIO* bio = BIO_new_connect(fmt::format("127.0.0.1:{}", port).c_str());
    SSL_set_bio(ssl_.get(), bio, bio);
    is_connected_ = SSL_connect(ssl_.get()) == 1;
  }
  bool is_connected() const { return is_connected_; }
  bool send(std::string_view bytes) {
    return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  void end_of_requests() { SSL_shutdown(ssl_.get()); }
  std::string receive(size_t bytes) {  // fewer only at the end
    std::string all(bytes, '\0');
    size_t got = 0;
    for (int part = 1; got < bytes && part > 0; got += static_cast<size_t>(std::max(part, 0))) {
      part = SSL_read(ssl_.get(), all.data() + got, static_cast<int>(bytes - got));
    }
    all.resize(got);
    return all;
  }
  std::string alpn() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }

 private:
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  bool is_connected_ = false;
};

class StreamTlsTest : public StreamServerTest {
 protected:
  StreamTlsTest() {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's own sockets raise it when the server closes
    const std::string cert = folder_.file("cert.pem");
    const std::string key = folder_.file("key.pem");
    write_certificate(cert, key, 1);
    options_.listeners = {{"127.0.0.1", 0, true}};
    options_.tls = TlsFiles{cert, key};
  }
};

TEST_F(StreamTlsTest, PipelinedLinesKeepTheirOrder) {
  start();
  TlsClient client(port_);
  ASSERT_TRUE(client.is_connected());
  const std::string lines = many_lines();
  constexpr size_t piece_bytes = 100'000;  // what both sides hold between them without a reader
  for (size_t at = 0; at < lines.size(); at += piece_bytes) {
    const std::string piece = lines.substr(at, piece_bytes);
    ASSERT_TRUE(client.send(piece));
    // What is behind the last line's end comes back with the next piece.
    if (at == 0) continue;
    ASSERT_TRUE(client.receive(piece_bytes) == lines.substr(at - piece_bytes, piece_bytes));
  }
  const std::string rest = lines.substr((lines.size() - 1) / piece_bytes * piece_bytes);
  EXPECT_EQ(client.receive(rest.size()), rest);
  client.send("peer\nlast");
  client.end_of_requests();
  const std::string peer = client.receive(1000);
  EXPECT_TRUE(peer.ends_with(" loopback secure\nlast\n")) << peer;
}

TEST_F(StreamTlsTest, TheProtocolsNameIsItsOwn) {
  constexpr std::string_view offers = "\x08http/1.1\x05lines";
  start();
  EXPECT_EQ(TlsClient(port_, offers).alpn(), "");
  options_.alpn = "lines";
  start();
  EXPECT_EQ(TlsClient(port_, offers).alpn(), "lines");
  EXPECT_TRUE(TlsClient(port_, "\x02h2").is_connected());
}

TEST_F(StreamTlsTest, WhoDoesNotShakeHandsIsClosed) {
  options_.open_ms = 50;
  start();
  RawSocket silent(port_);
  EXPECT_EQ(silent.receive_all(), "");
}

TEST_F(StreamTlsTest, ConnectionsOverTheLimitAreClosed) {
  options_.connections_max = 1;
  start();
  TlsClient first(port_);
  EXPECT_TRUE(first.is_connected());
  EXPECT_FALSE(TlsClient(port_).is_connected());
  first.send("a\n");
  EXPECT_EQ(first.receive(2), "a\n");
}

TEST_F(StreamTlsTest, StopClosesTheIdleAndLetsTheBusyFinish) {
  start();
  TlsClient idle(port_);
  TlsClient busy(port_);
  ASSERT_TRUE(idle.is_connected());
  busy.send("hold\n");
  ASSERT_TRUE(world_.holds.wait());
  std::thread stopper([this] { server_->stop(); });
  EXPECT_EQ(idle.receive(1), "");
  release();
  EXPECT_EQ(busy.receive(1000), "released\n");
  busy.end_of_requests();
  stopper.join();
}

}  // namespace
}  // namespace trellis
