// The bytes that a connection has read and not used yet: one flat block, for headers are parsed
// where they lie. It is small for who sends little, so that those of many connections stay in the
// core's caches, and grows for who fills it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

#include "base/bytes.h"

namespace trellis {

class InputBuffer {
 public:
  // `block_bytes_max`: of a first block, before it is known that something larger comes.
  explicit InputBuffer(size_t block_bytes_max = 4 * 1024) : block_bytes_max_(block_bytes_max) {}

  ByteView data() const { return {block_.get() + begin_, end_ - begin_}; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  size_t capacity() const { return capacity_; }

  // Room behind the data, of which there may be `bytes_max` in all; empty if there is so much.
  // Moves the data: views into it die.
  std::span<char> space(size_t bytes_max);
  void add(size_t bytes);  // that were written to the space
  void consume(size_t bytes) { begin_ += bytes; }
  // Of an empty one gives back the memory, but for a small block that the next read finds again.
  // REQUIRES: no read to the space is pending.
  void release();
  void release_all();  // that one too

 private:
  static constexpr size_t kept_bytes_max = 16 * 1024;  // by a connection that has nothing to do
  static constexpr size_t block_bytes_min = 1024;

  void reallocate(size_t bytes);

  const size_t block_bytes_max_;
  size_t block_bytes_ = block_bytes_min;  // of the next one
  std::unique_ptr<char[]> block_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

inline void InputBuffer::reallocate(size_t bytes) {
  auto block = std::make_unique_for_overwrite<char[]>(bytes);
  if (!empty()) std::memcpy(block.get(), block_.get() + begin_, size());
  end_ = size();
  begin_ = 0;
  block_ = std::move(block);
  capacity_ = bytes;
}

inline void InputBuffer::add(size_t bytes) {
  end_ += bytes;
  if (end_ == capacity_) block_bytes_ = std::min(4 * block_bytes_, block_bytes_max_);
}

inline void InputBuffer::release() {
  if (!empty()) return;
  if (end_ < block_bytes_ / 4) block_bytes_ = std::max(block_bytes_ / 2, block_bytes_min);
  begin_ = end_ = 0;
  if (capacity_ > block_bytes_min) release_all();
}

inline void InputBuffer::release_all() {
  if (!empty()) return;
  block_.reset();
  capacity_ = begin_ = end_ = 0;
}

inline std::span<char> InputBuffer::space(size_t bytes_max) {
  if (size() >= bytes_max) return {};
  if (empty() && (block_ == nullptr || (capacity_ > kept_bytes_max && bytes_max < capacity_))) {
    reallocate(block_bytes_);
  }
  if (begin_ > 0 && capacity_ - end_ < capacity_ / 2) {
    std::memmove(block_.get(), block_.get() + begin_, size());
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == capacity_ || capacity_ < block_bytes_)
    reallocate(std::max(end_ == capacity_ ? std::min(2 * capacity_, bytes_max) : 0, block_bytes_));
  return {block_.get() + end_, std::min(capacity_ - end_, bytes_max - size())};
}

}  // namespace trellis
