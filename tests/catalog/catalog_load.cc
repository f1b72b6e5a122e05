#include "catalog/catalog_load.h"

#include <fmt/format.h>

#include "catalog/catalog_check.h"
#include "catalog/model_versions.h"
#include "catalog/relations.h"
#include "codec/system_keys.h"
#include "support/make_keyspace.h"

namespace trellis {
namespace {

constexpr uint64_t steps_of_a_table = 8;
constexpr uint64_t tables_kept = 8;

enum Step : uint64_t {
  to_make,
  to_alter,
  to_rename,
  to_move,
  to_drop_old,
  to_take_back,
  to_link,
  to_unlink_old,
};

std::string new_name(uint64_t table) { return fmt::format("new{}", table); }
std::string name_of_table(uint64_t table) { return fmt::format("t{}", table); }
std::string schema_name(size_t schema) { return fmt::format("s{}", schema); }
// Of those that were dropped a few come back, for good.
bool comes_back(uint64_t table) { return table % 20 == 3; }

EntityPath model_of(size_t lane) {
  return {CatalogType::model, {"lake", fmt::format("lane{}", lane), schema_name(0), "model"}};
}

Error corrupt(std::string what) { return {Code::corrupt, std::move(what)}; }

}  // namespace

EntityPath CatalogLoad::path(size_t lane, size_t schema, std::string name) const {
  return {CatalogType::table,
          {"lake", fmt::format("lane{}", lane), schema_name(schema), std::move(name)}};
}

Result<std::unique_ptr<CatalogLoad>> CatalogLoad::open(Engine& engine, Clock& clock,
                                                       Durability durability) {
  Value stored;
  TRY(engine.get(encode(KeyspaceMetaKey{id}), stored));
  if (!stored.found()) TRY(make_keyspace(engine, id, "lakes"));
  std::unique_ptr<CatalogLoad> load(new CatalogLoad(engine, clock, durability));
  TRY(load->make({CatalogType::metalake, {"lake"}}));
  TRY(load->make({CatalogType::tag, {"lake", "pii"}}));
  TRY(load->make({CatalogType::user, {"lake", "ann"}}));
  TRY(load->make({CatalogType::role, {"lake", "reader"}}));
  for (size_t lane = 0; lane < lanes; lane++) {
    const std::string catalog = fmt::format("lane{}", lane);
    TRY(load->make({CatalogType::catalog, {"lake", catalog}}));
    for (size_t schema = 0; schema < 2; schema++)
      TRY(load->make({CatalogType::schema, {"lake", catalog, schema_name(schema)}}));
    TRY(load->make(model_of(lane)));
  }
  return load;
}

Status CatalogLoad::make(const EntityPath& path) {
  const auto made = catalog_.create(call(), path, {});
  return made || made.error().code == Code::exists ? Status() : Status(made.error());
}

// With relations in both directions and a grant, in the same transaction.
Status CatalogLoad::make_related(const EntityPath& path) {
  CatalogExtra extra{.paths = {{CatalogType::tag, {"lake", "pii"}},
                               {CatalogType::user, {"lake", "ann"}},
                               {CatalogType::role, {"lake", "reader"}}}};
  extra.plan = [](CatalogPlan& plan, const CatalogRef& ref) -> Status {
    for (const size_t other : {1, 2, 3}) TRY(plan.require(other));
    const Uuid& lake = plan.way().refs[0].id;
    plan_relation(plan, lake, {CatalogRelation::tag, ref, plan.way(1).ref()});
    plan_relation(plan, lake, {CatalogRelation::owner, ref, plan.way(2).ref()});
    plan_grant(plan, plan.way(3).ref(), plan.way().above(), ref);
    return {};
  };
  extra.run = [](CatalogChange& change, const Entity& entity) -> Status {
    const Uuid& lake = entity.metalake();
    TRY(put_relation(change, lake, {CatalogRelation::tag, entity.ref, change.way(1).ref()}));
    TRY(put_relation(change, lake, {CatalogRelation::owner, entity.ref, change.way(2).ref()}));
    stored::CatalogPrivilege privilege;
    privilege.set_name("select_table");
    return put_grant(change, change.way(3).ref(), entity.above, entity.ref, {&privilege, 1});
  };
  stored::CatalogEntity draft;
  stored::CatalogColumn* const column = draft.mutable_table()->add_columns();
  column->set_id(1);
  column->set_name("id");
  TRY(catalog_.create(call(), path, draft, extra));
  return {};
}

Status CatalogLoad::link(size_t lane, uint64_t table) {
  stored::CatalogModelVersion version;
  (*version.mutable_uris())["unknown"] = "s3://m";
  for (const char* kind : {"a", "b"}) version.add_aliases(fmt::format("{}{}", kind, table));
  const auto linked = link_model_version(call(), model_of(lane), version);
  return linked || linked.error().code == Code::exists ? Status() : Status(linked.error());
}

Status CatalogLoad::step(size_t lane, uint64_t number) {
  const uint64_t table = number / steps_of_a_table;
  const EntityPath first = path(lane, 0, new_name(table));
  switch (static_cast<Step>(number % steps_of_a_table)) {
    case to_make: return make_related(first);
    case to_alter:
      TRY(catalog_.alter(call(), first, [](Entity& entity) {
        entity.stored.set_comment("altered");
        return Status();
      }));
      return {};
    case to_rename:
      TRY(catalog_.alter(call(), first, [&](Entity& entity) {
        entity.stored.set_name(name_of_table(table));
        return Status();
      }));
      return {};
    case to_move:
      TRY(catalog_.alter(call(), path(lane, 0, name_of_table(table)),
                         [](Entity&) { return Status(); }, {.new_schema = schema_name(1)}));
      return {};
    case to_drop_old: {
      if (table < tables_kept) return {};
      TRY_ASSIGN(const bool dropped,
                 catalog_.drop(call(), path(lane, 1, name_of_table(table - tables_kept))));
      return dropped ? Status() : Status(corrupt("what is to be dropped is not there"));
    }
    case to_take_back: {
      if (table < tables_kept || !comes_back(table - tables_kept)) return {};
      // The collector may have been faster: then it is made anew, as if it had come back.
      const EntityPath old = path(lane, 1, name_of_table(table - tables_kept));
      const auto back = catalog_.undelete(call(), old);
      if (back || back.error().code != Code::not_found) return back ? Status() : back.error();
      return make_related(old);
    }
    case to_link: return link(lane, table);
    case to_unlink_old: {
      if (table < tables_kept) return {};
      TRY(delete_model_version(call(), model_of(lane),
                               {{}, fmt::format("b{}", table - tables_kept)}));
      return {};
    }
  }
  return {};
}

CatalogLoad::Tables CatalogLoad::expected(uint64_t steps) {
  Tables tables;
  const uint64_t last = steps / steps_of_a_table;
  for (uint64_t table = 0; table <= last; table++) {
    const uint64_t done = table == last ? steps % steps_of_a_table : steps_of_a_table;
    if (done <= to_make) continue;
    const std::string name = done > to_rename ? name_of_table(table) : new_name(table);
    tables[schema_name(done > to_move ? 1 : 0) + "." + name] = std::min<uint64_t>(done, 4);
    if (done > to_drop_old && table >= tables_kept)
      tables.erase(schema_name(1) + "." + name_of_table(table - tables_kept));
    if (done > to_take_back && table >= tables_kept && comes_back(table - tables_kept))
      tables[schema_name(1) + "." + name_of_table(table - tables_kept)] = 0;  // 1 or 5
  }
  return tables;
}

Status CatalogLoad::run_lane(size_t lane, uint64_t from,
                             const std::function<void(uint64_t)>& done) {
  for (uint64_t number = from;; number++) {
    TRY(step(lane, number));
    done(number + 1);
  }
}

Status CatalogLoad::run_collector(const std::atomic<bool>& enough) {
  Bytes prefix;
  append_keyspace_prefix(prefix, KeyMode::txn, id);
  prefix += 'g';
  while (!enough) {
    std::vector<Garbage> notes;
    TRY(engine_.scan({.begin = prefix, .end = prefix_end(prefix), .entries_max = 100},
                     [&](ByteView key, ByteView) {
                       if (const auto note = decode<GarbageKey>(key))
                         notes.push_back({note->due_ms, Bytes(note->target), note->model, 0});
                       return Visit::go_on;
                     }));
    for (const Garbage& note : notes) TRY(catalog_.collect(tenant_, {&note, 1}));
    map_.clock.pause_us(2'000);
  }
  return {};
}

Result<CatalogLoad::Tables> CatalogLoad::stored(size_t lane) {
  Tables tables;
  for (size_t schema = 0; schema < 2; schema++) {
    const EntityPath parent = parent_of(path(lane, schema, "t"));
    std::vector<std::string> names;
    TRY(catalog_.list(call(), parent, CatalogType::table, {},
                      [&](std::string_view name, const NamedRef&) {
                        names.emplace_back(name);
                        return Visit::go_on;
                      }));
    for (const std::string& name : names) {
      TRY_ASSIGN(const Entity entity, catalog_.load(call(), path(lane, schema, name)));
      tables[schema_name(schema) + "." + name] = entity.stored.version();
    }
  }
  return tables;
}

Result<uint64_t> CatalogLoad::position(size_t lane, uint64_t least, uint64_t most) {
  TRY_ASSIGN(const Tables now, stored(lane));
  for (uint64_t steps = most + 1; steps-- > least;) {
    const Tables wanted = expected(steps);
    const bool same = std::equal(
        now.begin(), now.end(), wanted.begin(), wanted.end(), [](const auto& a, const auto& b) {
          return a.first == b.first && (b.second == 0 || a.second == b.second);
        });
    if (same) return steps;
  }
  std::string found;
  for (const auto& [name, version] : now) found += fmt::format(" {}:{}", name, version);
  return corrupt(
      fmt::format("lane {} is not between steps {} and {}:{}", lane, least, most, found));
}

Status CatalogLoad::check() {
  for (const std::string& problem : check_catalog(engine_, id)) return corrupt(problem);
  return {};
}

}  // namespace trellis
