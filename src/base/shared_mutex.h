// A shared mutex that lets writers in: once one waits, new readers wait behind it. The standard
// one prefers readers on glibc, so that a steady load of readers keeps a writer out for ever.
//
// Works with std::unique_lock and std::shared_lock. A thread must not take it twice, not even
// shared: it would wait for the writer that waits for it.
#pragma once

#include <pthread.h>

#include "base/assert.h"

namespace trellis {

class SharedMutex {
 public:
  SharedMutex() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    const int made = pthread_rwlock_init(&lock_, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    ASSERT(made == 0);
  }
  ~SharedMutex() { pthread_rwlock_destroy(&lock_); }
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock() { ASSERT(pthread_rwlock_wrlock(&lock_) == 0); }
  bool try_lock() { return pthread_rwlock_trywrlock(&lock_) == 0; }
  void unlock() { pthread_rwlock_unlock(&lock_); }
  void lock_shared() { ASSERT(pthread_rwlock_rdlock(&lock_) == 0); }
  bool try_lock_shared() { return pthread_rwlock_tryrdlock(&lock_) == 0; }
  void unlock_shared() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_;
};

}  // namespace trellis
