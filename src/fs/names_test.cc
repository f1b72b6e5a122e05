#include "fs/names.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/random.h"
#include "fs/fs_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

class Names : public FsFixture {};
INSTANTIATE_TEST_SUITE_P(Fs, Names, testing::Values(Way::latched, Way::expecting), way_name);

using Listed = std::vector<std::string>;

TEST_P(Names, WhatIsMadeIsFound) {
  const InodeId file = make_file(root_inode, "hello", "content");
  const auto found = fs_->lookup(reader, root_inode, "hello");
  ASSERT_OK(found);
  EXPECT_EQ(found->inode, file);
  EXPECT_EQ(found->size, 7u);
  EXPECT_EQ(found->links, 1u);
  EXPECT_EQ(fs_->lookup(reader, root_inode, "other").error().reason, "no_entry");
  EXPECT_EQ(fs_->make(writer, root_inode, "hello", {}).error().reason, "exists");
  EXPECT_EQ(fs_->lookup(reader, file, "x").error().reason, "not_a_directory");
  EXPECT_EQ(fs_->make(writer, file, "x", {}).error().reason, "not_a_directory");
  check();
}

TEST_P(Names, AreBytes) {
  const std::string any("\xff\x01\n ", 4);
  make_file(root_inode, any);
  make_file(root_inode, std::string(255, 'x'));
  EXPECT_EQ(names(root_inode), (Listed{std::string(255, 'x'), any}));
  EXPECT_EQ(fs_->make(writer, root_inode, std::string(256, 'x'), {}).error().reason,
            "name_too_long");
  for (const std::string& bad : {std::string(), std::string("."), std::string(".."),
                                 std::string("a/b"), std::string("a\0b", 3)})
    EXPECT_EQ(fs_->make(writer, root_inode, bad, {}).error().reason, "illegal_name");
  EXPECT_EQ(fs_->make(reader, root_inode, "r", {}).error().reason, "role_too_weak");
}

TEST_P(Names, DirectoriesCountWhatIsBelow) {
  const InodeId a = make_directory(root_inode, "a");
  const InodeId b = make_directory(a, "b");
  make_file(b, "f", "12345");
  make_file(a, "g", "123");
  const auto below = fs_->tree_figures(reader, a);
  ASSERT_OK(below);
  EXPECT_EQ(below->inodes, 3u);
  EXPECT_EQ(below->length, 8u);
  EXPECT_EQ(stat(a).links, 3u);
  EXPECT_EQ(stat(a).size, 2u);
  EXPECT_EQ(fs_->figures(reader)->used.inodes, 4u);
  check();
}

TEST_P(Names, UnlinkAndRemoveDirectory) {
  const InodeId a = make_directory(root_inode, "a");
  make_file(a, "f", "1");
  EXPECT_EQ(fs_->remove_directory(writer, root_inode, "a").error().reason, "not_empty");
  EXPECT_EQ(fs_->unlink(writer, root_inode, "a").error().reason, "is_a_directory");
  EXPECT_EQ(fs_->remove_directory(writer, a, "f").error().reason, "not_a_directory");
  EXPECT_OK(fs_->unlink(writer, a, "f"));
  EXPECT_EQ(fs_->unlink(writer, a, "f").error().reason, "no_entry");
  EXPECT_OK(fs_->remove_directory(writer, root_inode, "a"));
  EXPECT_EQ(fs_->make(writer, a, "late", {}).error().reason, "stale");
  check();
  EXPECT_EQ(fs_->figures(reader)->used.inodes, 0u);
}

TEST_P(Names, LinksMoveTheirHome) {
  const InodeId a = make_directory(root_inode, "a");
  const InodeId b = make_directory(root_inode, "b");
  const InodeId file = make_file(a, "f", "12345");
  ASSERT_OK(fs_->link(writer, file, b, "g"));
  ASSERT_OK(fs_->link(writer, file, b, "h"));
  EXPECT_EQ(stat(file).links, 3u);
  check();
  EXPECT_OK(fs_->unlink(writer, a, "f"));
  EXPECT_EQ(stat(file).links, 2u);
  EXPECT_EQ(fs_->tree_figures(reader, b)->length, 5u);
  check();
  EXPECT_OK(fs_->unlink(writer, b, "h"));
  check();
  EXPECT_OK(fs_->unlink(writer, b, "g"));
  collect_all();
  EXPECT_FALSE(fs_->stat(reader, file).has_value());
  check();
  EXPECT_EQ(fs_->link(writer, a, b, "dir").error().reason, "not_permitted");
}

TEST_P(Names, Rename) {
  const InodeId a = make_directory(root_inode, "a");
  const InodeId b = make_directory(a, "b");
  make_file(b, "f", "123");
  EXPECT_EQ(fs_->rename(writer, root_inode, "a", b, "x").error().reason, "into_itself");
  EXPECT_EQ(fs_->rename(writer, root_inode, "a", a, "x").error().reason, "into_itself");
  EXPECT_OK(fs_->rename(writer, a, "b", root_inode, "c"));
  check();
  EXPECT_EQ(fs_->tree_figures(reader, a)->inodes, 0u);
  EXPECT_OK(fs_->rename(writer, root_inode, "a", root_inode, "a2"));
  EXPECT_EQ(names(root_inode), (Listed{"a2", "c"}));
  EXPECT_OK(fs_->rename(writer, root_inode, "c", root_inode, "a2"));  // over an empty directory
  check();
  EXPECT_EQ(names(b), Listed{"f"});
  make_file(b, "g", "4");
  EXPECT_EQ(fs_->rename(writer, b, "f", b, "g", RenameMode::no_replace).error().reason, "exists");
  EXPECT_OK(fs_->rename(writer, b, "f", b, "g", RenameMode::exchange));
  EXPECT_EQ(fs_->lookup(reader, b, "f")->size, 1u);
  EXPECT_OK(fs_->rename(writer, b, "f", b, "g"));
  EXPECT_EQ(fs_->lookup(reader, b, "g")->size, 1u);
  EXPECT_EQ(fs_->rename(writer, b, "g", root_inode, "a2").error().reason, "is_a_directory");
  check();
}

TEST_P(Names, TreesAreRemovedAtOnceAndCollected) {
  const InodeId a = make_directory(root_inode, "a");
  const InodeId out = make_directory(root_inode, "out");
  const InodeId b = make_directory(a, "b");
  for (int i = 0; i < 300; i++) make_file(b, "f" + std::to_string(i), "x");
  const InodeId kept = make_file(b, "kept", "123");
  ASSERT_OK(fs_->link(writer, kept, out, "kept"));
  ASSERT_OK(fs_->remove_tree(writer, root_inode, "a"));
  EXPECT_EQ(names(root_inode), Listed{"out"});
  EXPECT_EQ(fs_->make(writer, b, "late", {}).error().reason, "stale");
  collect_all();
  check();
  EXPECT_EQ(stat(kept).links, 1u);
  EXPECT_EQ(fs_->tree_figures(reader, out)->length, 3u);
  EXPECT_FALSE(fs_->stat(reader, b).has_value());
  EXPECT_FALSE(fs_->stat(reader, a).has_value());
}

TEST_P(Names, SeveralNamesInOneTreeAreCollected) {
  const InodeId before = make_directory(root_inode, "before");
  const InodeId tree = make_directory(root_inode, "tree");
  const InodeId behind = make_directory(root_inode, "behind");
  const std::vector<std::pair<InodeId, InodeId>> homes{{make_file(tree, "a", "123"), before},
                                                       {make_file(tree, "b", "4567"), behind}};
  for (const auto& [inode, elsewhere] : homes) {
    ASSERT_OK(fs_->link(writer, inode, tree, "x" + std::to_string(inode.value)));
    ASSERT_OK(fs_->link(writer, inode, tree, "y" + std::to_string(inode.value)));
    ASSERT_OK(fs_->link(writer, inode, elsewhere, "kept"));
  }
  ASSERT_OK(fs_->remove_tree(writer, root_inode, "tree"));
  collect_all();
  check();
  for (const auto& [inode, elsewhere] : homes) EXPECT_EQ(stat(inode).parent, elsewhere);
}

// The collector hands over several notes, and each by itself again if one of them is corrupt.
TEST_P(Names, NoteIsTakenBackOnce) {
  make_directory(root_inode, "first");
  ASSERT_OK(fs_->remove_tree(writer, root_inode, "first"));
  clock_.advance_ms(1);
  const InodeId damaged = make_directory(root_inode, "damaged");
  make_file(damaged, "file");
  ASSERT_OK(fs_->remove_tree(writer, root_inode, "damaged"));
  const Bytes key = encode(FsEntryKey{id_, damaged, "file"});
  const auto damage = [&](CountedView& view) -> Status {
    Value old;
    TRY(view.get(key, old));
    view.put(key, "no entry", old);
    return {};
  };
  ASSERT_OK(tenant_->collect(Model::fs, Scope::in(id_).exclusive(key), damage));
  const std::vector<Garbage> notes = due_notes();
  ASSERT_EQ(notes.size(), 2u);
  const auto first = systems_->collect(*tenant_, notes);
  ASSERT_OK(first);
  EXPECT_EQ(*first, 1u);
  EXPECT_CODE(systems_->collect(*tenant_, std::span(notes).subspan(1)), Code::corrupt);
  const auto counted = stored_figures(memory_, id_);
  const auto recounted = recount(memory_, id_);
  ASSERT_OK(counted);
  ASSERT_OK(recounted);
  EXPECT_EQ(*counted, *recounted);
}

TEST_P(Names, LengthsOfSparseFilesAreCounted) {
  const InodeId tree = make_directory(root_inode, "tree");
  for (const ByteView name : {"a", "b", "c"}) {
    const InodeId file = make_file(tree, name);
    ASSERT_OK(fs_->set_attributes(writer, file, {.size = file_size_max}));
    check();
  }
  EXPECT_OK(fs_->unlink(writer, tree, "c"));
  EXPECT_EQ(fs_->tree_figures(reader, tree)->length, 2 * file_size_max);
  const InodeId other = make_directory(root_inode, "other");
  EXPECT_OK(fs_->rename(writer, root_inode, "tree", other, "tree"));
  EXPECT_EQ(fs_->tree_figures(reader, other)->length, 2 * file_size_max);
  EXPECT_OK(fs_->remove_tree(writer, root_inode, "other"));
  EXPECT_EQ(fs_->figures(reader)->used.length, 0u);
  collect_all();
  check();
}

// Two names of a file go with the tree: only then the third becomes its home, whichever is first.
TEST_P(Names, OfSeveralInARemovedTreeTheOneOutsideStays) {
  for (const char* home : {"f", "h"}) {
    const InodeId tree = make_directory(root_inode, "tree");
    const InodeId out = make_directory(root_inode, "out");
    const InodeId file = make_file(tree, home, "12345");
    ASSERT_OK(fs_->link(writer, file, tree, "g"));
    ASSERT_OK(fs_->link(writer, file, out, "kept"));
    ASSERT_OK(fs_->remove_tree(writer, root_inode, "tree"));
    collect_all();
    EXPECT_EQ(stat(file).links, 1u);
    EXPECT_EQ(fs_->tree_figures(reader, out)->length, 5u);
    check();
    ASSERT_OK(fs_->remove_tree(writer, root_inode, "out"));
    collect_all();
  }
}

TEST_P(Names, QuotasAreExact) {
  const InodeId a = make_directory(root_inode, "a");
  make_file(a, "one");
  ASSERT_OK(fs_->set_quota(writer, a, {.bytes_max = 0, .inodes_max = 3}));
  const InodeId b = make_directory(a, "b");
  make_file(b, "three");
  EXPECT_EQ(fs_->make(writer, b, "four", {}).error().reason, "directory_quota_exceeded");
  EXPECT_EQ(fs_->make(writer, a, "four", {}).error().reason, "directory_quota_exceeded");
  make_file(root_inode, "other");
  EXPECT_EQ(fs_->rename(writer, root_inode, "other", b, "in").error().reason,
            "directory_quota_exceeded");
  EXPECT_OK(fs_->rename(writer, b, "three", a, "three"));  // within it
  EXPECT_OK(fs_->unlink(writer, a, "one"));
  EXPECT_OK(fs_->rename(writer, root_inode, "other", b, "in"));
  check();
  ASSERT_OK(fs_->set_quota(writer, a, {}));
  make_file(b, "more");
  check();
}

TEST_P(Names, ThreadsInOneDirectoryLoseNothing) {
  const InodeId a = make_directory(root_inode, "a");
  std::vector<std::thread> threads;
  constexpr int per_thread = 100;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (int i = 0; i < per_thread; i++) {
        const std::string name = std::to_string(t) + "-" + std::to_string(i);
        EXPECT_OK(fs_->make(writer, a, name, {.content = "x"}));
        if (i % 3 == 0) {
          EXPECT_OK(fs_->unlink(writer, a, name));
        }
        if (i % 10 == 1) {
          EXPECT_OK(fs_->rename(writer, root_inode, "a", root_inode, "a"));
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  collect_all();
  check();
  EXPECT_EQ(names(a).size(), 4u * (per_thread - 34));
}

TEST_P(Names, NoQuotaKeepsANameFromGoing) {
  const InodeId home = make_directory(root_inode, "home");
  const InodeId full = make_directory(root_inode, "full");
  ASSERT_OK(fs_->set_quota(writer, full, {.bytes_max = block_bytes_max, .inodes_max = 1}));
  make_file(full, "own");
  const InodeId file = make_file(home, "f");
  ASSERT_OK(fs_->write(writer, file, 0, Bytes(3 * block_bytes_max, 'x')));
  ASSERT_OK(fs_->link(writer, file, full, "f"));
  EXPECT_EQ(fs_->tree_figures(reader, full)->inodes, 1u) << "it counts at home";
  check();
  // By whatever takes the name at home away.
  make_file(home, "other");
  ASSERT_OK(fs_->rename(writer, home, "other", home, "f"));
  EXPECT_EQ(fs_->tree_figures(reader, full)->inodes, 2u);
  EXPECT_EQ(fs_->tree_figures(reader, full)->space, 3 * block_bytes_max);
  EXPECT_EQ(fs_->tree_figures(reader, home)->space, 0u);
  check();
  // Over its quota it takes nothing more, and gives everything back.
  EXPECT_EQ(fs_->make(writer, full, "more", {}).error().reason, "directory_quota_exceeded");
  EXPECT_EQ(fs_->write(writer, file, 3 * block_bytes_max, "x").error().reason,
            "directory_quota_exceeded");
  EXPECT_OK(fs_->write(writer, file, 0, "in place"));
  ASSERT_OK(fs_->set_attributes(writer, file, {.size = 0}));
  ASSERT_OK(fs_->unlink(writer, full, "own"));
  EXPECT_OK(fs_->write(writer, file, 0, Bytes(5'000, 'x')));
  ASSERT_OK(fs_->unlink(writer, full, "f"));
  EXPECT_EQ(fs_->tree_figures(reader, full)->inodes, 0u);
  check();
}

}  // namespace
}  // namespace trellis
