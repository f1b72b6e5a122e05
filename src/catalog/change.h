// How the catalog is changed: everything goes through change_catalog().
//
//   const EntityPath paths[] = {table};
//   TRY(change_catalog(
//       call, paths,
//       [&](CatalogPlan& plan) -> Status {
//         TRY(plan.require());
//         plan.write_entity();
//         plan.exclusive(encode(CatalogPartitionKey{...plan.way().ref().number()...}));
//         return {};
//       },
//       [&](CatalogChange& change) -> Status {
//         TRY_ASSIGN(Entity entity, change.entity());
//         ...
//         TRY(change.put(entity));
//         return change.log("alter", entity);
//       }));
//
// The ways to the paths (ids from the metalake down) are read without locks, then planned with:
// what is to be read and written is named. They are locked, walked again inside of the transaction,
// and all starts over if one is another by then. So whatever is done has the liveness of its paths
// in its read set, on every engine. Both functions may run several times.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "catalog/catalog_error.h"
#include "catalog/entity.h"
#include "map/scope.h"
#include "tenant/tenant.h"

namespace trellis {

// Who asks. `user` is what the audit says: the name that the client gave.
struct CatalogCall {
  Tenant& tenant;
  Caller caller;
  std::string user = "anonymous";
};

// What was found on the way to a path, from the metalake down to where it ends.
struct EntityWay {
  EntityPath path;
  std::vector<CatalogRef> refs;
  std::vector<bool> disabled;  // by level; metalakes and catalogs

  bool complete() const { return refs.size() == path.names.size(); }
  // Whether all but the last is there.
  bool parent_found() const { return refs.size() + 1 >= path.names.size(); }
  const CatalogRef& ref() const { return refs.back(); }  // REQUIRES: complete
  // What it stands in. REQUIRES: parent_found
  std::span<const CatalogRef> above() const { return std::span(refs).first(path.names.size() - 1); }
  CatalogRef parent() const { return above().empty() ? CatalogRef() : above().back(); }
  // Whether it leads the same way.
  bool is_same(const EntityWay& other) const {
    return refs == other.refs && disabled == other.disabled;
  }
};

enum class IfDisabled : bool { refuse, itself_is_fine };
// no_such_* of what is missing (a schema: of what stands in it), *_not_in_use of what is disabled
// on the way or, of a metalake or catalog, itself.
Status require(const EntityWay& way, IfDisabled if_disabled = IfDisabled::refuse);
// The same for what it stands in: for what is to be made.
Status require_parent(const EntityWay& way);

// Reads that work on a transaction's view and on the engine alike.
using CatalogGet = FunctionRef<Status(ByteView key, Value& value)>;
// REQUIRES: the path has as many names as its type, or fewer.
Result<EntityWay> find_way(CatalogGet get, KeyspaceId keyspace, const EntityPath& path);
// Without locks; each level of an instant, all of which held at once.
Result<EntityWay> find_way(Tenant& tenant, const EntityPath& path);

// What a change is going to read and write beside the ways.
class CatalogPlan {
 public:
  KeyspaceId keyspace() const { return keyspace_; }
  const EntityWay& way(size_t path = 0) const { return ways_[path]; }
  Status require(size_t path = 0, IfDisabled if_disabled = IfDisabled::refuse) const {
    return trellis::require(way(path), if_disabled);
  }

  CatalogPlan& shared(ByteView key);
  CatalogPlan& exclusive(ByteView key);
  // The record of what a way leads to. REQUIRES: it is complete, and to no column.
  CatalogPlan& read_entity(size_t path = 0);
  CatalogPlan& write_entity(size_t path = 0);
  // Everything that make() writes, or put() of one that is renamed, moved or found by other names.
  // REQUIRES: the metalake comes first in `above`.
  CatalogPlan& write_all_of(std::span<const CatalogRef> above, const CatalogRef& ref);
  // The log of a metalake; that of the first path is always planned for.
  CatalogPlan& log_in(const Uuid& metalake);
  // So much that naming it all would cost more: the keyspace alone.
  void everything() { everything_ = true; }

 private:
  friend class CatalogChanger;
  CatalogPlan(KeyspaceId keyspace, std::vector<EntityWay> ways);
  const Scope& scope();

  const KeyspaceId keyspace_;
  std::vector<EntityWay> ways_;
  Scope scope_;
  bool everything_ = false;
};

// A change inside of its transaction.
class CatalogChange {
 public:
  CountedView& view() { return view_; }
  const CatalogCall& call() const { return call_; }
  KeyspaceId keyspace() const { return plan_.keyspace(); }
  uint64_t now_ms() const { return now_ms_; }
  // As it is now. REQUIRES: index of a path.
  const EntityWay& way(size_t path = 0) const { return plan_.way(path); }
  Status require(size_t path = 0, IfDisabled if_disabled = IfDisabled::refuse) const {
    return plan_.require(path, if_disabled);
  }

  // What a way leads to. REQUIRES: it is complete; the plan reads or writes it.
  Result<Entity> entity(size_t path = 0);
  // The same by where it stands.
  Result<Entity> read(std::span<const CatalogRef> above, const CatalogRef& ref);
  // Writes it, with the next version and who changed it; also under another name or in another
  // place. REQUIRES: entity() or read() gave it, and the plan writes what changes.
  Status put(Entity& entity);
  // A new one. REQUIRES: the plan writes all of it.
  Status make(Entity& entity);
  // Name to id. The name must be free.
  Status put_name(const Entity& entity);

  // Any record. Only those that the plan names.
  struct Record {
    Bytes key;
    Value old;
    bool found() const { return old.found(); }
    ByteView value() const { return old.bytes(); }  // REQUIRES: found
  };
  Result<Record> record(Bytes key);
  void put(const Record& record, ByteView value) {
    if (frees_)
      view_.put_note(record.key, value, record.old);
    else
      view_.put(record.key, value, record.old);
  }
  void remove(const Record& record) {
    if (record.found()) view_.remove(record.key, record.old);
  }

  // What it puts from now on leads to much more that goes: no quota of bytes holds it up.
  void frees() { frees_ = true; }

  // One more change in the log of the entity's metalake. `action` is create, alter, drop, ...; what
  // else the change says, `also` writes into it.
  Status log(std::string_view action, const Entity& entity, const EntityPath& path,
             FunctionRef<void(stored::CatalogChange&)> also);
  Status log(std::string_view action, const Entity& entity, size_t path = 0);

 private:
  friend class CatalogChanger;
  CatalogChange(const CatalogCall& call, CatalogPlan& plan, CountedView& view);
  static Result<Bytes> encode_stored(const Entity& entity);
  Status put_names(const Entity& before, const Entity& entity);
  Status put_search(const Entity& before, const Entity& entity);

  const CatalogCall& call_;
  CatalogPlan& plan_;
  CountedView& view_;
  const uint64_t now_ms_;
  bool frees_ = false;
  struct Read {
    Entity entity;
    Value old;
  };
  std::map<CatalogRef, Read> read_;
};

// What the second function returns if what the first one found out is not so any more: all starts
// over.
Error catalog_plan_outdated();

Status change_catalog(const CatalogCall& call, std::span<const EntityPath> paths,
                      FunctionRef<Status(CatalogPlan&)> plan,
                      FunctionRef<Status(CatalogChange&)> run);

}  // namespace trellis
