#include "servers.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <string_view>

#include "measure.h"

namespace trellis {

namespace {

constexpr unsigned nginx_workers = 2;

// As nginx is set up to serve small files fast. Temporary files and logs stay in its folder.
constexpr std::string_view nginx_settings = R"({user}worker_processes {workers};
daemon off;
pid {folder}/nginx.pid;
error_log stderr notice;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  default_type application/octet-stream;
  sendfile on;
  tcp_nodelay on;
  keepalive_timeout 75s;
  keepalive_requests 1000000000;
  open_file_cache max=1000 inactive=1h;
  open_file_cache_valid 1h;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} reuseport;
    root {folder}/www;
  }}
}}
)";

template <class Number>
Number parse_number(std::string_view text, std::string_view what) {
  Number number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc())
    give_up(fmt::format("no {} in '{}'", what, text));
  return number;
}

// nginx cannot be asked which port it took, so it is given one that was free a moment ago.
uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      ::bind(socket, generic, size) == 0 && ::getsockname(socket, generic, &size) == 0;
  ::close(socket);
  if (!found) give_up("there is no free port");
  return ntohs(address.sin_port);
}

}  // namespace

double Server::cpu_us() const {
  double sum = 0;
  for (const pid_t pid : pids) sum += process_cpu_us(pid);
  return sum;
}

Server start_trellis(const std::filesystem::path& program, const std::string& engine,
                     const std::filesystem::path& folder) {
  Server server;
  server.process = std::make_unique<ChildProcess>(
      std::vector<std::string>{program.string(), "serve", "--engine", engine, "--data",
                               (folder / "data").string(), "--http", "127.0.0.1:0", "--resp",
                               "127.0.0.1:0", "--log-level", "error"},
      folder);
  server.pids = {server.process->pid()};
  constexpr std::string_view address = "http://127.0.0.1:";
  for (std::string line = server.process->read_line(); !line.starts_with("Ctrl-C");
       line = server.process->read_line()) {
    if (const size_t at = line.find(address); at != std::string::npos)
      server.port = parse_number<uint16_t>(line.substr(at + address.size()), "port");
  }
  return server;
}

Server start_nginx(const std::filesystem::path& program, const std::filesystem::path& folder) {
  Server server;
  server.port = free_port();
  const std::filesystem::path settings = folder / "nginx.conf";
  std::ofstream(settings) << fmt::format(
      nginx_settings, fmt::arg("user", ::geteuid() == 0 ? "user root;\n" : ""),
      fmt::arg("workers", nginx_workers), fmt::arg("folder", folder.string()),
      fmt::arg("port", server.port));
  server.process = std::make_unique<ChildProcess>(
      std::vector<std::string>{program.string(), "-e", "stderr", "-p", folder.string(), "-c",
                               settings.string()},
      folder);
  server.pids = {server.process->pid()};
  // It listens before it starts workers.
  constexpr std::string_view started = ": start worker process ";
  while (server.pids.size() < 1 + nginx_workers) {
    const std::string line = server.process->read_line();
    if (const size_t at = line.find(started); at != std::string::npos)
      server.pids.push_back(parse_number<pid_t>(line.substr(at + started.size()), "process"));
  }
  return server;
}

}  // namespace trellis
