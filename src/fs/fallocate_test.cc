#include <gtest/gtest.h>

#include "base/random.h"
#include "fs/content_fixture.h"

namespace trellis {
namespace {

using Kind = FallocateMode::Kind;

class Fallocate : public ContentFixture {
 protected:
  Status run(InodeId file, Kind kind, uint64_t offset, uint64_t size, bool keep_size = false) {
    return fs_->fallocate(writer, file, {kind, keep_size}, offset, size);
  }
  static std::string zeros(uint64_t size) { return std::string(size, '\0'); }
};
INSTANTIATE_TEST_SUITE_P(Fs, Fallocate, testing::Values(Way::latched, Way::expecting), way_name);

TEST_P(Fallocate, AllocatesSpace) {
  const InodeId file = make_file(root_inode, "f", "abc");
  EXPECT_OK(run(file, Kind::allocate, 10, 10, true));
  EXPECT_EQ(stat(file).size, 3u);
  EXPECT_OK(run(file, Kind::allocate, 10, 10));
  EXPECT_EQ(read(file), "abc" + zeros(17));
  EXPECT_TRUE(is_inline(file));
  EXPECT_OK(run(file, Kind::allocate, block - 1, 2 * block, true));
  EXPECT_EQ(stat(file).size, 20u);
  EXPECT_EQ(blocks(file), 3u);
  EXPECT_EQ(read(file), "abc" + zeros(17));
  check_all();
  EXPECT_OK(run(file, Kind::allocate, 5 * block, 1));
  EXPECT_EQ(stat(file).size, 5 * block + 1);
  EXPECT_EQ(blocks(file), 4u);
  EXPECT_EQ(read(file), "abc" + zeros(5 * block - 2));
  write(file, 2 * block, "x");
  EXPECT_EQ(blocks(file), 4u);
  check_all();
  // What lies behind the end goes with a truncate to the same size.
  EXPECT_OK(run(file, Kind::allocate, 10 * block, 3 * block, true));
  EXPECT_EQ(blocks(file), 7u);
  truncate(file, 5 * block + 1);
  EXPECT_EQ(blocks(file), 4u);
  // So much in more than one change.
  EXPECT_OK(run(file, Kind::allocate, 0, 5'000 * block));
  EXPECT_EQ(blocks(file), 5'000u);
  EXPECT_EQ(stat(file).size, 5'000 * block);
  check();
}

TEST_P(Fallocate, SpaceBehindTheEndIsClearedInSteps) {
  constexpr uint64_t far = 10'000 * block;
  const auto source = make_file(root_inode, "source");
  write(source, 0, std::string(block, 's'));
  const auto grow = [&](const char* name, auto how) {
    SCOPED_TRACE(name);
    const InodeId file = make_file(root_inode, name);
    write(file, 0, std::string(block + 1, 'x'));
    ASSERT_OK(run(file, Kind::allocate, 0, far + block, true));
    std::vector<BlockWrite> stale;  // as writes that were never committed would have left it
    for (const BlockId& id : blocks_of(file)) stale.push_back({id, 200, "stale"});
    ASSERT_OK(memory_.blocks().write(std::span(stale).subspan(2)));
    const uint64_t version = stat(file).version;
    ASSERT_OK(how(file));
    EXPECT_GE(stat(file).version, version + 3) << "4,096 blocks at a time";
    EXPECT_EQ(stat(file).size, far + block);
    EXPECT_EQ(blocks(file), 10'001u);
    for (const uint64_t at : {uint64_t{2}, uint64_t{4'096}, uint64_t{4'098}, uint64_t{9'999}}) {
      std::string got(block, '?');
      ASSERT_OK(fs_->read(reader, file, at * block, got));
      EXPECT_EQ(got, zeros(block)) << at;
    }
    ASSERT_OK(fs_->unlink(writer, root_inode, name));
    collect_all();
    check();
  };
  const std::string last(block, 'l');
  grow("written", [&](InodeId file) { return fs_->write(writer, file, far, last); });
  grow("longer",
       [&](InodeId file) { return fs_->set_attributes(writer, file, {.size = far + block}); });
  grow("zeroed", [&](InodeId file) { return run(file, Kind::zero, far, block); });
  grow("allocated", [&](InodeId file) { return run(file, Kind::allocate, far, block); });
  grow("cloned",
       [&](InodeId file) { return fs_->copy_range(writer, source, 0, file, far, block); });
}

TEST_P(Fallocate, StaleBytesBehindTheEndNeverShow) {
  const InodeId file = make_file(root_inode, "f");
  write(file, 0, std::string(100, 'x') + zeros(block));
  truncate(file, 100);
  EXPECT_OK(run(file, Kind::allocate, 0, 4 * block, true));
  // As a write that was never committed would have left it.
  std::vector<BlockWrite> stale;
  for (const BlockId& id : blocks_of(file)) stale.push_back({id, 200, "stale"});
  ASSERT_OK(memory_.blocks().write(stale));
  EXPECT_EQ(read(file), std::string(100, 'x'));
  truncate(file, 2 * block);
  EXPECT_EQ(read(file), std::string(100, 'x') + zeros(2 * block - 100));
  write(file, 2 * block + 300, "y");
  EXPECT_EQ(read(file, 2 * block), zeros(300) + "y");
  EXPECT_OK(run(file, Kind::allocate, 0, 4 * block));
  EXPECT_EQ(read(file, 3 * block), zeros(block));
  check_all();
}

TEST_P(Fallocate, PunchesHoles) {
  const InodeId file = make_file(root_inode, "f", "abcdef");
  EXPECT_OK(run(file, Kind::punch_hole, 2, 2, true));
  EXPECT_EQ(read(file), std::string("ab\0\0ef", 6));
  EXPECT_OK(run(file, Kind::punch_hole, 5, 100, true));
  EXPECT_EQ(read(file), std::string("ab\0\0e\0", 6));
  std::string content = Random(5).bytes(6 * block);
  write(file, 0, content);
  const auto punch = [&](uint64_t offset, uint64_t size) {
    EXPECT_OK(run(file, Kind::punch_hole, offset, size, true));
    for (uint64_t i = offset; i < offset + size && i < content.size(); i++) content[i] = '\0';
    EXPECT_EQ(read(file), content);
    check_all();
  };
  punch(10, 20);
  EXPECT_EQ(blocks(file), 6u);
  punch(block - 5, block + 10);
  EXPECT_EQ(blocks(file), 5u);
  punch(3 * block, block);
  EXPECT_EQ(blocks(file), 4u);
  punch(5 * block + 7, 10 * block);
  EXPECT_EQ(blocks(file), 4u);
  punch(0, file_size_max);
  EXPECT_EQ(blocks(file), 0u);
  EXPECT_EQ(stat(file).size, content.size());
  collect_all();
  check_all();
}

TEST_P(Fallocate, ZeroesRanges) {
  const InodeId file = make_file(root_inode, "f", "abcdef");
  EXPECT_OK(run(file, Kind::zero, 2, 2));
  EXPECT_OK(run(file, Kind::zero, 5, 3));
  EXPECT_EQ(read(file), std::string("ab\0\0e\0\0\0", 8));
  EXPECT_OK(run(file, Kind::zero, 1, 2 * block));
  EXPECT_EQ(read(file), "a" + zeros(2 * block));
  EXPECT_EQ(blocks(file), 3u);
  write(file, 0, std::string(4 * block, 'x'));
  EXPECT_OK(run(file, Kind::zero, block - 1, 2 * block + 2));
  EXPECT_EQ(read(file),
            std::string(block - 1, 'x') + zeros(2 * block + 2) + std::string(block - 1, 'x'));
  EXPECT_EQ(blocks(file), 4u);
  check_all();
  EXPECT_OK(run(file, Kind::zero, 4 * block - 1, 2 * block, true));
  EXPECT_EQ(stat(file).size, 4 * block);
  EXPECT_EQ(blocks(file), 6u);
  EXPECT_OK(run(file, Kind::zero, 7 * block + 3, 1));
  EXPECT_EQ(stat(file).size, 7 * block + 4);
  EXPECT_EQ(read(file, 4 * block - 2), "x" + zeros(3 * block + 5));
  EXPECT_EQ(blocks(file), 7u);
  check_all();
}

TEST_P(Fallocate, CutsOutAndPutsIn) {
  const InodeId file = make_file(root_inode, "f");
  std::string content = Random(6).bytes(6 * block + 5);
  write(file, 0, content);
  EXPECT_OK(run(file, Kind::collapse, block, 2 * block));
  content.erase(block, 2 * block);
  EXPECT_EQ(read(file), content);
  EXPECT_EQ(blocks(file), 5u);
  check_all();
  EXPECT_OK(run(file, Kind::insert, block, 3 * block));
  content.insert(block, zeros(3 * block));
  EXPECT_EQ(read(file), content);
  EXPECT_EQ(blocks(file), 5u);
  check_all();
  EXPECT_OK(run(file, Kind::insert, 0, block));
  content.insert(0, zeros(block));
  EXPECT_EQ(read(file), content);
  EXPECT_OK(run(file, Kind::collapse, 0, 5 * block));
  content.erase(0, 5 * block);
  EXPECT_EQ(read(file), content);
  check_all();
  const InodeId small = make_file(root_inode, "small", "abc");
  EXPECT_OK(run(small, Kind::insert, 0, block));
  EXPECT_EQ(read(small), zeros(block) + "abc");
  check_all();
}

TEST_P(Fallocate, RefusesWhatLinuxRefuses) {
  const InodeId file = make_file(root_inode, "f");
  write(file, 0, std::string(3 * block, 'x'));
  const auto refused = [&](Kind kind, uint64_t offset, uint64_t size, bool keep_size) {
    const Status status = run(file, kind, offset, size, keep_size);
    return status ? std::string("done") : std::string(status.error().reason);
  };
  EXPECT_EQ(refused(Kind::allocate, 0, 0, false), "invalid_argument");
  EXPECT_EQ(refused(Kind::allocate, file_size_max, 1, false), "file_too_large");
  EXPECT_EQ(refused(Kind::allocate, 1, UINT64_MAX, false), "file_too_large");
  EXPECT_EQ(refused(Kind::punch_hole, 0, 1, false), "not_supported");
  EXPECT_EQ(refused(Kind::collapse, 0, block, true), "invalid_argument");
  EXPECT_EQ(refused(Kind::insert, 0, block, true), "invalid_argument");
  EXPECT_EQ(refused(Kind::collapse, 1, block, false), "invalid_argument");
  EXPECT_EQ(refused(Kind::insert, 0, block + 1, false), "invalid_argument");
  EXPECT_EQ(refused(Kind::collapse, block, 2 * block, false), "invalid_argument");  // to the end
  EXPECT_EQ(refused(Kind::collapse, block, 5 * block, false), "invalid_argument");
  EXPECT_EQ(refused(Kind::insert, 3 * block, block, false), "invalid_argument");
  EXPECT_EQ(refused(Kind::insert, 0, block_of(file_size_max) * block, false), "file_too_large");
  EXPECT_EQ(run(make_directory(root_inode, "d"), Kind::allocate, 0, 1).error().reason,
            "is_a_directory");
  EXPECT_EQ(run(InodeId{999}, Kind::zero, 0, 1).error().reason, "stale");
  EXPECT_EQ(read(file), std::string(3 * block, 'x'));
}

// What moves is moved at once or not at all.
TEST_P(Fallocate, MovesOnlySoManyPiecesAtOnce) {
  const InodeId file = make_file(root_inode, "f");
  fragment(file, 100'001);
  const FileAttributes before = stat(file);
  EXPECT_REASON(run(file, Kind::insert, 0, block), Code::too_large, "too_fragmented");
  EXPECT_REASON(run(file, Kind::collapse, 0, block), Code::too_large, "too_fragmented");
  EXPECT_EQ(stat(file), before);
  EXPECT_EQ(extents(file), 100'001u);
  // From where fewer are behind it goes.
  if (GetParam() == Way::latched) {
    EXPECT_OK(run(file, Kind::insert, 200'000 * block, block));
    EXPECT_EQ(stat(file).size, before.size + block);
    EXPECT_OK(run(file, Kind::collapse, 199'000 * block, 4 * block));
    EXPECT_EQ(blocks(file), 99'999u);
  }
}

TEST_P(Fallocate, FindsDataAndHoles) {
  const auto data = [&](InodeId file, uint64_t offset) {
    return fs_->seek_data(reader, file, offset);
  };
  const auto hole = [&](InodeId file, uint64_t offset) {
    return fs_->seek_hole(reader, file, offset);
  };
  const InodeId small = make_file(root_inode, "small", "abc");
  EXPECT_EQ(*data(small, 1), 1u);
  EXPECT_EQ(*hole(small, 1), 3u);
  EXPECT_REASON(data(small, 3), Code::not_found, "no_such_offset");
  EXPECT_REASON(hole(small, 3), Code::not_found, "no_such_offset");
  const InodeId file = make_file(root_inode, "f");
  truncate(file, 20 * block + 1);
  EXPECT_REASON(data(file, 0), Code::not_found, "no_such_offset");
  EXPECT_EQ(*hole(file, 5), 5u);
  write(file, 3 * block + 7, std::string(2 * block, 'x'));
  write(file, 6 * block, std::string(block, 'x'));  // beside it, in another place
  EXPECT_EQ(*data(file, 0), 3 * block);
  EXPECT_EQ(*data(file, 4 * block + 1), 4 * block + 1);
  EXPECT_EQ(*hole(file, 3 * block), 7 * block);
  EXPECT_EQ(*hole(file, 2 * block), 2 * block);
  EXPECT_EQ(*hole(file, 7 * block), 7 * block);
  EXPECT_REASON(data(file, 7 * block), Code::not_found, "no_such_offset");
  write(file, 20 * block, "x");
  EXPECT_EQ(*data(file, 7 * block), 20 * block);
  EXPECT_EQ(*hole(file, 20 * block), 20 * block + 1);
  // Space behind the end is no data.
  EXPECT_OK(run(file, Kind::allocate, 30 * block, block, true));
  EXPECT_REASON(data(file, 20 * block + 1), Code::not_found, "no_such_offset");
  EXPECT_REASON(data(make_directory(root_inode, "d"), 0), Code::invalid, "is_a_directory");
}

}  // namespace
}  // namespace trellis
