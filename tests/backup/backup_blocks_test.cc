// Blocks of file data in backups, and in burials, on a real store.
#include <fmt/format.h>

#include "backup/backup_jobs_fixture.h"
#include "fs/file_systems.h"
#include "fs/files.h"
#include "fs/fsck.h"

namespace trellis {
namespace {

using Blocks = std::map<std::pair<uint64_t, uint64_t>, Bytes>;  // by data and index

class BackupBlocksTest : public BackupJobsTest {
 protected:
  void write_block(KeyspaceId of, uint64_t data, uint64_t index, ByteView bytes) {
    const BlockWrite one{{of, DataId{data}, index}, std::nullopt, bytes};
    ASSERT_OK(engine_->blocks().write({&one, 1}));
  }

  // Some files, about so many MiB, and counted as the model does, so that they make several units.
  void fill_blocks(KeyspaceId of, uint64_t mib) {
    for (uint64_t i = 0; i < mib * 16; i++) {
      const uint64_t data = i % 4 == 0 ? 1'000 : 1 + random_.below(5'000);
      write_block(of, data, i, random_.bytes(random_.one_in(3) ? 100 : block_bytes_max));
    }
    Commit counted;
    counted.writes.add(encode(CounterKey{of, Model::fs, CounterName::bytes, 0}),
                       static_cast<int64_t>(mib << 20));
    counted.writes.put(encode(FsFiguresKey{of, root_inode, 3}),
                       encode(FsFigures{.space = static_cast<int64_t>(mib << 20)}));
    ASSERT_OK(commit(*engine_, counted));
  }

  Blocks blocks_of(const std::string& name) {
    const auto keyspace = keyspaces_->load(name);
    EXPECT_OK(keyspace);
    return keyspace ? blocks_of(*engine_, keyspace->id) : Blocks();
  }
  static Blocks blocks_of(Engine& engine, KeyspaceId of) {
    Blocks all;
    for (std::optional<BlockId> from = blocks_begin(of); from;) {
      const auto page = engine.blocks().list(*from, blocks_end(of), 100);
      EXPECT_OK(page);
      if (!page) break;
      for (const StoredBlock& stored : page->blocks) {
        Value value;
        EXPECT_OK(engine.blocks().read({&stored.block, 1}, {&value, 1}));
        EXPECT_TRUE(value.found());
        all[{stored.block.data.value, stored.block.index}] = value.bytes();
      }
      from = page->resume;
    }
    return all;
  }

  // The counter of files says more than there are records: it is for the units only.
  void open_with_units() {
    unit_bytes_ = 2 << 20;
    open();
  }

  Random random_{test_seed(61)};
};

TEST_F(BackupBlocksTest, WhatIsRestoredIsWhatWasThereAndNothingIsAddedTwice) {
  open_with_units();
  const KeyspaceId a = make("a");
  const KeyspaceId b = make("b");
  fill("a", random_, 100);
  fill_blocks(a, 12);
  fill_blocks(b, 3);
  const Blocks at_first = blocks_of("a");
  const Entries entries = entries_of("a");
  const JobStatus first = create("a");
  ASSERT_EQ(first.state, JobState::done) << first.error->message;
  EXPECT_GT(first.added_bytes, 6u << 20);
  EXPECT_EQ(create("a").added_bytes, 0u);
  const auto manifest = Repository::open(repository())->get_manifest(first.backup);
  ASSERT_OK(manifest);
  EXPECT_GT(manifest->block_bounds.size(), 2u);
  EXPECT_GE(manifest->entries(), entries.size() + at_first.size());

  // A few blocks later a few chunks are added, though the last block is another.
  for (uint64_t i = 0; i < 4; i++) write_block(a, 1'000, 4 * i, random_.bytes(block_bytes_max));
  write_block(a, 1'000'000, 7, "new");
  ASSERT_OK(engine_->blocks().remove(a, DataId{1'000}, 100, 120));
  clock_.advance_ms(10);
  const JobStatus second = create("");
  ASSERT_EQ(second.state, JobState::done) << second.error->message;
  clock_.advance_ms(10);
  const JobStatus third = create("a");
  EXPECT_LT(third.added_bytes, first.added_bytes / 3);
  const Blocks later = blocks_of("a");

  ASSERT_EQ(restore("at-first", first.backup).state, JobState::done);
  ASSERT_EQ(restore("later", second.backup, "a").state, JobState::done);
  ASSERT_EQ(restore("also-later", third.backup).state, JobState::done);
  EXPECT_TRUE(blocks_of("at-first") == at_first);
  EXPECT_TRUE(entries_of("at-first") == entries);
  EXPECT_TRUE(blocks_of("later") == later);
  EXPECT_TRUE(blocks_of("also-later") == later);
  ASSERT_EQ(restore("b-again", second.backup, "b").state, JobState::done);
  EXPECT_TRUE(blocks_of("b-again") == blocks_of("b"));
  EXPECT_EQ(wait(backups_->verify({.repository = repository()})).state, JobState::done);
  const auto ids = Repository::open(repository())->ids();
  for (const std::string& id : *ids) ASSERT_OK(backups_->remove(repository(), id));
  EXPECT_EQ(files_in(repository() / "chunks"), 0u);
}

// Every entry names a block that was written before it, as the map's records of files do.
TEST_F(BackupBlocksTest, UnderLoadNoRecordIsWithoutItsBlock) {
  const KeyspaceId a = make("a");
  std::atomic<bool> enough{false};
  std::atomic<uint64_t> written{0};
  std::atomic<uint64_t> welcome{2'000};  // so that a slow backup has no end of work
  std::vector<std::thread> writers;
  for (uint64_t thread = 1; thread <= 2; thread++) {
    writers.emplace_back([&, thread] {
      for (uint64_t i = 0; !enough; i++, written++) {
        while (written >= welcome && !enough) std::this_thread::yield();
        const Bytes content = fmt::format("{}/{}", thread, i) + Bytes(i % 5'000, 'c');
        write_block(a, thread, i, content);
        put("a", fmt::format("{}/{}", thread, i), content);
      }
    });
  }
  std::vector<std::string> backups;
  for (uint64_t round = 1; round <= 4 && !HasFailure(); round++) {
    while (written < round * 300) std::this_thread::yield();
    welcome += 1'000;
    clock_.advance_ms(10);
    const JobStatus job = create(round == 2 ? "" : "a");
    EXPECT_EQ(job.state, JobState::done);
    backups.push_back(job.backup);
  }
  enough = true;
  for (std::thread& writer : writers) writer.join();
  size_t records_before = 0;
  for (const std::string& backup : backups) {
    ASSERT_EQ(restore("of-" + backup, backup, "a").state, JobState::done);
    const Blocks blocks = blocks_of("of-" + backup);
    size_t records = 0;
    for (const auto& [key, value] : entries_of("of-" + backup)) {
      if (key[0] != 'r') continue;
      const size_t slash = key.find('/');
      const auto block =
          blocks.find({std::stoull(key.substr(1, slash - 1)), std::stoull(key.substr(slash + 1))});
      ASSERT_NE(block, blocks.end()) << key;
      EXPECT_NE(value.find(block->second), Bytes::npos) << key;
      records++;
    }
    EXPECT_GT(records, records_before);
    EXPECT_LE(records, blocks.size());
    EXPECT_LE(blocks.size(), records + 2) << "blocks of a later instant";
    records_before = records;
  }
}

TEST_F(BackupBlocksTest, InterruptedAtAnyStepBothGoOn) {
  open_with_units();
  const KeyspaceId a = make("a");
  fill("a", random_, 20);
  fill_blocks(a, 5);
  const Blocks blocks = blocks_of("a");
  const Entries entries = entries_of("a");
  bool is_over = false;
  for (int crash_at = 0; !is_over; crash_at++) {
    std::filesystem::remove_all(repository());
    std::atomic<int> steps{0};
    const auto crash = [&](std::string_view point) -> Status {
      if (steps++ < crash_at) return {};
      return Error{Code::unavailable, "crashed at: " + std::string(point), job_stopped};
    };
    open(crash);
    const JobStatus backup = create("a");
    write_block(a, 1, uint64_t{1} << 40, "later");
    open();
    wait_for_all();
    EXPECT_EQ(work_left(), 0u);
    ASSERT_OK(engine_->blocks().remove(a, DataId{1}, uint64_t{1} << 40, (uint64_t{1} << 40) + 1));
    steps = 0;
    open(crash);
    const std::string name = "restored-" + std::to_string(crash_at);
    const JobStatus restored = restore(name, backup.backup);
    is_over = backup.state == JobState::done && restored.state == JobState::done;
    open();
    wait_for_all();
    EXPECT_EQ(work_left(), 0u);
    EXPECT_TRUE(blocks_of(name) == blocks) << crash_at;
    EXPECT_TRUE(entries_of(name) == entries) << crash_at;
    EXPECT_TRUE(!is_over || crash_at > 8);
  }
}

TEST_F(BackupBlocksTest, DamageIsFoundBeforeAnythingIsWritten) {
  const KeyspaceId a = make("a");
  fill_blocks(a, 2);
  const JobStatus made = create("a");
  ASSERT_EQ(made.state, JobState::done);
  const auto manifest = Repository::open(repository())->get_manifest(made.backup);
  ASSERT_OK(manifest);
  const ChunkFacts chunk = manifest->chunks.back();
  ASSERT_TRUE(chunk.of_blocks);
  const std::string digest = to_hex(chunk.digest);
  const std::filesystem::path file = repository() / "chunks" / digest.substr(0, 2) / digest;
  std::stringstream whole;
  whole << std::ifstream(file).rdbuf();
  Bytes bytes = whole.str();
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  std::ofstream(file, std::ios::trunc) << bytes;
  const JobStatus refused = restore("b");
  EXPECT_EQ(refused.state, JobState::failed);
  EXPECT_EQ(refused.error->reason, "backup_damaged");
  EXPECT_CODE(keyspaces_->load("b"), Code::not_found);
  EXPECT_EQ(wait(backups_->verify({.repository = repository()})).damage.size(), 1u);
  std::ofstream(file, std::ios::trunc) << whole.str();
  EXPECT_EQ(restore("b").state, JobState::done);
}

// With every checksum right.
TEST_F(BackupBlocksTest, WhatIsNoBlockIsRefused) {
  Keyspace shop;
  shop.id = KeyspaceId{7};
  shop.name = "shop";
  const Bytes good = encode(FsBlockKey{shop.id, DataId{1}, 0});
  int number = 0;
  const auto restore_of = [&](const Bytes& key, const Bytes& value) {
    std::filesystem::remove_all(repository());
    Repository made = std::move(*Repository::open_or_make(repository()));
    ChunkCutter cutter;
    cutter.add(key, value);
    EntryChunk chunk = cutter.take();
    chunk.facts.of_blocks = true;
    EXPECT_OK(made.put_chunk(chunk));
    EXPECT_OK(made.put_manifest(
        {.id = "crafted", .store = Bytes(16, 's'), .keyspaces = {shop}, .chunks = {chunk.facts}}));
    return restore("crafted-" + std::to_string(number++));
  };
  EXPECT_EQ(restore_of(good, "v").state, JobState::done);
  EXPECT_EQ(blocks_of("crafted-0"), (Blocks{{{1, 0}, "v"}}));
  EXPECT_EQ(restore_of(good + "x", "v").state, JobState::failed);
  EXPECT_EQ(restore_of(encode(RawKey{shop.id, "key"}), "v").state, JobState::failed);
  EXPECT_EQ(restore_of(good, Bytes(block_bytes_max + 1, 'v')).state, JobState::failed);
}

TEST_F(BackupBlocksTest, AStreamHasThemToo) {
  const KeyspaceId a = make("a");
  fill("a", random_, 50);
  fill_blocks(a, 5);
  for (const bool whole : {false, true}) {
    auto source = backups_->open_source(whole ? "" : "a");
    ASSERT_OK(source);
    const auto spool = backups_->make_spool();
    ASSERT_OK(spool);
    BackupStreamReader reader(std::move(*Repository::open_or_make(*spool)));
    BackupStreamWriter writer(std::move(*source), 0);
    for (;;) {
      const auto piece = writer.next();
      ASSERT_OK(piece);
      if (!*piece) break;
      ASSERT_OK(reader.write(**piece));
    }
    const auto id = reader.finish();
    ASSERT_OK(id);
    const std::string name = whole ? "of-all" : "of-a";
    const JobStatus job = wait(backups_->restore(
        {.repository = *spool, .backup = *id, .keyspace = "a", .name = name, .is_spool = true},
        admin));
    ASSERT_EQ(job.state, JobState::done) << job.error->message;
    EXPECT_TRUE(blocks_of(name) == blocks_of("a"));
  }
}

TEST_F(BackupBlocksTest, AWholeStoreIsRestoredWithThem) {
  const KeyspaceId a = make("a");
  const KeyspaceId b = make("b");
  fill_blocks(a, 2);
  fill_blocks(b, 2);
  ASSERT_EQ(create("").state, JobState::done);
  const auto id = Repository::open(repository())->ids()->front();
  auto engine = open_engine(folder_.path() / "restored", clock_);
  ASSERT_OK(engine);
  JobControl control;
  ASSERT_OK(restore_store({.repository = repository(), .backup = id, .whole = true, .threads = 2},
                          **engine, control));
  EXPECT_TRUE(blocks_of(**engine, a) == blocks_of("a"));
  EXPECT_TRUE(blocks_of(**engine, b) == blocks_of("b"));
}

// What old builds wrote; see their READMEs.
TEST_F(BackupBlocksTest, EachFormatCanBeRestored) {
  for (const std::string format : {"format1", "format2"}) {
    SCOPED_TRACE(format);
    std::filesystem::remove_all(repository());
    std::filesystem::copy(std::filesystem::path(TRELLIS_SOURCE_DIR) / "tests" / "backup" / format,
                          repository(), std::filesystem::copy_options::recursive);
    EXPECT_EQ(wait(backups_->verify({.repository = repository()})).state, JobState::done);
    ASSERT_EQ(restore(format, "", "golden").state, JobState::done);
    const auto value = raw_.get(**keyspaces_->tenant(format), admin, "raw");
    ASSERT_OK(value);
    ASSERT_TRUE(value->has_value());
    EXPECT_EQ((*value)->value(), "bytes");
    Blocks blocks;
    if (format == "format2") blocks = {{{1, 0}, "first"}, {{1, 7}, Bytes(block_bytes_max, 'z')}};
    EXPECT_TRUE(blocks_of(format) == blocks);
  }
}

TEST_F(BackupBlocksTest, ARestoreThatIsGivenUpLeavesNone) {
  const KeyspaceId a = make("a");
  fill_blocks(a, 10);
  ASSERT_EQ(create("a").state, JobState::done);
  std::atomic<int> chunks{0};
  open([&](std::string_view point) -> Status {
    if (point != "chunk restored" || chunks++ < 4) return {};
    return Error{Code::unavailable, "no disk"};
  });
  const JobStatus failed = restore("b");
  ASSERT_EQ(failed.state, JobState::failed);
  const auto half = keyspaces_->load("b");
  ASSERT_OK(half);
  EXPECT_FALSE(blocks_of(*engine_, half->id).empty());
  ASSERT_OK(backups_->cancel(failed.id));
  for (int steps = 0; keyspaces_->load(half->id)->purged_at_s == 0; steps++) {
    ASSERT_LT(steps, 100);
    ASSERT_OK(collector_->step());
  }
  EXPECT_TRUE(blocks_of(*engine_, half->id).empty());
  EXPECT_FALSE(blocks_of("a").empty());
}

// Files that change all the time: whatever the instant of the backup is, what is restored is whole.
TEST_F(BackupBlocksTest, AFileSystemIsRestoredWholeAndBuriedToTheLastByte) {
  make("a");
  std::atomic<bool> enough{false};
  std::atomic<uint64_t> written{0};
  std::thread writer([&] {
    const auto fs = FileSystem::open(*keyspaces_->tenant("a"));
    ASSERT_OK(fs);
    for (uint64_t i = 0; !enough; i++, written++) {
      const Bytes name = "file" + std::to_string(i % 7);
      const auto file =
          i < 7 ? (*fs)->make(admin, root_inode, name, {}) : (*fs)->lookup(admin, root_inode, name);
      ASSERT_OK(file);
      const Bytes content(100'000 + 50'000 * (i % 5), static_cast<char>('a' + i % 26));
      ASSERT_OK((*fs)->write(admin, file->inode, 30'000 * (i % 11), content));
    }
  });
  for (uint64_t round = 1; round <= 3 && !HasFailure(); round++) {
    const std::string name = "restored-" + std::to_string(round);
    while (written < round * 30 && !HasFailure()) std::this_thread::yield();
    clock_.advance_ms(10);
    const JobStatus backup = create("a");
    EXPECT_EQ(backup.state, JobState::done);
    EXPECT_EQ(restore(name, backup.backup).state, JobState::done);
    const auto fs = FileSystem::open(*keyspaces_->tenant(name));
    EXPECT_OK(fs);
    if (!fs) break;
    JobControl control;
    const auto report = fsck(**fs, admin, {}, control, [](const FsckFinding&) {});
    EXPECT_OK(report);
    EXPECT_TRUE(report && report->clean());
    EXPECT_GT(report->blocks, 7u);
  }
  enough = true;
  writer.join();
  const KeyspaceId gone = keyspaces_->load("restored-3")->id;
  for (const auto state :
       {KeyspaceState::disabled, KeyspaceState::archived, KeyspaceState::tombstone})
    ASSERT_OK(keyspaces_->set_state("restored-3", state, admin));
  for (int steps = 0; keyspaces_->load(gone)->purged_at_s == 0; steps++) {
    ASSERT_LT(steps, 100);
    ASSERT_OK(collector_->step());
  }
  const auto progress = load_purge(*engine_, gone);
  ASSERT_OK(progress);
  EXPECT_GT((*progress)->bytes_total, 7u * block_bytes_max);
  EXPECT_EQ((*progress)->bytes_done, (*progress)->bytes_total);
  EXPECT_TRUE(blocks_of(*engine_, gone).empty());
}

// A file that was made since the backup, and one that is made since the restore.
TEST_F(BackupBlocksTest, WhatIsMadeAfterARestoreIsNotTakenForWhatWasThere) {
  make("a");
  const auto fs = FileSystem::open(*keyspaces_->tenant("a"));
  ASSERT_OK(fs);
  const auto before = (*fs)->make(admin, root_inode, "before", {.content = "1"});
  ASSERT_OK(before);
  const JobStatus backup = create("a");
  std::set<std::pair<InodeId, uint32_t>> made{{before->inode, before->generation}};
  std::set<std::string> etags;
  for (const std::string name : {"a", "restored", "restored-again"}) {
    clock_.advance_ms(1'000);
    if (name != "a") {
      ASSERT_EQ(restore(name, backup.backup).state, JobState::done);
    }
    const auto now = FileSystem::open(*keyspaces_->tenant(name));
    ASSERT_OK(now);
    for (const char* const file : {"x", "y"}) {
      const auto added = (*now)->make(admin, root_inode, file, {.content = file});
      ASSERT_OK(added);
      EXPECT_TRUE(made.insert({added->inode, added->generation}).second) << name;
    }
    EXPECT_EQ((*now)->stat(admin, before->inode)->generation, before->generation);
    ASSERT_OK((*now)->write(admin, before->inode, 0, name));
    Files files(*now);
    const auto found = files.stat(admin, "before");
    ASSERT_OK(found);
    EXPECT_TRUE(etags.insert(found->etag()).second) << name;
  }
}

// Large enough that whole tables of it go, and what lies beside its neighbours.
TEST_F(BackupBlocksTest, ABurialGivesTheDiskItsBytesBack) {
  const KeyspaceId before = make("before");
  const KeyspaceId shop = make("shop");
  const KeyspaceId behind = make("behind");
  fill_blocks(before, 4);
  fill_blocks(shop, 200);
  fill_blocks(behind, 4);
  const Blocks neighbours[] = {blocks_of("before"), blocks_of("behind")};
  auto& rocksdb = dynamic_cast<RocksdbEngine&>(*engine_);
  ASSERT_OK(rocksdb.compact());
  const auto table_bytes = [&] {
    uint64_t bytes = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder_.path() / "store"))
      if (entry.path().extension() == ".sst") bytes += entry.file_size();
    return bytes;
  };
  ASSERT_GT(table_bytes(), 100u << 20);
  for (const auto state :
       {KeyspaceState::disabled, KeyspaceState::archived, KeyspaceState::tombstone})
    ASSERT_OK(keyspaces_->set_state("shop", state, admin));
  for (int steps = 0; keyspaces_->load(shop)->purged_at_s == 0; steps++) {
    ASSERT_LT(steps, 100);
    ASSERT_OK(collector_->step());
  }
  EXPECT_TRUE(blocks_of(*engine_, shop).empty());
  EXPECT_LT(table_bytes(), 20u << 20);
  EXPECT_TRUE(blocks_of("before") == neighbours[0]);
  EXPECT_TRUE(blocks_of("behind") == neighbours[1]);
}

}  // namespace
}  // namespace trellis
