// Files on a disk that is full, or gives back other bytes than were written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "codec/system_keys.h"
#include "codec/tenant_keys.h"
#include "durability/store_fixture.h"
#include "fs/fsck.h"
#include "support/expect_ok.h"
#include "support/make_keyspace.h"

namespace trellis {
namespace {

class FsDisk : public StoreFixture {
 protected:
  static constexpr KeyspaceId id{7};
  static constexpr uint64_t blocks = 20;
  static constexpr uint64_t mib = 1 << 20;

  void SetUp() override {
    StoreFixture::SetUp();
    auto engine = open();
    ASSERT_OK(make_keyspace(*engine, id));
    engine.reset();
    open_files();
  }
  void open_files() {
    fs_.reset();
    transactor_.reset();
    engine_.reset();
    RocksdbOptions with_reserve = options();
    with_reserve.disk_reserve_bytes = reserve_bytes_;
    with_reserve.room_period = std::chrono::milliseconds(1);
    auto engine = open_rocksdb_engine(with_reserve);
    ASSERT_OK(engine);
    engine_ = std::move(*engine);
    transactor_.emplace(*engine_, clock_, TransactOptions{});
    const MapHandle map{*engine_, *transactor_, clock_, Durability::off};
    auto opened = FileSystem::open(std::make_shared<Tenant>(map, id));
    ASSERT_OK(opened);
    fs_ = *opened;
  }
  // Of the file that holds these bytes, one of them.
  void damage(ByteView bytes) {
    for (const std::string& path : files_->files("/store")) {
      const size_t at = files_->read_file(path).find(bytes);
      if (at != std::string::npos) return flip_byte(path, at + bytes.size() / 2);
    }
    FAIL() << "no file has these bytes";
  }
  FsckReport run(FsckOptions options) {
    findings_.clear();
    JobControl control(clock_);
    const auto report = fsck(*fs_, caller_, options, control,
                             [&](const FsckFinding& finding) { findings_.push_back(finding); });
    EXPECT_OK(report);
    return report ? *report : FsckReport();
  }

  // All notes, as if they were due.
  void collect_all() {
    for (bool more = true; more;) {
      std::vector<Garbage> notes;
      const auto [begin, end] = keyspace_interval(KeyMode::txn, id);
      ASSERT_OK(engine_->scan({.begin = begin, .end = end}, [&](ByteView key, ByteView value) {
        if (const auto note = decode<GarbageKey>(key))
          notes.push_back({note->due_ms, Bytes(note->target), note->model,
                           decode_garbage_value(value).value_or(0)});
        return Visit::go_on;
      }));
      ASSERT_OK(fs_->collect(notes));
      more = !notes.empty();
    }
  }
  uint64_t table_bytes() const {
    uint64_t bytes = 0;
    for (const std::string& path : files_ending(".sst")) bytes += files_->read_file(path).size();
    return bytes;
  }
  void wait_for_room(bool has_room) {
    SystemClock clock;
    for (int i = 0; i < 30'000 && engine_->room().has_value() != has_room; i++)
      clock.pause_us(1'000);
    EXPECT_EQ(engine_->room().has_value(), has_room);
  }

  const Caller caller_{Role::write, "test"};
  uint64_t reserve_bytes_ = 0;
  std::unique_ptr<RocksdbEngine> engine_;
  std::optional<Transactor> transactor_;
  std::shared_ptr<FileSystem> fs_;
  std::vector<FsckFinding> findings_;
};

TEST_F(FsDisk, TellsWhichBlocksAreDamagedAndMakesThemHoles) {
  const auto file = fs_->make(caller_, root_inode, "file", {});
  ASSERT_OK(file);
  Random random(1);
  std::string content = random.bytes(blocks * block_bytes_max);
  ASSERT_OK(fs_->write(caller_, file->inode, 0, content));
  ASSERT_OK(engine_->compact());
  EXPECT_TRUE(run({}).clean());
  fs_.reset();
  transactor_.reset();
  engine_.reset();
  const uint64_t bad = 7;
  damage(ByteView(content).substr(bad * block_bytes_max + 100, 100));
  open_files();

  EXPECT_EQ(run({.read_blocks = true}).count(FsckKind::block_damaged), 1u);
  ASSERT_FALSE(findings_.empty());
  EXPECT_EQ(findings_[0].kind, FsckKind::block_damaged);
  EXPECT_EQ(findings_[0].inode, file->inode);
  EXPECT_TRUE(findings_[0].what.starts_with(
      fmt::format("bytes {} to {}", bad * block_bytes_max, (bad + 1) * block_bytes_max - 1)))
      << findings_[0].what;
  std::string piece(block_bytes_max, '?');
  EXPECT_CODE(fs_->read(caller_, file->inode, bad * block_bytes_max, piece), Code::corrupt);

  EXPECT_EQ(run({.repair = true}).repaired[static_cast<size_t>(FsckKind::block_damaged)], 1u);
  EXPECT_EQ(run({}).count(FsckKind::block_damaged), 0u);
  std::fill_n(content.begin() + bad * block_bytes_max, block_bytes_max, '\0');
  std::string now(content.size(), '?');
  ASSERT_OK(fs_->read(caller_, file->inode, 0, now));
  EXPECT_EQ(now, content);
  EXPECT_EQ(fs_->stat(caller_, file->inode)->space, (blocks - 1) * block_bytes_max);
}

TEST_F(FsDisk, AFileThatTheDiskHasNoRoomForIsWholeUpToThere) {
  reserve_bytes_ = 64 * mib;
  open_files();
  const auto file = fs_->make(caller_, root_inode, "file", {});
  ASSERT_OK(file);
  ASSERT_OK(fs_->make(caller_, root_inode, "gone", {}));
  uint64_t free_bytes = 0;
  ASSERT_TRUE(env_->GetFreeSpace("/", &free_bytes).ok());
  const uint64_t used_bytes = (uint64_t{1} << 40) - free_bytes;
  files_->set_capacity(used_bytes + reserve_bytes_ + 4 * mib);
  Random random(2);
  std::string content;
  Status wrote;
  while (wrote && content.size() < 16 * mib) {
    const Bytes piece = random.bytes(mib - 1'000);
    wrote = fs_->write(caller_, file->inode, content.size(), piece);
    if (wrote) content += piece;
  }
  wait_for_room(false);
  if (wrote) wrote = fs_->write(caller_, file->inode, content.size(), random.bytes(mib));
  EXPECT_CODE(wrote, Code::no_space);
  EXPECT_GT(content.size(), 0u);
  EXPECT_CODE(fs_->append(caller_, file->inode, random.bytes(1'000'000)), Code::no_space);
  EXPECT_CODE(fs_->make(caller_, root_inode, "other", {}), Code::no_space);
  const auto check = [&] {
    std::string now(content.size() + 1, '?');
    const auto size = fs_->read(caller_, file->inode, 0, now);
    ASSERT_OK(size);
    EXPECT_EQ(*size, content.size());
    EXPECT_TRUE(now.starts_with(content));
    run({.offline = true});
    EXPECT_TRUE(findings_.empty()) << findings_.front().what;
  };
  check();
  EXPECT_OK(fs_->unlink(caller_, root_inode, "gone"));
  files_->set_capacity(uint64_t{1} << 40);
  open_files();
  check();
  wait_for_room(true);
  const auto other = fs_->make(caller_, root_inode, "other", {});
  ASSERT_OK(other);
  EXPECT_OK(fs_->write(caller_, other->inode, 0, content));
  run({.offline = true});
  EXPECT_TRUE(findings_.empty()) << findings_.front().what;
}

TEST_F(FsDisk, ALargeFileThatGoesGivesTheDiskItsBytesBack) {
  Random random(3);
  const auto file = fs_->make(caller_, root_inode, "file", {});
  ASSERT_OK(file);
  ASSERT_OK(fs_->write(caller_, file->inode, 0, random.bytes(80 * mib)));
  ASSERT_OK(engine_->compact());
  const uint64_t full = table_bytes();
  EXPECT_GT(full, 80 * mib);
  ASSERT_OK(fs_->unlink(caller_, root_inode, "file"));
  collect_all();
  EXPECT_LT(table_bytes(), full / 10);
}

}  // namespace
}  // namespace trellis
