#include "server/serve.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <csignal>
#include <memory>

#include "base/clock.h"
#include "base/log.h"
#include "codec/local_keys.h"
#include "codec/store_values.h"
#include "engine/memory_engine.h"
#include "map/transact.h"
#include "rocksdb_engine/rocksdb_engine.h"

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
  std::string description;
};

Result<Store> open_store(const Settings& settings, const Clock& clock) {
  if (settings.engine == EngineChoice::memory)
    return Store{std::make_unique<MemoryEngine>(), "in memory: gone when the server stops"};
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::absolute(settings.data, failed);
  if (failed)
    return Error{Code::invalid, fmt::format("data folder {}: {}: give an absolute path",
                                            settings.data, failed.message())};
  TRY_ASSIGN(auto engine, open_rocksdb_engine(
                              {.path = path, .clock = clock, .cache_bytes = settings.cache_bytes}));
  std::string description = fmt::format("{} (rocksdb, store {})", path.lexically_normal().string(),
                                        to_string(engine->identity().uuid));
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
