// 30 cases, all of them. What OpenDAL calls concurrent is parts of one file that go up side by
// side; a file here is written in order, and those cases are of several files at the same time.
#include "fs/opendal_fixture.h"

namespace trellis {
namespace {

constexpr size_t large = (size_t{2} << 20) + 12'345;

class OpendalWrite : public OpendalTest {
 protected:
  void expect_headers(const FileHeaders& headers) {
    for (const size_t size : {size_t{5}, several_blocks}) {
      const auto wrote = write("file", some_bytes(size), {.headers = headers});
      ASSERT_OK(wrote);
      const auto found = stat("file");
      ASSERT_OK(found);
      EXPECT_EQ(found->headers, headers);
      EXPECT_EQ(*found, *wrote);
    }
    ASSERT_OK(write("file", "without"));  // they are not the next one's
    const auto found = stat("file");
    ASSERT_OK(found);
    EXPECT_TRUE(found->headers.empty());
  }
  void write_at_the_same_time(size_t piece_bytes) {
    const Bytes content = some_bytes(large);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
      threads.emplace_back([&, i] {
        EXPECT_OK(write_by_writer("dir/file-" + std::to_string(i), content, piece_bytes));
      });
    for (std::thread& thread : threads) thread.join();
    for (int i = 0; i < 4; i++) expect_content("dir/file-" + std::to_string(i), content);
  }
  // From a reader to a writer, without all of it in memory.
  Status pump(ByteView from, ByteView to) {
    return again([&]() -> Status {
      TRY_ASSIGN(FileReader reader, world_.files().reader(caller_, from));
      TRY_ASSIGN(FileWriter writer, world_.files().writer(opendal_writer, to));
      std::vector<char> piece(256 * 1024);
      for (;;) {
        TRY_ASSIGN(const size_t got, reader.read(piece));
        if (got == 0) break;
        TRY(writer.write({piece.data(), got}));
      }
      TRY(writer.close());
      return {};
    });
  }
  void expect_abort_leaves_nothing(ByteView path) {
    const Status aborted = again([&]() -> Status {
      TRY_ASSIGN(FileWriter writer, world_.files().writer(opendal_writer, path));
      const Bytes content(large, 'x');
      TRY(writer.write(content));
      TRY(writer.abort());
      EXPECT_FALSE(writer.write("more").has_value());
      EXPECT_FALSE(writer.close().has_value());
      return {};
    });
    EXPECT_OK(aborted);
  }
};
OPENDAL_SUITE(OpendalWrite);

TEST_P(OpendalWrite, only) {
  const Bytes content = written("file");
  const auto found = stat("file");
  ASSERT_OK(found);
  EXPECT_EQ(found->attributes.size, content.size());
}

TEST_P(OpendalWrite, empty) {
  ASSERT_OK(write("file", ""));
  const auto found = stat("file");
  ASSERT_OK(found);
  EXPECT_EQ(found->attributes.size, 0U);
  expect_content("file", "");
}

TEST_P(OpendalWrite, dir_path) {
  EXPECT_KIND(write("dir/", "content"), FileErrorKind::is_a_directory);
  ASSERT_OK(create_dir("dir/"));
  EXPECT_KIND(write("dir", "content"), FileErrorKind::is_a_directory);
  EXPECT_KIND(write("/", "content"), FileErrorKind::is_a_directory);
  written("file");
  EXPECT_KIND(write("file/below", "content"), FileErrorKind::not_a_directory);
}

TEST_P(OpendalWrite, special_chars) {
  const Bytes path = "write" + Bytes(special_chars);
  const Bytes content = written(path);
  expect_content(path, content);
}

TEST_P(OpendalWrite, cache_control) { expect_headers({.cache_control = "no-cache, no-store"}); }
TEST_P(OpendalWrite, content_type) { expect_headers({.content_type = "application/json"}); }
TEST_P(OpendalWrite, content_disposition) {
  expect_headers({.content_disposition = "attachment; filename=\"filename.jpg\""});
}
TEST_P(OpendalWrite, content_encoding) { expect_headers({.content_encoding = "gzip"}); }
TEST_P(OpendalWrite, user_metadata) {
  expect_headers(
      {.user = {{"location", "everywhere"}, {"empty", ""}, {"b\xff", Bytes(5'000, 'x')}}});
  EXPECT_KIND(write("file", "", {.headers = {.content_type = Bytes(100'000, 'x')}}),
              FileErrorKind::config_invalid);
}

TEST_P(OpendalWrite, returns_metadata) {
  for (const size_t size : {size_t{0}, size_t{4'096}, several_blocks})
    for (int round = 0; round < 2; round++) {  // new, and in place of one
      const auto wrote = write("file-" + std::to_string(size), some_bytes(size));
      ASSERT_OK(wrote);
      const auto found = stat("file-" + std::to_string(size));
      ASSERT_OK(found);
      EXPECT_EQ(*found, *wrote);
      EXPECT_EQ(found->etag(), wrote->etag());
    }
}

TEST_P(OpendalWrite, writer_returns_metadata) {
  const auto wrote = write_by_writer("file", some_bytes(large), 100'000);
  ASSERT_OK(wrote);
  const auto found = stat("file");
  ASSERT_OK(found);
  EXPECT_EQ(*found, *wrote);
}

TEST_P(OpendalWrite, writer) {
  const Bytes content = some_bytes(large);
  ASSERT_OK(write_by_writer("file", content, content.size() / 2));
  expect_content("file", content);
}

TEST_P(OpendalWrite, writer_concurrent) { write_at_the_same_time(large / 2); }

TEST_P(OpendalWrite, writer_sink) {
  const Bytes content = some_bytes(large);
  ASSERT_OK(write_by_writer("file", content, 999));
  expect_content("file", content);
}

TEST_P(OpendalWrite, writer_sink_concurrent) { write_at_the_same_time(50'001); }

TEST_P(OpendalWrite, writer_futures_copy) {
  const Bytes content = some_bytes(large);
  ASSERT_OK(write("from", content));
  ASSERT_OK(pump("from", "to"));
  expect_content("to", content);
}

TEST_P(OpendalWrite, writer_futures_copy_concurrent) {
  const Bytes content = some_bytes(large);
  ASSERT_OK(write("from", content));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&, i] { EXPECT_OK(pump("from", "to-" + std::to_string(i))); });
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; i++) expect_content("to-" + std::to_string(i), content);
}

TEST_P(OpendalWrite, writer_abort) {
  expect_abort_leaves_nothing("new/dir/file");
  EXPECT_FALSE(exists("new/dir/file"));
  EXPECT_FALSE(exists("new/"));
  const Bytes content = written("file");
  expect_abort_leaves_nothing("file");
  expect_content("file", content);
}

TEST_P(OpendalWrite, writer_abort_concurrent) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&, i] { expect_abort_leaves_nothing("file-" + std::to_string(i)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(list("/"), std::vector<std::string>{"/"});
}

TEST_P(OpendalWrite, writer_overwrite) {
  const Bytes longer = some_bytes(large);
  const Bytes shorter = some_bytes(several_blocks);
  ASSERT_OK(write_by_writer("file", longer, 100'000));
  expect_content("file", longer);
  const std::string etag = etag_of("file");
  ASSERT_OK(write_by_writer("file", shorter, 100'000));
  expect_content("file", shorter);
  EXPECT_NE(etag_of("file"), etag);
}

TEST_P(OpendalWrite, writer_non_contiguous) {
  const Bytes content = some_bytes(large);
  const auto wrote = again([&]() -> Result<FileMetadata> {
    TRY_ASSIGN(FileWriter writer, world_.files().writer(opendal_writer, "file"));
    size_t at = 0;
    for (size_t size = 1; at < content.size(); size = size * 7 + 3) {
      const Bytes piece = content.substr(at, size);  // dies before the file is closed
      TRY(writer.write(piece));
      TRY(writer.write({}));
      at += piece.size();
    }
    return writer.close();
  });
  ASSERT_OK(wrote);
  expect_content("file", content);
}

TEST_P(OpendalWrite, if_none_match) {
  const Bytes content = written("file");
  EXPECT_KIND(write("file", "other", {.conditions = {.if_none_match = etag_of("file")}}),
              FileErrorKind::condition_not_match);
  EXPECT_KIND(write("file", "other", {.conditions = {.if_none_match = "*"}}),
              FileErrorKind::condition_not_match);
  expect_content("file", content);
  EXPECT_OK(write("new", "other", {.conditions = {.if_none_match = "*"}}));
  EXPECT_OK(write("file", "other", {.conditions = {.if_none_match = etag_of("new")}}));
  expect_content("file", "other");
}

TEST_P(OpendalWrite, writer_if_none_match) {
  const Bytes content = written("file");
  const WriteOptions as_is{.conditions = {.if_none_match = etag_of("file")}};
  EXPECT_KIND(write_by_writer("file", some_bytes(large), 100'000, as_is),
              FileErrorKind::condition_not_match);
  expect_content("file", content);
}

TEST_P(OpendalWrite, if_not_exists) {
  const WriteOptions new_one{.conditions = {.if_not_exists = true}};
  for (const size_t size : {size_t{10}, several_blocks}) {
    const std::string path = "file-" + std::to_string(size);
    const Bytes content = some_bytes(size);
    ASSERT_OK(write(path, content, new_one));
    EXPECT_KIND(write(path, some_bytes(size), new_one), FileErrorKind::condition_not_match);
    expect_content(path, content);
  }
}

TEST_P(OpendalWrite, writer_if_not_exists) {
  const WriteOptions new_one{.conditions = {.if_not_exists = true}};
  const Bytes content = some_bytes(large);
  ASSERT_OK(write_by_writer("file", content, 100'000, new_one));
  EXPECT_KIND(write_by_writer("file", some_bytes(large), 100'000, new_one),
              FileErrorKind::condition_not_match);
  expect_content("file", content);
}

TEST_P(OpendalWrite, if_match) {
  for (const size_t size : {size_t{10}, several_blocks}) {
    ASSERT_OK(write("file", some_bytes(size)));
    const std::string etag = etag_of("file");
    EXPECT_KIND(write("file", "x", {.conditions = {.if_match = "\"no\""}}),
                FileErrorKind::condition_not_match);
    const Bytes content = some_bytes(size);
    ASSERT_OK(write("file", content, {.conditions = {.if_match = etag}}));
    EXPECT_KIND(write("file", "x", {.conditions = {.if_match = etag}}),
                FileErrorKind::condition_not_match);
    expect_content("file", content);
  }
  EXPECT_KIND(write("new", "x", {.conditions = {.if_match = "*"}}),
              FileErrorKind::condition_not_match);
  EXPECT_OK(write("file", "x", {.conditions = {.if_match = "*"}}));
}

TEST_P(OpendalWrite, writer_if_match) {
  written("file");
  const WriteOptions as_is{.conditions = {.if_match = etag_of("file")}};
  const Bytes content = some_bytes(large);
  ASSERT_OK(write_by_writer("file", content, 100'000, as_is));
  EXPECT_KIND(write_by_writer("file", some_bytes(large), 100'000, as_is),
              FileErrorKind::condition_not_match);
  expect_content("file", content);
}

TEST_P(OpendalWrite, with_append) {
  const Bytes first = some_bytes(10);
  const Bytes second = some_bytes(several_blocks);
  ASSERT_OK(append("dir/file", first));
  ASSERT_OK(append("dir/file", second));
  expect_content("dir/file", first + second);
  ASSERT_OK(append("dir/file", first));
  expect_content("dir/file", first + second + first);
  EXPECT_KIND(append("dir/", first), FileErrorKind::is_a_directory);
  EXPECT_KIND(append("dir", first), FileErrorKind::is_a_directory);
}

TEST_P(OpendalWrite, with_append_returns_metadata) {
  for (int round = 0; round < 2; round++) {
    const auto appended = append("file", some_bytes(several_blocks));
    ASSERT_OK(appended);
    const auto found = stat("file");
    ASSERT_OK(found);
    EXPECT_EQ(*found, *appended);
  }
}

TEST_P(OpendalWrite, writer_with_append) {
  Bytes content;
  for (int i = 0; i < 50; i++) {
    const Bytes piece = some_bytes(random_.below(9'000));
    ASSERT_OK(append("file", piece));
    content += piece;
  }
  expect_content("file", content);
}

}  // namespace
}  // namespace trellis
