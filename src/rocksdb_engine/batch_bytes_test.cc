#include "rocksdb_engine/batch_bytes.h"

#include <gtest/gtest.h>

#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {
namespace {

TEST(BatchBytes, AreWhatRocksdbMakes) {
  BatchBytes ours;
  rocksdb::WriteBatch theirs;
  for (const size_t size : {0u, 1u, 127u, 128u, 16'383u, 16'384u, 3'000'000u}) {
    const Bytes key(size, 'k');
    const Bytes value(size, 'v');
    ours.put(key, value);
    ASSERT_TRUE(theirs.Put(to_slice(key), to_slice(value)).ok());
    ours.remove(key);
    ASSERT_TRUE(theirs.Delete(to_slice(key)).ok());
    ours.merge(key, value);
    ASSERT_TRUE(theirs.Merge(to_slice(key), to_slice(value)).ok());
    ours.remove_range(key, value);
    ASSERT_TRUE(theirs.DeleteRange(to_slice(key), to_slice(value)).ok());
  }
  EXPECT_EQ(ours.count(), theirs.Count());
  EXPECT_EQ(ours.size(), theirs.GetDataSize());
  EXPECT_TRUE(ours.take().Data() == theirs.Data());
  EXPECT_EQ(ours.count(), 0u);
  EXPECT_EQ(ours.take().Data(), rocksdb::WriteBatch().Data());
}

}  // namespace
}  // namespace trellis
