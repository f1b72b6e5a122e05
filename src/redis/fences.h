// How many members of a large collection are where in its order: so the n-th one is found, and how
// many come before a place, without walking there.
//
//   'c' namespace key version | 1 | place  ->  | 01 | members u64 |   from there to before the
//                                                                     next one
//   'c' namespace key version | 2 | place  ->  | members u64 |   of the fences of level 1 from
//   there
//                                                                to before the next one of level 2
//
// A place is what follows the prefix in the record of a member: the order of a sorted set is that
// of its 'z' records, of others that of their 's' records. A fence has up to 256 members and then
// is cut, one of level 2 up to 128 fences. So a million members have some 60 of level 2: to find a
// place is to read these, the fences of one of them, and the members of one of those.
//
// No member is before the first fence of level 1; what lies before the first of level 2 belongs to
// it. An empty fence goes, but for the last one: nothing is at or behind it. So the ends of a
// collection are known, and whoever pops does not step over what was popped before.
//
// The collection of a size that was there before has one fence with all its members, and is cut bit
// by bit by the collector (garbage.h).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "redis/key.h"

namespace trellis {

class Fences {
 public:
  // They are made for collections of so many members, and go when no more than so many are left.
  static constexpr uint64_t size_made = 513;
  static constexpr uint64_t size_gone = 256;
  // What is cut at once of what is too large.
  static constexpr size_t pieces_max = 32;

  // REQUIRES: the key is a collection that may have fences.
  Fences(Keys& keys, const Key& key);

  // --- reading; REQUIRES: all changes were counted ---

  Result<uint64_t> before(ByteView place);  // how many members
  Result<Bytes> nth(uint64_t index);        // the place of the member; REQUIRES: there is one
  // No member is before this place.
  Result<Bytes> begin();
  // No member is at this place or behind it; absent: not known.
  Result<std::optional<Bytes>> end();

  // --- writing ---

  using Change = std::pair<Bytes, int64_t>;  // place and difference
  Status count(std::vector<Change> changes);
  // Of a collection that has none. Not `whole`: the rest is left to cut_some.
  Status make(uint64_t members, bool whole);
  // Cuts a bit of what was left; false: there is nothing more.
  Result<bool> cut_some();
  Status remove_all();

 private:
  enum class Level : uint8_t { members = 1, fences = 2 };
  struct Fence {
    Bytes place;
    uint64_t members;
  };
  using Found = std::optional<Fence>;

  // The first or last one of an interval of places; an empty end: of all.
  Result<Found> one_of(Level level, ByteView begin, std::optional<ByteView> end, bool reverse);
  Result<Found> first(Level level) { return one_of(level, {}, std::nullopt, false); }
  Result<Found> at(Level level, ByteView place);    // the last that is not behind the place
  Result<Found> next(Level level, ByteView place);  // the first behind the place
  Result<Fence> group_of(ByteView fence_place);
  Result<Fence> fence_for(ByteView place);  // one that a member there belongs to
  Status scan(Level level, ByteView begin, std::optional<ByteView> end,
              FunctionRef<Visit(ByteView place, uint64_t members)> visit);
  Status scan_members(ByteView begin, std::optional<ByteView> end, bool reverse,
                      FunctionRef<Visit(ByteView place)> visit);

  Bytes key_of(Level level, ByteView place) const;
  void put(Level level, ByteView place, uint64_t members, std::optional<uint64_t> old);
  void remove(Level level, const Fence& fence);
  Status forget_empty(const Bytes& place);
  Status count_groups(const std::vector<Change>& changes);
  // Into pieces, and the group of these; false: its members are too much alike.
  Result<bool> cut(const Fence& fence, size_t pieces);
  Status cut_group(const Fence& group);

  Keys& keys_;
  const Key& key_;
  const Bytes fences_;   // what their records begin with
  const Bytes members_;  // what those of the members do
};

}  // namespace trellis
