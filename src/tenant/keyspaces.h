// The manager of keyspaces: from birth to burial (seed 000, PD's paths under 04).
//
//   '/keyspaces/meta/{id}'   -> KeyspaceMeta (keyspace.proto)     id: 8 digits
//   '/keyspaces/id/{name}'   -> id in decimal
//   '/keyspaces/alloc_id'    -> last id given, in decimal
//   '/keyspaces/request/..'  -> what a create with that request id made
//
// Every change is one transaction, which also appends to the log of administrative actions. Ids are
// never given twice: what is left of a purged keyspace is its meta record, which nothing lists.
//
// The life of a keyspace: ENABLED <-> DISABLED <-> ARCHIVED -> TOMBSTONE. An archived one retires
// to TOMBSTONE by itself after the retention. A tombstone gives its name free and is collected.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/shared_mutex.h"
#include "map/map_handle.h"
#include "tenant/change_log.h"
#include "tenant/keyspace.h"
#include "tenant/tenant.h"

namespace trellis {

struct KeyspacesOptions {
  uint64_t archive_retention_ms = 7ull * 24 * 3600 * 1000;
  size_t tenants_max = 65'536;  // idle ones kept in memory
  ChangeLogLimits changes = {};
};

// Reasons of errors: keyspace_not_found, keyspace_exists, illegal_name, reserved_name, illegal_id,
// ids_exhausted, default_keyspace, illegal_state_change, config_locked, config_too_large,
// illegal_config, config_key_refused, precondition_failed, request_reused, illegal_request_id.
//
// Any thread.
class Keyspaces {
 public:
  // Makes the default keyspace if it is missing.
  static Result<std::unique_ptr<Keyspaces>> open(MapHandle map, KeyspacesOptions options = {});

  struct Creation {
    std::string name;
    std::optional<uint64_t> id;  // by default the next free one
    Config config;
    // If given: the same request again, within a day, answers with the keyspace that it made.
    std::string request_id;
    Quota quota = {};
    // If given: see finish_restore().
    std::optional<Bytes> restore_record = {};
  };
  Result<Keyspace> create(const Creation& creation, const Caller& caller);

  Result<Keyspace> load(std::string_view name);
  Result<Keyspace> load(KeyspaceId id);

  struct Page {
    std::vector<Keyspace> keyspaces;
    std::optional<KeyspaceId> next;  // the first one of the next page
  };
  // In the order of ids, from `from` on, without purged ones; fewer than `limit`, with a next one,
  // where their configs are large.
  Result<Page> list(KeyspaceId from, size_t limit);

  // Absent: remove the key, or expect it to be absent.
  using ConfigPatch = std::map<std::string, std::optional<std::string>, std::less<>>;
  // By id: who may patch it was decided by its id, and a name can go to another one meanwhile.
  Result<Keyspace> patch_config(KeyspaceId id, const ConfigPatch& patch,
                                const ConfigPatch& preconditions, const Caller& caller);
  Result<Keyspace> set_state(std::string_view name, KeyspaceState to, const Caller& caller);
  Result<Keyspace> rename(std::string_view name, std::string_view new_name, const Caller& caller);
  Result<Keyspace> set_quota(std::string_view name, const QuotaPatch& patch, const Caller& caller);
  // For the collector: what is archived and due becomes a tombstone; a purged one is marked so and
  // loses its tokens, holds and safe points.
  Status retire(KeyspaceId id, uint64_t due_ms);
  Status bury(KeyspaceId id, uint64_t due_ms);

  // A keyspace that was created with a restore_record is a tombstone that is not buried: it has its
  // name, and nobody can use it, while what it is to hold is written beside all this. The record is
  // at '/keyspaces/restore/'. Here it gets its state and another record, whose owner removes it.
  Result<Keyspace> finish_restore(KeyspaceId id, KeyspaceState state, ByteView record,
                                  const Caller& caller);
  // Or it is buried after all.
  Status abandon_restore(KeyspaceId id, const Caller& caller);

  // The one Tenant of the keyspace. By id of a tombstone too: it refuses everybody but the
  // collector.
  Result<std::shared_ptr<Tenant>> tenant(std::string_view name);
  Result<std::shared_ptr<Tenant>> tenant(KeyspaceId id);
  // Those in memory, which are those that were used lately.
  std::vector<std::shared_ptr<Tenant>> active_tenants() const;
  size_t active_tenants_count() const;

  ChangeLog& changes() { return changes_; }
  const MapHandle& map() const { return map_; }
  // Called after each commit that put something into the due index which should be done at once.
  // REQUIRES: set before others use it.
  void on_due(std::function<void()> wake) { wake_collector_ = std::move(wake); }

 private:
  // What a change does to the keyspace, inside its transaction, before it is stored and logged.
  // Returns the detail for the log; absent: there is nothing to change.
  using Edit = FunctionRef<Result<std::optional<std::string>>(View& view, Keyspace& keyspace)>;
  struct ChangeOf;

  Keyspaces(MapHandle map, KeyspacesOptions options);
  Status make_default();
  Result<KeyspaceId> next_id();
  Result<std::optional<KeyspaceId>> find_id(std::string_view name);
  struct Attempt;
  Status try_create(const Creation& creation, const Caller& caller, Attempt& attempt);
  Result<Keyspace> change(std::string_view name, const ChangeOf& what, Edit edit);
  Result<Keyspace> change_id(KeyspaceId id, const ChangeOf& what, Edit edit);
  Result<std::optional<std::string>> edit_state(View& view, Keyspace& keyspace, KeyspaceState to);
  void doubt(KeyspaceId id, KeyspaceState next);
  void forget(KeyspaceId id);
  void make_room();

  const MapHandle map_;
  const KeyspacesOptions options_;
  ChangeLog changes_;
  std::function<void()> wake_collector_ = [] {};

  std::mutex ids_mutex_;
  uint32_t ids_next_ = 1;  // reserved for this process: [ids_next_, ids_end_)
  uint32_t ids_end_ = 1;

  mutable SharedMutex tenants_mutex_;
  std::unordered_map<KeyspaceId, std::shared_ptr<Tenant>> tenants_;
  // A hint: whoever uses it asks the Tenant whether that is its name.
  std::unordered_map<std::string, std::shared_ptr<Tenant>> tenants_by_name_;
};

}  // namespace trellis
