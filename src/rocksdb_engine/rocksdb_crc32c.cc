#include "rocksdb_engine/rocksdb_crc32c.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#include "base/crc32c.h"

namespace rocksdb::crc32c {

// As the library declares it, in a header that is not installed.
[[gnu::visibility("default")]] uint32_t Extend(uint32_t checksum, const char* data, size_t size);

uint32_t Extend(uint32_t checksum, const char* data, size_t size) {
  return trellis::crc32c({data, size}, checksum);
}

}  // namespace rocksdb::crc32c

namespace trellis {

bool rocksdb_uses_our_crc32c() {
  const void* const first = dlsym(RTLD_DEFAULT, "_ZN7rocksdb6crc32c6ExtendEjPKcm");
  return first == reinterpret_cast<const void*>(&rocksdb::crc32c::Extend);
}

}  // namespace trellis
