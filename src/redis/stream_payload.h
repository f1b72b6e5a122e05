// A stream in an RDB payload (rdb_payload.h), as Redis 7.0 writes it (type 19); also what 5 (15)
// and 7.2 (21) write is read.
//
//   | nodes | each: first id, 16 bytes as a string | listpack |
//   | length | last id | first id | largest deleted id | entries added |
//   | groups | each: name | last id | entries read |
//       | pending | each: id, 16 bytes | when: ms u64le | how often |
//       | consumers | each: name | seen: ms u64le | pending | each: id, 16 bytes |
//
// Numbers are lengths of RDB. A node's listpack begins with a master entry:
//   | entries | deleted | fields | each: name | 0 |, then for each entry
//   | flags | ms behind the first id | seq | [fields] | [name] value ... | how many of these |
#pragma once

#include "redis/stream_group.h"

namespace trellis {

class RdbReader;

// What a value may take while it is read for its payload: as much as a reply.
class PayloadRoom {
 public:
  Visit take(size_t bytes) {
    bytes_ += bytes + item_bytes;
    return bytes_ > reply_bytes_max ? Visit::stop : Visit::go_on;
  }
  Status check() const;  // whether it was enough

 private:
  static constexpr size_t item_bytes = 16;  // of what is known of each
  size_t bytes_ = 0;
};

struct RdbStream {
  struct Entry {
    StreamId id;
    Bytes entry;  // as it is stored
  };
  struct Consumer {
    Bytes name;
    uint64_t seen_ms = 0;
  };
  struct Group {
    Bytes name;
    StreamId last;
    std::optional<int64_t> entries_read;  // absent: before 7.0 nobody counted
    std::vector<PendingEntry> pending;
    std::vector<Consumer> consumers;
  };
  RedisMetadata::Stream head;  // without its groups
  std::vector<Entry> entries;
  std::vector<Group> groups;
};

enum class RdbStreamForm : uint8_t { listpacks = 15, listpacks_2 = 19, listpacks_3 = 21 };

// With its type in front.
Bytes write_rdb_stream(const RdbStream& stream);
// Behind its type. False: it makes no sense.
bool read_rdb_stream(RdbReader& reader, RdbStreamForm form, RdbStream& stream);

Result<RdbStream> load_stream(Keys& keys, const Key& key);
// REQUIRES: the key is a stream that has just begun.
Status store_stream(Keys& keys, Key& key, const RdbStream& stream);

}  // namespace trellis
