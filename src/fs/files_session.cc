#include "fs/files_session.h"

namespace trellis {

FilesSession::~FilesSession() {
  // If that fails it ends by itself, as that of a client that died.
  if (session_) discard(fs_->end_session(Caller{Role::read, "files"}, *session_));
}

Result<SessionId> FilesSession::id(const Caller& caller) {
  const std::lock_guard lock(mutex_);
  TRY(renew(caller));
  if (!session_) {
    TRY_ASSIGN(session_, fs_->begin_session(caller, "files"));
    renewed_us_ = fs_->tenant().map().clock.monotonic_us();
  }
  return *session_;
}

Status FilesSession::keep_alive(const Caller& caller) {
  const std::lock_guard lock(mutex_);
  return renew(caller);
}

Status FilesSession::renew(const Caller& caller) {
  if (!session_) return {};
  const uint64_t now_us = fs_->tenant().map().clock.monotonic_us();
  if (now_us - renewed_us_ < fs_->options().session_ms * us_per_ms / 3) return {};
  if (const Status renewed = fs_->renew_session(caller, *session_); !renewed) {
    if (renewed.error().reason != "session_gone") return renewed;
    session_.reset();
  }
  renewed_us_ = now_us;
  return {};
}

}  // namespace trellis
