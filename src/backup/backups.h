// The backups of a server: jobs that make, check and restore them, each in threads of its own.
//
// Jobs outlive the server: start() goes on with those that an earlier one left. A job that failed
// keeps what it has; it is tried again with resume(), or given up with cancel(). What a backup
// keeps is a copy of the store, whose room on the disk grows as the store changes: so only the
// latest one that failed keeps it, and those before it are given up.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backup/create.h"
#include "backup/restore.h"
#include "base/job_control.h"
#include "base/result.h"
#include "tenant/collector.h"
#include "tenant/keyspaces.h"

namespace trellis {

struct BackupsOptions {
  std::filesystem::path work;  // on the disk of the store; empty: the engine has no files
  OpenCopy open_copy = {};
  std::function<Status(uint64_t end)> skip_redis_versions = [](uint64_t) { return Status(); };
  uint64_t unit_bytes = 64 * 1024 * 1024;                      // of the walk of a backup
  std::function<Status(std::string_view point)> at_step = {};  // JobControl's, for tests
};

enum class JobKind : uint8_t { create, restore, verify };
enum class JobState : uint8_t { running, paused, done, failed, canceled };
std::string_view to_string(JobKind kind);
std::string_view to_string(JobState state);

struct JobStatus {
  std::string id = {};
  JobKind kind = JobKind::create;
  JobState state = JobState::running;
  std::string repository = {};
  std::string backup = {};
  std::string keyspace = {};  // that is backed up or made; empty: all
  JobControl::Progress progress = {};
  uint64_t started_ms = 0;
  uint64_t finished_ms = 0;  // 0: not yet
  uint64_t entries = 0;      // when it is done
  uint64_t bytes = 0;
  uint64_t added_bytes = 0;
  uint64_t copy_bytes = 0;  // of the copy of the store that a failed backup keeps
  std::vector<std::string> damage = {};
  std::vector<std::string> warnings = {};  // of a backup that is made all the same
  std::optional<Error> error = {};         // if it failed
};

// Reasons of errors besides those of its parts: job_not_found, job_over, repository_busy.
//
// Any thread.
class Backups {
 public:
  // All of it must outlive the object.
  Backups(Keyspaces& keyspaces, const Collector& collector, BackupsOptions options);
  ~Backups() { stop(); }

  // Goes on with jobs that were left, and removes what belongs to none.
  Status start();
  // The jobs end where they are, and are gone on with by the next start.
  void stop();

  struct CreateRequest {
    std::filesystem::path repository;
    std::string keyspace = {};  // empty: all of the store
    uint64_t bytes_per_second = 0;
    unsigned threads = 0;  // 0: by default
  };
  Result<JobStatus> create(const CreateRequest& request);

  struct RestoreRequest {
    std::filesystem::path repository;
    std::string backup = {};    // empty: the latest that has the keyspace
    std::string keyspace = {};  // in the backup; empty: its only one
    std::string name = {};      // of the new one; empty: the same
    uint64_t bytes_per_second = 0;
    unsigned threads = 0;
    bool is_spool = false;  // the repository is from make_spool(), and goes with the job
  };
  // The backup is checked by the job, before it writes anything.
  Result<JobStatus> restore(const RestoreRequest& request, const Caller& caller);

  struct VerifyRequest {
    std::filesystem::path repository;
    std::string backup = {};  // empty: all of them
    uint64_t bytes_per_second = 0;
    unsigned threads = 0;
  };
  Result<JobStatus> verify(const VerifyRequest& request);

  // Forgets a backup. How many bytes that freed.
  Result<uint64_t> remove(const std::filesystem::path& repository, std::string_view backup);

  // A folder for a stream that comes in, and for one that goes out. The caller removes it.
  Result<std::filesystem::path> make_spool();
  // What a stream of a backup is made from.
  struct Source {
    CreatePlan plan;
    std::filesystem::path folder;
    std::unique_ptr<Engine> copy;
  };
  Result<Source> open_source(const std::string& keyspace);

  std::vector<JobStatus> jobs() const;  // in the order in which they began
  Result<JobStatus> job(std::string_view id) const;
  Result<JobStatus> pause(std::string_view id);
  Result<JobStatus> resume(std::string_view id);  // also one that failed
  Result<JobStatus> cancel(std::string_view id);

 private:
  struct Job;
  Status check_files() const;
  Status check_place(const std::filesystem::path& repository) const;
  unsigned threads_for(unsigned asked) const;
  Result<JobStatus> begin(std::shared_ptr<Job> job);
  void run(Job& job);
  Status run_kind(Job& job);
  Status run_create_job(Job& job);
  Status run_restore_job(Job& job);
  Status run_verify_job(Job& job);
  void clear_up(Job& job);
  Status set_paused(Job& job, bool paused);  // REQUIRES: mutex_ is held
  void give_up_before(const Job& job);
  std::filesystem::path copy_of(const Job& job) const;
  JobStatus status_of(const Job& job) const;
  Result<std::shared_ptr<Job>> find(std::string_view id) const;
  void find_left_files(std::vector<std::shared_ptr<Job>>& left);
  Status find_left_records(std::vector<std::shared_ptr<Job>>& left);
  void forget_file(const Job& job);
  RestoreContext restore_context();
  void forget_old_jobs();  // REQUIRES: mutex_ is held

  Keyspaces& keyspaces_;
  const Collector& collector_;
  const BackupsOptions options_;
  mutable std::mutex mutex_;
  uint64_t number_ = 0;
  bool stopping_ = false;
  std::vector<std::shared_ptr<Job>> jobs_;
};

}  // namespace trellis
