#include <gtest/gtest.h>

#include "base/random.h"
#include "fs/content_fixture.h"

namespace trellis {
namespace {

class Clone : public ContentFixture {
 protected:
  uint64_t copy(InodeId from, uint64_t from_offset, InodeId to, uint64_t to_offset,
                uint64_t size = 0) {
    const auto copied = fs_->copy_range(writer, from, from_offset, to, to_offset, size);
    EXPECT_OK(copied);
    return copied ? *copied : 0;
  }
  uint64_t users(DataId data) {
    Value stored;
    EXPECT_OK(memory_.get(encode(FsSharedDataKey{id_, data}), stored));
    return stored.found() ? decode<FsSharedData>(stored.bytes())->inodes : 0;
  }
  DataId data_of(InodeId inode) {
    const auto seen = see_inode(memory_, id_, inode);
    EXPECT_OK(seen);
    return (*seen)->inode.data;
  }
};
INSTANTIATE_TEST_SUITE_P(Fs, Clone, testing::Values(Way::latched, Way::expecting), way_name);

TEST_P(Clone, SharesBlocksUntilTheyAreWritten) {
  const InodeId file = make_file(root_inode, "f");
  const std::string content = Random(7).bytes(5 * block + 100);
  write(file, 0, content);
  const DataId data = data_of(file);
  const FileAttributes before = stat(file);
  const InodeId clone = make_file(root_inode, "clone");
  EXPECT_EQ(copy(file, 0, clone, 0), content.size());
  EXPECT_EQ(read(clone), content);
  EXPECT_EQ(blocks_of(clone), blocks_of(file));
  EXPECT_EQ(users(data), 2u);
  EXPECT_EQ(stat(file).version, before.version);
  check_all();
  write(clone, block + 5, "changed");
  write(file, 3 * block, std::string(block, 'y'));
  std::string cloned = content;
  cloned.replace(block + 5, 7, "changed");
  std::string changed = content;
  changed.replace(3 * block, block, std::string(block, 'y'));
  EXPECT_EQ(read(clone), cloned);
  EXPECT_EQ(read(file), changed);
  check_all();
  // A clone of a clone, and of what is both shared and own.
  const InodeId third = make_file(root_inode, "third");
  EXPECT_EQ(copy(clone, 0, third, 0), content.size());
  EXPECT_EQ(read(third), cloned);
  EXPECT_EQ(users(data), 3u);
  check_all();
  for (const char* name : {"f", "clone"}) ASSERT_OK(fs_->unlink(writer, root_inode, name));
  collect_all();
  check_all();
  EXPECT_EQ(read(third), cloned);
  EXPECT_EQ(users(data), 1u);
  const auto ids = blocks_of(third);
  truncate(third, 0);
  collect_all();
  check_all();
  EXPECT_EQ(users(data), 0u);
  expect_gone(ids);
}

TEST_P(Clone, CopiesWhatIsNoWholeBlock) {
  const InodeId file = make_file(root_inode, "f");
  const std::string content = Random(8).bytes(6 * block);
  write(file, 0, content);
  const InodeId target = make_file(root_inode, "t");
  std::string expected(9 * block, 'z');
  write(target, 0, expected);
  const auto both = [&](uint64_t from, uint64_t to, uint64_t size) {
    EXPECT_EQ(copy(file, from, target, to, size), size);
    expected.replace(to, size, content.substr(from, size));
    EXPECT_EQ(read(target), expected);
    check_all();
  };
  both(block + 100, 2 * block + 100, 3 * block);  // head and tail are copied
  EXPECT_EQ(users(data_of(file)), 0u);            // its own data is new
  both(7, 4 * block + 8, 2 * block);              // nothing fits
  both(5 * block, 8 * block, 77);
  both(0, block, block);
}

TEST_P(Clone, StaysInTheSourceAndGrowsTheTarget) {
  const InodeId file = make_file(root_inode, "f");
  const std::string content = Random(9).bytes(2 * block + 9);
  write(file, 0, content);
  const InodeId target = make_file(root_inode, "t", "abc");
  EXPECT_EQ(copy(file, content.size(), target, 0), 0u);
  EXPECT_EQ(copy(file, block, target, 3 * block, 100 * block), block + 9);
  EXPECT_EQ(read(target), "abc" + std::string(3 * block - 3, '\0') + content.substr(block));
  check_all();
  // The last block of the source is not the last of the target: what is behind it is zeros.
  truncate(target, 4 * block + 500);
  EXPECT_EQ(read(target, 4 * block), content.substr(2 * block) + std::string(491, '\0'));
  EXPECT_EQ(copy(file, 0, target, 2 * block), content.size());
  EXPECT_EQ(read(target, 4 * block), content.substr(2 * block) + std::string(491, '\0'));
  check_all();
  const InodeId small = make_file(root_inode, "s", "small");
  EXPECT_EQ(copy(small, 0, target, block), 5u);
  EXPECT_EQ(read(target, block, 5), "small");
  EXPECT_EQ(copy(small, 1, small, 5, 4), 4u);
  EXPECT_EQ(read(small), "smallmall");
  check_all();
}

TEST_P(Clone, WithinOneFile) {
  const InodeId file = make_file(root_inode, "f");
  std::string content = Random(10).bytes(4 * block + 50);
  write(file, 0, content);
  EXPECT_EQ(copy(file, 0, file, 2 * block, 2 * block), 2 * block);
  content.replace(2 * block, 2 * block, content.substr(0, 2 * block));
  EXPECT_EQ(read(file), content);
  check_all();
  EXPECT_EQ(copy(file, 0, file, 5 * block), content.size());  // with its last block
  const std::string gap(block - 50, '\0');
  content += gap + content;
  EXPECT_EQ(read(file), content);
  check_all();
  write(file, 5, "changed");
  content.replace(5, 7, "changed");
  EXPECT_EQ(read(file), content);
  check_all();
  EXPECT_REASON(fs_->copy_range(writer, file, 0, file, block, 2 * block), Code::invalid,
                "invalid_argument");
  EXPECT_REASON(fs_->copy_range(writer, file, 10, file, 10, 1), Code::invalid, "invalid_argument");
}

TEST_P(Clone, HolesStayHoles) {
  const InodeId file = make_file(root_inode, "f");
  truncate(file, file_size_max);
  write(file, 7 * block, "x");
  const InodeId target = make_file(root_inode, "t", "abc");
  EXPECT_EQ(copy(file, 0, target, 0), file_size_max);
  EXPECT_EQ(blocks(target), 1u);
  EXPECT_EQ(read(target, 7 * block, 2), std::string("x\0", 2));
  const InodeId unaligned = make_file(root_inode, "u");
  EXPECT_EQ(copy(file, 0, unaligned, 1, file_size_max), file_size_max - 1);
  EXPECT_LE(blocks(unaligned), 17u);  // one piece that was copied
  EXPECT_EQ(read(unaligned, 7 * block, 3), std::string("\0x\0", 3));
  check_all();
}

TEST_P(Clone, RefusesWhatLinuxRefuses) {
  const InodeId file = make_file(root_inode, "f", "abc");
  const InodeId directory = make_directory(root_inode, "d");
  const auto refused = [&](InodeId from, InodeId to, uint64_t to_offset) {
    const auto copied = fs_->copy_range(writer, from, 0, to, to_offset, 0);
    return copied ? std::string("done") : std::string(copied.error().reason);
  };
  EXPECT_EQ(refused(directory, file, 0), "is_a_directory");
  EXPECT_EQ(refused(file, directory, 0), "is_a_directory");
  EXPECT_EQ(refused(file, InodeId{999}, 0), "stale");
  EXPECT_EQ(refused(file, make_file(root_inode, "t"), file_size_max), "file_too_large");
  EXPECT_CODE(fs_->copy_range(reader, file, 0, file, 0, 0), Code::denied);
}

TEST_P(Clone, CountsInTheQuotaOfItsDirectory) {
  const InodeId directory = make_directory(root_inode, "d");
  ASSERT_OK(fs_->set_quota(keyspace_admin, directory, {.bytes_max = 3 * block, .inodes_max = 0}));
  const InodeId file = make_file(root_inode, "f");
  write(file, 0, std::string(4 * block, 'x'));
  const InodeId target = make_file(directory, "t");
  EXPECT_REASON(fs_->copy_range(writer, file, 0, target, 0, 0), Code::exhausted,
                "directory_quota_exceeded");
  check_all();
  EXPECT_EQ(copy(file, 0, target, 0, 3 * block), 3 * block);
  check_all();
}

}  // namespace
}  // namespace trellis
