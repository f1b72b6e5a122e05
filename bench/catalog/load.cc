// api_load: kept connections that each ask for one thing again and again, in which {n} is a
// number that changes and {m} the one behind it. One thread. Every answer must be HTTP 200 with
// code 0.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace trellis {
namespace {

constexpr std::string_view usage = R"(Usage: api_load PORT METHOD PATH [option...]

  --body TEXT      of the request
  --authorization TEXT  the header of that name
  --clients N      connections, each with one request in flight: 30
  --requests N     as many; or
  --seconds N      as long
  --first N        the number that {n} in PATH and TEXT begins with: 0; {m} is one more
  --span N         {n} is one of so many, by chance; 0, the default: one more for each request

Prints: requests, seconds, its own CPU in us, bytes of bodies, median and 99th percentile in us.
)";

constexpr int silence_ms_max = 60'000;
constexpr size_t buffer_bytes = 256 * 1024;

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "api_load: {}\n", why);
  std::exit(2);
}

uint64_t now_us() {
  using namespace std::chrono;
  const auto now = steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(duration_cast<microseconds>(now).count());
}

uint64_t own_cpu_us() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto us = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
  };
  return us(used.ru_utime) + us(used.ru_stime);
}

uint64_t parse_number(std::string_view text, int base = 10) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end == text.data()) give_up(fmt::format("no number: '{}'", text));
  return number;
}

struct Options {
  uint16_t port = 0;
  std::string method;
  std::string path;
  std::string body;
  std::string authorization;
  size_t clients = 30;
  uint64_t requests = std::numeric_limits<uint64_t>::max();
  uint64_t seconds = 1'000'000;
  uint64_t first = 0;
  uint64_t span = 0;
};

void replace_all(std::string& text, std::string_view what, uint64_t number) {
  const std::string digits = std::to_string(number);
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += digits.size())
    text.replace(at, what.size(), digits);
}

std::string with_number(std::string text, uint64_t number) {
  replace_all(text, "{n}", number);
  replace_all(text, "{m}", number + 1);
  return text;
}

class Requests {
 public:
  explicit Requests(const Options& options) : options_(options), random_(options.first + 1) {}

  std::string next() {
    const uint64_t number =
        options_.first + (options_.span > 0 ? random_.below(options_.span) : made_);
    made_++;
    const std::string body = with_number(options_.body, number);
    std::string request =
        fmt::format("{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n",
                    options_.method, with_number(options_.path, number));
    if (!options_.authorization.empty())
      request += fmt::format("Authorization: {}\r\n", options_.authorization);
    if (!body.empty())
      request +=
          fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
    return request + "\r\n" + body;
  }
  uint64_t made() const { return made_; }

 private:
  const Options& options_;
  Random random_;
  uint64_t made_ = 0;
};

class Connection {
 public:
  explicit Connection(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      give_up(fmt::format("connect to port {}: {}", port, std::strerror(errno)));
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_; }
  uint64_t asked_us() const { return asked_us_; }
  uint64_t body_bytes() const { return body_bytes_; }

  // Requests are small: the kernel takes them whole.
  void ask(const std::string& request) {
    asked_us_ = now_us();
    in_.clear();
    part_ = Part::head;
    body_bytes_ = 0;
    if (::send(socket_, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
      give_up(fmt::format("send: {}", std::strerror(errno)));
  }

  // Whether the answer is whole.
  bool receive(std::vector<char>& buffer) {
    const ssize_t bytes = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    if (bytes <= 0) give_up("the server closed a connection");
    std::string_view in(buffer.data(), static_cast<size_t>(bytes));
    while (!in.empty() && part_ != Part::done) {
      if (part_ == Part::body)
        take_body(in);
      else
        take_line(in);
    }
    return part_ == Part::done;
  }

 private:
  enum class Part { head, size, body, end, done };

  // Of the header, or what stands around chunks.
  void take_line(std::string_view& in) {
    const size_t end = in.find('\n');
    in_ += in.substr(0, end == std::string_view::npos ? in.size() : end + 1);
    if (end == std::string_view::npos) return in.remove_prefix(in.size());
    in.remove_prefix(end + 1);
    if (part_ == Part::head) {
      if (in_.ends_with("\r\n\r\n")) take_head();
      return;
    }
    const std::string line = std::exchange(in_, {});
    if (line == "\r\n") {  // behind a chunk, or behind the last
      if (part_ == Part::end) part_ = Part::done;
      return;
    }
    left_ = parse_number(line, 16);
    part_ = left_ == 0 ? Part::end : Part::body;
  }

  void take_head() {
    is_wrong_ = !in_.starts_with("HTTP/1.1 200 ");
    constexpr std::string_view name = "\r\nContent-Length: ";
    const size_t at = in_.find(name);
    is_chunked_ = at == std::string::npos;
    left_ = is_chunked_ ? 0 : parse_number(std::string_view(in_).substr(at + name.size()));
    part_ = is_chunked_ ? Part::size : Part::body;
    head_ = std::exchange(in_, {});
  }

  void take_body(std::string_view& in) {
    const std::string_view piece = in.substr(0, left_);
    if (is_wrong_ || (body_bytes_ == 0 && !piece.starts_with("{\"code\":0")))
      give_up(fmt::format("a wrong answer:\n{}{}", head_, piece));
    in.remove_prefix(piece.size());
    left_ -= piece.size();
    body_bytes_ += piece.size();
    if (left_ == 0) part_ = is_chunked_ ? Part::size : Part::done;
  }

  const int socket_;
  Part part_ = Part::done;
  std::string in_;  // less than a line
  std::string head_;
  bool is_wrong_ = false;
  bool is_chunked_ = false;
  uint64_t left_ = 0;  // of the body, or of its chunk
  uint64_t body_bytes_ = 0;
  uint64_t asked_us_ = 0;
};

void run(const Options& options) {
  Requests requests(options);
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<std::unique_ptr<Connection>> connections;
  for (size_t i = 0; i < std::min(options.clients, options.requests); i++) {
    connections.push_back(std::make_unique<Connection>(options.port));
    epoll_event event{.events = EPOLLIN, .data = {.ptr = connections.back().get()}};
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, connections.back()->socket(), &event);
  }
  std::vector<char> buffer(buffer_bytes);
  std::vector<uint64_t> latencies_us;
  uint64_t bytes = 0;
  const uint64_t cpu_us = own_cpu_us();
  const uint64_t begin_us = now_us();
  for (const auto& connection : connections) connection->ask(requests.next());
  std::array<epoll_event, 64> events;
  while (latencies_us.size() < requests.made()) {
    const int count = ::epoll_wait(epoll, events.data(), events.size(), silence_ms_max);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) give_up("the server does not answer");
    for (const epoll_event& event : std::span(events.data(), static_cast<size_t>(count))) {
      auto& connection = *static_cast<Connection*>(event.data.ptr);
      if (!connection.receive(buffer)) continue;
      const uint64_t now = now_us();
      latencies_us.push_back(now - connection.asked_us());
      bytes += connection.body_bytes();
      if (requests.made() < options.requests && now - begin_us < options.seconds * 1'000'000)
        connection.ask(requests.next());
    }
  }
  const double seconds = static_cast<double>(now_us() - begin_us) / 1e6;
  std::ranges::sort(latencies_us);
  fmt::print("{} {:.6f} {} {} {} {}\n", latencies_us.size(), seconds, own_cpu_us() - cpu_us, bytes,
             latencies_us[latencies_us.size() / 2], latencies_us[latencies_us.size() * 99 / 100]);
}

}  // namespace
}  // namespace trellis

int main(int argc, char** argv) {
  using namespace trellis;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 3 || arguments.size() % 2 == 0) {
    fmt::print("{}", usage);
    return 2;
  }
  Options options{.port = static_cast<uint16_t>(parse_number(arguments[0])),
                  .method = arguments[1],
                  .path = arguments[2],
                  .body = {},
                  .authorization = {}};
  const std::map<std::string_view, uint64_t*> numbers = {
      {"--requests", &options.requests}, {"--seconds", &options.seconds},
      {"--first", &options.first},       {"--span", &options.span},
      {"--clients", &options.clients},
  };
  for (size_t i = 3; i < arguments.size(); i += 2) {
    if (arguments[i] == "--body")
      options.body = arguments[i + 1];
    else if (arguments[i] == "--authorization")
      options.authorization = arguments[i + 1];
    else if (const auto found = numbers.find(arguments[i]); found != numbers.end())
      *found->second = parse_number(arguments[i + 1]);
    else
      give_up(fmt::format("unknown option '{}'", arguments[i]));
  }
  run(options);
  return 0;
}
