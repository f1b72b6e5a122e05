// The catalog: metalakes, catalogs, schemas and what stands in them, each tenant's own
// (docs/decisions/0009-catalog.md).
//
//   Catalog catalog;
//   TRY(catalog.create(call, {CatalogType::metalake, {"lake"}}, draft));
//   TRY_ASSIGN(const Entity table, catalog.load(call, {CatalogType::table, {"lake", "a", "b",
//   "c"}}));
//
// Everything here is about entities of every type alike. What is particular to one type is checked
// by whoever makes the draft or changes the entity (table_definition.h, ...); what belongs to one
// beside its record has a header of its own: relations.h, partitions.h, model_versions.h,
// statistics.h, access.h.
//
// Reads lock nothing. Every write is one transaction. Errors: what Tenant says, and
// catalog_error.h.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "catalog/catalog_error.h"
#include "catalog/entity.h"
#include "tenant/collector.h"
#include "tenant/tenant.h"

namespace trellis {

// Who asks. `user` is what the audit says: the name that the client gave.
struct CatalogCall {
  Tenant& tenant;
  Caller caller;
  std::string user = "anonymous";
};

// Of names in one place, in their order (bytes).
struct CatalogList {
  std::string prefix = {};
  std::string after = {};  // those behind this name
  size_t limit = 1'000;
};
inline constexpr size_t catalog_list_entries_max = 10'000;
struct CatalogListPage {
  size_t entries = 0;
  bool more = false;
};
// The name dies when the visitor returns. It must not call the engine.
using NameVisitor = FunctionRef<Visit(std::string_view name, const CatalogRef& ref)>;

struct AlterOptions {
  std::string if_match = {};  // an entity_tag; empty: whatever it is
  // Of a rename or a move: the new place. Empty: stays. The schema is a name in the same catalog.
  // (Set by the change function as well: see Altered.)
};

// An entity in a change. The function may change `entity.stored` but for version and audit; its
// name is changed by `stored.set_name`, its schema (tables, filesets, ...) by `new_schema`.
struct Altered {
  Entity& entity;
  std::optional<std::string> new_schema = {};
};

struct DropOptions {
  // Metalakes and catalogs: also if in use and not empty. Schemas: also if not empty.
  bool force = false;
  std::string if_match = {};
};

struct DroppedEntity {
  CatalogRef ref;
  std::string name;
  uint64_t dropped_ms = 0;
  std::string by;
};

// One is enough for all tenants of a map. Any thread.
class Catalog final : public GarbageOwner {
 public:
  // --- entities (catalog.cc) ---
  // `draft`: without version and audit; its name is the path's. `make_id` gives further ids (of
  // columns). The draft function runs within the transaction and may run several times.
  Result<Entity> create(const CatalogCall& call, const EntityPath& path,
                        stored::CatalogEntity draft);
  // Also of what is disabled, if `even_if_disabled`: a metalake or catalog itself always.
  Result<Entity> load(const CatalogCall& call, const EntityPath& path);
  // Many of one place, in the order asked for, all of one instant each; absent: is not there.
  Result<std::vector<std::optional<Entity>>> load_many(const CatalogCall& call,
                                                       const EntityPath& parent, CatalogType type,
                                                       std::span<const std::string> names);
  // What stands in `parent`; metalakes: a path without names.
  Result<CatalogListPage> list(const CatalogCall& call, const EntityPath& parent, CatalogType type,
                               const CatalogList& list, NameVisitor visit);
  Result<Entity> alter(const CatalogCall& call, const EntityPath& path,
                       FunctionRef<Status(Altered&)> change, const AlterOptions& options = {});
  // Enables or disables a metalake or catalog; nothing happens if it is so.
  Status set_in_use(const CatalogCall& call, const EntityPath& path, bool in_use);

  // --- dropping (drop.cc) ---
  // False: it is not there (nor, of a catalog, its metalake).
  Result<bool> drop(const CatalogCall& call, const EntityPath& path,
                    const DropOptions& options = {});
  Result<std::vector<DroppedEntity>> list_dropped(const CatalogCall& call, const EntityPath& parent,
                                                  CatalogType type);
  // The one that was dropped last under that name.
  Result<Entity> undelete(const CatalogCall& call, const EntityPath& path);
  Result<size_t> collect(Tenant& tenant, std::span<const Garbage> notes) override;

  // --- what happened (change_log.cc) ---
  struct NumberedChange {
    uint64_t number = 0;
    stored::CatalogChange change;
  };
  // Those behind `since`, oldest first.
  Result<std::vector<NumberedChange>> changes(const CatalogCall& call, const std::string& metalake,
                                              uint64_t since, size_t limit);

  // --- search (search.cc) ---
  struct Search {
    std::string name = {};    // of entities: begins so; '*' in it is any text. Case does not matter
    std::string column = {};  // tables that have such a column
    std::string tag = {};     // what has the tag itself
    std::optional<CatalogType> type = {};
    std::string page_token = {};
    size_t limit = 100;
  };
  struct Found {
    CatalogRef ref;
    EntityPath path;
    std::string column;  // of the column that was found
  };
  struct FoundPage {
    std::vector<Found> found;
    std::string next_page_token;  // empty: no more
  };
  Result<FoundPage> search(const CatalogCall& call, const std::string& metalake,
                           const Search& search);

  // --- ids, for what belongs to entities (ids.cc) ---
  // Never given before.
  Result<uint64_t> next_id(Tenant& tenant);
  // The names of what a ref names, if it lives with all above it.
  Result<std::optional<EntityPath>> path_of(Tenant& tenant, const CatalogRef& ref);

 private:
  struct IdBlock {
    uint64_t next = 0;
    uint64_t end = 0;
  };
  std::mutex ids_mutex_;
  std::unordered_map<KeyspaceId, IdBlock> ids_;
};

}  // namespace trellis
