#include "rocksdb_engine/fragment_blocks.h"

#include <algorithm>

#include "codec/redis_collection.h"
#include "codec/redis_keys.h"
#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {
namespace {

// | collection | offset in decimal | -> 1 KiB. A field of a hash may look so, too: then its block
// is larger than it need be. RocksDB's own keys have 8 bytes more.
bool is_fragment(ByteView stored_key, size_t value_bytes) {
  constexpr size_t trailer_bytes = 8;
  if (value_bytes != redis_bitmap_fragment_bytes || stored_key.size() < trailer_bytes) return false;
  const ByteView key = stored_key.substr(0, stored_key.size() - trailer_bytes);
  const ByteView collection = redis_collection_of(key);
  return !collection.empty() && std::ranges::all_of(key.substr(collection.size()),
                                                    [](char c) { return c >= '0' && c <= '9'; });
}

class FragmentBlocks final : public rocksdb::FlushBlockPolicy {
 public:
  explicit FragmentBlocks(rocksdb::FlushBlockPolicy* others) : others_(others) {}

  bool Update(const rocksdb::Slice& key, const rocksdb::Slice& value) override {
    if (!is_fragment(to_view(key), value.size())) {
      fragments_ = 0;
      return others_->Update(key, value);
    }
    const bool is_inside = fragments_ % fragments_in_block != 0;
    fragments_++;
    return !is_inside && others_->Update(key, value);
  }

 private:
  const std::unique_ptr<rocksdb::FlushBlockPolicy> others_;
  size_t fragments_ = 0;  // one after the other
};

class FragmentBlocksFactory final : public rocksdb::FlushBlockPolicyFactory {
 public:
  const char* Name() const override { return "trellis.fragment_blocks"; }
  rocksdb::FlushBlockPolicy* NewFlushBlockPolicy(
      const rocksdb::BlockBasedTableOptions& options,
      const rocksdb::BlockBuilder& block) const override {
    return new FragmentBlocks(
        rocksdb::FlushBlockBySizePolicyFactory().NewFlushBlockPolicy(options, block));
  }
};

}  // namespace

std::shared_ptr<rocksdb::FlushBlockPolicyFactory> make_fragment_blocks() {
  return std::make_shared<FragmentBlocksFactory>();
}

}  // namespace trellis
