// Files by path: what OpenDAL's suite (tests/fs) does not ask.
#include "fs/files.h"

#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "base/random.h"
#include "fs/file_error_kind.h"
#include "fs/fs_fixture.h"
#include "fs/fsck.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

class FilesTest : public FsFixture {
 protected:
  void SetUp() override {
    FsFixture::SetUp();
    files_.emplace(fs_);
  }
  void TearDown() override {
    files_.reset();
    collect_all();
    check();
  }
  std::vector<std::string> list(ByteView path, ListOptions options = {}) {
    std::vector<std::string> found;
    auto lister = files_->lister(reader, path, std::move(options));
    EXPECT_OK(lister);
    while (lister) {
      const auto next = lister->next();
      EXPECT_OK(next);
      if (!next || !*next) break;
      found.push_back((*next)->path);
    }
    return found;
  }
  void symlink(InodeId directory, ByteView name, ByteView target) {
    EXPECT_OK(fs_->make(writer, directory, name, {.type = FileType::symlink, .target = target}));
  }
  void write(ByteView path, ByteView content) { EXPECT_OK(files_->write(writer, path, content)); }
  std::string read(ByteView path) {
    const auto found = files_->read(reader, path);
    EXPECT_OK(found);
    return found ? *found : "";
  }
  size_t sessions() {
    const Bytes begin = encode(FsSessionKey{id_, SessionId{0}});
    return entries_in(begin, prefix_end(ByteView(begin).substr(0, begin.size() - 8)));
  }

  std::optional<Files> files_;
};
INSTANTIATE_TEST_SUITE_P(Ways, FilesTest, testing::Values(Way::latched, Way::expecting), way_name);

using Paths = std::vector<std::string>;

// --- listing ---

TEST_P(FilesTest, directories_are_listed_as_with_their_slash) {
  for (const ByteView path : {"a-b", "a/x", "a0", "a-/y", "a--/z", "a!", "b/b-/c"}) write(path, "");
  const Paths all{"/",  "a!",  "a--/", "a--/z", "a-/",   "a-/y",  "a-b",
                  "a/", "a/x", "a0",   "b/",    "b/b-/", "b/b-/c"};
  EXPECT_EQ(list("/", {.recursive = true}), all);
  EXPECT_EQ(list("/"), (Paths{"/", "a!", "a--/", "a-/", "a-b", "a/", "a0", "b/"}));
  EXPECT_EQ(list("a"), (Paths{"a!", "a--/", "a-/", "a-b", "a/", "a0"}));
  EXPECT_EQ(list("a-"), (Paths{"a--/", "a-/", "a-b"}));
}

// Every listing is what the sorted paths of a model are, from wherever it starts.
TEST_P(FilesTest, lists_in_the_order_of_paths) {
  Random random(test_seed(1));
  const auto any_name = [&] {
    constexpr ByteView letters = "a-/.0\xff";
    Bytes name;
    for (uint64_t i = random.below(3) + 1; i > 0; i--)
      name += letters[random.below(letters.size())];
    std::erase(name, '/');
    return name.empty() || name == "." || name == ".." ? Bytes("a") : name;
  };
  std::set<std::string> all;
  for (int i = 0; i < 120; i++) {
    Bytes path;
    for (uint64_t depth = random.below(4); depth > 0; depth--) path += any_name() + "/";
    path += any_name();
    if (random.one_in(4)) path += "/";
    const bool made = path.ends_with('/') ? files_->create_dir(writer, path).has_value()
                                          : files_->write(writer, path, "").has_value();
    if (!made) continue;  // a file is where a directory would have to be
    all.insert(path);
    for (size_t slash = path.find('/'); slash != Bytes::npos; slash = path.find('/', slash + 1))
      all.insert(path.substr(0, slash + 1));
  }
  Paths starts(all.begin(), all.end());
  for (const std::string& path : all) {
    starts.push_back(path + "-");
    starts.push_back(path.substr(0, path.size() - 1));
  }
  starts.emplace_back();
  for (const bool recursive : {false, true})
    for (const std::string& start : starts)
      for (const std::string& prefix : {std::string(), any_name(), any_name() + "/", any_name()}) {
        Paths expected;
        for (const std::string& path : all) {
          if (!path.starts_with(prefix) || !(path > start)) continue;
          const size_t slash = path.find('/', prefix.size());
          if (!recursive && slash != std::string::npos && slash + 1 < path.size()) continue;
          expected.push_back(path);
        }
        if (prefix.empty() && start.empty()) expected.insert(expected.begin(), "/");
        ASSERT_EQ(list(prefix, {.recursive = recursive, .start_after = start, .page_entries = 2}),
                  expected)
            << quote(prefix) << " from " << quote(start);
      }
}

TEST_P(FilesTest, a_listing_holds_one_page_of_a_directory) {
  EXPECT_OK(files_->create_dir(writer, "many/"));
  const auto directory = files_->stat(reader, "many/");
  ASSERT_OK(directory);
  Paths expected{"many/"};
  for (int i = 1'000; i < 1'500; i++) {
    make_file(directory->attributes.inode, std::to_string(i));
    expected.push_back("many/" + std::to_string(i));
  }
  EXPECT_EQ(list("many/", {.page_entries = 7}), expected);
  EXPECT_EQ(list("many/", {.attributes = true, .page_entries = 64}), expected);
  // Stopped and resumed anywhere.
  Paths resumed;
  for (std::string after;;) {
    auto lister = files_->lister(reader, "many/", {.start_after = after, .page_entries = 10});
    ASSERT_OK(lister);
    bool any = false;
    for (int i = 0; i < 3; i++) {
      const auto next = lister->next();
      ASSERT_OK(next);
      if (!*next) break;
      any = true;
      after = (*next)->path;
      resumed.push_back(after);
    }
    if (!any) break;
  }
  EXPECT_EQ(resumed, expected);
}

// --- symlinks ---

TEST_P(FilesTest, symlinks_are_followed_where_a_kernel_would) {
  write("dir/sub/file", "content");
  symlink(root_inode, "to-dir", "dir/sub");
  symlink(root_inode, "to-file", "/dir/sub/file");
  symlink(root_inode, "up", "to-dir/../sub/./file");
  symlink(root_inode, "dangling", "dir/new");
  EXPECT_EQ(read("to-dir/file"), "content");
  EXPECT_EQ(read("to-file"), "content");
  EXPECT_EQ(read("up"), "content");
  EXPECT_EQ(files_->stat(reader, "to-file")->etag(), files_->stat(reader, "dir/sub/file")->etag());
  EXPECT_EQ(files_->stat(reader, "to-file", {.follow = false})->attributes.type, FileType::symlink);
  EXPECT_TRUE(files_->stat(reader, "to-dir/")->is_directory());
  EXPECT_REASON(files_->stat(reader, "dangling"), Code::not_found, "no_entry");
  write("dangling", "new");
  EXPECT_EQ(read("dir/new"), "new");
  write("to-file", "changed");
  EXPECT_EQ(read("dir/sub/file"), "changed");
  EXPECT_EQ(list("to-dir/"), (Paths{"to-dir/", "to-dir/file"}));
  EXPECT_EQ(list("to"), (Paths{"to-dir", "to-file"}));
  // The link itself.
  EXPECT_OK(files_->rename(writer, "to-file", "renamed"));
  EXPECT_EQ(read("renamed"), "changed");
  EXPECT_OK(files_->remove(writer, "renamed"));
  EXPECT_OK(files_->remove_all(writer, "to-dir/"));
  EXPECT_EQ(read("dir/sub/file"), "changed");
  EXPECT_EQ(read("to-dir/file"), "changed");
  EXPECT_OK(files_->remove_all(writer, "to-dir"));
  EXPECT_EQ(read("dir/sub/file"), "changed");
}

TEST_P(FilesTest, symlinks_in_a_circle_end) {
  symlink(root_inode, "a", "b");
  symlink(root_inode, "b", "a");
  EXPECT_REASON(files_->read(reader, "a"), Code::invalid, "too_many_symlinks");
  EXPECT_REASON(files_->write(writer, "a/b/c", ""), Code::invalid, "too_many_symlinks");
  write("file", "content");
  symlink(root_inode, "link-0", "file");
  for (int i = 1; i <= 40; i++)
    symlink(root_inode, "link-" + std::to_string(i), "link-" + std::to_string(i - 1));
  EXPECT_EQ(read("link-39"), "content");
  EXPECT_REASON(files_->read(reader, "link-40"), Code::invalid, "too_many_symlinks");
}

// --- who is at it at the same time ---

TEST_P(FilesTest, who_reads_a_file_reads_on_when_it_is_replaced_or_removed) {
  EXPECT_OK(fs_->set_trash_ms(keyspace_admin, 0));
  const Bytes content(1'000'000, 'a');
  for (const bool replaced : {true, false}) {
    write("file", content);
    auto opened = files_->reader(reader, "file");
    ASSERT_OK(opened);
    std::vector<char> piece(300'000);
    ASSERT_OK(opened->read(piece));
    if (replaced)
      write("file", Bytes(1'000'000, 'b'));
    else
      EXPECT_OK(files_->remove(writer, "file"));
    collect_all();
    size_t got = 300'000;
    for (;;) {
      const auto more = opened->read(piece);
      ASSERT_OK(more);
      if (*more == 0) break;
      EXPECT_EQ(ByteView(piece.data(), *more), ByteView(content).substr(got, *more));
      got += *more;
    }
    EXPECT_EQ(got, content.size());
  }
}

TEST_P(FilesTest, one_of_many_makes_a_file_that_must_be_new) {
  for (const size_t size : {size_t{10}, size_t{10'000}}) {
    const std::string path = "new-" + std::to_string(size);
    std::atomic<int> made = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
      threads.emplace_back([&, i] {
        const auto wrote = files_->write(writer, path, Bytes(size, static_cast<char>('a' + i)),
                                         {.conditions = {.if_not_exists = true}});
        if (wrote)
          made++;
        else
          EXPECT_EQ(file_error_kind(wrote.error()), FileErrorKind::condition_not_match);
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(made, 1);
  }
}

// Each adds one, if nobody else did since it looked.
TEST_P(FilesTest, a_file_is_changed_by_who_saw_it_last) {
  write("count", "0");
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; i++)
    threads.emplace_back([&] {
      for (int added = 0; added < 10;) {
        auto seen = files_->reader(reader, "count");
        if (!seen) continue;
        Bytes content(seen->end(), '\0');
        if (!seen->read(content)) continue;
        const auto wrote = files_->write(writer, "count", std::to_string(std::stoi(content) + 1),
                                         {.conditions = {.if_match = seen->metadata().etag()}});
        if (wrote)
          added++;
        else
          EXPECT_EQ(file_error_kind(wrote.error()), FileErrorKind::condition_not_match);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read("count"), "30");
}

TEST_P(FilesTest, a_file_that_is_replaced_all_the_time_is_always_there) {
  write("dir/file", Bytes(10, 'x'));
  std::atomic<bool> enough = false;
  std::thread replacing([&] {
    for (int i = 0; i < 200; i++)
      EXPECT_OK(files_->write(writer, "dir/file", Bytes(i % 2 == 0 ? 10 : 5'000, 'x')));
    enough = true;
  });
  while (!enough) {
    const auto found = files_->read(reader, "dir/file");
    EXPECT_OK(found);
    EXPECT_TRUE(found && *found == Bytes(found->size(), 'x'));
  }
  replacing.join();
}

// --- writers ---

TEST_P(FilesTest, a_client_that_dies_leaves_nothing) {
  {
    auto opened = files_->writer(writer, "dir/file");
    ASSERT_OK(opened);
    EXPECT_OK(opened->write(Bytes(3'000'000, 'x')));
    EXPECT_EQ(sessions(), 2U);  // with what it holds
    const auto figures = fs_->figures(reader);
    ASSERT_OK(figures);
    EXPECT_EQ(figures->used.inodes, 0U);
    clock_.advance_ms(10 * 60'000);
    collect_all();
    EXPECT_EQ(sessions(), 0U);
    EXPECT_FALSE(opened->write(Bytes(3'000'000, 'x')) && opened->close());
  }
  EXPECT_EQ(list("/", {.recursive = true}), Paths{"/"});
  write("dir/file", Bytes(3'000'000, 'y'));  // in another session
  EXPECT_EQ(read("dir/file"), Bytes(3'000'000, 'y'));
}

TEST_P(FilesTest, a_writer_that_is_kept_alive_may_take_its_time) {
  auto opened = files_->writer(writer, "file");
  ASSERT_OK(opened);
  for (int i = 0; i < 6; i++) {
    EXPECT_OK(opened->write(Bytes(600'000, static_cast<char>('a' + i))));
    for (int seconds = 0; seconds < 90; seconds += 30) {
      clock_.advance_ms(30'000);
      EXPECT_OK(files_->keep_alive(writer));
      collect_all();
    }
  }
  EXPECT_OK(opened->close());
  EXPECT_EQ(read("file").size(), 3'600'000U);
}

TEST_P(FilesTest, keeps_the_mode_of_what_it_replaces) {
  EXPECT_OK(files_->write(writer, "file", "x", {.mode = 0600}));
  write("file", "y");
  EXPECT_EQ(files_->stat(reader, "file")->attributes.mode, 0600);
  EXPECT_OK(files_->write(writer, "file", "y", {.mode = 0640}));
  EXPECT_EQ(files_->stat(reader, "file")->attributes.mode, 0640);
}

TEST_P(FilesTest, a_directory_that_goes_away_is_made_again) {
  auto opened = files_->writer(writer, "dir/file");
  EXPECT_OK(files_->create_dir(writer, "dir/"));
  EXPECT_OK(opened->write(Bytes(2'000'000, 'x')));
  EXPECT_OK(files_->remove(writer, "dir/"));
  EXPECT_OK(opened->close());
  EXPECT_EQ(read("dir/file").size(), 2'000'000U);
}

TEST_P(FilesTest, what_is_no_file_is_not_replaced) {
  EXPECT_OK(fs_->make(writer, root_inode, "fifo", {.type = FileType::fifo}));
  EXPECT_REASON(files_->write(writer, "fifo", "x"), Code::invalid, "not_a_file");
  EXPECT_REASON(files_->append(writer, "fifo", "x"), Code::invalid, "not_a_file");
  EXPECT_REASON(files_->read(reader, "fifo"), Code::invalid, "not_a_file");
  EXPECT_REASON(files_->copy(writer, "fifo", "x"), Code::invalid, "not_a_file");
}

TEST_P(FilesTest, a_full_quota_leaves_what_was_there) {
  EXPECT_OK(files_->create_dir(writer, "dir/"));
  const InodeId directory = files_->stat(reader, "dir/")->attributes.inode;
  write("dir/file", "old");
  EXPECT_OK(fs_->set_quota(keyspace_admin, directory, {.bytes_max = 200'000, .inodes_max = 0}));
  const auto wrote = files_->write(writer, "dir/file", Bytes(1'000'000, 'x'));
  ASSERT_FALSE(wrote.has_value());
  EXPECT_EQ(file_error_kind(wrote.error()), FileErrorKind::quota_exceeded);
  EXPECT_EQ(read("dir/file"), "old");
}

TEST_P(FilesTest, what_has_no_room_in_its_directory_ends_early_and_is_freed_at_once) {
  EXPECT_OK(files_->create_dir(writer, "of/alice/new/"));
  const InodeId full = files_->stat(reader, "of/alice/")->attributes.inode;
  write("of/alice/file", Bytes(2'000'000, 'o'));
  EXPECT_OK(fs_->set_quota(keyspace_admin, full, {.bytes_max = 4 << 20, .inodes_max = 0}));
  const auto before = tenant_->figures();
  ASSERT_OK(before);
  const auto upload = [&](ByteView path) -> uint64_t {  // how much was taken
    auto opened = files_->writer(writer, path);
    EXPECT_OK(opened);
    for (uint64_t mib = 0; mib < 100; mib++) {
      const Status wrote = opened->write(Bytes(1 << 20, 'x'));
      if (wrote) continue;
      EXPECT_EQ(wrote.error().reason, "directory_quota_exceeded");
      EXPECT_NE(wrote.error().message.find("4.0 MiB of the directory \"of/alice/\""),
                std::string::npos)
          << wrote.error().message;
      return mib;
    }
    return 100;
  };
  EXPECT_EQ(upload("of/alice/new/deep/er"), 2U);
  EXPECT_EQ(upload("of/alice/file"), 4U) << "what it replaces makes room";
  const auto after = tenant_->figures();
  ASSERT_OK(after);
  EXPECT_LT(after->bytes, before->bytes + 10'000);  // a session
  if (tenant_->map().latched()) {
    const auto left = memory_.blocks().list(blocks_begin(id_), blocks_end(id_), 1'000);
    ASSERT_OK(left);
    EXPECT_EQ(left->blocks.size(), 31U) << "of the file that is there";
  }
  EXPECT_EQ(upload("of/bob/file"), 100U);
  EXPECT_EQ(read("of/alice/file"), Bytes(2'000'000, 'o'));
}

// --- how far a check is ---

TEST_P(FilesTest, a_check_tells_how_far_it_is) {
  constexpr uint64_t size = 8 << 20;
  write("file", Bytes(size, 'x'));
  JobControl control;
  control.set_bytes_per_second(size);
  std::atomic<bool> is_done = false;
  std::set<uint64_t> done;
  std::thread watching([&] {
    while (!is_done) {
      const JobControl::Progress now = control.progress();
      if (now.phase != "inodes" || now.bytes_done == 0) continue;
      EXPECT_GE(now.bytes_total, size);
      EXPECT_LT(now.bytes_total, size + 10'000);
      done.insert(now.bytes_done);
    }
  });
  const auto report = fsck(*fs_, reader, {}, control, [](const FsckFinding&) {});
  is_done = true;
  watching.join();
  ASSERT_OK(report);
  EXPECT_TRUE(report->clean());
  EXPECT_GT(done.size(), 1U) << "it goes on within a file";
}

// --- conditions ---

TEST_P(FilesTest, removes_what_has_the_etag) {
  write("file", "1");
  const std::string old = files_->stat(reader, "file")->etag();
  write("file", "2");
  EXPECT_REASON(files_->remove(writer, "file", {.if_match = old}), Code::refused,
                "condition_failed");
  EXPECT_REASON(files_->remove(writer, "absent", {.if_match = "*"}), Code::refused,
                "condition_failed");
  EXPECT_OK(files_->create_dir(writer, "dir/"));
  EXPECT_REASON(files_->remove(writer, "dir", {.if_match = "*"}), Code::invalid, "is_a_directory");
  EXPECT_EQ(read("file"), "2");
  EXPECT_OK(files_->remove(writer, "file", {.if_match = files_->stat(reader, "file")->etag()}));
  EXPECT_FALSE(*files_->exists(reader, "file"));
  write("file", "3");
  EXPECT_OK(files_->remove(writer, "file", {.if_match = "*"}));
  EXPECT_FALSE(*files_->exists(reader, "file"));
}

TEST_P(FilesTest, appends_to_what_has_the_etag) {
  write("file", "1");
  const std::string old = files_->stat(reader, "file")->etag();
  const auto appended = files_->append(writer, "file", "2", {.conditions = {.if_match = old}});
  ASSERT_OK(appended);
  EXPECT_REASON(files_->append(writer, "file", "3", {.conditions = {.if_match = old}}),
                Code::refused, "condition_failed");
  EXPECT_OK(files_->append(writer, "file", "4", {.conditions = {.if_match = appended->etag()}}));
  EXPECT_REASON(files_->append(writer, "absent", "x", {.conditions = {.if_match = "*"}}),
                Code::refused, "condition_failed");
  EXPECT_EQ(read("file"), "124");
}

// Each of many removes, or appends to, what it saw: none of them acts on what another one made.
TEST_P(FilesTest, one_of_many_removes_what_all_have_seen) {
  for (int round = 0; round < 20; round++) {
    write("file", Bytes(round % 2 == 0 ? 10 : 5'000, 'x'));
    const std::string seen = files_->stat(reader, "file")->etag();
    std::atomic<int> removed = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
      threads.emplace_back([&] {
        if (files_->remove(writer, "file", {.if_match = seen})) removed++;
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(removed, 1) << round;
  }
}

// --- copies, names, trash ---

TEST_P(FilesTest, a_copy_shares_blocks_and_takes_headers_and_mode_along) {
  const FileHeaders headers{.content_type = "a/b", .user = {{"x", "y"}}};
  EXPECT_OK(
      files_->write(writer, "from", Bytes(1'000'000, 'x'), {.headers = headers, .mode = 0600}));
  const auto copied = files_->copy(writer, "from", "to");
  ASSERT_OK(copied);
  EXPECT_EQ(copied->headers, headers);
  EXPECT_EQ(copied->attributes.mode, 0600);
  EXPECT_EQ(*files_->stat(reader, "to"), *copied);
  EXPECT_OK(files_->append(writer, "to", "more"));
  EXPECT_EQ(read("from"), Bytes(1'000'000, 'x'));
  EXPECT_OK(files_->remove(writer, "from"));
  EXPECT_EQ(read("to"), Bytes(1'000'000, 'x') + "more");
}

TEST_P(FilesTest, two_names_of_one_file_are_the_same) {
  write("a", "content");
  EXPECT_OK(fs_->link(writer, files_->stat(reader, "a")->attributes.inode, root_inode, "b"));
  EXPECT_REASON(files_->copy(writer, "a", "b"), Code::invalid, "is_same_file");
  EXPECT_REASON(files_->rename(writer, "a", "b"), Code::invalid, "is_same_file");
  write("b", "other");  // a name of its own from now on
  EXPECT_EQ(read("a"), "content");
}

TEST_P(FilesTest, what_is_removed_is_in_the_trash) {
  write("dir/file", "content");
  write("other", "content");
  const auto in_trash = [&] {
    Paths found;
    EXPECT_OK(fs_->list_trash(writer, {}, 100, [&](const FileSystem::TrashEntry& entry) {
      found.emplace_back(entry.name);
      return Visit::go_on;
    }));
    std::sort(found.begin(), found.end());
    return found;
  };
  EXPECT_OK(files_->remove_all(writer, "dir/"));
  EXPECT_OK(files_->remove(writer, "other"));
  EXPECT_EQ(in_trash(), (Paths{"dir", "other"}));
  EXPECT_EQ(list("/", {.recursive = true}), Paths{"/"});
  EXPECT_OK(fs_->set_trash_ms(keyspace_admin, 0));
  write("last", "content");
  EXPECT_OK(files_->remove(writer, "last"));
  EXPECT_EQ(in_trash(), (Paths{"dir", "other"}));
}

// Who asks too often may ask again at the next moment: nothing goes that would have stayed.
TEST_P(FilesTest, a_rate_takes_nothing_away) {
  write("dir/file", "content");
  ASSERT_OK(keyspaces_->set_quota("files", {.operations_per_second = 10}, root));
  {
    const std::jthread time([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) clock_.pause_us(1);
    });
    for (unsigned rate_exceeded = 0; rate_exceeded < 10'000;) {
      const Status removed = files_->remove(writer, "dir/");
      ASSERT_FALSE(removed) << "after " << rate_exceeded;
      rate_exceeded += removed.error().reason == "rate_exceeded" ? 1 : 0;
    }
  }
  ASSERT_OK(keyspaces_->set_quota("files", {.operations_per_second = 0}, root));
  EXPECT_EQ(read("dir/file"), "content");
}

TEST_P(FilesTest, paths_are_as_long_as_they_may_be) {
  Bytes path = Bytes(255, '\xfe') + "/";
  while (path.size() + 128 < file_path_bytes_max) path += Bytes(127, '\xfe') + "/";
  path += Bytes(file_path_bytes_max - path.size(), 'x');
  write(path, "content");
  EXPECT_EQ(read(path), "content");
  EXPECT_TRUE(list("/", {.recursive = true}).back() == path);
  EXPECT_REASON(files_->write(writer, path + "x", ""), Code::too_large, "path_too_long");
  EXPECT_REASON(files_->stat(reader, Bytes(256, 'x')), Code::too_large, "name_too_long");
  EXPECT_REASON(files_->write(writer, ByteView("a\0b", 3), ""), Code::invalid, "illegal_name");
}

TEST_P(FilesTest, the_root_stays) {
  write("file", "");
  EXPECT_REASON(files_->remove(writer, "/"), Code::denied, "not_permitted");
  EXPECT_REASON(files_->rename(writer, "/", "a/"), Code::denied, "not_permitted");
  EXPECT_OK(files_->remove_all(writer, "/"));
  EXPECT_EQ(list("/"), Paths{"/"});
}

TEST_P(FilesTest, WhatIsFullCanBeEmptied) {
  ASSERT_OK(files_->write(writer, "large", Bytes(300'000, 'x')));
  ASSERT_OK(files_->write(writer, "small", "y"));
  const auto used = tenant_->figures();
  ASSERT_OK(used);
  ASSERT_OK(keyspaces_->set_quota("files", {.bytes = static_cast<uint64_t>(used->bytes)}, root));
  EXPECT_EQ(files_->write(writer, "more", "z").error().reason, "quota_exceeded");
  EXPECT_OK(files_->remove(writer, "large"));
  EXPECT_OK(files_->remove(writer, "small"));
  collect_all();
  EXPECT_OK(files_->write(writer, "more", "z"));
  check();
}

}  // namespace
}  // namespace trellis
