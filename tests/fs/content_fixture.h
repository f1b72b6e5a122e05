// For tests of content: reading and writing in few words.
#pragma once

#include <string>
#include <vector>

#include "fs/content.h"
#include "fs/content_check.h"
#include "fs/fs_fixture.h"

namespace trellis {

class ContentFixture : public FsFixture {
 protected:
  std::string read(InodeId inode, uint64_t offset = 0, size_t size = size_t{1} << 20) {
    std::string into(size, '?');
    const auto found = fs_->read(reader, inode, offset, into);
    EXPECT_OK(found);
    into.resize(found ? *found : 0);
    return into;
  }
  void write(InodeId inode, uint64_t offset, ByteView bytes) {
    EXPECT_OK(fs_->write(writer, inode, offset, bytes));
  }
  void truncate(InodeId inode, uint64_t size) {
    EXPECT_OK(fs_->set_attributes(writer, inode, {.size = size}));
  }
  uint64_t blocks(InodeId inode) { return stat(inode).space / block; }
  bool is_inline(InodeId inode) {
    const auto seen = see_inode(memory_, id_, inode);
    EXPECT_OK(seen);
    return ((*seen)->inode.flags & fs_inline) != 0;
  }
  size_t extents(InodeId inode) {
    return entries_in(encode(FsExtentKey{id_, inode, 0}),
                      encode(FsExtentKey{id_, inode, UINT64_MAX}));
  }
  // Where its content is.
  std::vector<BlockId> blocks_of(InodeId inode) {
    std::vector<BlockId> ids;
    EXPECT_OK(memory_.scan({.begin = encode(FsExtentKey{id_, inode, 0}),
                            .end = encode(FsExtentKey{id_, inode, UINT64_MAX})},
                           [&](ByteView key, ByteView value) {
                             const auto extent = decode_extent(inode, key, value);
                             EXPECT_OK(extent);
                             for (uint64_t i = 0; i < extent->blocks; i++)
                               ids.push_back({id_, extent->data, extent->first + i});
                             return Visit::go_on;
                           }));
    return ids;
  }
  void expect_gone(const std::vector<BlockId>& ids) {
    std::vector<Value> values(ids.size());
    ASSERT_OK(memory_.blocks().read(ids, values));
    for (size_t i = 0; i < ids.size(); i++)
      EXPECT_FALSE(values[i].found()) << "block " << ids[i].index;
  }
  // Every second block is mapped, each by an extent, as many single writes would leave it in the
  // order from the last to the first.
  void fragment(InodeId file, uint64_t pieces) {
    std::vector<BlockWrite> writes;
    const auto run = [&](CountedView& view) -> Status {
      const Bytes key = encode(FsInodeKey{id_, file});
      Value stored;
      TRY(view.get(key, stored));
      TRY_ASSIGN(FsInode inode, decode_inode(file, stored.bytes()));
      inode.flags = 0;
      inode.rest = {};
      inode.size = 2 * pieces * block;
      inode.blocks = inode.next = pieces;
      view.put(key, encode(inode), stored);
      view.count_outside(static_cast<int64_t>(pieces * block));
      for (uint64_t i = 0; i < pieces; i++) {
        view.put(encode(FsExtentKey{id_, file, 2 * i}),
                 encode(FsExtent{inode.data, pieces - 1 - i, 1}), Value());
        writes.push_back({{id_, inode.data, i}, {}, "x"});
      }
      return {};
    };
    ASSERT_OK(tenant_->collect(Model::fs, Scope::all_of(id_), run));
    ASSERT_OK(memory_.blocks().write(writes));
  }
  void check_all() {
    check();
    ContentCheck(memory_, id_).run();
  }
};

}  // namespace trellis
