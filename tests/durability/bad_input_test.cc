// Folders and files that are not as they should be: refused with a message that says what to do,
// and left as they were.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "store_fixture.h"
#include "temporary_folder.h"

namespace trellis {
namespace {

class BadInput : public StoreFixture {
 protected:
  void SetUp() override {
    StoreFixture::SetUp();
    ASSERT_TRUE(env_->CreateDirIfMissing("/store").ok());
  }

  std::map<std::string, std::string> snapshot() const {
    std::map<std::string, std::string> all;
    for (const std::string& path : files_->files("/store")) {
      if (!path.ends_with("/LOCK")) all[path] = files_->read_file(path);
    }
    return all;
  }

  // Refused with this code and these words, and no file is other than before.
  void expect_refused(Code code, const std::vector<std::string>& words) {
    const auto before = snapshot();
    const auto engine = try_open();
    ASSERT_FALSE(engine.has_value());
    EXPECT_EQ(to_string(engine.error().code), to_string(code)) << engine.error().message;
    EXPECT_NE(engine.error().message.find("/store"), std::string::npos);
    for (const std::string& word : words) {
      EXPECT_NE(engine.error().message.find(word), std::string::npos)
          << word << " is not in: " << engine.error().message;
    }
    EXPECT_TRUE(snapshot() == before) << "files were changed";
  }

  static Bytes incompressible(int i) { return Random(static_cast<uint64_t>(i)).bytes(100); }

  // A store with a table file, and with commits in its log that were synced.
  void make_store() {
    auto engine = open();
    for (int i = 0; i < 500; i++) {
      ASSERT_TRUE(put(*engine, "table" + std::to_string(i), incompressible(i)).has_value());
    }
    ASSERT_TRUE(engine->compact().has_value());
    for (int i = 0; i < 500; i++) {
      ASSERT_TRUE(
          put(*engine, "log" + std::to_string(i), Bytes(100, 'l'), Durability::always).has_value());
    }
  }
};

TEST_F(BadInput, APathThatIsAFile) {
  files_->remove_file("/store");
  files_->replace_file("/store", "text");
  expect_refused(Code::invalid, {"file", "give a folder"});
}

TEST_F(BadInput, AFolderOfSomebodyElse) {
  files_->replace_file("/store/holiday.jpg", "jpeg");
  expect_refused(Code::invalid, {"holiday.jpg", "empty or a new folder"});
}

TEST_F(BadInput, AStoreOfANewerFormat) {
  files_->replace_file("/store/TRELLIS", "format 7\nengine rocksdb\n");
  expect_refused(Code::unsupported, {"format 7 is newer than this build's 1", "newer trellis"});
}

TEST_F(BadInput, AStoreOfAnotherEngine) {
  files_->replace_file("/store/TRELLIS", "format 1\nengine rados\n");
  expect_refused(Code::unsupported, {"'rados'", "'rocksdb'"});
}

TEST_F(BadInput, AMarkerThatSaysNothing) {
  for (const char* text : {"", "format\n", "format one\nengine rocksdb\n", "\n\n", "format 0\n"}) {
    SCOPED_TRACE(text);
    files_->replace_file("/store/TRELLIS", text);
    expect_refused(Code::corrupt, {"TRELLIS"});
  }
}

TEST_F(BadInput, NothingThereAndNotToBeMade) {
  RocksdbOptions no_create = options();
  no_create.create_if_missing = false;
  EXPECT_EQ(open_rocksdb_engine(no_create).error().code, Code::not_found);
  no_create.path = "/nowhere";
  EXPECT_EQ(open_rocksdb_engine(no_create).error().code, Code::not_found);
  EXPECT_TRUE(env_->FileExists("/nowhere").IsNotFound());
}

TEST_F(BadInput, FoldersAreMadeOnTheWay) {
  RocksdbOptions deep = options();
  deep.path = "/a/b/store";
  const auto engine = open_rocksdb_engine(deep);
  EXPECT_TRUE(engine.has_value()) << to_string(engine.error());
}

TEST_F(BadInput, OpenedTwiceByThisProcess) {
  auto first = open();
  expect_refused(Code::busy, {"in use", "another folder"});
  EXPECT_TRUE(put(*first, "a", "1").has_value());
  const TemporaryFolder folder;
  RocksdbOptions real{.path = folder.path() / "store", .clock = clock_, .cache_bytes = 8 << 20};
  const auto one = open_rocksdb_engine(real);
  ASSERT_TRUE(one.has_value()) << to_string(one.error());
  EXPECT_EQ(open_rocksdb_engine(real).error().code, Code::busy);
}

TEST_F(BadInput, AFolderThatCannotBeWritten) {
  const TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  const bool root = ::geteuid() == 0;  // to whom permissions mean nothing
  if (root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto engine = open_rocksdb_engine({.path = folder.path(), .clock = clock_});
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().code, Code::denied) << engine.error().message;
  EXPECT_NE(engine.error().message.find("right"), std::string::npos);
}

// Where no folder can be, nothing is to be restored: another folder is to be given.
TEST_F(BadInput, PlacesWhereNoFolderCanBe) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "text";
  std::filesystem::create_symlink(folder.path() / "nowhere", folder.path() / "link");
  const struct {
    std::filesystem::path path;
    std::string word;
  } places[] = {
      {"/proc/nope/x", "/proc takes no new folders"},
      {folder.path() / "file" / "sub", "file is a file, and no folder can be in it"},
      {folder.path() / "file" / "sub" / "store", "file is a file, and no folder can be in it"},
      {folder.path() / "link", "is a link to what is not there"},
      {folder.path() / "link" / "store", "is a link to what is not there"},
      {folder.path() / std::string(300, 'n'), "too long"},
  };
  for (const auto& [path, word] : places) {
    SCOPED_TRACE(path);
    const auto engine = open_rocksdb_engine({.path = path, .clock = clock_});
    ASSERT_FALSE(engine.has_value());
    const std::string& message = engine.error().message;
    EXPECT_EQ(to_string(engine.error().code), to_string(Code::invalid)) << message;
    EXPECT_NE(message.find("give another folder"), std::string::npos) << message;
    EXPECT_NE(message.find(word), std::string::npos) << message;
    for (const char* not_for_people : {"restore", "IO error"})
      EXPECT_EQ(message.find(not_for_people), std::string::npos) << message;
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "nowhere"));
}

TEST_F(BadInput, AFolderThatCannotBeMade) {
  const TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto engine = open_rocksdb_engine({.path = folder.path() / "a" / "b", .clock = clock_});
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().code, Code::denied) << engine.error().message;
  EXPECT_NE(engine.error().message.find("give another folder"), std::string::npos)
      << engine.error().message;
}

TEST_F(BadInput, AnInterruptedCreationIsFinished) {
  // Every write of the creation is once the last before the power goes.
  for (int64_t last = 0; last < 40; last++) {
    SCOPED_TRACE(last);
    auto files = std::make_shared<PowerLossFileSystem>();
    auto env = rocksdb::NewCompositeEnv(files);
    Random random(static_cast<uint64_t>(last));
    std::atomic<int64_t> left = last;
    files->set_write_hook([&](const std::string&, std::string&) {
      if (left-- == 0) files->cut_power(random);
      return rocksdb::IOStatus::OK();
    });
    RocksdbOptions there = options();
    there.env = env.get();
    discard(open_rocksdb_engine(there));
    left = -1;
    files->restore_power();
    const auto engine = open_rocksdb_engine(there);
    ASSERT_TRUE(engine.has_value()) << to_string(engine.error());
    EXPECT_EQ((*engine)->identity().created_ms, clock_.unix_ms());
  }
}

TEST_F(BadInput, TheIdentityStays) {
  auto engine = open();
  const StoreIdentity first = engine->identity();
  EXPECT_EQ(first.created_ms, clock_.unix_ms());
  engine.reset();
  clock_.advance_ms(1000);
  engine = open();
  EXPECT_EQ(engine->identity().uuid, first.uuid);
  EXPECT_EQ(engine->identity().created_ms, first.created_ms);
  ASSERT_EQ(get(*engine, "\x01siden").size(), 25);
  ASSERT_TRUE(put(*engine, "\x01siden", "nonsense").has_value());
  engine.reset();
  EXPECT_EQ(try_open().error().code, Code::corrupt);
}

TEST_F(BadInput, AFullDiskRefusesWritesAndServesReads) {
  auto engine = open();
  ASSERT_TRUE(put(*engine, "a", "1", Durability::always).has_value());
  uint64_t free_before = 0;
  ASSERT_TRUE(env_->GetFreeSpace("/", &free_before).ok());
  uint64_t used = 0;
  for (const auto& [path, content] : snapshot()) used += content.size();
  files_->set_capacity(used + 100'000);
  Status full;
  for (int i = 0; i < 1000 && full.has_value(); i++) {
    full = put(*engine, "b" + std::to_string(i), Bytes(1000, 'b'), Durability::always);
  }
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, Code::no_space) << full.error().message;
  EXPECT_NE(full.error().message.find("reads still work"), std::string::npos);
  EXPECT_NE(full.error().message.find("Writes resume"), std::string::npos);
  EXPECT_EQ(put(*engine, "c", "1").error().code, Code::no_space);
  EXPECT_EQ(get(*engine, "a"), "1");
  EXPECT_EQ(get(*engine, "b0"), Bytes(1000, 'b'));
  engine.reset();

  files_->set_capacity(used);
  const auto opened = try_open();
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code, Code::no_space) << opened.error().message;
  EXPECT_NE(opened.error().message.find("bytes free"), std::string::npos);

  files_->set_capacity(std::nullopt);
  engine = open();
  EXPECT_EQ(get(*engine, "a"), "1");
  EXPECT_EQ(get(*engine, "c"), "(none)");
  EXPECT_TRUE(put(*engine, "c", "1", Durability::always).has_value());
}

TEST_F(BadInput, WritesResumeWhenADiskIsNoLongerFull) {
  auto engine = open();
  files_->set_capacity(0);
  EXPECT_EQ(put(*engine, "a", "1").error().code, Code::no_space);
  files_->set_capacity(std::nullopt);
  // RocksDB looks for space every few seconds; nothing tells when it has found it.
  Status again = put(*engine, "a", "2", Durability::always);
  for (int i = 0; i < 3000 && !again.has_value(); i++) {
    EXPECT_EQ(again.error().code, Code::no_space) << again.error().message;
    SystemClock().pause_us(10'000);
    again = put(*engine, "a", "2", Durability::always);
  }
  ASSERT_TRUE(again.has_value()) << to_string(again.error());
  Random random(1);
  files_->cut_power(random);
  engine.reset();
  files_->restore_power();
  EXPECT_EQ(get(*open(), "a"), "2");
}

TEST_F(BadInput, CurrentIsDamagedOrGone) {
  make_store();
  const std::string good = files_->read_file("/store/CURRENT");
  for (const char* text : {"", "nonsense", "MANIFEST-999999\n"}) {
    SCOPED_TRACE(text);
    files_->replace_file("/store/CURRENT", text);
    expect_refused(Code::corrupt, {"restore from a backup"});
  }
  files_->remove_file("/store/CURRENT");
  expect_refused(Code::corrupt, {"CURRENT is missing", "put CURRENT back"});
  files_->replace_file("/store/CURRENT", good);
  EXPECT_EQ(get(*open(), "log7"), Bytes(100, 'l'));
}

TEST_F(BadInput, TheManifestIsDamagedOrGone) {
  make_store();
  std::vector<std::string> manifests = files_->files("/store");
  std::erase_if(manifests, [](const std::string& path) {
    return path.find("/MANIFEST-") == std::string::npos;
  });
  ASSERT_EQ(manifests.size(), 1);
  const std::string good = files_->read_file(manifests[0]);
  flip_byte(manifests[0], 20);
  expect_refused(Code::corrupt, {"restore from a backup"});
  files_->remove_file(manifests[0]);
  expect_refused(Code::corrupt, {"MANIFEST", "restore from a backup"});
  files_->replace_file(manifests[0], good);
  EXPECT_EQ(get(*open(), "table7"), incompressible(7));
}

TEST_F(BadInput, ATableIsDamagedOrGone) {
  make_store();
  const std::vector<std::string> tables = files_ending(".sst");
  ASSERT_FALSE(tables.empty());
  const std::string name = tables[0].substr(tables[0].rfind('/') + 1);
  const std::string good = files_->read_file(tables[0]);

  files_->remove_file(tables[0]);
  expect_refused(Code::corrupt, {name, "restore from a backup"});
  files_->replace_file(tables[0], good.substr(0, good.size() / 2));
  expect_refused(Code::corrupt, {name, "restore from a backup"});

  // Damage inside a page is found by the read that needs it, and only by that.
  files_->replace_file(tables[0], good);
  flip_byte(tables[0], good.size() / 2);
  auto engine = open();
  EXPECT_EQ(get(*engine, "log7"), Bytes(100, 'l'));
  size_t refused = 0;
  for (int i = 0; i < 500; i++) {
    const Bytes read = get(*engine, "table" + std::to_string(i));
    if (read.starts_with("corrupt") && read.find(name) != std::string::npos) refused++;
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 500);
  const auto page =
      engine->scan({.begin = "table"}, [](ByteView, ByteView) { return Visit::go_on; });
  ASSERT_FALSE(page.has_value());
  EXPECT_EQ(page.error().code, Code::corrupt);
}

TEST_F(BadInput, ALogThatWasSyncedAndIsDamaged) {
  make_store();
  const std::vector<std::string> logs = files_ending(".log");
  ASSERT_EQ(logs.size(), 1);
  const std::string name = logs[0].substr(logs[0].rfind('/') + 1);
  const std::string good = files_->read_file(logs[0]);
  ASSERT_GT(good.size(), 50'000);
  for (const size_t at : {size_t{100}, size_t{20'000}, size_t{40'000}}) {
    SCOPED_TRACE(at);
    flip_byte(logs[0], at);
    expect_refused(Code::corrupt, {name + " is damaged at byte", "restore from a backup"});
    std::string hole = good;
    hole.replace(at, 4096, 4096, '\0');
    files_->replace_file(logs[0], hole);
    expect_refused(Code::corrupt, {name + " is damaged at byte", "restore from a backup"});
    files_->replace_file(logs[0], good);
  }
  EXPECT_EQ(get(*open(), "log499"), Bytes(100, 'l'));
}

// What was never synced may be torn or missing anywhere: the store opens with a prefix.
class UnsyncedLog : public BadInput {
 protected:
  void SetUp() override {
    BadInput::SetUp();
    auto engine = open();
    for (int i = 0; i < 600; i++) {
      ASSERT_TRUE(put(*engine, key(i), Bytes(100, 'l')).has_value());
    }
    path_ = files_ending(".log").at(0);
    log_ = files_->read_file(path_);
    Random random(1);
    files_->cut_power(random);
    engine.reset();
    files_->restore_power();
    rest_ = snapshot();
  }

  static Bytes key(int i) { return "log" + std::to_string(i); }

  // Opens the store with this log and returns how many commits it has; fails if it is no prefix.
  int prefix_with(const std::string& log) {
    for (const std::string& file : files_->files("/store")) files_->remove_file(file);
    for (const auto& [name, content] : rest_) files_->replace_file(name, content);
    files_->replace_file(path_, log);
    auto engine = open();
    int count = 0;
    while (count < 600 && get(*engine, key(count)) != "(none)") count++;
    for (int i = count; i < 600; i++) {
      EXPECT_EQ(get(*engine, key(i)), "(none)") << "though " << count << " is missing";
    }
    return count;
  }

  std::string path_;
  std::string log_;
  std::map<std::string, std::string> rest_;
};

TEST_F(UnsyncedLog, MayBeCutOffOrDamagedAnywhere) {
  EXPECT_EQ(prefix_with(log_), 600);
  for (size_t size = log_.size() - 1; size > 10'000; size -= 7777) {
    SCOPED_TRACE(size);
    std::string torn = log_.substr(0, size);
    const int whole = prefix_with(torn);
    EXPECT_GT(whole, 0);
    EXPECT_LT(whole, 600);
    torn.replace(size / 2, 50, 50, '\0');
    EXPECT_LT(prefix_with(torn), whole);
  }
}

// RocksDB by itself passes over zeros where a record should start and replays what is behind them.
TEST_F(UnsyncedLog, MayLackAPage) {
  ASSERT_GT(log_.size(), 70'000);
  int before = 0;
  // The first page has the identity, which is synced: without it a store is refused.
  for (size_t page = 4096; page + 4096 < log_.size(); page += 4096) {
    SCOPED_TRACE(page);
    std::string holed = log_;
    holed.replace(page, 4096, 4096, '\0');
    const int count = prefix_with(holed);
    EXPECT_GE(count, before);
    EXPECT_LT(count, 600);
    before = count;
  }
}

}  // namespace
}  // namespace trellis
