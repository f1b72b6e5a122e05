#include "support/power_loss_file_system.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <iostream>

namespace trellis {
namespace {

class PowerLossFileSystemTest : public testing::Test {
 protected:
  void SetUp() override {
    ok(env_->CreateDirIfMissing("/d"));
    sync_folder("/");
  }

  static void ok(const rocksdb::Status& status) { ASSERT_TRUE(status.ok()) << status.ToString(); }
  void sync_folder(const std::string& path) {
    std::unique_ptr<rocksdb::Directory> folder;
    ok(env_->NewDirectory(path, &folder));
    ok(folder->Fsync());
  }
  std::unique_ptr<rocksdb::WritableFile> create(const std::string& path) {
    std::unique_ptr<rocksdb::WritableFile> file;
    ok(env_->NewWritableFile(path, &file, {}));
    return file;
  }
  bool exists(const std::string& path) { return env_->FileExists(path).ok(); }
  void crash(uint64_t seed) {
    Random random(seed);
    files_->cut_power(random);
    files_->restore_power();
  }

  std::shared_ptr<PowerLossFileSystem> files_ = std::make_shared<PowerLossFileSystem>();
  std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(files_);
};

TEST_F(PowerLossFileSystemTest, SyncedDataInASyncedFolderSurvives) {
  for (uint64_t seed = 0; seed < 50; seed++) {
    SCOPED_TRACE(seed);
    const std::string content = Random(seed).bytes(10'000);
    auto file = create("/d/f");
    ok(file->Append(content));
    ok(file->Sync());
    sync_folder("/d");
    ok(file->Append("more"));
    crash(seed);
    EXPECT_EQ(files_->read_file("/d/f").substr(0, content.size()), content);
  }
}

TEST_F(PowerLossFileSystemTest, WithoutAFolderSyncAFileMayBeLostOrNot) {
  bool lost = false;
  bool kept = false;
  for (uint64_t seed = 0; seed < 50; seed++) {
    auto file = create("/d/f");
    ok(file->Append("x"));
    ok(file->Sync());
    crash(seed);
    (exists("/d/f") ? kept : lost) = true;
    if (exists("/d/f")) {
      EXPECT_EQ(files_->read_file("/d/f"), "x");
      files_->remove_file("/d/f");
    }
  }
  EXPECT_TRUE(lost);
  EXPECT_TRUE(kept);
}

// Pages that were not synced come and go on their own: holes read as zeros, the end is torn.
TEST_F(PowerLossFileSystemTest, UnsyncedPagesAreKeptDroppedReorderedAndTorn) {
  const std::string content(40 * 4096, 'x');
  int whole = 0, nothing = 0, holes = 0, torn = 0;
  for (uint64_t seed = 0; seed < 200; seed++) {
    auto file = create("/d/f");
    sync_folder("/d");
    ok(file->Append(content));
    crash(seed);
    const std::string left = files_->read_file("/d/f");
    ASSERT_LE(left.size(), content.size());
    for (size_t at = 0; at < left.size(); at += 4096) {
      const std::string page = left.substr(at, 4096);
      EXPECT_TRUE(page == std::string(page.size(), 'x') || page == std::string(page.size(), '\0'));
    }
    whole += left == content;
    nothing += left.empty();
    holes += left.find('\0') != std::string::npos;
    torn += left.size() % 512 != 0;
  }
  std::cout << "of 200 cuts (seeds 0 to 199): " << whole << " whole, " << nothing << " empty, "
            << holes << " with holes, " << torn << " torn\n";
  EXPECT_GT(whole, 0);
  EXPECT_GT(nothing, 0);
  EXPECT_GT(holes, 0);
  EXPECT_GT(torn, 0);
}

TEST_F(PowerLossFileSystemTest, UnsyncedNamesKeepTheirOrder) {
  bool undone = false;
  bool half = false;
  bool done = false;
  for (uint64_t seed = 0; seed < 100; seed++) {
    SCOPED_TRACE(seed);
    for (const char* name : {"/d/old", "/d/new"}) files_->replace_file(name, name);
    ok(env_->RenameFile("/d/new", "/d/old"));
    ok(env_->DeleteFile("/d/old"));
    crash(seed);
    undone |= exists("/d/new");
    half |= !exists("/d/new") && exists("/d/old") && files_->read_file("/d/old") == "/d/new";
    done |= !exists("/d/new") && !exists("/d/old");
    if (exists("/d/new")) {
      EXPECT_TRUE(exists("/d/old"));  // never the deletion without the rename
    }
  }
  EXPECT_TRUE(undone && half && done);
}

TEST_F(PowerLossFileSystemTest, NothingWorksWithoutPowerAndOldHandlesStayDead) {
  auto file = create("/d/f");
  sync_folder("/d");
  ASSERT_TRUE(file->IsSyncThreadSafe());
  Random random(1);
  files_->cut_power(random);
  EXPECT_FALSE(file->Append("x").ok());
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_FALSE(exists("/d/f"));
  std::unique_ptr<rocksdb::WritableFile> other;
  EXPECT_FALSE(env_->NewWritableFile("/d/g", &other, {}).ok());
  files_->restore_power();
  EXPECT_TRUE(exists("/d/f"));
  EXPECT_FALSE(file->Append("x").ok());
  EXPECT_TRUE(create("/d/f")->Append("x").ok());
}

TEST_F(PowerLossFileSystemTest, AFullDiskTakesWhatFits) {
  auto file = create("/d/f");
  files_->set_capacity(5);
  const rocksdb::Status status = file->Append("12345678");
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_EQ(files_->read_file("/d/f"), "12345");
  files_->set_capacity(std::nullopt);
  EXPECT_TRUE(file->Append("6").ok());
}

TEST_F(PowerLossFileSystemTest, HooksFailAndChangeWrites) {
  int writes = 0;
  files_->set_write_hook([&](const std::string& path, std::string& data) {
    EXPECT_EQ(path, "/d/f");
    if (++writes == 2) return rocksdb::IOStatus::IOError("second write");
    data[0] = '#';
    return rocksdb::IOStatus::OK();
  });
  files_->set_sync_hook([](const std::string&) { return rocksdb::IOStatus::IOError("no sync"); });
  auto file = create("/d/f");
  EXPECT_TRUE(file->Append("abc").ok());
  EXPECT_FALSE(file->Append("def").ok());
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_EQ(files_->read_file("/d/f"), "#bc");
}

TEST_F(PowerLossFileSystemTest, ALockIsHeldOnceAndEndsWithThePower) {
  rocksdb::FileLock* first = nullptr;
  rocksdb::FileLock* second = nullptr;
  ok(env_->LockFile("/d/LOCK", &first));
  EXPECT_FALSE(env_->LockFile("/d/LOCK", &second).ok());
  sync_folder("/d");
  crash(1);
  ok(env_->LockFile("/d/LOCK", &second));
  ok(env_->UnlockFile(first));  // of a machine that is gone: frees nothing
  rocksdb::FileLock* third = nullptr;
  EXPECT_FALSE(env_->LockFile("/d/LOCK", &third).ok());
  ok(env_->UnlockFile(second));
}

}  // namespace
}  // namespace trellis
