#include "backup/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace trellis {
namespace {

Error file_error(const std::filesystem::path& path, int error) {
  const Code code = error == ENOENT                                       ? Code::not_found
                    : error == ENOSPC || error == EDQUOT                  ? Code::no_space
                    : error == EACCES || error == EPERM || error == EROFS ? Code::denied
                    : error == ENOTDIR || error == ENAMETOOLONG || error == EISDIR
                        ? Code::invalid
                        : Code::unavailable;
  return {code, fmt::format("{}: {}", path.string(), std::strerror(error)), "backup_files"};
}

class OpenFile {
 public:
  OpenFile(const std::filesystem::path& path, int flags)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

Result<Bytes> read_whole_file(const std::filesystem::path& path, size_t bytes_max) {
  const OpenFile file(path, O_RDONLY);
  struct stat facts {};
  if (file.get() < 0 || ::fstat(file.get(), &facts) != 0) return file_error(path, errno);
  if (!S_ISREG(facts.st_mode))
    return Error{Code::invalid, fmt::format("{} is no file", path.string()), "backup_files"};
  const auto bytes = static_cast<size_t>(facts.st_size);
  if (bytes > bytes_max)
    return Error{Code::too_large, fmt::format("{} has {} bytes", path.string(), bytes),
                 "backup_files"};
  Bytes text(bytes, '\0');
  size_t done = 0;
  while (done < bytes) {
    const ssize_t count = ::read(file.get(), text.data() + done, bytes - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(path, errno);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  text.resize(done);
  return text;
}

Status write_whole_file(const std::filesystem::path& path, const std::filesystem::path& drafts,
                        ByteView bytes) {
  static std::atomic<uint64_t> number{0};
  const std::filesystem::path draft = drafts / fmt::format("draft-{}-{}", ::getpid(), number++);
  const auto fail = [&](int error) {
    ::unlink(draft.c_str());
    return file_error(path, error);
  };
  {
    const OpenFile file(draft, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.get() < 0) return file_error(draft, errno);
    while (!bytes.empty()) {
      const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return fail(errno);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    if (::fsync(file.get()) != 0) return fail(errno);
  }
  if (::rename(draft.c_str(), path.c_str()) != 0) return fail(errno);
  return {};
}

Status sync_folder_of_files(const std::filesystem::path& folder) {
  const OpenFile file(folder, O_RDONLY | O_DIRECTORY);
  if (file.get() < 0 || ::fsync(file.get()) != 0) return file_error(folder, errno);
  return {};
}

bool on_one_disk(const std::filesystem::path& a, const std::filesystem::path& b) {
  struct stat of_a {};
  struct stat of_b {};
  return ::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev;
}

Status make_folders(const std::filesystem::path& folder) {
  std::error_code failed;
  if (std::filesystem::is_directory(folder, failed)) return {};
  if (folder.has_parent_path() && folder.parent_path() != folder)
    TRY(make_folders(folder.parent_path()));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return file_error(folder, errno);
  return sync_folder_of_files(folder.parent_path());
}

Status remove_tree(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::remove_all(path, failed);
  if (failed) return file_error(path, failed.value());
  return {};
}

}  // namespace trellis
