#include "fs/trash.h"

#include <gtest/gtest.h>

#include <thread>

#include "fs/fs_fixture.h"

namespace trellis {
namespace {

TEST(TrashNames, HoursAreDates) {
  EXPECT_EQ(trash_hour_name(0), "1970010100");
  EXPECT_EQ(trash_hour_name(1'700'000'000'000 / trash_hour_ms), "2023111422");
  EXPECT_EQ(trash_hour_name(1'709'251'200'000 / trash_hour_ms - 1), "2024022923") << "a leap day";
  for (const char* wrong : {"", "2023111424", "2023023000", "20231114", "2023-11-14", "1969123123",
                            "20231114220", "+023111422"})
    EXPECT_EQ(parse_trash_hour(wrong), std::nullopt) << wrong;
  for (uint64_t hour = 0; hour < 2'000'000; hour += 997)
    ASSERT_EQ(parse_trash_hour(trash_hour_name(hour)), hour);
}

TEST(TrashNames, NameWhereThingsWere) {
  EXPECT_EQ(trash_name({InodeId{1}, InodeId{20}, "a-b"}), "1-20-a-b");
  const auto parsed = parse_trash_name("1-20-a-b");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->parent, InodeId{1});
  EXPECT_EQ(parsed->inode, InodeId{20});
  EXPECT_EQ(parsed->name, "a-b");
  const Bytes longest = trash_name({InodeId{UINT64_MAX}, InodeId{UINT64_MAX}, Bytes(255, 'n')});
  EXPECT_EQ(longest.size(), 255u);
  EXPECT_EQ(parse_trash_name(longest)->name, Bytes(213, 'n'));
  for (const char* wrong :
       {"", "1", "1-", "1-2", "1-2-", "a-2-n", "1-b-n", "-1-2-n", "99999999999999999999-1-n"})
    EXPECT_FALSE(parse_trash_name(wrong).has_value()) << wrong;
}

class TrashTest : public FsFixture {
 protected:
  struct Item {
    std::string item;
    InodeId parent;
    std::string name;
    InodeId inode;
  };
  std::vector<Item> trash(size_t page_max = 2) {
    std::vector<Item> items;
    std::optional<Bytes> after = Bytes();
    while (after) {
      size_t visited = 0;
      auto page =
          fs_->list_trash(reader, *after, page_max, [&](const FileSystem::TrashEntry& entry) {
            visited++;
            items.push_back({Bytes(entry.hour) + "/" + Bytes(entry.stored_name), entry.parent,
                             std::string(entry.name), entry.entry.inode});
            return Visit::go_on;
          });
      EXPECT_OK(page);
      if (!page) break;
      EXPECT_EQ(page->entries, visited);
      EXPECT_LE(visited, page_max);
      after = std::move(page->resume);
    }
    return items;
  }
  bool exists(InodeId inode) {
    const auto seen = see_inode(memory_, id_, inode);
    EXPECT_OK(seen);
    return seen && seen->has_value();
  }
};

TEST_P(TrashTest, WhatIsRemovedCanBeRestored) {
  const InodeId directory = make_directory(root_inode, "d");
  const InodeId file = make_file(directory, "f", "content");
  const InodeId tree = make_directory(directory, "tree");
  const InodeId below = make_file(tree, "below", "more");
  ASSERT_OK(fs_->move_to_trash(writer, directory, "f"));
  ASSERT_OK(fs_->move_to_trash(writer, directory, "tree"));
  EXPECT_TRUE(names(directory).empty());
  EXPECT_EQ(fs_->tree_figures(reader, root_inode)->inodes, 1u);
  EXPECT_EQ(fs_->figures(reader)->trash.length, 11u);
  check();
  const auto items = trash();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].item.substr(0, 11), "2023111422/");
  EXPECT_EQ(items[0].name, "f");
  EXPECT_EQ(items[0].parent, directory);
  EXPECT_EQ(items[0].inode, file);
  EXPECT_EQ(items[1].name, "tree");

  const auto restored = fs_->restore(writer, items[0].item);
  ASSERT_OK(restored);
  EXPECT_EQ(restored->inode, file);
  EXPECT_EQ(restored->parent, directory);
  make_file(directory, "tree");
  EXPECT_EQ(fs_->restore(writer, items[1].item).error().reason, "exists");
  const auto elsewhere =
      fs_->restore(writer, items[1].item, FileSystem::RestoreTo{root_inode, "saved"});
  ASSERT_OK(elsewhere);
  EXPECT_EQ(elsewhere->inode, tree);
  EXPECT_EQ(fs_->lookup(reader, tree, "below")->inode, below);
  EXPECT_TRUE(trash().empty());
  EXPECT_EQ(fs_->restore(writer, items[1].item).error().reason, "no_entry");
  for (const char* wrong : {"", "x", "2023111422", "2023111422/", "2023111422/a/b", "/x"})
    EXPECT_FALSE(fs_->restore(writer, wrong).has_value()) << wrong;
  EXPECT_FALSE(fs_->restore(reader, items[0].item).has_value());
  check();
}

// A file that replaces one at the moment at which that is removed is another file: though the old
// one is in the trash by that name already, it must not go for good.
TEST_P(TrashTest, WhatReplacesAFileMeanwhileIsNotLost) {
  const InodeId file = make_file(root_inode, "other name");
  constexpr unsigned rounds = 300;
  std::set<InodeId> made;
  for (unsigned round = 0; round < rounds; round++) {
    ASSERT_OK(fs_->link(writer, file, root_inode, "f"));
    const std::string name = fmt::format("new {}", round);
    made.insert(make_file(root_inode, name));
    std::thread replacing(
        [&] { EXPECT_OK(fs_->rename(writer, root_inode, name, root_inode, "f")); });
    EXPECT_OK(fs_->move_to_trash(writer, root_inode, "f"));
    replacing.join();
    if (fs_->lookup(reader, root_inode, "f"))
      ASSERT_OK(fs_->move_to_trash(writer, root_inode, "f"));
  }
  for (const Item& item : trash(100)) made.erase(item.inode);
  EXPECT_TRUE(made.empty()) << made.size() << " files were lost";
  check();
}

TEST_P(TrashTest, OnlyWhatIsExpectedIsRemovedOrMoved) {
  const InodeId file = make_file(root_inode, "f", "content");
  const uint64_t version = stat(file).version;
  const auto reason = [](const Status& status) {
    return status ? std::string_view("done") : status.error().reason;
  };
  for (const ExpectedFile& other :
       {ExpectedFile{.inode = InodeId{file.value + 1}}, ExpectedFile{.version = version + 1},
        ExpectedFile{.inode = file, .version = version + 1}}) {
    EXPECT_EQ(reason(fs_->unlink(writer, root_inode, "f", other)), "condition_failed");
    EXPECT_EQ(reason(fs_->remove_tree(writer, root_inode, "f", other)), "condition_failed");
    EXPECT_EQ(reason(fs_->move_to_trash(writer, root_inode, "f", other)), "condition_failed");
    EXPECT_EQ(
        reason(fs_->rename(writer, root_inode, "f", root_inode, "g", RenameMode::replace, other)),
        "condition_failed");
  }
  EXPECT_EQ(fs_->append(writer, file, "x", version + 1).error().reason, "condition_failed");
  const InodeId tree = make_directory(root_inode, "d");
  EXPECT_EQ(reason(fs_->remove_tree(writer, root_inode, "d", {.inode = file})), "condition_failed");
  EXPECT_EQ(names(root_inode), (std::vector<std::string>{"d", "f"}));
  EXPECT_OK(fs_->append(writer, file, "x", version));
  EXPECT_OK(fs_->move_to_trash(writer, root_inode, "f", {.inode = file, .version = version + 1}));
  EXPECT_OK(fs_->remove_tree(writer, root_inode, "d", {.inode = tree}));
  EXPECT_TRUE(names(root_inode).empty());
  check();
}

TEST_P(TrashTest, WithoutItsDirectoryItIsRestoredElsewhere) {
  const InodeId directory = make_directory(root_inode, "d");
  make_file(directory, "f", "content");
  ASSERT_OK(fs_->move_to_trash(writer, directory, "f"));
  ASSERT_OK(fs_->move_to_trash(writer, root_inode, "d"));
  const auto items = trash();
  ASSERT_EQ(items.size(), 2u);
  const Item& file = items[0].name == "f" ? items[0] : items[1];
  EXPECT_EQ(fs_->restore(writer, file.item).error().reason, "parent_gone") << "it is in the trash";
  ASSERT_OK(fs_->restore(writer, file.item, FileSystem::RestoreTo{root_inode, "f"}));
  ASSERT_OK(fs_->move_to_trash(writer, root_inode, "f"));
  ASSERT_OK(fs_->restore(writer, trash()[0].name == "f" ? trash()[0].item : trash()[1].item));
  EXPECT_EQ(names(root_inode), std::vector<std::string>{"f"});
  check();
}

TEST_P(TrashTest, ItsTimeIsOverAtTheEndOfTheHourAndTheTimeItIsKept) {
  const InodeId file = make_file(root_inode, "f", "content");
  ASSERT_OK(fs_->move_to_trash(writer, root_inode, "f"));
  const uint64_t due_ms = (start_ms / trash_hour_ms + 1) * trash_hour_ms + *fs_->trash_ms(reader);
  clock_.jump_to_ms(due_ms - 1);
  collect_all();
  EXPECT_TRUE(exists(file));
  // It is to stay for a day more: the note moves.
  ASSERT_OK(fs_->set_trash_ms(writer, *fs_->trash_ms(reader) + 24 * trash_hour_ms));
  clock_.advance_ms(1);
  collect_all();
  EXPECT_TRUE(exists(file));
  check();
  open_files_anew();
  clock_.advance_ms(24 * trash_hour_ms);
  collect_all();
  EXPECT_FALSE(exists(file));
  EXPECT_TRUE(trash().empty());
  EXPECT_TRUE(names(trash_inode).empty());
  check();
}

TEST_P(TrashTest, CanBeOff) {
  ASSERT_OK(fs_->set_trash_ms(writer, 0));
  const InodeId file = make_file(root_inode, "f");
  ASSERT_OK(fs_->move_to_trash(writer, root_inode, "f"));
  EXPECT_EQ(fs_->move_to_trash(writer, root_inode, "f").error().reason, "no_entry");
  collect_all();
  EXPECT_FALSE(exists(file));
  EXPECT_TRUE(trash().empty());
  EXPECT_EQ(fs_->set_trash_ms(writer, UINT64_MAX).error().reason, "invalid_argument");
  EXPECT_FALSE(fs_->set_trash_ms(reader, 1).has_value());
  EXPECT_EQ(*fs_->trash_ms(reader), 0u);
  check();
}

TEST_P(TrashTest, IsEmptiedHourByHour) {
  for (int i = 0; i < 5; i++) {
    for (const char* name : {"a", "b", "c"}) {
      make_file(root_inode, name);
      ASSERT_OK(fs_->move_to_trash(writer, root_inode, name));
    }
    clock_.advance_ms(trash_hour_ms);
  }
  EXPECT_EQ(trash(1).size(), 15u);
  EXPECT_EQ(trash(4).size(), 15u);
  EXPECT_EQ(trash(100).size(), 15u);
  const uint64_t first_end_ms = (start_ms / trash_hour_ms + 1) * trash_hour_ms;
  EXPECT_EQ(*fs_->empty_trash(writer, first_end_ms - 1), 0u);
  EXPECT_EQ(*fs_->empty_trash(writer, first_end_ms + trash_hour_ms), 2u);
  EXPECT_EQ(trash().size(), 9u);
  EXPECT_EQ(*fs_->empty_trash(writer), 3u);
  EXPECT_TRUE(trash().empty());
  // In the hour that was emptied just now there may be something again, with a note of its own.
  clock_.jump_to_ms(start_ms);
  make_file(root_inode, "again");
  ASSERT_OK(fs_->move_to_trash(writer, root_inode, "again"));
  check();
  clock_.advance_ms(30 * 24 * trash_hour_ms);
  collect_all();
  EXPECT_TRUE(names(trash_inode).empty());
  check();
}

TEST_P(TrashTest, TheSameNameOfTheSameFileTwice) {
  const InodeId file = make_file(root_inode, "f");
  ASSERT_OK(fs_->link(writer, file, root_inode, "g"));
  ASSERT_OK(fs_->move_to_trash(writer, root_inode, "f"));
  ASSERT_OK(fs_->link(writer, file, root_inode, "f"));
  ASSERT_OK(fs_->move_to_trash(writer, root_inode, "f"));
  EXPECT_EQ(names(root_inode), std::vector<std::string>{"g"});
  EXPECT_EQ(stat(file).links, 2u);
  EXPECT_EQ(trash().size(), 1u);
  check();
}

TEST_P(TrashTest, WhatIsInTheTrashGoesForGood) {
  const InodeId file = make_file(root_inode, "f");
  ASSERT_OK(fs_->move_to_trash(writer, root_inode, "f"));
  const std::string item = trash()[0].item;
  const auto hour = fs_->lookup(reader, trash_inode, item.substr(0, 10));
  ASSERT_OK(hour);
  ASSERT_OK(fs_->move_to_trash(writer, hour->inode, item.substr(11)));
  ASSERT_OK(fs_->move_to_trash(writer, trash_inode, item.substr(0, 10)));
  collect_all();
  EXPECT_FALSE(exists(file));
  check();
}

TEST_P(TrashTest, KeepsLongNamesAsFarAsTheyFit) {
  const Bytes name(255, '\xfe');
  const InodeId file = make_file(root_inode, name);
  ASSERT_OK(fs_->move_to_trash(writer, root_inode, name));
  const auto items = trash();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_TRUE(name.starts_with(items[0].name));
  EXPECT_GT(items[0].name.size(), 240u);
  ASSERT_OK(fs_->restore(writer, items[0].item, FileSystem::RestoreTo{root_inode, name}));
  EXPECT_EQ(fs_->lookup(reader, root_inode, name)->inode, file);
}

INSTANTIATE_TEST_SUITE_P(Ways, TrashTest, testing::Values(Way::latched, Way::expecting), way_name);

}  // namespace
}  // namespace trellis
