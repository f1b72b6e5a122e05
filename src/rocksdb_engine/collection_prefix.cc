#include "rocksdb_engine/collection_prefix.h"

#include "codec/redis_collection.h"
#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {
namespace {

class CollectionPrefix final : public rocksdb::SliceTransform {
 public:
  // Is stored in every table: tables that were made with another name are read without it.
  const char* Name() const override { return "trellis.redis_collection.1"; }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    return to_slice(redis_collection_of(to_view(key)));
  }
  bool InDomain(const rocksdb::Slice& key) const override {
    return !redis_collection_of(to_view(key)).empty();
  }
};

}  // namespace

std::shared_ptr<const rocksdb::SliceTransform> make_collection_prefix() {
  return std::make_shared<CollectionPrefix>();
}

}  // namespace trellis
