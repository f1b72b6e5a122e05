#include "server/offline_restore.h"

#include <fmt/format.h>

#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "backup/files.h"
#include "backup/restore.h"
#include "backup/stream.h"
#include "base/clock.h"
#include "rocksdb_engine/rocksdb_engine.h"

namespace trellis {
namespace {

constexpr auto progress_period = std::chrono::milliseconds(200);

std::filesystem::path with_ending(std::filesystem::path path, std::string_view ending) {
  return path += ending;
}

Status check_free(const std::filesystem::path& data) {
  std::error_code failed;
  if (!std::filesystem::exists(data, failed)) return {};
  if (std::filesystem::is_directory(data, failed) && std::filesystem::is_empty(data, failed))
    return {};
  return Error{Code::exists,
               fmt::format("{} is not empty: a whole backup goes to a new folder", data.string())};
}

// Tells of the progress while it lives.
class ProgressTeller {
 public:
  ProgressTeller(const OfflineRestore& asked, const JobControl& control)
      : thread_([&asked, &control](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any stopped;
          std::unique_lock lock(mutex);
          while (asked.on_progress && !stop.stop_requested()) {
            const JobControl::Progress now = control.progress();
            asked.on_progress(now.phase, now.bytes_done, now.bytes_total);
            stopped.wait_for(lock, stop, progress_period, [] { return false; });
          }
        }) {}

 private:
  std::jthread thread_;
};

// A stream is read to its end before anything is made of it.
Result<std::string> spool_stream(const OfflineRestore& asked, const std::filesystem::path& spool) {
  TRY(remove_tree(spool));
  TRY_ASSIGN(Repository repository, Repository::open_or_make(spool));
  BackupStreamReader reader(std::move(repository));
  for (;;) {
    TRY_ASSIGN(const Bytes piece, asked.read());
    if (piece.empty()) return reader.finish();
    TRY(reader.write(piece));
  }
}

Status build_store(const RestorePlan& plan, const std::filesystem::path& folder,
                   JobControl& control) {
  SystemClock clock;
  TRY_ASSIGN(const auto engine, open_rocksdb_engine({.path = folder, .clock = clock}));
  return restore_store(plan, *engine, control);
}

// What is to be restored, and names it in the plan. All of it is read, unless that was done before.
Result<Manifest> check_plan(RestorePlan& plan, bool is_begun, JobControl& control) {
  TRY_ASSIGN(const Repository repository, Repository::open(plan.repository));
  const auto is_whole = [](const Manifest& each) { return each.whole; };
  TRY_ASSIGN(Manifest manifest, repository.find(plan.backup, is_whole));
  plan.backup = manifest.id;
  if (!manifest.whole)
    return Error{Code::invalid,
                 fmt::format("the backup {} is of the keyspace {} only: restore it into a running "
                             "server, without --data",
                             manifest.id, quote(manifest.keyspaces.front().name))};
  if (!is_begun) TRY(check_restore(plan, control));
  return manifest;
}

}  // namespace

Result<OfflineRestored> restore_offline(const OfflineRestore& asked) {
  std::error_code failed;
  std::filesystem::path data = std::filesystem::absolute(asked.data, failed).lexically_normal();
  if (!data.has_filename()) data = data.parent_path();  // what is built lies beside it
  TRY(check_free(data));
  const std::filesystem::path building = with_ending(data, ".restoring");
  const std::filesystem::path spool = with_ending(data, ".spool");
  RestorePlan plan{.repository = asked.repository,
                   .backup = asked.backup,
                   .whole = true,
                   .is_spool = asked.repository.empty(),
                   .threads = asked.threads};
  JobControl control;
  control.set_bytes_per_second(asked.bytes_per_second);
  const ProgressTeller teller(asked, control);
  if (plan.is_spool) {
    control.begin_phase("reading", 0);
    plan.repository = spool;
    auto backup = spool_stream(asked, spool);
    if (!backup) {
      discard(remove_tree(spool));  // the next try does it
      return std::move(backup).error();
    }
    plan.backup = std::move(*backup);
  }
  // Said before there is a folder.
  const auto manifest = check_plan(plan, std::filesystem::exists(building, failed), control);
  if (!manifest && plan.is_spool) discard(remove_tree(spool));  // the next try reads it again
  TRY(manifest);
  TRY(build_store(plan, building, control));
  std::filesystem::remove(data, failed);  // it is empty, if it is there
  if (std::rename(building.c_str(), data.c_str()) != 0)
    return Error{Code::unavailable,
                 fmt::format("{} could not be renamed to {}: {}", building.string(), data.string(),
                             std::strerror(errno))};
  TRY(sync_folder_of_files(data.parent_path()));
  if (plan.is_spool) TRY(remove_tree(spool));
  return OfflineRestored{
      .backup = manifest->id, .entries = manifest->entries(), .bytes = manifest->bytes()};
}

}  // namespace trellis
