// The writes of one commit, in order, in one buffer. Later writes win over earlier ones.
//
//   | key length u32 | value length u32 | op u8, padded | key | value |   repeated
//
// In host byte order: the buffer never leaves the process. A range delete has its end in place of
// the value, an add its 8-byte delta.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/bytes.h"

namespace trellis {

enum class WriteOp : uint8_t { put, remove, remove_range, add };

class WriteSet {
 public:
  struct Write {
    WriteOp op;
    ByteView key;    // remove_range: begin
    ByteView value;  // remove_range: end (exclusive; empty: to the end of the map)
    int64_t delta;   // add only
  };

  void put(ByteView key, ByteView value) { append(WriteOp::put, key, value); }
  void remove(ByteView key) { append(WriteOp::remove, key, {}); }
  void remove_range(ByteView begin, ByteView end) { append(WriteOp::remove_range, begin, end); }
  // Adds to a counter key (codec/tenant_keys.h) without reading it.
  void add(ByteView key, int64_t delta) {
    append(WriteOp::add, key, {reinterpret_cast<const char*>(&delta), sizeof delta});
  }

  void append(const WriteSet& others) {
    if (!others.empty()) last_ = buffer_.size() + others.last_;
    buffer_ += others.buffer_;
    count_ += others.count_;
  }

  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }
  size_t bytes() const { return buffer_.size(); }  // what commit_bytes_max bounds
  size_t content_bytes() const { return bytes() - count_ * sizeof(Iterator::Header); }
  void clear() {  // keeps the memory
    buffer_.clear();
    count_ = 0;
  }

  class Iterator {
   public:
    explicit Iterator(const char* at) : at_(at) {}
    Write operator*() const {
      const Header header = load();
      const ByteView key{at_ + sizeof(Header), header.key_bytes};
      const ByteView value{key.data() + key.size(), header.value_bytes};
      Write write{header.op, key, value, 0};
      if (header.op == WriteOp::add) std::memcpy(&write.delta, value.data(), sizeof write.delta);
      return write;
    }
    Iterator& operator++() {
      const Header header = load();
      at_ += sizeof(Header) + header.key_bytes + header.value_bytes;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    friend class WriteSet;
    struct Header {
      uint32_t key_bytes;
      uint32_t value_bytes;
      WriteOp op;
    };
    Header load() const {
      Header header;
      std::memcpy(&header, at_, sizeof header);
      return header;
    }
    const char* at_;
  };

  // For so many more writes, whose keys and values have so many bytes.
  void reserve(size_t bytes, size_t writes) {
    buffer_.reserve(buffer_.size() + bytes + writes * sizeof(Iterator::Header));
  }

  Iterator begin() const { return Iterator(buffer_.data()); }
  Iterator end() const { return Iterator(buffer_.data() + buffer_.size()); }
  // REQUIRES: not empty.
  Write front() const { return *begin(); }
  Write back() const { return *Iterator(buffer_.data() + last_); }

 private:
  void append(WriteOp op, ByteView key, ByteView value) {
    const Iterator::Header header{static_cast<uint32_t>(key.size()),
                                  static_cast<uint32_t>(value.size()), op};
    last_ = buffer_.size();
    buffer_.append(reinterpret_cast<const char*>(&header), sizeof header);
    buffer_.append(key);
    buffer_.append(value);
    count_++;
  }

  Bytes buffer_;
  size_t count_ = 0;
  size_t last_ = 0;  // where the last one begins
};

}  // namespace trellis
