// A load of files whose traces show, after a crash, how far it came: each lane has a directory of
// its own and does step 1, 2, 3 ..., each one call. What is there must be what some number of steps
// leaves, and everything else of the file system must be sound.
//
// File k of a lane is made, written, overwritten in the middle, renamed, appended to, and removed
// when eight more have been made.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "fs/file_system.h"
#include "map/map_handle.h"

namespace trellis {

class FileLoad {
 public:
  static constexpr size_t lanes = 4;
  static constexpr KeyspaceId id{7};
  using Positions = std::array<uint64_t, lanes>;

  // Makes keyspace and directories if they are not there.
  static Result<std::unique_ptr<FileLoad>> open(Engine& engine, Clock& clock,
                                                Durability durability);

  // Does steps behind `from` until one fails; each that is done is told. One thread per lane.
  Status run_lane(size_t lane, uint64_t from, const std::function<void(uint64_t)>& done);
  // What is removed is collected, until that fails or is enough.
  Status run_collector(const std::atomic<bool>& enough);

  // How many steps of a lane are there: as many as there can be in [least, most], or Code::corrupt.
  Result<uint64_t> position(size_t lane, uint64_t least, uint64_t most);
  // fsck and a recount find nothing. Code::corrupt with what they do.
  Status check();

  FileSystem& fs() { return *fs_; }

 private:
  FileLoad(Engine& engine, Clock& clock, Durability durability)
      : engine_(engine), transactor_(engine, clock), map_{engine, transactor_, clock, durability} {}
  Status step(size_t lane, uint64_t number);
  Result<InodeId> find(size_t lane, const std::string& name);
  Result<std::map<std::string, std::string>> files(size_t lane);

  Engine& engine_;
  Transactor transactor_;
  const MapHandle map_;
  const Caller caller_{Role::write, "load"};
  std::shared_ptr<FileSystem> fs_;
  std::array<InodeId, lanes> directories_;
};

}  // namespace trellis
