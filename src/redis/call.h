// One command at work: what a handler gets.
#pragma once

#include <optional>
#include <string>

#include "base/limits.h"
#include "redis/command.h"
#include "redis/key.h"
#include "redis/reply.h"
#include "redis/session.h"

namespace trellis {

class RedisServer;

// The reason of errors whose message is the reply, its first word the kind: "ERR syntax error".
inline constexpr std::string_view reply_error = "reply";

Error reply_with(std::string message);
// What neither fits into one commit (base/limits.h) nor can be staged (redis/staging.h).
inline constexpr const char* too_much_at_once =
    "ERR this is more than one command or EXEC can write: do it in parts";
Error wrong_type();      // WRONGTYPE Operation against a key holding the wrong kind of value
Error syntax_error();    // ERR syntax error
Error not_an_integer();  // ERR value is not an integer or out of range
Error not_a_float();     // ERR value is not a valid float
Error no_such_key();     // ERR no such key
Error wrong_arity(std::string_view command);

// Of keys that commands read: found, and not.
struct Lookups {
  uint64_t hits = 0;
  uint64_t misses = 0;
};

struct Call {
  const Command& command;
  Args args;
  Reply& reply;
  Keys& keys;
  Session& session;
  RedisServer& server;
  Lookups& lookups;

  uint64_t now_ms() const { return keys.now_ms(); }
  size_t count() const { return args.size(); }
  ByteView arg(size_t i) const { return args[i]; }
  // Whether argument `i` is that word, in any case. `word` is in small letters.
  bool is_word(size_t i, std::string_view word) const;
  Result<int64_t> integer(size_t i) const;
  Result<double> number(size_t i) const;  // never NaN

  // The key that argument `i` names, in the session's database.
  Result<Key*> open(size_t i);
  // It exists with that type, or does not exist. A bitmap is a string: all of it is read.
  Result<Key*> open(size_t i, RedisType type);
  // As in Keys: the hash that argument 1 names, or none, for who names its fields, and a key of any
  // type for who looks at none.
  Result<Key*> open_by_field();
  Result<Key*> open_whole(size_t i);
  // As open_by_field, for who adds fields: a hash of which all are over begins anew, without the
  // expiry that it had.
  Result<Key*> open_to_add_fields();
  // At a time that has come, the key goes.
  void expire(Key& key, uint64_t expire_ms) const;
  void count_lookup(const Key& key) const;
};

// The longest string: what one value of the map can hold.
inline constexpr size_t string_bytes_max = value_bytes_max - 64;
Error string_too_long();  // ERR string exceeds maximum allowed size (proto-max-bulk-len)

// The same for a command that runs alone.
struct AloneCall {
  const Command& command;
  Args args;
  Reply& reply;
  Session& session;
  RedisServer& server;
  uint64_t now_ms;
  // Of EXEC's transaction, which it is part of and has the keyspace to itself; else null.
  Keys* keys;

  size_t count() const { return args.size(); }
  ByteView arg(size_t i) const { return args[i]; }
  bool is_word(size_t i, std::string_view word) const;
  Result<int64_t> integer(size_t i) const;
  // What names a database: a number of 32 bits.
  Result<int32_t> index(size_t i, Error not_a_number) const;

  // What is stored, with what EXEC did before. To read so is to be admitted first.
  Status admit_read();
  Result<DatabaseSlots> slots();
  Result<int64_t> count_keys(const DatabaseSlots& slots, uint32_t database);
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit);
};

Result<uint32_t> database_at(int64_t index);  // ERR DB index is out of range

// An argument as Redis shows it in errors: as a C string, up to so many bytes.
std::string_view shown(ByteView text, size_t bytes_max = ByteView::npos);

bool equals_word(ByteView text, std::string_view word);

}  // namespace trellis
