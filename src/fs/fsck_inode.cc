// What fsck finds of one inode and its own records: extents, uses of shared data, links, figures,
// extended attributes.
#include <algorithm>
#include <utility>

#include "fs/content.h"
#include "fs/fsck_look.h"

namespace trellis {
namespace {

// Of one file: what is behind them is not looked at.
constexpr size_t checked_extents_max = 1'000'000;
// Blocks that are read at a time.
constexpr uint64_t blocks_at_once = 16;
constexpr size_t listed_at_once = 10'000;
// From there on the numbers of blocks come from ids (content.cc), not from `next`.
constexpr uint64_t blocks_of_ids = uint64_t{1} << 63;
constexpr unsigned id_of_blocks_log2 = 20;

std::string bytes_of_blocks(uint64_t first, uint64_t end) {
  return fmt::format("bytes {} to {}", first * block_bytes_max, end * block_bytes_max - 1);
}

}  // namespace

struct FsckLook::Records {
  InodeId inode;
  bool found = false;
  bool damaged = false;
  Bytes stored;
  FsInode content{};             // if found and not damaged
  std::vector<FileExtent> kept;  // that make sense and do not overlap, in the order of the file
  std::vector<FileExtent> as_stored;
  std::vector<std::pair<uint64_t, uint64_t>> cuts;  // of the file: [begin, end), to become holes
  bool edits_extents = false;
  std::map<DataId, uint64_t> uses;
  uint64_t links = 0;  // records with a name
  bool has_figures = false;
  bool has_attributes = false;

  bool has_any() const {
    return !as_stored.empty() || !uses.empty() || links > 0 || has_figures || has_attributes;
  }
  // What is cut is kept no more.
  void apply_cuts() {
    std::vector<FileExtent> left;
    std::sort(cuts.begin(), cuts.end());
    for (const FileExtent& extent : kept) {
      uint64_t from = extent.block;
      for (const auto& [begin, end] : cuts) {
        if (end <= from || begin >= extent.end()) continue;
        if (begin > from) left.push_back(extent.clipped(from, begin));
        from = std::min(end, extent.end());
      }
      if (from < extent.end()) left.push_back(extent.clipped(from, extent.end()));
    }
    kept = std::move(left);
    cuts.clear();
  }
  uint64_t end() const { return kept.empty() ? 0 : kept.back().end(); }
};

Status FsckLook::inode(InodeId inode) {
  Records records;
  records.inode = inode;
  RecordCursor cursor = RecordCursor::of_prefix(source_, encode(FsInodeKey{keyspace_, inode}));
  for (;;) {
    TRY_ASSIGN(const bool more, cursor.next());
    if (!more) break;
    TRY(take_record(records, cursor.key(), cursor.value()));
  }
  return finish_inode(records);
}

Status FsckLook::take_record(Records& records, ByteView key, ByteView value) {
  if (key.size() == fs_inode_key_bytes) {
    records.found = true;
    records.stored = Bytes(value);
    const auto decoded = decode<FsInode>(records.stored);
    records.damaged = !decoded;
    if (decoded) records.content = *decoded;
    return {};
  }
  bool fine = false;
  switch (key[fs_inode_key_bytes]) {
    case 'D': {
      const auto use = decode<FsDataUseKey>(key);
      const auto blocks = decode<FsDataUse>(value);
      fine = use && blocks && blocks->blocks != 0;
      if (fine) records.uses[use->data] = blocks->blocks;
      break;
    }
    case 'E': take_extent(records, key, value); return {};
    case 'P': return take_link(records, key, value);
    case 'S': {
      const auto slot = decode<FsFiguresKey>(key);
      fine = slot && slot->slot < figure_slots && decode<FsFigures>(value);
      records.has_figures = true;
      if (!fine) to_recount_.insert(records.inode);
      break;
    }
    case 'X': {
      const auto attribute = decode<FsXattrKey>(key);
      fine = attribute && !attribute->name.empty() && decode<FsXattr>(value);
      records.has_attributes |= fine;
      break;
    }
    default: break;
  }
  return fine ? Status() : damaged(key, "a record of an inode");
}

void FsckLook::take_extent(Records& records, ByteView key, ByteView value) {
  const auto extent = decode_extent(records.inode, key, value);
  if (!extent) {
    const auto place = decode<FsExtentKey>(key);
    report(FsckKind::extent_damaged, records.inode,
           fmt::format(
               "the extent from {} on does not make sense: {} {}",
               place ? fmt::format("byte {}", place->block * block_bytes_max) : "an unknown byte",
               to_hex(key), to_hex(value)));
    remove(Bytes(key));
    return;
  }
  if (records.as_stored.size() >= checked_extents_max) {
    if (records.as_stored.size() == checked_extents_max)
      report(FsckKind::not_confirmed, records.inode, "a file of more extents than are looked at");
    return;
  }
  records.as_stored.push_back(*extent);
  use_id(extent->data.value);
  if (extent->first >= blocks_of_ids) use_id((extent->first - blocks_of_ids) >> id_of_blocks_log2);
  FileExtent kept = *extent;
  const uint64_t covered = records.end();
  if (kept.block < covered) {
    const uint64_t end = std::min(covered, kept.end());
    report(FsckKind::extent_overlaps, records.inode,
           bytes_of_blocks(kept.block, end) + " are mapped twice: the first extent stays");
    records.edits_extents = true;
    if (kept.end() <= covered) return;
    kept = kept.clipped(covered, kept.end());
  }
  records.kept.push_back(kept);
}

Status FsckLook::take_link(Records& records, ByteView key, ByteView value) {
  const auto link = decode<FsLinkKey>(key);
  if (!link || value != fs_link_value) return damaged(key, "a link");
  TRY_ASSIGN(const auto stored, read(encode(FsEntryKey{keyspace_, link->parent, link->name})));
  const auto entry = stored ? decode<FsEntry>(*stored) : decode<FsEntry>({});
  if (entry && entry->inode == records.inode) {
    records.links++;
    return {};
  }
  report(FsckKind::link_wrong, records.inode, link->parent, link->name,
         "there is a link record and no such name");
  remove(Bytes(key));
  return {};
}

Status FsckLook::finish_inode(Records& records) {
  const bool is_root = records.inode == root_inode || records.inode == trash_inode;
  if (!records.found && !records.has_any() && !is_root) return {};
  use_id(records.inode.value);
  const Bytes key = encode(FsInodeKey{keyspace_, records.inode});
  FsInode right = records.content;
  if (records.damaged)
    report(FsckKind::inode_damaged, records.inode, "it does not decode: " + to_hex(records.stored));
  if (!records.found)
    report(FsckKind::inode_lost, records.inode, "records of an inode that is not there");
  if (!records.found || records.damaged) {
    TRY_ASSIGN(right, rebuild(records));
    if (right.links == 0) {  // nothing that anybody could want
      const Bytes prefix = key;
      RecordCursor cursor = RecordCursor::of_prefix(source_, prefix);
      for (;;) {
        TRY_ASSIGN(const bool more, cursor.next());
        if (!more) return {};
        remove(Bytes(cursor.key()));
      }
    }
  }
  use_id(right.data.value);
  if ((right.flags & ~fs_flags_known) != 0) {
    report(FsckKind::flags_wrong, records.inode, fmt::format("unknown flags: {:x}", right.flags));
    right.flags &= fs_flags_known;
  }
  if (records.has_attributes && (right.flags & fs_attributes) == 0) {
    report(FsckKind::flags_wrong, records.inode, "it has extended attributes and does not say so");
    right.flags |= fs_attributes;
  }
  if (right.type == FileType::regular)
    TRY(check_regular(records, right));
  else if (right.type == FileType::directory)
    check_directory_record(records, right);
  else
    check_other(records, right);
  store_extents(records);
  const Bytes encoded = encode(right);
  if (encoded != records.stored || !records.found) {
    put(key, encoded);
    if (right.type != FileType::directory && right.home.value != 0) to_recount_.insert(right.home);
  }
  const bool counts_links = right.type != FileType::directory && right.links > 0;
  names_doubtful_ = counts_links && records.links + 1 != right.links;
  return {};
}

// As much of it as its other records tell. Links 0: nothing.
Result<FsInode> FsckLook::rebuild(Records& records) {
  NewFile like{.mode = 0600};
  TRY_ASSIGN(const bool has_children, has_entries(records.inode));
  const bool is_root = records.inode == root_inode || records.inode == trash_inode;
  const bool is_directory = records.has_figures || has_children || is_root;
  if (is_directory) like = {.type = FileType::directory, .mode = 0700};
  FsInode right = new_inode(like, records.inode, 1, world_.now_ns());
  for (const FileExtent& extent : records.kept)
    if (extent.data == right.data && extent.first < blocks_of_ids)
      right.next = std::max(right.next, extent.first + extent.blocks);
  if (!records.kept.empty()) {
    right.flags = 0;
    right.size = records.end() * block_bytes_max;
    for (const FileExtent& extent : records.kept) right.blocks += extent.blocks;
    if (!records.uses.empty()) right.flags |= fs_shares;
  } else if (records.damaged && !is_directory) {
    // What it was may be of use to somebody.
    const size_t size = std::min(records.stored.size(), inline_bytes_max);
    right.rest = ByteView(records.stored).substr(records.stored.size() - size);
    right.size = size;
  }
  if (!is_directory && !records.damaged && records.kept.empty() && records.links == 0)
    right.links = 0;
  return right;
}

void FsckLook::check_other(Records& records, FsInode& right) {
  if (!records.kept.empty()) cut(records, FsckKind::extent_damaged, 0, records.end(), "no content");
  if (right.blocks != 0) {
    report(FsckKind::blocks_wrong, records.inode, "it has blocks and no content");
    right.blocks = 0;
  }
  if (right.type == FileType::symlink && right.size != right.rest.size()) {
    report(FsckKind::size_wrong, records.inode,
           fmt::format("its target has {} bytes, it says {}", right.rest.size(), right.size));
    right.size = right.rest.size();
  }
  if ((right.flags & (fs_inline | fs_shares | fs_removed | fs_quota)) != 0) {
    report(FsckKind::flags_wrong, records.inode, "flags of another type of file");
    right.flags &= ~uint32_t{fs_inline | fs_shares | fs_removed | fs_quota};
  }
}

void FsckLook::check_directory_record(Records& records, FsInode& right) {
  if (!records.kept.empty())
    cut(records, FsckKind::extent_damaged, 0, records.end(), "a directory has no content");
  if (right.blocks != 0 || right.size != 0) {
    report(FsckKind::size_wrong, records.inode, "a directory has no size of its own");
    right.blocks = right.size = 0;
  }
  if ((right.flags & (fs_inline | fs_shares)) != 0) {
    report(FsckKind::flags_wrong, records.inode, "flags of another type of file");
    right.flags &= ~uint32_t{fs_inline | fs_shares};
  }
  const bool has_quota = (right.flags & fs_quota) != 0;
  if (has_quota ? !decode<FsQuota>(right.rest) : !right.rest.empty()) {
    report(FsckKind::flags_wrong, records.inode, "its quota does not make sense, and is none now");
    right.flags &= ~uint32_t{fs_quota};
    right.rest = {};
    tree_changes_ = true;
  }
  const uint32_t links = (right.flags & fs_removed) != 0 ? 0 : 1;
  if (right.links != links) {
    report(FsckKind::links_wrong, records.inode,
           fmt::format("a directory has {} link, it says {}", links, right.links));
    right.links = links;
  }
}

// --- content ---

void FsckLook::check_inline(Records& records, FsInode& right) {
  if (!records.kept.empty() && right.rest.empty()) {
    report(FsckKind::flags_wrong, records.inode, "it has extents, and says that it is inline");
    right.flags &= ~uint32_t{fs_inline};
    return;
  }
  if (!records.kept.empty())
    cut(records, FsckKind::extent_damaged, 0, records.end(), "an inline file has no extents");
  if (right.size != right.rest.size()) {
    report(FsckKind::size_wrong, records.inode,
           fmt::format("its content has {} bytes, it says {}", right.rest.size(), right.size));
    right.size = right.rest.size();
  }
}

Status FsckLook::check_regular(Records& records, FsInode& right) {
  if ((right.flags & (fs_removed | fs_quota)) != 0) {
    report(FsckKind::flags_wrong, records.inode, "flags of another type of file");
    right.flags &= ~uint32_t{fs_removed | fs_quota};
  }
  if ((right.flags & fs_inline) != 0) check_inline(records, right);
  if ((right.flags & fs_inline) == 0) {
    if (!right.rest.empty()) {
      const bool is_content = records.kept.empty() && right.rest.size() == right.size;
      report(FsckKind::flags_wrong, records.inode,
             is_content ? "it is inline and does not say so"
                        : "it has extents and bytes that are none: " + to_hex(right.rest));
      if (is_content)
        right.flags |= fs_inline;
      else
        right.rest = {};
    }
    if (right.size > file_size_max) {
      report(FsckKind::size_wrong, records.inode, fmt::format("a size of {}", right.size));
      right.size = records.end() * block_bytes_max;
    }
  }
  TRY(check_extents(records, right));
  return check_uses(records, right);
}

Status FsckLook::check_extents(Records& records, FsInode& right) {
  check_own_blocks(records, right);
  TRY(check_blocks(records));
  records.apply_cuts();
  uint64_t blocks = 0;
  uint64_t next = right.next;
  for (const FileExtent& extent : records.kept) {
    blocks += extent.blocks;
    if (extent.data == right.data && extent.first < blocks_of_ids)
      next = std::max(next, extent.first + extent.blocks);
  }
  if (blocks != right.blocks) {
    report(FsckKind::blocks_wrong, records.inode,
           fmt::format("{} blocks are mapped, it says {}", blocks, right.blocks));
    right.blocks = blocks;
  }
  if (next != right.next) {
    report(FsckKind::blocks_wrong, records.inode,
           fmt::format("block {} would be the next new one, and {} are used", right.next, next));
    right.next = next;
  }
  return {};
}

// Blocks of the inode's own data are mapped once.
void FsckLook::check_own_blocks(Records& records, const FsInode& right) {
  std::vector<FileExtent> own;
  for (const FileExtent& extent : records.kept)
    if (extent.data == right.data) own.push_back(extent);
  std::sort(own.begin(), own.end(), [](const FileExtent& a, const FileExtent& b) {
    return std::pair(a.first, a.block) < std::pair(b.first, b.block);
  });
  uint64_t covered = 0;
  for (const FileExtent& extent : own) {
    const uint64_t end = extent.first + extent.blocks;
    if (extent.first < covered)
      cut(records, FsckKind::extent_overlaps, extent.block,
          extent.block + std::min(covered, end) - extent.first,
          "other bytes of the file are in the same blocks");
    covered = std::max(covered, end);
  }
}

Status FsckLook::check_blocks(Records& records) {
  for (const FileExtent& extent : records.kept) {
    if (before_ == nullptr) {
      TRY(check_stored(records, extent));
      continue;
    }
    for (const auto& [begin, end] : before_->bad_blocks_)
      if (begin < extent.end() && end > extent.block)
        TRY(check_stored(records, extent.clipped(begin, end)));
  }
  return {};
}

Status FsckLook::check_stored(Records& records, const FileExtent& extent) {
  BlockStore& blocks = world_.engine().blocks();
  const uint64_t behind = extent.first + extent.blocks;
  uint64_t at = extent.first;  // all before it are there
  const auto missing = [&](uint64_t first, uint64_t end) {
    if (first < end)
      cut(records, FsckKind::block_missing, extent.block + (first - extent.first),
          extent.block + (end - extent.first), "their blocks are lost");
  };
  BlockId from{keyspace_, extent.data, extent.first};
  for (bool more = true; more;) {
    const auto page = blocks.list(from, {keyspace_, extent.data, behind}, listed_at_once);
    // A store that keeps them side by side cannot list over one that is damaged.
    if (!page && page.error().code == Code::corrupt) return check_each(records, extent);
    TRY(page);
    for (const StoredBlock& stored : page->blocks) {
      missing(at, stored.block.index);
      at = stored.block.index + 1;
    }
    more = page->resume.has_value();
    if (more) from = *page->resume;
  }
  missing(at, behind);
  return world_.options.read_blocks ? read_content(records, extent) : Status();
}

Status FsckLook::check_each(Records& records, const FileExtent& extent) {
  for (uint64_t i = 0; i < extent.blocks; i++) {
    const BlockId id{keyspace_, extent.data, extent.first + i};
    const uint64_t block = extent.block + i;
    Value value;
    const Status status = world_.engine().blocks().read({&id, 1}, {&value, 1});
    if (!status && status.error().code != Code::corrupt) return status;
    if (!status)
      cut(records, FsckKind::block_damaged, block, block + 1, status.error().message);
    else if (!value.found())
      cut(records, FsckKind::block_missing, block, block + 1, "their blocks are lost");
  }
  return {};
}

Status FsckLook::read_content(Records& records, const FileExtent& extent) {
  BlockStore& blocks = world_.engine().blocks();
  for (uint64_t at = 0; at < extent.blocks; at += blocks_at_once) {
    const uint64_t count = std::min(blocks_at_once, extent.blocks - at);
    // Not while it holds the file system; only what is wrong is read again then.
    if (before_ == nullptr) TRY(world_.control.pass(count * block_bytes_max));
    std::vector<BlockId> ids;
    for (uint64_t i = 0; i < count; i++)
      ids.push_back({keyspace_, extent.data, extent.first + at + i});
    std::vector<Value> values(count);
    Status status = blocks.read(ids, values);
    if (status) continue;
    if (status.error().code != Code::corrupt) return status;
    for (uint64_t i = 0; i < count; i++) {
      status = blocks.read({&ids[i], 1}, {&values[i], 1});
      if (status) continue;
      if (status.error().code != Code::corrupt) return status;
      const uint64_t block = extent.block + at + i;
      cut(records, FsckKind::block_damaged, block, block + 1, status.error().message);
    }
  }
  return {};
}

void FsckLook::cut(Records& records, FsckKind kind, uint64_t begin, uint64_t end,
                   std::string_view why) {
  report(kind, records.inode,
         fmt::format("{}: {}; a repair makes them a hole", bytes_of_blocks(begin, end), why));
  records.cuts.emplace_back(begin, end);
  records.edits_extents = true;
  bad_blocks_.emplace_back(begin, end);
}

void FsckLook::store_extents(Records& records) {
  if (!records.edits_extents) return;
  records.apply_cuts();
  for (const FileExtent& extent : records.as_stored)
    remove(encode(FsExtentKey{keyspace_, records.inode, extent.block}));
  for (const FileExtent& extent : records.kept)
    put(encode(FsExtentKey{keyspace_, records.inode, extent.block}),
        encode(FsExtent{.data = extent.data, .first = extent.first, .blocks = extent.blocks}));
}

// The 'D' records say what of shared data is mapped.
Status FsckLook::check_uses(Records& records, FsInode& right) {
  std::map<DataId, uint64_t> mapped;
  for (const FileExtent& extent : records.kept)
    if (extent.data != right.data) mapped[extent.data] += extent.blocks;
  for (const auto& [data, blocks] : records.uses) {
    use_id(data.value);
    if (mapped.contains(data)) continue;
    report(FsckKind::data_use_wrong, records.inode,
           fmt::format("nothing of data {} is mapped, it says {} blocks", data.value, blocks));
    remove(encode(FsDataUseKey{keyspace_, records.inode, data}));
  }
  for (const auto& [data, blocks] : mapped) {
    const auto use = records.uses.find(data);
    if (use == records.uses.end() || use->second != blocks) {
      report(FsckKind::data_use_wrong, records.inode,
             fmt::format("{} blocks of data {} are mapped, it says {}", blocks, data.value,
                         use == records.uses.end() ? 0 : use->second));
      put(encode(FsDataUseKey{keyspace_, records.inode, data}), encode(FsDataUse{blocks}));
    }
    const Bytes shared = encode(FsSharedDataKey{keyspace_, data});
    TRY_ASSIGN(const auto stored, read(shared));
    if (stored) continue;
    report(FsckKind::shared_data_wrong, records.inode,
           fmt::format("nobody counts who shares data {}", data.value));
    put(shared, encode(FsSharedData{1}));  // how many it is is shared_data()'s
  }
  if (((right.flags & fs_shares) != 0) != !mapped.empty()) {
    report(FsckKind::flags_wrong, records.inode,
           mapped.empty() ? "it shares no data and says so" : "it shares data and does not say so");
    right.flags ^= uint32_t{fs_shares};
  }
  return {};
}

}  // namespace trellis
