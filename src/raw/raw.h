// Raw key-value data: the model without structure, in the 'r' keys of a keyspace.
//
//   Raw raw;
//   TRY(raw.put(tenant, caller, "user:7", "{...}", {.ttl_ms = 60'000}));
//   TRY_ASSIGN(std::optional<RawEntry> entry, raw.get(tenant, caller, "user:7"));
//
// get and put (without options: the key is there afterwards, with that value, for ever) are the two
// functions of the KeyValueAccessor of seed 003: they are enough to be its back end.
//
// What is put with a ttl is there for that long: from the millisecond at which it expires on, no
// call sees it, although it is stored, and counted by the keyspace's figures, until it is
// collected. Each entry with a ttl has exactly one note for the collector, which the write that
// makes the entry leaves, and the one that replaces or removes it takes back.
//
// Reads lock nothing and see one instant each. Every write is one transaction.
//
// Errors: what Tenant says (roles, states, quotas, rates), and these reasons:
//   empty_key            Code::invalid    a key has at least one byte
//   key_too_large        Code::too_large  over raw_key_bytes_max
//   value_too_large      Code::too_large  over raw_value_bytes_max
//   ttl_too_large        Code::invalid    it would expire after raw_expires_at_ms_max
//   batch_too_large      Code::too_large  over raw_batch_operations_max or raw_batch_bytes_max
//   too_many_keys        Code::too_large  over raw_multi_get_keys_max
//   illegal_limit        Code::invalid    a page of no entries or bytes, or of too many
//   condition_failed     Code::refused    a condition of the caller does not hold
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/function_ref.h"
#include "base/limits.h"
#include "codec/raw_value.h"
#include "engine/engine.h"
#include "tenant/collector.h"
#include "tenant/gc.h"
#include "tenant/tenant.h"

namespace trellis {

// A note for the collector is | 'x' keyspace 'g' due 'r' | key |: with it the key must be short
// enough, too, or there would be keys that can have no ttl.
constexpr size_t raw_key_bytes_max = key_bytes_max - 14;
constexpr size_t raw_value_bytes_max = value_bytes_max - raw_value_head_bytes_max;
// GC safe points, which notes are compared with, reach no further.
constexpr uint64_t raw_expires_at_ms_max = ms_of_timestamp(UINT64_MAX);

constexpr size_t raw_batch_operations_max = 10'000;
// All values, and each key three times: beside the entry a write may make a note and remove one.
constexpr size_t raw_batch_bytes_max = commit_bytes_max / 2;
constexpr size_t raw_multi_get_keys_max = 1'000;

// Of one scan call. It looks at no more than 1,000 stored entries more than its limit, expired or
// not.
constexpr size_t raw_scan_entries_max = 10'000;
constexpr size_t raw_scan_bytes_max = scan_page_bytes_max;

// What was found, where the engine has it. Moving it is cheap.
class RawEntry {
 public:
  // Valid until the entry is moved from or destroyed, which must be before the engine is.
  ByteView value() const { return stored_.bytes().substr(head_bytes_); }
  uint64_t expires_at_ms() const { return expires_at_ms_; }  // 0: never

 private:
  friend class Raw;
  // Absent: there is nothing, or it has expired.
  static Result<std::optional<RawEntry>> make(ByteView key, Value found, uint64_t now_ms);
  RawEntry(Value stored, size_t head_bytes, uint64_t expires_at_ms)
      : stored_(std::move(stored)), head_bytes_(head_bytes), expires_at_ms_(expires_at_ms) {}

  Value stored_;
  size_t head_bytes_;
  uint64_t expires_at_ms_;
};

// Names a value, not its ttl: its XXH3 of 128 bits, in 32 hex digits. For ETags.
std::string raw_tag(ByteView value);

// What must be so when a write happens.
struct RawCondition {
  enum class Kind : uint8_t {
    none,
    must_be_absent,
    must_exist,
    must_equal,  // the key is there with a value of this tag
  };
  Kind kind = Kind::none;
  std::string tag = {};

  static RawCondition must_be_absent() { return {Kind::must_be_absent}; }
  static RawCondition must_exist() { return {Kind::must_exist}; }
  static RawCondition must_equal(std::string tag) { return {Kind::must_equal, std::move(tag)}; }
};

struct RawPut {
  uint64_t ttl_ms = 0;  // 0: none
  RawCondition condition = {};
};

// The views must live as long as the call.
struct RawOperation {
  enum class Kind : uint8_t { put, remove };
  Kind kind = Kind::put;
  ByteView key;
  ByteView value = {};  // of a put
  uint64_t ttl_ms = 0;  // of a put; 0: none
  RawCondition condition = {};
};

struct RawSwap {
  bool done = false;
  // If it was not done: what is there instead of what was expected; absent: nothing.
  std::optional<RawEntry> current;
};

// Which keys, all by what the user calls them: those that are in [begin, end) and start with
// prefix. Empty: no bound.
struct RawScan {
  ByteView begin = {};
  ByteView end = {};
  ByteView prefix = {};
  bool reverse = false;  // from the end down
  size_t limit = 1'000;  // entries; up to raw_scan_entries_max
  // Keys and values that are visited; up to raw_scan_bytes_max. The first one always is.
  size_t bytes_max = 1024 * 1024;
  bool keys_only = false;  // values are visited, and counted, as empty
};

struct RawPage {
  size_t entries = 0;
  // Set if there may be more: the next page's begin (reverse: its end), never empty. A page may be
  // short of its limit, even empty, and go on: a call's work is bounded, whatever lies expired
  // between the entries.
  std::optional<Bytes> resume;
};

// The views die when the visitor returns. It must not call the engine. A scan that fails may have
// visited entries before.
using RawVisitor = FunctionRef<Visit(ByteView key, ByteView value, uint64_t expires_at_ms)>;

// One is enough for all tenants of a map. Any thread.
class Raw final : public GarbageOwner {
 public:
  Result<std::optional<RawEntry>> get(Tenant& tenant, const Caller& caller, ByteView key);
  // One entry or nothing per key, in their order, all of one instant. They are pinned together.
  Result<std::vector<std::optional<RawEntry>>> multi_get(Tenant& tenant, const Caller& caller,
                                                         std::span<const ByteView> keys);

  Status put(Tenant& tenant, const Caller& caller, ByteView key, ByteView value,
             const RawPut& options = {});
  // Whether it was there.
  Result<bool> remove(Tenant& tenant, const Caller& caller, ByteView key,
                      const RawCondition& condition = {});
  // If the key has the value `expected` (absent: is not there) it gets `desired` (absent: is
  // removed), with that ttl.
  Result<RawSwap> compare_and_set(Tenant& tenant, const Caller& caller, ByteView key,
                                  std::optional<ByteView> expected, std::optional<ByteView> desired,
                                  uint64_t ttl_ms = 0);
  // All of them or none, as if one after the other: an operation sees those before it. The error of
  // one that is refused says which it was, counted from 0.
  Status batch(Tenant& tenant, const Caller& caller, std::span<const RawOperation> operations);

  // One page, of one instant.
  Result<RawPage> scan(Tenant& tenant, const Caller& caller, const RawScan& scan, RawVisitor visit);

  // Removes entries that expired when their notes were due, with the notes, in one transaction; of
  // an entry that is gone or has changed only the note. One whose note is not due, because the
  // clock was set back, is there again: it stays, and so does the note.
  Result<size_t> collect(Tenant& tenant, std::span<const Garbage> notes) override;
};

}  // namespace trellis
