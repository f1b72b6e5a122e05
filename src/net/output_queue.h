// What a connection has still to send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>

#include "base/bytes.h"

namespace trellis {

// A queue of bytes in segments. Many small responses share a segment; large bodies are segments of
// their own, moved and never copied.
class OutputQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Of all that was ever consumed: tells whether the other side takes anything.
  uint64_t consumed() const { return consumed_; }

  void append(ByteView bytes);
  void append_body(Bytes&& body);

  // The first bytes, as views for one gathering write; gives how many views. They stay valid until
  // they are consumed, whatever is appended.
  size_t peek(std::span<ByteView> views);
  void consume(size_t bytes);
  void clear();
  // Of an empty one gives back the memory, but for a small segment that the next bytes find again;
  // clear() gives back all.
  void release();

 private:
  Bytes& open_segment(size_t bytes);

  std::list<Bytes> segments_;
  size_t front_consumed_ = 0;  // of the first segment
  size_t size_ = 0;
  uint64_t consumed_ = 0;
  bool is_last_open_ = false;  // may be appended to: nobody looks at it
};

}  // namespace trellis
