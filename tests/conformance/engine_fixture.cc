#include "conformance/engine_fixture.h"

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <string_view>

#include "conformance/retrying_engine.h"
#include "engine/memory_engine.h"

namespace trellis {
namespace {

constexpr FaultyOptions many_faults{.seed = 42,
                                    .fail_read_one_in = 10,
                                    .fail_commit_one_in = 10,
                                    .conflict_one_in = 0,
                                    .maybe_one_in = 0,
                                    .fail_durable_one_in = 10,
                                    .fail_block_one_in = 10,
                                    .delay_one_in = 10,
                                    .fail_scans_late = false};

class MemoryUnderTest : public EngineUnderTest {
 public:
  explicit MemoryUnderTest(MemoryEngine::Use use) : use_(use) { open_handles(); }
  Engine& engine() override { return *one_; }
  Engine& other() override { return use_ == MemoryEngine::Use::shared ? *two_ : *one_; }
  void reopen() override { open_handles(); }
  void crash(Random& random) override {
    store_->crash(random);
    open_handles();
  }

 private:
  void open_handles() {
    one_ = std::make_unique<MemoryEngine>(store_, use_);
    two_ = std::make_unique<MemoryEngine>(store_, use_);
  }

  const MemoryEngine::Use use_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>(MemoryStore::Crashable::yes);
  std::unique_ptr<MemoryEngine> one_;
  std::unique_ptr<MemoryEngine> two_;
};

// Fails one call in ten and asks again.
class FaultyUnderTest : public EngineUnderTest {
 public:
  Engine& engine() override { return retrying_; }
  FaultyEngine* faulty() override { return &faulty_; }
  void reopen() override {
    memory_.reopen();
    faulty_.restart(memory_.engine());
  }
  void crash(Random& random) override {
    memory_.crash(random);
    faulty_.restart(memory_.engine());
  }

 private:
  MemoryUnderTest memory_{MemoryEngine::Use::alone};
  FaultyEngine faulty_{memory_.engine(), many_faults};
  RetryingEngine retrying_{faulty_};
};

// The wrapper must be invisible when it has nothing to do.
class FaultlessUnderTest : public EngineUnderTest {
 public:
  Engine& engine() override { return one_; }
  Engine& other() override { return two_; }
  void reopen() override {
    memory_.reopen();
    restart();
  }
  void crash(Random& random) override {
    memory_.crash(random);
    restart();
  }

 private:
  void restart() {
    one_.restart(memory_.engine());
    two_.restart(memory_.other());
  }
  MemoryUnderTest memory_{MemoryEngine::Use::shared};
  FaultyEngine one_{memory_.engine()};
  FaultyEngine two_{memory_.other()};
};

void append_record_head(Bytes& key, char tag) { key.append({'x', 0, 0, 1, 'd', tag, 1, '0'}); }

void expect_resume_in(const ScanRequest& request, const Bytes& resume) {
  EXPECT_FALSE(resume.empty());
  EXPECT_LE(ByteView(request.begin), ByteView(resume));
  if (!request.end.empty()) {
    EXPECT_LE(ByteView(resume), request.end);
  }
}

}  // namespace

void PrintTo(const EngineKind& kind, std::ostream* out) { *out << kind.name; }
void PrintTo(const WayOfEngine& way, std::ostream* out) { *out << name_of(way); }

std::string name_of(const WayOfEngine& way) {
  return way.kind.name + (way.way == Way::latched ? "_latched" : "_expecting");
}

std::vector<EngineKind> engine_kinds() {
  using Use = MemoryEngine::Use;
  return {
      {"memory", false, [] { return std::make_unique<MemoryUnderTest>(Use::alone); }},
      {"memory_shared", true, [] { return std::make_unique<MemoryUnderTest>(Use::shared); }},
      {"faulty_retried", false, [] { return std::make_unique<FaultyUnderTest>(); }},
      {"faultless_shared", true, [] { return std::make_unique<FaultlessUnderTest>(); }},
      {"rocksdb", false, [] { return open_rocksdb_under_test(); }},
      {"cluster", true, [] { return open_cluster_under_test(RangesChange::never); }},
      {"cluster_splitting", true,
       [] { return open_cluster_under_test(RangesChange::all_the_time); }},
  };
}

std::vector<WayOfEngine> ways_of_engines() {
  std::vector<WayOfEngine> ways;
  for (const EngineKind& kind : engine_kinds()) {
    if (!kind.shared) ways.push_back({kind, Way::latched});
    ways.push_back({kind, Way::expecting});
  }
  return ways;
}

std::vector<WayOfEngine> engines_on_the(Way way) {
  std::vector<WayOfEngine> engines = ways_of_engines();
  std::erase_if(engines, [&](const WayOfEngine& engine) { return engine.way != way; });
  return engines;
}

Bytes raw(ByteView name) {
  Bytes key("r\x00\x00\x01", 4);
  key.append(name);
  return key;
}

Bytes counter(ByteView name) {
  Bytes key("x\x00\x00\x01k", 5);
  key.append(name);
  return key;
}

Bytes redis_record(ByteView key, ByteView sub) {
  Bytes record;
  append_record_head(record, 's');
  append_be32(record, static_cast<uint32_t>(key.size()));
  record.append(key);
  append_be64(record, 1);
  record.append(sub);
  return record;
}

Bytes redis_meta(ByteView key) {
  Bytes record;
  append_record_head(record, 'm');
  record.append(key);
  return record;
}

Commit put(ByteView key, ByteView value) {
  Commit commit;
  commit.writes.put(key, value);
  return commit;
}

std::optional<Bytes> get(Engine& engine, ByteView key) {
  Value value;
  EXPECT_OK(engine.get(key, value));
  if (!value.found()) return std::nullopt;
  return Bytes(value.bytes());
}

ScanPage scan_page(Engine& engine, const ScanRequest& request, Entries& entries) {
  entries.clear();
  Result<ScanPage> page = engine.scan(request, [&](ByteView key, ByteView value) {
    entries.emplace_back(key, value);
    return Visit::go_on;
  });
  EXPECT_OK(page);
  if (!page.has_value()) return {};
  EXPECT_EQ(page->entries, entries.size());
  EXPECT_LE(entries.size(), request.entries_max);
  return std::move(*page);
}

Entries scan_all(Engine& engine, ScanRequest request) {
  Entries all;
  const auto without_own_records = [&] {
    std::erase_if(all, [](const auto& entry) { return entry.first < first_key; });
    return std::move(all);
  };
  Entries entries;
  Bytes bound;  // holds what the request refers to
  while (true) {
    const ScanPage page = scan_page(engine, request, entries);
    all.insert(all.end(), entries.begin(), entries.end());
    if (!page.resume.has_value()) return without_own_records();
    expect_resume_in(request, *page.resume);
    EXPECT_FALSE(entries.empty()) << "a page without entries that goes on";
    if (entries.empty()) return without_own_records();
    const bool behind = request.reverse ? entries.back().first >= *page.resume
                                        : entries.back().first < *page.resume;
    EXPECT_TRUE(behind) << "resume visits an entry again";
    bound = *page.resume;
    (request.reverse ? request.end : request.begin) = bound;
  }
}

Expectation expect_value(Engine& engine, ByteView key) {
  Value value;
  EXPECT_OK(engine.get(key, value));
  return {Bytes(key), std::nullopt, engine.evidence(value)};
}

int64_t number_of(const std::optional<Bytes>& value) {
  return value.has_value() ? std::strtoll(value->c_str(), nullptr, 10) : 0;
}

void TransactConformance::SetUp() {
  under_test_ = GetParam().kind.open();
  // Conflicts at random: a transaction must come to the same end with more attempts.
  if (FaultyEngine* faulty = under_test_->faulty()) {
    FaultyOptions options = many_faults;
    options.conflict_one_in = 10;
    faulty->set_options(options);
  }
  const TransactOptions options{.way = GetParam().way, .check_scope = true, .seed = 7};
  transactors_.push_back(std::make_unique<Transactor>(engine(), clock_, options));
  if (GetParam().kind.shared) {
    transactors_.push_back(std::make_unique<Transactor>(under_test_->other(), clock_, options));
  }
}

Status TransactConformance::run(size_t thread, const Scope& scope, FunctionRef<Status(View&)> fn) {
  constexpr int rounds_max = 1000;
  Status status;
  for (int round = 0; round < rounds_max; round++) {
    status = transactor(thread).transact(scope, fn);
    if (status.has_value() || status.error().code != Code::conflict) break;
  }
  return status;
}

}  // namespace trellis
