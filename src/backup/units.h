// What the walk of a backup is cut into, so that threads can share it: runs of adjacent ranges.
//
// A unit is an interval of addresses, and the units are whatever lies between bounds: they tile the
// map however wrong the directory is that the bounds were taken from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backup/chunk.h"
#include "base/bytes.h"
#include "base/result.h"
#include "engine/engine.h"
#include "range/address_walk.h"

namespace trellis {

using Interval = std::pair<Bytes, Bytes>;  // [first, second), of keys and of addresses alike

struct UnitsRequest {
  std::vector<Interval> scope;            // what is walked, in order
  uint64_t bytes = 0;                     // about so much is in it
  uint64_t unit_bytes = 0;                // about so much is to be in a unit
  std::vector<Bytes> bounds_before = {};  // of the last backup of the same
};

// Into how many units so much is cut.
size_t units_wanted(uint64_t bytes, uint64_t unit_bytes);
// Whether a number of units will do where another is wanted.
bool are_about_as_many(size_t units, size_t wanted);

struct Units {
  std::vector<Bytes> bounds = {};  // addresses, ascending: where each unit but the first begins
  std::string warning = {};        // for people; empty: nothing is wrong

  size_t size() const { return bounds.size() + 1; }
  // Of all addresses. REQUIRES: number < size().
  Interval unit(size_t number) const;
};

// As the last backup had them, if they are not too few or too many by now: chunks end where units
// do, and those of Redis sub keys hold others when units do. Otherwise runs of ranges as the store
// knows them, or, if it has not cut itself into as many or its directory is damaged, of its keys.
// The same store gives the same units.
Result<Units> cut_units(Engine& engine, UnitsRequest request);

// For whoever finds that UnitWalk left something out.
inline constexpr std::string_view left_out_warning =
    "the store holds entries that no map has, which cannot be restored: they were left out";

// Cuts what a unit holds of the scope into chunks, in the order of keys. A chunk is of one keyspace
// if other units hold some of the keys between its first and its last, so that the keyspaces of any
// chunk are those from its first key to the next chunk's. One thread at a time.
class UnitWalk {
 public:
  UnitWalk(Engine& engine, std::vector<Interval> scope, const Interval& unit);

  bool done() const { return part_ == parts_.size(); }
  // Reads about so many bytes more. Appends the chunks that ended. REQUIRES: not done.
  // How many bytes of keys and values that was.
  Result<uint64_t> next(size_t bytes_max, std::vector<EntryChunk>& out);
  // Keys that no map has, and no backup.
  uint64_t left_out() const { return left_out_; }

 private:
  int side_of(ByteView key) const;

  Engine& engine_;
  std::vector<Interval> parts_;
  Bytes first_area_;  // that it shares with units before it, and behind it; empty: none
  Bytes last_area_;
  size_t part_ = 0;
  std::optional<AddressWalk> walk_;
  ChunkCutter cutter_;
  int side_ = 0;  // of the chunk that is being filled
  uint64_t left_out_ = 0;
};

}  // namespace trellis
