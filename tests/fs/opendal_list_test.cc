// 21 cases. Left out, as the suite does by capability:
//   files_with_versions, with_versions_and_limit, with_versions_and_start_after: there are no
//     versions of a file.
//   files_with_deleted: what was removed is in the trash, which is not listed with the rest.
#include "fs/opendal_fixture.h"

namespace trellis {
namespace {

using Paths = std::vector<std::string>;

class OpendalList : public OpendalTest {};
OPENDAL_SUITE(OpendalList);

TEST_P(OpendalList, check) { EXPECT_EQ(list("/"), Paths{"/"}); }

TEST_P(OpendalList, dir) {
  const Bytes content = written("parent/file");
  const auto entries = list_entries("parent/", {.attributes = true});
  ASSERT_OK(entries);
  ASSERT_EQ(entries->size(), 2U);
  const ListedFile& file = entries->at(1);
  EXPECT_EQ(file.path, "parent/file");
  EXPECT_EQ(file.entry.type, FileType::regular);
  ASSERT_TRUE(file.attributes.has_value());
  EXPECT_EQ(file.attributes->size, content.size());
  const auto found = stat(file.path);
  ASSERT_OK(found);
  EXPECT_EQ(found->attributes, *file.attributes);
}

TEST_P(OpendalList, prefix) {
  written("file-with-a-name");
  EXPECT_EQ(list("file-with-a-name"), Paths{"file-with-a-name"});
  EXPECT_EQ(list("file-wi"), Paths{"file-with-a-name"});
  EXPECT_EQ(list("file-x"), Paths());
}

TEST_P(OpendalList, rich_dir) {
  ASSERT_OK(create_dir("rich/"));
  Paths expected{"rich/"};
  for (int i = 0; i <= 10; i++) expected.push_back("rich/file-" + std::to_string(i));
  for (size_t i = 1; i < expected.size(); i++) ASSERT_OK(write(expected[i], "rich"));
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(list("rich/", {.page_entries = 5}), expected);
}

TEST_P(OpendalList, empty_dir) {
  ASSERT_OK(create_dir("dir/"));
  for (const bool recursive : {false, true})
    for (const char* const path : {"dir/", "dir"})
      EXPECT_EQ(list(path, {.recursive = recursive}), Paths{"dir/"}) << path;
}

TEST_P(OpendalList, non_exist_dir) {
  EXPECT_EQ(list("nothing/"), Paths());
  written("file");
  EXPECT_EQ(list("file/"), Paths());
}

TEST_P(OpendalList, non_exist_dir_recursive) {
  EXPECT_EQ(list("nothing/", {.recursive = true}), Paths());
  EXPECT_EQ(list("nothing/below/", {.recursive = true}), Paths());
}

TEST_P(OpendalList, sub_dir) {
  ASSERT_OK(create_dir("sub/"));
  EXPECT_EQ(list("/"), (Paths{"/", "sub/"}));
  const auto found = stat("sub/");
  ASSERT_OK(found);
  EXPECT_TRUE(found->is_directory());
}

TEST_P(OpendalList, nested_dir) {
  ASSERT_OK(create_dir("parent/dir/"));
  ASSERT_OK(write("parent/dir/file", "test_list_nested_dir"));
  ASSERT_OK(create_dir("parent/dir/sub/"));
  EXPECT_EQ(list("parent/"), (Paths{"parent/", "parent/dir/"}));
  EXPECT_EQ(list("parent/dir/"), (Paths{"parent/dir/", "parent/dir/file", "parent/dir/sub/"}));
}

TEST_P(OpendalList, dir_with_file_path) {
  written("parent/file");
  EXPECT_EQ(list("parent"), Paths{"parent/"});
}

TEST_P(OpendalList, start_after) {
  Paths given;
  for (int i = 0; i < 6; i++) given.push_back("dir/file-" + std::to_string(i) + "-x");
  for (const std::string& path : given) ASSERT_OK(write(path, "content"));
  EXPECT_EQ(list("dir/", {.start_after = given[2]}), Paths(given.begin() + 3, given.end()));
  EXPECT_EQ(list("dir/", {.start_after = "/" + given[5]}), Paths());
}

class OpendalListRecursive : public OpendalTest {
 protected:
  void SetUp() override {
    OpendalTest::SetUp();
    for (const std::string& path : paths_) {
      if (path.ends_with('/'))
        ASSERT_OK(create_dir("parent/" + path));
      else
        ASSERT_OK(write("parent/" + path, "content"));
    }
  }
  Paths below_parent(const std::string& path) {
    Paths found;
    for (const std::string& one : list("parent/" + path, {.recursive = true}))
      found.push_back(one.substr(7));
    return found;
  }
  const Paths paths_{"x/", "x/x/", "x/x/x/", "x/x/x/x/", "x/x/x/y", "x/x/y", "x/y", "x/yy"};
};
OPENDAL_SUITE(OpendalListRecursive);

TEST_P(OpendalListRecursive, root) {
  const Paths found = list("", {.recursive = true});
  ASSERT_EQ(found.size(), paths_.size() + 2);
  EXPECT_EQ(found[0], "/");
  EXPECT_EQ(found[1], "parent/");
  EXPECT_EQ(found.back(), "parent/x/yy");
}

TEST_P(OpendalListRecursive, dir) { EXPECT_EQ(below_parent("x/"), paths_); }

TEST_P(OpendalListRecursive, dir_without_trailing_slash) { EXPECT_EQ(below_parent("x"), paths_); }

TEST_P(OpendalListRecursive, file) { EXPECT_EQ(below_parent("x/y"), (Paths{"x/y", "x/yy"})); }

TEST_P(OpendalListRecursive, remove_all) {
  ASSERT_OK(remove_all("parent/x/"));
  for (const std::string& path : paths_) EXPECT_FALSE(exists("parent/" + path)) << path;
  EXPECT_EQ(list("parent/", {.recursive = true}), Paths{"parent/"});
}

TEST_P(OpendalListRecursive, list_only) {
  caller_ = opendal_reader;
  EXPECT_EQ(below_parent("x/"), paths_);
  EXPECT_EQ(list("parent/"), (Paths{"parent/", "parent/x/"}));
}

}  // namespace
}  // namespace trellis
