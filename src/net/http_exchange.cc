#include "net/http_exchange.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <utility>

#include "base/log.h"
#include "base/no_wait.h"

namespace trellis {
namespace {

constexpr size_t body_bytes_first = 16 * 1024;

void log_exception(std::string_view pattern) {
  try {
    throw;
  } catch (const std::exception& error) {
    log_error("a handler threw", {{"route", pattern}, {"what", error.what()}});
  } catch (...) {
    log_error("a handler threw", {{"route", pattern}});
  }
}

// Moves a view from one block of bytes to a copy of it; leaves those that refer elsewhere.
void rebase(std::string_view& view, ByteView from, const Bytes& to) {
  if (std::greater_equal<>()(view.data(), from.data()) &&
      std::less_equal<>()(view.data() + view.size(), from.data() + from.size())) {
    view = {to.data() + (view.data() - from.data()), view.size()};
  }
}

}  // namespace

bool BodyBudget::take(size_t bytes) {
  if (used_bytes_.fetch_add(bytes) + bytes <= bytes_max_) return true;
  used_bytes_ -= bytes;
  return false;
}

Exchange::~Exchange() {
  // They may refer to the request.
  source.reset();
  sink.reset();
  response.reset();
  budget_.give(charged_bytes_);
}

void Exchange::adopt(HttpRequest&& from, ByteView head, std::shared_ptr<const std::string> peer) {
  request = std::move(from);
  head_ = head;
  peer_ = std::move(peer);
  rebase(request.target, head, head_);
  rebase(request.path, head, head_);
  rebase(request.query, head, head_);
  for (HttpHeaderView& header : request.headers) {
    rebase(header.name, head, head_);
    rebase(header.value, head, head_);
  }
}

bool Exchange::append_body(ByteView piece, size_t bytes_max) {
  const size_t size = body_.size() + piece.size();
  if (size > charged_bytes_) {
    // By what came, not by what was announced: an announcement costs its sender nothing.
    const size_t capacity =
        std::max(size, std::min(bytes_max, std::max(2 * charged_bytes_, body_bytes_first)));
    if (!budget_.take(capacity - charged_bytes_)) return false;
    charged_bytes_ = capacity;
    body_.reserve(capacity);
  }
  body_.append(piece);
  request.body = body_;
  return true;
}

template <class Job>
void Exchange::guard(Job&& job) {
  try {
    job();
  } catch (...) {
    log_exception(route->pattern);
    has_thrown = true;
  }
}

void Exchange::start_source() {
  source = std::move(response->stream);
  source->on_start(waker);
  pull();
}

void Exchange::handle() {
  guard([this] {
    if (!response.has_value()) response = route->handle(request);
    // The first piece goes with it: one job less, and an error can still become a response.
    if (response->stream != nullptr && request.method != HttpMethod::head) start_source();
  });
}

void Exchange::open() {
  guard([this] {
    Result<std::unique_ptr<BodySink>> opened = route->open(request);
    if (opened.has_value()) {
      sink = std::move(*opened);
    } else {
      error = std::move(opened.error());
    }
  });
}

void Exchange::write_piece() {
  guard([this] {
    if (!piece.empty()) {
      if (Status written = sink->write(piece); !written.has_value()) {
        error = std::move(written.error());
        return;
      }
    }
    if (is_last_piece) {
      response = sink->finish();
      handle();
    }
  });
}

void Exchange::pull() {
  guard([this] {
    Result<Chunk> next = source->next();
    if (next.has_value()) {
      chunk = std::move(*next);
    } else {
      error = std::move(next.error());
    }
  });
}

std::optional<HttpResponse> call_handler(const Route& route, const HttpRequest& request) {
  const NoWait no_wait;
  try {
    return route.handle(request);
  } catch (...) {
    log_exception(route.pattern);
    return std::nullopt;
  }
}

}  // namespace trellis
