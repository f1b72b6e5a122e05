#include "fs/files_world.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <stdexcept>

#include "base/log.h"
#include "codec/fs_keys.h"
#include "codec/system_keys.h"
#include "codec/tenant_keys.h"
#include "engine/faulty_engine.h"
#include "engine/memory_engine.h"
#include "fs/fsck.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "support/expect_ok.h"
#include "support/make_keyspace.h"
#include "support/power_loss_file_system.h"

namespace trellis {
namespace {

const Caller files_owner{Role::write, "owner"};

class MemoryFiles final : public FilesBackend {
 public:
  MemoryFiles(FilesEngine engine, uint64_t seed) : seed_(seed) {
    const bool two = engine == FilesEngine::two_servers;
    const auto use = two ? MemoryEngine::Use::shared : MemoryEngine::Use::alone;
    for (size_t i = 0; i < (two ? 2 : 1); i++)
      handles_.push_back(std::make_unique<MemoryEngine>(store_, use));
    if (engine == FilesEngine::faulty) faulty_ = std::make_unique<FaultyEngine>(*handles_[0]);
  }
  std::vector<Engine*> handles() override {
    if (faulty_) return {faulty_.get()};
    std::vector<Engine*> all;
    for (const auto& handle : handles_) all.push_back(handle.get());
    return all;
  }
  void set_faults(bool on) override {
    if (!faulty_) return;
    // No outcome is left open: that is for tests that know what either would be.
    faulty_->set_options(on ? FaultyOptions{.seed = ++seed_,
                                            .fail_read_one_in = 100,
                                            .fail_commit_one_in = 20,
                                            .fail_block_one_in = 50}
                            : FaultyOptions{});
  }
  uint64_t faults() override {
    if (!faulty_) return 0;
    const FaultCounts counts = faulty_->counts();
    return counts.reads + counts.commits + counts.blocks;
  }

 private:
  uint64_t seed_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  std::vector<std::unique_ptr<MemoryEngine>> handles_;
  std::unique_ptr<FaultyEngine> faulty_;
};

class RocksdbFiles final : public FilesBackend {
 public:
  RocksdbFiles() {
    setup_log(LogLevel::error, LogFormat::text);
    auto opened = open_rocksdb_engine(
        {.path = "/store", .clock = clock_, .cache_bytes = size_t{8} << 20, .env = env_.get()});
    // Ends the test, and only it: nothing can go on without an engine.
    if (!opened.has_value()) throw std::runtime_error(to_string(opened.error()));
    engine_ = std::move(*opened);
  }
  std::vector<Engine*> handles() override { return {engine_.get()}; }

 private:
  SystemClock clock_;
  const std::shared_ptr<PowerLossFileSystem> files_ = std::make_shared<PowerLossFileSystem>();
  const std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(files_);
  std::unique_ptr<RocksdbEngine> engine_;
};

std::unique_ptr<FilesBackend> open_backend(FilesEngine engine, uint64_t seed) {
  if (engine == FilesEngine::rocksdb) return std::make_unique<RocksdbFiles>();
  if (engine == FilesEngine::cluster) return open_cluster_files();
  return std::make_unique<MemoryFiles>(engine, seed);
}

}  // namespace

std::string name_of(FilesEngine engine) {
  constexpr std::string_view names[] = {"memory", "two_servers", "faulty", "rocksdb", "cluster"};
  return std::string(names[static_cast<size_t>(engine)]);
}

FilesWorld::FilesWorld(FilesEngine engine, uint64_t seed)
    : engine_(engine), backend_(open_backend(engine, seed)) {
  EXPECT_OK(make_keyspace(*backend_->handles()[0], files_keyspace, "files"));
  for (Engine* handle : backend_->handles()) {
    Server& server = servers_.emplace_back();
    const Way way = handle->shared() ? Way::expecting : Way::latched;
    server.transactor = std::make_unique<Transactor>(
        *handle, clock_, TransactOptions{.way = way, .check_scope = true, .seed = seed});
    auto opened = FileSystem::open(
        std::make_shared<Tenant>(MapHandle{*handle, *server.transactor, clock_}, files_keyspace));
    if (!opened.has_value()) throw std::runtime_error(to_string(opened.error()));
    server.fs = std::move(*opened);
    server.files = std::make_unique<Files>(server.fs);
  }
}

FilesWorld::~FilesWorld() {
  for (Server& server : servers_) server.files.reset();  // ends its session
}

void FilesWorld::collect_all() {
  Engine& engine = *backend_->handles()[0];
  for (int round = 0; round < 1'000; round++) {
    std::vector<Garbage> notes;
    const auto [begin, end] = keyspace_interval(KeyMode::txn, files_keyspace);
    std::optional<Bytes> from(begin);
    while (from) {
      auto page = engine.scan({.begin = *from, .end = end}, [&](ByteView key, ByteView value) {
        if (const auto note = decode<GarbageKey>(key); note && note->model == Model::fs)
          notes.push_back({note->due_ms, Bytes(note->target), note->model,
                           decode_garbage_value(value).value_or(0)});
        return Visit::go_on;
      });
      ASSERT_OK(page);
      from = std::move(page->resume);
    }
    if (notes.empty()) return;
    for (const Garbage& note : notes) {
      clock_.jump_to_ms(std::max(clock_.unix_ms(), note.due_ms));
      EXPECT_OK(fs().collect({&note, 1}));
    }
  }
  FAIL() << "notes are left";
}

void FilesWorld::expect_sound(bool is_collected) {
  JobControl control(clock_);
  const auto report =
      fsck(fs(), files_owner, {.offline = true}, control, [&](const FsckFinding& finding) {
        // What could not be taken back when the engine failed is no damage.
        if (finding.kind == FsckKind::block_unused && (is_faulty() || !is_collected)) return;
        ADD_FAILURE() << to_string(finding.kind) << " inode " << finding.inode.value << ": "
                      << finding.what;
      });
  ASSERT_OK(report);
}

void FilesWorld::expect_nothing_is_left() {
  // Ends the sessions: what could not be closed in them goes with them.
  for (Server& server : servers_) server.files = std::make_unique<Files>(server.fs);
  expect_sound(false);
  EXPECT_OK(files().remove_all(files_owner, "/"));
  EXPECT_OK(fs().empty_trash(files_owner));
  for (Server& server : servers_) server.files.reset();
  collect_all();
  expect_sound(true);
  Engine& engine = *backend_->handles()[0];
  const auto counted = stored_figures(engine, files_keyspace);
  const auto recounted = recount(engine, files_keyspace);
  ASSERT_OK(counted);
  ASSERT_OK(recounted);
  EXPECT_EQ(*counted, *recounted);
  const auto figures = fs().figures(files_owner);
  ASSERT_OK(figures);
  EXPECT_EQ(figures->used.space, 0U);
  EXPECT_EQ(figures->used.length, 0U);
  EXPECT_EQ(figures->used.inodes, 0U);
  std::vector<std::string> left;
  const auto [begin, end] = keyspace_interval(KeyMode::txn, files_keyspace);
  EXPECT_OK(engine.scan({.begin = begin, .end = end}, [&](ByteView key, ByteView) {
    if (decode<FsSuperblockKey>(key) || decode<FsTreeKey>(key) || decode<FsFiguresKey>(key))
      return Visit::go_on;
    const auto inode = decode<FsInodeKey>(key);
    if (inode && (inode->inode == root_inode || inode->inode == trash_inode)) return Visit::go_on;
    if (key.substr(4, 1) == "f") left.push_back(quote(key));
    return Visit::go_on;
  }));
  EXPECT_EQ(left, std::vector<std::string>());
}

}  // namespace trellis
