// The behaviour that OpenDAL's own suite asks of every service, as tests of files: one file for
// each operation, one test for each case, on every engine. Cases that need what we do not have, and
// that the suite itself would leave out for that, are named with the reason where they would be.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/random.h"
#include "fs/file_error_kind.h"
#include "fs/files_world.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {

inline const Caller opendal_writer{Role::write, "writer"};
inline const Caller opendal_reader{Role::read, "reader"};
// What a path may hold beside letters, as the suite has it.
inline constexpr ByteView special_chars = " !@#$%^&()_+-=;',.txt";
// A file of several blocks, the last one not full.
constexpr size_t several_blocks = 200'001;

#define EXPECT_KIND(expression, expected)                                       \
  do {                                                                          \
    const auto& kind_ = (expression);                                           \
    EXPECT_FALSE(kind_.has_value());                                            \
    if (!kind_.has_value()) {                                                   \
      EXPECT_EQ(to_string(file_error_kind(kind_.error())), to_string(expected)) \
          << kind_.error().message;                                             \
    }                                                                           \
  } while (false)

// Calls are made again where the answer says that nothing was done, and that it may work later:
// with an engine that fails all the time that answer must be true.
class OpendalTest : public testing::TestWithParam<FilesEngine> {
 protected:
  void SetUp() override { world_.backend().set_faults(true); }
  void TearDown() override {
    world_.backend().set_faults(false);
    world_.expect_nothing_is_left();
  }

  template <class Call>
  std::invoke_result_t<Call> again(Call call) {
    for (int attempt = 1;; attempt++) {
      auto answer = call();
      if (answer.has_value() || !world_.is_faulty() || attempt == 2'000 ||
          answer.error().code != Code::unavailable)
        return answer;
    }
  }

  Result<FileMetadata> stat(ByteView path, const StatOptions& options = {}) {
    return again([&] { return world_.files().stat(caller_, path, options); });
  }
  bool exists(ByteView path) {
    const auto found = again([&] { return world_.files().exists(caller_, path); });
    EXPECT_OK(found);
    return found.value_or(false);
  }
  Result<Bytes> read(ByteView path, const ReadOptions& options = {}) {
    return again([&] { return world_.files().read(caller_, path, options); });
  }
  // By a reader, in pieces of an odd size.
  Result<Bytes> read_by_reader(ByteView path, const ReadOptions& options = {}) {
    return again([&]() -> Result<Bytes> {
      TRY_ASSIGN(FileReader reader, world_.files().reader(caller_, path, options));
      Bytes content;
      std::vector<char> piece(70'001);
      for (;;) {
        TRY_ASSIGN(const size_t got, reader.read(piece));
        if (got == 0) return content;
        content.append(piece.data(), got);
      }
    });
  }
  Result<FileMetadata> metadata_of_reader(ByteView path, const ReadOptions& options = {}) {
    return again([&]() -> Result<FileMetadata> {
      TRY_ASSIGN(FileReader reader, world_.files().reader(caller_, path, options));
      return reader.metadata();
    });
  }
  Result<FileMetadata> write(ByteView path, ByteView content, const WriteOptions& options = {}) {
    return again([&] { return world_.files().write(opendal_writer, path, content, options); });
  }
  // By a writer, in pieces.
  Result<FileMetadata> write_by_writer(ByteView path, ByteView content, size_t piece_bytes,
                                       const WriteOptions& options = {}) {
    return again([&]() -> Result<FileMetadata> {
      TRY_ASSIGN(FileWriter writer, world_.files().writer(opendal_writer, path, options));
      for (size_t at = 0; at < content.size(); at += piece_bytes)
        TRY(writer.write(content.substr(at, piece_bytes)));
      return writer.close();
    });
  }
  Result<FileMetadata> append(ByteView path, ByteView content) {
    auto appended = again([&] { return world_.files().append(opendal_writer, path, content); });
    if (!appended && appended.error().reason == "appended") return stat(path);
    return appended;
  }
  Status create_dir(ByteView path) {
    return again([&] { return world_.files().create_dir(opendal_writer, path); });
  }
  Status remove(ByteView path) {
    return again([&] { return world_.files().remove(opendal_writer, path); });
  }
  Status remove_all(ByteView path) {
    return again([&] { return world_.files().remove_all(opendal_writer, path); });
  }
  Result<FileMetadata> copy(ByteView from, ByteView to, const CopyOptions& options = {}) {
    return again([&] { return world_.files().copy(opendal_writer, from, to, options); });
  }
  Status rename(ByteView from, ByteView to, const RenameOptions& options = {}) {
    return again([&] { return world_.files().rename(opendal_writer, from, to, options); });
  }
  Result<std::vector<ListedFile>> list_entries(ByteView path, const ListOptions& options = {}) {
    return again([&]() -> Result<std::vector<ListedFile>> {
      TRY_ASSIGN(FileLister lister, world_.files().lister(caller_, path, options));
      std::vector<ListedFile> all;
      for (;;) {
        TRY_ASSIGN(auto next, lister.next());
        if (!next) return all;
        all.push_back(std::move(*next));
      }
    });
  }
  std::vector<std::string> list(ByteView path, const ListOptions& options = {}) {
    const auto entries = list_entries(path, options);
    EXPECT_OK(entries);
    std::vector<std::string> paths;
    if (!entries) return paths;
    for (const ListedFile& entry : *entries) {
      paths.push_back(entry.path);
      EXPECT_EQ(entry.path.ends_with('/'), entry.entry.type == FileType::directory);
    }
    EXPECT_TRUE(std::is_sorted(paths.begin(), paths.end()) || paths[0] == "/");
    return paths;
  }

  Bytes some_bytes(size_t size) { return random_.bytes(size); }
  // A file of several blocks; what it holds.
  Bytes written(ByteView path) {
    Bytes content = some_bytes(several_blocks);
    EXPECT_OK(write(path, content));
    return content;
  }
  std::string etag_of(ByteView path) {
    const auto found = stat(path);
    EXPECT_OK(found);
    return found ? found->etag() : "";
  }
  int64_t now_ns() { return static_cast<int64_t>(world_.clock().unix_ms()) * 1'000'000; }
  void expect_content(ByteView path, ByteView content) {
    const auto found = read(path);
    ASSERT_OK(found);
    EXPECT_TRUE(*found == content) << "read " << found->size() << " bytes of " << content.size();
  }

  const uint64_t seed_ = test_seed(1);
  Random random_{seed_};
  FilesWorld world_{GetParam(), seed_};
  Caller caller_ = opendal_writer;  // who reads
};

#define OPENDAL_SUITE(suite)                                                     \
  INSTANTIATE_TEST_SUITE_P(Engines, suite, testing::ValuesIn(all_files_engines), \
                           [](const auto& info) { return name_of(info.param); })

}  // namespace trellis
