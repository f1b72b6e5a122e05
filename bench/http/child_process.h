// A program that runs beside us, and ends with us at the latest.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace trellis {

class ChildProcess {
 public:
  // Runs command[0], an absolute path, in `folder`, without the TRELLIS_* variables that are set.
  ChildProcess(const std::vector<std::string>& command, const std::filesystem::path& folder);
  // Asks it to stop and waits until it has.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The next line of what it prints, on stdout and stderr. Gives up if it ends, or prints none for
  // half a minute.
  std::string read_line();

  pid_t pid() const { return pid_; }

 private:
  std::string name_;
  pid_t pid_ = -1;
  int output_ = -1;
  std::string unread_;  // of its output, less than a line
  std::string lines_;   // all before that, to say why it failed
};

// CPU that a process has used so far, all its threads together.
double process_cpu_us(pid_t pid);

}  // namespace trellis
