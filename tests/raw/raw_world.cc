#include "raw/raw_world.h"

#include <rocksdb/env.h>

#include <stdexcept>

#include "base/log.h"
#include "codec/keyspace_keys.h"
#include "codec/system_keys.h"
#include "codec/tenant_keys.h"
#include "engine/memory_engine.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "support/expect_ok.h"
#include "support/make_keyspace.h"
#include "support/power_loss_file_system.h"

namespace trellis {
namespace {

constexpr KeyspaceId ids[RawWorld::keyspaces] = {{0}, {1}, {keyspace_id_max}};

bool is_faulty(EngineUse use) {
  return use == EngineUse::faulty || use == EngineUse::faulty_two_servers;
}

class MemoryBackend final : public RawBackend {
 public:
  MemoryBackend(EngineUse use, uint64_t seed) : use_(use), seed_(seed) {
    const bool two = use == EngineUse::two_servers || use == EngineUse::faulty_two_servers;
    const auto memory_use = two ? MemoryEngine::Use::shared : MemoryEngine::Use::alone;
    truth_ = std::make_unique<MemoryEngine>(store_, memory_use);
    for (size_t i = 0; i < (two ? 2 : 1); i++) {
      handles_.push_back(std::make_unique<MemoryEngine>(store_, memory_use));
      faulty_.push_back(std::make_unique<FaultyEngine>(*handles_.back()));
    }
  }
  std::vector<Engine*> handles() override {
    std::vector<Engine*> all;
    for (size_t i = 0; i < handles_.size(); i++)
      all.push_back(is_faulty(use_) ? static_cast<Engine*>(faulty_[i].get()) : handles_[i].get());
    return all;
  }
  Engine& truth() override { return *truth_; }
  void set_faults(bool on) override {
    if (!is_faulty(use_)) return;
    for (const auto& faulty : faulty_) {
      if (on)
        faulty->set_options({.seed = ++seed_,
                             .fail_read_one_in = 25,
                             .fail_commit_one_in = 25,
                             .conflict_one_in = 10,
                             .maybe_one_in = 10});
      else
        faulty->set_options({});
    }
  }
  uint64_t faults() override {
    uint64_t count = 0;
    for (const auto& faulty : faulty_) {
      const FaultCounts counts = faulty->counts();
      count += std::min(counts.maybes_applied, counts.maybes_dropped);
    }
    return count;
  }

 private:
  const EngineUse use_;
  uint64_t seed_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
  std::unique_ptr<MemoryEngine> truth_;
  std::vector<std::unique_ptr<MemoryEngine>> handles_;
  std::vector<std::unique_ptr<FaultyEngine>> faulty_;
};

class RocksdbBackend final : public RawBackend {
 public:
  RocksdbBackend() {
    setup_log(LogLevel::error, LogFormat::text);
    auto opened = open_rocksdb_engine(
        {.path = "/store", .clock = clock_, .cache_bytes = size_t{8} << 20, .env = env_.get()});
    // Ends the test, and only it: nothing can go on without an engine.
    if (!opened.has_value()) throw std::runtime_error(to_string(opened.error()));
    engine_ = std::move(*opened);
  }
  std::vector<Engine*> handles() override { return {engine_.get()}; }
  Engine& truth() override { return *engine_; }

 private:
  SystemClock clock_;
  const std::shared_ptr<PowerLossFileSystem> files_ = std::make_shared<PowerLossFileSystem>();
  const std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(files_);
  std::unique_ptr<RocksdbEngine> engine_;
};

std::unique_ptr<RawBackend> open_backend(EngineUse use, uint64_t seed) {
  if (use == EngineUse::rocksdb) return std::make_unique<RocksdbBackend>();
  return std::make_unique<MemoryBackend>(use, seed);
}

// All pages of the keys that start with `prefix`.
void visit_all(Engine& engine, ByteView prefix, FunctionRef<void(ByteView, ByteView)> visit) {
  Bytes begin(prefix);
  const Bytes end = prefix_end(prefix);
  for (;;) {
    const auto page = engine.scan({.begin = begin, .end = end}, [&](ByteView key, ByteView value) {
      visit(key, value);
      return Visit::go_on;
    });
    ASSERT_OK(page);
    if (!page->resume) return;
    begin = *page->resume;
  }
}

// By the layouts as they are drawn, not by the code that is tested.
Figures figures_of(const Contents& contents) {
  Figures figures;
  for (const auto& [key, entry] : contents) {
    const bool expires = entry.expires_at_ms != 0;
    size_t bytes = 4 + key.size() + (expires ? 9 : 1) + entry.value.size();
    if (expires) bytes += 4 + 1 + 8 + 1 + key.size() + 9;
    figures.bytes += static_cast<int64_t>(bytes);
    figures.keys++;
  }
  return figures;
}

}  // namespace

std::string name_of(const RawSetup& setup) {
  constexpr std::string_view names[] = {"memory", "two_servers", "faulty", "faulty_two_servers",
                                        "rocksdb"};
  return std::string(names[static_cast<size_t>(setup.use)]) +
         (setup.way == Way::latched ? "_latched" : "_expecting");
}

std::vector<RawSetup> raw_setups() {
  return {{EngineUse::memory, Way::latched},
          {EngineUse::memory, Way::expecting},
          {EngineUse::two_servers, Way::expecting},
          {EngineUse::faulty, Way::latched},
          {EngineUse::faulty_two_servers, Way::expecting},
          {EngineUse::rocksdb, Way::latched},
          {EngineUse::rocksdb, Way::expecting}};
}

RawWorld::RawWorld(const RawSetup& setup, uint64_t seed)
    : setup_(setup), backend_(open_backend(setup.use, seed)) {
  for (const KeyspaceId id : ids) EXPECT_OK(make_keyspace(backend_->truth(), id));
  for (Engine* engine : backend_->handles()) {
    Server& server = servers_.emplace_back();
    server.transactor = std::make_unique<Transactor>(
        *engine, clock_, TransactOptions{.way = setup.way, .check_scope = true, .seed = seed});
    for (const KeyspaceId id : ids) {
      server.tenants.push_back(
          std::make_unique<Tenant>(MapHandle{*engine, *server.transactor, clock_}, id));
      EXPECT_OK(server.tenants.back()->figures());  // loaded while nobody writes
    }
  }
}

Contents RawWorld::stored(size_t keyspace, ByteView prefix) {
  Contents contents;
  const Bytes first = encode(RawKey{ids[keyspace], prefix});
  visit_all(backend_->truth(), first, [&](ByteView key, ByteView value) {
    const auto decoded = decode_raw_value(value);
    ASSERT_OK(decoded);
    contents[Bytes(key.substr(4))] = {Bytes(decoded->value), decoded->expires_at_ms};
  });
  return contents;
}

std::vector<std::pair<uint64_t, Bytes>> RawWorld::notes(size_t keyspace) {
  std::vector<std::pair<uint64_t, Bytes>> notes;
  Bytes prefix;
  append_keyspace_prefix(prefix, KeyMode::txn, ids[keyspace]);
  prefix += 'g';
  visit_all(backend_->truth(), prefix, [&](ByteView key, ByteView) {
    const auto note = decode<GarbageKey>(key);
    ASSERT_OK(note);
    EXPECT_EQ(note->model, Model::raw);
    notes.emplace_back(note->due_ms, note->target);
  });
  return notes;
}

void RawWorld::check_invariants(bool in_memory) {
  for (size_t keyspace = 0; keyspace < keyspaces; keyspace++) {
    const Contents contents = stored(keyspace);
    std::vector<std::pair<uint64_t, Bytes>> wanted;
    for (const auto& [key, entry] : contents)
      if (entry.expires_at_ms != 0) wanted.emplace_back(entry.expires_at_ms, key);
    std::sort(wanted.begin(), wanted.end());
    EXPECT_EQ(notes(keyspace), wanted);

    const Figures there = figures_of(contents);
    const auto expect_figures = [&](const Result<Figures>& figures, const char* which) {
      ASSERT_OK(figures);
      EXPECT_EQ(figures->bytes, there.bytes) << which;
      EXPECT_EQ(figures->keys, there.keys) << which;
    };
    expect_figures(recount(backend_->truth(), ids[keyspace]), "recount");
    expect_figures(stored_figures(backend_->truth(), ids[keyspace]), "counters");
    if (in_memory) expect_figures(tenant(0, keyspace).figures(), "in memory");
  }
}

Result<size_t> RawWorld::collect_together(Tenant& tenant, size_t keyspace) {
  std::vector<Garbage> together;
  for (auto& [due_ms, key] : notes(keyspace)) together.push_back({due_ms, std::move(key)});
  TRY_ASSIGN(const size_t gone, raw_.collect(tenant, together));
  return together.size() - gone;
}

void RawWorld::collect_all() {
  for (size_t keyspace = 0; keyspace < keyspaces; keyspace++) {
    size_t not_due = 0;
    for (const auto& [due_ms, key] : notes(keyspace))
      if (due_ms > clock_.unix_ms()) not_due++;
    const auto left = collect_together(tenant(keyspace, keyspace), keyspace);
    ASSERT_OK(left);
    EXPECT_EQ(*left, not_due);
  }
}

}  // namespace trellis
