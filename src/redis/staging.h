// What one command or EXEC writes, if that is more than one commit can hold.
//
// Records of a life that begins in a transaction are found by nobody before its key's record says
// so: they are committed ahead, in parts. With the first part goes a note for the collector, as of
// a life that has ended, but due in a while; the transaction's own commit, which makes the life
// visible, takes it back. Who dies on the way leaves nothing else behind.
//
// A life that others see cannot grow or shrink in parts. So a transaction that is still too large
// starts over, and gives the keys to which it wrote much a new life as soon as it opens them
// (Keys::renew).
#pragma once

#include <map>
#include <set>
#include <vector>

#include "base/bytes.h"

namespace trellis {

struct Staging {
  bool is_validated = false;             // what it reads, by its commit
  std::set<Bytes, std::less<>> renewed;  // records of keys that get a new life
  // To lives that were there before, by the record of the key.
  std::map<Bytes, size_t> written_bytes;
  // Notes that were left, and not taken back.
  struct Note {
    uint64_t due_ms;
    Bytes target;
  };
  std::vector<Note> notes;
};

// What is written to a key before it is renewed: less and less, as long as that is not enough.
constexpr size_t renewed_bytes_first = 64 * 1024;
constexpr size_t renewed_bytes_last = 128;
// One part; with the largest of values it is still one commit. What fits into a core's cache is
// written fastest, but where servers share an engine each commit goes over the network.
constexpr size_t staged_part_bytes = 896 * 1024;
constexpr size_t shared_part_bytes = 4 * 1024 * 1024;
// When the collector may take what was staged, and how long a transaction may take at most: clocks
// of two machines differ by less than what is in between.
constexpr uint64_t staged_due_ms = 2 * 3'600'000;
constexpr uint64_t staging_ms_max = 3'600'000;

}  // namespace trellis
