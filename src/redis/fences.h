// How many members of a large collection are where in its order: so the n-th one is found, and how
// many come before a place, without walking there.
//
//   'c' namespace key version | 1 | place  ->  | 01 | members u64 |   from there to before the
//                                                                     next one
//   'c' namespace key version | 2 | place  ->  | 01 | members u64 |   of the fences of level 1 from
//                                                                     there to before the next one
//                                                                     of level 2: a group
//                                              | 02 | 0 u64 |         a mark: it is to be counted
//
// A place is what follows the prefix in the record of a member: the order of a sorted set is that
// of its 'z' records, of others that of their 's' records. A fence has up to 128 members and then
// is cut, a group up to 128 fences. So a million members have some 150 groups: to find a place is
// to read these, the fences of one of them, and the members of one of those.
//
// No member is before the first fence; what lies before the first group belongs to it. An empty
// fence goes, but for the last one: nothing is at or behind it. So the ends of a collection are
// known, and whoever pops does not step over what was popped before.
//
// Where there are books (redis/fence_book.h) a change is counted there, and a fence and its group
// are marked when they change first. The collector (garbage.h) writes their numbers after a while.
// Else the numbers are written with each change.
//
// The collection of a size that was there before has one fence with all its members, and is cut bit
// by bit by the collector.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "redis/fence_book.h"
#include "redis/key.h"

namespace trellis {

class Fences {
 public:
  // They are made for collections of so many members, and go when no more than so many are left.
  static constexpr uint64_t size_made = 513;
  static constexpr uint64_t size_gone = 256;
  // After so long the collector writes what marks stand for.
  static constexpr uint64_t marked_ms = 30'000;

  // REQUIRES: the key is a collection that may have fences, and there is no other for it now.
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
  // Of a collection that has none. Not `whole`: the rest is left to the collector.
  Status make(uint64_t members, bool whole);
  // Does a bit of what was left to the collector.
  enum class Left : uint8_t { something, marks, nothing };
  Result<Left> tend();
  Status remove_all();
  // Of a life with the same members. True: they are yet to be cut.
  Result<bool> copy_to(const Key& other);

 private:
  using Fence = FenceBook::Fence;
  using Group = FenceBook::Group;
  using Stored = FenceBook::Stored;
  using Reading = ScanRequest::Reading;
  enum class Level : uint8_t { members = 1, fences = 2 };
  struct Position {
    size_t group;
    size_t fence;
  };
  using Found = std::optional<Position>;

  // --- what is in the book; what is missing is read ---
  Status read_groups();
  Status read_fences(size_t group);
  Status count_members(Position at);
  Status know(size_t group);
  Fence& fence(Position at) { return book_->groups[at.group].fences[at.fence]; }
  Result<Found> find(ByteView place);  // the last that is not behind the place
  Result<Found> next(Position at);
  Result<Found> previous(Position at);
  Result<Position> first();
  Result<Position> last();
  Result<Position> place_for(ByteView place);  // of a member that comes or goes
  Status forget_empty(const Bytes& place);
  void remove(Position at);
  // Into pieces, and their group; false: its members are too much alike.
  Result<bool> cut(Position at, size_t pieces_max);
  void cut_group(size_t group);
  void write_numbers();  // those that changed, where there are no marks
  Result<bool> clean();  // some of the marks; false: the last group was reached

  // --- records ---
  Status scan(Level level, ByteView begin, std::optional<ByteView> end,
              FunctionRef<void(ByteView place, Fence read)> visit);
  Status scan_members(ByteView begin, std::optional<ByteView> end, bool reverse,
                      FunctionRef<Visit(ByteView place)> visit, Reading reading = Reading::often);
  // What is written to them costs less where no cache has them.
  Status walk_once(ByteView begin, std::optional<ByteView> end,
                   FunctionRef<Visit(ByteView place)> visit);
  Bytes key_of(Level level, ByteView place) const;
  void changed(Level level, Fence& fence);
  void changed(Position at);
  void put(Level level, Fence& fence, Stored as);
  void remove_record(Level level, Fence& fence);
  void own();

  Keys& keys_;
  const Key& key_;
  const Bytes fences_;   // what their records begin with
  const Bytes members_;  // what those of the members do
  const std::shared_ptr<FenceBook> book_;
  const std::lock_guard<std::mutex> lock_;
};

}  // namespace trellis
