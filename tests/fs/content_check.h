// For tests: what must hold of extents, shared data and blocks whenever nobody changes a file.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "codec/fs_keys.h"
#include "engine/engine.h"
#include "fs/block_map.h"
#include "fs/file_system.h"
#include "support/expect_ok.h"

namespace trellis {

constexpr uint64_t block = block_bytes_max;

// What the stored records of all files say of each other. Fails the test where they do not agree.
class ContentCheck {
 public:
  ContentCheck(Engine& engine, KeyspaceId keyspace) : engine_(engine), keyspace_(keyspace) {}

  void run() {
    Bytes prefix = encode(FsInodeKey{keyspace_, InodeId{0}});
    prefix.resize(prefix.size() - 8);
    visit_all(prefix, [&](ByteView key, ByteView value) { take(key, value); });
    prefix = encode(FsSharedDataKey{keyspace_, DataId{0}});
    prefix.resize(prefix.size() - 8);
    visit_all(prefix, [&](ByteView key, ByteView value) {
      users_stored_[decode<FsSharedDataKey>(key)->data] = decode<FsSharedData>(value)->inodes;
    });
    for (auto& [inode, file] : files_) check(inode, file);
    EXPECT_EQ(users_, users_stored_);
    for (const auto& [data, inode] : owners_)
      EXPECT_FALSE(users_.contains(data)) << "data " << data.value << " of inode " << inode.value;
  }

 private:
  struct File {
    FsInode inode{};
    std::vector<FileExtent> extents;
    std::map<DataId, uint64_t> uses;
  };

  void visit_all(ByteView prefix, FunctionRef<void(ByteView, ByteView)> visit) {
    Bytes from(prefix);
    for (;;) {
      auto page = engine_.scan({.begin = from, .end = prefix_end(prefix), .entries_max = 1'000},
                               [&](ByteView key, ByteView value) {
                                 visit(key, value);
                                 return Visit::go_on;
                               });
      ASSERT_OK(page);
      if (!page->resume) return;
      from = std::move(*page->resume);
    }
  }

  void take(ByteView key, ByteView value) {
    if (const auto inode = decode<FsInodeKey>(key)) {
      const auto stored = decode<FsInode>(value);
      ASSERT_OK(stored);
      File& file = files_[inode->inode];
      file.inode = *stored;
      if ((stored->flags & fs_inline) != 0) {
        EXPECT_EQ(stored->size, stored->rest.size());
        EXPECT_LE(stored->size, inline_bytes_max);
      } else if (stored->type == FileType::regular) {
        EXPECT_TRUE(stored->rest.empty());
      }
      file.inode.rest = {};
    } else if (const auto extent = decode<FsExtentKey>(key)) {
      const auto stored = decode_extent(extent->inode, key, value);
      ASSERT_OK(stored);
      files_[extent->inode].extents.push_back(*stored);
    } else if (const auto use = decode<FsDataUseKey>(key)) {
      files_[use->inode].uses[use->data] = decode<FsDataUse>(value)->blocks;
    }
  }

  void check(InodeId id, File& file) {
    SCOPED_TRACE(testing::Message() << "inode " << id.value);
    uint64_t blocks = 0;
    std::map<DataId, uint64_t> uses;
    const FileExtent* before = nullptr;
    for (const FileExtent& extent : file.extents) {
      blocks += extent.blocks;
      if (before != nullptr) {
        EXPECT_LE(before->end(), extent.block);
        EXPECT_FALSE(before->end() == extent.block && before->data == extent.data &&
                     before->first + before->blocks == extent.first)
            << "extents that could be one at block " << extent.block;
      }
      before = &extent;
      if (extent.data == file.inode.data) {
        own_blocks(file, extent);
      } else {
        uses[extent.data] += extent.blocks;
      }
      check_blocks(extent);
    }
    EXPECT_EQ(file.inode.blocks, blocks);
    EXPECT_EQ(file.uses, uses);
    EXPECT_EQ((file.inode.flags & fs_shares) != 0, !uses.empty());
    for (const auto& [data, count] : uses) users_[data]++;
    if (file.inode.type == FileType::regular) {
      EXPECT_TRUE(owners_.emplace(file.inode.data, id).second) << "data of two inodes";
    }
  }

  void own_blocks(const File& file, const FileExtent& extent) {
    for (uint64_t i = 0; i < extent.blocks; i++)
      EXPECT_TRUE(mapped_.emplace(extent.data, extent.first + i).second)
          << "block " << extent.first + i << " is mapped twice";
    if (extent.first < uint64_t{1} << 63) {
      EXPECT_LE(extent.first + extent.blocks, file.inode.next);
    }
  }

  void check_blocks(const FileExtent& extent) {
    std::vector<BlockId> ids;
    for (uint64_t i = 0; i < extent.blocks; i++)
      ids.push_back({keyspace_, extent.data, extent.first + i});
    std::vector<Value> values(ids.size());
    ASSERT_OK(engine_.blocks().read(ids, values));
    for (size_t i = 0; i < ids.size(); i++)
      EXPECT_TRUE(values[i].found())
          << "block " << ids[i].index << " of data " << ids[i].data.value << " is lost";
  }

  Engine& engine_;
  const KeyspaceId keyspace_;
  std::map<InodeId, File> files_;
  std::map<DataId, InodeId> owners_;
  std::set<std::pair<DataId, uint64_t>> mapped_;
  std::map<DataId, uint64_t> users_;
  std::map<DataId, uint64_t> users_stored_;
};

}  // namespace trellis
