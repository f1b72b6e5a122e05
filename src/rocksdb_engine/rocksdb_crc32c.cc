#include "rocksdb_engine/rocksdb_crc32c.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/crc32c.h"

namespace trellis {
namespace {

std::atomic<bool> is_called{false};

}  // namespace

bool rocksdb_uses_our_crc32c() { return is_called.load(std::memory_order_relaxed); }

}  // namespace trellis

namespace rocksdb::crc32c {

// As the library declares it, in a header that is not installed.
[[gnu::visibility("default")]] uint32_t Extend(uint32_t checksum, const char* data, size_t size);

uint32_t Extend(uint32_t checksum, const char* data, size_t size) {
  using trellis::is_called;
  if (!is_called.load(std::memory_order_relaxed)) is_called.store(true, std::memory_order_relaxed);
  return trellis::crc32c({data, size}, checksum);
}

}  // namespace rocksdb::crc32c
