// The bytes of a rocksdb::WriteBatch for the main family, made directly: its own methods spend more
// on a write than it takes to copy it. The log has them as they are, so their form does not change.
//
//   | sequence number u64, 0 | count u32le | tag u8, key, value | tag u8, key, value | ...
//
// A key and a value are their length as a varint32 and their bytes; a removal has no value, a range
// has its end in place of one.
#pragma once

#include <rocksdb/write_batch.h>

#include <utility>

#include "base/bytes.h"

namespace trellis {

class BatchBytes {
 public:
  size_t count() const { return count_; }
  size_t size() const { return bytes_.size(); }
  // For so many more bytes.
  void reserve(size_t bytes) { bytes_.reserve(bytes_.size() + bytes); }

  void put(ByteView key, ByteView value) { append(Tag::value, key, value); }
  void merge(ByteView key, ByteView operand) { append(Tag::merge, key, operand); }
  void remove_range(ByteView begin, ByteView end) { append(Tag::range_deletion, begin, end); }
  void remove(ByteView key) {
    begin(Tag::deletion);
    append_sized(key);
  }

  // What it has; then it is empty.
  rocksdb::WriteBatch take() {
    for (size_t i = 0; i < 4; i++) bytes_[8 + i] = static_cast<char>(count_ >> (8 * i));
    count_ = 0;
    return rocksdb::WriteBatch(std::exchange(bytes_, Bytes(head_bytes, '\0')));
  }

 private:
  enum class Tag : char { deletion = 0, value = 1, merge = 2, range_deletion = 15 };
  static constexpr size_t head_bytes = 12;

  void begin(Tag tag) {
    bytes_.push_back(static_cast<char>(tag));
    count_++;
  }
  void append(Tag tag, ByteView key, ByteView value) {
    begin(tag);
    append_sized(key);
    append_sized(value);
  }
  void append_sized(ByteView part) {
    size_t size = part.size();
    for (; size >= 0x80; size >>= 7) bytes_.push_back(static_cast<char>(size | 0x80));
    bytes_.push_back(static_cast<char>(size));
    bytes_.append(part);
  }

  Bytes bytes_ = Bytes(head_bytes, '\0');
  uint32_t count_ = 0;
};

}  // namespace trellis
