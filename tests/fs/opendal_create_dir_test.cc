// 2 cases.
#include "fs/opendal_fixture.h"

namespace trellis {
namespace {

class OpendalCreateDir : public OpendalTest {};
OPENDAL_SUITE(OpendalCreateDir);

TEST_P(OpendalCreateDir, new_one) {
  ASSERT_OK(create_dir("a/b/c/"));
  const auto found = stat("a/b/c/");
  ASSERT_OK(found);
  EXPECT_TRUE(found->is_directory());
  EXPECT_KIND(create_dir("a/b/d"), FileErrorKind::not_a_directory);
  EXPECT_FALSE(exists("a/b/d"));
}

TEST_P(OpendalCreateDir, existing) {
  ASSERT_OK(create_dir("dir/"));
  const std::string before = etag_of("dir/");
  ASSERT_OK(create_dir("dir/"));
  ASSERT_OK(create_dir("/"));
  EXPECT_EQ(etag_of("dir/"), before);
  written("file");
  EXPECT_KIND(create_dir("file/"), FileErrorKind::not_a_directory);
  EXPECT_KIND(create_dir("file/dir/"), FileErrorKind::not_a_directory);
}

}  // namespace
}  // namespace trellis
