// An object store in memory that obeys what was measured of RADOS, shared by any number of clients.
// Each is to use it through a FaultyObjectStore of its own; this one never fails on its own.
#pragma once

#include <mutex>

#include "object_store/object_store.h"

namespace trellis {

// The real limits, unless a test wants to meet them with little data.
struct FakeObjectStoreLimits {
  size_t operation_bytes = operation_bytes_max;
  size_t read_entries = omap_read_entries_max;
  size_t read_bytes = omap_read_bytes_max;
  // What a deep scrub warns of.
  size_t object_keys = 200'000;
  size_t object_omap_bytes = 1024 * 1024 * 1024;
};

class FakeObjectStore final : public ObjectStore {
 public:
  explicit FakeObjectStore(FakeObjectStoreLimits limits = {}) : limits_(limits) {}

  int read(FaultPoint point, ByteView object, const ReadOperation& operation,
           ReadAnswer& answer) override;
  int write(FaultPoint point, ByteView object, const WriteOperation& operation) override;
  void write_many(std::span<const ObjectWrite> writes, std::span<int> answers) override;
  int list(ByteView prefix, FunctionRef<void(ByteView object)> visit) override;

  // The objects that a deep scrub would warn of.
  std::vector<Bytes> large_objects() const;
  // A copy of everything, for tests that try many ways from one state. REQUIRES: no call runs.
  void copy_from(const FakeObjectStore& other);

 private:
  struct Object {
    uint64_t version = 0;
    std::map<Bytes, Bytes, std::less<>> attributes;
    std::map<Bytes, Bytes, std::less<>> omap;
    Bytes bytes;
  };
  using Objects = std::map<Bytes, Object, std::less<>>;

  static int check(const Guard& guard, const Object& object);
  static int check_all(const std::vector<Guard>& guards, const Object* object);
  static int apply(const ObjectChange& change, std::optional<Object>& object);
  OmapPage page(const Object& object, const OmapPageRequest& request) const;

  FakeObjectStoreLimits limits_;
  mutable std::mutex mutex_;  // of everything below
  Objects objects_;
  uint64_t last_version_ = 0;  // of all objects: nobody can predict one, as on RADOS
};

}  // namespace trellis
