// Keeps the thread sanitizer from looking into a call of RocksDB, which is not instrumented. Who
// writes for a group of threads reads their batches: each byte looks like a race, and a minute of
// writing takes an hour. Locks are still seen.
#pragma once

#include <rocksdb/db.h>

#if defined(__SANITIZE_THREAD__)
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace trellis {

// Lives as long as the call.
class UncheckedCall {
 public:
#if defined(__SANITIZE_THREAD__)
  UncheckedCall() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~UncheckedCall() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  UncheckedCall() {}  // NOLINT(modernize-use-equals-default): or nobody seems to use it
#endif
  UncheckedCall(const UncheckedCall&) = delete;
  UncheckedCall& operator=(const UncheckedCall&) = delete;
};

// DB::Write with the options that all our writes have: into the log, and not waiting for the disk.
inline rocksdb::Status write_unsynced(rocksdb::DB& db, rocksdb::WriteBatch& batch) {
  const UncheckedCall unchecked;
  return db.Write(rocksdb::WriteOptions(), &batch);
}

}  // namespace trellis
