// The engine contract: one ordered map of bytes, for one process or for many.
//
// Every engine passes tests/conformance. Models use no engine directly but through map/transact.h;
// what one engine cannot do (merge operators, compaction filters, long snapshots) none offers.
//
// Threads: every call of Engine and BlockStore may be made from any thread at any time.
// Blocking: every call may block on I/O.
// Errors: a read that fails says so and returns nothing half-read. A commit answers for itself:
//   done          Status without error
//   conflict      Code::conflict: an expectation did not hold; nothing was applied
//   maybe         Code::maybe: the outcome is unknown; the map holds all of it or nothing
//   failed        any other code; nothing was applied
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/function_ref.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "engine/value.h"
#include "engine/write_set.h"

namespace trellis {

// When a commit survives a crash of the machine. (A crash of the process alone loses nothing.)
enum class Durability : uint8_t {
  always,  // before it is answered: the committer calls wait_durable
  // Within a second; on a disk so slow that one sync takes most of it, with the sync that follows
  // the one that runs then.
  everysec,
  off,  // when the operating system likes
};

// What a commit relies on: that a key, or everything in an interval, is as it was when read.
// `seen` is the evidence that the read gave; its meaning is the engine's own, and only the engine
// that gave it can check it.
struct Expectation {
  Bytes begin;                // the key, or the start of the interval
  std::optional<Bytes> end;   // absent: a single key. Empty: to the end of the map
  std::optional<Bytes> seen;  // absent: the key was not there
};

inline size_t expectation_bytes(const Expectation& expectation) {
  return expectation.begin.size() + (expectation.end ? expectation.end->size() : 0) +
         (expectation.seen ? expectation.seen->size() : 0);
}

struct Commit {
  WriteSet writes;
  std::vector<Expectation> expectations;
  Durability durability = Durability::everysec;
};

// A place in the order of all commits of one engine handle.
struct CommitTicket {
  uint64_t value = 0;
};

// REQUIRES: entries_max > 0. A begin at or after the end is an empty interval, not an error.
struct ScanRequest {
  ByteView begin = {};
  ByteView end = {};  // exclusive; empty: to the end of the map
  bool reverse = false;
  size_t entries_max = scan_page_entries_max;
  size_t bytes_max = scan_page_bytes_max;  // keys and values; the first entry is always visited
  bool want_evidence = false;
  // Whether what is read is wanted again: else no cache keeps it; or wanted once and much, which is
  // read ahead, too.
  enum class Reading : uint8_t { often, once, much_once } reading = Reading::often;
};

struct ScanPage {
  size_t entries = 0;
  // Set if the page ended before the interval did: the next page's `begin` (reverse: its `end`).
  // May be set though nothing follows: looking would cost, and the next page is then empty.
  std::optional<Bytes> resume;
  // If asked for: covers [begin, resume) (reverse: [resume, end)), or all of it without resume.
  Bytes evidence;
};

struct KeyInterval {
  Bytes begin;
  Bytes end;  // exclusive; empty: to the end of the map
};

enum class Visit : bool { go_on, stop };
// The views die when the visitor returns. A visitor must not call the engine. A scan that fails
// may have visited entries before; they are of one instant all the same.
using ScanVisitor = FunctionRef<Visit(ByteView key, ByteView value)>;

// File data beside the map (codec/fs_keys.h, scope 2). Each block changes atomically, blocks among
// each other do not. A commit made after a block call returned is never durable without it.
struct BlockId {
  KeyspaceId keyspace;
  DataId data;
  uint64_t index;
  auto operator<=>(const BlockId&) const = default;
};

struct BlockWrite {
  BlockId block;
  // Absent: the bytes become the whole block. Set: they replace what is there from that offset on;
  // a block that is missing or too short counts as zeros up to it.
  std::optional<uint32_t> offset;
  ByteView bytes;  // offset + size at most block_bytes_max
};

struct StoredBlock {
  BlockId block;
  size_t bytes;
  bool operator==(const StoredBlock&) const = default;
};

struct BlockPage {
  std::vector<StoredBlock> blocks = {};  // in the order of their ids
  std::optional<BlockId> resume = {};    // where the next page begins; absent: there are no more
};

// What the blocks of a keyspace lie between, or of one data id: for list.
inline BlockId blocks_begin(KeyspaceId keyspace) { return {keyspace, DataId{0}, 0}; }
inline BlockId blocks_end(KeyspaceId keyspace) {
  return {KeyspaceId{keyspace.value + 1}, DataId{0}, 0};
}

class BlockStore {
 public:
  virtual ~BlockStore() = default;
  // A block that is not there is a hole: Value not found.
  // REQUIRES: blocks.size() == values.size()
  virtual Status read(std::span<const BlockId> blocks, std::span<Value> values) = 0;
  // The same, each shown in order right after it was checked: for who copies it, while it is in the
  // processor's caches. After an error some may have been shown.
  using BlockVisitor = FunctionRef<void(size_t index, const Value& value)>;
  virtual Status read_each(std::span<const BlockId> blocks, BlockVisitor visit) {
    std::vector<Value> values(blocks.size());
    TRY(read(blocks, values));
    for (size_t i = 0; i < values.size(); i++) visit(i, values[i]);
    return {};
  }
  virtual Status write(std::span<const BlockWrite> writes) = 0;
  // Removes the blocks [first, end) of one data id.
  virtual Status remove(KeyspaceId keyspace, DataId data, uint64_t first, uint64_t end) = 0;
  // The first so many blocks of [first, end) that are stored, of any keyspaces; each as it is at
  // some time in the call. May cost as much as reading them.
  // REQUIRES: blocks_max > 0
  virtual Result<BlockPage> list(const BlockId& first, const BlockId& end, size_t blocks_max) = 0;
  // Removes blocks of a keyspace that nobody uses any more: so many of them, or all where that
  // costs less. False: some are left. No crash keeps the removal and loses a commit before.
  // REQUIRES: blocks_max > 0
  virtual Result<bool> remove_all(KeyspaceId keyspace, size_t blocks_max) = 0;
};

// New entries that are more than one commit can hold, where an engine has a cheaper way for them
// than commits. REQUIRES: none of their keys, nor any between the first and the last of them, is
// there, or read or written by anyone, before commit() returns; the engine outlives it.
class Load {
 public:
  // What was not committed is gone.
  virtual ~Load() = default;
  // Takes them; commit() says what became of them.
  // REQUIRES: puts alone, each of a key behind that of the one before, over all calls.
  virtual void put(WriteSet puts) = 0;
  // All of them and these writes, or nothing. What is waited for is last_ticket(). The last call.
  // REQUIRES: no expectations
  virtual Status commit(Commit with) = 0;
};

class Engine {
 public:
  // REQUIRES: no Value that was read from it is left; a Value pins the engine's memory.
  virtual ~Engine() = default;

  // Each read call sees one instant of the map: all keys of a multi_get, all entries of a page.
  virtual Status get(ByteView key, Value& value) = 0;
  // REQUIRES: keys.size() == values.size()
  virtual Status multi_get(std::span<const ByteView> keys, std::span<Value> values) = 0;
  virtual Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) = 0;

  // The evidence of a get, for an Expectation on its key.
  virtual std::optional<Bytes> evidence(const Value& value) const = 0;

  // Orders and applies each commit on its own, in this order where they touch the same keys, and
  // answers each in outcomes. What is done is visible to every read that starts after the return,
  // and survives a crash of the process; the ticket says what to wait for if it must survive more.
  // REQUIRES: commits.size() == outcomes.size()
  virtual CommitTicket commit_many(std::span<const Commit* const> commits,
                                   std::span<Status> outcomes) = 0;

  // Null: commits are all there is.
  virtual std::unique_ptr<Load> begin_load() { return nullptr; }

  // Returns when everything up to the ticket is durable. An error means that nobody knows: what
  // was ordered since the last success may be lost in a crash.
  virtual Status wait_durable(CommitTicket ticket) = 0;
  // The latest ticket given: what a reader waits for that must not answer with what a crash may
  // still take back.
  virtual CommitTicket last_ticket() const = 0;

  // True if others write to the same map behind this handle's back. Then only expectations order
  // transactions; otherwise latches do.
  virtual bool shared() const = 0;

  // Code::no_space while the disk is nearly full: then only commits that make room are welcome.
  // Whoever commits asks; when hardly anything is left the engine refuses every commit that writes.
  virtual Status room() const { return {}; }

  virtual BlockStore& blocks() = 0;

  // A hint: what was removed in these intervals may leave the disk now, also blocks, by the keys
  // that FsBlockKey gives them. All of a time together are cheaper. May take long; changes nothing
  // that anyone reads. Returns early, and not with an error for it, after *canceled became true.
  // REQUIRES: no two overlap.
  virtual Status reclaim(const std::vector<KeyInterval>& intervals, std::atomic<bool>* canceled) {
    (void)intervals;
    (void)canceled;
    return {};
  }

  // A consistent copy in a new folder, which opens as a store of its own. Code::unsupported where
  // an engine has no files.
  virtual Status checkpoint(const std::filesystem::path& folder) = 0;
};

// One commit, waited for as its durability asks; a failed wait is a maybe.
Status commit(Engine& engine, const Commit& commit);

// What every engine refuses before it looks at anything else: keys and values over their limits, a
// commit over commit_bytes_max or expectation_bytes_max, an empty key, a reversed interval, an add
// to what is no counter.
Status check_commit(const Commit& commit);
// Of single writes, which may be too many for a commit.
Status check_writes(const WriteSet& writes);
// The same for blocks: a block over block_bytes_max, a keyspace over keyspace_id_max.
Status check_block_write(const BlockWrite& write);
Status check_block_keyspace(KeyspaceId keyspace);

}  // namespace trellis
