#include "rocksdb_engine/rocksdb_status.h"

#include <fmt/format.h>
#include <unistd.h>

namespace trellis {

namespace {

bool is_no_space(const rocksdb::Status& status) {
  return status.IsNoSpace() || status.subcode() == rocksdb::Status::kSpaceLimit;
}

// RocksDB gives no code for a lock that is taken; both of its messages start so.
bool is_locked(const std::string& text) {
  return text.find("While lock file") != std::string::npos ||
         text.find("lock hold by current process") != std::string::npos;
}

// A table that is missing is reported under the name that LevelDB would have given it.
std::string with_real_names(std::string text) {
  for (size_t at = 0; (at = text.find(".ldb", at)) != std::string::npos;)
    text.replace(at, 4, ".sst");
  return text;
}

constexpr std::string_view restore =
    "nothing was changed; restore from a backup or a checkpoint, or put the file back";

}  // namespace

Error read_error(const rocksdb::Status& status) {
  if (status.IsCorruption())
    return {Code::corrupt, fmt::format("{}; {}", status.ToString(), restore)};
  if (is_no_space(status)) return {Code::no_space, status.ToString()};
  return {Code::unavailable, status.ToString()};
}

Error write_error(const rocksdb::Status& status) {
  if (is_no_space(status)) {
    // RocksDB waits for space by itself, unless it no longer knows what is on the disk.
    const bool resumes = status.severity() < rocksdb::Status::kFatalError;
    return {Code::no_space,
            fmt::format("the disk is full, nothing was written; reads still work. {} ({})",
                        resumes ? "Writes resume within seconds of space being freed; if not, "
                                  "restart trellis"
                                : "Free some space, then restart trellis",
                        status.ToString())};
  }
  // Only what RocksDB refuses because of an earlier failure has a severity.
  if (status.severity() != rocksdb::Status::kNoError) {
    return {Code::unavailable,
            fmt::format("the store takes no writes after a disk error; reads still work. Check the "
                        "disk, then restart trellis ({})",
                        status.ToString())};
  }
  if (status.IsInvalidArgument() || status.IsNotSupported()) {
    return {Code::invalid, status.ToString()};
  }
  return {Code::maybe, fmt::format("writing the log failed, so a restart may find this commit or "
                                   "not. Check the disk, then restart trellis ({})",
                                   status.ToString())};
}

Error denied_error(std::string_view what, bool is_read_only_mount) {
  if (is_read_only_mount)
    return {Code::denied, fmt::format("{} is on a file system that is mounted read-only: mount it "
                                      "so that it can be written, or give another folder",
                                      what)};
  return {Code::denied, fmt::format("the user that runs trellis (uid {}) may not make, read or "
                                    "write {}: give it the right to, or give another folder",
                                    ::geteuid(), what)};
}

std::optional<Error> denied_error(const rocksdb::Status& status, std::string_view what) {
  const std::string text = status.ToString();
  const auto says = [&](std::string_view words) { return text.find(words) != text.npos; };
  if (says("Read-only file system")) return denied_error(what, true);
  if (says("Permission denied") || says("Operation not permitted"))
    return denied_error(what, false);
  return std::nullopt;
}

Error open_error(const rocksdb::Status& status, uint64_t free_bytes) {
  const std::string text = status.ToString();
  if (auto denied = denied_error(status, "all of its files"))
    return {denied->code, fmt::format("{} ({})", denied->message, text)};
  if (is_locked(text)) {
    return {Code::busy, fmt::format("in use by another process, or opened twice by this one: stop "
                                    "the other or give another folder ({})",
                                    text)};
  }
  if (is_no_space(status)) {
    return {
        Code::no_space,
        fmt::format("the disk is full ({} bytes free) and opening needs room to replay the log: "
                    "free some space. What is stored is safe, and copying the folder to a larger "
                    "disk works ({})",
                    free_bytes, text)};
  }
  if (status.IsCorruption() || status.IsPathNotFound()) {
    return {Code::corrupt, fmt::format("{}; {}", with_real_names(text), restore)};
  }
  if (status.IsInvalidArgument()) {  // such as a column family that this build does not know
    return {Code::unsupported,
            fmt::format("{}: use the trellis that wrote it, or a newer one", text)};
  }
  return {Code::unavailable, text};
}

}  // namespace trellis
