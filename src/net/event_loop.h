// One thread that serves many connections. For net's own files: it names types of Asio.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "net/loop_poster.h"

namespace trellis {

// Functions for a loop to run, from any thread. Shared by all that may post, some of whom outlive
// the loop: after close() a function is destroyed instead.
class Mailbox final : public LoopPoster, public std::enable_shared_from_this<Mailbox> {
 public:
  explicit Mailbox(boost::asio::io_context& io) : io_(&io) {}
  void post(std::function<void()> function) override;
  void close();

 private:
  void run();

  std::mutex mutex_;
  std::vector<std::function<void()>> queue_;
  boost::asio::io_context* io_;  // null: closed
};

// What a loop keeps: a connection with its socket.
class LoopMember {
 public:
  virtual ~LoopMember() = default;
  virtual void ready(uint32_t) {}  // what epoll says of its socket: see EventLoop::watch
  virtual void tick() = 0;         // every sweep_ms
  virtual void stop() = 0;         // finish and close
  virtual void abort() = 0;        // close now

 private:
  friend class EventLoop;
  size_t index_ = 0;  // in the loop's members
};

// What a loop did since it was last asked.
struct LoopLoad {
  double busy = 0;      // the share of the time that was spent in turns
  uint64_t served = 0;  // members that were ready
};

class EventLoop {
 public:
  explicit EventLoop(uint32_t sweep_ms);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  void start();
  // When all that it still has to do is done, its thread ends. Members must be gone before.
  void finish();

  boost::asio::io_context& io() { return io_; }
  const std::shared_ptr<Mailbox>& mailbox() const { return mailbox_; }

  // On the loop's thread only.
  void add(std::shared_ptr<LoopMember> member);
  void remove(LoopMember& member);
  void for_each(void (LoopMember::*action)());
  // From now on until it is closed, the socket's member is told when it can be read or written:
  // edge by edge, as epoll does, so each is told once. All that are ready are told in one turn, and
  // with one system call, which Asio would need two of for each of them.
  bool watch(int socket, uint32_t events, LoopMember& member);
  void change_watch(int socket, uint32_t events, LoopMember& member);
  void end_watch(int socket);
  // Runs it after the handlers of all that is ready now.
  void at_end_of_turn(std::function<void()> function);
  // Calls it now and then while there are turns, between two of them. Before start().
  void on_load(std::function<void(const LoopLoad&)> function) { on_load_ = std::move(function); }
  // Until the visitor says false. What it may do to members is to remove the one that it visits.
  void visit(FunctionRef<bool(LoopMember&)> visitor);

 private:
  using Time = std::chrono::steady_clock::time_point;

  void run();
  void set_crowded(bool is_crowded);
  void poll_later();
  size_t look();
  void wait_for_more();
  bool poll();
  void end_turn();
  void count_load(Time turn_start);
  void sweep_later();

  boost::asio::io_context io_{1};
  std::shared_ptr<Mailbox> mailbox_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  boost::asio::steady_timer timer_;
  const uint32_t sweep_ms_;
  std::vector<std::shared_ptr<LoopMember>> members_;
  bool is_crowded_ = false;
  bool is_batch_thread_ = false;  // because of that
  std::vector<std::function<void()>> at_end_of_turn_;
  std::vector<std::function<void()>> ending_;  // those that run: kept for its memory
  boost::asio::posix::stream_descriptor poller_;
  std::array<epoll_event, 512> ready_;
  size_t ready_count_ = 0;  // while they are told
  uint32_t turns_until_yield_ = 0;
  std::function<void(const LoopLoad&)> on_load_;  // may be empty
  Time load_since_;
  std::chrono::steady_clock::duration busy_{};  // since then
  uint64_t served_ = 0;
  std::thread thread_;
};

}  // namespace trellis
