#include "fs/content_world.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <stdexcept>

#include "base/log.h"
#include "codec/system_keys.h"
#include "codec/tenant_keys.h"
#include "fs/change.h"
#include "fs/content_check.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "support/expect_ok.h"
#include "support/make_keyspace.h"
#include "support/power_loss_file_system.h"

namespace trellis {

std::string name_of(const ContentSetup& setup) {
  constexpr std::string_view names[] = {"memory", "faulty", "crashing", "rocksdb"};
  return std::string(names[static_cast<size_t>(setup.engine)]) +
         (setup.way == Way::latched ? "_latched" : "_expecting");
}

std::vector<ContentSetup> content_setups() {
  std::vector<ContentSetup> setups;
  for (const ContentEngine engine : {ContentEngine::memory, ContentEngine::faulty,
                                     ContentEngine::crashing, ContentEngine::rocksdb})
    for (const Way way : {Way::latched, Way::expecting}) setups.push_back({engine, way});
  return setups;
}

struct ContentWorld::RocksdbStore {
  SystemClock clock;
  const std::shared_ptr<PowerLossFileSystem> files = std::make_shared<PowerLossFileSystem>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  std::unique_ptr<RocksdbEngine> engine;

  RocksdbStore() {
    setup_log(LogLevel::error, LogFormat::text);
    auto opened = open_rocksdb_engine(
        {.path = "/store", .clock = clock, .cache_bytes = size_t{8} << 20, .env = env.get()});
    // Ends the test, and only it: nothing can go on without an engine.
    if (!opened.has_value()) throw std::runtime_error(to_string(opened.error()));
    engine = std::move(*opened);
  }
};

ContentWorld::ContentWorld(const ContentSetup& setup, uint64_t seed) : setup_(setup), seed_(seed) {
  if (setup.engine == ContentEngine::rocksdb)
    rocksdb_ = std::make_unique<RocksdbStore>();
  else
    store_ = std::make_shared<MemoryStore>(crashes() ? MemoryStore::Crashable::yes
                                                     : MemoryStore::Crashable::no);
  open();
  EXPECT_OK(make_keyspace(truth(), keyspace()));
  open();
}

ContentWorld::~ContentWorld() = default;

void ContentWorld::open() {
  fs_.reset();
  transactor_.reset();
  faulty_.reset();
  if (store_ != nullptr) {
    memory_ = std::make_unique<MemoryEngine>(store_, MemoryEngine::Use::alone);
    truth_ = memory_.get();
  } else {
    truth_ = rocksdb_->engine.get();
  }
  faulty_ = std::make_unique<FaultyEngine>(*truth_);
  transactor_ = std::make_unique<Transactor>(
      *faulty_, clock_, TransactOptions{.way = setup_.way, .check_scope = true, .seed = ++seed_});
  Value there;
  EXPECT_OK(truth_->get(encode(KeyspaceMetaKey{keyspace()}), there));
  if (!there.found()) return;
  auto opened = FileSystem::open(
      std::make_shared<Tenant>(MapHandle{*faulty_, *transactor_, clock_}, keyspace()));
  if (!opened.has_value()) throw std::runtime_error(to_string(opened.error()));
  fs_ = std::move(*opened);
}

void ContentWorld::set_faults(bool on) {
  if (!is_faulty()) return;
  FaultyOptions options;
  if (on)
    options = {.seed = ++seed_,
               .fail_read_one_in = 60,
               .fail_commit_one_in = 25,
               .conflict_one_in = 10,
               .maybe_one_in = 20,
               .fail_block_one_in = 40};
  faulty_->set_options(options);
}

MemoryStore::CrashReport ContentWorld::crash(Random& random) {
  const auto report = store_->crash(random);
  open();
  return report;
}

void ContentWorld::make_durable() { EXPECT_OK(truth_->wait_durable(truth_->last_ticket())); }

void ContentWorld::collect_all() {
  Bytes prefix;
  append_keyspace_prefix(prefix, KeyMode::txn, keyspace());
  prefix += 'g';
  for (int round = 0; round < 100; round++) {
    std::vector<Garbage> notes;
    EXPECT_OK(
        truth_->scan({.begin = prefix, .end = prefix_end(prefix)}, [&](ByteView key, ByteView) {
          const auto note = decode<GarbageKey>(key);
          EXPECT_OK(note);
          notes.push_back({note->due_ms, Bytes(note->target), note->model, 0});
          return Visit::go_on;
        }));
    if (notes.empty()) return;
    for (const Garbage& note : notes) EXPECT_OK(fs_->collect({&note, 1}));
  }
  FAIL() << "notes are left";
}

void ContentWorld::check() {
  ContentCheck(truth(), keyspace()).run();
  const auto counted = stored_figures(truth(), keyspace());
  const auto recounted = recount(truth(), keyspace());
  ASSERT_OK(counted);
  ASSERT_OK(recounted);
  EXPECT_EQ(*counted, *recounted);
  // All files are in the root.
  FsFigures sum;
  const Bytes prefix = encode(FsEntryKey{keyspace(), root_inode, {}});
  std::vector<InodeId> inodes;
  ASSERT_OK(
      truth().scan({.begin = prefix, .end = prefix_end(prefix)}, [&](ByteView, ByteView value) {
        inodes.push_back(decode<FsEntry>(value)->inode);
        return Visit::go_on;
      }));
  for (const InodeId inode : inodes) {
    const auto seen = see_inode(truth(), keyspace(), inode);
    ASSERT_TRUE(seen && *seen) << inode.value;
    sum.space += static_cast<int64_t>((*seen)->inode.blocks * block_bytes_max);
    sum.length += static_cast<int64_t>((*seen)->inode.size);
    sum.inodes++;
  }
  std::vector<Value> slots(figure_slots);
  for (uint8_t slot = 0; slot < figure_slots; slot++)
    ASSERT_OK(truth().get(encode(FsFiguresKey{keyspace(), root_inode, slot}), slots[slot]));
  const auto stored = sum_figures(root_inode, slots);
  ASSERT_OK(stored);
  EXPECT_EQ(stored->space, sum.space);
  EXPECT_EQ(stored->length, sum.length);
  EXPECT_EQ(stored->inodes, sum.inodes);
}

}  // namespace trellis
