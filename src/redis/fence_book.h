// The fences of a collection in memory (redis/fences.h), as far as they were read.
//
// Where latches order transactions a book outlives them: then it is what counts, and what is stored
// only says that a fence is to be counted (a mark), which is written once for many changes. Whoever
// has no book counts what is marked; the collector writes the numbers when the book has not been
// told for a while. So nothing is lost with the memory but time.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"

namespace trellis {

struct FenceBook {
  enum class Stored : uint8_t { nothing, number, mark };
  struct Fence {
    Bytes place;
    uint64_t members = 0;
    bool is_known = true;  // how many: else a mark was found, and nobody has counted since
    Stored stored = Stored::nothing;
    uint64_t stored_members = 0;  // if that is a number
  };
  struct Group : Fence {
    bool is_read = false;  // its fences are here
    std::vector<Fence> fences = {};
  };

  std::mutex mutex;                    // of who reads: a writer has it to itself
  std::vector<Group> groups;           // empty: not read yet
  size_t marked_groups = 0;            // a fence that is marked is in one
  bool is_kept = false;                // it outlives the transaction
  bool is_owned = false;               // by one that changes it
  std::atomic<bool> is_noted = false;  // to the collector, because there are marks
  Bytes cleaned_to;                    // by the collector, which writes the numbers in parts
};

// Those that outlive transactions, by what their records begin with. Any thread.
class FenceBooks {
 public:
  explicit FenceBooks(const Clock& clock) : clock_(clock) {}

  // REQUIRES: the latch of the collection, which has so many members. If there is no room it is one
  // that is not kept.
  std::shared_ptr<FenceBook> get(ByteView collection, uint64_t members);
  // It is about to change: only who has it knows it, until it puts it back, with the exclusive
  // latch still held. Who fails does not put it back.
  void take(ByteView collection);
  void put(ByteView collection, std::shared_ptr<FenceBook> book, uint64_t members);

 private:
  struct Entry {
    Bytes collection;
    std::shared_ptr<FenceBook> book;
    size_t bytes;
    uint64_t used_ms;
  };
  using Entries = std::list<Entry>;  // the one that was used last is the first
  void erase(Entries::iterator entry);
  bool make_room(size_t bytes);

  const Clock& clock_;
  std::mutex mutex_;
  Entries entries_;
  std::unordered_map<ByteView, Entries::iterator> by_collection_;
  size_t bytes_ = 0;
};

}  // namespace trellis
