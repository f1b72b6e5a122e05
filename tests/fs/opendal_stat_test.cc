// 23 cases. Left out, as the suite does by capability:
//   override_cache_control, override_content_disposition, override_content_type: what a response
//     says in place of what is stored is for those who make responses, not for this library.
//   version, not_existing_version: there are no versions of a file.
#include "fs/opendal_fixture.h"

namespace trellis {
namespace {

class OpendalStat : public OpendalTest {};
OPENDAL_SUITE(OpendalStat);

TEST_P(OpendalStat, file) {
  const Bytes content = written("file");
  const auto found = stat("file");
  ASSERT_OK(found);
  EXPECT_FALSE(found->is_directory());
  EXPECT_EQ(found->attributes.size, content.size());
  EXPECT_NE(found->etag().find('-'), std::string::npos);
  EXPECT_KIND(stat("file/"), FileErrorKind::not_found);
}

TEST_P(OpendalStat, dir) {
  ASSERT_OK(create_dir("dir/"));
  for (const ByteView path : {"dir/", "dir"}) {
    const auto found = stat(path);
    ASSERT_OK(found);
    EXPECT_TRUE(found->is_directory());
  }
}

TEST_P(OpendalStat, nested_parent_dir) {
  written("parent/of/file");
  for (const ByteView path : {"parent/", "parent/of/"}) {
    const auto found = stat(path);
    ASSERT_OK(found);
    EXPECT_TRUE(found->is_directory());
  }
}

TEST_P(OpendalStat, special_chars) {
  const Bytes path = "stat" + Bytes(special_chars);
  const Bytes content = written(path);
  const auto found = stat(path);
  ASSERT_OK(found);
  EXPECT_EQ(found->attributes.size, content.size());
}

TEST_P(OpendalStat, not_cleaned_path) {
  const Bytes content = written("file");
  for (const ByteView path : {"//file", "/file", "//./file", "x/..//file"}) {
    const auto found = stat(path);
    ASSERT_OK(found);
    EXPECT_FALSE(found->is_directory());
    EXPECT_EQ(found->attributes.size, content.size());
  }
  EXPECT_KIND(stat(" file"), FileErrorKind::not_found);  // nothing is trimmed
}

TEST_P(OpendalStat, not_exist) {
  EXPECT_KIND(stat("nothing"), FileErrorKind::not_found);
  EXPECT_KIND(stat("nothing/"), FileErrorKind::not_found);
  EXPECT_KIND(stat("nothing/here"), FileErrorKind::not_found);
  written("file");
  EXPECT_KIND(stat("file/below"), FileErrorKind::not_found);
}

TEST_P(OpendalStat, if_match) {
  written("file");
  EXPECT_KIND(stat("file", {.conditions = {.if_match = "\"no\""}}),
              FileErrorKind::condition_not_match);
  EXPECT_OK(stat("file", {.conditions = {.if_match = etag_of("file")}}));
}

TEST_P(OpendalStat, if_none_match) {
  written("file");
  EXPECT_KIND(stat("file", {.conditions = {.if_none_match = etag_of("file")}}),
              FileErrorKind::condition_not_match);
  EXPECT_OK(stat("file", {.conditions = {.if_none_match = "\"no\""}}));
}

TEST_P(OpendalStat, if_modified_since) {
  written("file");
  EXPECT_OK(stat("file", {.conditions = {.if_modified_since_ns = now_ns() - 1'000'000'000}}));
  EXPECT_KIND(stat("file", {.conditions = {.if_modified_since_ns = now_ns() + 1'000'000'000}}),
              FileErrorKind::condition_not_match);
}

TEST_P(OpendalStat, if_unmodified_since) {
  written("file");
  EXPECT_KIND(stat("file", {.conditions = {.if_unmodified_since_ns = now_ns() - 1'000'000'000}}),
              FileErrorKind::condition_not_match);
  EXPECT_OK(stat("file", {.conditions = {.if_unmodified_since_ns = now_ns() + 1'000'000'000}}));
}

TEST_P(OpendalStat, root) {
  for (const ByteView path : {"", "/"}) {
    const auto found = stat(path);
    ASSERT_OK(found);
    EXPECT_TRUE(found->is_directory());
  }
}

// The same for who may only read.
class OpendalStatReadOnly : public OpendalTest {
 protected:
  void SetUp() override {
    OpendalTest::SetUp();
    content_ = written("dir/file");
    caller_ = opendal_reader;
  }
  Bytes content_;
};
OPENDAL_SUITE(OpendalStatReadOnly);

TEST_P(OpendalStatReadOnly, file_and_dir) {
  const auto file = stat("dir/file");
  ASSERT_OK(file);
  EXPECT_FALSE(file->is_directory());
  EXPECT_EQ(file->attributes.size, content_.size());
  const auto directory = stat("dir/");
  ASSERT_OK(directory);
  EXPECT_TRUE(directory->is_directory());
}

TEST_P(OpendalStatReadOnly, special_chars) {
  const Bytes path = "only" + Bytes(special_chars);
  written(path);
  EXPECT_OK(stat(path));
}

TEST_P(OpendalStatReadOnly, not_cleaned_path) { EXPECT_OK(stat("//dir///file")); }

TEST_P(OpendalStatReadOnly, not_exist) {
  EXPECT_KIND(stat("dir/nothing"), FileErrorKind::not_found);
}

TEST_P(OpendalStatReadOnly, if_match) {
  EXPECT_OK(stat("dir/file", {.conditions = {.if_match = etag_of("dir/file")}}));
  EXPECT_KIND(stat("dir/file", {.conditions = {.if_match = "no"}}),
              FileErrorKind::condition_not_match);
}

TEST_P(OpendalStatReadOnly, if_none_match) {
  EXPECT_OK(stat("dir/file", {.conditions = {.if_none_match = "no"}}));
  EXPECT_KIND(stat("dir/file", {.conditions = {.if_none_match = etag_of("dir/file")}}),
              FileErrorKind::condition_not_match);
}

TEST_P(OpendalStatReadOnly, root) {
  const auto found = stat("/");
  ASSERT_OK(found);
  EXPECT_TRUE(found->is_directory());
}

}  // namespace
}  // namespace trellis
