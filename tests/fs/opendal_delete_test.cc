// 13 cases. Left out, as the suite does by capability:
//   delete_with_version, delete_with_not_existing_version, batch_delete_with_version: there are no
//     versions of a file.
//   remove_all_with_prefix_exists: it is for stores in which "x" is a file while "x/a" is one, too.
//     remove_all_of_a_prefix stands in for it.
#include "fs/opendal_fixture.h"

namespace trellis {
namespace {

class OpendalDelete : public OpendalTest {};
OPENDAL_SUITE(OpendalDelete);

TEST_P(OpendalDelete, file) {
  written("dir/file");
  ASSERT_OK(remove("dir/file"));
  EXPECT_FALSE(exists("dir/file"));
  EXPECT_TRUE(exists("dir/"));
}

TEST_P(OpendalDelete, empty_dir) {
  ASSERT_OK(create_dir("dir/"));
  ASSERT_OK(remove("dir/"));
  EXPECT_FALSE(exists("dir/"));
  written("full/file");
  EXPECT_KIND(remove("full/"), FileErrorKind::not_empty);
}

TEST_P(OpendalDelete, special_chars) {
  const Bytes path = "delete" + Bytes(special_chars);
  written(path);
  ASSERT_OK(remove(path));
  EXPECT_FALSE(exists(path));
}

TEST_P(OpendalDelete, not_existing) {
  EXPECT_OK(remove("nothing"));
  EXPECT_OK(remove("nothing/"));
  EXPECT_OK(remove("nothing/below"));
  written("file");
  EXPECT_OK(remove("file/"));  // names no file
  EXPECT_TRUE(exists("file"));
}

TEST_P(OpendalDelete, one_file) {
  written("file");
  ASSERT_OK(remove("file"));
  EXPECT_FALSE(exists("file"));
  written("/file");
  ASSERT_OK(remove("file"));
  EXPECT_FALSE(exists("file"));
}

TEST_P(OpendalDelete, stream) {
  ASSERT_OK(create_dir("dir/"));
  for (int i = 0; i < 100; i++) ASSERT_OK(write("dir/" + std::to_string(i), "delete_stream"));
  for (int i = 0; i < 100; i++) ASSERT_OK(remove("dir/" + std::to_string(i)));
  for (int i = 0; i < 100; i++) EXPECT_FALSE(exists("dir/" + std::to_string(i)));
  EXPECT_OK(remove("dir/"));
  EXPECT_EQ(world_.backend().faults() > 0, world_.is_faulty());
}

TEST_P(OpendalDelete, remove_all_basic) {
  for (const char* const path : {"x/a/b", "x/a/c", "x/a/d/e"}) written(path);
  ASSERT_OK(remove_all("x"));
  EXPECT_EQ(list("x/", {.recursive = true}), std::vector<std::string>());
}

TEST_P(OpendalDelete, remove_all_of_a_prefix) {
  for (const char* const path : {"x", "xa/b", "xb", "x-/c/d", "y", "dir/x1", "dir/x2/3", "dir/y"})
    ASSERT_OK(write(path, "content"));
  ASSERT_OK(remove_all("dir/x"));
  EXPECT_EQ(list("dir/", {.recursive = true}), (std::vector<std::string>{"dir/", "dir/y"}));
  ASSERT_OK(remove_all("x"));
  EXPECT_EQ(list("/"), (std::vector<std::string>{"/", "dir/", "y"}));
  EXPECT_OK(remove_all("x"));
}

TEST_P(OpendalDelete, recursive_basic) {
  const std::vector<std::string> paths = {"base/file.txt", "base/dir1/file1.txt",
                                          "base/dir1/dir2/file2.txt"};
  for (const std::string& path : paths) written(path);
  written("base2");  // of the same prefix, and not in it
  ASSERT_OK(remove_all("base/"));
  EXPECT_EQ(list("base/", {.recursive = true}), std::vector<std::string>());
  for (const std::string& path : paths) EXPECT_FALSE(exists(path));
  EXPECT_TRUE(exists("base2"));
  EXPECT_OK(remove_all("base/"));
}

TEST_P(OpendalDelete, batch) {
  for (int i = 0; i < 5; i++) written(std::to_string(i));
  for (int i = 0; i < 5; i++) ASSERT_OK(remove(std::to_string(i)));
  for (int i = 0; i < 5; i++) EXPECT_KIND(stat(std::to_string(i)), FileErrorKind::not_found);
}

}  // namespace
}  // namespace trellis
