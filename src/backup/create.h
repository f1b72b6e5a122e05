// Makes a backup: takes a copy of the store, reads it in parallel, writes what is new.
//
//   <work>/<id>/job       what is being made (BackupJob), from the first moment to the last
//   <work>/<id>/store     the copy, of one instant
//   <work>/<id>/units     what the walk is cut into (BackupUnits), written before it begins
//   <work>/<id>/part-007  what a unit of the walk gave (BackupUnit): those of the map, then blocks
//
// All of it is kept until the backup is whole: whoever runs the plan again goes on from there.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "backup/block_walk.h"
#include "backup/manifest.h"
#include "backup/repository.h"
#include "backup/units.h"
#include "base/job_control.h"
#include "base/result.h"
#include "engine/engine.h"

namespace trellis {

struct CreatePlan {
  std::string id = {};
  std::filesystem::path repository = {};
  bool whole = true;
  KeyspaceId keyspace = {};  // if not whole
  uint64_t bytes_per_second = 0;
  unsigned threads = 1;
  bool paused = false;
  uint64_t created_ms = 0;
};

using OpenCopy =
    std::function<Result<std::unique_ptr<Engine>>(const std::filesystem::path& folder)>;

struct CreateContext {
  Engine& engine;
  std::filesystem::path work;  // a folder on the disk of the store
  OpenCopy open_copy;
  uint64_t unit_bytes;  // about so much of the walk is one unit
};

struct Created {
  Manifest manifest;
  std::vector<std::string> warnings = {};  // for people
};

// An id that sorts by time.
std::string make_backup_id(uint64_t unix_ms);
// Whether it looks like one of these.
bool is_made_backup_id(std::string_view text);

// The plan of a job that has a folder. Code::not_found: it has none.
Result<CreatePlan> load_plan(const std::filesystem::path& work, std::string_view id);
Status store_plan(const std::filesystem::path& work, const CreatePlan& plan);

// Everything that a backup says but its chunks. REQUIRES: the store stands still.
Result<Manifest> describe_backup(Engine& copy, const CreatePlan& plan);
// What it holds, in order.
std::vector<Interval> scope_of(const CreatePlan& plan);
BlockInterval block_scope_of(const CreatePlan& plan);

// Runs the plan, which is stored, to its end.
Result<Created> run_create(const CreatePlan& plan, const CreateContext& context,
                           JobControl& control);

}  // namespace trellis
