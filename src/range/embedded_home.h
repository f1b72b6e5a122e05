// The ranges of a store of plain keys: records beside the data that they are about.
//
//   01 'k' start 'rdsc'  ->  descriptor: the authority (codec/local_keys.h)
//   02<end>, 03<end>     ->  the directory, the same descriptor again (range/directory.h)
//   04 'range-log/' n    ->  what was done, and why (range/range_log.h)
//
// A split or merge is one commit of all of them, which conflicts if anything was not as it was
// read. No data moves.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "range/range_home.h"
#include "range/range_log.h"

namespace trellis {

// The ranges of a store that nobody changes, by start. Holes and overlaps are shown as they are;
// Code::corrupt, after the last, if a record cannot be read.
Status for_each_range_in(Engine& engine, FunctionRef<Visit(const RangeDescriptor&)> visit);

class EmbeddedHome final : public RangeHome {
 public:
  struct Options {
    std::function<Result<RangeId>()> next_id;  // ids that no range has or had
    Durability durability = Durability::everysec;
  };
  // Makes the first range if there is none.
  static Result<std::unique_ptr<EmbeddedHome>> open(Engine& engine, Clock& clock, Options options);

  Result<RangeDescriptor> find(ByteView address) override;
  Status for_each(FunctionRef<Visit(const RangeDescriptor&)> visit) override;
  Result<std::pair<RangeDescriptor, RangeDescriptor>> split(const SplitRequest& request) override;
  Result<RangeDescriptor> merge(const RangeDescriptor& left, const RangeDescriptor& right,
                                std::string_view reason) override;
  Status walk(const RangeDescriptor& range, ScanVisitor visit,
              FunctionRef<Visit()> between) override;

  struct Repaired {
    uint64_t restored = 0;  // ranges as the directory knows them
    uint64_t made = 0;      // ranges where nobody knows any
    uint64_t removed = 0;   // records that were damaged, or overlapped others
  };
  // Makes the ranges tile the map again, if they do not (range/repair.h). `generation_seen`: the
  // highest that the caller knows of; a new range gets a higher one. The directory is left as it
  // is.
  Result<Repaired> repair(uint64_t generation_seen);
  const RangeLog& log() const { return log_; }

 private:
  EmbeddedHome(Engine& engine, Clock& clock, Options options)
      : engine_(engine), clock_(clock), options_(std::move(options)), log_(engine) {}

  struct Records;
  Status bootstrap();
  Result<Records> read_records();
  Status name_new_ranges(std::vector<RangeDescriptor>& ranges, uint64_t generation);
  Status expect_descriptor(Commit& commit, const RangeDescriptor& range);
  Status replace(Commit& commit, std::span<const RangeDescriptor> before,
                 std::span<const RangeDescriptor> after);

  Engine& engine_;
  Clock& clock_;
  const Options options_;
  std::mutex changing_;  // one at a time; readers need none
  RangeLog log_;
};

}  // namespace trellis
