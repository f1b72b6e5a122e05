// The session of one client that works by paths: begun when it is first needed, renewed while it
// is used, ended with the last who has it.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "fs/file_system.h"

namespace trellis {

// Any thread.
class FilesSession {
 public:
  explicit FilesSession(std::shared_ptr<FileSystem> fs) : fs_(std::move(fs)) {}
  ~FilesSession();
  FilesSession(const FilesSession&) = delete;
  FilesSession& operator=(const FilesSession&) = delete;

  // One that lives. Another one if the last was not used for too long: what was open in that is
  // lost.
  Result<SessionId> id(const Caller& caller);
  // Nothing if there is none.
  Status keep_alive(const Caller& caller);
  FileSystem& fs() { return *fs_; }
  const std::shared_ptr<FileSystem>& shared_fs() { return fs_; }

 private:
  Status renew(const Caller& caller);  // REQUIRES: mutex_

  const std::shared_ptr<FileSystem> fs_;
  std::mutex mutex_;
  std::optional<SessionId> session_;
  uint64_t renewed_us_ = 0;
};

}  // namespace trellis
