#include "net/output_queue.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace trellis {
namespace {

// Copying so little costs less than one more segment.
constexpr size_t copied_bytes_max = 16 * 1024;
// Small, so that those of many connections stay in the core's caches.
constexpr size_t segment_bytes = 511;  // and a zero

}  // namespace

Bytes& OutputQueue::open_segment(size_t bytes) {
  if (!is_last_open_ || segments_.back().size() + bytes > copied_bytes_max + segment_bytes) {
    segments_.emplace_back().reserve(std::max(bytes, segment_bytes));
    is_last_open_ = true;
  }
  return segments_.back();
}

void OutputQueue::append(ByteView bytes) {
  open_segment(bytes.size()).append(bytes);
  size_ += bytes.size();
}

void OutputQueue::append_body(Bytes&& body) {
  if (body.size() <= copied_bytes_max) return append(body);
  size_ += body.size();
  segments_.push_back(std::move(body));
  is_last_open_ = false;
}

size_t OutputQueue::peek(std::span<ByteView> views) {
  size_t count = 0;
  for (const Bytes& segment : segments_) {
    if (count == views.size()) break;
    views[count] = segment;
    if (count == 0) views[0].remove_prefix(front_consumed_);
    if (!views[count].empty()) ++count;
  }
  is_last_open_ = false;
  return count;
}

void OutputQueue::consume(size_t bytes) {
  ASSERT(bytes <= size_);
  size_ -= bytes;
  consumed_ += bytes;
  front_consumed_ += bytes;
  while (!segments_.empty() && front_consumed_ >= segments_.front().size()) {
    Bytes& front = segments_.front();
    front_consumed_ -= front.size();
    if (segments_.size() == 1 && front.capacity() <= 2 * copied_bytes_max) {
      front.clear();  // its memory serves the next response
      is_last_open_ = true;
      return;
    }
    segments_.pop_front();
  }
  if (segments_.empty()) is_last_open_ = false;
}

void OutputQueue::release() {
  if (!empty()) return;
  const bool is_small = segments_.size() == 1 && segments_.front().capacity() <= segment_bytes;
  if (!is_small) clear();
}

void OutputQueue::clear() {
  segments_.clear();
  front_consumed_ = 0;
  size_ = 0;
  is_last_open_ = false;
}

}  // namespace trellis
