#include "fs/fs_world.h"

#include <gtest/gtest.h>

#include "codec/system_keys.h"
#include "engine/memory_engine.h"
#include "fs/block_map.h"
#include "fs/change.h"
#include "fs/fsck.h"
#include "support/expect_ok.h"
#include "support/make_keyspace.h"
#include "tenant/collector.h"

namespace trellis {
namespace {

// Fails when it is told to, and is not asked again.
class FaultyFiles final : public EngineUnderTest {
 public:
  Engine& engine() override { return faulty_; }
  FaultyEngine* faulty() override { return &faulty_; }
  void reopen() override { open(); }
  void crash(Random& random) override {
    store_->crash(random);
    open();
  }

 private:
  void open() {
    memory_ = std::make_unique<MemoryEngine>(store_, MemoryEngine::Use::alone);
    faulty_.restart(*memory_);
  }
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>(MemoryStore::Crashable::yes);
  std::unique_ptr<MemoryEngine> memory_ =
      std::make_unique<MemoryEngine>(store_, MemoryEngine::Use::alone);
  FaultyEngine faulty_{*memory_};
};

std::string differs(uint64_t inode, std::string_view what, uint64_t is, uint64_t should) {
  return fmt::format("{} of inode {} is {} and should be {}", what, inode, is, should);
}

}  // namespace

std::vector<WayOfEngine> fs_setups() {
  std::vector<WayOfEngine> setups;
  for (const WayOfEngine& way : ways_of_engines())
    if (way.kind.name != "faulty_retried" && way.kind.name != "faultless_shared" &&
        way.kind.name != "cluster_splitting")
      setups.push_back(way);
  const EngineKind faulty{"faulty", false, [] { return std::make_unique<FaultyFiles>(); }};
  setups.push_back({faulty, Way::latched});
  setups.push_back({faulty, Way::expecting});
  return setups;
}

FsWorld::FsWorld(const WayOfEngine& way, uint64_t seed)
    : way_(way), seed_(seed), under_test_(way.kind.open()) {
  EXPECT_OK(make_keyspace(engine(), id));
  open();
}

void FsWorld::open() {
  std::vector<Engine*> engines{&under_test_->engine()};
  if (way_.kind.shared) engines.push_back(&under_test_->other());
  for (Engine* const engine : engines) {
    Server& server = servers_.emplace_back();
    server.transactor = std::make_unique<Transactor>(
        *engine, clock_, TransactOptions{.way = way_.way, .check_scope = true, .seed = seed_});
    const MapHandle map{*engine, *server.transactor, clock_, Durability::always};
    auto opened = FileSystem::open(std::make_shared<Tenant>(map, id), {.ids_reserved = 64});
    EXPECT_OK(opened);
    server.fs = *opened;
  }
}

void FsWorld::close() { servers_.clear(); }

void FsWorld::set_faults(bool on) {
  if (faulty() == nullptr) return;
  if (!on) return faulty()->set_options({});
  faulty()->set_options({.seed = ++seed_,
                         .fail_read_one_in = 100,
                         .fail_commit_one_in = 50,
                         .conflict_one_in = 10,
                         .maybe_one_in = 40,
                         .fail_block_one_in = 50});
}

void FsWorld::crash(Random& random) {
  close();
  under_test_->crash(random);
  open();
}

void FsWorld::reopen() {
  close();
  under_test_->reopen();
  open();
}

void FsWorld::collect_all() {
  Bytes prefix = encode(FsSuperblockKey{id}).substr(0, 4);
  prefix += 'g';
  for (int round = 0; round < 1'000; round++) {
    std::vector<Garbage> notes;
    EXPECT_OK(engine().scan({.begin = prefix, .end = prefix_end(prefix)},
                            [&](ByteView key, ByteView value) {
                              const auto note = decode<GarbageKey>(key);
                              if (note && note->due_ms <= clock_.unix_ms())
                                notes.push_back({note->due_ms, Bytes(note->target), note->model,
                                                 decode_garbage_value(value).value_or(0)});
                              return Visit::go_on;
                            }));
    if (notes.empty()) return;
    for (const Garbage& note : notes) EXPECT_OK(fs(notes.size()).collect({&note, 1}));
    if (testing::Test::HasFailure()) return;
  }
  ADD_FAILURE() << "notes are left";
}

void FsWorld::check(bool offline) {
  SystemClock clock;
  JobControl control(clock);
  const auto report =
      fsck(fs(), caller_, {.offline = offline}, control, [](const FsckFinding& found) {
        if (found.kind == FsckKind::block_unused) return;
        ADD_FAILURE() << to_string(found.kind) << " inode " << found.inode.value << " in "
                      << found.directory.value << " " << quote(found.name) << ": " << found.what;
      });
  EXPECT_OK(report);
  const auto counted = stored_figures(engine(), id);
  const auto recounted = recount(engine(), id);
  ASSERT_OK(counted);
  ASSERT_OK(recounted);
  EXPECT_EQ(*counted, *recounted);
}

// --- what is there ---

ModelFile FsWorld::read_file(uint64_t inode) {
  ModelFile file;
  const auto seen = see_inode(engine(), id, InodeId{inode});
  EXPECT_TRUE(seen && *seen);
  if (!seen || !*seen) return file;
  const FsInode& stored = (*seen)->inode;
  file.type = stored.type;
  file.is_inline = (stored.flags & fs_inline) != 0;
  file.content.resize(stored.size);
  for (size_t done = 0; done < file.content.size();) {
    const auto part = fs().read(caller_, InodeId{inode}, done,
                                {file.content.data() + done, file.content.size() - done});
    EXPECT_OK(part);
    if (!part || *part == 0) break;
    done += *part;
  }
  const Bytes prefix = encode(FsInodeKey{id, InodeId{inode}}) + 'E';
  EXPECT_OK(engine().scan({.begin = prefix, .end = prefix_end(prefix)},
                          [&](ByteView key, ByteView value) {
                            const auto extent = decode_extent(InodeId{inode}, key, value);
                            EXPECT_OK(extent);
                            for (uint64_t i = extent->block; i < extent->end(); i++)
                              file.mapped.insert(i);
                            return Visit::go_on;
                          }));
  return file;
}

std::string FsWorld::difference(const FsModel& model, InodeId base) {
  for (const auto& [inode, file] : model.files()) {
    if (inode == trash_inode.value || (inode == root_inode.value && base != root_inode)) continue;
    const std::string found = difference_of(model, inode);
    if (!found.empty()) return found;
  }
  return "";
}

std::string FsWorld::difference_of(const FsModel& model, uint64_t inode) {
  const ModelFile& file = model.at(inode);
  const auto stat = fs(inode).stat(caller_, InodeId{inode});
  if (!stat) return fmt::format("inode {}: {}", inode, to_string(stat.error()));
  if (stat->type != file.type) return fmt::format("the type of inode {}", inode);
  if (inode != root_inode.value) {
    if (stat->mode != file.mode) return differs(inode, "the mode", stat->mode, file.mode);
    if (stat->uid != file.uid) return differs(inode, "the owner", stat->uid, file.uid);
    if (stat->gid != file.gid) return differs(inode, "the group", stat->gid, file.gid);
  }
  std::map<std::string, std::string> xattrs;
  const auto names = fs(inode).list_xattrs(caller_, InodeId{inode});
  if (!names) return to_string(names.error());
  for (const Bytes& name : *names)
    xattrs[name] = fs(inode).get_xattr(caller_, InodeId{inode}, name).value_or("(lost)");
  if (xattrs != file.xattrs) return fmt::format("the extended attributes of inode {}", inode);
  if (file.is_directory()) return difference_of_directory(model, inode);
  if (stat->links != file.names.size())
    return differs(inode, "the number of links", stat->links, file.names.size());
  if (stat->size != file.content.size())
    return differs(inode, "the size", stat->size, file.content.size());
  if (stat->space != file.mapped.size() * block_bytes_max)
    return differs(inode, "the space", stat->space, file.mapped.size() * block_bytes_max);
  if (file.type == FileType::regular) {
    const ModelFile found = read_file(inode);
    if (found.content != file.content) {
      const auto [at, other] =
          std::mismatch(found.content.begin(), found.content.end(), file.content.begin());
      return fmt::format("the content of inode {} at byte {} of {}", inode,
                         at - found.content.begin(), file.content.size());
    }
    if (found.mapped != file.mapped) return fmt::format("the holes of inode {}", inode);
  } else if (file.type == FileType::symlink) {
    const auto target = fs(inode).read_link(caller_, InodeId{inode});
    if (!target || *target != file.content) return fmt::format("the target of inode {}", inode);
  }
  return "";
}

std::string FsWorld::difference_of_directory(const FsModel& model, uint64_t inode) {
  const ModelFile& directory = model.at(inode);
  std::map<std::string, uint64_t> entries;
  uint64_t directories = 0;
  std::optional<Bytes> after = Bytes();
  while (after) {
    auto page =
        fs(inode + 1).list(caller_, InodeId{inode}, *after, 3, [&](const DirectoryEntry& entry) {
          entries[Bytes(entry.name)] = entry.entry.inode.value;
          directories += entry.entry.type == FileType::directory;
          return Visit::go_on;
        });
    if (!page) return fmt::format("directory {}: {}", inode, to_string(page.error()));
    after = std::move(page->resume);
  }
  if (entries != directory.entries) {
    std::string text = fmt::format("directory {} has", inode);
    for (const auto& [name, child] : entries) text += fmt::format(" {}={}", name, child);
    text += " and should have";
    for (const auto& [name, child] : directory.entries) text += fmt::format(" {}={}", name, child);
    return text;
  }
  const auto stat = fs().stat(caller_, InodeId{inode});
  if (!stat) return to_string(stat.error());
  if (stat->links != 2 + directories)
    return differs(inode, "the number of links", stat->links, 2 + directories);
  if (stat->size != entries.size()) return differs(inode, "the size", stat->size, entries.size());
  const auto found = fs(inode).tree_figures(caller_, InodeId{inode});
  if (!found) return to_string(found.error());
  const TreeFigures right = model.figures(inode);
  if (found->space != right.space) return differs(inode, "space", found->space, right.space);
  if (found->length != right.length) return differs(inode, "length", found->length, right.length);
  if (found->inodes != right.inodes) return differs(inode, "inodes", found->inodes, right.inodes);
  const auto quota = fs().quota(caller_, InodeId{inode});
  if (!quota) return to_string(quota.error());
  const FsQuota is = quota->value_or(FsQuota{});
  if (is.bytes_max != directory.quota.bytes_max || is.inodes_max != directory.quota.inodes_max)
    return fmt::format("the quota of directory {}", inode);
  return "";
}

}  // namespace trellis
