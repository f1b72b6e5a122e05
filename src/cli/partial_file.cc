#include "cli/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace trellis {
namespace {

Error partial_error(const std::string& path, int number) {
  return Error{Code::invalid, fmt::format("{}: {}", path, std::strerror(number))};
}

// Whether the name still leads to what is open: whoever had it locked may have renamed it.
bool is_at(int descriptor, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

Result<PartialFile> PartialFile::open(std::string path, bool goes_on) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0) return partial_error(path, errno);
  PartialFile file(descriptor, std::move(path));
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 || !is_at(descriptor, file.path_))
    return Error{Code::conflict, fmt::format("{} is being written by another command", file.path_)};
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    return Error{Code::invalid, fmt::format("{} is no regular file", file.path_)};
  file.size_ = static_cast<uint64_t>(status.st_size);
  if (!goes_on) file.clear();
  return file;
}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      size_(other.size_) {}

PartialFile::~PartialFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status PartialFile::write(ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return partial_error(path_, errno);
    size_ += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

void PartialFile::remove() { ::unlink(path_.c_str()); }

Status PartialFile::rename_to(const std::string& path) {
  if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) return partial_error(path_, errno);
  if (std::rename(path_.c_str(), path.c_str()) != 0) return partial_error(path, errno);
  return {};
}

}  // namespace trellis
