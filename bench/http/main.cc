// bench_http: what a GET of one key costs beside a GET of the same bytes from nginx.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "load.h"
#include "measure.h"
#include "servers.h"
#include "store_pair.h"

namespace trellis {
namespace {

constexpr std::string_view usage = R"(Usage: bench_http [option...]

Starts trellis and nginx, and asks both for the same values over kept connections, in turns. Prints
requests per second and the CPU that the server used for each; then the same of PUT, where nginx has
no part. The ratio of requests per second at 100 B is judged.

  --engine NAME        of trellis: rocksdb, the default, or memory
  --connections N      32
  --depth N            requests that each connection has in flight: 1
  --value-bytes N      only values of this size, for profiles
  --rounds N           7
  --seconds N          of measuring, all rounds together: 30
  --trellis PATH       the program; by default the one beside this
  --nginx PATH         /usr/sbin/nginx
  --no-judge           exit code 0 whatever the ratio is
  --help               this text

Exit code: 0 if the target is met, 1 if it is missed, 2 if the benchmark could not run.
)";

constexpr size_t judged_bytes = 100;
constexpr size_t keys_of_a_size = 16;
constexpr double ratio_min = 0.5;
constexpr double warm_up_share = 0.1;  // of a turn

struct Options {
  std::string engine = "rocksdb";
  LoadOptions load;
  std::vector<size_t> value_sizes = {judged_bytes, 1024, 16 * 1024, 256 * 1024};
  size_t rounds = 7;
  size_t seconds = 30;
  std::filesystem::path trellis;
  std::filesystem::path nginx = "/usr/sbin/nginx";
  bool judge = true;
};

size_t parse_count(std::string_view name, std::string_view text) {
  size_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count == 0)
    give_up(fmt::format("{} must be a number from 1 on; see --help", name));
  return count;
}

// Absent: only the help was wanted.
std::optional<Options> parse_options(const std::vector<std::string_view>& arguments) {
  Options options;
  options.trellis = std::filesystem::canonical("/proc/self/exe").parent_path() / "trellis";
  for (size_t i = 0; i < arguments.size(); i++) {
    const std::string_view name = arguments[i];
    if (name == "--help" || name == "-h") return std::nullopt;
    if (name == "--no-judge") {
      options.judge = false;
      continue;
    }
    if (i + 1 == arguments.size()) give_up(fmt::format("'{}' needs a value; see --help", name));
    const std::string_view value = arguments[++i];
    if (name == "--engine")
      options.engine = value;
    else if (name == "--connections")
      options.load.connections = parse_count(name, value);
    else if (name == "--depth")
      options.load.depth = parse_count(name, value);
    else if (name == "--value-bytes")
      options.value_sizes = {parse_count(name, value)};
    else if (name == "--rounds")
      options.rounds = parse_count(name, value);
    else if (name == "--seconds")
      options.seconds = parse_count(name, value);
    else if (name == "--trellis")
      options.trellis = std::filesystem::absolute(value);
    else if (name == "--nginx")
      options.nginx = std::filesystem::absolute(value);
    else
      give_up(fmt::format("unknown argument '{}'; see --help", name));
  }
  return options;
}

std::string size_name(size_t bytes) {
  return bytes < 1024 ? fmt::format("{} B", bytes) : fmt::format("{} KiB", bytes / 1024);
}

// The values of one size, in both servers.
class Case {
 public:
  Case(size_t value_bytes, const std::filesystem::path& www) : value_bytes_(value_bytes) {
    Random random(value_bytes);
    for (size_t i = 0; i < keys_of_a_size; i++) {
      const std::string key = fmt::format("value-{}-{}", value_bytes, i);
      const std::string value = random.bytes(value_bytes);
      std::ofstream(www / key, std::ios::binary) << value;
      add(get_key_, "GET", "/v1/raw/keys/" + key, "", value);
      add(get_file_, "GET", "/" + key, "", value);
      add(put_key_, "PUT", "/v1/raw/keys/" + key, value, "");
    }
    put_key_.status = 204;
  }

  std::string name() const { return size_name(value_bytes_); }
  const Workload& get_key() const { return get_key_; }
  const Workload& get_file() const { return get_file_; }
  const Workload& put_key() const { return put_key_; }

 private:
  static void add(Workload& workload, std::string_view method, std::string_view target,
                  std::string_view body, std::string answer) {
    std::string request = fmt::format(
        "{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench_http\r\nAccept: */*\r\n", method,
        target);
    if (!body.empty()) request += fmt::format("Content-Length: {}\r\n", body.size());
    workload.requests.push_back(request.append("\r\n").append(body));
    workload.bodies.push_back(std::move(answer));
  }

  size_t value_bytes_;
  Workload get_key_;
  Workload get_file_;
  Workload put_key_;
};

// One server under one workload, by rounds.
struct Series {
  std::vector<double> requests_per_second;
  std::vector<double> server_us;  // CPU per request
  std::vector<double> load_us;    // the same of the load, which takes it from the server

  void measure(const Server& server, const Workload& workload, const Options& options,
               double seconds) {
    Load load(server.port, workload, options.load);
    load.run(warm_up_share * seconds);
    const double cpu_us = server.cpu_us();
    const LoadFigures figures = load.run(seconds);
    const auto requests = static_cast<double>(figures.requests);
    requests_per_second.push_back(requests / figures.seconds);
    server_us.push_back((server.cpu_us() - cpu_us) / requests);
    load_us.push_back(figures.own_cpu_us / requests);
  }
};

double median_of(const std::vector<double>& numbers) { return spread(numbers).median; }

struct Pair {
  Series trellis;
  Series nginx;

  double throughput_ratio() const {
    return median_of(trellis.requests_per_second) / median_of(nginx.requests_per_second);
  }
  double cpu_ratio() const { return median_of(trellis.server_us) / median_of(nginx.server_us); }
};

class Benchmark {
 public:
  explicit Benchmark(const Options& options) : options_(options), cases_(make_cases()) {
    trellis_ = start_trellis(options.trellis, options.engine, folder_.path());
    nginx_ = start_nginx(options.nginx, folder_.path());
    for (const Case& each : cases_)
      Load(trellis_.port, each.put_key(), {1, 1}).run_requests(keys_of_a_size);
  }

  // The case of each size.
  std::vector<Pair> measure_gets() {
    std::vector<Pair> pairs(cases_.size());
    for (size_t round = 0; round < options_.rounds; round++)
      for (size_t i = 0; i < cases_.size(); i++) measure_get(round, cases_[i], pairs[i]);
    return pairs;
  }

  // Once more, of the smallest size only.
  Pair measure_small_gets() {
    Pair pair;
    for (size_t round = 0; round < 3 * options_.rounds; round++)
      measure_get(round, cases_[0], pair);
    return pair;
  }

  // After all gets: what they leave to flush and to compact would be counted as theirs.
  std::vector<Series> measure_puts() {
    std::vector<Series> all(cases_.size());
    for (size_t round = 0; round < options_.rounds; round++)
      for (size_t i = 0; i < cases_.size(); i++)
        all[i].measure(trellis_, cases_[i].put_key(), options_, turn_seconds());
    return all;
  }

  std::string name(size_t index) const { return cases_[index].name(); }

 private:
  std::vector<Case> make_cases() const {
    const std::filesystem::path www = folder_.path() / "www";
    std::filesystem::create_directory(www);
    std::vector<Case> cases;
    for (const size_t bytes : options_.value_sizes) cases.emplace_back(bytes, www);
    return cases;
  }

  double turn_seconds() const {
    const size_t turns = 3 * cases_.size() * options_.rounds;  // get, get of the other, put
    return static_cast<double>(options_.seconds) / static_cast<double>(turns);
  }

  void measure_get(size_t round, const Case& each, Pair& pair) {
    for (const size_t turn : {round, round + 1}) {
      if (turn % 2 == 0)
        pair.trellis.measure(trellis_, each.get_key(), options_, turn_seconds());
      else
        pair.nginx.measure(nginx_, each.get_file(), options_, turn_seconds());
    }
  }

  const Options& options_;
  const TemporaryFolder folder_;
  const std::vector<Case> cases_;
  Server trellis_;
  Server nginx_;
};

void print(std::string_view name, const Pair& pair) {
  fmt::print("{:<8} {:>10.0f} {:>10.0f} {:>7.2f} {:>12.2f} {:>10.2f} {:>7.2f} {:>11.2f}\n", name,
             median_of(pair.trellis.requests_per_second), median_of(pair.nginx.requests_per_second),
             pair.throughput_ratio(), median_of(pair.trellis.server_us),
             median_of(pair.nginx.server_us), pair.cpu_ratio(), median_of(pair.trellis.load_us));
  std::fflush(stdout);
}

int run(const Options& options) {
  Benchmark benchmark(options);
  fmt::print("{} engine, {} connections, {} in flight on each; medians of {} rounds\n\n",
             options.engine, options.load.connections, options.load.depth, options.rounds);
  fmt::print("{:<8} {:>21} {:>7} {:>23} {:>7} {:>11}\n", "", "requests/s", "", "server us/request",
             "", "load");
  fmt::print("{:<8} {:>10} {:>10} {:>7} {:>12} {:>10} {:>7} {:>11}\n", "GET", "trellis", "nginx",
             "ratio", "trellis", "nginx", "ratio", "us/request");
  std::vector<Pair> pairs = benchmark.measure_gets();
  for (size_t i = 0; i < pairs.size(); i++) print(benchmark.name(i), pairs[i]);

  fmt::print("\n{:<8} {:>10} {:>17} {:>11}\n", "PUT", "requests/s", "server us/request", "load us");
  const std::vector<Series> puts = benchmark.measure_puts();
  for (size_t i = 0; i < puts.size(); i++)
    fmt::print("{:<8} {:>10.0f} {:>17.2f} {:>11.2f}\n", benchmark.name(i),
               median_of(puts[i].requests_per_second), median_of(puts[i].server_us),
               median_of(puts[i].load_us));

  double ratio = pairs[0].throughput_ratio();
  if (!options.judge || options.value_sizes[0] != judged_bytes) return 0;
  if (ratio < ratio_min) {
    fmt::print("\n{} missed its target and is measured again\n", benchmark.name(0));
    const Pair again = benchmark.measure_small_gets();
    print(benchmark.name(0), again);
    ratio = again.throughput_ratio();
  }
  const bool met = ratio >= ratio_min;
  fmt::print("\nGET of 100 B: {:.2f} of nginx's requests per second, target {:.2f}: {}\n", ratio,
             ratio_min, met ? "met" : "MISSED");
  return met ? 0 : 1;
}

}  // namespace
}  // namespace trellis

int main(int argc, char** argv) {
  try {
    const std::vector<std::string_view> arguments(argv + 1, argv + argc);
    const auto options = trellis::parse_options(arguments);
    if (options) return trellis::run(*options);
    fmt::print("{}", trellis::usage);
    return 0;
  } catch (const trellis::GaveUp& gave_up) {
    fmt::print(stderr, "bench_http: {}\n", gave_up.why);
    return 2;
  } catch (const std::exception& error) {  // of the standard library: no folder, no memory
    fmt::print(stderr, "bench_http: {}\n", error.what());
    return 2;
  }
}
