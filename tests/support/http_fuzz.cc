#include "support/http_fuzz.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/random.h"
#include "net/http_parser.h"
#include "net/url.h"
#include "support/http_fuzz_driver.h"

namespace trellis {
namespace {

// Says what it got without repeating it, so that no request can forge a response.
HttpResponse digest(std::string_view what, ByteView bytes) {
  HttpResponse response;
  response.body =
      fmt::format("{} {} {:x}", what, bytes.size(), std::hash<std::string_view>()(bytes));
  return response;
}

// How often handlers ran, which must be how many responses with 200 there are.
size_t handled = 0;

class DigestSink final : public BodySink {
 public:
  Status write(ByteView piece) override {
    all_.append(piece);
    return {};
  }
  HttpResponse finish() override {
    ++handled;
    return digest("sink", all_);
  }

 private:
  Bytes all_;
};

class ThreePieces final : public BodySource {
 public:
  Result<Chunk> next() override {
    return Chunk{"piece", ++calls_ == 3 ? Chunk::Then::end : Chunk::Then::more};
  }

 private:
  int calls_ = 0;
};

std::vector<Route> routes() {
  const auto body = [](const HttpRequest& request) {
    ++handled;
    return digest(request.captures.empty() ? "" : percent_encode(request.captures[0]),
                  request.body);
  };
  const auto open = [](const HttpRequest&) -> Result<std::unique_ptr<BodySink>> {
    return std::make_unique<DigestSink>();
  };
  const auto stream = [](const HttpRequest&) {
    ++handled;
    HttpResponse response;
    response.stream = std::make_unique<ThreePieces>();
    return response;
  };
  using Method = HttpMethod;
  constexpr auto buffered = Route::Body::buffered;
  constexpr auto worker = Route::Runs::worker;
  return {
      {.method = Method::get, .pattern = "/hello", .handle = body},
      {.method = Method::get, .pattern = "/worker", .runs = worker, .handle = body},
      {.method = Method::get, .pattern = "/stream", .handle = stream},
      {.method = Method::put,
       .pattern = "/echo/{key*}",
       .body = buffered,
       .body_bytes_max = 100'000,
       .handle = body},
      {.method = Method::post,
       .pattern = "/worker-echo",
       .body = buffered,
       .body_bytes_max = 1000,
       .runs = worker,
       .handle = body},
      {.method = Method::put,
       .pattern = "/sink",
       .body = Route::Body::streamed,
       .body_bytes_max = 200'000,
       .open = open},
  };
}

struct Outcome {
  Bytes output;
  size_t handled = 0;
};

size_t count(ByteView text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != ByteView::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// 100 Continue depends on whether the body is there already, and may.
Bytes without_continue(Bytes text) {
  constexpr std::string_view part = "HTTP/1.1 100 Continue\r\n\r\n";
  for (size_t at = text.find(part); at != Bytes::npos; at = text.find(part, at)) {
    text.erase(at, part.size());
  }
  return text;
}

// `next_split` says how many bytes come next.
Outcome run(ByteView input, bool runs_jobs_at_once, const std::function<size_t()>& next_split) {
  static const Router router = Router::make(routes()).value();
  HttpServerOptions options;
  options.header_bytes_max = 2048;
  FakeClock clock(1'700'000'000'000);
  BodyBudget budget(1'000'000);
  ConnectionContext context{router, options, clock, budget};
  Outcome outcome;
  handled = 0;
  {
    ManualConnection connection(context, runs_jobs_at_once);
    while (!input.empty()) {
      const size_t size = std::clamp<size_t>(next_split(), 1, input.size());
      connection.feed(input.substr(0, size));
      input.remove_prefix(size);
    }
    connection.run_jobs();
    connection.feed_end();
    connection.run_jobs();
    ASSERT(connection.is_closed());
    outcome.output = without_continue(connection.output());
  }
  ASSERT(budget.used_bytes() == 0);
  outcome.handled = handled;
  return outcome;
}

}  // namespace

void fuzz_http(ByteView input) {
  uint64_t seed = 0;
  for (int i = 0; i < 4 && !input.empty(); ++i) {
    seed = seed << 8 | static_cast<unsigned char>(input[0]);
    input.remove_prefix(1);
  }
  Random random(seed);
  const Outcome whole = run(input, true, [] { return SIZE_MAX; });
  const Outcome bytes = run(input, true, [] { return size_t{1}; });
  const Outcome parts =
      run(input, false, [&random] { return 1 + random.below(1 + random.below(300)); });
  ASSERT(count(whole.output, "HTTP/1.1 200 ") == whole.handled);
  ASSERT(whole.output == bytes.output);
  ASSERT(whole.output == parts.output);
  ASSERT(whole.handled == bytes.handled);
  ASSERT(whole.handled == parts.handled);
}

void fuzz_http_text(ByteView input) {
  // An answer, as the client takes it.
  size_t searched = 0;
  if (const std::optional<size_t> end = find_head_end(input, searched)) {
    for (const bool to_head : {false, true}) {
      AnswerParser parser;
      std::vector<HttpHeader> headers;
      AnswerFraming framing;
      if (parser.parse_head(input.substr(0, *end), to_head, headers, framing).has_value()) continue;
      ByteView rest = input.substr(*end);
      bool is_done = framing.is_done;
      while (!rest.empty() && !is_done) {
        const BodyStep step = parser.parse_body(rest);
        if (step.problem.has_value() || step.consumed == 0) break;
        ASSERT(step.consumed <= rest.size() && step.body.size() <= step.consumed);
        rest.remove_prefix(step.consumed);
        is_done = step.is_done;
      }
    }
  }
  ASSERT(percent_decode(percent_encode(input)).value() == input);
  ASSERT(percent_decode(input).has_value() == is_percent_encoded(input));
  HttpRequest request;
  request.query = input;
  if (const auto names = query_names(request); names.has_value()) {
    for (const std::string& name : *names) {
      const auto value = query_value(request, name);
      ASSERT(!value.has_value() || value->has_value());
    }
  }
  if (const Result<BaseUrl> url = parse_base_url(input); url.has_value()) {
    const std::string again =
        fmt::format("{}://{}{}", url->secure ? "https" : "http", url->authority(), url->path);
    const BaseUrl twice = parse_base_url(again).value();
    ASSERT(twice.host == url->host && twice.port == url->port && twice.path == url->path);
  }
}

}  // namespace trellis
