#include "catalog/change.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.h"
#include "catalog/counter.h"
#include "catalog/log_trim.h"
#include "codec/stored_message.h"

namespace trellis {
namespace {

// So many plans may be outdated when they run before one has the keyspace to itself.
constexpr unsigned plans_max = 6;
constexpr size_t planned_locks_max = 48;

bool can_be_name(std::string_view name) {
  return !name.empty() && name.size() <= catalog_name_bytes_max;
}

// The last level of a column's way, which is in its table's record.
Status find_column_ref(CatalogGet get, KeyspaceId keyspace, EntityWay& way) {
  const std::span<const CatalogRef> refs = way.refs;
  Value value;
  TRY(get(entity_key(keyspace, refs.first(refs.size() - 1), refs.back()), value));
  if (!value.found()) return {};  // dropped meanwhile
  TRY_ASSIGN(const Entity table,
             decode_entity(refs.first(refs.size() - 1), refs.back(), value.bytes()));
  const stored::CatalogColumn* const column = find_column(table.stored, way.path.name());
  if (column == nullptr) return {};
  way.refs.push_back(CatalogRef::column(table.ref.number(), EntityId{column->id()}));
  way.disabled.push_back(false);
  return {};
}

Status check_levels(const EntityWay& way, size_t levels, size_t in_use_levels) {
  const EntityPath& path = way.path;
  for (size_t i = 0; i < levels; i++) {
    const CatalogType type = catalog_type_at(path.type, i + 1);
    if (i >= way.refs.size()) return no_such(type, path.names[i]);
    if (i < in_use_levels && way.disabled[i]) return not_in_use(type, path.names[i]);
  }
  return {};
}

}  // namespace

Error catalog_plan_outdated() {
  return {Code::conflict, "the plan of a change of the catalog is outdated",
          "catalog_plan_outdated"};
}

// --- ways ---

Result<EntityWay> find_way(CatalogGet get, KeyspaceId keyspace, const EntityPath& path) {
  ASSERT(path.names.size() <= catalog_depth(path.type));
  EntityWay way{path, {}, {}};
  CatalogRef parent;
  Value value;
  for (size_t depth = 1; depth <= path.names.size(); depth++) {
    const CatalogType type = catalog_type_at(path.type, depth);
    const std::string& name = path.names[depth - 1];
    if (type == CatalogType::column) {
      TRY(find_column_ref(get, keyspace, way));
      return way;
    }
    if (!can_be_name(name)) return way;
    TRY(get(name_key(keyspace, parent, type, name), value));
    if (!value.found()) return way;
    TRY_ASSIGN(const NamedRef named, decode_named(type, value.bytes()));
    way.refs.push_back(named.ref);
    way.disabled.push_back(named.disabled);
    parent = named.ref;
  }
  return way;
}

Result<EntityWay> find_way(Tenant& tenant, const EntityPath& path) {
  Engine& engine = tenant.map().engine;
  const auto get = [&](ByteView key, Value& value) { return engine.get(key, value); };
  return find_way(get, tenant.id(), path);
}

Status require(const EntityWay& way, IfDisabled if_disabled) {
  const size_t levels = way.path.names.size();
  const size_t schema_level = catalog_depth(CatalogType::schema);
  // Of what stands in a schema that is not there Gravitino says that itself is missing, and its
  // clients ask so whether there is such a table.
  if (levels > schema_level && way.refs.size() + 1 == schema_level) {
    TRY(check_levels(way, way.refs.size(), way.refs.size()));
    return no_such(catalog_type_at(way.path.type, schema_level + 1), way.path.names[schema_level]);
  }
  return check_levels(way, levels, if_disabled == IfDisabled::refuse ? levels : levels - 1);
}

Status require_parent(const EntityWay& way) {
  const size_t levels = way.path.names.size() - 1;
  return check_levels(way, levels, levels);
}

// --- plan ---

CatalogPlan::CatalogPlan(KeyspaceId keyspace, std::vector<EntityWay> ways)
    : keyspace_(keyspace), ways_(std::move(ways)), scope_(Scope::in(keyspace)) {
  for (const EntityWay& way : ways_) {
    CatalogRef parent;
    const size_t read = std::min(way.refs.size() + 1, way.path.names.size());
    for (size_t i = 0; i < read; i++) {
      const CatalogType type = catalog_type_at(way.path.type, i + 1);
      if (type == CatalogType::column)
        shared(entity_key(keyspace_, way.above().first(i - 1), way.refs[i - 1]));
      else
        shared(name_key(keyspace_, parent, type, {}));
      if (i < way.refs.size()) parent = way.refs[i];
    }
  }
  if (!ways_.empty() && !ways_[0].refs.empty()) log_in(ways_[0].refs[0].id);
}

const Scope& CatalogPlan::scope() {
  if (everything_ || scope_.locks().size() > planned_locks_max) scope_ = Scope::all_of(keyspace_);
  return scope_;
}

CatalogPlan& CatalogPlan::shared(ByteView key) {
  scope_.shared(key);
  return *this;
}

CatalogPlan& CatalogPlan::exclusive(ByteView key) {
  scope_.exclusive(key);
  return *this;
}

CatalogPlan& CatalogPlan::read_entity(size_t path) {
  return shared(entity_key(keyspace_, way(path).above(), way(path).ref()));
}

CatalogPlan& CatalogPlan::write_entity(size_t path) {
  return exclusive(entity_key(keyspace_, way(path).above(), way(path).ref()));
}

CatalogPlan& CatalogPlan::write_all_of(std::span<const CatalogRef> above, const CatalogRef& ref) {
  const CatalogRef parent = above.empty() ? CatalogRef() : above.back();
  exclusive(entity_key(keyspace_, above, ref));
  exclusive(name_key(keyspace_, parent, ref.type, {}));
  exclusive(place_key(keyspace_, ref));
  if (!is_searchable(ref.type)) return *this;
  const Uuid& metalake = above.front().id;
  return exclusive(encode(CatalogSearchKey{keyspace_, metalake, CatalogSearchKind::name, {}, ref}));
}

CatalogPlan& CatalogPlan::log_in(const Uuid& metalake) {
  return exclusive(encode(CatalogLogKey{keyspace_, metalake}));
}

// --- change ---

CatalogChange::CatalogChange(const CatalogCall& call, CatalogPlan& plan, CountedView& view)
    : call_(call), plan_(plan), view_(view), now_ms_(call.tenant.map().clock.unix_ms()) {}

Result<CatalogChange::Record> CatalogChange::record(Bytes key) {
  Record record{std::move(key), {}};
  TRY(view_.get(record.key, record.old));
  return record;
}

Result<Entity> CatalogChange::entity(size_t path) {
  const EntityWay& found = way(path);
  ASSERT(found.complete());
  return read(found.above(), found.ref());
}

Result<Entity> CatalogChange::read(std::span<const CatalogRef> above, const CatalogRef& ref) {
  TRY_ASSIGN(Record stored, record(entity_key(keyspace(), above, ref)));
  if (!stored.found())
    return Error{Code::corrupt,
                 "the record of " + CatalogRefBytes::text(ref) + ", which has a name, is lost"};
  TRY_ASSIGN(Entity entity, decode_entity(above, ref, stored.value()));
  read_.insert_or_assign(ref, Read{entity, std::move(stored.old)});
  return entity;
}

Status CatalogChange::put(Entity& entity) {
  const auto found = read_.find(entity.ref);
  ASSERT(found != read_.end());
  const Read before = std::move(found->second);
  read_.erase(found);
  stored::CatalogEntity& stored = entity.stored;
  stored.set_version(before.entity.stored.version() + 1);
  *stored.mutable_audit() = before.entity.stored.audit();
  stored.mutable_audit()->set_modifier(call_.user);
  stored.mutable_audit()->set_modified_ms(now_ms_);
  if (entity.name() != before.entity.name() || entity.above != before.entity.above ||
      stored.disabled() != before.entity.stored.disabled())
    TRY(put_names(before.entity, entity));
  TRY(put_search(before.entity, entity));
  TRY_ASSIGN(const Bytes value, encode_stored(entity));
  const Bytes key = entity_key(keyspace(), entity);
  if (entity.above == before.entity.above) {
    view_.put(key, value, before.old);
    return {};
  }
  view_.remove(entity_key(keyspace(), before.entity), before.old);
  view_.put(key, value, Value());
  return {};
}

Status CatalogChange::make(Entity& entity) {
  stored::CatalogEntity& stored = entity.stored;
  stored.set_version(1);
  stored.mutable_audit()->Clear();
  stored.mutable_audit()->set_creator(call_.user);
  stored.mutable_audit()->set_created_ms(now_ms_);
  TRY(put_name(entity));
  for (const Bytes& key : search_keys(keyspace(), entity)) view_.put(key, search_value, Value());
  TRY_ASSIGN(const Bytes value, encode_stored(entity));
  view_.put(entity_key(keyspace(), entity), value, Value());
  view_.put(place_key(keyspace(), entity.ref), encode_place({entity.name(), entity.above}),
            Value());
  view_.count_keys(1);
  return {};
}

Result<Bytes> CatalogChange::encode_stored(const Entity& entity) {
  Bytes value = encode_message(entity.stored);
  TRY(check_loop_bytes(value.size()));
  const size_t bytes_max =
      is_member_of_metalake(entity.ref.type) ? catalog_member_bytes_max : catalog_entity_bytes_max;
  if (value.size() > bytes_max)
    return illegal_argument(fmt::format("{} {} would take {} bytes, over the limit of {}",
                                        catalog_word(entity.ref.type).name, quote(entity.name()),
                                        value.size(), bytes_max));
  return value;
}

Status CatalogChange::put_name(const Entity& entity) {
  const std::string& name = entity.name();
  if (!can_be_name(name))
    return illegal_name(fmt::format("a name has 1 to {} bytes; this one has {}",
                                    catalog_name_bytes_max, name.size()));
  const CatalogRef parent = entity.above.empty() ? CatalogRef() : entity.above.back();
  TRY_ASSIGN(const Record named, record(name_key(keyspace(), parent, entity.ref.type, name)));
  if (named.found()) return already_exists(entity.ref.type, name);
  put(named, encode_named({entity.ref, entity.stored.disabled()}));
  return {};
}

Status CatalogChange::put_names(const Entity& before, const Entity& entity) {
  const CatalogRef parent = before.above.empty() ? CatalogRef() : before.above.back();
  // What its own records hold is known, and so need not be read again.
  const Bytes named = encode_named({before.ref, before.stored.disabled()});
  view_.remove_found(name_key(keyspace(), parent, before.ref.type, before.name()), named.size());
  TRY(put_name(entity));
  if (entity.name() == before.name() && entity.above == before.above) return {};
  const Bytes place = place_key(keyspace(), entity.ref);
  view_.remove_found(place, encode_place({before.name(), before.above}).size());
  view_.put(place, encode_place({entity.name(), entity.above}), Value());
  return {};
}

Status CatalogChange::put_search(const Entity& before, const Entity& entity) {
  const std::vector<Bytes> old_keys = search_keys(keyspace(), before);
  const std::vector<Bytes> new_keys = search_keys(keyspace(), entity);
  std::vector<Bytes> changed;
  std::set_difference(old_keys.begin(), old_keys.end(), new_keys.begin(), new_keys.end(),
                      std::back_inserter(changed));
  for (const Bytes& key : changed) view_.remove_found(key, search_value.size());
  changed.clear();
  std::set_difference(new_keys.begin(), new_keys.end(), old_keys.begin(), old_keys.end(),
                      std::back_inserter(changed));
  for (const Bytes& key : changed) view_.put(key, search_value, Value());
  return {};
}

Status CatalogChange::log(std::string_view action, const Entity& entity, const EntityPath& path,
                          FunctionRef<void(stored::CatalogChange&)> also) {
  const Uuid& metalake = entity.metalake();
  TRY_ASSIGN(const Record last, record(encode(CatalogLogKey{keyspace(), metalake})));
  uint64_t number = 1;
  if (last.found()) {
    TRY_ASSIGN(number, decode_counter(last.value(), "number of the last change"));
    number++;
  }
  stored::CatalogChange change;
  change.set_time_ms(now_ms_);
  change.set_user(call_.user);
  change.set_action(std::string(action));
  change.set_type(std::string(catalog_word(entity.ref.type).name));
  for (const std::string& name : path.names) change.add_names(name);
  change.set_ref(encode_ref(entity.ref));
  change.set_version(entity.stored.version());
  also(change);
  put(last, encode_counter(number));
  put({encode(CatalogChangeKey{keyspace(), metalake, number}), Value()}, encode_message(change));
  leave_log_trims(view_, {metalake, number}, now_ms_);
  return {};
}

Status CatalogChange::log(std::string_view action, const Entity& entity, size_t path) {
  return log(action, entity, way(path).path, [](stored::CatalogChange&) {});
}

// --- all of it ---

class CatalogChanger {
 public:
  static Result<CatalogPlan> plan(const CatalogCall& call, std::span<const EntityPath> paths) {
    std::vector<EntityWay> ways;
    for (const EntityPath& path : paths) {
      TRY_ASSIGN(EntityWay way, find_way(call.tenant, path));
      ways.push_back(std::move(way));
    }
    return CatalogPlan(call.tenant.id(), std::move(ways));
  }

  // The ways as they are in the transaction.
  static Status walk_again(CatalogPlan& plan, CountedView& view) {
    const auto get = [&](ByteView key, Value& value) -> Status {
      // Only another way than was planned leads out of the plan.
      if (!plan.scope_.allows_read(key)) return catalog_plan_outdated();
      return view.get(key, value);
    };
    for (EntityWay& way : plan.ways_) {
      TRY_ASSIGN(EntityWay now, find_way(get, plan.keyspace_, way.path));
      if (now.is_same(way)) continue;
      if (plan.scope_.keyspace_mode() != Scope::Mode::exclusive) return catalog_plan_outdated();
      way = std::move(now);  // with the keyspace alone everything was planned for
    }
    return {};
  }

  static Status run(const CatalogCall& call, CatalogPlan& plan,
                    FunctionRef<Status(CatalogChange&)> run) {
    return call.tenant.write(call.caller, Model::catalog, plan.scope(),
                             [&](CountedView& view) -> Status {
                               TRY(walk_again(plan, view));
                               CatalogChange change(call, plan, view);
                               return run(change);
                             });
  }
};

Status change_catalog(const CatalogCall& call, std::span<const EntityPath> paths,
                      FunctionRef<Status(CatalogPlan&)> plan,
                      FunctionRef<Status(CatalogChange&)> run) {
  TRY(call.tenant.admit(call.caller, Access::write, 0));  // before it learns anything
  for (unsigned round = 1;; round++) {
    TRY_ASSIGN(CatalogPlan planned, CatalogChanger::plan(call, paths));
    if (round > plans_max) planned.everything();
    if (const Status refused = plan(planned); !refused) {
      TRY(call.tenant.admit(call.caller, Access::write));
      return refused;
    }
    const Status done = CatalogChanger::run(call, planned, run);
    if (done || done.error().reason != catalog_plan_outdated().reason) return done;
  }
}

}  // namespace trellis
