#include "cli/standard_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ostream>

namespace trellis {
namespace {

constexpr size_t piece_bytes = 64 * 1024;

Error failed(std::string_view what, int number) {
  return Error{Code::unavailable, fmt::format("{}: {}", what, std::strerror(number))};
}

// While it lives, a terminal does not show what is typed. Does nothing to what is no terminal.
class HiddenTyping {
 public:
  explicit HiddenTyping(int descriptor) : descriptor_(descriptor) {
    is_hidden_ = ::tcgetattr(descriptor, &before_) == 0;
    if (!is_hidden_) return;
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    hidden.c_lflag |= ECHONL;
    ::tcsetattr(descriptor, TCSAFLUSH, &hidden);
  }
  ~HiddenTyping() {
    if (is_hidden_) ::tcsetattr(descriptor_, TCSADRAIN, &before_);
  }
  HiddenTyping(const HiddenTyping&) = delete;
  HiddenTyping& operator=(const HiddenTyping&) = delete;

 private:
  int descriptor_;
  bool is_hidden_;
  termios before_{};
};

Result<int> open_file(const std::string& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (descriptor < 0) return failed(path, errno);
  return descriptor;
}

}  // namespace

Status StandardOutput::write(ByteView bytes) {
  gathered_ += bytes;
  return gathered_.size() < piece_bytes ? Status() : flush();
}

Status StandardOutput::flush() {
  size_t done = 0;
  while (done < gathered_.size()) {
    const ssize_t written = ::write(descriptor_, gathered_.data() + done, gathered_.size() - done);
    if (written >= 0) {
      done += static_cast<size_t>(written);
      continue;
    }
    if (errno == EINTR) continue;
    const int number = errno;
    gathered_.clear();
    Error error = failed(name_ + " could not be written", number);
    if (number == EPIPE) error.reason = reason_reader_left;
    return error;
  }
  gathered_.clear();
  return {};
}

bool StandardOutput::is_terminal() const { return ::isatty(descriptor_) == 1; }

Status StandardInput::fill() {
  const size_t before = read_.size();
  read_.resize(before + piece_bytes);
  ssize_t got = 0;
  do {
    got = ::read(descriptor_, read_.data() + before, piece_bytes);
  } while (got < 0 && errno == EINTR);
  const int number = errno;
  read_.resize(before + static_cast<size_t>(got < 0 ? 0 : got));
  if (got < 0) return failed(name_ + " could not be read", number);
  at_end_ = got == 0;
  return {};
}

Result<Bytes> StandardInput::read_some() {
  if (read_.empty() && !at_end_) TRY(fill());
  return std::exchange(read_, {});
}

Result<std::optional<std::string>> StandardInput::read_line(size_t bytes_max) {
  size_t searched = 0;
  for (;;) {
    const size_t end = read_.find('\n', searched);
    if (end != Bytes::npos ? end > bytes_max : read_.size() > bytes_max)
      return Error{Code::too_large,
                   fmt::format("{} has a line of more than {} bytes", name_, bytes_max)};
    if (end != Bytes::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    if (at_end_) {
      if (read_.empty()) return std::nullopt;
      return std::exchange(read_, {});
    }
    searched = read_.size();
    TRY(fill());
  }
}

Result<std::optional<std::string>> StandardInput::read_secret_line(std::ostream& err,
                                                                   std::string_view prompt,
                                                                   size_t bytes_max) {
  // First of all, because who sees the prompt begins to type.
  const HiddenTyping hidden(descriptor_);
  if (is_terminal()) err << prompt << std::flush;
  return read_line(bytes_max);
}

Result<Bytes> StandardInput::read_all(size_t bytes_max) {
  while (!at_end_ && read_.size() <= bytes_max) TRY(fill());
  if (read_.size() > bytes_max)
    return Error{Code::too_large, fmt::format("{} has more than {} bytes", name_, bytes_max)};
  return std::exchange(read_, {});
}

bool StandardInput::is_terminal() const { return ::isatty(descriptor_) == 1; }

Result<StreamFile> StreamFile::open_to_read(const std::string& path) {
  TRY_ASSIGN(const int descriptor, open_file(path, O_RDONLY));
  return StreamFile(descriptor, path);
}

Result<StreamFile> StreamFile::open_to_write(const std::string& path, uint64_t bytes_kept) {
  TRY_ASSIGN(const int descriptor,
             open_file(path, O_WRONLY | O_CREAT | (bytes_kept == 0 ? O_TRUNC : O_APPEND)));
  StreamFile file(descriptor, path);
  if (bytes_kept != 0 && ::ftruncate(descriptor, static_cast<off_t>(bytes_kept)) != 0)
    return failed(path, errno);
  return file;
}

Result<StreamFile> StreamFile::open_unnamed(const std::string& folder) {
  std::string path = folder + "/trellis-XXXXXX";
  const int descriptor = ::mkostemp(path.data(), O_CLOEXEC);
  if (descriptor < 0) return failed(path, errno);
  ::unlink(path.c_str());
  return StreamFile(descriptor, path);
}

StreamFile::StreamFile(StreamFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

StreamFile::~StreamFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<uint64_t> StreamFile::size() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return static_cast<uint64_t>(status.st_size);
}

Status StreamFile::sync() const {
  if (::fsync(descriptor_) != 0) return failed(path_, errno);
  return {};
}

}  // namespace trellis
