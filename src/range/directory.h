// The directory of ranges: two levels of records in the map itself (codec/meta_keys.h), each at the
// end of its range, so that the range of an address is the first record after it.
//
//   address   record in   which lies in                       reads of the directory
//   < 03      meta1       the first range                     1
//   03..      meta1       the first range                     1
//   others    meta2       the first range, while it is small  1
//                         another one, found in meta1         2, and one more if it straddles
//
// Addresses, not keys: ask for a local key by its address_of_local. What is found may be stale by
// the time it is used; the ranges themselves know (range_home.h).
//
// Threads: any. Blocking: as the reader.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "engine/engine.h"
#include "range/descriptor.h"

namespace trellis {

// The range that a new map begins with: it holds everything.
RangeDescriptor bootstrap_range(Bytes home = {});

// The keys under which a range is recorded: one, or two if it ends at or beyond 04 and starts
// before it (such a range also holds the end of meta2, and is recorded there as 02 ff ff).
// Code::invalid if no range may begin or end where this one does: inside meta1 or in [03ffff, 04).
Result<std::vector<Bytes>> directory_keys(const RangeDescriptor& range);

// What a commit writes when ranges replace others: a split {old} by {left, right}, a merge the
// other way round, a new map {} by {bootstrap_range()}. Expectations are the caller's.
Status append_directory_writes(WriteSet& writes, std::span<const RangeDescriptor> before,
                               std::span<const RangeDescriptor> after);

// Which range is asked for: the one that holds an address, or the one that holds what lies
// immediately before it (start < address <= end), for those who go backwards.
enum class Side : bool { at, before };

inline bool holds(const RangeDescriptor& range, ByteView address, Side side) {
  return side == Side::at ? range.holds(address) : range.holds_before(address);
}

struct MetaScan {
  Bytes begin;
  Bytes end;  // exclusive
  size_t entries_max;
};

struct MetaRecord {
  Bytes key;
  Bytes value;
};

struct MetaRead {
  RangeDescriptor range;                         // as it is now: what the records are complete for
  std::vector<std::vector<MetaRecord>> records;  // of each scan, in order, inside of that range
};

// Reads records of the directory out of one range. One call, one trip.
class MetaReader {
 public:
  virtual ~MetaReader() = default;
  // Generation 0 means the range as it is, whatever it is now: only the first one is asked for so.
  // Code::conflict if the range is not what the caller believes and cannot answer.
  virtual Result<MetaRead> read(const RangeDescriptor& from, std::span<const MetaScan> scans) = 0;
};

// On an engine that holds the records of all ranges under their plain keys.
class EngineMetaReader final : public MetaReader {
 public:
  explicit EngineMetaReader(Engine& engine) : engine_(engine) {}
  Result<MetaRead> read(const RangeDescriptor& from, std::span<const MetaScan> scans) override;

 private:
  Engine& engine_;
};

struct DirectoryAnswer {
  RangeDescriptor range;
  // What the reads showed besides: neighbours, and the ranges of meta2 on the way.
  std::vector<RangeDescriptor> others;
  unsigned reads = 0;
};

// How many neighbours a lookup brings along.
constexpr size_t directory_prefetch = 8;

// What a cache asks for what it does not know (range_cache.h).
class RangeFinder {
 public:
  virtual ~RangeFinder() = default;
  // `meta2_range`: the range that holds the record, if the caller knows it; saves a read, and does
  // no harm if it is stale.
  virtual Result<DirectoryAnswer> find(ByteView address, Side side,
                                       const RangeDescriptor* meta2_range) = 0;
};

class Directory final : public RangeFinder {
 public:
  // `first_home`: where the first range is, always.
  explicit Directory(MetaReader& reader, Bytes first_home = {});

  // Code::corrupt if there is no record for the address, or a bad one.
  Result<DirectoryAnswer> find(ByteView address, Side side,
                               const RangeDescriptor* meta2_range = nullptr) override;

  uint64_t reads() const { return reads_.load(std::memory_order_relaxed); }

 private:
  struct Lookup;
  Status look(Lookup& lookup, const RangeDescriptor* meta2_range);
  Status look_in_meta1(Lookup& lookup);
  Result<MetaRead> read(Lookup& lookup, const RangeDescriptor& from,
                        std::span<const MetaScan> scans);
  Result<RangeDescriptor> meta2_range_at(Lookup& lookup, ByteView position);

  MetaReader& reader_;
  const RangeDescriptor first_;  // of generation 0: its bounds are not known before it is read
  std::atomic<uint64_t> reads_{0};
};

}  // namespace trellis
