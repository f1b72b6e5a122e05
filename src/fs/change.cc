#include "fs/change.h"

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "base/human_bytes.h"

namespace trellis {
namespace {

// So many plans may be outdated when they run before one has the file system to itself.
constexpr unsigned plans_max = 6;

uint8_t slot_of_this_thread() {
  static std::atomic<uint8_t> next{0};
  thread_local const uint8_t slot =
      static_cast<uint8_t>(next.fetch_add(1, std::memory_order_relaxed) % figure_slots);
  return slot;
}

Result<FsFigures> decode_figures(InodeId directory, const Value& stored) {
  if (!stored.found()) return FsFigures();
  auto figures = decode<FsFigures>(stored.bytes());
  if (!figures)
    return fs_error::corrupt(
        fmt::format("figures of directory {}: {}", directory.value, figures.error().message));
  return *figures;
}

}  // namespace

void add_to(FsFigures& sum, const FsFigures& difference) {
  const auto add = [](int64_t& to, int64_t more) {
    to = static_cast<int64_t>(static_cast<uint64_t>(to) + static_cast<uint64_t>(more));
  };
  add(sum.space, difference.space);
  add(sum.length, difference.length);
  add(sum.inodes, difference.inodes);
  add(sum.entries, difference.entries);
  add(sum.directories, difference.directories);
  sum.changed_ns = std::max(sum.changed_ns, difference.changed_ns);
}

Result<FsInode> decode_inode(InodeId inode, ByteView bytes) {
  auto decoded = decode<FsInode>(bytes);
  if (!decoded)
    return fs_error::corrupt(fmt::format("inode {}: {}", inode.value, decoded.error().message));
  return *decoded;
}

Result<std::optional<SeenInode>> see_inode(Engine& engine, KeyspaceId keyspace, InodeId inode) {
  SeenInode seen;
  TRY(engine.get(encode(FsInodeKey{keyspace, inode}), seen.stored));
  if (!seen.stored.found()) return std::optional<SeenInode>();
  TRY_ASSIGN(seen.inode, decode_inode(inode, seen.stored.bytes()));
  return std::optional<SeenInode>(std::move(seen));
}

Result<std::optional<FsEntry>> see_entry(Engine& engine, KeyspaceId keyspace, InodeId directory,
                                         ByteView name) {
  Value stored;
  TRY(engine.get(encode(FsEntryKey{keyspace, directory, name}), stored));
  if (!stored.found()) return std::optional<FsEntry>();
  auto entry = decode<FsEntry>(stored.bytes());
  if (!entry) return fs_error::corrupt("entry " + quote(name) + ": " + entry.error().message);
  return std::optional<FsEntry>(*entry);
}

Result<FsFigures> sum_figures(InodeId directory, std::span<const Value> slots) {
  FsFigures sum;
  for (const Value& stored : slots) {
    TRY_ASSIGN(const FsFigures part, decode_figures(directory, stored));
    add_to(sum, part);
  }
  return sum;
}

// --- plan ---

FsPlan::FsPlan(FileSystem& fs, uint64_t tree_version)
    : fs_(fs),
      keyspace_(fs.keyspace()),
      tree_version_(tree_version),
      scope_(Scope::in(fs.keyspace())) {
  shared(encode(FsTreeKey{keyspace_}));
}

const Scope& FsPlan::scope() {
  if (everything_ || scope_.locks().size() > planned_locks_max) scope_ = Scope::all_of(keyspace_);
  return scope_;
}

Result<std::optional<SeenInode>> FsPlan::inode(InodeId inode) {
  return see_inode(fs_.tenant().map().engine, keyspace_, inode);
}

Result<std::optional<FsEntry>> FsPlan::see(InodeId directory, ByteView name) {
  return see_entry(fs_.tenant().map().engine, keyspace_, directory, name);
}

Result<FsPlan::Chain> FsPlan::walk(InodeId directory) {
  Chain chain{.directory = directory, .links = {}};
  chain.links.reserve(8);
  const uint8_t slot = slot_of_this_thread();
  for (InodeId at = directory; at.value != 0;) {
    TRY_ASSIGN(const auto place, fs_.place(at, tree_version_));
    if (!place) break;  // removed meanwhile
    chain.links.push_back({at, place->has_quota ? uint8_t{0} : slot, place->has_quota});
    chain.attached = at == root_inode || at == trash_inode;
    if (chain.attached) break;
    at = place->parent;
    // A circle can only be seen by reads of different instants.
    if (chain.links.size() > file_path_bytes_max) return plan_outdated();
  }
  return chain;
}

Status FsPlan::charge(InodeId directory) {
  if (chain(directory) != nullptr) return {};
  TRY_ASSIGN(Chain chain, walk(directory));
  for (const Link& link : chain.links) {
    exclusive(encode(FsFiguresKey{keyspace_, link.directory, link.slot}));
    if (link.has_quota) share(link.directory);
  }
  chains_.push_back(std::move(chain));
  return {};
}

const FsPlan::Chain* FsPlan::chain(InodeId directory) const {
  const auto found = std::find_if(chains_.begin(), chains_.end(),
                                  [&](const Chain& chain) { return chain.directory == directory; });
  return found == chains_.end() ? nullptr : &*found;
}

void FsPlan::all_figures(InodeId directory) {
  for (uint8_t slot = 0; slot < figure_slots; slot++)
    exclusive(encode(FsFiguresKey{keyspace_, directory, slot}));
}

// --- change ---

Status FileSystem::change(const Caller* caller, FunctionRef<Status(FsPlan&)> plan,
                          FunctionRef<Status(FsChange&)> run) {
  for (unsigned round = 1;; round++) {
    FsPlan planned(*this, known_tree_version());
    if (round > plans_max) planned.everything();
    Status done = plan(planned);
    if (done) {
      const auto attempt = [&](CountedView& view) -> Status {
        FsChange change(*this, planned, view);
        TRY(change.begin());
        TRY(run(change));
        return change.finish();
      };
      done = caller != nullptr ? tenant_->write(*caller, Model::fs, planned.scope(), attempt)
                               : tenant_->collect(Model::fs, planned.scope(), attempt);
    }
    if (done || done.error().reason != plan_outdated().reason || round > 2 * plans_max) return done;
  }
}

Status FsChange::begin() {
  now_ns_ = fs_.now_ns();
  TRY_ASSIGN(tree_, record(encode(FsTreeKey{keyspace_})));
  if (!tree_.old.found()) return fs_error::corrupt("the version of the tree is lost");
  TRY_ASSIGN(const FsTree tree, decode<FsTree>(tree_.old.bytes()));
  if (tree.version == plan_.tree_version_) return {};
  fs_.learn_tree_version(tree.version);
  return plan_outdated();
}

Result<FsChange::Record> FsChange::record(Bytes key) {
  Record record{std::move(key), {}};
  TRY(view_.get(record.key, record.old));
  return record;
}

ByteView FsChange::keep(Bytes bytes) { return bytes_.emplace_back(std::move(bytes)); }

Status FsChange::read_inode(InodeId inode, Kept& kept) {
  TRY(view_.get(encode(FsInodeKey{keyspace_, inode}), kept.old));
  if (!kept.old.found()) return {};
  TRY_ASSIGN(kept.now, decode_inode(inode, kept.old.bytes()));
  kept.before = kept.now;
  return {};
}

Result<FsInode*> FsChange::find_inode(InodeId inode) {
  const auto [found, is_new] = inodes_.try_emplace(inode);
  if (is_new) {
    if (Status read = read_inode(inode, found->second); !read) {
      inodes_.erase(found);
      return read.error();
    }
  }
  return found->second.now ? &*found->second.now : nullptr;
}

Result<FsInode*> FsChange::inode(InodeId inode) {
  TRY_ASSIGN(FsInode* const found, find_inode(inode));
  if (found == nullptr) return fs_error::stale(inode);
  return found;
}

Result<FsInode*> FsChange::directory(InodeId inode) {
  TRY_ASSIGN(FsInode* const found, this->inode(inode));
  if (found->type != FileType::directory)
    return fs_error::not_a_directory(fmt::format("inode {}", inode.value));
  if ((found->flags & fs_removed) != 0) return fs_error::stale(inode);
  return found;
}

void FsChange::make_inode(InodeId inode, const FsInode& content) { inodes_[inode].now = content; }

void FsChange::remove_inode(InodeId inode) { inodes_.at(inode).now.reset(); }

Result<std::optional<FsEntry>> FsChange::entry(InodeId directory, ByteView name) {
  const auto [found, is_new] = entries_.try_emplace(encode(FsEntryKey{keyspace_, directory, name}));
  Value& stored = found->second;
  if (is_new) {
    if (Status read = view_.get(found->first, stored); !read) {
      entries_.erase(found);
      return read.error();
    }
  }
  if (!stored.found()) return std::optional<FsEntry>();
  auto entry = decode<FsEntry>(stored.bytes());
  if (!entry) return fs_error::corrupt("entry " + quote(name) + ": " + entry.error().message);
  return std::optional<FsEntry>(*entry);
}

Result<FsChange::Record> FsChange::entry_record(InodeId directory, ByteView name) {
  Bytes key = encode(FsEntryKey{keyspace_, directory, name});
  auto read = entries_.extract(key);
  if (read.empty()) return record(std::move(key));
  return Record{std::move(key), std::move(read.mapped())};
}

Status FsChange::put_entry(InodeId directory, ByteView name, const FsEntry& entry) {
  TRY_ASSIGN(const Record found, entry_record(directory, name));
  put(found, encode(entry));
  return {};
}

Status FsChange::remove_entry(InodeId directory, ByteView name) {
  TRY_ASSIGN(const Record found, entry_record(directory, name));
  remove(found);
  return {};
}

bool FsChange::attached(InodeId directory) const {
  const FsPlan::Chain* const chain = plan_.chain(directory);
  ASSERT(chain != nullptr);
  return chain->attached;
}

bool FsChange::is_below(InodeId directory, InodeId above) const {
  const FsPlan::Chain* const chain = plan_.chain(directory);
  ASSERT(chain != nullptr);
  return std::any_of(chain->links.begin(), chain->links.end(),
                     [&](const FsPlan::Link& link) { return link.directory == above; });
}

Status FsChange::count(InodeId directory, const FsFigures& difference, Limit limit) {
  const FsPlan::Chain* const chain = plan_.chain(directory);
  if (chain == nullptr) return plan_outdated();
  const FsFigures above{
      .space = difference.space, .length = difference.length, .inodes = difference.inodes};
  bool first = true;
  for (const FsPlan::Link& link : chain->links) {
    Counted& counted = counted_[{link.directory, link.slot}];
    counted.has_quota = link.has_quota;
    add_to(counted.difference, first ? difference : above);
    if (limit == Limit::none) add_to(counted.unlimited, first ? difference : above);
    first = false;
  }
  return {};
}

Result<FsFigures> FsChange::figures(InodeId directory) {
  std::array<Value, figure_slots> slots;
  for (uint8_t slot = 0; slot < figure_slots; slot++)
    TRY(view_.get(encode(FsFiguresKey{keyspace_, directory, slot}), slots[slot]));
  return sum_figures(directory, slots);
}

Status FsChange::set_figures(InodeId directory, const FsFigures& figures) {
  for (uint8_t slot = 0; slot < figure_slots; slot++) {
    TRY_ASSIGN(const Record found, record(encode(FsFiguresKey{keyspace_, directory, slot})));
    if (slot == 0 && figures != FsFigures())
      put(found, encode(figures));
    else
      remove(found);
  }
  return {};
}

Status FsChange::check_quota(InodeId directory, const FsFigures& sum, const Counted& counted) {
  TRY_ASSIGN(const FsInode* const found, inode(directory));
  if ((found->flags & fs_quota) == 0) return plan_outdated();
  TRY_ASSIGN(const FsQuota quota, decode<FsQuota>(found->rest));
  const auto over = [](int64_t used, int64_t added, uint64_t max) {
    return max != 0 && added > 0 && used > 0 && static_cast<uint64_t>(used) > max;
  };
  const FsFigures& all = counted.difference;
  if (over(sum.space, all.space - counted.unlimited.space, quota.bytes_max))
    return fs_error::directory_quota(fs_.describe_directory(directory),
                                     human_bytes(quota.bytes_max));
  if (over(sum.inodes, all.inodes - counted.unlimited.inodes, quota.inodes_max))
    return fs_error::directory_quota(fs_.describe_directory(directory),
                                     fmt::format("{} inodes", quota.inodes_max));
  return {};
}

Status FsChange::write_figures() {
  for (const auto& [where, counted] : counted_) {
    if (counted.difference == FsFigures()) continue;
    const auto [directory, slot] = where;
    TRY_ASSIGN(const Record found, record(encode(FsFiguresKey{keyspace_, directory, slot})));
    TRY_ASSIGN(FsFigures sum, decode_figures(directory, found.old));
    add_to(sum, counted.difference);
    if (counted.has_quota) TRY(check_quota(directory, sum, counted));
    put(found, encode(sum));
  }
  return {};
}

Status FsChange::finish() {
  TRY(write_figures());
  for (const auto& [inode, kept] : inodes_) write_inode(inode, kept);
  if (tree_changed_) put(tree_, encode(FsTree{plan_.tree_version_ + 1}));
  return {};
}

void FsChange::write_inode(InodeId inode, const Kept& kept) {
  if (kept.now == kept.before) return;
  const Bytes key = encode(FsInodeKey{keyspace_, inode});
  const uint64_t blocks_before = kept.before ? kept.before->blocks : 0;
  const uint64_t blocks = kept.now ? kept.now->blocks : 0;
  if (kept.now)
    view_.put(key, encode(*kept.now), kept.old);
  else
    view_.remove(key, kept.old);
  view_.count_outside(static_cast<int64_t>((blocks - blocks_before) * block_bytes_max));
  if (kept.now.has_value() != kept.before.has_value()) view_.count_keys(kept.now ? 1 : -1);
}

}  // namespace trellis
