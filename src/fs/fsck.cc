#include "fs/fsck.h"

#include <algorithm>
#include <utility>

#include "fs/fsck_look.h"

namespace trellis {
namespace {

// Looks without locks before something that looks wrong is looked at with all locks.
constexpr int free_looks = 3;
// Where nothing is locked, others may be faster each time, and make the next look longer.
constexpr int held_looks_max = 10;
// What a repair makes of one thing may show that another is wrong.
constexpr int rounds_max = 6;
constexpr size_t blocks_listed_at_once = 10'000;
constexpr uint64_t bytes_of_a_look = 256;  // for the pace: about what it reads

constexpr std::string_view kind_names[fsck_kinds] = {
    "superblock_lost",   "tree_version_lost",   "id_over_counter",
    "record_damaged",    "inode_damaged",       "inode_lost",
    "size_wrong",        "blocks_wrong",        "flags_wrong",
    "entry_to_nothing",  "entry_wrong",         "entry_of_nothing",
    "name_illegal",      "name_missing",        "directory_named_twice",
    "directory_circle",  "home_wrong",          "links_wrong",
    "link_lost",         "link_wrong",          "figures_wrong",
    "extent_damaged",    "extent_overlaps",     "block_missing",
    "block_damaged",     "block_unused",        "data_use_wrong",
    "shared_data_wrong", "session_without_end", "held_by_none",
    "lock_of_none",      "note_missing",        "note_damaged",
    "counters_wrong",    "not_confirmed"};

using LookAt = FunctionRef<Status(FsckLook&)>;

class Fsck {
 public:
  Fsck(FileSystem& fs, const Caller& caller, const FsckOptions& options, JobControl& control,
       FsckVisitor found)
      : fs_(fs),
        caller_(caller),
        options_(options),
        control_(control),
        found_(found),
        world_{fs, fs.keyspace(), options, control},
        source_(fs.tenant().map().engine) {}

  Result<FsckReport> run() {
    for (int round = 1;; round++) {
      found_in_round_ = 0;
      id_max_ = 0;
      report_.inodes = report_.directories = report_.entries = report_.blocks = 0;
      TRY(run_round());
      if (!options_.repair || found_in_round_ == 0 || round == rounds_max) return report_;
    }
  }

 private:
  struct Named {
    InodeId inode;
    uint32_t links;
    uint32_t names;
    bool is_directory;
    bool doubtful;  // by its link records
  };

  Status run_round();
  Status find_last_inode();
  Status check_parents();
  Status check_inodes();
  Result<std::optional<InodeId>> next_inode(ByteView from);
  Status check_window(std::vector<Named>& window);
  Status count_names(std::vector<Named>& window);
  Status check_shared_data();
  Status check_blocks();
  Status check_block_window(const std::vector<BlockId>& window);
  Status forget_what_is_in_use(std::vector<BlockId>& unmapped);
  Status check_sessions();
  Status check_locks();
  Status check_notes();

  // Looks until nothing is wrong, or it is for sure; then tells, and repairs.
  Status settle(LookAt look);
  Status settle_one(LookAt look, std::vector<InodeId>& to_recount);
  Status find_lost_found();
  void tell(const FsckLook& look, bool repaired);
  void tell_not_confirmed(std::string what);
  RecordCursor scope(char scope) {
    return RecordCursor::of_prefix(source_, fs_scope_prefix(world_.keyspace, scope));
  }

  FileSystem& fs_;
  const Caller& caller_;
  const FsckOptions& options_;
  JobControl& control_;
  const FsckVisitor found_;
  FsckWorld world_;
  FsckSourceOf<Engine> source_;
  FsckReport report_;
  uint64_t found_in_round_ = 0;
  uint64_t id_max_ = 0;
  uint64_t inode_max_ = 0;       // that was there when the round began
  bool names_doubtful_ = false;  // of the last look
};

// --- one thing ---

void Fsck::tell(const FsckLook& look, bool repaired) {
  for (FsckFinding finding : look.findings()) {
    finding.repaired = repaired && finding.kind != FsckKind::not_confirmed;
    found_in_round_++;
    report_.found[static_cast<size_t>(finding.kind)]++;
    report_.repaired[static_cast<size_t>(finding.kind)] += finding.repaired ? 1 : 0;
    const bool is_of_ids =
        finding.kind == FsckKind::superblock_lost || finding.kind == FsckKind::id_over_counter;
    if (finding.repaired && is_of_ids) fs_.forget_ids();
    found_(finding);
  }
}

void Fsck::tell_not_confirmed(std::string what) {
  report_.found[static_cast<size_t>(FsckKind::not_confirmed)]++;
  found_({.kind = FsckKind::not_confirmed, .what = std::move(what)});
}

Status Fsck::settle(LookAt look) {
  std::vector<InodeId> to_recount;
  TRY(settle_one(look, to_recount));
  while (!to_recount.empty()) {
    const InodeId directory = to_recount.back();
    to_recount.pop_back();
    TRY(settle_one([&](FsckLook& again) { return again.directory(directory); }, to_recount));
  }
  return {};
}

Status Fsck::settle_one(LookAt look, std::vector<InodeId>& to_recount) {
  TRY(control_.pass(bytes_of_a_look));
  std::optional<FsckLook> before;
  for (int i = 0; i < (options_.offline ? 1 : free_looks); i++) {
    before.emplace(world_, source_);
    TRY(look(*before));
    id_max_ = std::max(id_max_, before->id_max());
    names_doubtful_ = before->names_doubtful();
    if (before->findings().empty()) return {};
  }
  if (options_.repair && before->needs_lost_found()) TRY(find_lost_found());
  std::optional<FsckLook> held;
  int looks = 0;
  const auto run = [&](CountedView& view) -> Status {
    if (++looks > held_looks_max) return Error{Code::conflict, "others change it each time"};
    FsckSourceOf<CountedView> source(view);
    held.emplace(world_, source, &*before);
    TRY(look(*held));
    return options_.repair ? held->apply(view) : Status();
  };
  const Status done = fs_.tenant().collect(Model::fs, Scope::all_of(world_.keyspace), run);
  if (!done && (done.error().code == Code::too_large || done.error().code == Code::conflict)) {
    tell_not_confirmed(before->findings().front().what);
    return {};
  }
  TRY(done);
  tell(*held, options_.repair);
  if (options_.repair)
    for (const InodeId directory : held->to_recount())
      if (directory.value != 0) to_recount.push_back(directory);
  return {};
}

Status Fsck::find_lost_found() {
  for (unsigned number = 0; world_.lost_found.value == 0; number++) {
    const std::string name =
        number == 0 ? std::string("lost+found") : fmt::format("lost+found-{}", number);
    auto found = fs_.lookup(caller_, root_inode, name);
    if (!found && found.error().reason == "no_entry")
      found = fs_.make(caller_, root_inode, name, {.type = FileType::directory, .mode = 0700});
    if (!found && found.error().reason == "exists") continue;
    TRY(found);
    if (found->type == FileType::directory) world_.lost_found = found->inode;
  }
  return {};
}

// --- all of them ---

// Others may make inodes faster than they are looked at: those that come meanwhile, whose ids are
// higher but for a few, are the next run's.
Status Fsck::find_last_inode() {
  inode_max_ = 0;
  for (const char scope : {1, 3}) {
    const Bytes begin = fs_scope_prefix(world_.keyspace, scope);
    const Bytes end = prefix_end(begin);
    TRY(source_.scan({.begin = begin, .end = end, .reverse = true, .entries_max = 1},
                     [&](ByteView key, ByteView) {
                       Bytes whole(key);
                       whole.resize(std::max(whole.size(), fs_inode_key_bytes));
                       inode_max_ = std::max(inode_max_, fs_id_of(whole));
                       return Visit::stop;
                     }));
  }
  return {};
}

Status Fsck::run_round() {
  TRY(find_last_inode());
  control_.begin_phase("superblock", 0);
  TRY(settle([](FsckLook& look) { return look.superblock(0); }));
  control_.begin_phase("names", 0);
  for (const InodeId inode : {root_inode, trash_inode})
    TRY(settle([&](FsckLook& look) { return look.inode(inode); }));
  TRY(check_parents());
  TRY(check_sessions());
  TRY(check_locks());
  // As the files say; what they say may be wrong, and is only for the bar.
  const TreeFigures all = fs_.figures(caller_).value_or(FileSystemFigures()).used;
  control_.begin_phase("inodes",
                       all.inodes * bytes_of_a_look + (options_.read_blocks ? all.space : 0));
  TRY(check_inodes());
  control_.begin_phase("data", 0);
  TRY(check_shared_data());
  control_.begin_phase("blocks", all.space / block_bytes_max * sizeof(BlockId));
  TRY(check_blocks());
  control_.begin_phase("notes", 0);
  TRY(check_notes());
  TRY(settle([](FsckLook& look) { return look.trash(); }));
  control_.begin_phase("counters", 0);
  TRY(settle([](FsckLook& look) { return look.counters(); }));
  const uint64_t id_max = id_max_;
  return settle([&](FsckLook& look) { return look.superblock(id_max); });
}

// Every directory that has entries is one.
Status Fsck::check_parents() {
  Bytes from = fs_scope_prefix(world_.keyspace, 3);
  const Bytes end = prefix_end(from);
  for (;;) {
    std::optional<InodeId> parent;
    Bytes bad;
    TRY(source_.scan({.begin = from, .end = end, .entries_max = 1}, [&](ByteView key, ByteView) {
      if (key.size() > fs_inode_key_bytes)
        parent = InodeId{fs_id_of(key)};
      else
        bad = Bytes(key);
      return Visit::stop;
    }));
    if (!bad.empty()) {
      TRY(settle([&](FsckLook& look) { return look.damaged(bad, "an entry"); }));
      from = successor(bad);
      continue;
    }
    if (!parent || parent->value > inode_max_) return {};
    TRY(settle([&](FsckLook& look) { return look.entries_of(*parent); }));
    from = prefix_end(encode(FsEntryKey{world_.keyspace, *parent, {}}));
  }
}

Result<std::optional<InodeId>> Fsck::next_inode(ByteView from) {
  std::optional<InodeId> inode;
  const Bytes end = prefix_end(fs_scope_prefix(world_.keyspace, 1));
  TRY(source_.scan({.begin = from, .end = end, .entries_max = 1}, [&](ByteView key, ByteView) {
    Bytes whole(key);
    whole.resize(std::max(whole.size(), fs_inode_key_bytes));  // of one that is too short
    inode = InodeId{fs_id_of(whole)};
    return Visit::stop;
  }));
  if (inode && inode->value > inode_max_) inode.reset();
  return inode;
}

Status Fsck::check_inodes() {
  std::vector<Named> window;
  Bytes from = fs_scope_prefix(world_.keyspace, 1);
  for (;;) {
    TRY_ASSIGN(const auto inode, next_inode(from));
    if (inode) {
      TRY(settle([&](FsckLook& look) { return look.inode(*inode); }));
      from = prefix_end(encode(FsInodeKey{world_.keyspace, *inode}));
      const auto seen = see_inode(fs_.tenant().map().engine, world_.keyspace, *inode);
      if (seen && *seen) {
        const FsInode& content = (*seen)->inode;
        window.push_back(
            {*inode, content.links, 0, content.type == FileType::directory, names_doubtful_});
      }
    }
    if (window.size() >= options_.window || (!inode && !window.empty())) {
      TRY(check_window(window));
      window.clear();
    }
    if (!inode) return {};
  }
}

Status Fsck::check_window(std::vector<Named>& window) {
  report_.inodes += window.size();
  for (const Named& named : window) {
    if (!named.is_directory) continue;
    report_.directories++;
    TRY(settle([&](FsckLook& look) { return look.directory(named.inode); }));
  }
  TRY(count_names(window));
  std::vector<InodeId> unnamed;
  for (const Named& named : window) {
    if (named.links == 0) unnamed.push_back(named.inode);
    if (named.links != named.names || named.doubtful)
      TRY(settle([&](FsckLook& look) { return look.names(named.inode); }));
  }
  return settle([&](FsckLook& look) { return look.unnamed(unnamed); });
}

Status Fsck::count_names(std::vector<Named>& window) {
  uint64_t entries = 0;
  RecordCursor cursor = scope(3);
  for (;;) {
    TRY_ASSIGN(const bool more, cursor.next());
    if (!more) break;
    TRY(control_.pass(cursor.key().size() + cursor.value().size()));
    entries++;
    const auto entry = decode<FsEntry>(cursor.value());
    if (!entry) continue;
    const auto named = std::lower_bound(
        window.begin(), window.end(), entry->inode,
        [](const Named& named, InodeId inode) { return named.inode.value < inode.value; });
    if (named != window.end() && named->inode == entry->inode) named->names++;
  }
  report_.entries = entries;
  return {};
}

// --- data and blocks ---

Status Fsck::check_shared_data() {
  struct Shared {
    DataId data;
    uint64_t stored;
    uint64_t counted;
  };
  std::vector<Shared> window;
  RecordCursor cursor = scope(5);
  for (bool more = true; more;) {
    TRY_ASSIGN(more, cursor.next());
    if (more) {
      const auto key = decode<FsSharedDataKey>(cursor.key());
      const auto users = decode<FsSharedData>(cursor.value());
      if (!key) {
        const Bytes bad(cursor.key());
        TRY(settle([&](FsckLook& look) { return look.damaged(bad, "shared data"); }));
        continue;
      }
      id_max_ = std::max(id_max_, key->data.value);
      window.push_back({key->data, users ? users->inodes : 0, 0});
    }
    if (window.size() < (more ? options_.window : 1)) continue;
    RecordCursor records = scope(1);
    for (;;) {
      TRY_ASSIGN(const bool is_there, records.next());
      if (!is_there) break;
      const auto use = decode<FsDataUseKey>(records.key());
      if (!use) continue;
      const auto shared = std::lower_bound(
          window.begin(), window.end(), use->data,
          [](const Shared& shared, DataId data) { return shared.data.value < data.value; });
      if (shared != window.end() && shared->data == use->data) shared->counted++;
    }
    for (const Shared& shared : window)
      if (shared.stored != shared.counted || shared.counted == 0)
        TRY(settle([&](FsckLook& look) { return look.shared_data(shared.data); }));
    window.clear();
  }
  return {};
}

Status Fsck::check_blocks() {
  BlockStore& blocks = fs_.tenant().map().engine.blocks();
  std::vector<BlockId> window;
  std::optional<BlockId> from = blocks_begin(world_.keyspace);
  while (from) {
    const auto page = blocks.list(*from, blocks_end(world_.keyspace), blocks_listed_at_once);
    if (!page && page.error().code == Code::corrupt) {  // inode() told whose it is
      tell_not_confirmed("blocks that nobody maps: " + page.error().message);
      return check_block_window(window);
    }
    TRY(page);
    report_.blocks += page->blocks.size();
    TRY(control_.pass(page->blocks.size() * sizeof(BlockId)));
    for (const StoredBlock& stored : page->blocks) window.push_back(stored.block);
    from = page->resume;
    if (window.size() < (from ? options_.window : 1)) continue;
    TRY(check_block_window(window));
    window.clear();
  }
  return {};
}

Status Fsck::check_block_window(const std::vector<BlockId>& window) {
  std::vector<bool> mapped(window.size());
  RecordCursor cursor = scope(1);
  for (;;) {
    TRY_ASSIGN(const bool more, cursor.next());
    if (!more) break;
    if (!decode<FsExtentKey>(cursor.key())) continue;
    const auto extent = decode<FsExtent>(cursor.value());
    if (!extent) continue;
    const BlockId first{world_.keyspace, extent->data, extent->first};
    const BlockId end{world_.keyspace, extent->data, extent->first + extent->blocks};
    for (auto at = std::lower_bound(window.begin(), window.end(), first);
         at != window.end() && *at < end; ++at)
      mapped[static_cast<size_t>(at - window.begin())] = true;
  }
  std::vector<BlockId> unmapped;
  for (size_t i = 0; i < window.size(); i++)
    if (!mapped[i]) unmapped.push_back(window[i]);
  if (!options_.offline) TRY(forget_what_is_in_use(unmapped));
  if (unmapped.empty()) return {};
  return settle([&](FsckLook& look) { return look.unused_blocks(unmapped); });
}

// Of what others write at this moment: blocks that are next, or of numbers that come from ids.
Status Fsck::forget_what_is_in_use(std::vector<BlockId>& unmapped) {
  constexpr uint64_t blocks_of_ids = uint64_t{1} << 63;
  std::erase_if(unmapped, [&](const BlockId& block) { return block.index >= blocks_of_ids; });
  if (unmapped.empty()) return {};
  // An inode's own data has its number, or came with a clone: then all are looked at.
  std::vector<BlockId> left;
  for (const BlockId& block : unmapped) {
    TRY_ASSIGN(const auto owner,
               see_inode(fs_.tenant().map().engine, world_.keyspace, InodeId{block.data.value}));
    if (!owner || owner->inode.data != block.data || block.index < owner->inode.next)
      left.push_back(block);
  }
  unmapped = std::move(left);
  return {};
}

// --- the rest ---

Status Fsck::check_sessions() {
  RecordCursor cursor = scope(6);
  for (;;) {
    TRY_ASSIGN(const bool more, cursor.next());
    if (!more) return {};
    const Bytes key(cursor.key());
    if (const auto session = decode<FsSessionKey>(key))
      TRY(settle([&](FsckLook& look) { return look.session(session->session); }));
    else
      TRY(settle([&](FsckLook& look) { return look.held(key); }));
  }
}

Status Fsck::check_locks() {
  for (const char other : {4, 7, 8, 9}) {
    RecordCursor cursor = scope(other);
    for (;;) {
      TRY_ASSIGN(const bool more, cursor.next());
      if (!more) break;
      const Bytes key(cursor.key());
      if (other == 7)
        TRY(settle([&](FsckLook& look) { return look.locks(key); }));
      else
        TRY(settle([&](FsckLook& look) { return look.damaged(key, "a record of no kind"); }));
    }
  }
  return {};
}

Status Fsck::check_notes() {
  Bytes prefix = fs_scope_prefix(world_.keyspace, 0).substr(0, fs_scope_offset - 1);
  prefix += 'g';
  RecordCursor cursor = RecordCursor::of_prefix(source_, prefix);
  for (;;) {
    TRY_ASSIGN(const bool more, cursor.next());
    if (!more) return {};
    const Bytes key(cursor.key());
    TRY(settle([&](FsckLook& look) { return look.note(key); }));
  }
}

}  // namespace

std::string_view to_string(FsckKind kind) { return kind_names[static_cast<size_t>(kind)]; }

bool FsckReport::clean() const {
  for (size_t i = 0; i < fsck_kinds; i++)
    if (found[i] > 0 && static_cast<FsckKind>(i) != FsckKind::block_unused) return false;
  return true;
}

Result<FsckReport> fsck(FileSystem& fs, const Caller& caller, const FsckOptions& options,
                        JobControl& control, FsckVisitor found) {
  TRY(fs.tenant().admit(caller, options.repair ? Access::write : Access::read));
  return Fsck(fs, caller, options, control, found).run();
}

}  // namespace trellis
