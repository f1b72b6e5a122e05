#include "child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <string_view>

#include "measure.h"

namespace trellis {

namespace {

constexpr int line_timeout_ms = 30'000;

// What the child runs between fork and exec: nothing that allocates.
[[noreturn]] void become(char* const* arguments, char* const* environment, const char* folder,
                         int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);  // it ended before that was set
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  if (::chdir(folder) == 0) ::execve(arguments[0], arguments, environment);
  constexpr std::string_view message = "cannot run it\n";
  if (::write(STDERR_FILENO, message.data(), message.size()) < 0) ::_exit(126);
  ::_exit(127);
}

// Whoever runs the benchmark may have settings that are none of its business.
std::vector<char*> clean_environment() {
  std::vector<char*> kept;
  for (char** variable = environ; *variable != nullptr; variable++)
    if (!std::string_view(*variable).starts_with("TRELLIS_")) kept.push_back(*variable);
  kept.push_back(nullptr);
  return kept;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command,
                           const std::filesystem::path& folder)
    : name_(command.at(0)) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const std::vector<char*> environment = clean_environment();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    give_up(fmt::format("make a pipe: {}", std::strerror(errno)));
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(arguments.data(), environment.data(), folder.c_str(), ends[1], parent);
  ::close(ends[1]);
  output_ = ends[0];
  if (pid_ < 0) {
    ::close(output_);
    give_up(fmt::format("fork: {}", std::strerror(errno)));
  }
}

ChildProcess::~ChildProcess() {
  ::kill(pid_, SIGTERM);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  ::close(output_);
}

std::string ChildProcess::read_line() {
  size_t end = unread_.find('\n');
  while (end == std::string::npos) {
    pollfd readable{.fd = output_, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, line_timeout_ms) == 0)
      give_up(fmt::format("{} says nothing:\n{}{}", name_, lines_, unread_));
    std::array<char, 4096> piece;
    const ssize_t bytes = ::read(output_, piece.data(), piece.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) give_up(fmt::format("{} ended:\n{}{}", name_, lines_, unread_));
    unread_.append(piece.data(), static_cast<size_t>(bytes));
    end = unread_.find('\n');
  }
  std::string line = unread_.substr(0, end);
  lines_ += unread_.substr(0, end + 1);
  unread_.erase(0, end + 1);
  return line;
}

double process_cpu_us(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0)
    give_up(fmt::format("the CPU time of process {} cannot be read: it ended", pid));
  return static_cast<double>(used.tv_sec) * 1e6 + static_cast<double>(used.tv_nsec) / 1e3;
}

}  // namespace trellis
