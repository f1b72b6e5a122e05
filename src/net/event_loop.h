// One thread that serves many connections. For net's own files: it names types of Asio.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

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
  virtual void tick() = 0;   // every sweep_ms
  virtual void stop() = 0;   // finish and close
  virtual void abort() = 0;  // close now

 private:
  friend class EventLoop;
  size_t index_ = 0;  // in the loop's members
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
  // Runs it after the handlers of all that is ready now.
  void at_end_of_turn(std::function<void()> function);

 private:
  void run();
  void end_turn();
  void sweep_later();

  boost::asio::io_context io_{1};
  std::shared_ptr<Mailbox> mailbox_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  boost::asio::steady_timer timer_;
  const uint32_t sweep_ms_;
  std::vector<std::shared_ptr<LoopMember>> members_;
  std::vector<std::function<void()>> at_end_of_turn_;
  std::vector<std::function<void()>> ending_;  // those that run: kept for its memory
  std::thread thread_;
};

}  // namespace trellis
