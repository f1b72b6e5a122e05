#include "resp/resp_server.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "net/input_buffer.h"
#include "redis/executor.h"
#include "resp/resp_parser.h"

namespace trellis {
namespace {

// What may come before a command's last argument is complete, beside the command: its head.
constexpr size_t head_bytes_max = 128 * 1024;
constexpr size_t stranger_input_bytes_max = 1024 * 1024;
// What waits to be sent before no more commands are taken from its reader.
constexpr size_t output_bytes_max = 1024 * 1024;

// What one turn makes for all of them: before the next one, those who have too much are closed.
constexpr size_t turn_output_bytes_max = 32 * 1024 * 1024;
constexpr size_t commands_kept_max = 64;  // room for so many stays with a connection
constexpr size_t args_kept_max = 4 * commands_kept_max;

// Of all loops.
struct RespClients {
  explicit RespClients(const RespOptions& given) : options(given) {}
  const RespOptions options;
  std::atomic<size_t> count{0};
  std::atomic<size_t> memory_bytes{0};
};

class RespLoop;

class RespConnection final : public StreamConnection {
 public:
  RespConnection(RespLoop& loop, StreamDriver& driver, const StreamPeer& peer);
  ~RespConnection() override { abandon(); }

  std::span<char> input_space() override;
  void received(size_t bytes) override;
  void received_end() override { is_ended_ = true; }
  OutputQueue& output() override { return output_; }
  void sent() override;
  void refuse() override;
  void stop() override;
  void abandon() override;
  void tick(size_t unsent_bytes) override;
  bool is_idle() const override { return commands_.empty() && output_.empty(); }
  bool is_over() const override {
    return commands_.empty() && (closes() || (is_ended_ && !has_more_));
  }
  bool is_broken() const override { return is_broken_ || (is_killed_ && !output_.empty()); }
  bool leave() override;
  void join(StreamProtocol& protocol) override;

  // The batch of a turn: what of this connection is in it, then how many of these were run.
  size_t add_requests(std::vector<Request>& requests);
  void has_run(size_t requests);

  size_t memory_bytes() const { return memory_bytes_; }
  // Closes it at once. It may be gone when this returns.
  void break_off(std::string_view why);

 private:
  struct ParsedCommand {
    size_t first_arg;
    size_t args;
    std::string refusal;  // in place of arguments
  };
  bool is_full() const { return output_.size() > output_bytes_max; }
  void take_commands();
  void killed();
  void go_on();
  void drop_commands();
  bool closes() const { return session_.closing || is_stopping_; }
  void parse();
  void count_memory();

  RespLoop* loop_;
  StreamDriver& driver_;
  Session session_;
  // Buffers are given back as soon as they are empty, small ones after a while without a word: ten
  // thousand who are silent need none.
  InputBuffer input_{16 * 1024};
  bool is_space_lent_ = false;  // of the input: somebody may write to it
  RespParser parser_;
  size_t parsed_bytes_ = 0;  // of the input: what commands_ point into
  std::vector<ParsedCommand> commands_;
  std::vector<ByteView> args_;  // of all of them
  size_t commands_done_ = 0;
  RespParser::Lines lines_;  // whose words commands_ point into too
  Bytes replies_;
  OutputQueue output_;
  bool is_waiting_to_run_ = false;
  bool is_ended_ = false;
  bool is_stopping_ = false;
  bool is_killed_ = false;  // what is to be sent need not be
  bool is_paused_ = false;  // a pause holds commands_
  bool is_broken_ = false;
  bool is_abandoned_ = false;
  bool has_more_ = false;  // to parse, when the output has gone
  std::string failure_;    // the input makes no sense from here on

  size_t memory_bytes_ = 0;  // as it was counted
  bool is_active_ = true;    // something came since the last tick
  uint64_t active_at_us_;
  uint64_t progress_ = 0;  // bytes that the other side has taken
  uint64_t progress_at_us_;
};

// One loop's connections, and the executor that they share.
class RespLoop final : public StreamProtocol {
 public:
  RespLoop(RedisServer& redis, std::shared_ptr<RespClients> clients, StreamLoop& loop)
      : redis_(redis), clients_(std::move(clients)), loop_(loop), executor_(redis) {}

  std::unique_ptr<StreamConnection> make_connection(StreamDriver& driver,
                                                    StreamPeer peer) override {
    return std::make_unique<RespConnection>(*this, driver, peer);
  }

  bool lets_move() const override { return true; }

  RedisServer& redis() { return redis_; }
  RespClients& clients() { return *clients_; }

  void add(RespConnection& connection) {
    connections_.insert(&connection);
    clients_->count++;
  }
  void forget(RespConnection& connection) {
    if (connections_.erase(&connection) == 0) return;
    clients_->count--;
    std::erase(ready_, &connection);
  }

  void run_soon(RespConnection& connection) {
    if (ready_.empty()) loop_.at_end_of_turn([this] { run(); });
    ready_.push_back(&connection);
  }
  void free_memory_soon() {
    if (is_freeing_) return;
    is_freeing_ = true;
    loop_.at_end_of_turn([this] { free_memory(); });
  }

 private:
  void run();
  void free_memory();

  RedisServer& redis_;
  const std::shared_ptr<RespClients> clients_;
  StreamLoop& loop_;
  Executor executor_;
  std::unordered_set<RespConnection*> connections_;
  std::vector<RespConnection*> ready_;
  bool is_freeing_ = false;
};

void RespLoop::run() {
  const std::vector<RespConnection*> ready = std::move(ready_);
  ready_.clear();
  std::vector<Request> requests;
  std::vector<size_t> counts;
  try {
    ready_.reserve(ready.size());  // the next turn is likely as large
    requests.reserve(ready.size());
    counts.reserve(ready.size());
    for (RespConnection* connection : ready) counts.push_back(connection->add_requests(requests));
    executor_.run(requests, {.each_bytes = output_bytes_max, .all_bytes = turn_output_bytes_max});
  } catch (const std::exception& error) {  // no memory, say: nobody knows what of it has run
    log_error("a batch of commands failed", {{"what", error.what()}});
    for (RespConnection* connection : ready) connection->break_off("its batch failed");
    return;
  }
  size_t first = 0;
  for (size_t i = 0; i < ready.size(); i++) {
    const auto of_one = std::span(requests).subspan(first, counts[i]);
    first += counts[i];
    ready[i]->has_run(static_cast<size_t>(std::ranges::count_if(of_one, &Request::is_done)));
  }
}

// Each loop closes its largest, but none that is below the average of all: of those who are not,
// there is always one on some loop, which sees it at its next tick.
void RespLoop::free_memory() {
  is_freeing_ = false;
  while (clients_->memory_bytes > clients_->options.memory_bytes_max && !connections_.empty()) {
    RespConnection* largest = *std::ranges::max_element(
        connections_, {}, [](const RespConnection* one) { return one->memory_bytes(); });
    if (largest->memory_bytes() < clients_->memory_bytes / std::max<size_t>(clients_->count, 1))
      return;
    largest->break_off("the memory for clients is full: see resp-memory-bytes");
  }
}

RespConnection::RespConnection(RespLoop& loop, StreamDriver& driver, const StreamPeer& peer)
    : loop_(&loop), driver_(driver) {
  RedisServer& redis = loop_->redis();
  session_.id = redis.next_client_id();
  session_.address = peer.address;
  session_.connected_ms = redis.map().clock.unix_ms();
  active_at_us_ = progress_at_us_ = redis.map().clock.monotonic_us();
  // Whoever is not let in now is asked to say who it is.
  session_.is_local = peer.is_loopback;
  if (const Status greeted = redis.greet(session_); !greeted) session_.tenant = nullptr;
  loop_->add(*this);
  session_.local_address = peer.local_address;
  session_.kill = [this, poster = driver.poster()] { poster->post([this] { killed(); }); };
  session_.go_on = [this, poster = driver.poster()] { poster->post([this] { go_on(); }); };
  redis.clients().add(session_);
}

bool RespConnection::leave() {
  if (!is_idle()) return false;
  loop_->forget(*this);
  return true;
}

void RespConnection::join(StreamProtocol& protocol) {
  loop_ = &static_cast<RespLoop&>(protocol);
  loop_->add(*this);
}

// What is being run is waited for, what waits for anything is not.
void RespConnection::stop() {
  is_stopping_ = true;
  if (!is_waiting_to_run_) drop_commands();
}

void RespConnection::killed() {
  is_killed_ = true;
  if (!is_waiting_to_run_) drop_commands();
}

void RespConnection::go_on() {
  if (std::exchange(is_paused_, false)) take_commands();
}

void RespConnection::drop_commands() {
  is_paused_ = false;
  commands_.clear();
  if (commands_.capacity() > commands_kept_max) commands_ = {};
  args_.clear();
  if (args_.capacity() > args_kept_max) args_ = {};
  commands_done_ = 0;
  lines_.clear();
  input_.consume(parsed_bytes_);
  parsed_bytes_ = 0;
  if (!is_space_lent_) input_.release();
}

void RespConnection::abandon() {
  // Whoever destroys it later may be on another thread than its loop's.
  if (std::exchange(is_abandoned_, true)) return;
  loop_->forget(*this);
  loop_->clients().memory_bytes -= std::exchange(memory_bytes_, 0);
  loop_->redis().leave(session_);
}

void RespConnection::break_off(std::string_view why) {
  log_warn("a client is closed",
           {{"client", session_.id}, {"address", session_.address}, {"why", why}});
  is_broken_ = true;
  // Now, for one that is being closed already stays until the other side is done too.
  loop_->clients().memory_bytes -= std::exchange(memory_bytes_, 0);
  driver_.pump();
}

std::span<char> RespConnection::input_space() {
  // Commands point into the input, and what they answer must find room.
  if (!commands_.empty() || closes() || is_full()) return {};
  is_space_lent_ = true;
  return input_.space(session_.tenant != nullptr
                          ? loop_->redis().options().command_bytes_max + head_bytes_max
                          : stranger_input_bytes_max);
}

void RespConnection::received(size_t bytes) {
  is_active_ = true;
  is_space_lent_ = false;
  input_.add(bytes);
  session_.input_bytes = input_.data().size();  // with what is run now: as Redis tells it
  take_commands();
  if (commands_.empty()) input_.release();
  count_memory();
}

void RespConnection::sent() {
  session_.output_bytes = output_.size();
  output_.release();
  take_commands();
}

// Goes on with what is there: commands that are parsed, then those that are not.
void RespConnection::take_commands() {
  if (is_waiting_to_run_ || is_paused_ || closes()) return;
  has_more_ = is_full();
  if (has_more_) return;
  if (commands_.empty()) parse();
  if (!commands_.empty()) {
    is_waiting_to_run_ = true;
    loop_->run_soon(*this);
  } else if (!failure_.empty()) {
    Reply(replies_, session_.protocol).error(failure_);
    output_.append(replies_);
    session_.closing = true;
  }
}

void RespConnection::parse() {
  parsed_bytes_ = 0;
  const RespLimits limits{.is_stranger = session_.tenant == nullptr,
                          .command_bytes_max = loop_->redis().options().command_bytes_max};
  // Who it is decides how much it may send.
  while (!limits.is_stranger || commands_.empty()) {
    const ByteView rest = input_.data().substr(parsed_bytes_);
    const RespParser::Step step = parser_.next(rest, limits);
    if (step == RespParser::Step::more) break;
    if (step == RespParser::Step::error) {
      failure_ = parser_.error();
      break;
    }
    const size_t first_arg = args_.size();
    if (step == RespParser::Step::command) {
      parser_.take_args(rest, lines_, args_);
      commands_.push_back({first_arg, args_.size() - first_arg, {}});
    }
    if (step == RespParser::Step::too_large) commands_.push_back({0, 0, parser_.error()});
    parsed_bytes_ += parser_.consumed();
  }
  if (commands_.empty()) input_.consume(parsed_bytes_);
}

size_t RespConnection::add_requests(std::vector<Request>& requests) {
  for (size_t i = commands_done_; i < commands_.size(); i++) {
    const ParsedCommand& command = commands_[i];
    requests.push_back({&session_, std::span(args_).subspan(command.first_arg, command.args),
                        &replies_, command.refusal});
  }
  return commands_.size() - commands_done_;
}

void RespConnection::has_run(size_t requests) {
  is_waiting_to_run_ = false;
  commands_done_ += requests;
  const bool is_done = commands_done_ == commands_.size() || closes();
  const size_t received_bytes = is_done ? parsed_bytes_ : 0;
  if (is_done) drop_commands();
  is_paused_ = !commands_.empty() && session_.is_held;
  if (session_.usage != nullptr)
    session_.usage->count([&](UsageFigures& figures) {
      figures.received_bytes += received_bytes;
      figures.sent_bytes += replies_.size();
    });
  output_.append_body(std::exchange(replies_, {}));
  take_commands();
  session_.input_bytes = input_.data().size();
  session_.output_bytes = output_.size();
  count_memory();
  driver_.pump();  // last: the connection may be gone behind it
}

void RespConnection::count_memory() {
  const size_t now = input_.capacity() + parser_.memory_bytes() +
                     args_.capacity() * sizeof(ByteView) + replies_.capacity() + output_.size() +
                     session_.queued_bytes + session_.watched_bytes;
  std::atomic<size_t>& all = loop_->clients().memory_bytes;
  all += now - memory_bytes_;  // wraps round where it is less
  memory_bytes_ = now;
  if (all > loop_->clients().options.memory_bytes_max) loop_->free_memory_soon();
}

void RespConnection::tick(size_t unsent_bytes) {
  const RespOptions& options = loop_->clients().options;
  const uint64_t now_us = loop_->redis().map().clock.monotonic_us();
  // By what the other side acknowledged: a large socket buffer takes nothing for a long while.
  const uint64_t progress = output_.consumed() - unsent_bytes;
  if (output_.empty() || progress != progress_) {
    progress_ = progress;
    progress_at_us_ = now_us;
  } else if (now_us - progress_at_us_ > options.send_timeout_ms * us_per_ms) {
    return break_off("it takes nothing of its replies: see resp-send-timeout");
  }
  if (std::exchange(is_active_, false) || !is_idle()) {
    active_at_us_ = now_us;
  } else {
    if (!is_space_lent_) input_.release_all();
    output_.clear();
    commands_.shrink_to_fit();
    args_.shrink_to_fit();
    const bool is_timed = options.idle_timeout_ms > 0;
    if (is_timed && now_us - active_at_us_ > options.idle_timeout_ms * us_per_ms)
      session_.closing = true;
  }
  count_memory();
}

void RespConnection::refuse() {
  output_.append("-ERR max number of clients reached\r\n");
  session_.closing = true;
}

}  // namespace

MakeStreamProtocol make_resp_protocol(RedisServer& redis, const RespOptions& options) {
  return [&redis, clients = std::make_shared<RespClients>(options)](StreamLoop& loop) {
    return std::make_unique<RespLoop>(redis, clients, loop);
  };
}

}  // namespace trellis
