// The catalog: metalakes, catalogs, schemas and what stands in them, each tenant's own
// (docs/decisions/0009-catalog.md).
//
//   Catalog catalog;
//   TRY(catalog.create(call, {CatalogType::metalake, {"lake"}}, draft));
//   TRY_ASSIGN(const Entity table,
//              catalog.load(call, {CatalogType::table, {"lake", "a", "b", "c"}}));
//
// Everything here is about entities of every type alike. What is particular to one type is checked
// by whoever makes the draft or changes the entity; what belongs to one beside its record has a
// header of its own and is changed through change.h.
//
// Reads lock nothing. Every write is one transaction. Errors: what Tenant says, and
// catalog_error.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "base/random.h"
#include "catalog/catalog_error.h"
#include "catalog/change.h"
#include "catalog/entity.h"
#include "catalog/record_page.h"
#include "tenant/collector.h"
#include "tenant/tenant.h"

namespace trellis {

// More that happens in the transaction of a create, alter or drop.
struct CatalogExtra {
  std::vector<EntityPath> paths = {};  // whose ways are found and kept, too: they follow the first
  // `ref`: of the entity. May be empty.
  std::function<Status(CatalogPlan& plan, const CatalogRef& ref)> plan = {};
  std::function<Status(CatalogChange& change, const Entity& entity)> run = {};

  std::vector<EntityPath> paths_with(const EntityPath& first) const;
};

// Of names in one place, in their order (bytes).
struct CatalogList {
  std::string prefix = {};
  std::string after = {};  // those behind this name
  size_t limit = 1'000;    // up to catalog_list_entries_max
};
inline constexpr size_t catalog_list_entries_max = 100'000;
struct CatalogListPage {
  size_t entries = 0;
  bool more = false;
};
// The name dies when the visitor returns. It must not call the engine.
using NameVisitor = FunctionRef<Visit(std::string_view name, const NamedRef& named)>;
inline constexpr size_t catalog_load_many_max = 1'000;

struct AlterOptions {
  std::string if_match = {};  // an entity_tag; empty: whatever it is
  // Tables and what else stands in a schema: the schema of the same catalog that it moves to.
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

// What fits all that is not empty. The case of ASCII letters does not matter; '*' is any text.
struct CatalogSearch {
  std::string name = {};  // begins so; with `column`: the table's
  // Columns whose names begin so; with the type table: tables that have such; with `tag`: either.
  std::string column = {};
  std::string tag = {};                  // what has the tag itself
  std::optional<CatalogType> type = {};  // alone: all of it
  std::string page_token = {};           // of the page before
  size_t limit = 100;
  // What else is left out, as if it were not there; may be empty. Asked of a table for its columns.
  std::function<Result<bool>(const EntityPath& path)> sees = {};
};
struct CatalogFound {
  CatalogRef ref;
  EntityPath path;
};
struct CatalogFoundPage {
  std::vector<CatalogFound> found;
  // Empty: no more. A page may be short, even empty, and go on. It says where the search is, which
  // may be at a name that `sees` left out.
  std::string next_page_token;
};

struct ColumnNames {
  EntityPath table;
  std::unordered_map<uint64_t, std::string> names;  // by id

  std::optional<EntityPath> path_of(const CatalogRef& column) const;
};

// One is enough for all tenants of a map. Any thread.
class Catalog final : public GarbageOwner {
 public:
  // Where what is dropped is cut for several threads to collect.
  explicit Catalog(KeyBorders borders = {});

  // --- entities (catalog.cc) ---
  // `draft`: without name, version and audit. unsupported if catalogs of this kind have no such
  // thing; what stands there already is loaded, altered and dropped like all else. The extra's way
  // 0 is the new entity's, which ends at its parent.
  Result<Entity> create(const CatalogCall& call, const EntityPath& path,
                        stored::CatalogEntity draft, const CatalogExtra& extra = {});
  Result<Entity> load(const CatalogCall& call, const EntityPath& path);
  // Up to catalog_load_many_max of one place, in the order asked for; absent: is not there.
  Result<std::vector<std::optional<Entity>>> load_many(const CatalogCall& call,
                                                       const EntityPath& parent, CatalogType type,
                                                       std::span<const std::string> names);
  // What stands in `parent`; metalakes: a path without names.
  Result<CatalogListPage> list(const CatalogCall& call, const EntityPath& parent, CatalogType type,
                               const CatalogList& list, NameVisitor visit);
  // The function changes `stored` but for version and audit; set_name renames. It may run several
  // times, each time on what is stored. Columns that go lose their tags.
  Result<Entity> alter(const CatalogCall& call, const EntityPath& path,
                       FunctionRef<Status(Entity&)> change, const AlterOptions& options = {},
                       const CatalogExtra& extra = {});
  // Enables or disables a metalake or catalog; nothing happens if it is so.
  Status set_in_use(const CatalogCall& call, const EntityPath& path, bool in_use,
                    const std::string& if_match = {});

  // --- dropping (drop.cc) ---
  // False: it is not there (nor, of a catalog, its metalake; nor, of a table, its schema).
  Result<bool> drop(const CatalogCall& call, const EntityPath& path,
                    const DropOptions& options = {}, const CatalogExtra& extra = {});
  // A page, by name and time.
  Result<PageStart> list_dropped(const CatalogCall& call, const EntityPath& parent,
                                 CatalogType type, const PageRequest& page,
                                 FunctionRef<void(const DroppedEntity&)> visit);
  // The one that was dropped last under that name.
  Result<Entity> undelete(const CatalogCall& call, const EntityPath& path);

  // --- collecting (collect.cc) ---
  Result<size_t> collect(Tenant& tenant, std::span<const Garbage> notes) override;
  bool is_shared(const Garbage& note) const override;

  // --- what happened (change_log.cc) ---
  struct NumberedChange {
    uint64_t number = 0;
    stored::CatalogChange change;
  };
  // Those behind `since`, oldest first: up to `limit`, and about 1 MiB. Without it from the oldest
  // that is kept on (log_trim.h). Reason compacted: some of them are gone, or there never were so
  // many.
  Result<std::vector<NumberedChange>> changes(const CatalogCall& call, const std::string& metalake,
                                              std::optional<uint64_t> since, size_t limit);
  // `number` of the last one; 0: none. A metalake that is made anew under the name has another id.
  struct LastChange {
    Uuid metalake{};
    uint64_t number = 0;
  };
  Result<LastChange> last_change(const CatalogCall& call, const std::string& metalake);

  // --- search (search.cc) ---
  Result<CatalogFoundPage> search(const CatalogCall& call, const std::string& metalake,
                                  const CatalogSearch& search);

  // --- ids (ids.cc) ---
  // Of something new. Never given before. Not inside of a transaction.
  Result<CatalogRef> new_ref(Tenant& tenant, CatalogType type);
  // Of a table that lives; absent: it does not.
  Result<std::optional<ColumnNames>> column_names(Tenant& tenant, const EntityId& table);
  // The names of what a ref names, if it lives with all above it.
  Result<std::optional<EntityPath>> path_of(Tenant& tenant, const CatalogRef& ref);
  // The same with the ids that lead there. REQUIRES: no column.
  Result<std::optional<EntityWay>> way_of(Tenant& tenant, const CatalogRef& ref);

 private:
  Result<uint64_t> next_id(Tenant& tenant);

  const KeyBorders borders_;
  struct IdBlock {
    uint64_t next = 0;
    uint64_t end = 0;
  };
  std::mutex ids_mutex_;
  Random random_;
  std::unordered_map<KeyspaceId, IdBlock> ids_;

  // What is left of large things that are being collected, by note.
  struct UnderWay {
    std::vector<KeyPart> parts;  // that nobody works on
    unsigned taken = 0;
  };
  using NoteId = std::pair<KeyspaceId, Bytes>;
  Result<bool> collect_one(Tenant& tenant, const Garbage& note);
  std::optional<KeyPart> take_part(const NoteId& id, FunctionRef<std::vector<KeyPart>()> parts);
  void put_back(const NoteId& id, KeyPart part);
  bool is_under_way(const NoteId& id);
  std::mutex collect_mutex_;
  std::map<NoteId, UnderWay> under_way_;
};

}  // namespace trellis
