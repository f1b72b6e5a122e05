// Replies as RESP2 or RESP3 bytes: appended as they are made, never kept as values.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace trellis {

class Reply {
 public:
  Reply(Bytes& out, int protocol) : out_(out), protocol_(protocol) {}

  int protocol() const { return protocol_; }
  Reply with_protocol(int protocol) const { return {out_, protocol}; }

  void ok() { out_ += "+OK\r\n"; }
  void simple(std::string_view text);  // no line breaks
  // Its first word is the kind that clients look at: "ERR ...", "WRONGTYPE ...". Line breaks become
  // spaces.
  void error(std::string_view text);
  void integer(int64_t number) { head(':', number); }
  void bulk(ByteView bytes);
  void bulk_integer(int64_t number);
  void number(double value);  // a bulk in RESP2
  void boolean(bool value);   // an integer in RESP2
  void verbatim(std::string_view text);
  void null();        // of a bulk
  void null_array();  // of an array

  void array(size_t items) { head('*', static_cast<int64_t>(items)); }
  void set(size_t items) { head(protocol_ == 2 ? '*' : '~', static_cast<int64_t>(items)); }
  void map(size_t pairs);

  void raw(ByteView replies) { out_ += replies; }  // that were made elsewhere

  // For a collection whose length is known only behind it:
  //   const size_t mark = reply.mark(); ...items...; reply.insert_array(mark, items);
  size_t mark() const { return out_.size(); }
  void insert_array(size_t mark, size_t items) { insert_head(mark, '*', items); }
  void insert_set(size_t mark, size_t items) {
    insert_head(mark, protocol_ == 2 ? '*' : '~', items);
  }
  void insert_map(size_t mark, size_t pairs);
  // Takes back what was written since the mark.
  void rewind(size_t mark) { out_.resize(mark); }

 private:
  void head(char kind, int64_t number);
  void insert_head(size_t mark, char kind, size_t items);

  Bytes& out_;
  const int protocol_;
};

}  // namespace trellis
