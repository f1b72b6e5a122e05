#include "resp/resp_server.h"

#include "net/input_buffer.h"
#include "redis/executor.h"
#include "resp/resp_parser.h"

namespace trellis {
namespace {

// What a client may send before it is understood: a command with all its arguments.
constexpr size_t input_bytes_max = 64 * 1024 * 1024;
constexpr size_t stranger_input_bytes_max = 1024 * 1024;
// What waits to be sent before no more commands are taken from its reader.
constexpr size_t output_bytes_max = 1024 * 1024;

class RespLoop;

class RespConnection final : public StreamConnection {
 public:
  RespConnection(RespLoop& loop, StreamDriver& driver, const StreamPeer& peer);
  ~RespConnection() override { abandon(); }

  std::span<char> input_space() override;
  void received(size_t bytes) override;
  void received_end() override { is_ended_ = true; }
  OutputQueue& output() override { return output_; }
  void sent() override {
    session_.output_bytes = output_.size();
    take_commands();
  }
  void refuse() override;
  void stop() override;
  void abandon() override;
  void tick(size_t) override {}
  bool is_idle() const override { return commands_.empty() && output_.empty(); }
  bool is_over() const override {
    return commands_.empty() && (closes() || (is_ended_ && !has_more_));
  }
  bool is_broken() const override { return is_killed_ && !output_.empty(); }

  // The batch of a turn: what of this connection is in it, then that it was run.
  void add_requests(std::vector<Request>& requests);
  void has_run();

 private:
  void take_commands();
  void killed();
  void go_on();
  bool closes() const { return session_.closing || is_stopping_; }

  RespLoop& loop_;
  StreamDriver& driver_;
  Session session_;
  InputBuffer input_;
  RespParser parser_;
  size_t parsed_bytes_ = 0;  // of the input: what commands_ point into
  std::vector<std::vector<ByteView>> commands_;
  RespParser::Lines lines_;  // whose words commands_ point into too
  Bytes replies_;
  OutputQueue output_;
  bool is_ended_ = false;
  bool is_stopping_ = false;
  bool is_killed_ = false;   // what is to be sent need not be
  bool is_waiting_ = false;  // a pause holds commands_
  bool has_more_ = false;    // to parse, when the output has gone
  std::string failure_;      // the input makes no sense from here on
};

// One loop's connections, and the executor that they share.
class RespLoop final : public StreamProtocol {
 public:
  RespLoop(RedisServer& redis, StreamLoop& loop) : redis_(redis), loop_(loop), executor_(redis) {}

  std::unique_ptr<StreamConnection> make_connection(StreamDriver& driver,
                                                    StreamPeer peer) override {
    return std::make_unique<RespConnection>(*this, driver, peer);
  }

  RedisServer& redis() { return redis_; }

  void run_soon(RespConnection& connection) {
    if (ready_.empty()) loop_.at_end_of_turn([this] { run(); });
    ready_.push_back(&connection);
  }
  void forget(RespConnection& connection) { std::erase(ready_, &connection); }

 private:
  void run() {
    const std::vector<RespConnection*> ready = std::move(ready_);
    ready_.clear();
    std::vector<Request> requests;
    for (RespConnection* connection : ready) connection->add_requests(requests);
    executor_.run(requests);
    for (RespConnection* connection : ready) connection->has_run();
  }

  RedisServer& redis_;
  StreamLoop& loop_;
  Executor executor_;
  std::vector<RespConnection*> ready_;
};

RespConnection::RespConnection(RespLoop& loop, StreamDriver& driver, const StreamPeer& peer)
    : loop_(loop), driver_(driver) {
  RedisServer& redis = loop_.redis();
  session_.id = redis.next_client_id();
  session_.address = peer.address;
  session_.connected_ms = redis.map().clock.unix_ms();
  // Whoever is not let in now is asked to say who it is.
  session_.is_local = peer.is_loopback;
  if (const Status greeted = redis.greet(session_); !greeted) session_.tenant = nullptr;
  session_.local_address = peer.local_address;
  session_.kill = [this, poster = driver.poster()] { poster->post([this] { killed(); }); };
  session_.go_on = [this, poster = driver.poster()] { poster->post([this] { go_on(); }); };
  redis.clients().add(session_);
}

void RespConnection::stop() {
  is_stopping_ = true;
  if (is_waiting_) session_.closing = true;  // and is not waited for
  go_on();
}

void RespConnection::killed() {
  is_killed_ = true;
  go_on();
}

void RespConnection::go_on() {
  if (std::exchange(is_waiting_, false)) loop_.run_soon(*this);
}

void RespConnection::abandon() {
  loop_.forget(*this);
  loop_.redis().leave(session_);
}

std::span<char> RespConnection::input_space() {
  // Commands point into the input, and what they answer must find room.
  if (!commands_.empty() || closes() || output_.size() > output_bytes_max) return {};
  return input_.space(session_.tenant != nullptr ? input_bytes_max : stranger_input_bytes_max);
}

void RespConnection::received(size_t bytes) {
  input_.add(bytes);
  take_commands();
}

void RespConnection::take_commands() {
  if (!commands_.empty() || closes()) return;
  has_more_ = output_.size() > output_bytes_max;
  if (has_more_) return;
  parsed_bytes_ = 0;
  const bool is_known = session_.tenant != nullptr;
  const RespLimits limits =
      is_known ? RespLimits{.bulk_bytes_max = string_bytes_max} : stranger_limits;
  for (;;) {
    const ByteView rest = input_.data().substr(parsed_bytes_);
    const RespParser::Step step = parser_.next(rest, limits);
    if (step == RespParser::Step::more) {
      if (parser_.wanted() > input_bytes_max) failure_ = "Protocol error: too big request";
      break;
    }
    if (step == RespParser::Step::error) {
      failure_ = parser_.error();
      break;
    }
    if (step == RespParser::Step::command) commands_.push_back(parser_.args(rest, lines_));
    parsed_bytes_ += parser_.consumed();
    // Who it is decides how much it may send.
    if (session_.tenant == nullptr && !commands_.empty()) break;
  }
  if (commands_.empty()) {
    input_.consume(parsed_bytes_);
    if (!failure_.empty()) {
      Reply(replies_, session_.protocol).error("ERR " + failure_);
      output_.append(replies_);
      session_.closing = true;
    }
    return;
  }
  loop_.run_soon(*this);
}

void RespConnection::add_requests(std::vector<Request>& requests) {
  for (const std::vector<ByteView>& args : commands_)
    requests.push_back({&session_, args, &replies_});
}

void RespConnection::has_run() {
  commands_.erase(commands_.begin(),
                  commands_.begin() + static_cast<ptrdiff_t>(session_.commands_done));
  is_waiting_ = !commands_.empty();
  if (session_.usage != nullptr)
    session_.usage->count([&](UsageFigures& figures) {
      figures.received_bytes += is_waiting_ ? 0 : parsed_bytes_;
      figures.sent_bytes += replies_.size();
    });
  if (!is_waiting_) {
    lines_.clear();
    input_.consume(parsed_bytes_);
  }
  output_.append_body(std::move(replies_));
  replies_.clear();
  if (!is_waiting_) take_commands();
  session_.input_bytes = input_.data().size();
  session_.output_bytes = output_.size();
  driver_.pump();  // last: the connection may be gone behind it
}

void RespConnection::refuse() {
  output_.append("-ERR max number of clients reached\r\n");
  session_.closing = true;
}

}  // namespace

MakeStreamProtocol make_resp_protocol(RedisServer& redis) {
  return [&redis](StreamLoop& loop) { return std::make_unique<RespLoop>(redis, loop); };
}

}  // namespace trellis
