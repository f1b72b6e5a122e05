#include "backup/backups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "backup/files.h"
#include "base/log.h"
#include "codec/system_keys.h"

namespace trellis {
namespace {

constexpr unsigned threads_by_default = 2;
constexpr unsigned threads_max = 32;
constexpr size_t restore_file_bytes_max = 1024 * 1024;
constexpr size_t jobs_kept = 100;  // of those that are over
constexpr std::string_view spool_start = "spool-";
constexpr std::string_view restore_start = "restore-";
const Caller restorer{Role::server_admin, "backup"};

Error job_over(std::string_view id) {
  return {Code::conflict, fmt::format("the job {} is over", id), "job_over"};
}

// Whether a job made it, by its name. Others may keep things beside them, which are not ours.
bool is_of_a_job(std::string_view name) {
  for (const std::string_view start : {spool_start, restore_start})
    if (name.starts_with(start)) return is_made_backup_id(name.substr(start.size()));
  return is_made_backup_id(name);
}

std::string names_in(const Manifest& manifest) {
  constexpr size_t names_told_max = 20;
  const size_t count = manifest.keyspaces.size();
  std::string names;
  for (size_t i = 0; i < std::min(count, names_told_max); i++)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", quote(manifest.keyspaces[i].name));
  if (count > names_told_max) names += fmt::format(" and {} more", count - names_told_max);
  return count == 0 ? "none" : names;
}

uint64_t bytes_in(const std::filesystem::path& folder) {
  std::error_code failed;
  uint64_t bytes = 0;
  for (std::filesystem::recursive_directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::error_code gone;
    const uint64_t size = at->is_regular_file(gone) ? at->file_size(gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

Status store_restore(const std::filesystem::path& folder, const RestorePlan& plan) {
  TRY(make_folders(folder));
  TRY(write_whole_file(folder / "restore", folder, encode_plan(plan)));
  return sync_folder_of_files(folder);
}

// Whether a later start, or another version, may make something of it.
template <class Plan>
bool is_unreadable(const Result<Plan>& plan) {
  return !plan && plan.error().code != Code::not_found && plan.error().code != Code::corrupt;
}

Result<RestorePlan> load_restore(const std::filesystem::path& folder) {
  TRY_ASSIGN(const Bytes stored, read_whole_file(folder / "restore", restore_file_bytes_max));
  return decode_plan(stored);
}

}  // namespace

std::string_view to_string(JobKind kind) {
  switch (kind) {
    case JobKind::create: return "create";
    case JobKind::restore: return "restore";
    case JobKind::verify: return "verify";
  }
  return "";
}

std::string_view to_string(JobState state) {
  switch (state) {
    case JobState::running: return "running";
    case JobState::paused: return "paused";
    case JobState::done: return "done";
    case JobState::failed: return "failed";
    case JobState::canceled: return "canceled";
  }
  return "";
}

struct Backups::Job {
  std::string id;
  JobKind kind = JobKind::create;
  CreatePlan create = {};    // of a create
  RestorePlan restore = {};  // of a restore; of a verify its repository, backup and threads
  std::optional<KeyspaceId> target = {};  // of a restore, once it is made
  std::string keyspace = {};
  JobControl control = {};
  std::thread thread = {};

  // Under the mutex of Backups.
  JobState state = JobState::running;
  uint64_t started_ms = 0;
  uint64_t finished_ms = 0;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t added_bytes = 0;
  std::vector<std::string> damage = {};
  std::vector<std::string> warnings = {};
  std::optional<Error> error = {};
  bool is_canceled = false;
  bool is_ending = false;  // its work is done, and is being cleared up

  bool is_live() const {
    return !is_ending && (state == JobState::running || state == JobState::paused);
  }
  bool is_over() const {
    return is_ending || state == JobState::done || state == JobState::canceled;
  }
};

Backups::Backups(Keyspaces& keyspaces, const Collector& collector, BackupsOptions options)
    : keyspaces_(keyspaces), collector_(collector), options_(std::move(options)) {}

Status Backups::check_files() const {
  if (!options_.work.empty()) return {};
  return Error{Code::unsupported,
               "a store in memory has no files to copy, and no backups: use the engine rocksdb",
               "no_files"};
}

// Jobs come and go in the work folder: a repository is never made among them.
Status Backups::check_place(const std::filesystem::path& repository) const {
  std::error_code failed;
  const auto work = std::filesystem::weakly_canonical(options_.work, failed);
  const auto place = std::filesystem::weakly_canonical(repository, failed);
  if (work.empty() || std::ranges::mismatch(work, place).in1 != work.end()) return {};
  return Error{Code::invalid,
               fmt::format("{} is where the server keeps its jobs: give a folder outside of {}",
                           repository.string(), options_.work.string()),
               "bad_repository"};
}

unsigned Backups::threads_for(unsigned asked) const {
  return asked == 0 ? threads_by_default : std::min(asked, threads_max);
}

RestoreContext Backups::restore_context() {
  return {.keyspaces = keyspaces_,
          .collector = collector_,
          .skip_redis_versions = options_.skip_redis_versions};
}

// --- what was left ---

Status Backups::start() {
  if (options_.work.empty()) return {};
  std::vector<std::shared_ptr<Job>> left;
  find_left_files(left);
  TRY(find_left_records(left));
  std::set<std::string> spools;
  for (const auto& job : left)
    if (job->restore.is_spool) spools.insert(job->restore.repository.filename());
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(options_.work, failed)) {
    const std::string name = entry.path().filename();
    // What cannot be removed now is at the next start.
    if (name.starts_with(spool_start) && is_of_a_job(name) && !spools.contains(name))
      discard(remove_tree(entry.path()));
  }
  for (std::shared_ptr<Job>& job : left) {
    log_info("going on with a job", {{"job", job->id}, {"kind", to_string(job->kind)}});
    TRY(begin(std::move(job)));
  }
  return {};
}

// Of backups, and of restores that had not begun to write.
void Backups::find_left_files(std::vector<std::shared_ptr<Job>>& left) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(options_.work, failed)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(spool_start) || !is_of_a_job(name)) continue;  // of a restore, or others
    auto job = std::make_shared<Job>();
    job->id = name;
    auto create = load_plan(options_.work, name);
    auto restore = load_restore(entry.path());
    if (create && create->id == name) {
      job->create = std::move(*create);
      const auto keyspace = keyspaces_.load(job->create.keyspace);
      if (!job->create.whole && keyspace) job->keyspace = keyspace->name;
    } else if (restore && restore->job == name) {
      job->kind = JobKind::restore;
      job->restore = std::move(*restore);
      job->keyspace = job->restore.name;
    } else if (is_unreadable(create) || is_unreadable(restore)) {
      log_warn("a job cannot be read, and is left as it is", {{"folder", entry.path().string()}});
      continue;
    } else {  // it was never told of, or is done
      log_info("removing what an interrupted job left", {{"folder", entry.path().string()}});
      discard(remove_tree(entry.path()));  // the next start tries again
      continue;
    }
    left.push_back(std::move(job));
  }
}

// Of restores that had: the record says more than the file of the same job, but for a pause that
// came before it was known.
Status Backups::find_left_records(std::vector<std::shared_ptr<Job>>& left) {
  Bytes from = encode(KeyspaceRestoreKey{KeyspaceId{0}, {}});
  const Bytes end = prefix_end(encode(KeyspaceRestoreKey{KeyspaceId{keyspace_id_max}, {}}));
  const auto visit = [&](ByteView key, ByteView value) {
    const auto record = decode<KeyspaceRestoreKey>(key);
    if (!record) return Visit::go_on;
    if (record->part == restore_pause_part && !left.empty() &&
        left.back()->target == record->keyspace)
      left.back()->restore.paused = true;
    if (!record->part.empty()) return Visit::go_on;
    auto plan = decode_plan(value);
    if (!plan) return Visit::go_on;
    auto job = std::make_shared<Job>();
    job->id = plan->job;
    job->kind = JobKind::restore;
    job->keyspace = plan->name;
    job->restore = std::move(*plan);
    job->target = record->keyspace;
    std::erase_if(left, [&](const auto& other) {
      if (other->id != job->id) return false;
      job->restore.paused |= other->restore.paused;
      return true;
    });
    left.push_back(std::move(job));
    return Visit::go_on;
  };
  for (;;) {
    TRY_ASSIGN(ScanPage page, keyspaces_.map().engine.scan({.begin = from, .end = end}, visit));
    if (!page.resume) return {};
    from = std::move(*page.resume);
  }
}

// --- jobs ---

Result<JobStatus> Backups::begin(std::shared_ptr<Job> job) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return Error{Code::unavailable, "the server stops"};
  job->control.at_step = options_.at_step;
  job->control.set_bytes_per_second(job->kind == JobKind::create ? job->create.bytes_per_second
                                                                 : job->restore.bytes_per_second);
  job->started_ms = keyspaces_.map().clock.unix_ms();
  const bool paused = job->kind == JobKind::create ? job->create.paused : job->restore.paused;
  job->state = paused ? JobState::paused : JobState::running;
  job->control.pause(paused);
  forget_old_jobs();
  jobs_.push_back(job);
  job->thread = std::thread([this, job = job.get()] { run(*job); });
  return status_of(*job);
}

void Backups::forget_old_jobs() {
  while (jobs_.size() >= jobs_kept) {
    const auto over = std::ranges::find_if(jobs_, [](const auto& job) {
      return job->state == JobState::done || job->state == JobState::canceled;
    });
    if (over == jobs_.end()) return;
    if ((*over)->thread.joinable()) (*over)->thread.join();
    jobs_.erase(over);
  }
}

Status Backups::run_kind(Job& job) {
  try {
    switch (job.kind) {
      case JobKind::create: return run_create_job(job);
      case JobKind::restore: return run_restore_job(job);
      case JobKind::verify: return run_verify_job(job);
    }
  } catch (const std::exception& thrown) {  // by the file system or for want of memory
    return Error{Code::unavailable, thrown.what()};
  }
  return {};
}

void Backups::run(Job& job) {
  Status status = run_kind(job);
  {
    // From now on nobody pauses it, which would store what is being removed.
    const std::lock_guard lock(mutex_);
    job.is_ending = true;
  }
  const bool stopped = !status && status.error().reason == job_stopped;
  const bool canceled = !status && status.error().reason == job_canceled;
  // Nothing was written, and a later try would fail in the same way.
  if (!status && !stopped && job.kind == JobKind::restore && !job.target) {
    forget_file(job);
    if (job.restore.is_spool && status.error().code == Code::corrupt)
      discard(remove_tree(job.restore.repository));  // or by the next start
  }
  if (canceled || status) clear_up(job);
  if (!status && !stopped && !canceled)
    log_warn("a backup job failed", {{"job", job.id}, {"error", status.error().message}});
  if (!status && !stopped && !canceled) give_up_before(job);
  const std::lock_guard lock(mutex_);
  job.is_ending = false;
  job.finished_ms = keyspaces_.map().clock.unix_ms();
  job.state = canceled ? JobState::canceled : status ? JobState::done : JobState::failed;
  if (!status && !canceled) job.error = status.error();
}

Status Backups::run_create_job(Job& job) {
  const CreateContext context{.engine = keyspaces_.map().engine,
                              .work = options_.work,
                              .open_copy = options_.open_copy,
                              .unit_bytes = options_.unit_bytes};
  TRY_ASSIGN(Created created, run_create(job.create, context, job.control));
  for (const std::string& warning : created.warnings)
    log_warn("a backup was made, but", {{"job", job.id}, {"warning", warning}});
  const std::lock_guard lock(mutex_);
  job.entries = created.manifest.entries();
  job.bytes = created.manifest.bytes();
  job.added_bytes = created.manifest.added_bytes;
  job.warnings = std::move(created.warnings);
  return {};
}

Status Backups::run_restore_job(Job& job) {
  const RestoreContext context = restore_context();
  if (!job.target) {
    TRY(check_restore(job.restore, job.control));
    TRY(job.control.step("checked"));
    RestorePlan plan;
    {
      const std::lock_guard lock(mutex_);
      plan = job.restore;
    }
    plan.paused = false;  // a record of its own says that
    TRY_ASSIGN(const Keyspace made, begin_restore(plan, context, restorer));
    const std::lock_guard lock(mutex_);
    job.target = made.id;
    if (job.restore.paused) TRY(store_pause(made.id, keyspaces_.map().engine, true));
    forget_file(job);  // its records say all
  }
  TRY(job.control.step("keyspace made"));
  TRY(run_restore(*job.target, context, restorer, job.control));
  const auto tenant = keyspaces_.tenant(*job.target);
  const auto figures = tenant ? (*tenant)->figures() : Result<Figures>(tenant.error());
  if (!figures) return {};
  const std::lock_guard lock(mutex_);
  job.entries = static_cast<uint64_t>(figures->keys);
  job.bytes = static_cast<uint64_t>(figures->bytes);
  return {};
}

Status Backups::run_verify_job(Job& job) {
  TRY_ASSIGN(const Repository repository, Repository::open(job.restore.repository));
  std::vector<std::string> ids = {job.restore.backup};
  if (job.restore.backup.empty()) {
    TRY_ASSIGN(ids, repository.ids());
  }
  std::vector<std::string> damage;
  std::map<Bytes, ChunkFacts> chunks;  // each once, though several backups have it
  uint64_t entries = 0;
  for (const std::string& id : ids) {
    auto manifest = repository.get_manifest(id);
    if (!manifest && manifest.error().code != Code::corrupt) return std::move(manifest).error();
    if (!manifest) {
      damage.push_back(manifest.error().message);
      continue;
    }
    entries += manifest->entries();
    for (const ChunkFacts& chunk : manifest->chunks) chunks.emplace(chunk.digest, chunk);
  }
  std::vector<ChunkFacts> all;
  uint64_t bytes = 0;
  for (auto& [digest, chunk] : chunks) {
    bytes += chunk.bytes;
    all.push_back(std::move(chunk));
  }
  TRY_ASSIGN(auto found, find_damage(repository, all, job.restore.threads, job.control));
  damage.insert(damage.end(), found.begin(), found.end());
  const std::lock_guard lock(mutex_);
  job.entries = entries;
  job.bytes = bytes;
  job.damage = std::move(damage);
  if (job.damage.empty()) return {};
  return Error{Code::corrupt,
               fmt::format("{} parts of the backups are damaged or missing; the "
                           "first: {}",
                           job.damage.size(), job.damage.front()),
               "backup_damaged"};
}

// Of a job that is done or given up. What cannot be removed now is at the next start.
void Backups::clear_up(Job& job) {
  if (job.kind == JobKind::create) {
    const std::filesystem::path folder = options_.work / job.create.id;
    discard(remove_tree(folder / "store"));
    discard(remove_tree(folder));
  }
  if (job.kind != JobKind::restore) return;
  forget_file(job);
  if (job.target && job.is_canceled)
    discard(abandon_restore(*job.target, restore_context(), restorer));
  if (job.restore.is_spool) discard(remove_tree(job.restore.repository));
}

std::filesystem::path Backups::copy_of(const Job& job) const {
  return options_.work / job.create.id / "store";
}

// Backups that failed before this one did, which has a copy of the store that is newer.
void Backups::give_up_before(const Job& job) {
  std::error_code failed;
  if (job.kind != JobKind::create || !std::filesystem::exists(copy_of(job), failed)) return;
  std::vector<std::shared_ptr<Job>> older;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    for (const auto& other : jobs_) {
      if (other.get() == &job || other->kind != JobKind::create ||
          other->state != JobState::failed || other->create.created_ms > job.create.created_ms)
        continue;
      other->state = JobState::canceled;
      older.push_back(other);
    }
  }
  for (const auto& other : older) {
    log_warn("a failed backup is given up, as a later one failed too", {{"job", other->id}});
    clear_up(*other);
  }
}

void Backups::forget_file(const Job& job) {
  if (!options_.work.empty()) discard(remove_tree(options_.work / job.id));
}

void Backups::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& job : jobs_) job->control.stop();
  }
  // Nobody adds jobs any more.
  for (const auto& job : jobs_)
    if (job->thread.joinable()) job->thread.join();
}

// --- requests ---

Result<JobStatus> Backups::create(const CreateRequest& request) {
  TRY(check_files());
  auto job = std::make_shared<Job>();
  const uint64_t now_ms = keyspaces_.map().clock.unix_ms();
  job->create = {.id = make_backup_id(now_ms),
                 .repository = request.repository,
                 .whole = request.keyspace.empty(),
                 .bytes_per_second = request.bytes_per_second,
                 .threads = threads_for(request.threads),
                 .created_ms = now_ms};
  job->id = job->create.id;
  job->keyspace = request.keyspace;
  if (!request.keyspace.empty()) {
    TRY_ASSIGN(const Keyspace keyspace, keyspaces_.load(request.keyspace));
    if (keyspace.state == KeyspaceState::tombstone)
      return Error{Code::not_found, fmt::format("keyspace {} is gone", quote(keyspace.name)),
                   "keyspace_gone"};
    job->create.keyspace = keyspace.id;
  }
  TRY(check_place(request.repository));
  TRY(Repository::open_or_make(request.repository));
  TRY(store_plan(options_.work, job->create));
  return begin(std::move(job));
}

Result<JobStatus> Backups::restore(const RestoreRequest& request, const Caller&) {
  TRY_ASSIGN(const Repository repository, Repository::open(request.repository));
  const auto has_it = [&](const Manifest& each) {
    return request.keyspace.empty() || each.find(request.keyspace) != nullptr;
  };
  TRY_ASSIGN(const Manifest manifest, repository.find(request.backup, has_it));
  const Keyspace* source = request.keyspace.empty() && manifest.keyspaces.size() == 1
                               ? &manifest.keyspaces.front()
                               : manifest.find(request.keyspace);
  if (request.keyspace.empty() && source == nullptr)
    return Error{Code::invalid,
                 fmt::format("the backup {} has several keyspaces, say which one: {}", manifest.id,
                             names_in(manifest)),
                 "keyspace_missing"};
  if (source == nullptr)
    return Error{Code::not_found,
                 fmt::format("the {}backup {} has no keyspace {}; it has: {}",
                             request.backup.empty() ? "latest " : "", manifest.id,
                             quote(request.keyspace), names_in(manifest)),
                 "keyspace_not_found"};
  auto job = std::make_shared<Job>();
  job->kind = JobKind::restore;
  job->keyspace = request.name.empty() ? source->name : request.name;
  if (keyspaces_.load(job->keyspace))
    return Error{Code::exists,
                 fmt::format("keyspace {} already exists: restore it under another name",
                             quote(job->keyspace)),
                 "keyspace_exists"};
  TRY(check_new_keyspace_name(job->keyspace));
  job->restore = {.repository = repository.path(),
                  .backup = manifest.id,
                  .source = source->id,
                  .is_spool = request.is_spool,
                  .bytes_per_second = request.bytes_per_second,
                  .threads = threads_for(request.threads)};
  job->id = fmt::format("{}{}", restore_start, make_backup_id(keyspaces_.map().clock.unix_ms()));
  job->restore.job = job->id;
  job->restore.name = job->keyspace;
  if (!options_.work.empty()) TRY(store_restore(options_.work / job->id, job->restore));
  return begin(std::move(job));
}

Result<JobStatus> Backups::verify(const VerifyRequest& request) {
  TRY_ASSIGN(const Repository repository, Repository::open(request.repository));
  // One that is not there is said now.
  if (!request.backup.empty())
    if (const auto there = repository.get_manifest(request.backup);
        !there && there.error().code != Code::corrupt)
      return there.error();
  auto job = std::make_shared<Job>();
  job->kind = JobKind::verify;
  job->restore = {.repository = repository.path(),
                  .backup = request.backup,
                  .bytes_per_second = request.bytes_per_second,
                  .threads = threads_for(request.threads)};
  {
    const std::lock_guard lock(mutex_);
    job->id = fmt::format("verify-{}", ++number_);
  }
  return begin(std::move(job));
}

Result<uint64_t> Backups::remove(const std::filesystem::path& path, std::string_view backup) {
  TRY_ASSIGN(Repository repository, Repository::open(path));
  const std::lock_guard lock(mutex_);
  for (const auto& job : jobs_) {
    std::error_code failed;  // if it is gone it is another one
    const bool uses = std::filesystem::equivalent(
        job->kind == JobKind::create ? job->create.repository : job->restore.repository,
        repository.path(), failed);
    if (uses && job->state != JobState::done && job->state != JobState::canceled &&
        !(job->kind == JobKind::verify && !job->is_live()))
      return Error{Code::busy,
                   fmt::format("the job {} uses these backups: wait for it or cancel it", job->id),
                   "repository_busy"};
  }
  return repository.remove(backup);
}

Result<std::filesystem::path> Backups::make_spool() {
  TRY(check_files());
  std::filesystem::path folder =
      options_.work /
      fmt::format("{}{}", spool_start, make_backup_id(keyspaces_.map().clock.unix_ms()));
  TRY(make_folders(folder));
  return folder;
}

Result<Backups::Source> Backups::open_source(const std::string& keyspace) {
  TRY(check_files());
  Source source;
  const uint64_t now_ms = keyspaces_.map().clock.unix_ms();
  source.plan = {
      .id = make_backup_id(now_ms), .whole = keyspace.empty(), .threads = 1, .created_ms = now_ms};
  if (!keyspace.empty()) {
    TRY_ASSIGN(const Keyspace found, keyspaces_.load(keyspace));
    source.plan.keyspace = found.id;
  }
  TRY_ASSIGN(source.folder, make_spool());
  const auto open = [&]() -> Status {
    TRY(keyspaces_.map().engine.checkpoint(source.folder / "store"));
    TRY_ASSIGN(source.copy, options_.open_copy(source.folder / "store"));
    return {};
  };
  const Status opened = open();
  if (!opened) {
    discard(remove_tree(source.folder));  // the next start does it
    return opened.error();
  }
  return source;
}

JobStatus Backups::status_of(const Job& job) const {
  const bool is_create = job.kind == JobKind::create;
  const bool keeps_copy = is_create && job.state == JobState::failed;
  return {.id = job.id,
          .kind = job.kind,
          .state = job.state,
          .repository = is_create ? job.create.repository : job.restore.repository,
          .backup = is_create ? job.create.id : job.restore.backup,
          .keyspace = job.keyspace,
          .progress = job.control.progress(),
          .started_ms = job.started_ms,
          .finished_ms = job.finished_ms,
          .entries = job.entries,
          .bytes = job.bytes,
          .added_bytes = job.added_bytes,
          .copy_bytes = keeps_copy ? bytes_in(copy_of(job)) : 0,
          .damage = job.damage,
          .warnings = job.warnings,
          .error = job.error};
}

std::vector<JobStatus> Backups::jobs() const {
  const std::lock_guard lock(mutex_);
  std::vector<JobStatus> all;
  for (const auto& job : jobs_) all.push_back(status_of(*job));
  return all;
}

Result<std::shared_ptr<Backups::Job>> Backups::find(std::string_view id) const {
  const auto found = std::ranges::find_if(jobs_, [&](const auto& job) { return job->id == id; });
  if (found != jobs_.end()) return *found;
  return Error{Code::not_found, fmt::format("there is no job {}", quote(id)), "job_not_found"};
}

Result<JobStatus> Backups::job(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(const auto found, find(id));
  return status_of(*found);
}

// So that it is so after a restart too.
Status Backups::set_paused(Job& job, bool paused) {
  CreatePlan create = job.create;
  RestorePlan restore = job.restore;
  create.paused = restore.paused = paused;
  if (job.kind == JobKind::create) TRY(store_plan(options_.work, create));
  if (job.kind == JobKind::restore && job.target)
    TRY(store_pause(*job.target, keyspaces_.map().engine, paused));
  else if (job.kind == JobKind::restore && !options_.work.empty())
    TRY(store_restore(options_.work / job.id, restore));
  job.create.paused = job.restore.paused = paused;
  return {};
}

Result<JobStatus> Backups::pause(std::string_view id) {
  const std::lock_guard lock(mutex_);
  TRY_ASSIGN(const auto job, find(id));
  if (!job->is_live()) return job_over(id);
  TRY(set_paused(*job, true));
  job->state = JobState::paused;
  job->control.pause(true);
  return status_of(*job);
}

Result<JobStatus> Backups::resume(std::string_view id) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return Error{Code::unavailable, "the server stops"};
  TRY_ASSIGN(const auto job, find(id));
  if (job->is_over()) return job_over(id);
  TRY(set_paused(*job, false));
  const bool failed = job->state == JobState::failed;
  job->state = JobState::running;
  job->control.pause(false);
  if (failed) {
    job->error.reset();
    job->finished_ms = 0;
    job->thread.join();
    job->thread = std::thread([this, job = job.get()] { run(*job); });
  }
  return status_of(*job);
}

Result<JobStatus> Backups::cancel(std::string_view id) {
  std::shared_ptr<Job> job;
  {
    const std::lock_guard lock(mutex_);
    TRY_ASSIGN(job, find(id));
    if (job->is_over()) return job_over(id);
    job->is_canceled = true;
    job->control.cancel();
    if (job->is_live()) return status_of(*job);
    job->state = JobState::canceled;
  }
  clear_up(*job);
  return this->job(id);
}

}  // namespace trellis
