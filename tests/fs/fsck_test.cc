#include "fs/fsck.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "fs/corrupter.h"
#include "fs/fs_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr uint64_t block = block_bytes_max;

class Fsck : public FsFixture {
 protected:
  // Another file system, empty.
  void use_new_files() {
    fs_.reset();
    systems_.reset();
    tenant_.reset();
    const auto made = FsFixture::make("files" + std::to_string(++file_systems_));
    ASSERT_OK(made);
    id_ = made->id;
    open_files();
  }

  FsckReport run(FsckOptions options = {}) {
    findings_.clear();
    JobControl control(clock_);
    const auto report = fsck(*fs_, writer, options, control,
                             [&](const FsckFinding& finding) { findings_.push_back(finding); });
    EXPECT_OK(report);
    return report ? *report : FsckReport();
  }
  std::string told() const {
    std::string text;
    for (const FsckFinding& finding : findings_)
      text += fmt::format("{} inode {} in {} {}: {}{}\n", to_string(finding.kind),
                          finding.inode.value, finding.directory.value, quote(finding.name),
                          finding.what, finding.repaired ? " (repaired)" : "");
    return text;
  }
  void expect_nothing(FsckOptions options = {.offline = true}) {
    run(options);
    EXPECT_TRUE(findings_.empty()) << told();
  }

  InodeId make_mapped(InodeId directory, ByteView name, Random& random, uint64_t blocks) {
    const InodeId file = make_file(directory, name);
    for (uint64_t i = 0; i < blocks; i++)
      EXPECT_OK(fs_->write(writer, file, i * block, random.bytes(1 + random.below(block))));
    return file;
  }
  // Something of everything that can be damaged.
  void grow_tree(Random& random) {
    std::vector<InodeId> directories{root_inode};
    for (int i = 0; i < 8; i++)
      directories.push_back(
          make_directory(directories[random.below(directories.size())], "dir" + std::to_string(i)));
    const InodeId inner = make_directory(directories[1], "inner");
    make_file(inner, "innermost", "1");
    const auto any = [&] { return directories[random.below(directories.size())]; };
    for (int i = 0; i < 20; i++) make_file(any(), "small" + std::to_string(i), random.bytes(5 + i));
    for (int i = 0; i < 4; i++) make_mapped(any(), "large" + std::to_string(i), random, 2 + i);
    const InodeId linked = make_file(directories[1], "linked", "has names");
    EXPECT_OK(fs_->link(writer, linked, directories[2], "further"));
    EXPECT_OK(fs_->link(writer, linked, directories[1], "again"));
    EXPECT_OK(fs_->make(writer, any(), "symlink", {.type = FileType::symlink, .target = "to"}));
    EXPECT_OK(fs_->make(writer, any(), "fifo", {.type = FileType::fifo}));
    const InodeId attributed = make_file(any(), "attributed", "content");
    EXPECT_OK(fs_->set_xattr(writer, attributed, "user.one", random.bytes(10)));
    EXPECT_OK(fs_->set_xattr(writer, attributed, "user.two", random.bytes(1'000)));
    EXPECT_OK(fs_->set_quota(writer, directories[3], {.bytes_max = 1 << 30, .inodes_max = 1'000}));
    share_some(random);
    remove_some(random);
  }
  void share_some(Random& random) {
    const InodeId source = make_mapped(root_inode, "source", random, 3);
    const InodeId copy = make_file(root_inode, "copy");
    EXPECT_OK(fs_->copy_range(writer, source, 0, copy, 0, 0));
    EXPECT_OK(fs_->write(writer, source, 10, "changed"));
  }
  // What waits to be collected, or to be closed.
  void remove_some(Random& random) {
    const auto session = fs_->begin_session(writer, "test");
    ASSERT_OK(session);
    const InodeId held = make_mapped(root_inode, "held", random, 2);
    EXPECT_OK(fs_->open_file(writer, *session, held));
    EXPECT_OK(fs_->unlink(writer, root_inode, "held"));
    make_mapped(root_inode, "unlinked", random, 2);
    EXPECT_OK(fs_->unlink(writer, root_inode, "unlinked"));
    const InodeId tree = make_directory(root_inode, "tree");
    make_file(make_directory(tree, "below"), "file", "x");
    make_mapped(tree, "large", random, 2);
    EXPECT_OK(fs_->remove_tree(writer, root_inode, "tree"));
    make_file(root_inode, "trashed", "content");
    EXPECT_OK(fs_->move_to_trash(writer, root_inode, "trashed"));
    const InodeId shorter = make_mapped(root_inode, "shorter", random, 3);
    EXPECT_OK(fs_->set_attributes(writer, shorter, {.size = 100}));
  }

  void damage_and_repair(const Damage& damage, uint64_t seed) {
    if (damage.latched_only && GetParam() != Way::latched) return;
    SCOPED_TRACE(damage.name + ", seed " + std::to_string(seed));
    Random random(seed);
    use_new_files();
    grow_tree(random);
    expect_nothing();
    Corrupter corrupter(*fs_, random);
    damage.make(corrupter);
    const FsckReport found = run({.offline = true});
    EXPECT_GT(found.count(damage.kind), 0u) << told();
    for (const FsckFinding& finding : findings_)
      EXPECT_TRUE(finding.kind == damage.kind || damage.follows.contains(finding.kind)) << told();
    const FsckReport repaired = run({.repair = true, .offline = true});
    EXPECT_GT(repaired.count(damage.kind), 0u);
    EXPECT_EQ(repaired.found, repaired.repaired) << told();
    const std::string repairs = told();
    expect_nothing();
    check();
    collect_all();
    expect_nothing();
    check();
    EXPECT_FALSE(HasFailure()) << "repaired was: " << repairs;
  }

  std::vector<FsckFinding> findings_;
  int file_systems_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Fs, Fsck, testing::Values(Way::latched, Way::expecting), way_name);

TEST_P(Fsck, FindsNothingWhereNothingIsWrong) {
  Random random(test_seed(1));
  expect_nothing();
  grow_tree(random);
  const FsckReport report = run({.offline = true, .window = 7});
  EXPECT_TRUE(findings_.empty()) << told();
  EXPECT_GT(report.inodes, 30u);
  EXPECT_GT(report.directories, 9u);
  EXPECT_GT(report.blocks, 10u);
  collect_all();
  expect_nothing();
  open_files_anew();
  expect_nothing();
  expect_nothing({.repair = true});
}

TEST_P(Fsck, FindsAndRepairsWhatTheNamesTell) {
  const uint64_t seed = test_seed(2);
  for (const Damage& damage : all_damages())
    if (!HasFailure()) damage_and_repair(damage, seed);
}

TEST_P(Fsck, FindsAndRepairsWhereverItIs) {
  const uint64_t seed = test_seed(3);
  Random random(seed);
  const auto& damages = all_damages();
  for (uint64_t i = 0; i < test_rounds(30) && !HasFailure(); i++)
    damage_and_repair(damages[random.below(damages.size())], seed + 1'000 * i);
}

TEST_P(Fsck, WhatHasNoNameIsFoundAgain) {
  const InodeId directory = make_directory(root_inode, "directory");
  const InodeId file = make_file(directory, "file", "content");
  for (const ByteView name : {"directory"}) {
    Random random(1);
    Corrupter(*fs_, random).remove(encode(FsEntryKey{id_, root_inode, name}));
  }
  run({.repair = true});
  const auto lost = fs_->lookup(reader, root_inode, "lost+found");
  ASSERT_OK(lost);
  EXPECT_EQ(names(lost->inode),
            std::vector<std::string>{"inode-" + std::to_string(directory.value)});
  EXPECT_EQ(fs_->lookup(reader, directory, "file")->inode, file);
  expect_nothing();
  check();
  EXPECT_OK(fs_->rename(writer, lost->inode, "inode-" + std::to_string(directory.value), root_inode,
                        "directory"));
  check();
}

// It is not taken for a keyspace without files.
TEST_P(Fsck, ALostSuperblockKeepsNewFilesOutUntilItIsRepaired) {
  make_file(root_inode, "file", "content");
  Random random(1);
  Corrupter(*fs_, random).remove(encode(FsSuperblockKey{id_}));
  open_files_anew();
  EXPECT_EQ(fs_->make(writer, root_inode, "new", {}).error().reason, "fs_corrupt");
  EXPECT_EQ(names(root_inode), std::vector<std::string>{"file"});
  run({.repair = true});
  make_file(root_inode, "new", "content");
  EXPECT_EQ(names(root_inode), (std::vector<std::string>{"file", "new"}));
  expect_nothing();
  check();
}

TEST_P(Fsck, TellsWhichBytesAreLost) {
  Random random(test_seed(4));
  const InodeId file = make_mapped(root_inode, "file", random, 4);
  EXPECT_OK(memory_.blocks().remove(id_, DataId{file.value}, 0, UINT64_MAX));
  run({.repair = true, .offline = true});
  ASSERT_FALSE(findings_.empty());
  EXPECT_EQ(findings_[0].kind, FsckKind::block_missing);
  EXPECT_EQ(findings_[0].inode, file);
  EXPECT_TRUE(findings_[0].what.starts_with("bytes 0 to ")) << findings_[0].what;
  expect_nothing();
  std::string content(10, 'x');
  EXPECT_OK(fs_->read(reader, file, 0, content));
  EXPECT_EQ(content, std::string(10, '\0'));
  EXPECT_EQ(stat(file).space, 0u);
  check();
}

TEST_P(Fsck, IsCanceled) {
  JobControl control(clock_);
  control.cancel();
  const auto report = fsck(*fs_, writer, {}, control, [](const FsckFinding&) {});
  EXPECT_EQ(report.error().reason, job_canceled);
  JobControl other(clock_);
  EXPECT_EQ(fsck(*fs_, reader, {.repair = true}, other, [](const FsckFinding&) {}).error().reason,
            "role_too_weak");
}

// What others do at the same time is no damage.
TEST_P(Fsck, FindsNothingWhileFilesChange) {
  const uint64_t seed = test_seed(5);
  Random random(seed);
  grow_tree(random);
  // So many for each run: each leaves a note behind, and who makes notes faster than they are
  // looked at would make every run longer than the last one.
  constexpr uint64_t operations_of_run = 1'000;
  std::atomic<bool> enough = false;
  std::atomic<uint64_t> operations = 0;
  std::atomic<uint64_t> allowed = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      Random own(seed + t);
      const std::string prefix = "t" + std::to_string(t) + "-";
      const auto name = [&] { return prefix + std::to_string(own.below(5)); };
      for (; !enough; operations++) {
        for (uint64_t limit = allowed; operations >= limit; limit = allowed) allowed.wait(limit);
        const auto there = fs_->lookup(reader, root_inode, name());
        const InodeId at = there && own.one_in(2) ? there->inode : root_inode;
        switch (own.below(7)) {
          case 0: discard(fs_->make(writer, at, name(), {.type = FileType::directory})); break;
          case 1: discard(fs_->make(writer, at, name(), {.content = "content"})); break;
          case 2: discard(fs_->rename(writer, root_inode, name(), at, name())); break;
          case 3: discard(fs_->write(writer, at, own.below(100'000), own.bytes(5'000))); break;
          case 4: discard(fs_->unlink(writer, root_inode, name())); break;
          case 5: discard(fs_->remove_tree(writer, root_inode, name())); break;
          case 6: discard(fs_->link(writer, at, root_inode, name())); break;
        }
      }
    });
  // An object store in memory takes its time.
  const bool is_slow = GetParam() == Way::expecting && memory_.shared();
  const uint64_t runs = is_slow ? 2 : 10;
  const uint64_t operations_min = is_slow ? 20 : test_rounds(2'000);
  for (uint64_t i = 0; findings_.empty() && (i < runs || operations < operations_min); i++) {
    allowed = operations + operations_of_run;
    allowed.notify_all();
    run({.repair = i % 2 == 1});
    // Who only expects may lose to the writers until it gives up, and says so.
    if (GetParam() == Way::expecting)
      std::erase_if(findings_, [](const FsckFinding& finding) {
        return finding.kind == FsckKind::not_confirmed;
      });
    EXPECT_TRUE(findings_.empty()) << told();
    clock_.advance_ms(1);
  }
  enough = true;
  allowed = UINT64_MAX;
  allowed.notify_all();
  for (std::thread& thread : threads) thread.join();
  expect_nothing({.offline = GetParam() == Way::latched});
  collect_all();
  check();
}

TEST_P(Fsck, IdsOfAWrongCounterAreNotGivenOutAfterItsRepair) {
  for (const ByteView name : {"a", "b", "c"}) make_file(root_inode, name, name);
  open_files_anew();  // takes further ids
  make_file(root_inode, "d", "d");
  const Bytes key = encode(FsSuperblockKey{id_});
  const auto set_back = [&](CountedView& view) -> Status {
    Value stored;
    TRY(view.get(key, stored));
    TRY_ASSIGN(FsSuperblock superblock, decode<FsSuperblock>(stored.bytes()));
    superblock.ids = first_free_id;
    view.put(key, encode(superblock), stored);
    return {};
  };
  ASSERT_OK(tenant_->collect(Model::fs, Scope::in(id_).exclusive(key), set_back));
  open_files_anew();
  const auto session = fs_->begin_session(writer, "takes ids");
  ASSERT_OK(session);
  EXPECT_EQ(run({.repair = true}).count(FsckKind::id_over_counter), 1u);
  make_file(root_inode, "new", "new");
  for (const ByteView name : {"a", "b", "c", "d", "new"}) {
    const auto found = fs_->lookup(reader, root_inode, name);
    ASSERT_OK(found);
    Bytes content(name.size(), '\0');
    ASSERT_OK(fs_->read(reader, found->inode, 0, content));
    EXPECT_EQ(content, name);
  }
  EXPECT_OK(fs_->end_session(writer, *session));
}

}  // namespace
}  // namespace trellis
