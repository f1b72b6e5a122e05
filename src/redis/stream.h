// Streams: their entries (stream_group.h has consumer groups), all in the table of streams.
//
//   ms u64 | seq u64   -> fields and values (codec/redis_stream.h)
//
// The key's record says how many there are and which is the first and the last (0-0 if there is
// none). What lies before the first is trimmed: it is not there, and the collector has a note of
// it or it is removed already. So to trim is to look for the new first entry and to write the key's
// record; few entries are removed with it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "codec/redis_stream.h"
#include "redis/call.h"

namespace trellis {

constexpr StreamId lowest_id{0, 0};
constexpr StreamId highest_id{UINT64_MAX, UINT64_MAX};

std::string id_text(const StreamId& id);
void append_id_bytes(Bytes& out, const StreamId& id);  // 16 of them, in the order of ids
// The next and the one before; absent: there is none.
std::optional<StreamId> id_behind(StreamId id);
std::optional<StreamId> id_before(StreamId id);
// Whether an entry may have it: the largest time marks the records of groups.
constexpr bool is_entry_id(const StreamId& id) { return id.ms != UINT64_MAX; }

// --- ids of clients ---

Error invalid_id();  // ERR Invalid stream ID specified as stream command argument
// "ms" or "ms-seq". Absent: it is none.
std::optional<StreamId> parse_id(ByteView text, uint64_t missing_seq = 0);
Result<StreamId> id_at(const Call& call, size_t i);
Result<std::vector<StreamId>> ids_from(const Call& call, size_t first);

struct IdRange {
  StreamId first = lowest_id;
  StreamId last = highest_id;
  uint64_t count = 0;  // how many of them the visitor takes, if not all
};
// "-", "+", an id, or "(" and an id, which is then not part of it.
Result<StreamId> first_of_range(const Call& call, size_t i);
Result<StreamId> last_of_range(const Call& call, size_t i);

// --- entries ---

// Those in the range, in order, until the visitor stops. It must not use `Keys`.
using EntryVisitor = FunctionRef<Visit(const StreamId& id, ByteView entry)>;
Status scan_entries(Keys& keys, const Key& key, const IdRange& range, bool reverse,
                    EntryVisitor visit);
// Not found where there is none.
Status get_entries(Keys& keys, const Key& key, std::span<const StreamId> ids,
                   std::span<Value> entries);

// | id | fields and values |
Status reply_entry(Reply& reply, const StreamId& id, ByteView entry);
// An array of those in the range, at most `count` of them; 0: all. Says how many there were.
Result<size_t> reply_entries(Call& call, const Key& key, IdRange range, bool reverse,
                             uint64_t count);

// REQUIRES: the key is a stream, and the id is behind the last one that it gave.
void add_entry(Keys& keys, Key& key, const StreamId& id, ByteView entry);
// Says how many were there.
Result<uint64_t> delete_entries(Keys& keys, Key& key, std::vector<StreamId> ids);

struct Trim {
  enum class By : uint8_t { none, length, id } by = By::none;
  uint64_t length = 0;  // so many stay
  StreamId first = {};  // none before it stays
  // Only `unit` entries at a time, or all, and no more than `limit` (0: any number).
  bool is_rough = false;
  uint64_t unit = 0;  // 0: only all
  uint64_t limit = 0;
};
// Says how many went.
Result<uint64_t> trim_stream(Keys& keys, Key& key, const Trim& trim);

}  // namespace trellis
