// 21 cases. Left out, as the suite does by capability:
//   source_version, source_version_not_existing: there are no versions of a file.
#include "fs/opendal_fixture.h"

namespace trellis {
namespace {

class OpendalCopy : public OpendalTest {
 protected:
  // By a copier, to its end; how many steps it took.
  Result<int> copy_by_copier(ByteView from, ByteView to, const CopyOptions& options = {}) {
    return again([&]() -> Result<int> {
      TRY_ASSIGN(FileCopier copier, world_.files().copier(opendal_writer, from, to, options));
      for (int steps = 0;; steps++) {
        TRY_ASSIGN(const auto copied, copier.next());
        if (copied) continue;
        TRY_ASSIGN(const auto done, copier.next());
        EXPECT_FALSE(done.has_value());  // for ever
        EXPECT_EQ(copier.metadata().attributes.size, copier.size());
        return steps;
      }
    });
  }
};
OPENDAL_SUITE(OpendalCopy);

TEST_P(OpendalCopy, file_with_ascii_name) {
  const Bytes content = written("from");
  const auto copied = copy("from", "to");
  ASSERT_OK(copied);
  expect_content("to", content);
  expect_content("from", content);
  const auto found = stat("to");
  ASSERT_OK(found);
  EXPECT_EQ(*found, *copied);
}

TEST_P(OpendalCopy, file_with_non_ascii_name) {
  const Bytes content = written("🐂🍺中文.docx");
  ASSERT_OK(copy("🐂🍺中文.docx", "😈🐅Français.docx"));
  expect_content("😈🐅Français.docx", content);
  ASSERT_OK(copy("😈🐅Français.docx", "\xff\x01\x80"));  // no text at all
  expect_content("\xff\x01\x80", content);
}

TEST_P(OpendalCopy, non_existing_source) {
  EXPECT_KIND(copy("nothing", "to"), FileErrorKind::not_found);
  EXPECT_FALSE(exists("to"));
}

TEST_P(OpendalCopy, source_dir) {
  ASSERT_OK(create_dir("from/"));
  EXPECT_KIND(copy("from/", "to"), FileErrorKind::is_a_directory);
  EXPECT_KIND(copy("from", "to"), FileErrorKind::is_a_directory);
}

TEST_P(OpendalCopy, target_dir) {
  written("from");
  ASSERT_OK(create_dir("to/"));
  EXPECT_KIND(copy("from", "to/"), FileErrorKind::is_a_directory);
  EXPECT_KIND(copy("from", "to"), FileErrorKind::is_a_directory);
}

TEST_P(OpendalCopy, self) {
  const Bytes content = written("file");
  EXPECT_KIND(copy("file", "file"), FileErrorKind::is_same_file);
  EXPECT_KIND(copy("file", "//file"), FileErrorKind::is_same_file);
  expect_content("file", content);
}

TEST_P(OpendalCopy, nested) {
  const Bytes content = written("from");
  ASSERT_OK(copy("from", "a/b/to"));
  expect_content("a/b/to", content);
}

TEST_P(OpendalCopy, overwrite) {
  const Bytes content = written("from");
  written("to");
  ASSERT_OK(copy("from", "to"));
  expect_content("to", content);
}

TEST_P(OpendalCopy, if_not_exists_to_new_file) {
  const Bytes content = written("from");
  ASSERT_OK(copy("from", "to", {.conditions = {.if_not_exists = true}}));
  expect_content("to", content);
}

TEST_P(OpendalCopy, if_not_exists_to_existing_file) {
  written("from");
  const Bytes content = written("to");
  EXPECT_KIND(copy("from", "to", {.conditions = {.if_not_exists = true}}),
              FileErrorKind::condition_not_match);
  expect_content("to", content);
}

TEST_P(OpendalCopy, copier_if_not_exists_to_new_file) {
  const Bytes content = written("from");
  ASSERT_OK(copy_by_copier("from", "to", {.conditions = {.if_not_exists = true}}));
  expect_content("to", content);
}

TEST_P(OpendalCopy, copier_if_not_exists_to_existing_file) {
  written("from");
  const Bytes content = written("to");
  EXPECT_KIND(copy_by_copier("from", "to", {.conditions = {.if_not_exists = true}}),
              FileErrorKind::condition_not_match);
  expect_content("to", content);
}

TEST_P(OpendalCopy, if_match) {
  const Bytes content = written("from");
  written("to");
  ASSERT_OK(copy("from", "to", {.conditions = {.if_match = etag_of("to")}}));
  expect_content("to", content);
}

TEST_P(OpendalCopy, if_match_of_another) {
  written("from");
  const Bytes content = written("to");
  EXPECT_KIND(copy("from", "to", {.conditions = {.if_match = etag_of("from")}}),
              FileErrorKind::condition_not_match);
  EXPECT_KIND(copy("from", "new", {.conditions = {.if_match = etag_of("to")}}),
              FileErrorKind::condition_not_match);
  expect_content("to", content);
  EXPECT_FALSE(exists("new"));
}

TEST_P(OpendalCopy, chunk) {
  const Bytes content = written("from");
  const auto steps = copy_by_copier("from", "to", {.chunk_bytes = 64 * 1024});
  ASSERT_OK(steps);
  EXPECT_EQ(*steps, 4);
  expect_content("to", content);
}

TEST_P(OpendalCopy, chunk_concurrent) {
  const Bytes content = written("from");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&, i] {
      EXPECT_OK(copy_by_copier("from", "to-" + std::to_string(i), {.chunk_bytes = 100'000}));
    });
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; i++) expect_content("to-" + std::to_string(i), content);
}

TEST_P(OpendalCopy, copier_file) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4'096}, size_t{4'097}, several_blocks}) {
    const Bytes content = some_bytes(size);
    ASSERT_OK(write("from", content));
    ASSERT_OK(copy_by_copier("from", "to"));
    expect_content("to", content);
  }
}

TEST_P(OpendalCopy, copier_completion) {
  written("from");
  // Nothing appears before the end.
  const Status done = again([&]() -> Status {
    TRY_ASSIGN(FileCopier copier, world_.files().copier(opendal_writer, "from", "to"));
    for (;;) {
      EXPECT_FALSE(exists("to"));
      TRY_ASSIGN(const auto copied, copier.next());
      if (!copied) break;
    }
    EXPECT_TRUE(exists("to"));
    TRY_ASSIGN(const auto more, copier.next());
    EXPECT_FALSE(more.has_value());
    return {};
  });
  EXPECT_OK(done);
}

TEST_P(OpendalCopy, copier_abort) {
  written("from");
  const Status aborted = again([&]() -> Status {
    TRY_ASSIGN(FileCopier copier, world_.files().copier(opendal_writer, "from", "to"));
    TRY(copier.next());
    return copier.abort();
  });
  EXPECT_OK(aborted);
  EXPECT_FALSE(exists("to"));
}

}  // namespace
}  // namespace trellis
