// For tests: the routes of rest over a map in memory, asked without a socket.
//
//   Answer answer = ask({.method = HttpMethod::put, .target = "/v1/raw/keys/a", .body = "1"});
//   EXPECT_EQ(answer.status, 204);
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "catalog/catalog.h"
#include "engine/memory_engine.h"
#include "fs/file_systems.h"
#include "net/ascii.h"
#include "net/router.h"
#include "net/url.h"
#include "range/embedded_ranges.h"
#include "rest/rest.h"
#include "support/expect_ok.h"
#include "support/recording_engine.h"
#include "tenant/collector.h"

namespace trellis {

struct Ask {
  HttpMethod method = HttpMethod::get;
  std::string target = {};
  std::string body = {};
  std::string token = {};  // empty: none is sent
  std::vector<HttpHeader> headers = {};
  bool is_local = true;
};

struct Answer {
  unsigned status = 0;
  std::string content_type;
  std::vector<HttpHeader> headers;
  Bytes body;

  std::string header(std::string_view name) const {
    for (const HttpHeader& header : headers) {
      if (equals_ignoring_case(header.name, name)) return header.value;
    }
    return {};
  }
  // Null, and a failed test, if the body is no JSON.
  boost::json::value json() const {
    boost::system::error_code failure;
    boost::json::value value = boost::json::parse(body, failure);
    EXPECT_FALSE(failure) << body;
    return value;
  }
  // Of an error of /v1.
  std::string code() const {
    boost::system::error_code failure;
    const boost::json::value value = boost::json::parse(body, failure);
    if (failure || !value.is_object() || !value.get_object().contains("code")) return {};
    return std::string(value.at("code").as_string());
  }
};

class RestFixture : public testing::Test {
 protected:
  static constexpr uint64_t start_ms = 1'700'000'000'000;
  static constexpr size_t stream_chunks_max = 10'000;

  void SetUp() override { open({}); }

  void open(KeyspacesOptions options) {
    auto opened = Keyspaces::open(map_, options);
    ASSERT_OK(opened);
    keyspaces_ = std::move(*opened);
    tokens_ = std::make_unique<Tokens>(map_, keyspaces_->changes());
    gc_ = std::make_unique<Gc>(map_, keyspaces_->changes());
    auto ranges = EmbeddedRanges::open(map_.engine, clock_, accounting_, {});
    ASSERT_OK(ranges);
    ranges_ = std::move(*ranges);
    files_ = std::make_unique<FileSystems>(*keyspaces_);
    collector_ = std::make_unique<Collector>(*keyspaces_, *gc_);
    backups_ = std::make_unique<Backups>(*keyspaces_, *collector_, BackupsOptions{});
    context_ = std::make_unique<RestContext>(RestContext{*keyspaces_,
                                                         *tokens_,
                                                         *gc_,
                                                         *collector_,
                                                         raw_,
                                                         *files_,
                                                         catalog_,
                                                         *backups_,
                                                         metrics_,
                                                         clock_,
                                                         *ranges_,
                                                         {}});
    auto router = Router::make(make_routes(*context_));
    ASSERT_OK(router);
    router_ = std::make_unique<Router>(std::move(*router));
  }

  KeyspaceId make(const std::string& name) {
    const auto keyspace = keyspaces_->create(
        {.name = name, .id = {}, .config = {}, .request_id = {}}, {Role::server_admin, "root"});
    EXPECT_OK(keyspace);
    return keyspace ? keyspace->id : KeyspaceId{};
  }

  Tokens::Made make_token(KeyspaceId keyspace, Role role, uint64_t expires_at_ms = 0) {
    auto made =
        tokens_->create(keyspace, role, "test", expires_at_ms, {Role::server_admin, "root"});
    EXPECT_OK(made);
    return made ? *made : Tokens::Made{};
  }

  Answer ask(const Ask& ask) {
    HttpRequest request = request_of(ask);
    if (!is_percent_encoded(request.path)) return answer_of(error_response(400, "", ""));
    const Router::Match match = router_->find(ask.method, request.path, request.captures);
    if (match.route == nullptr) {
      return answer_of(error_response(match.allow == 0 ? 404 : 405, "", request.path));
    }
    const Route& route = *match.route;
    if (ask.body.size() > (route.body == Route::Body::none ? 0 : route.body_bytes_max)) {
      return answer_of(error_response(413, "", request.path));
    }
    if (route.body == Route::Body::streamed) return upload(route, request, ask.body);
    request.body = ask.body;
    HttpResponse response = route.handle(request);
    if (response.stream == nullptr) return answer_of(std::move(response));
    return download(std::move(response), request.path);
  }

  // The streams that were opened last, for looking at them step by step.
  HttpResponse open_stream(const Ask& ask) {
    HttpRequest request = request_of(ask);
    const Router::Match match = router_->find(ask.method, request.path, request.captures);
    return match.route->handle(request);
  }

  // The views are those of `ask`.
  HttpRequest request_of(const Ask& ask) {
    HttpRequest request;
    request.method = ask.method;
    request.target = ask.target;
    const size_t question = ask.target.find('?');
    request.path = request.target.substr(0, question);
    if (question != std::string::npos) request.query = request.target.substr(question + 1);
    request.peer = ask.is_local ? "127.0.0.1:50000" : "203.0.113.7:50000";
    request.peer_is_loopback = ask.is_local;
    bool has_host = false;
    for (const HttpHeader& header : ask.headers) {
      request.headers.push_back({header.name, header.value});
      has_host |= equals_ignoring_case(header.name, "host");
    }
    if (!has_host) request.headers.push_back({"Host", "127.0.0.1:7380"});
    if (!ask.token.empty()) {
      authorization_ = "Bearer " + ask.token;
      request.headers.push_back({"Authorization", authorization_});
    }
    return request;
  }

  static Answer answer_of(HttpResponse response) {
    return {response.status, std::string(response.content_type), std::move(response.headers),
            std::move(response.body)};
  }

  Answer download(HttpResponse response, std::string_view path) {
    const std::unique_ptr<BodySource> source = std::move(response.stream);
    Answer answer = answer_of(std::move(response));
    source->on_start(Waker());
    for (size_t i = 0; i < stream_chunks_max; ++i) {
      auto chunk = source->next();
      if (!chunk) {
        if (answer.body.empty()) return answer_of(failure_response(chunk.error(), path));
        answer.body += "<broken off: " + chunk.error().message + ">";
        return answer;
      }
      largest_chunk_ = std::max(largest_chunk_, chunk->bytes.size());
      answer.body += chunk->bytes;
      if (chunk->then == Chunk::Then::end) return answer;
      if (chunk->then == Chunk::Then::wait || chunk->then == Chunk::Then::pause) {
        if (!waits_) return answer;
        clock_.advance_ms(chunk->wait_ms);
      }
    }
    ADD_FAILURE() << "a stream without end";
    return answer;
  }

  Answer upload(const Route& route, const HttpRequest& request, ByteView body) {
    auto sink = route.open(request);
    if (!sink) return answer_of(failure_response(sink.error(), request.path));
    while (!body.empty()) {
      const ByteView piece = body.substr(0, 1 + random_.below(upload_piece_bytes_max_));
      if (const Status written = (*sink)->write(piece); !written) {
        return answer_of(failure_response(written.error(), request.path));
      }
      body.remove_prefix(piece.size());
    }
    return answer_of((*sink)->finish());
  }

  MemoryEngine memory_;
  RecordingEngine engine_{memory_};
  FakeClock clock_{start_ms};
  Transactor transactor_{engine_, clock_, {.way = Way::latched, .check_scope = true}};
  MapHandle map_{engine_, transactor_, clock_};
  Raw raw_;
  Registry metrics_;
  Random random_{1};
  std::unique_ptr<Keyspaces> keyspaces_;
  std::unique_ptr<Tokens> tokens_;
  std::unique_ptr<Gc> gc_;
  RangeAccounting accounting_{1};
  std::unique_ptr<EmbeddedRanges> ranges_;
  std::unique_ptr<FileSystems> files_;
  Catalog catalog_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<Backups> backups_;
  std::unique_ptr<RestContext> context_;
  std::unique_ptr<Router> router_;
  std::string authorization_;
  size_t largest_chunk_ = 0;
  size_t upload_piece_bytes_max_ = 64;
  bool waits_ = false;  // lets time pass for streams that wait, instead of ending them
};

}  // namespace trellis
