#include "server/offline_fsck.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "backup/restore.h"
#include "base/clock.h"
#include "fs/file_system.h"
#include "fs/fsck.h"
#include "map/map_handle.h"
#include "rest/fsck_lines.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "tenant/keyspaces.h"

namespace trellis {
namespace {

constexpr auto fsck_progress_period = std::chrono::milliseconds(200);

// Hands lines on, those of the progress while nothing else is said.
class FsckTeller {
 public:
  FsckTeller(const OfflineFsck& asked, JobControl& control)
      : asked_(asked), control_(control), thread_([this](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any stopped;
          std::unique_lock lock(mutex);
          while (!stopped.wait_for(lock, stop, fsck_progress_period, [] { return false; }) &&
                 !stop.stop_requested())
            say(fsck_progress_line(control_.progress()));
        }) {}

  void say(ByteView lines) {
    const std::lock_guard lock(mutex_);
    if (!said_) return;
    said_ = asked_.say(lines);
    if (!said_) control_.cancel();
  }
  // The last line.
  Status finish(ByteView lines) {
    thread_.request_stop();
    thread_.join();
    say(lines);
    return said_;
  }

 private:
  const OfflineFsck& asked_;
  JobControl& control_;
  std::mutex mutex_;
  Status said_;
  std::jthread thread_;
};

}  // namespace

Status fsck_offline(const OfflineFsck& asked) {
  SystemClock clock;
  TRY_ASSIGN(const auto engine, open_rocksdb_engine({.path = std::filesystem::absolute(asked.data),
                                                     .clock = clock,
                                                     .create_if_missing = false}));
  TRY(check_store_is_whole(*engine));
  Transactor transactor(*engine, clock);
  TRY_ASSIGN(const auto keyspaces, Keyspaces::open({*engine, transactor, clock}));
  TRY_ASSIGN(const auto tenant,
             keyspaces->tenant(asked.keyspace.empty() ? default_keyspace_name : asked.keyspace));
  TRY_ASSIGN(const auto fs, FileSystem::open(tenant));
  JobControl control(clock);
  FsckTeller teller(asked, control);
  const auto report =
      fsck(*fs, Caller{Role::admin, "fsck"},
           {.repair = asked.repair, .read_blocks = !asked.quick, .offline = true}, control,
           [&](const FsckFinding& finding) { teller.say(fsck_finding_line(finding)); });
  return teller.finish(fsck_end_line(report));
}

}  // namespace trellis
