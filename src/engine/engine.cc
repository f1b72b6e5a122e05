#include "engine/engine.h"

#include <fmt/format.h>

#include "codec/counter_value.h"

namespace trellis {
namespace {

Error invalid(std::string message) { return Error{Code::invalid, std::move(message)}; }

Error too_large(const char* what, const char* limit, size_t size, size_t size_max) {
  return Error{Code::too_large,
               fmt::format("{} of {} bytes is over {} ({})", what, size, limit, size_max)};
}

Status check_key(ByteView key) {
  if (key.empty()) return invalid("the empty key is no key of the map");
  if (key.size() > key_bytes_max) {
    return too_large("key", "key_bytes_max", key.size(), key_bytes_max);
  }
  return {};
}

// A bound may be empty (the start or the end of the map), and one byte longer than a key: what
// follows the longest key is its successor.
Status check_bound(ByteView bound) {
  if (bound.size() > key_bytes_max + 1) {
    return too_large("bound", "key_bytes_max", bound.size(), key_bytes_max);
  }
  return {};
}

Status check_put(ByteView key, ByteView value) {
  TRY(check_key(key));
  if (value.size() > value_bytes_max) {
    return too_large("value", "value_bytes_max", value.size(), value_bytes_max);
  }
  if (is_counter_key(key) && !decode_counter_value(value).has_value()) {
    return invalid("not the value of a counter, at the counter key " + quote(key));
  }
  return {};
}

Status check_remove_range(ByteView begin, ByteView end) {
  TRY(check_bound(begin));
  TRY(check_bound(end));
  if (!end.empty() && begin >= end) {
    return invalid("remove_range from " + quote(begin) + " to " + quote(end) +
                   ": the end must be greater");
  }
  return {};
}

Status check_add(ByteView key) {
  TRY(check_key(key));
  if (!is_counter_key(key)) return invalid("add to " + quote(key) + ", which is no counter key");
  return {};
}

Status check_write(const WriteSet::Write& write) {
  switch (write.op) {
    case WriteOp::put: return check_put(write.key, write.value);
    case WriteOp::remove: return check_key(write.key);
    case WriteOp::remove_range: return check_remove_range(write.key, write.value);
    case WriteOp::add: return check_add(write.key);
  }
  return invalid("unknown operation in a write set");
}

// An empty interval is let through: it expects nothing, and that always holds.
Status check_expectation(const Expectation& expectation) {
  if (!expectation.end.has_value()) return check_key(expectation.begin);
  TRY(check_bound(expectation.begin));
  TRY(check_bound(*expectation.end));
  if (!expectation.end->empty() && expectation.begin > *expectation.end) {
    return invalid("expectation from " + quote(expectation.begin) + " to " +
                   quote(*expectation.end) + ": the end must not be less");
  }
  if (!expectation.seen.has_value()) return invalid("expectation on an interval without evidence");
  return {};
}

}  // namespace

Status commit(Engine& engine, const Commit& commit) {
  const Commit* const commits[] = {&commit};
  Status outcomes[1];
  const CommitTicket ticket = engine.commit_many(commits, outcomes);
  if (!outcomes[0].has_value() || commit.durability != Durability::always) {
    return std::move(outcomes[0]);
  }
  // It was ordered, so others may have seen it: whether it lasts is what nobody knows.
  if (Status durable = engine.wait_durable(ticket); !durable.has_value()) {
    return Error{Code::maybe, "not known to be durable: " + durable.error().message};
  }
  return {};
}

Status check_writes(const WriteSet& writes) {
  for (const WriteSet::Write& write : writes) TRY(check_write(write));
  return {};
}

Status check_commit(const Commit& commit) {
  if (commit.writes.bytes() > commit_bytes_max) {
    Error error = too_large("commit", "commit_bytes_max", commit.writes.bytes(), commit_bytes_max);
    error.reason = commit_too_large;
    return error;
  }
  TRY(check_writes(commit.writes));
  size_t expected = 0;
  for (const Expectation& expectation : commit.expectations) {
    TRY(check_expectation(expectation));
    expected += expectation_bytes(expectation);
  }
  if (expected > expectation_bytes_max) {
    return too_large("what a commit relies on", "expectation_bytes_max", expected,
                     expectation_bytes_max);
  }
  return {};
}

Status check_block_keyspace(KeyspaceId keyspace) {
  if (keyspace.value <= keyspace_id_max) return {};
  return invalid(
      fmt::format("keyspace {} is over keyspace_id_max ({})", keyspace.value, keyspace_id_max));
}

Status check_block_write(const BlockWrite& write) {
  TRY(check_block_keyspace(write.block.keyspace));
  const size_t end = size_t{write.offset.value_or(0)} + write.bytes.size();
  if (end <= block_bytes_max) return {};
  return too_large("block", "block_bytes_max", end, block_bytes_max);
}

}  // namespace trellis
