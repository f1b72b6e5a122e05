// Large bitmaps, part by part, on several threads where the store is to be read by them
// (View::stored).
#pragma once

#include <span>
#include <vector>

#include "redis/bitmap.h"

namespace trellis {

// The offsets that fragments of so many bytes may have, in the order in which they are stored: that
// of their decimals.
class StoredOrder {
 public:
  StoredOrder(uint64_t bytes, size_t part_fragments);
  bool is_for_threads() const { return bytes_ >= threads_bytes_min; }
  // The next, up to part_fragments; none: that was all.
  std::vector<uint64_t> next_part();

 private:
  // Those of one number of digits are in order by themselves.
  struct Digits {
    uint64_t next;
    uint64_t end;
    uint64_t scale;  // makes them comparable with others
  };
  static constexpr uint64_t threads_bytes_min = 4 * 1024 * 1024;  // less takes as long as they do
  const uint64_t bytes_;
  const size_t part_fragments_;
  std::vector<Digits> all_;
};

// A bitmap as it is now, of which the key may change.
class FragmentScan {
 public:
  // REQUIRES: a bitmap.
  static Result<FragmentScan> open(Keys& keys, const Key& key);
  bool is_for_threads() const { return engine_ != nullptr; }
  // Those at offsets from the first to the last of these, in order.
  Status visit(std::span<const uint64_t> part, FragmentVisitor visit) const;

 private:
  FragmentScan(Keys& keys, Engine* engine, Bytes prefix, uint64_t bytes)
      : keys_(&keys), engine_(engine), prefix_(std::move(prefix)), bytes_(bytes) {}

  Keys* keys_;
  Engine* engine_;  // null: only the transaction's own view has all of it
  Bytes prefix_;
  uint64_t bytes_;
};

// What is made of each part, ahead by as many as there are slots, on this thread and on others if
// they may; and what takes that, in order, on this thread.
struct PartWork {
  using Slot = size_t;   // below slots; that of the part before is another one
  using Maker = size_t;  // below makers; a thread that makes one part at a time
  static constexpr size_t slots = 8;
  static constexpr size_t makers = 4;
  FunctionRef<Status(Maker maker, Slot slot, std::span<const uint64_t> part)> make;
  FunctionRef<Status(Slot slot)> take;
};
Status work_in_parts(StoredOrder order, bool on_threads, const PartWork& work);

}  // namespace trellis
