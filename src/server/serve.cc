#include "server/serve.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "base/clock.h"
#include "base/log.h"
#include "codec/field_codecs.h"
#include "codec/local_keys.h"
#include "engine/memory_engine.h"
#include "map/transact.h"
#include "rocksdb_engine/rocksdb_engine.h"

namespace trellis {
namespace {

// SIGINT and SIGTERM are taken by wait(), in every thread that is started after this.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
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
  std::string description;
};

Result<Store> open_store(const Settings& settings, const Clock& clock) {
  if (settings.engine == EngineChoice::memory)
    return Store{std::make_unique<MemoryEngine>(), "in memory: gone when the server stops"};
  const std::filesystem::path path = std::filesystem::absolute(settings.data);
  TRY_ASSIGN(auto engine, open_rocksdb_engine(
                              {.path = path, .clock = clock, .cache_bytes = settings.cache_bytes}));
  Uuid uuid;
  std::copy(engine->identity().uuid.begin(), engine->identity().uuid.end(), uuid.begin());
  std::string description =
      fmt::format("{} (rocksdb, store {})", path.lexically_normal().string(), to_string(uuid));
  return Store{std::move(engine), std::move(description)};
}

// A setting as it was given.
std::string_view setting_text(const Settings& settings, std::string_view name) {
  for (const ResolvedSetting& setting : settings.resolved)
    if (setting.spec->name == name) return setting.text;
  return "";
}

Durability durability_of(DurabilityChoice choice) {
  switch (choice) {
    case DurabilityChoice::always: return Durability::always;
    case DurabilityChoice::everysec: return Durability::everysec;
    case DurabilityChoice::off: return Durability::off;
  }
  return Durability::everysec;
}

// | 01 's' 'uptm' | -> | format 01 | unix ms u64 |: when this store was last started. Written
// before anything is served, so that a store that cannot be written is found now.
Status record_start(Transactor& transactor, const Clock& clock, Durability durability) {
  constexpr unsigned char last_up = 4;
  static_assert(StoreKey::whats[last_up].bytes == "uptm");
  const Bytes key = encode(StoreKey{last_up});
  Bytes value("\x01");
  append_be64(value, clock.unix_ms());
  return transactor.transact(
      Scope::system().exclusive(key),
      [&](View& view) {
        view.put(key, value);
        return Status();
      },
      durability);
}

}  // namespace

Status serve(const Settings& settings, std::ostream& out) {
  setup_log(settings.log_level, settings.log_format);
  // A reader that hangs up is an error of its own connection, not the end of the server.
  std::signal(SIGPIPE, SIG_IGN);
  const StopSignals stop;
  SystemClock clock;
  auto store = open_store(settings, clock);
  if (!store) return std::move(store).error();
  {
    Transactor transactor(*store->engine, clock);
    TRY(record_start(transactor, clock, durability_of(settings.durability)));
    fmt::print(out,
               "Trellis is up.\n"
               "  data        {}\n"
               "  durability  {}\n"
               "  listens     nowhere yet: this version has no network interfaces\n"
               "Ctrl-C stops it.\n",
               store->description, setting_text(settings, "durability"));
    out.flush();
    log_info("stopping", {{"signal", stop.wait()}});
  }
  store->engine.reset();
  fmt::print(out, "Closed cleanly.\n");
  return {};
}

}  // namespace trellis
