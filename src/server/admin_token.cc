#include "server/admin_token.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "tenant/tokens.h"

namespace trellis {
namespace {

constexpr size_t token_bytes_min = 16;
constexpr size_t token_bytes_max = 256;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  const int number_;
};

Error failed(const std::filesystem::path& file, std::string_view what) {
  return {Code::invalid, fmt::format("admin token file {}: {}", file.string(), what)};
}

Error system_failed(const std::filesystem::path& file) {
  return failed(file, std::generic_category().message(errno));
}

Result<AdminToken> make(const std::filesystem::path& file) {
  const Descriptor made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (made.get() < 0) return system_failed(file);
  AdminToken token{.text = make_admin_token(), .is_new = true};
  const std::string line = token.text + '\n';
  if (::write(made.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      ::fsync(made.get()) != 0) {
    const Error error = system_failed(file);
    ::unlink(file.c_str());  // half a token would be taken for a whole one
    return error;
  }
  return token;
}

}  // namespace

Result<AdminToken> load_admin_token(const std::filesystem::path& file) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (opened.get() < 0 && errno == ENOENT) return make(file);
  struct stat status {};
  if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0) return system_failed(file);
  if (!S_ISREG(status.st_mode)) return failed(file, "not a file");
  if ((status.st_mode & 077) != 0)
    return failed(file, "others may read or change it: chmod 600 it first");
  std::array<char, token_bytes_max + 2> buffer;
  const ssize_t size = ::read(opened.get(), buffer.data(), buffer.size());
  if (size < 0) return system_failed(file);
  std::string text(buffer.data(), static_cast<size_t>(size));
  if (text.ends_with('\n')) text.pop_back();
  if (text.size() < token_bytes_min || text.size() > token_bytes_max ||
      !std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; }))
    return failed(file, fmt::format("holds no token: one line of {} to {} printable characters; "
                                    "remove the file and a token is made",
                                    token_bytes_min, token_bytes_max));
  return AdminToken{.text = std::move(text)};
}

}  // namespace trellis
