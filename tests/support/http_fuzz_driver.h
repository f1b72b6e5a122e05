// A connection of net without a socket: the test gives the bytes, runs the jobs and owns the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "net/http_connection.h"
#include "net/wake_target.h"

namespace trellis {

class ManualConnection : public ConnectionDriver {
 public:
  explicit ManualConnection(ConnectionContext& context, bool runs_jobs_at_once = true)
      : connection_(context, *this, {"192.0.2.1:4711", false, false}),
        runs_jobs_at_once_(runs_jobs_at_once) {}

  // Feeds all, as far as it is taken; what comes out is added to output().
  void feed(ByteView bytes) {
    while (!bytes.empty()) {
      const std::span<char> space = connection_.input_space();
      if (space.empty()) {
        if (!run_job()) return;
        continue;
      }
      const size_t size = std::min(space.size(), bytes.size());
      std::copy_n(bytes.data(), size, space.data());
      bytes.remove_prefix(size);
      connection_.received(size);
      settle();
    }
  }

  void feed_end() {
    connection_.received_end();
    settle();
  }

  // Runs the oldest job that waits; false if there is none.
  bool run_job() {
    if (jobs_.empty()) return false;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    job();
    connection_.worked();
    take_output();
    return true;
  }

  void run_jobs() {
    while (run_job()) {
    }
  }

  void tick() {
    connection_.tick(0);
    settle();
  }

  void take_output() {
    while (takes_output && !connection_.output().empty()) {
      std::array<ByteView, 3> views;
      const size_t count = connection_.output().peek(views);
      size_t size = 0;
      for (size_t i = 0; i < count; ++i) {
        output_.append(views[i]);
        size += views[i].size();
      }
      connection_.output().consume(size);
      connection_.sent();
    }
  }

  void settle() {
    take_output();
    if (runs_jobs_at_once_) run_jobs();
  }

  HttpConnection& connection() { return connection_; }
  const Bytes& output() const { return output_; }
  bool is_closed() const { return connection_.is_over(); }
  size_t disposed() const { return disposed_; }

  bool takes_output = true;

 private:
  class Target final : public WakeTarget {
   public:
    Target(ManualConnection& owner, uint64_t stream) : owner_(owner), stream_(stream) {}
    void wake() override {
      owner_.connection_.woken(stream_);
      owner_.settle();
    }

   private:
    ManualConnection& owner_;
    const uint64_t stream_;
  };

  void offload(std::function<void()> job, uint64_t) override { jobs_.push_back(std::move(job)); }
  void dispose(std::shared_ptr<Exchange> exchange) override {
    exchange.reset();
    ++disposed_;
  }
  std::shared_ptr<WakeTarget> wake_target(uint64_t stream) override {
    return std::make_shared<Target>(*this, stream);
  }

  std::deque<std::function<void()>> jobs_;
  size_t disposed_ = 0;
  Bytes output_;
  HttpConnection connection_;
  const bool runs_jobs_at_once_;
};

}  // namespace trellis
