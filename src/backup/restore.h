// Checks backups, and writes them back into a map (docs/decisions/0007-backup.md).
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backup/manifest.h"
#include "backup/repository.h"
#include "base/job_control.h"
#include "base/result.h"
#include "tenant/collector.h"
#include "tenant/keyspaces.h"

namespace trellis {

struct RestorePlan {
  std::filesystem::path repository = {};
  std::string backup = {};
  KeyspaceId source = {};  // in the backup
  bool whole = false;      // all of it, into a store that is empty
  bool is_spool = false;   // the repository goes with the restore
  uint64_t bytes_per_second = 0;
  unsigned threads = 1;
  bool paused = false;
  bool is_published = false;  // only its notes are not in the due index yet
  std::string job = {};
  std::string name = {};  // of the keyspace that is made
};

Bytes encode_plan(const RestorePlan& plan);
Result<RestorePlan> decode_plan(ByteView stored);

// Reads all of the chunks. What is damaged, in words; an error if it could not be found out.
Result<std::vector<std::string>> find_damage(const Repository& repository,
                                             const std::vector<ChunkFacts>& chunks,
                                             unsigned threads, JobControl& control);
// The first of it as an error.
Status check_chunks_of(const Repository& repository, const std::vector<ChunkFacts>& chunks,
                       unsigned threads, JobControl& control);

// A restore into a keyspace that was created for it.
struct RestoreContext {
  Keyspaces& keyspaces;
  const Collector& collector;
  std::function<Status(uint64_t end)> skip_redis_versions;
};

// Reads the backup and checks all that the restore needs. Nothing is written.
Status check_restore(const RestorePlan& plan, JobControl& control);
// Creates the keyspace, which nobody can use yet. Code::exists: there is one of that name.
Result<Keyspace> begin_restore(const RestorePlan& plan, const RestoreContext& context,
                               const Caller& caller);
// Writes all of it, from where it was left on, and gives it free, as its record says.
Status run_restore(KeyspaceId target, const RestoreContext& context, const Caller& caller,
                   JobControl& control);

// A part of the record of a restore: whoever goes on with it waits.
inline constexpr ByteView restore_pause_part = "paused";
// Code::conflict, reason job_over: it is done.
Status store_pause(KeyspaceId target, Engine& engine, bool paused);

// Instead: the keyspace is buried. REQUIRES: run_restore does not run.
Status abandon_restore(KeyspaceId target, const RestoreContext& context, const Caller& caller);

// All of a store into an engine that nobody else uses, and that holds nothing but what an
// interrupted run of the same plan left. Checks all before it writes.
Status restore_store(const RestorePlan& plan, Engine& engine, JobControl& control);
// An error if that was begun there and is not done: such a store must not be served.
Status check_store_is_whole(Engine& engine);

}  // namespace trellis
