// How a file system changes: a plan, made of reads that lock nothing, says what is held; then one
// transaction runs, and if it finds that the plan is outdated a new one is made.
//
//   fs.change(&caller,
//             [&](FsPlan& plan) -> Status {
//               plan.entry(directory, name);              // this entry, its directory shared
//               return plan.charge(directory);            // figures up to the root
//             },
//             [&](FsChange& change) -> Status {
//               TRY_ASSIGN(FsInode * parent, change.directory(directory));
//               ...
//               change.count(directory, {.inodes = 1, .entries = 1, .changed_ns = now});
//             });
//
// Who changes entries of a directory, or what is counted in it, holds its inode shared; who removes
// it holds it alone. Who moves or removes a directory, or gives it a quota, holds the tree alone
// and counts its version up; all others hold the tree shared, so that the way from a directory to
// the root stays as it was planned.
#pragma once

#include <array>
#include <list>
#include <map>
#include <memory_resource>
#include <optional>
#include <vector>

#include "codec/fs_keys.h"
#include "fs/file_system.h"
#include "fs/fs_error.h"

namespace trellis {

// Writers of one directory spread their figures over so many records. One that has a quota uses
// the first alone, which then is the sum.
constexpr uint8_t figure_slots = 8;
// A plan with more holds the whole keyspace instead (the thread sanitizer follows 64 of a thread).
constexpr size_t planned_locks_max = 40;

// Thrown away by change(), which plans anew.
inline Error plan_outdated() { return {Code::conflict, "the plan is outdated", "plan_outdated"}; }

// An inode as it is stored, read without locks.
struct SeenInode {
  Value stored;  // keeps inode.rest
  FsInode inode{};

  SeenInode() = default;
  // A Value that moves may move its bytes.
  SeenInode(SeenInode&& other) noexcept : stored(std::move(other.stored)), inode(other.inode) {
    if (stored.found())
      inode.rest = stored.bytes().substr(stored.bytes().size() - inode.rest.size());
  }
  SeenInode& operator=(SeenInode&&) = delete;
};
// Absent: there is none.
Result<std::optional<SeenInode>> see_inode(Engine& engine, KeyspaceId keyspace, InodeId inode);
Result<std::optional<FsEntry>> see_entry(Engine& engine, KeyspaceId keyspace, InodeId directory,
                                         ByteView name);
Result<FsInode> decode_inode(InodeId inode, ByteView bytes);
// Lengths wrap, as a few sparse files are enough for more than 2^63.
void add_to(FsFigures& sum, const FsFigures& difference);
// Of all slots.
Result<FsFigures> sum_figures(InodeId directory, std::span<const Value> slots);

class FsPlan {
 public:
  explicit FsPlan(FileSystem& fs, uint64_t tree_version);

  void hold(InodeId inode) { exclusive(encode(FsInodeKey{keyspace_, inode})); }
  void share(InodeId inode) { shared(encode(FsInodeKey{keyspace_, inode})); }
  void entry(InodeId directory, ByteView name) {
    share(directory);
    exclusive(encode(FsEntryKey{keyspace_, directory, name}));
  }
  // The figures of the directory and of those above it, to be counted in.
  Status charge(InodeId directory);
  // All slots of one directory's figures, to be read or folded.
  void all_figures(InodeId directory);
  void tree_alone() { exclusive(encode(FsTreeKey{keyspace_})); }
  void exclusive(ByteView key) { scope_.exclusive(key); }
  void shared(ByteView key) { scope_.shared(key); }
  // All of the file system: for what cannot say before what it needs.
  void everything() { everything_ = true; }

  KeyspaceId keyspace() const { return keyspace_; }
  Engine& engine() { return fs_.tenant().map().engine; }
  // Reads, of now.
  Result<std::optional<SeenInode>> inode(InodeId inode);
  Result<std::optional<FsEntry>> see(InodeId directory, ByteView name);

 private:
  friend class FileSystem;
  friend class FsChange;
  struct Link {
    InodeId directory;
    uint8_t slot;
    bool has_quota;
  };
  struct Chain {
    InodeId directory;
    std::vector<Link> links;  // the directory first
    bool attached = false;    // it ends in the root or the trash, not in what was removed
  };
  const Scope& scope();
  Result<Chain> walk(InodeId directory);
  const Chain* chain(InodeId directory) const;  // null: it is not charged

  FileSystem& fs_;
  const KeyspaceId keyspace_;
  const uint64_t tree_version_;
  Scope scope_;
  bool everything_ = false;
  std::vector<Chain> chains_;  // a few
};

// The transaction. Inodes are changed in place, figures summed up, and both written at the end.
class FsChange {
 public:
  FsChange(FileSystem& fs, FsPlan& plan, CountedView& view)
      : fs_(fs), plan_(plan), view_(view), keyspace_(fs.keyspace()) {}

  CountedView& view() { return view_; }
  KeyspaceId keyspace() const { return keyspace_; }
  bool latched() const { return fs_.tenant().map().latched(); }
  Engine& engine() { return fs_.tenant().map().engine; }
  // Of inodes and data. REQUIRES: no latches; they would be waited for.
  Result<uint64_t> take_id() { return fs_.take_id(); }

  // To be read, or changed; written when the change ends. Reason: stale. Pointers stay valid.
  Result<FsInode*> inode(InodeId inode);
  Result<FsInode*> find_inode(InodeId inode);  // null: there is none
  // One that exists and is not removed, in a tree that is not either. Reasons: stale,
  // not_a_directory.
  Result<FsInode*> directory(InodeId inode);
  void make_inode(InodeId inode, const FsInode& content);
  void remove_inode(InodeId inode);  // only its record. REQUIRES: it was read
  // Bytes that live as long as the change: for FsInode::rest.
  ByteView keep(Bytes bytes);

  Result<std::optional<FsEntry>> entry(InodeId directory, ByteView name);
  Status put_entry(InodeId directory, ByteView name, const FsEntry& entry);
  Status remove_entry(InodeId directory, ByteView name);

  // Space, length and inodes count in the directory and all above it, the rest in it alone.
  // REQUIRES: the plan charges it.
  enum class Limit : bool { none, quotas };
  Status count(InodeId directory, const FsFigures& difference, Limit limit = Limit::quotas);
  // The sum of all slots. REQUIRES: the plan has them all, and nothing of it was counted here.
  Result<FsFigures> figures(InodeId directory);
  // All of it in the first slot; of nothing no slot is left. REQUIRES: as above.
  Status set_figures(InodeId directory, const FsFigures& figures);
  // Directories moved: plans from before are outdated. REQUIRES: tree_alone().
  void tree_changed() { tree_changed_ = true; }
  // Whether the way from it ends in the root or the trash. REQUIRES: the plan charges it.
  bool attached(InodeId directory) const;
  // Whether `directory` is `above` or below it. REQUIRES: the plan charges it, and has the tree
  // alone.
  bool is_below(InodeId directory, InodeId above) const;

  // Whether nobody has files open but those whom this process knows of.
  bool knows_holders() const { return latched() && !fs_.has_strangers_; }
  // Whether blocks may be stored that the inode knows nothing of.
  bool may_have_leftovers(InodeId inode) const {
    return !latched() || inode.value < fs_.leftovers_below_;
  }
  // Whether the plan has the key alone: for what may have changed since.
  bool has_planned(ByteView key) const { return plan_.scope_.allows_write(key); }

  // A single record that nobody else here keeps: read, then put or removed, once.
  struct Record {
    Bytes key;
    Value old;
  };
  Result<Record> record(Bytes key);
  void put(const Record& record, ByteView value) { view_.put(record.key, value, record.old); }
  void remove(const Record& record) {
    if (record.old.found()) view_.remove(record.key, record.old);
  }

  int64_t now_ns() const { return now_ns_; }
  uint64_t now_ms() const { return static_cast<uint64_t>(now_ns_) / 1'000'000; }

 private:
  friend class FileSystem;
  struct Kept {
    Value old;
    std::optional<FsInode> before;  // what `old` is
    std::optional<FsInode> now;     // absent: removed, or not there
  };
  struct Counted {
    FsFigures difference;
    FsFigures unlimited;  // of it
    bool has_quota = false;
  };
  Status begin();
  Status finish();
  Status read_inode(InodeId inode, Kept& kept);
  // As entry() has read it.
  Result<Record> entry_record(InodeId directory, ByteView name);
  void write_inode(InodeId inode, const Kept& kept);
  Status write_figures();
  Status check_quota(InodeId directory, const FsFigures& sum, const Counted& counted);

  FileSystem& fs_;
  FsPlan& plan_;
  CountedView& view_;
  const KeyspaceId keyspace_;
  int64_t now_ns_ = 0;
  bool tree_changed_ = false;
  Record tree_;
  // Of what follows: most changes need no more.
  std::array<std::byte, 4096> first_memory_;
  std::pmr::monotonic_buffer_resource memory_{first_memory_.data(), first_memory_.size()};
  std::pmr::map<InodeId, Kept> inodes_{&memory_};
  std::pmr::map<Bytes, Value> entries_{&memory_};  // that were read and not written yet, by key
  std::pmr::map<std::pair<InodeId, uint8_t>, Counted> counted_{&memory_};
  std::pmr::list<Bytes> bytes_{&memory_};
};

}  // namespace trellis
