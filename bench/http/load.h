// The load: connections that each ask again as soon as they are answered, and look at every byte of
// the answer. One thread, so that it costs the same whoever is asked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace trellis {

// Each connection sends the requests in turn; answer i has that status and body.
struct Workload {
  std::vector<std::string> requests;
  std::vector<std::string> bodies;
  unsigned status = 200;
};

struct LoadOptions {
  size_t connections = 32;
  size_t depth = 1;  // requests that a connection has in flight
};

struct LoadFigures {
  uint64_t requests = 0;
  double seconds = 0;
  double own_cpu_us = 0;
};

class Load {
 public:
  // Connects to 127.0.0.1. The workload must outlive it.
  Load(uint16_t port, const Workload& workload, const LoadOptions& options);
  ~Load();

  // Asks for so long, then waits for the answers that are still to come. Gives up at an answer that
  // is wrong.
  LoadFigures run(double seconds);
  // Asks for so many.
  LoadFigures run_requests(uint64_t requests);

 private:
  class Connection;
  LoadFigures run(double seconds, uint64_t requests);

  const LoadOptions options_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<char> buffer_;
  int epoll_ = -1;
};

}  // namespace trellis
