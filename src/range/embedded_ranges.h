// All that a server with a store of its own has of ranges, in one piece.
#pragma once

#include <memory>

#include "range/directory.h"
#include "range/embedded_home.h"
#include "range/id_generator.h"
#include "range/range_cache.h"
#include "range/range_jobs.h"
#include "range/range_keeper.h"
#include "range/verify.h"

namespace trellis {

// How an address is found: one step for each level of the directory that is asked.
struct LookupStep {
  std::string_view level;  // "first", "meta1" or "meta2"
  Bytes record;            // key of the record looked for
  RangeDescriptor range;   // what was found
  bool from_cache = false;
  bool was_stale = false;  // the cache had an older one, and has been told
};

// Any thread.
class EmbeddedRanges {
 public:
  struct Options {
    KeeperOptions keeper;
    Durability durability = Durability::everysec;
    size_t cache_bytes_max = 16 << 20;
  };
  // Makes the first range in a store that has none. The accounting is filled.
  static Result<std::unique_ptr<EmbeddedRanges>> open(Engine& engine, Clock& clock,
                                                      RangeAccounting& accounting, Options options);
  // The thread of the keeper.
  void start() { keeper_->start(); }
  void stop();

  EmbeddedHome& home() { return *home_; }
  RangeKeeper& keeper() { return *keeper_; }
  RangeJobs& jobs() { return *jobs_; }
  RangeCache& cache() { return *cache_; }

  // Whether the directory says what the ranges are.
  Result<VerifyReport> verify() { return verify_directory(*home_, engine_); }
  struct Rebuilt {
    EmbeddedHome::Repaired ranges;
    RebuildReport directory;
  };
  // Makes it so, after the ranges tile the map, and forgets what is cached of it.
  Result<Rebuilt> rebuild();

  // The way to the range of an address, which is the last step's.
  Result<std::vector<LookupStep>> lookup(ByteView address);

 private:
  explicit EmbeddedRanges(Engine& engine)
      : engine_(engine),
        range_ids_(engine, SystemKey::range_id_generator, first_range_id.value),
        reader_(engine),
        directory_(reader_) {}
  Result<LookupStep> step(std::string_view level, Bytes record, ByteView address);

  Engine& engine_;
  IdGenerator range_ids_;
  EngineMetaReader reader_;
  Directory directory_;
  std::unique_ptr<RangeCache> cache_;
  std::unique_ptr<EmbeddedHome> home_;
  std::unique_ptr<RangeKeeper> keeper_;
  std::unique_ptr<RangeJobs> jobs_;
};

}  // namespace trellis
