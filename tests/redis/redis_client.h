// For tests: clients that say whole pipelines, with or without a socket.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "redis/executor.h"
#include "redis/garbage.h"
#include "support/raw_socket.h"
#include "tenant/collector.h"
#include "tenant/gc.h"

namespace trellis {

using Words = std::vector<Bytes>;

// How long the first reply of RESP2 is; 0: it is not all there yet.
inline size_t reply_size(ByteView bytes) {
  const size_t line = bytes.find("\r\n");
  if (line == ByteView::npos) return 0;
  const char kind = bytes[0];
  const long count = kind == '$' || kind == '*' ? std::atol(bytes.data() + 1) : -1;
  size_t end = line + 2;
  if (kind == '$' && count >= 0) end += static_cast<size_t>(count) + 2;
  if (kind == '*') {
    for (long i = 0; i < count; i++) {
      const size_t size = end < bytes.size() ? reply_size(bytes.substr(end)) : 0;
      if (size == 0) return 0;
      end += size;
    }
  }
  return end <= bytes.size() ? end : 0;
}

// The strings of a reply, of lists in lists too; a status or number as it is written.
inline void append_texts(ByteView reply, std::vector<Bytes>& texts) {
  const size_t line = reply.find("\r\n");
  const size_t begin = line + 2;
  if (reply[0] == '$') {
    if (reply[1] != '-') texts.emplace_back(reply.substr(begin, reply.size() - begin - 2));
  } else if (reply[0] == '*') {
    for (ByteView rest = reply.substr(begin); !rest.empty();) {
      const size_t size = reply_size(rest);
      append_texts(rest.substr(0, size), texts);
      rest.remove_prefix(size);
    }
  } else {
    texts.emplace_back(reply.substr(1, line - 1));
  }
}
inline std::vector<Bytes> texts_of(ByteView reply) {
  std::vector<Bytes> texts;
  append_texts(reply, texts);
  return texts;
}

class RedisClient {
 public:
  virtual ~RedisClient() = default;
  // The replies in order; fewer than were said if the server is gone.
  virtual std::vector<Bytes> say(std::span<const Words> pipeline) = 0;
  Bytes say_one(Words words) {
    std::vector<Bytes> replies = say({&words, 1});
    return replies.empty() ? "-GONE\r\n" : std::move(replies[0]);
  }
};

class SocketClient final : public RedisClient {
 public:
  explicit SocketClient(uint16_t port) : socket_(port) {}
  std::vector<Bytes> say(std::span<const Words> pipeline) override {
    Bytes out;
    for (const Words& words : pipeline) {
      out += "*" + std::to_string(words.size()) + "\r\n";
      for (const Bytes& word : words)
        out += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    std::vector<Bytes> replies;
    if (!socket_.send(out)) return replies;
    Bytes in;
    size_t at = 0;
    while (replies.size() < pipeline.size()) {
      const size_t size = reply_size(ByteView(in).substr(at));
      if (size == 0) {
        const std::string more = socket_.receive();
        if (more.empty()) break;
        in += more;
        continue;
      }
      replies.push_back(in.substr(at, size));
      at += size;
    }
    return replies;
  }

 private:
  RawSocket socket_;
};

// All of Redis on an engine, without sockets; the collector runs beside it.
class RedisStack {
 public:
  static Result<std::unique_ptr<RedisStack>> open(Engine& engine, Clock& clock,
                                                  Durability durability) {
    auto stack = std::make_unique<RedisStack>(engine, clock, durability);
    TRY_ASSIGN(stack->keyspaces_, Keyspaces::open(stack->map_));
    stack->tokens_.emplace(stack->map_, stack->keyspaces_->changes());
    stack->gc_.emplace(stack->map_, stack->keyspaces_->changes());
    stack->server_.emplace(*stack->keyspaces_, *stack->tokens_, RedisOptions());
    stack->garbage_.emplace(*stack->server_);
    stack->collector_.emplace(*stack->keyspaces_, *stack->gc_,
                              CollectorOptions{.gc_life_time_ms = 1});
    stack->collector_->own(Model::redis, *stack->garbage_);
    stack->collector_->start();
    return stack;
  }
  RedisStack(Engine& engine, Clock& clock, Durability durability)
      : transactor_(engine, clock), map_{engine, transactor_, clock, durability} {}
  ~RedisStack() {
    if (collector_) collector_->stop();
  }

  std::unique_ptr<RedisClient> connect() { return std::make_unique<Client>(*server_); }
  Keyspaces& keyspaces() { return *keyspaces_; }

 private:
  class Client final : public RedisClient {
   public:
    explicit Client(RedisServer& server) : server_(server), executor_(server) {
      session_.id = server.next_client_id();
      session_.is_local = true;
      greeted_ = server.greet(session_);
    }
    ~Client() override { server_.leave(session_); }
    std::vector<Bytes> say(std::span<const Words> pipeline) override {
      std::vector<Bytes> replies;
      if (!greeted_) return replies;
      replies.resize(pipeline.size());
      std::vector<std::vector<ByteView>> args;
      for (const Words& words : pipeline) args.emplace_back(words.begin(), words.end());
      std::vector<Request> requests;
      for (size_t i = 0; i < pipeline.size(); i++)
        requests.push_back({&session_, args[i], &replies[i]});
      executor_.run(requests);
      return replies;
    }

   private:
    RedisServer& server_;
    Executor executor_;
    Session session_;
    Status greeted_;
  };

  Transactor transactor_;
  const MapHandle map_;
  std::unique_ptr<Keyspaces> keyspaces_;
  std::optional<Tokens> tokens_;
  std::optional<Gc> gc_;
  std::optional<RedisServer> server_;
  std::optional<RedisGarbageOwner> garbage_;
  std::optional<Collector> collector_;
};

}  // namespace trellis
