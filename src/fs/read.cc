#include <algorithm>
#include <cstring>
#include <utility>

#include "fs/content.h"

namespace trellis {
namespace {

// Of content in one look at the inode.
constexpr uint64_t read_bytes_max = uint64_t{4} << 20;
// An inode and its first extents, read by one scan; in most files there are no more.
constexpr size_t first_records = 8;
// A file that changes while it is looked at so often is held.
constexpr unsigned looks_max = 100;

// An inode and where some of its blocks are, of one instant.
struct Look {
  FsInode inode{};                  // without `rest`
  Bytes content;                    // if it is inline
  std::vector<FileExtent> extents;  // with blocks of what was asked for, in order

  Status take_inode(InodeId id, ByteView stored) {
    TRY_ASSIGN(inode, decode_inode(id, stored));
    TRY(check_has_content(id, inode));
    content = inode.rest;
    inode.rest = {};
    return {};
  }
};

class Looker {
 public:
  Looker(Tenant& tenant, InodeId inode, uint64_t begin, uint64_t end)
      : map_(tenant.map()),
        engine_(tenant.map().engine),
        keyspace_(tenant.id()),
        inode_(inode),
        begin_(begin),
        end_(end) {}

  Result<Look> look() {
    TRY_ASSIGN(auto found, look_at_once());
    for (unsigned looks = 0; !found && looks < looks_max; looks++) {
      TRY_ASSIGN(found, look_twice());
    }
    if (!found) {  // where there are latches nobody changes it now
      const auto look_held = [&](View&) -> Status {
        TRY_ASSIGN(found, look_twice());
        return {};
      };
      const Scope held = Scope::in(keyspace_).shared(encode(FsInodeKey{keyspace_, inode_}));
      TRY(map_.transact(held, look_held));
    }
    if (found) return std::move(*found);
    return Error{Code::unavailable, fmt::format("inode {} changes all the time", inode_.value)};
  }

 private:
  // Absent: it has more records than that.
  Result<std::optional<Look>> look_at_once() {
    Look look;
    Status bad;
    bool found = false;
    const Bytes begin = encode(FsInodeKey{keyspace_, inode_});
    const Bytes end = encode(FsExtentKey{keyspace_, inode_, end_});
    const auto visit = [&](ByteView key, ByteView value) {
      if (key.size() == begin.size()) {
        found = true;
        bad = look.take_inode(inode_, value);
      } else if (key[begin.size()] == 'E') {
        bad = take_extent(look, key, value);
      }
      return bad ? Visit::go_on : Visit::stop;
    };
    TRY_ASSIGN(const ScanPage page,
               engine_.scan({.begin = begin, .end = end, .entries_max = first_records}, visit));
    TRY(bad);
    if (!found) return fs_error::stale(inode_);
    if (page.resume && page.entries == first_records) return std::optional<Look>();
    return std::optional<Look>(std::move(look));
  }

  // Absent: it changed between.
  Result<std::optional<Look>> look_twice() {
    Look look;
    Value stored;
    const Bytes key = encode(FsInodeKey{keyspace_, inode_});
    TRY(engine_.get(key, stored));
    if (!stored.found()) return fs_error::stale(inode_);
    TRY(look.take_inode(inode_, stored.bytes()));
    Status bad;
    const auto visit = [&](ByteView key, ByteView value) {
      bad = take_extent(look, key, value);
      const bool is_first = bad && decode_extent(inode_, key, value)->block <= begin_;
      return bad && !is_first ? Visit::go_on : Visit::stop;
    };
    TRY(engine_.scan({.begin = encode(FsExtentKey{keyspace_, inode_, 0}),
                      .end = encode(FsExtentKey{keyspace_, inode_, end_}),
                      .reverse = true,
                      .entries_max = end_ - begin_ + 1},
                     visit));
    TRY(bad);
    std::reverse(look.extents.begin(), look.extents.end());
    TRY(engine_.get(key, stored));
    if (!stored.found()) return fs_error::stale(inode_);
    TRY_ASSIGN(const FsInode again, decode_inode(inode_, stored.bytes()));
    if (again.version != look.inode.version) return std::optional<Look>();
    return std::optional<Look>(std::move(look));
  }

  Status take_extent(Look& look, ByteView key, ByteView value) const {
    TRY_ASSIGN(const FileExtent extent, decode_extent(inode_, key, value));
    if (extent.block < end_ && extent.end() > begin_)
      look.extents.push_back(extent.clipped(begin_, end_));
    return {};
  }

  const MapHandle& map_;
  Engine& engine_;
  const KeyspaceId keyspace_;
  const InodeId inode_;
  const uint64_t begin_;
  const uint64_t end_;
};

// Fills a buffer with what a file has from `offset` on: with what is found, in order, and with
// zeros between.
class Filling {
 public:
  Filling(uint64_t offset, std::span<char> into)
      : into_(into), done_(offset), end_(offset + into.size()) {}

  // What of it is wanted, of bytes that the file has from `begin` on.
  void take(ByteView bytes, uint64_t begin) {
    const uint64_t from = std::max(begin, done_);
    const uint64_t to = std::min(begin + bytes.size(), end_);
    if (from >= to) return;
    zero_up_to(from);
    std::memcpy(next(), bytes.data() + (from - begin), to - from);
    done_ = to;
  }
  void zero_rest() { zero_up_to(end_); }

 private:
  char* next() const { return into_.data() + into_.size() - (end_ - done_); }
  void zero_up_to(uint64_t offset) {
    std::memset(next(), 0, offset - done_);
    done_ = offset;
  }

  const std::span<char> into_;
  uint64_t done_;
  const uint64_t end_;
};

}  // namespace

// Blocks are read after it was seen where they are: one that is missing then is lost only if it is
// still to be there.
Result<size_t> FileSystem::read_piece(InodeId inode, uint64_t offset, std::span<char> into) {
  Looker looker(*tenant_, inode, block_of(offset), blocks_up_to(offset + into.size()));
  std::optional<uint64_t> version;
  std::vector<BlockId> ids;
  for (;;) {
    TRY_ASSIGN(const Look look, looker.look());
    if (offset >= look.inode.size) return size_t{0};
    const size_t size = std::min<uint64_t>(into.size(), look.inode.size - offset);
    ids.clear();
    std::vector<uint64_t> blocks;
    for (const FileExtent& extent : look.extents) {
      for (uint64_t i = 0; i < extent.blocks; i++) {
        if ((extent.block + i) * block_bytes_max >= offset + size) break;
        blocks.push_back(extent.block + i);
        ids.push_back({keyspace(), extent.data, extent.first + i});
      }
    }
    Filling filling(offset, into.first(size));
    filling.take(look.content, 0);
    std::optional<uint64_t> missing;
    const auto take = [&](size_t i, const Value& value) {
      if (value.found())
        filling.take(value.bytes(), blocks[i] * block_bytes_max);
      else
        missing = blocks[i];
    };
    TRY(tenant_->map().engine.blocks().read_each(ids, take));
    if (!missing) {
      filling.zero_rest();
      return size;
    }
    if (version == look.inode.version) return missing_block(inode, *missing);
    version = look.inode.version;
  }
}

Result<size_t> FileSystem::read(const Caller& caller, InodeId inode, uint64_t offset,
                                std::span<char> into) {
  TRY(tenant_->admit(caller, Access::read));
  if (offset > file_size_max) return size_t{0};
  into = into.first(std::min<uint64_t>(into.size(), file_size_max - offset));
  size_t done = 0;
  while (done < into.size()) {
    const uint64_t at = offset + done;
    const size_t wanted =
        std::min<uint64_t>(into.size() - done, read_bytes_max - at % block_bytes_max);
    TRY_ASSIGN(const size_t found, read_piece(inode, at, into.subspan(done, wanted)));
    done += found;
    if (found < wanted) break;
  }
  return done;
}

}  // namespace trellis
