// The log of administrative actions: who did what to which keyspace, in one order.
//
// Each action that changes a keyspace, its tokens, quota or holds appends one entry in its own
// transaction, so that the log says neither more nor less than what happened. The revision of the
// last entry is the revision of all keyspaces; a watcher resumes from any revision still kept.
// The oldest entries go when there are too many or when they are too large: an entry has the whole
// keyspace in it, with a config of up to keyspace_config_bytes_max.
//
//   04 '/keyspaces/change'           -> | 02 | revision u64be | first kept u64be | bytes kept u64be
//   |
//                        or, before | 01 | revision u64be |
//   04 '/keyspaces/change/' revision -> | 01 | Change of keyspace.proto |
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "map/map_handle.h"
#include "tenant/keyspace.h"

namespace trellis {

struct Change {
  uint64_t revision = 0;  // append sets it, and the time
  uint64_t time_ms = 0;
  std::string actor;
  std::string action;  // "create", "state", "config", "rename", "quota", "token.create", ...
  KeyspaceId keyspace = {};
  std::string name;    // of the keyspace; empty: it was done to no one keyspace
  std::string detail;  // for people: "ENABLED -> DISABLED"
  // The keyspace as it is since, if the action changed it; purged_at_s set: it is gone.
  std::optional<Keyspace> after;
};

struct ChangeLogLimits {
  uint64_t entries_max = 1'000'000;
  uint64_t bytes_max = 256 * 1024 * 1024;  // keys and values; the last entry is always kept
};

// Any thread.
class ChangeLog {
 public:
  explicit ChangeLog(MapHandle map, ChangeLogLimits limits = {}) : map_(map), limits_(limits) {}

  // What a transaction that appends must hold.
  static void lock(Scope& scope);
  // Inside a transaction, once: returns the revision given. Sets `change.after->revision` too.
  Result<uint64_t> append(View& view, Change& change) const;
  // After the transaction was done: wakes those that wait.
  void announce() const;
  // The same for an action that has no transaction of its own.
  Status record(Change change) const;

  Result<uint64_t> revision() const;
  // The entries after `since`, at most `limit`, oldest first. Code::not_found, reason compacted, if
  // entries after `since` are gone.
  Result<std::vector<Change>> read(uint64_t since, size_t limit) const;

  // Calls `wake`, from any thread, soon after each announce, until the subscription dies. `wake`
  // must not block.
  using Subscription = std::shared_ptr<std::function<void()>>;
  Subscription subscribe(std::function<void()> wake) const;

 private:
  // What the head of the log says.
  struct Head {
    uint64_t revision = 0;
    uint64_t first = 1;  // entries from here on are counted in `bytes`
    uint64_t bytes = 0;
  };
  static Result<Head> decode_head(const Value& value);
  static Bytes encode_head(const Head& head);
  Status trim(View& view, Head& head) const;
  Result<Head> load_head() const;

  MapHandle map_;
  ChangeLogLimits limits_;
  mutable std::mutex mutex_;
  mutable std::vector<std::weak_ptr<std::function<void()>>> subscribers_;
};

}  // namespace trellis
