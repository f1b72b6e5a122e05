// Checkpoints on the real disk, where they are hard links.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "store_fixture.h"
#include "temporary_folder.h"

namespace trellis {
namespace {

class Checkpoints : public StoreFixture {
 protected:
  Result<std::unique_ptr<RocksdbEngine>> open_in(const std::filesystem::path& path,
                                                 bool create = true) {
    return open_rocksdb_engine(
        {.path = path, .clock = clock_, .cache_bytes = 8 << 20, .create_if_missing = create});
  }
  TemporaryFolder folder_;
};

TEST_F(Checkpoints, OpensAsAStoreOfItsOwn) {
  auto engine = open_in(folder_.path() / "store");
  ASSERT_TRUE(engine.has_value()) << to_string(engine.error());
  const BlockWrite block{{KeyspaceId{1}, DataId{1}, 0}, 3, "data"};
  ASSERT_TRUE((*engine)->blocks().write({&block, 1}).has_value());
  for (int i = 0; i < 1000; i++) {
    ASSERT_TRUE(put(**engine, std::to_string(i), "before").has_value());
  }
  const std::filesystem::path copy = folder_.path() / "copy";
  const Status made = (*engine)->checkpoint(copy);
  ASSERT_TRUE(made.has_value()) << to_string(made.error());
  ASSERT_TRUE(put(**engine, "5", "after").has_value());

  auto other = open_in(copy, false);  // while the first is open
  ASSERT_TRUE(other.has_value()) << to_string(other.error());
  for (int i = 0; i < 1000; i++) EXPECT_EQ(get(**other, std::to_string(i)), "before");
  Value value;
  ASSERT_TRUE((*other)->blocks().read({&block.block, 1}, {&value, 1}).has_value());
  EXPECT_EQ(value.bytes(), ByteView("\0\0\0data", 7));
  ASSERT_TRUE(put(**other, "6", "other").has_value());
  EXPECT_EQ(get(**engine, "6"), "before");
  EXPECT_EQ(get(**engine, "5"), "after");
  value = Value();
}

TEST_F(Checkpoints, RefusesAFolderThatIsThere) {
  auto engine = open_in(folder_.path() / "store");
  ASSERT_TRUE(engine.has_value());
  EXPECT_EQ((*engine)->checkpoint(folder_.path()).error().code, Code::exists);
  const Status nowhere = (*engine)->checkpoint(folder_.path() / "no" / "such" / "place");
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_EQ(nowhere.error().code, Code::invalid);
  EXPECT_NE(nowhere.error().message.find("make it or give another folder"), std::string::npos)
      << nowhere.error().message;
}

TEST_F(Checkpoints, ReplacesOneThatWasInterrupted) {
  auto engine = open_in(folder_.path() / "store");
  ASSERT_TRUE(engine.has_value());
  ASSERT_TRUE(put(**engine, "a", "1").has_value());
  const std::filesystem::path copy = folder_.path() / "copy";
  // Whole but for its name: where a crash leaves it.
  ASSERT_TRUE((*engine)->checkpoint(copy).has_value());
  std::filesystem::rename(copy, folder_.path() / "copy.part");
  ASSERT_TRUE(put(**engine, "a", "2").has_value());
  const Status made = (*engine)->checkpoint(copy / "");  // with a slash at its end
  ASSERT_TRUE(made.has_value()) << to_string(made.error());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "copy.part"));
  auto other = open_in(copy, false);
  ASSERT_TRUE(other.has_value()) << to_string(other.error());
  EXPECT_EQ(get(**other, "a"), "2");
}

TEST_F(Checkpoints, LeavesWhatIsNotOurs) {
  auto engine = open_in(folder_.path() / "store");
  ASSERT_TRUE(engine.has_value());
  const std::filesystem::path photo = folder_.path() / "copy.part" / "holiday.jpg";
  std::filesystem::create_directory(photo.parent_path());
  std::ofstream(photo) << "jpeg";
  const Status made = (*engine)->checkpoint(folder_.path() / "copy");
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, Code::invalid);
  EXPECT_NE(made.error().message.find("move it away"), std::string::npos) << made.error().message;
  EXPECT_TRUE(std::filesystem::exists(photo));
}

TEST_F(Checkpoints, OfAFullDiskSayWhatToDoAndLeaveNothing) {
  auto engine = open();
  ASSERT_TRUE(put(*engine, "a", Random(1).bytes(100'000), Durability::always).has_value());
  ASSERT_TRUE(engine->compact().has_value());
  uint64_t used = 0;
  for (const std::string& path : files_->files("/")) used += files_->read_file(path).size();
  files_->set_capacity(used + 50'000);
  const Status full = engine->checkpoint("/copy");
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, Code::no_space) << full.error().message;
  EXPECT_NE(full.error().message.find("free some space"), std::string::npos)
      << full.error().message;
  EXPECT_TRUE(files_->files("/copy.part").empty());
  EXPECT_TRUE(files_->files("/copy.part.tmp").empty());
}

TEST_F(Checkpoints, IsOneInstant) {
  auto engine = open_in(folder_.path() / "store");
  ASSERT_TRUE(engine.has_value());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; i++) {
      Commit both;
      both.writes.put("left", std::to_string(i));
      both.writes.put("right", std::to_string(i));
      const Status done = commit(**engine, both);
      EXPECT_TRUE(done.has_value()) << to_string(done.error());
      if (!done.has_value()) return;
    }
  });
  for (int i = 0; i < 5; i++) {
    const std::filesystem::path copy = folder_.path() / ("copy" + std::to_string(i));
    EXPECT_TRUE((*engine)->checkpoint(copy).has_value());
    auto other = open_in(copy);
    if (!other.has_value()) {
      ADD_FAILURE() << to_string(other.error());
      break;
    }
    EXPECT_EQ(get(**other, "left"), get(**other, "right"));
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace trellis
