// 10 cases, and directories, which OpenDAL does not rename.
#include "fs/opendal_fixture.h"

namespace trellis {
namespace {

class OpendalRename : public OpendalTest {};
OPENDAL_SUITE(OpendalRename);

TEST_P(OpendalRename, file) {
  const Bytes content = written("from");
  ASSERT_OK(rename("from", "to"));
  EXPECT_KIND(stat("from"), FileErrorKind::not_found);
  expect_content("to", content);
}

TEST_P(OpendalRename, non_existing_source) {
  EXPECT_KIND(rename("nothing", "to"), FileErrorKind::not_found);
  EXPECT_KIND(rename("nothing", "dir/to"), FileErrorKind::not_found);
  EXPECT_FALSE(exists("dir/"));
}

TEST_P(OpendalRename, source_dir) {
  ASSERT_OK(create_dir("from/"));
  EXPECT_KIND(rename("from/", "to"), FileErrorKind::is_a_directory);
  EXPECT_KIND(rename("from", "to"), FileErrorKind::is_a_directory);
}

TEST_P(OpendalRename, target_dir) {
  written("from");
  ASSERT_OK(create_dir("to/"));
  EXPECT_KIND(rename("from", "to/"), FileErrorKind::is_a_directory);
  EXPECT_KIND(rename("from", "to"), FileErrorKind::is_a_directory);
  EXPECT_TRUE(exists("from"));
}

TEST_P(OpendalRename, self) {
  const Bytes content = written("file");
  EXPECT_KIND(rename("file", "file"), FileErrorKind::is_same_file);
  EXPECT_KIND(rename("file", "./x/..//file"), FileErrorKind::is_same_file);
  expect_content("file", content);
}

TEST_P(OpendalRename, nested) {
  const Bytes content = written("from");
  ASSERT_OK(rename("from", "a/b/to"));
  EXPECT_FALSE(exists("from"));
  expect_content("a/b/to", content);
}

TEST_P(OpendalRename, overwrite) {
  const Bytes content = written("from");
  written("to");
  ASSERT_OK(rename("from", "to"));
  EXPECT_FALSE(exists("from"));
  expect_content("to", content);
}

TEST_P(OpendalRename, if_not_exists_to_new_file) {
  const Bytes content = written("from");
  ASSERT_OK(rename("from", "to", {.if_not_exists = true}));
  EXPECT_FALSE(exists("from"));
  expect_content("to", content);
}

TEST_P(OpendalRename, if_not_exists_to_existing_file) {
  const Bytes from = written("from");
  const Bytes to = written("to");
  EXPECT_KIND(rename("from", "to", {.if_not_exists = true}), FileErrorKind::condition_not_match);
  expect_content("from", from);
  expect_content("to", to);
}

TEST_P(OpendalRename, if_not_exists_of_missing_source) {
  EXPECT_KIND(rename("from", "to", {.if_not_exists = true}), FileErrorKind::not_found);
}

TEST_P(OpendalRename, directories) {
  const Bytes content = written("from/a/file");
  ASSERT_OK(rename("from/", "x/to/"));
  EXPECT_FALSE(exists("from/"));
  expect_content("x/to/a/file", content);
  written("other/file");
  EXPECT_KIND(rename("x/to/", "other/"), FileErrorKind::not_empty);
  EXPECT_KIND(rename("x/to/", "other/", {.if_not_exists = true}),
              FileErrorKind::condition_not_match);
  EXPECT_KIND(rename("x/", "x/to/y/"), FileErrorKind::invalid_path);
  ASSERT_OK(create_dir("empty/"));
  ASSERT_OK(rename("x/to/", "empty/"));
  expect_content("empty/a/file", content);
  EXPECT_KIND(rename("other/file/", "new/"), FileErrorKind::not_found);
}

}  // namespace
}  // namespace trellis
