// Fields of hashes that expire.
//
//   'h' namespace key version | 'f' | field                  ->  | 01 | expire ms u64 |
//   'h' namespace key version | 't' | expire ms u64 | field  ->  nothing
//
// The record of the key has a time before which none of them expires, and a note for the collector
// is left for that time: until then nothing costs more than in a hash without. From then on, until
// the collector has removed them, who opens the key reads which fields are over, and does not see
// these.
#pragma once

#include <span>
#include <vector>

#include "redis/key.h"

namespace trellis {

class FieldExpiry {
 public:
  // REQUIRES: the key is a hash.
  FieldExpiry(Keys& keys, Key& key);

  // When they expire; 0: never.
  Result<std::vector<uint64_t>> times(std::span<const ByteView> fields);
  // 0 as above. REQUIRES: the field is there, and `was` is its time.
  void set(ByteView field, uint64_t expire_ms, uint64_t was);
  // Of fields that are removed or written anew: they do not expire any more. REQUIRES: they differ.
  Status forget(std::span<const ByteView> fields);
  // Removes those of them that are over: they are to be written anew.
  Status remove_over(std::span<const ByteView> fields);

  // For Keys::open: finds those that are over.
  Status hide_over();
  // For the collector: removes up to so many that are over, and finds the next time if these are
  // all. REQUIRES: the key is there.
  Status collect(size_t fields_max);

 private:
  Bytes time_key(ByteView field) const;
  Bytes due_key(uint64_t expire_ms, ByteView field) const;

  Keys& keys_;
  Key& key_;
  const Bytes prefix_;
};

}  // namespace trellis
