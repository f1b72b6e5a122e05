// Every stored entry of an interval of addresses, in a store of plain keys.
//
// What belongs together by address lies apart by key: sub keys of Redis are stored under the length
// of their user key, records of an inode under their scope. So the interval becomes a list of
// pieces, each an interval of keys, or one per length that occurs (found by skipping from one to
// the next). Nothing outside of them is read but one entry per length.
//
//   AddressWalk walk(engine, range.start, range.end);
//   while (!walk.done()) TRY(walk.next(visit));
//
// A key that has no address (codec/address.h) belongs to no range: it is counted if it is met, and
// never visited. One thread at a time.
#pragma once

#include <optional>
#include <vector>

#include "engine/engine.h"

namespace trellis {

struct WalkFigures {
  uint64_t entries = 0;
  uint64_t bytes = 0;      // keys and values
  uint64_t malformed = 0;  // keys without an address that were met
};

class AddressWalk {
 public:
  // `end` is exclusive. From the start, or from where another walk of the same interval was.
  AddressWalk(Engine& engine, ByteView begin, ByteView end, ByteView position = {});

  // Visits up to about bytes_max more, each entry once, in the order of stored keys. Entries that
  // are written meanwhile are seen or not. After a stop the walk goes on behind the entry.
  // REQUIRES: not done.
  Status next(ScanVisitor visit, size_t bytes_max = 1 << 20);
  bool done() const { return piece_ == pieces_.size(); }
  const WalkFigures& figures() const { return figures_; }  // since this walk began

  // Where it is, for the constructor; unlike an entry's key it may be given to nobody else.
  Bytes position() const;

 private:
  // The least key at or after a bound of addresses, for one table of one Redis namespace.
  struct RedisBound {
    Bytes ns;  // with its length byte
    Bytes user_key;
    bool below_key = true;  // the bound is at or below everything of user_key itself
    Bytes tail;             // otherwise: tag and what follows, of user_key; empty: above all of it
  };
  struct Piece {
    Bytes begin;
    Bytes end;
    // Of sub keys: begin..end is all of a namespace, of which these are the bounds.
    bool by_length = false;
    std::optional<RedisBound> lower;
    std::optional<RedisBound> upper;
  };

  void add_piece(Bytes begin, Bytes end);
  void add_area(ByteView area, ByteView begin, ByteView end);
  void add_files(ByteView area, ByteView begin, ByteView end);
  void add_redis(ByteView area, ByteView begin, ByteView end);
  static std::optional<RedisBound> redis_bound(ByteView area, ByteView address);
  static Bytes plain_bound(ByteView prefix, char tag, const RedisBound& bound);
  static Bytes sized_bound(ByteView prefix, char tag, uint32_t size, const RedisBound& bound);

  // The interval of keys that comes next in a piece; absent if nothing is left of it.
  Result<std::optional<std::pair<Bytes, Bytes>>> next_interval(const Piece& piece);
  bool is_inside(ByteView key);

  Engine& engine_;
  const Bytes begin_;
  const Bytes end_;
  std::vector<Piece> pieces_;
  size_t piece_ = 0;
  Bytes key_;  // of the piece, what comes next
  Bytes address_;
  WalkFigures figures_;
};

}  // namespace trellis
