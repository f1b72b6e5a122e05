#include "catalog/catalog_world.h"

#include <fmt/format.h>
#include <rocksdb/env.h>

#include <stdexcept>

#include "base/log.h"
#include "catalog/catalog_check.h"
#include "codec/system_keys.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "support/expect_ok.h"
#include "support/make_keyspace.h"
#include "support/power_loss_file_system.h"

namespace trellis {
namespace {

using Names = std::vector<std::string>;

constexpr CatalogType in_metalake[] = {CatalogType::catalog, CatalogType::tag, CatalogType::user,
                                       CatalogType::role};
constexpr CatalogType in_catalog[] = {CatalogType::schema};
constexpr CatalogType in_schema[] = {CatalogType::table, CatalogType::fileset};

std::span<const CatalogType> types_in(CatalogType type) {
  switch (type) {
    case CatalogType::metalake: return in_metalake;
    case CatalogType::catalog: return in_catalog;
    case CatalogType::schema: return in_schema;
    default: return {};
  }
}

bool starts_with(const Names& names, const Names& start) {
  return names.size() >= start.size() && std::equal(start.begin(), start.end(), names.begin());
}

// One metalake's log, done again.
class Replay {
 public:
  void apply(const stored::CatalogChange& change) {
    const Names names(change.names().begin(), change.names().end());
    const Names before(change.names_before().begin(), change.names_before().end());
    const auto ref = decode_ref(change.ref());
    ASSERT_OK(ref);
    const std::string& action = change.action();
    SCOPED_TRACE(action + " " + CatalogRefBytes::text(*ref) + " " +
                 fmt::format("{}", fmt::join(names, ".")));
    if (action == "create") {
      EXPECT_EQ(change.version(), 1u);
      EXPECT_TRUE(all_[names].emplace(ref->type, Living{*ref, 1}).second) << "is there";
    } else if (action == "drop") {
      expect(names, *ref, change.version());
      dropped_[*ref] = take(names, ref->type);
    } else if (action == "undelete") {
      ASSERT_TRUE(dropped_.contains(*ref));
      put_back(names, dropped_.extract(*ref).mapped());
      expect(names, *ref, change.version() - 1);
      all_[names][ref->type].version++;
    } else if (action == "tag" || action == "set_owner") {  // it stays as it is
      expect(names, *ref, change.version());
    } else {  // alter, enable, disable, grant, revoke
      expect(before.empty() ? names : before, *ref, change.version() - 1);
      if (!before.empty()) {
        EXPECT_FALSE(all_.contains(names) && all_[names].contains(ref->type)) << "is there";
        put_back(names, take(before, ref->type));
      }
      all_[names][ref->type].version = change.version();
    }
  }
  const LivingOnes& all() const { return all_; }

 private:
  // Names from the thing down.
  using Tree = std::vector<std::pair<Names, std::pair<CatalogType, Living>>>;

  void expect(const Names& names, const CatalogRef& ref, uint64_t version) {
    const auto found = all_.find(names);
    ASSERT_TRUE(found != all_.end() && found->second.contains(ref.type)) << "is not there";
    EXPECT_EQ(found->second[ref.type].ref, ref);
    EXPECT_EQ(found->second[ref.type].version, version);
  }
  Tree take(const Names& names, CatalogType type) {
    Tree tree;
    for (auto each = all_.begin(); each != all_.end();) {
      if (!starts_with(each->first, names)) {
        ++each;
        continue;
      }
      const bool itself = each->first.size() == names.size();
      for (auto of_type = each->second.begin(); of_type != each->second.end();) {
        // A tag has nothing below, though a catalog of its name may.
        const bool goes = itself ? of_type->first == type : !types_in(type).empty();
        if (!goes) {
          ++of_type;
          continue;
        }
        tree.push_back(
            {Names(each->first.begin() + static_cast<ptrdiff_t>(names.size()), each->first.end()),
             *of_type});
        of_type = each->second.erase(of_type);
      }
      each = each->second.empty() ? all_.erase(each) : std::next(each);
    }
    return tree;
  }
  void put_back(const Names& names, const Tree& tree) {
    for (const auto& [below, living] : tree) {
      Names at = names;
      at.insert(at.end(), below.begin(), below.end());
      EXPECT_TRUE(all_[at].insert(living).second) << "is there";
    }
  }

  LivingOnes all_;
  std::map<CatalogRef, Tree> dropped_;
};

}  // namespace

std::vector<CatalogSetup> catalog_setups() {
  return {{"latched", Way::latched, false, false},
          {"expecting", Way::expecting, false, false},
          {"faulty", Way::latched, false, true},
          {"two_servers", Way::expecting, true, false},
          {"faulty_two_servers", Way::expecting, true, true},
          {"rocksdb", Way::latched, false, false, CatalogEngine::rocksdb},
          {"cluster", Way::expecting, true, false, CatalogEngine::cluster}};
}

std::string to_string(const LivingOnes& all) {
  std::string out;
  for (const auto& [names, by_type] : all)
    for (const auto& [type, living] : by_type)
      out += fmt::format("{} {} {} v{}\n", catalog_word(type).name, fmt::join(names, "."),
                         CatalogRefBytes::text(living.ref), living.version);
  return out;
}

struct CatalogWorld::RocksdbStore {
  SystemClock clock;
  const std::shared_ptr<PowerLossFileSystem> files = std::make_shared<PowerLossFileSystem>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  std::shared_ptr<RocksdbEngine> engine;

  RocksdbStore() {
    setup_log(LogLevel::error, LogFormat::text);
    auto opened = open_rocksdb_engine(
        {.path = "/store", .clock = clock, .cache_bytes = size_t{8} << 20, .env = env.get()});
    // Ends the test, and only it: nothing can go on without an engine.
    if (!opened) throw std::runtime_error(to_string(opened.error()));
    engine = std::move(*opened);
  }
};

CatalogWorld::~CatalogWorld() = default;

CatalogWorld::CatalogWorld(const CatalogSetup& setup, uint64_t seed) : fault_seed_(seed) {
  if (setup.engine == CatalogEngine::rocksdb) rocksdb_ = std::make_unique<RocksdbStore>();
  if (setup.engine == CatalogEngine::cluster) cluster_ = std::make_unique<ClusterWorld>();
  truth_ = open(setup, seed, false);
  EXPECT_OK(make_keyspace(*truth_.engine, keyspace));
  for (size_t i = 0; i < (setup.two_servers ? 2 : 1); i++)
    servers_.push_back(open(setup, seed + i, setup.faulty));
}

void CatalogWorld::open_engine(const CatalogSetup& setup, Server& server) {
  if (rocksdb_) {
    server.engine = rocksdb_->engine;
  } else if (cluster_) {
    auto client = std::make_shared<ClusterWorld::Client>(cluster_->open_client());
    server.engine = std::shared_ptr<Engine>(client, client->engine.get());
  } else {
    const auto use = setup.two_servers ? MemoryEngine::Use::shared : MemoryEngine::Use::alone;
    server.engine = std::make_shared<MemoryEngine>(store_, use);
  }
}

CatalogWorld::Server CatalogWorld::open(const CatalogSetup& setup, uint64_t seed, bool faulty) {
  Server server;
  open_engine(setup, server);
  Engine* engine = server.engine.get();
  if (faulty) {
    server.faulty = std::make_unique<FaultyEngine>(*engine);
    engine = server.faulty.get();
  }
  server.transactor = std::make_unique<Transactor>(
      *engine, clock_, TransactOptions{.way = setup.way, .check_scope = true, .seed = seed});
  server.tenant =
      std::make_unique<Tenant>(MapHandle{*engine, *server.transactor, clock_}, keyspace);
  server.catalog = std::make_unique<Catalog>();
  return server;
}

void CatalogWorld::set_faults(bool on) {
  for (Server& server : servers_) {
    if (server.faulty == nullptr) continue;
    server.faulty->set_options(on ? FaultyOptions{.seed = ++fault_seed_,
                                                  .fail_read_one_in = 50,
                                                  .fail_commit_one_in = 25,
                                                  .conflict_one_in = 10,
                                                  .maybe_one_in = 10}
                                  : FaultyOptions{});
  }
}

uint64_t CatalogWorld::faults() const {
  uint64_t count = 0;
  for (const Server& server : servers_) {
    if (server.faulty == nullptr) continue;
    const FaultCounts counts = server.faulty->counts();
    count += counts.maybes_applied + counts.maybes_dropped;
  }
  return count;
}

std::vector<Garbage> CatalogWorld::notes() {
  std::vector<Garbage> found;
  Bytes prefix;
  append_keyspace_prefix(prefix, KeyMode::txn, keyspace);
  prefix += 'g';
  EXPECT_OK(truth_.engine->scan(
      {.begin = prefix, .end = prefix_end(prefix)}, [&](ByteView key, ByteView) {
        const auto note = decode<GarbageKey>(key);
        if (note && note->due_ms <= clock_.unix_ms())
          found.push_back({note->due_ms, Bytes(note->target), note->model, 0});
        return Visit::go_on;
      }));
  return found;
}

size_t CatalogWorld::logged_changes() {
  Bytes prefix = encode(CatalogLogKey{keyspace, {}});
  prefix.resize(prefix.size() - std::tuple_size_v<Uuid>);
  size_t entries = 0;
  std::optional<Bytes> from = prefix;
  while (from) {
    auto page =
        truth_.engine->scan({.begin = *from, .end = prefix_end(prefix)}, [&](ByteView, ByteView) {
          entries++;
          return Visit::go_on;
        });
    EXPECT_OK(page);
    from = page ? std::move(page->resume) : std::nullopt;
  }
  return entries;
}

void CatalogWorld::collect(Server& server) {
  for (const Garbage& note : notes()) {
    const auto gone = server.catalog->collect(*server.tenant, {&note, 1});
    if (gone) continue;
    const Code code = gone.error().code;
    EXPECT_TRUE(code == Code::unavailable || code == Code::maybe || code == Code::conflict)
        << to_string(gone.error());
  }
}

void CatalogWorld::collect_all() {
  for (int i = 0; i < 1'000 && !notes().empty(); i++) collect(truth_);
  EXPECT_TRUE(notes().empty());
}

void CatalogWorld::add_living(const EntityPath& parent, CatalogType type, LivingOnes& all) {
  std::vector<std::string> names;
  ASSERT_OK(truth_.catalog->list(call(truth_), parent, type, {.limit = 10'000},
                                 [&](std::string_view name, const NamedRef&) {
                                   names.emplace_back(name);
                                   return Visit::go_on;
                                 }));
  for (const std::string& name : names) {
    EntityPath path{type, parent.names};
    path.names.push_back(name);
    if (catalog_type_has_uuid(type)) {  // what is disabled hides what is below
      ASSERT_OK(truth_.catalog->set_in_use(call(truth_), path, true));
    }
    const auto entity = truth_.catalog->load(call(truth_), path);
    ASSERT_OK(entity);
    all[path.names][type] = {entity->ref, entity->stored.version()};
    for (const CatalogType below : types_in(type)) add_living(path, below, all);
  }
}

LivingOnes CatalogWorld::living() {
  LivingOnes all;
  add_living({}, CatalogType::metalake, all);
  return all;
}

LivingOnes CatalogWorld::logged() {
  LivingOnes all;
  std::vector<std::string> names;
  EXPECT_OK(truth_.catalog->list(call(truth_), {}, CatalogType::metalake, {},
                                 [&](std::string_view name, const NamedRef&) {
                                   names.emplace_back(name);
                                   return Visit::go_on;
                                 }));
  for (const std::string& name : names) {
    Replay replay;
    uint64_t since = 0;
    for (;;) {
      const auto changes = truth_.catalog->changes(call(truth_), name, since, 1'000);
      EXPECT_OK(changes);
      if (!changes || changes->empty()) break;
      for (const Catalog::NumberedChange& change : *changes) {
        EXPECT_EQ(change.number, ++since);
        replay.apply(change.change);
      }
    }
    all.insert(replay.all().begin(), replay.all().end());
  }
  return all;
}

void CatalogWorld::check() {
  for (const std::string& problem : check_catalog(*truth_.engine, keyspace))
    ADD_FAILURE() << problem;
  const std::string alive = to_string(living());
  EXPECT_EQ(alive, to_string(logged()));
}

}  // namespace trellis
