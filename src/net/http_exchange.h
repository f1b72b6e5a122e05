// A request that outlives the read that brought it: its body is not complete yet, or a worker
// handles it. The connection and the job that runs share it; while a job runs, what is below the
// line is the job's.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "net/http_types.h"
#include "net/router.h"

namespace trellis {

// Bounds the memory of bodies that are held whole, over all connections. Any thread.
class BodyBudget {
 public:
  explicit BodyBudget(size_t bytes_max) : bytes_max_(bytes_max) {}
  bool take(size_t bytes);
  void give(size_t bytes) { used_bytes_ -= bytes; }
  size_t used_bytes() const { return used_bytes_; }

 private:
  const size_t bytes_max_;
  std::atomic<size_t> used_bytes_{0};
};

class Exchange {
 public:
  explicit Exchange(BodyBudget& budget) : budget_(budget) {}
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Takes over a request whose views refer to `head`, to `peer` or to static text.
  void adopt(HttpRequest&& from, ByteView head, std::shared_ptr<const std::string> peer);

  // Appends to the body; false if the budget is used up. `bytes_max` is what the body may come to.
  bool append_body(ByteView piece, size_t bytes_max);

  // Jobs, one at a time. Exceptions become `has_thrown`.
  void handle();       // route->handle, and the start of its stream, if it has one
  void open();         // route->open
  void write_piece();  // sink->write(piece), and finish() after the last one
  void pull();         // source->next()

  const Route* route = nullptr;
  HttpRequest request;
  Waker waker;
  std::atomic<bool> is_abandoned{false};  // nobody waits for what a job gives: it need not start

  // ---
  Bytes piece;
  bool is_last_piece = false;
  std::unique_ptr<BodySink> sink;
  std::optional<HttpResponse> response;
  std::unique_ptr<BodySource> source;
  std::optional<Chunk> chunk;
  std::optional<Error> error;
  bool has_thrown = false;

 private:
  template <class Job>
  void guard(Job&& job);
  void start_source();

  BodyBudget& budget_;
  size_t charged_bytes_ = 0;
  Bytes head_;
  Bytes body_;
  std::shared_ptr<const std::string> peer_;
};

// Calls a handler; an exception becomes nothing, and a line in the log.
std::optional<HttpResponse> call_handler(const Route& route, const HttpRequest& request);

}  // namespace trellis
