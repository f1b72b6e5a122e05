// The bytes of RDB files and payloads: numbers, strings, and what Redis packs into one string.
#pragma once

#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"

namespace trellis {

// --- writing ---

void append_le(Bytes& out, uint64_t number, size_t width);
void append_length(Bytes& out, uint64_t length);
void append_string(Bytes& out, ByteView text);

// A listpack, entry by entry.
class ListpackWriter {
 public:
  void add(int64_t number);
  void add(ByteView text);
  void add(const ListpackWriter& other);  // all of its entries
  size_t size_bytes() const { return entries_.size(); }
  // REQUIRES: it has less than 1 GiB.
  Bytes finish() const;

 private:
  void end_entry(size_t begin);

  Bytes entries_;
  size_t count_ = 0;
};

// --- reading ---

uint64_t load_le(ByteView bytes);
int64_t load_signed_le(ByteView bytes);

// What fails fails for good: all that is read from there on is empty.
class RdbReader {
 public:
  explicit RdbReader(ByteView in) : in_(in) {}

  bool failed() const { return failed_; }
  bool is_too_large() const { return is_too_large_; }
  // Takes from what may come of a payload, all of which is held in memory: so a small one that
  // unpacks to much, or to many items, is told before it has.
  bool spend(size_t bytes) {
    left_to_spend_ -= std::min(bytes, left_to_spend_);
    if (left_to_spend_ > 0) return true;
    is_too_large_ = true;
    fail();
    return false;
  }
  bool at_end() const { return in_.empty(); }
  size_t left() const { return in_.size(); }
  void fail() {
    failed_ = true;
    in_ = {};
  }
  ByteView take(size_t bytes) {
    if (bytes > in_.size()) {
      fail();
      return {};
    }
    const ByteView taken = in_.substr(0, bytes);
    in_.remove_prefix(bytes);
    return taken;
  }
  uint8_t byte() {
    const ByteView one = take(1);
    return one.empty() ? 0 : static_cast<uint8_t>(one[0]);
  }
  uint64_t length() {
    const uint8_t first = byte();
    if (first >> 6 == 3) fail();
    return length_behind(first);
  }
  uint64_t be(size_t width) {
    const ByteView bytes = take(width);
    return bytes.empty() ? 0 : load_be(bytes.data(), width);
  }
  Bytes string();
  double score();       // binary
  double score_text();  // as old ones have it

 private:
  uint64_t length_behind(uint8_t first);
  Bytes decompressed();

  ByteView in_;
  size_t left_to_spend_ = rewritten_bytes_max;
  bool failed_ = false;
  bool is_too_large_ = false;
};

using Items = std::optional<std::vector<Bytes>>;  // absent: it makes no sense
constexpr size_t item_bytes_min = 16;             // of the record that it becomes, at the least

// What unpacks to too much fails `budget`.
Items read_listpack(RdbReader& budget, ByteView pack);

}  // namespace trellis
