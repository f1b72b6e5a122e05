#include "fs/content.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/random.h"
#include "fs/content_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

class ContentTest : public ContentFixture {};
INSTANTIATE_TEST_SUITE_P(Fs, ContentTest, testing::Values(Way::latched, Way::expecting), way_name);

TEST_P(ContentTest, SmallFilesAreInline) {
  const InodeId file = make_file(root_inode, "f");
  EXPECT_EQ(read(file), "");
  write(file, 0, "hello");
  write(file, 7, "world");
  EXPECT_EQ(read(file), std::string("hello\0\0world", 12));
  EXPECT_EQ(read(file, 7, 3), "wor");
  EXPECT_EQ(read(file, 12), "");
  EXPECT_EQ(read(file, file_size_max), "");
  EXPECT_TRUE(is_inline(file));
  EXPECT_EQ(blocks(file), 0u);
  truncate(file, 2);
  truncate(file, 4);
  EXPECT_EQ(read(file), std::string("he\0\0", 4));
  check_all();
}

TEST_P(ContentTest, FilesThatGrowAreMappedAndStaySo) {
  const InodeId file = make_file(root_inode, "f", std::string(4096, 'a'));
  EXPECT_TRUE(is_inline(file));
  write(file, 4090, "0123456789");
  EXPECT_FALSE(is_inline(file));
  EXPECT_EQ(read(file), std::string(4090, 'a') + "0123456789");
  EXPECT_EQ(blocks(file), 1u);
  check_all();
  truncate(file, 3);
  EXPECT_FALSE(is_inline(file));
  EXPECT_EQ(read(file), "aaa");
  truncate(file, 0);
  EXPECT_EQ(blocks(file), 0u);
  write(file, 0, "x");
  EXPECT_EQ(read(file), "x");
  check_all();
  // Far behind what is inline, in the first block, and by its size alone.
  const InodeId far = make_file(root_inode, "far", "abc");
  write(far, 10 * block, "end");
  EXPECT_EQ(read(far, 0, 5), std::string("abc\0\0", 5));
  EXPECT_EQ(read(far, 10 * block - 1), std::string("\0end", 4));
  EXPECT_EQ(blocks(far), 2u);
  const InodeId near = make_file(root_inode, "near", "abc");
  write(near, 5'000, "end");
  EXPECT_EQ(read(near), "abc" + std::string(4'997, '\0') + "end");
  const InodeId longer = make_file(root_inode, "longer", "abc");
  truncate(longer, block + 1);
  EXPECT_EQ(read(longer), "abc" + std::string(block - 2, '\0'));
  EXPECT_EQ(blocks(longer), 1u);
  check_all();
}

TEST_P(ContentTest, WhatIsWrittenInOrderIsOneExtent) {
  const InodeId file = make_file(root_inode, "f");
  Random random(1);
  std::string content;
  for (int i = 0; i < 3; i++) {
    const Bytes piece = random.bytes(5 * block);
    write(file, content.size(), piece);
    content += piece;
  }
  EXPECT_EQ(blocks(file), 15u);
  EXPECT_EQ(extents(file), GetParam() == Way::latched ? 1u : 3u);
  EXPECT_EQ(read(file), content);
  EXPECT_EQ(read(file, block - 3, 2 * block), content.substr(block - 3, 2 * block));
  check_all();
}

TEST_P(ContentTest, LargeWritesAreSeveralChanges) {
  const InodeId file = make_file(root_inode, "f");
  const Bytes content = Random(2).bytes((size_t{9} << 20) + 5);
  write(file, 77, content);
  EXPECT_EQ(read(file, 0, content.size() + 100), std::string(77, '\0') + content);
  check_all();
}

TEST_P(ContentTest, OverwritesReplaceWhatTheyCover) {
  const InodeId file = make_file(root_inode, "f");
  Random random(test_seed(3));
  std::string content = random.bytes(6 * block + 100);
  write(file, 0, content);
  for (int i = 0; i < 50; i++) {
    const uint64_t offset = random.below(content.size());
    const Bytes piece = random.bytes(1 + random.below(i % 5 == 0 ? 3 * block : 4'096));
    write(file, offset, piece);
    if (content.size() < offset + piece.size()) content.resize(offset + piece.size());
    content.replace(offset, piece.size(), piece);
  }
  EXPECT_EQ(read(file), content);
  EXPECT_EQ(blocks(file), blocks_up_to(content.size()));
  check_all();
  collect_all();
  EXPECT_EQ(read(file), content);
  check_all();
}

TEST_P(ContentTest, StaleBytesNeverShowAgain) {
  const InodeId file = make_file(root_inode, "f");
  write(file, 0, std::string(3 * block, 'x'));
  truncate(file, block + 10);
  EXPECT_EQ(blocks(file), 2u);
  truncate(file, 3 * block);
  EXPECT_EQ(read(file), std::string(block + 10, 'x') + std::string(2 * block - 10, '\0'));
  EXPECT_EQ(blocks(file), 2u);
  // The same by a write behind the end, in its block and further on.
  truncate(file, 10);
  write(file, 20, "y");
  EXPECT_EQ(read(file), std::string(10, 'x') + std::string(10, '\0') + "y");
  write(file, 0, std::string(block, 'z'));
  truncate(file, 10);
  write(file, 2 * block + 3, "y");
  EXPECT_EQ(read(file, 0, 2 * block), std::string(10, 'z') + std::string(2 * block - 10, '\0'));
  check_all();
}

TEST_P(ContentTest, SizesUpToTheLargest) {
  const InodeId file = make_file(root_inode, "f");
  truncate(file, file_size_max);
  EXPECT_EQ(stat(file).size, file_size_max);
  EXPECT_EQ(read(file, file_size_max - 2), std::string(2, '\0'));
  write(file, file_size_max - 1, "x");
  EXPECT_EQ(read(file, file_size_max - 2), std::string("\0x", 2));
  EXPECT_EQ(blocks(file), 1u);
  EXPECT_REASON(fs_->write(writer, file, file_size_max, "x"), Code::too_large, "file_too_large");
  EXPECT_REASON(fs_->append(writer, file, "x"), Code::too_large, "file_too_large");
  EXPECT_REASON(fs_->set_attributes(writer, file, {.size = file_size_max + 1}), Code::too_large,
                "file_too_large");
  check_all();
  truncate(file, 0);
  EXPECT_EQ(blocks(file), 0u);
  check_all();
}

TEST_P(ContentTest, OnlyRegularFilesHaveContent) {
  const InodeId directory = make_directory(root_inode, "d");
  const auto link = fs_->make(writer, root_inode, "l", {.type = FileType::symlink, .target = "d"});
  ASSERT_OK(link);
  std::string into(10, ' ');
  EXPECT_REASON(fs_->write(writer, directory, 0, "x"), Code::invalid, "is_a_directory");
  EXPECT_REASON(fs_->read(reader, directory, 0, into), Code::invalid, "is_a_directory");
  EXPECT_REASON(fs_->write(writer, link->inode, 0, "x"), Code::invalid, "not_a_file");
  EXPECT_REASON(fs_->read(reader, link->inode, 0, into), Code::invalid, "not_a_file");
  EXPECT_REASON(fs_->append(writer, InodeId{999}, "x"), Code::not_found, "stale");
  EXPECT_REASON(fs_->read(reader, InodeId{999}, 0, into), Code::not_found, "stale");
  EXPECT_REASON(fs_->set_attributes(writer, directory, {.size = 1}), Code::invalid,
                "is_a_directory");
  const InodeId file = make_file(root_inode, "f");
  EXPECT_CODE(fs_->write(reader, file, 0, "x"), Code::denied);
}

TEST_P(ContentTest, ChangesAreTold) {
  const InodeId file = make_file(root_inode, "f");
  const FileAttributes before = stat(file);
  clock_.advance_ms(5);
  write(file, 0, "x");
  const FileAttributes after = stat(file);
  EXPECT_GT(after.version, before.version);
  EXPECT_GT(after.modified_ns, before.modified_ns);
  EXPECT_GT(after.changed_ns, before.changed_ns);
  EXPECT_EQ(after.born_ns, before.born_ns);
}

TEST_P(ContentTest, QuotasHoldInTheMiddle) {
  const InodeId directory = make_directory(root_inode, "d");
  ASSERT_OK(fs_->set_quota(keyspace_admin, directory, {.bytes_max = 100 * block, .inodes_max = 0}));
  const InodeId file = make_file(directory, "f");
  const Bytes content = Random(4).bytes(200 * block);
  EXPECT_REASON(fs_->write(writer, file, 0, content), Code::exhausted, "directory_quota_exceeded");
  EXPECT_EQ(blocks(file), 64u);  // one change of it
  EXPECT_EQ(read(file, 0, content.size()), content.substr(0, 64 * block));
  check_all();
  if (GetParam() == Way::latched) {  // what failed left nothing behind
    std::vector<BlockId> ids;
    for (uint64_t i = 64; i < 200; i++) ids.push_back({id_, DataId{file.value}, i});
    expect_gone(ids);
  }
  write(file, 64 * block, std::string(36 * block, 'x'));
  EXPECT_REASON(fs_->write(writer, file, 100 * block, "x"), Code::exhausted,
                "directory_quota_exceeded");
  write(file, 99 * block, "in place");
  truncate(file, 3);
  write(file, 50 * block, "x");
  EXPECT_EQ(blocks(file), 2u);
  check_all();
}

TEST_P(ContentTest, AppendsFromManyThreadsLoseNothing) {
  const InodeId file = make_file(root_inode, "f");
  constexpr int threads = 8;
  constexpr int appends = 25;
  std::vector<std::thread> running;
  for (int thread = 0; thread < threads; thread++) {
    running.emplace_back([&, thread] {
      const std::string piece(7'001, static_cast<char>('a' + thread));
      for (int i = 0; i < appends; i++) EXPECT_OK(fs_->append(writer, file, piece));
    });
  }
  for (std::thread& thread : running) thread.join();
  const std::string content = read(file, 0, threads * appends * 7'001 + 1);
  ASSERT_EQ(content.size(), size_t{threads * appends * 7'001});
  std::map<char, int> pieces;
  for (size_t i = 0; i < content.size(); i += 7'001) {
    EXPECT_EQ(content.substr(i, 7'001), std::string(7'001, content[i]));
    pieces[content[i]]++;
  }
  for (int thread = 0; thread < threads; thread++)
    EXPECT_EQ(pieces[static_cast<char>('a' + thread)], appends);
  check_all();
  collect_all();
  check_all();
}

// More extents than one change takes.
TEST_P(ContentTest, FilesInManyPieces) {
  const uint64_t pieces = change_extents_max + 100;
  const InodeId file = make_file(root_inode, "f");
  fragment(file, pieces);
  const InodeId clone = make_file(root_inode, "clone");
  const auto copied = fs_->copy_range(writer, file, 0, clone, 0, 0);
  ASSERT_OK(copied);
  EXPECT_EQ(*copied, 2 * pieces * block);
  ContentCheck(memory_, id_).run();
  EXPECT_EQ(blocks(clone), pieces);
  EXPECT_OK(fs_->fallocate(writer, clone, {FallocateMode::Kind::punch_hole, true}, block,
                           2 * pieces * block));
  EXPECT_EQ(blocks(clone), 1u);
  truncate(file, 1);
  EXPECT_EQ(stat(file).size, 1u);
  EXPECT_EQ(blocks(file), 1u);
  EXPECT_EQ(read(file), "x");
  ContentCheck(memory_, id_).run();
  collect_all();
  ContentCheck(memory_, id_).run();
  EXPECT_EQ(*stored_figures(memory_, id_), *recount(memory_, id_));
}

TEST_P(ContentTest, ReadersFindEveryBlock) {
  const InodeId file = make_file(root_inode, "f");
  write(file, 0, std::string(3 * block, 'a'));
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; i++) {
    readers.emplace_back([&, i] {
      while (!done.load()) {
        const std::string found = read(file, block + static_cast<uint64_t>(i) * 1'000, 4'096);
        if (found.empty()) continue;  // cut meanwhile
        // A block changes as one.
        EXPECT_EQ(found, std::string(found.size(), found[0]));
      }
    });
  }
  for (int i = 0; i < 200; i++) {
    write(file, 0, std::string(3 * block, static_cast<char>('a' + i % 26)));
    if (i % 10 == 0) truncate(file, 0);
    collect_all();
  }
  done = true;
  for (std::thread& thread : readers) thread.join();
  check_all();
}

TEST_P(ContentTest, ALostBlockIsTold) {
  const InodeId file = make_file(root_inode, "f");
  write(file, 0, std::string(3 * block, 'a'));
  const BlockId lost = blocks_of(file)[1];
  ASSERT_OK(memory_.blocks().remove(lost.keyspace, lost.data, lost.index, lost.index + 1));
  std::string into(10, ' ');
  EXPECT_REASON(fs_->read(reader, file, block, into), Code::corrupt, "fs_corrupt");
  EXPECT_EQ(read(file, 0, 10), std::string(10, 'a'));
  write(file, block, std::string(block, 'b'));  // written anew it is there again
  EXPECT_EQ(read(file, block, 10), std::string(10, 'b'));
  check_all();
}

TEST_P(ContentTest, OpenFilesAreReadAndWrittenWithoutAName) {
  const auto session = fs_->begin_session(writer, "test");
  ASSERT_OK(session);
  const InodeId file = make_file(root_inode, "f");
  ASSERT_OK(fs_->open_file(writer, *session, file));
  write(file, 0, std::string(2 * block, 'x'));
  ASSERT_OK(fs_->unlink(writer, root_inode, "f"));
  write(file, 2 * block, "y");
  truncate(file, 3 * block);
  EXPECT_EQ(read(file, 2 * block, 2), std::string("y\0", 2));
  EXPECT_EQ(fs_->figures(reader)->used.space, 0u);
  EXPECT_EQ(fs_->figures(reader)->used.length, 0u);
  check_all();
  ASSERT_OK(fs_->close_file(writer, *session, file));
  collect_all();
  EXPECT_REASON(fs_->stat(reader, file), Code::not_found, "stale");
  check_all();
}

TEST_P(ContentTest, RemovedFilesLeaveNothing) {
  const InodeId file = make_file(root_inode, "f");
  write(file, 0, std::string(20 * block, 'x'));
  write(file, 100 * block, "x");
  write(file, 3 * block, "overwritten");
  const std::vector<BlockId> ids = blocks_of(file);
  EXPECT_EQ(ids.size(), 21u);
  ASSERT_OK(fs_->unlink(writer, root_inode, "f"));
  collect_all();
  EXPECT_REASON(fs_->stat(reader, file), Code::not_found, "stale");
  EXPECT_EQ(extents(file), 0u);
  expect_gone(ids);
  check_all();
}

// Its blocks are there, and no commit tells of them.
TEST_P(ContentTest, WhatACrashLeftGoesWithTheFile) {
  const InodeId mapped = make_file(root_inode, "mapped");
  write(mapped, 0, std::string(2 * block, 'a'));
  const InodeId small = make_file(root_inode, "small", "inline");
  const InodeId in_tree = make_file(make_directory(root_inode, "tree"), "small", "inline");
  std::vector<BlockId> left;
  for (const InodeId inode : {mapped, small, in_tree})
    for (const uint64_t index : {uint64_t{7}, uint64_t{1} << 63 | 7}) {
      left.push_back({id_, DataId{inode.value}, index});
      const BlockWrite cut_off{.block = left.back(), .offset = {}, .bytes = "never finished"};
      ASSERT_OK(memory_.blocks().write({&cut_off, 1}));
    }
  open_files_anew();
  EXPECT_OK(fs_->unlink(writer, root_inode, "mapped"));
  EXPECT_OK(fs_->unlink(writer, root_inode, "small"));
  EXPECT_OK(fs_->remove_tree(writer, root_inode, "tree"));
  collect_all();
  expect_gone(left);
  check_all();
}

}  // namespace
}  // namespace trellis
