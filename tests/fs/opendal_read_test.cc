// 37 cases. Left out, as the suite does by capability:
//   override_cache_control, override_content_disposition, override_content_type: what a response
//     says in place of what is stored is for those who make responses, not for this library.
//   with_version, with_not_existing_version: there are no versions of a file.
#include "fs/opendal_fixture.h"

namespace trellis {
namespace {

constexpr int64_t second_ns = 1'000'000'000;

class OpendalRead : public OpendalTest {
 protected:
  // Both ways of reading answer the same.
  void expect_range(ByteView path, const ReadOptions& options, ByteView content) {
    for (const auto& found : {read(path, options), read_by_reader(path, options)}) {
      ASSERT_OK(found);
      EXPECT_TRUE(*found == content) << found->size() << " bytes, not " << content.size();
    }
  }
};
OPENDAL_SUITE(OpendalRead);

TEST_P(OpendalRead, full) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{4'096}, size_t{4'097}, several_blocks, size_t{3} << 20}) {
    const Bytes content = some_bytes(size);
    ASSERT_OK(write("file", content));
    expect_content("file", content);
  }
}

TEST_P(OpendalRead, range) {
  const Bytes content = written("file");
  const ByteView all = content;
  expect_range("file", {.offset = 0, .size = 1}, all.substr(0, 1));
  expect_range("file", {.offset = 65'530, .size = 100'000}, all.substr(65'530, 100'000));
  expect_range("file", {.offset = 10, .size = all.size() - 10}, all.substr(10));
  expect_range("file", {.offset = 100'000}, all.substr(100'000));
  // Past the end: nothing if it is open, an error if it is not.
  expect_range("file", {.offset = all.size()}, "");
  expect_range("file", {.offset = all.size() + 1'000}, "");
  expect_range("file", {.offset = all.size() + 1'000, .size = 0}, "");
  for (const ReadOptions& options : {ReadOptions{.offset = 0, .size = all.size() + 1},
                                     {.offset = all.size(), .size = 1},
                                     {.offset = UINT64_MAX, .size = UINT64_MAX},
                                     {.offset = 1, .size = UINT64_MAX}})
    EXPECT_KIND(read("file", options), FileErrorKind::range_not_satisfied);
}

TEST_P(OpendalRead, suffix) {
  const Bytes content = written("file");
  expect_range("file", {.suffix = 70'000}, ByteView(content).substr(content.size() - 70'000));
}

TEST_P(OpendalRead, suffix_of_more_than_the_file) {
  const Bytes content = written("file");
  expect_range("file", {.suffix = content.size() + 1'000}, content);
}

TEST_P(OpendalRead, suffix_of_zero) {
  written("file");
  expect_range("file", {.suffix = 0}, "");
}

TEST_P(OpendalRead, suffix_in_chunks) {
  const Bytes content = some_bytes(several_blocks * 3);
  ASSERT_OK(write("file", content));
  const auto found = read_by_reader("file", {.suffix = 400'000});  // more than is read at once
  ASSERT_OK(found);
  EXPECT_TRUE(*found == ByteView(content).substr(content.size() - 400'000));
}

TEST_P(OpendalRead, reader) {
  const Bytes content = some_bytes(several_blocks * 5);
  ASSERT_OK(write("file", content));
  const auto found = read_by_reader("file");
  ASSERT_OK(found);
  EXPECT_TRUE(*found == content);
  const Status anywhere = again([&]() -> Status {
    TRY_ASSIGN(FileReader reader, world_.files().reader(caller_, "file"));
    std::vector<char> piece(1'000);
    for (const uint64_t offset : {900'000, 5, 65'000}) {
      TRY_ASSIGN(const size_t got, reader.read_at(offset, piece));
      EXPECT_EQ(ByteView(piece.data(), got), ByteView(content).substr(offset, got));
      EXPECT_GT(got, 0U);
    }
    return {};
  });
  EXPECT_OK(anywhere);
}

TEST_P(OpendalRead, stream_metadata) {
  written("file");
  const auto found = metadata_of_reader("file");
  const auto stated = stat("file");
  ASSERT_OK(found);
  ASSERT_OK(stated);
  EXPECT_EQ(*found, *stated);
}

TEST_P(OpendalRead, stream_metadata_of_range) {
  written("file");
  const auto found = metadata_of_reader("file", {.offset = 10, .size = 20});
  const auto stated = stat("file");
  ASSERT_OK(found);
  ASSERT_OK(stated);
  EXPECT_EQ(*found, *stated);
}

TEST_P(OpendalRead, stream_metadata_of_suffix) {
  written("file");
  const auto found = metadata_of_reader("file", {.suffix = 20});
  const auto stated = stat("file");
  ASSERT_OK(found);
  ASSERT_OK(stated);
  EXPECT_EQ(*found, *stated);
}

TEST_P(OpendalRead, stream_metadata_of_headers) {
  const FileHeaders headers{.content_type = "text/plain", .user = {{"a", "b"}}};
  ASSERT_OK(write("file", "content", {.headers = headers}));
  const auto found = metadata_of_reader("file");
  ASSERT_OK(found);
  EXPECT_EQ(found->headers, headers);
}

TEST_P(OpendalRead, not_exist) {
  EXPECT_KIND(read("nothing"), FileErrorKind::not_found);
  EXPECT_KIND(read("nothing/below"), FileErrorKind::not_found);
}

TEST_P(OpendalRead, dir_path) {
  ASSERT_OK(create_dir("dir/"));
  EXPECT_KIND(read("dir/"), FileErrorKind::is_a_directory);
  EXPECT_KIND(read("dir"), FileErrorKind::is_a_directory);
}

TEST_P(OpendalRead, special_chars) {
  const Bytes path = "read" + Bytes(special_chars);
  expect_content(path, written(path));
}

#define EXPECT_READ_CONDITION(reads)                                                            \
  const Bytes content = written("file");                                                        \
  const auto holds = [&](const ReadConditions& conditions) {                                    \
    const auto found = reads("file", {.conditions = conditions});                               \
    EXPECT_OK(found);                                                                           \
    EXPECT_TRUE(found&&* found == content);                                                     \
  };                                                                                            \
  const auto fails = [&](const ReadConditions& conditions) {                                    \
    EXPECT_KIND(reads("file", {.conditions = conditions}), FileErrorKind::condition_not_match); \
  }

TEST_P(OpendalRead, if_match) {
  EXPECT_READ_CONDITION(read);
  fails({.if_match = "\"no\""});
  holds({.if_match = etag_of("file")});
  holds({.if_match = "*"});
}
TEST_P(OpendalRead, reader_if_match) {
  EXPECT_READ_CONDITION(read_by_reader);
  fails({.if_match = "\"no\""});
  holds({.if_match = etag_of("file")});
}
TEST_P(OpendalRead, if_none_match) {
  EXPECT_READ_CONDITION(read);
  fails({.if_none_match = etag_of("file")});
  fails({.if_none_match = "*"});
  holds({.if_none_match = "\"no\""});
}
TEST_P(OpendalRead, reader_if_none_match) {
  EXPECT_READ_CONDITION(read_by_reader);
  fails({.if_none_match = etag_of("file")});
  holds({.if_none_match = "\"no\""});
}
TEST_P(OpendalRead, if_modified_since) {
  EXPECT_READ_CONDITION(read);
  holds({.if_modified_since_ns = now_ns() - second_ns});
  fails({.if_modified_since_ns = now_ns()});
  fails({.if_modified_since_ns = now_ns() + second_ns});
}
TEST_P(OpendalRead, reader_if_modified_since) {
  EXPECT_READ_CONDITION(read_by_reader);
  holds({.if_modified_since_ns = now_ns() - second_ns});
  fails({.if_modified_since_ns = now_ns() + second_ns});
}
TEST_P(OpendalRead, if_unmodified_since) {
  EXPECT_READ_CONDITION(read);
  fails({.if_unmodified_since_ns = now_ns() - second_ns});
  holds({.if_unmodified_since_ns = now_ns()});
  holds({.if_unmodified_since_ns = now_ns() + second_ns});
}
TEST_P(OpendalRead, reader_if_unmodified_since) {
  EXPECT_READ_CONDITION(read_by_reader);
  fails({.if_unmodified_since_ns = now_ns() - second_ns});
  holds({.if_unmodified_since_ns = now_ns() + second_ns});
}

// The same for who may only read.
class OpendalReadOnly : public OpendalRead {
 protected:
  void SetUp() override {
    OpendalTest::SetUp();
    content_ = written("dir/file");
    caller_ = opendal_reader;
  }
  Bytes content_;
};
OPENDAL_SUITE(OpendalReadOnly);

TEST_P(OpendalReadOnly, full) {
  expect_content("dir/file", content_);
  EXPECT_KIND(again([&] { return world_.files().write(caller_, "new", ""); }),
              FileErrorKind::permission_denied);
}
TEST_P(OpendalReadOnly, full_with_special_chars) {
  const Bytes path = "only" + Bytes(special_chars);
  expect_content(path, written(path));
}
TEST_P(OpendalReadOnly, range) {
  expect_range("dir/file", {.offset = 7, .size = 70'000}, ByteView(content_).substr(7, 70'000));
}
TEST_P(OpendalReadOnly, suffix) {
  expect_range("dir/file", {.suffix = 9}, ByteView(content_).substr(content_.size() - 9));
}
TEST_P(OpendalReadOnly, not_exist) { EXPECT_KIND(read("dir/nothing"), FileErrorKind::not_found); }
TEST_P(OpendalReadOnly, dir_path) { EXPECT_KIND(read("dir/"), FileErrorKind::is_a_directory); }
TEST_P(OpendalReadOnly, if_match) {
  EXPECT_OK(read("dir/file", {.conditions = {.if_match = etag_of("dir/file")}}));
  EXPECT_KIND(read("dir/file", {.conditions = {.if_match = "no"}}),
              FileErrorKind::condition_not_match);
}
TEST_P(OpendalReadOnly, if_none_match) {
  EXPECT_OK(read("dir/file", {.conditions = {.if_none_match = "no"}}));
  EXPECT_KIND(read("dir/file", {.conditions = {.if_none_match = etag_of("dir/file")}}),
              FileErrorKind::condition_not_match);
}
TEST_P(OpendalReadOnly, if_modified_since) {
  EXPECT_OK(read("dir/file", {.conditions = {.if_modified_since_ns = now_ns() - second_ns}}));
  EXPECT_KIND(read("dir/file", {.conditions = {.if_modified_since_ns = now_ns() + second_ns}}),
              FileErrorKind::condition_not_match);
}
TEST_P(OpendalReadOnly, if_unmodified_since) {
  EXPECT_OK(read("dir/file", {.conditions = {.if_unmodified_since_ns = now_ns() + second_ns}}));
  EXPECT_KIND(read("dir/file", {.conditions = {.if_unmodified_since_ns = now_ns() - second_ns}}),
              FileErrorKind::condition_not_match);
}

}  // namespace
}  // namespace trellis
