#include "rocksdb_engine/rocksdb_crc32c.h"

#include <gtest/gtest.h>
#include <rocksdb/file_checksum.h>

#include <memory>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace trellis {
namespace {

TEST(RocksdbCrc32c, IsOursInTheLibraryToo) {
  const Bytes bytes = "one ordered map, many models";
  const std::unique_ptr<rocksdb::FileChecksumGenerator> generator =
      rocksdb::GetFileChecksumGenCrc32cFactory()->CreateFileChecksumGenerator({});
  generator->Update(bytes.data(), 5);
  generator->Update(bytes.data() + 5, bytes.size() - 5);
  generator->Finalize();
  EXPECT_TRUE(rocksdb_uses_our_crc32c());
  Bytes expected;
  append_be32(expected, crc32c(bytes));
  EXPECT_EQ(generator->GetChecksum(), expected);
}

}  // namespace
}  // namespace trellis
