// One range as an object: its header, the names of its entries, and how the first one is made.
//
//   object  r.<range id>     xattrs: gen start end right st step sticky      first range: r.1
//   omap    d <address>      01 value         payload; the leading byte keeps it from being empty
//           v <address>      writer           version: of the operation that wrote it, unique
//           i <address>      intent
//           s                writer           structure: of who made a key come or go, or prepared
//
//   st      live                              nothing is going on
//           split <N> <m>    [m, end) is being copied to N; it is read here and not written
//           unsplit <N>      the split was given up: N is to be removed
//           halved <N>       N has begun to live: what was copied to it is to be removed here
//           building <O>     a copy in the making: neither read nor written
//           merge <R>        R is being copied behind the end
//           unmerge <R>      the merge was given up: R is to be thawed, the copy to be removed
//           merged <R>       R is a part of this one now: it is to be emptied
//           frozen <L>       being copied to L: neither read nor written
//           gone <L>         a part of L: empty, only tells the way
//
// `step` counts the pages that were copied to it: who waits for a split or merge sees that it
// moves. The object is the authority for its interval; the directory is a hint. The ranges from r.1
// along `right` are the map, always. Numbers are decimal text; <m> is an address, as it is, to the
// end.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "object_store/object_store.h"
#include "range/descriptor.h"

namespace trellis {

// On disk: never change a letter.
enum class EntryKind : char {
  payload = 'd',
  version = 'v',
  intent = 'i',
  structure = 's',
};

Bytes range_object_name(RangeId id);
// Code::invalid if it is none.
Result<RangeId> parse_range_object_name(ByteView object);

Bytes entry_key(EntryKind kind, ByteView address);
Bytes encode_payload(ByteView value);
// Of what encode_payload gave: a view into it. Code::corrupt otherwise.
Result<ByteView> decode_payload(ByteView stored);

enum class RangeState : uint8_t {
  live,
  split,
  unsplit,
  halved,
  building,
  merge,
  unmerge,
  merged,
  frozen,
  gone,
};
std::string_view to_string(RangeState state);

struct RangeHeader {
  RangeId id;
  uint64_t generation = 0;
  Bytes start;
  Bytes end;      // exclusive
  RangeId right;  // 0: none, it is the last one
  RangeState state = RangeState::live;
  RangeId other;   // the N, O, R or L of the state
  Bytes split_at;  // the m of split
  uint64_t step = 0;
  uint64_t sticky_until_ms = 0;

  bool holds(ByteView address) const { return start <= address && address < end; }
  // What may be done to an address that it holds. Where it may not, whoever wants to waits for the
  // state to pass (cluster_engine/range_patience.h) and looks again.
  bool may_read() const {
    return state != RangeState::building && state != RangeState::frozen &&
           state != RangeState::gone;
  }
  bool may_write(ByteView address) const {
    return may_read() && (state != RangeState::split || address < split_at);
  }
  bool operator==(const RangeHeader&) const = default;
};

// The attributes that the header is stored as.
std::vector<ObjectChange> header_changes(const RangeHeader& header);
// From an answer with attributes. Code::corrupt if they make no sense.
Result<RangeHeader> decode_header(RangeId id, const ReadAnswer& answer);
// Code::not_found if the object is not there.
Result<RangeHeader> read_header(ObjectStore& store, FaultPoint point, RangeId id);

// What every operation on a range is guarded by. A generation names one state of bounds and of
// what may be read and written: a client with another one is refused with -ECANCELED.
Guard generation_is(const RangeHeader& header);

RangeDescriptor to_descriptor(const RangeHeader& header);
std::string to_string(const RangeHeader& header);

// Who wrote something: 16 bytes, unique for each operation that writes.
struct Writer {
  uint64_t incarnation;
  uint64_t sequence;
};
Bytes encode_writer(const Writer& writer);
// The same for what ranges write about themselves: 25 bytes, so that the two are never equal.
// `version`: of the object when it was read, where the generation alone does not make it unique.
Bytes encode_range_writer(char tag, RangeId id, uint64_t generation, uint64_t version = 0);

// Makes the range that is all of the map, with its records, unless there is one: any number of
// clients may do that at once.
Status bootstrap_ranges(ObjectStore& store);

// What an answer of the object store means: nothing, or Code::conflict (a guard), not_found,
// exists, maybe (nobody knows), too_large, unavailable.
Status object_status(int answer, std::string_view what);

}  // namespace trellis
