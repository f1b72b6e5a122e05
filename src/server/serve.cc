#include "server/serve.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <mutex>
#include <optional>

#include "backup/backups.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "codec/local_keys.h"
#include "codec/store_values.h"
#include "engine/memory_engine.h"
#include "fs/file_systems.h"
#include "map/map_handle.h"
#include "map/traffic.h"
#include "net/ask_lines.h"
#include "net/http_server.h"
#include "net/stream_server.h"
#include "range/embedded_ranges.h"
#include "range/key_borders.h"
#include "raw/raw.h"
#include "redis/call.h"
#include "redis/garbage.h"
#include "redis/server.h"
#include "resp/resp_server.h"
#include "rest/lane.h"
#include "rest/rest.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "server/admin_token.h"
#include "server/store_metrics.h"
#include "tenant/collector.h"
#include "tenant/gc.h"
#include "tenant/keyspaces.h"
#include "tenant/tokens.h"

namespace trellis {
namespace {

// SIGINT, SIGTERM and SIGHUP (the terminal went away) are taken by wait(), in every thread that is
// started after this.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  int wait() const {
    int signal = 0;
    sigwait(&signals_, &signal);
    return signal;
  }

 private:
  sigset_t signals_;
};

struct Store {
  std::unique_ptr<Engine> engine;
  const RocksdbEngine* rocksdb;  // the same, if it is one
  std::string description;
  std::filesystem::path path = {};  // of its files, if it has some
};

// A setting with where it came from.
const ResolvedSetting& setting(const Settings& settings, std::string_view name) {
  for (const ResolvedSetting& one : settings.resolved)
    if (one.spec->name == name) return one;
  assertion_failed(name.data(), __FILE__, __LINE__);
}

// Unless somebody has said otherwise, a small disk is not kept empty.
uint64_t disk_reserve_bytes(const Settings& settings, std::filesystem::path folder) {
  if (setting(settings, "disk-reserve-bytes").source != SettingSource::by_default)
    return settings.disk_reserve_bytes;
  std::error_code failed;
  while (!std::filesystem::exists(folder, failed) && folder.has_relative_path())
    folder = folder.parent_path();
  const uint64_t disk_bytes = std::filesystem::space(folder, failed).capacity;
  return failed ? settings.disk_reserve_bytes
                : std::min(settings.disk_reserve_bytes, disk_bytes / 10);
}

// Of the memory for caches, what goes to records that transactions read; the rest is the engine's,
// which needs most of a little for its memtables and indexes.
size_t record_bytes(const Settings& settings) {
  constexpr size_t little = 1 << 30;
  const size_t first = std::min<size_t>(settings.cache_bytes, little);
  return first / 4 + (settings.cache_bytes - first) / 2;
}
// Much of that is left for the gaps of malloc: records are small, of all sizes, and come and go.
size_t record_cache_bytes(const Settings& settings) { return record_bytes(settings) / 8 * 5; }

Result<Store> open_store(const Settings& settings, const Clock& clock) {
  if (settings.engine == EngineChoice::memory)
    return Store{std::make_unique<MemoryEngine>(), nullptr,
                 "in memory: gone when the server stops"};
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::absolute(settings.data, failed);
  if (failed)
    return Error{Code::invalid, fmt::format("data folder {}: {}: give an absolute path",
                                            settings.data, failed.message())};
  TRY_ASSIGN(auto engine,
             open_rocksdb_engine({.path = path,
                                  .clock = clock,
                                  .cache_bytes = settings.cache_bytes - record_bytes(settings),
                                  .disk_reserve_bytes = disk_reserve_bytes(settings, path)}));
  std::string description = fmt::format("{} (rocksdb, store {})", path.lexically_normal().string(),
                                        to_string(engine->identity().uuid));
  const RocksdbEngine* rocksdb = engine.get();
  return Store{std::move(engine), rocksdb, std::move(description), path};
}

// A copy of the store that is only read, once, from its begin to its end.
Result<std::unique_ptr<Engine>> open_copy(const std::filesystem::path& folder, const Clock& clock) {
  constexpr size_t copy_cache_bytes = size_t{32} << 20;
  TRY_ASSIGN(auto engine, open_rocksdb_engine({.path = folder,
                                               .clock = clock,
                                               .cache_bytes = copy_cache_bytes,
                                               .background_threads = 1,
                                               .create_if_missing = false,
                                               .compacts = false}));
  return engine;
}

Durability durability_of(DurabilityChoice choice) {
  switch (choice) {
    case DurabilityChoice::always: return Durability::always;
    case DurabilityChoice::everysec: return Durability::everysec;
    case DurabilityChoice::off: return Durability::off;
  }
  return Durability::everysec;
}

// Written before anything is served, so that a store that cannot be written is found now.
Status record_start(Transactor& transactor, const Clock& clock, Durability durability) {
  const Bytes key = encode(StoreKey{StoreKey::last_up});
  const Bytes value = encode(StoreStart{clock.unix_ms()});
  return transactor.transact(
      Scope::system().exclusive(key),
      [&](View& view) {
        view.put(key, value);
        return Status();
      },
      durability);
}

Result<RestOptions> rest_options(const Settings& settings, std::ostream& out) {
  RestOptions options;
  options.catalog_authorization = settings.catalog_authorization;
  options.catalog_version = settings.catalog_version;
  options.auth = settings.auth == AuthChoice::required ? RestOptions::Auth::required
                                                       : RestOptions::Auth::loopback;
  if (!settings.admin_token_file.empty()) {
    TRY_ASSIGN(AdminToken token, load_admin_token(settings.admin_token_file));
    if (token.is_new) fmt::print(out, "Made an admin token: {}\n", settings.admin_token_file);
    options.admin_token = std::move(token.text);
  }
  return options;
}

HttpServerOptions http_options(const Settings& settings, Registry& metrics) {
  HttpServerOptions options;
  // A listing names two paths of files, where and from where on, each of up to 4,096 bytes, which
  // may all be written with three.
  options.header_bytes_max = 40 * 1024;
  const bool tls = !settings.tls_cert.empty();
  options.listeners = {{settings.http.host, settings.http.port, tls}};
  if (tls) options.tls = TlsFiles{settings.tls_cert, settings.tls_key};
  options.metrics = &metrics;
  options.error_response = error_response;
  options.failure_response = failure_response;
  options.lane = lane_of;
  return options;
}

// An upload that waits for its client renews nothing, and must find its session when it goes on:
// one is renewed when a third of its time is over, and a body may pause for streamed_body_ms.
FileSystemOptions files_options() {
  return {.session_ms = uint64_t{3} * HttpServerOptions().streamed_body_ms};
}

RedisOptions redis_options(const Settings& settings, const RestOptions& rest) {
  return {.auth_required = settings.auth == AuthChoice::required || !rest.admin_token.empty(),
          .admin_token = rest.admin_token,
          .clients_max = settings.resp_clients_max,
          .command_bytes_max = settings.resp_command_bytes,
          .ask_server =
              [](const std::string& host, uint16_t port, ByteView request, size_t lines,
                 uint32_t timeout_ms) {
                return ask_lines({host, port, request, lines, timeout_ms});
              },
          .stop_process = [] { ::kill(::getpid(), SIGTERM); }};
}

// What CONFIG GET tells of the settings.
void tell_settings(const Settings& settings, uint16_t resp_port, RedisConfig& config) {
  const auto in_s = [](uint64_t ms) { return std::to_string((ms + 999) / 1'000); };
  config.set_fact("bind", settings.resp.host);
  config.set_fact(
      "client-output-buffer-limit",
      fmt::format("normal {} 0 0 slave 0 0 0 pubsub {} 0 0", reply_bytes_max, reply_bytes_max));
  config.set_fact("client-query-buffer-limit", std::to_string(settings.resp_command_bytes));
  config.set_fact("maxclients", std::to_string(settings.resp_clients_max));
  config.set_fact("maxmemory-clients", std::to_string(settings.resp_memory_bytes));
  config.set_fact("port", std::to_string(resp_port));
  config.set_fact("proto-max-bulk-len", std::to_string(string_bytes_max));
  config.set_fact("tcp-keepalive", std::to_string(tcp_keepalive_s));
  config.set_fact("timeout", in_s(settings.resp_idle_timeout_ms));
  config.set_fact("tls-port", std::to_string(settings.resp_tls.port));
  config.set_fact("unixsocket", settings.resp_unix);
  const bool syncs = settings.durability != DurabilityChoice::off;
  const bool always = settings.durability == DurabilityChoice::always;
  config.set_fact("appendfsync", always ? "always" : syncs ? "everysec" : "no");
}

uint32_t unix_mode(UnixAccessChoice access) {
  switch (access) {
    case UnixAccessChoice::owner: return 0600;
    case UnixAccessChoice::group: return 0660;
    case UnixAccessChoice::all: return 0666;
  }
  return 0600;
}

StreamServerOptions resp_options(const Settings& settings) {
  StreamServerOptions options;
  options.listeners = {{.host = settings.resp.host, .port = settings.resp.port}};
  options.connections_max = settings.resp_clients_max;
  if (!settings.resp_tls.host.empty()) {
    options.tls = TlsFiles{settings.tls_cert, settings.tls_key};
    options.listeners.push_back(
        {.host = settings.resp_tls.host, .port = settings.resp_tls.port, .tls = true});
  }
  if (!settings.resp_unix.empty())
    options.listeners.push_back(
        {.unix_path = settings.resp_unix, .unix_mode = unix_mode(settings.resp_unix_access)});
  return options;
}

RespOptions resp_limits(const Settings& settings) {
  return {.memory_bytes_max = settings.resp_memory_bytes,
          .idle_timeout_ms = settings.resp_idle_timeout_ms,
          .send_timeout_ms = settings.resp_send_timeout_ms};
}

// Every connection is an open file, and so is every table of the store.
void raise_open_files(size_t clients_max) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur / 2 < clients_max)  // the store takes the other half, if it must
    log_warn("fewer open files are allowed than clients may come: raise the limit of the service",
             {{"open_files_max", limit.rlim_cur}, {"resp-clients-max", clients_max}});
}

// Tells the ranges what transactions do.
class RangeTraffic final : public TrafficObserver {
 public:
  explicit RangeTraffic(unsigned one_in) : accounting_(one_in) {}
  RangeAccounting& accounting() { return accounting_; }
  void sampled(const std::vector<Bytes>& reads, const WriteSet& writes) override {
    accounting_.sampled(reads, writes);
  }

 private:
  RangeAccounting accounting_;
};

// Those whose data ranges keep apart, by id. All are read once; then only what changes, so that
// those that are idle cost nothing.
class LivingKeyspaces {
 public:
  explicit LivingKeyspaces(Keyspaces& keyspaces) : keyspaces_(keyspaces) {}

  Result<std::vector<KeyspaceId>> operator()() {
    const std::lock_guard lock(mutex_);
    const Status followed = revision_ ? follow() : list();
    if (!followed && followed.error().reason == "compacted") {
      TRY(list());
    } else {
      TRY(followed);
    }
    return living_;
  }

 private:
  static constexpr size_t page_entries = 1'000;

  Status list() {
    living_.clear();
    revision_.reset();
    TRY_ASSIGN(const uint64_t revision, keyspaces_.changes().revision());  // before they are read
    std::optional<KeyspaceId> next = KeyspaceId{0};
    while (next) {
      TRY_ASSIGN(const Keyspaces::Page page, keyspaces_.list(*next, page_entries));
      for (const Keyspace& keyspace : page.keyspaces)
        if (keyspace.state != KeyspaceState::tombstone) living_.push_back(keyspace.id);
      next = page.next;
    }
    revision_ = revision;
    return {};
  }

  Status follow() {
    for (;;) {
      TRY_ASSIGN(const std::vector<Change> changes,
                 keyspaces_.changes().read(*revision_, page_entries));
      if (changes.empty()) return {};
      for (const Change& change : changes)
        if (change.after) note(*change.after);
      revision_ = changes.back().revision;
    }
  }

  void note(const Keyspace& keyspace) {
    const auto place = std::lower_bound(living_.begin(), living_.end(), keyspace.id);
    const bool is_there = place != living_.end() && *place == keyspace.id;
    const bool lives = keyspace.state != KeyspaceState::tombstone;
    if (lives && !is_there) living_.insert(place, keyspace.id);
    if (!lives && is_there) living_.erase(place);
  }

  Keyspaces& keyspaces_;
  std::mutex mutex_;
  std::optional<uint64_t> revision_;  // up to which living_ is known; absent: nothing is
  std::vector<KeyspaceId> living_;
};

// Everything that stands on one store, in the order in which it is built; it is taken down in the
// opposite one.
class Service {
 public:
  Service(const Store& store, Clock& clock, const Settings& settings)
      : store_(store),
        clock_(clock),
        traffic_(std::max(settings.range_sampling, 1u)),
        transactor_(*store.engine, clock,
                    {.record_cache_bytes = record_cache_bytes(settings),
                     .observer = settings.range_sampling == 0 ? nullptr : &traffic_,
                     .observed_one_in = std::max(settings.range_sampling, 1u)}),
        map_{*store.engine, transactor_, clock, durability_of(settings.durability)} {}

  Status start(const Settings& settings, std::ostream& out) {
    TRY(check_store_is_whole(map_.engine));
    // A full disk is served as far as it goes: reads must be possible, and so must deletes.
    if (Status recorded = record_start(transactor_, clock_, map_.durability);
        !recorded && recorded.error().code != Code::no_space)
      return recorded;
    TRY_ASSIGN(RestOptions rest, rest_options(settings, out));
    TRY_ASSIGN(keyspaces_,
               Keyspaces::open(map_, {.archive_retention_ms = settings.archive_retention_ms}));
    tokens_.emplace(map_, keyspaces_->changes());
    gc_.emplace(map_, keyspaces_->changes());
    collector_.emplace(*keyspaces_, *gc_,
                       CollectorOptions{.gc_life_time_ms = settings.gc_life_time_ms});
    TRY(collector_->load_pace());
    const auto borders = [this](ByteView begin, ByteView end) {
      return key_borders(traffic_.accounting(), begin, end);
    };
    collector_->cut_at(borders);
    collector_->own(Model::raw, raw_);
    files_.emplace(*keyspaces_, files_options());
    collector_->own(Model::fs, *files_);
    catalog_.emplace(borders);
    collector_->own(Model::catalog, *catalog_);
    redis_.emplace(*keyspaces_, *tokens_, redis_options(settings, rest));
    redis_garbage_.emplace(*redis_, borders);
    collector_->own(Model::redis, *redis_garbage_);
    backups_.emplace(*keyspaces_, *collector_, backups_options());
    keyspaces_->on_due([this] { collector_->wake(); });
    gc_->on_due([this] { collector_->wake(); });
    if (store_.rocksdb != nullptr) TRY(watch_engine(metrics_, *store_.rocksdb));
    TRY(watch_tenants(metrics_, *keyspaces_, *collector_));
    TRY(watch_backups(metrics_, *backups_));
    TRY(open_ranges(settings));
    context_.emplace(RestContext{*keyspaces_, *tokens_, *gc_, *collector_, raw_, *files_, *catalog_,
                                 *backups_, metrics_, clock_, *ranges_, rest});
    TRY_ASSIGN(Router router, Router::make(make_routes(*context_)));
    TRY_ASSIGN(http_,
               HttpServer::start(std::move(router), http_options(settings, metrics_), clock_));
    TRY_ASSIGN(resp_, StreamServer::start(make_resp_protocol(*redis_, resp_limits(settings)),
                                          resp_options(settings), clock_));
    tell_settings(settings, resp_->ports().at(0), redis_->config());
    collector_->start();
    ranges_->start();
    // What they left may be gone with a disk that is not there now: that is no reason to be down.
    if (const Status resumed = backups_->start(); !resumed)
      log_warn("backups cannot be gone on with", {{"error", resumed.error().message}});
    return {};
  }

  uint16_t http_port() const { return http_->ports().at(0); }
  // Where Redis's protocol is served, as clients are told: one line each.
  std::vector<std::string> resp_urls(const Settings& settings) const {
    const std::vector<uint16_t> ports = resp_->ports();
    std::vector<std::string> urls = {
        fmt::format("redis://{}", to_string(Endpoint{settings.resp.host, ports[0]}))};
    if (!settings.resp_tls.host.empty())
      urls.push_back(
          fmt::format("rediss://{}", to_string(Endpoint{settings.resp_tls.host, ports[1]})));
    if (!settings.resp_unix.empty()) urls.push_back("unix:" + settings.resp_unix);
    return urls;
  }

  void stop() {
    resp_->stop();
    http_->stop();
    backups_->stop();
    collector_->stop();
    ranges_->stop();
  }

 private:
  Status open_ranges(const Settings& settings) {
    living_.emplace(*keyspaces_);
    TRY_ASSIGN(ranges_,
               EmbeddedRanges::open(
                   *store_.engine, clock_, traffic_.accounting(),
                   {.keeper = {.range_bytes_max = settings.range_bytes_max,
                               .range_keys_max = settings.range_keys_max,
                               .range_load_max = settings.range_load_max,
                               .series = {.samples_kept_ms = settings.range_samples_retention_ms,
                                          .averages_kept_ms = settings.range_averages_retention_ms},
                               .version = TRELLIS_VERSION,
                               .living = [this] { return (*living_)(); }},
                    .durability = map_.durability}));
    return watch_ranges(metrics_, *ranges_);
  }
  BackupsOptions backups_options() {
    BackupsOptions options;
    options.skip_redis_versions = [this](uint64_t end) { return redis_->versions().skip_to(end); };
    if (store_.rocksdb == nullptr) return options;
    options.work = store_.path / "backups";
    options.open_copy = [this](const std::filesystem::path& folder) {
      return open_copy(folder, clock_);
    };
    return options;
  }

  const Store& store_;
  Clock& clock_;
  RangeTraffic traffic_;
  Transactor transactor_;
  const MapHandle map_;
  Registry metrics_;
  Raw raw_;
  std::unique_ptr<Keyspaces> keyspaces_;
  std::optional<Tokens> tokens_;
  std::optional<Gc> gc_;
  std::optional<FileSystems> files_;
  std::optional<Catalog> catalog_;
  std::optional<RedisServer> redis_;
  std::optional<RedisGarbageOwner> redis_garbage_;
  std::optional<Collector> collector_;
  std::optional<LivingKeyspaces> living_;
  std::unique_ptr<EmbeddedRanges> ranges_;
  std::optional<Backups> backups_;
  std::optional<RestContext> context_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<StreamServer> resp_;
};

}  // namespace

Status serve(const Settings& settings, std::ostream& out) {
  setup_log(settings.log_level, settings.log_format);
  // A reader that hangs up is an error of its own connection, not the end of the server.
  std::signal(SIGPIPE, SIG_IGN);
  const StopSignals stop;
  raise_open_files(settings.resp_clients_max);
  SystemClock clock;
  auto store = open_store(settings, clock);
  if (!store) return std::move(store).error();
  {
    Service service(*store, clock, settings);
    TRY(service.start(settings, out));
    const Endpoint http{settings.http.host, service.http_port()};
    fmt::print(out,
               "Trellis is up.\n"
               "  data        {}\n"
               "  durability  {}\n"
               "  redis       {}\n"
               "  http        {}://{}\n"
               "Ctrl-C stops it.\n",
               store->description, setting(settings, "durability").text,
               fmt::join(service.resp_urls(settings), "\n              "),
               settings.tls_cert.empty() ? "http" : "https", to_string(http));
    out.flush();
    log_info("stopping", {{"signal", stop.wait()}});
    service.stop();
  }
  store->engine.reset();
  fmt::print(out, "Closed cleanly.\n");
  return {};
}

}  // namespace trellis
