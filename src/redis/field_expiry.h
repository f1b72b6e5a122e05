// Fields of hashes that expire.
//
//   'h' namespace key version | 'f' | field                  ->  | 01 | expire ms u64 |
//   'h' namespace key version | 't' | expire ms u64 | field  ->  nothing
//
// The record of the key has a time before which none of them expires, and a note for the collector
// is left for that time: until then nothing costs more than in a hash without. From then on, until
// the collector has removed them, who opens the key reads which fields are over, and does not see
// these; who names the fields that it looks at reads only their times.
#pragma once

#include <span>
#include <vector>

#include "redis/key.h"

namespace trellis {

class FieldTimes {
 public:
  // REQUIRES: the key is a hash.
  FieldTimes(Keys& keys, const Key& key);

  // When they expire; 0: never.
  Result<std::vector<uint64_t>> times(std::span<const ByteView> fields) const;
  // For Keys::open: finds those that are over.
  Status find_over() const;
  // Whether there are some that are not over.
  Result<bool> has_others() const;

 protected:
  bool is_over(uint64_t expire_ms) const { return expire_ms != 0 && expire_ms <= keys_.now_ms(); }
  Bytes time_key(ByteView field) const;
  Bytes due_key(uint64_t expire_ms, ByteView field) const;

  Keys& keys_;
  const Bytes prefix_;

 private:
  const Key& key_;
};

class FieldExpiry : public FieldTimes {
 public:
  FieldExpiry(Keys& keys, Key& key) : FieldTimes(keys, key), key_(key) {}

  // 0: never. REQUIRES: the field is there, and `was` is its time.
  void set(ByteView field, uint64_t expire_ms, uint64_t was);
  // Of fields that are removed or written anew: they do not expire any more. REQUIRES: they differ.
  Status forget(std::span<const ByteView> fields);
  // Removes those of them that are over: they are to be written anew. REQUIRES: they differ.
  Status remove_over(std::span<const ByteView> fields);

  // For the collector: removes some of those that are over, the first ones, and finds the next
  // time. REQUIRES: the key is there, and was opened by field.
  Status collect();

 private:
  Status remove(std::span<const ByteView> fields, std::span<const uint64_t> times, size_t& bytes);

  Key& key_;
};

}  // namespace trellis
