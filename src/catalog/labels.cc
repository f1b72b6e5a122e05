#include "catalog/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "catalog/relations.h"

namespace trellis {
namespace {

constexpr size_t label_changes_max = 1'000;
constexpr size_t label_value_characters_max = 256;

CatalogRelation relation_of(CatalogType type) {
  return type == CatalogType::tag ? CatalogRelation::tag : CatalogRelation::policy;
}

Status check_labelled(const EntityPath& object, CatalogType type) {
  switch (object.type) {
    case CatalogType::catalog:
    case CatalogType::schema:
    case CatalogType::table:
    case CatalogType::topic:
    case CatalogType::fileset:
    case CatalogType::model:
    case CatalogType::view:
    case CatalogType::function: return {};
    case CatalogType::column:
      if (type == CatalogType::tag) return {};
      [[fallthrough]];
    default:
      return illegal_argument(fmt::format("Cannot associate a {} with a {}",
                                          catalog_word(type).name, catalog_word(object.type).name));
  }
}

Result<std::vector<LabelValue>> read_labels(RequestFields& fields, std::string_view member,
                                            bool with_values) {
  TRY_ASSIGN(const std::vector<const json::value*> list, fields.list(member));
  std::vector<LabelValue> labels;
  for (const json::value* each : list) {
    LabelValue label;
    if (with_values) {
      TRY_ASSIGN(RequestFields pair, RequestFields::of(*each, "tag value"));
      TRY_ASSIGN(label.name, pair.required_text("name"));
      TRY_ASSIGN(label.value, pair.text("value"));
      TRY(pair.finish());
    } else if (const auto text = scalar_text(*each)) {
      label.name = *text;
    }
    if (is_blank(label.name))
      return illegal_argument(fmt::format("{} must not contain null or empty names", member));
    if (label.value && (is_blank(*label.value) || label.value->size() > label_value_characters_max))
      return illegal_argument(fmt::format("{} must not contain values that are empty or over {}",
                                          member, label_value_characters_max));
    if (std::ranges::find(labels, label) == labels.end()) labels.push_back(std::move(label));
    if (labels.size() > label_changes_max)
      return illegal_argument(fmt::format("{} has over {} names", member, label_changes_max));
  }
  return labels;
}

Result<LabelChanges> read_changes(const json::value& request, std::string_view add,
                                  std::string_view remove, bool with_values) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  if (fields.find(add) == nullptr && fields.find(remove) == nullptr)
    return illegal_argument(fmt::format("{} and {} cannot both be null", add, remove));
  LabelChanges changes;
  changes.with_values = with_values;
  TRY_ASSIGN(changes.add, read_labels(fields, add, with_values));
  TRY_ASSIGN(changes.remove, read_labels(fields, remove, with_values));
  TRY(fields.finish());
  if (with_values && changes.add.empty() && changes.remove.empty())
    return illegal_argument(fmt::format("{} and {} cannot both be empty", add, remove));
  bool has_both = false;
  std::erase_if(changes.add, [&](const LabelValue& label) {
    const auto both = std::ranges::find(changes.remove, label);
    if (both == changes.remove.end()) return false;
    changes.remove.erase(both);
    has_both = true;
    return true;
  });
  if (with_values && has_both)
    return illegal_argument(fmt::format("{} and {} must not overlap", add, remove));
  return changes;
}

// What a thing has of one label: absent, or values, of which there may be none.
using Held = std::optional<std::vector<std::string>>;

void remove_from(Held& held, const LabelValue& label, bool with_values) {
  if (!held) return;
  if (!label.value) {
    if (!with_values || held->empty()) held.reset();
    return;
  }
  if (std::erase(*held, *label.value) > 0 && held->empty()) held.reset();
}

Status check_value(const stored::CatalogTag& tag, const LabelValue& label) {
  const auto& allowed = tag.allowed_values();
  if (allowed.empty()) return {};
  if (label.value && std::ranges::find(allowed, *label.value) != allowed.end()) return {};
  return illegal_argument(
      fmt::format("Tag {} requires a value of: {}", label.name, fmt::join(allowed, ", ")));
}

// Whether a policy is meant for such things.
Status check_policy(const stored::CatalogPolicy& policy, const LabelValue& label,
                    CatalogType object) {
  TRY_ASSIGN(const json::value content, stored_json(policy.content_json()));
  const json::object* const members = content.if_object();
  const json::value* const types =
      members == nullptr ? nullptr : members->if_contains("supportedObjectTypes");
  if (types == nullptr || !types->is_array()) return {};
  const std::string_view wanted = catalog_word(object).name;
  for (const json::value& type : types->as_array())
    if (type.is_string() && ascii_lowered(std::string_view(type.as_string())) == wanted) return {};
  return illegal_argument(
      fmt::format("Policy {} does not support objects of type {}", label.name, wanted));
}

Status add_to(Held& held, const Entity& entity, const LabelValue& label, const EntityPath& object,
              bool with_values) {
  const CatalogType type = entity.ref.type;
  if (type == CatalogType::tag)
    TRY(check_value(entity.stored.tag(), label));
  else
    TRY(check_policy(entity.stored.policy(), label, object.type));
  if (label.value) {
    if (!held) held.emplace();
    if (std::ranges::find(*held, *label.value) == held->end()) held->push_back(*label.value);
    return {};
  }
  if (held && !held->empty())
    return illegal_argument(fmt::format("Tag {} has values on {}: it cannot be there without",
                                        label.name, to_string(object)));
  if (held && !with_values)
    return Error{Code::exists,
                 fmt::format("{} {} is already associated with {}", catalog_word(type).name,
                             quote(label.name), to_string(object)),
                 type == CatalogType::tag ? "tag_associated" : "policy_associated"};
  held.emplace();
  return {};
}

// One change of labels: the object is path 0, each label one more.
class Labelling {
 public:
  Labelling(const CatalogCall& call, const EntityPath& object, CatalogType type,
            const LabelChanges& changes)
      : call_(call), object_(object), type_(type), changes_(changes), paths_{object} {
    for (const auto* list : {&changes.add, &changes.remove})
      for (const LabelValue& label : *list)
        if (indexes_.try_emplace(label.name, paths_.size()).second)
          paths_.push_back({type, {object.names.front(), label.name}});
  }

  Status run() {
    return change_catalog(
        call_, paths_, [&](CatalogPlan& plan) { return this->plan(plan); },
        [&](CatalogChange& change) { return this->change(change); });
  }

 private:
  RelationEnds ends(const EntityWay& object, const EntityWay& label) const {
    return {relation_of(type_), object.ref(), label.ref()};
  }

  Status plan(CatalogPlan& plan) const {
    TRY(as_object(plan.require()));
    if (object_.type != CatalogType::column) plan.read_entity();
    const EntityWay& object = plan.way();
    for (size_t i = 1; i < paths_.size(); i++) {
      if (!plan.way(i).complete()) continue;
      plan.read_entity(i);
      plan_relation(plan, object.refs.front().id, ends(object, plan.way(i)));
    }
    return {};
  }

  Status change(CatalogChange& change) const {
    TRY(as_object(change.require()));
    const EntityWay& object = change.way();
    const Uuid& metalake = object.refs.front().id;
    std::map<size_t, Held> before;
    for (size_t i = 1; i < paths_.size(); i++) {
      if (!change.way(i).complete()) continue;
      TRY_ASSIGN(const auto relation, read_relation(change, metalake, ends(object, change.way(i))));
      Held& held = before[i];
      if (relation) held.emplace(relation->values().begin(), relation->values().end());
    }
    std::map<size_t, Held> now = before;
    TRY(apply(change, now));
    if (now == before) return {};
    for (const auto& [i, held] : now) {
      if (held == before[i]) continue;
      stored::CatalogRelation relation;
      if (held) relation.mutable_values()->Assign(held->begin(), held->end());
      if (held)
        TRY(put_relation(change, metalake, ends(object, change.way(i)), std::move(relation)));
      else
        TRY(remove_relation(change, metalake, ends(object, change.way(i))));
    }
    return log(change);
  }

  Status apply(CatalogChange& change, std::map<size_t, Held>& now) const {
    const auto find = [&](const LabelValue& label) { return now.find(indexes_.at(label.name)); };
    for (const LabelValue& label : changes_.remove)
      if (const auto found = find(label); found != now.end())
        remove_from(found->second, label, changes_.with_values);
    for (const LabelValue& label : changes_.add) {
      const auto found = find(label);
      if (found == now.end()) continue;
      TRY_ASSIGN(const Entity entity, change.entity(found->first));
      TRY(add_to(found->second, entity, label, object_, changes_.with_values));
    }
    return {};
  }

  Status log(CatalogChange& change) const {
    const EntityWay& way = change.way();
    Entity entity{way.ref(), {way.above().begin(), way.above().end()}, {}};
    if (object_.type != CatalogType::column) {
      TRY_ASSIGN(entity, change.entity());
    }
    return change.log(type_ == CatalogType::tag ? "tag" : "set_policy", entity);
  }

  const CatalogCall& call_;
  const EntityPath& object_;
  const CatalogType type_;
  const LabelChanges& changes_;
  std::vector<EntityPath> paths_;
  std::map<std::string, size_t> indexes_;
};

}  // namespace

Result<LabelChanges> read_tag_changes(const json::value& request, bool with_values) {
  return read_changes(request, "tagsToAdd", "tagsToRemove", with_values);
}

Result<LabelChanges> read_policy_changes(const json::value& request) {
  return read_changes(request, "policiesToAdd", "policiesToRemove", false);
}

Status change_labels(const CatalogCall& call, const EntityPath& object, CatalogType type,
                     const LabelChanges& changes) {
  TRY(check_labelled(object, type));
  return Labelling(call, object, type, changes).run();
}

Result<std::vector<Label>> labels_of(Catalog& catalog, const CatalogCall& call,
                                     const EntityPath& object, CatalogType type,
                                     Inherited inherited) {
  TRY(check_labelled(object, type));
  Tenant& tenant = call.tenant;
  TRY(tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(tenant, object));
  TRY(as_object(require(way)));
  const CatalogRef& metalake = way.refs.front();
  std::vector<Label> labels;
  std::set<CatalogRef> seen;
  const size_t last = inherited == Inherited::too ? 1 : way.refs.size() - 1;
  for (size_t level = way.refs.size() - 1; level >= last; level--) {
    const CatalogRef& ref = way.refs[level];
    TRY_ASSIGN(const std::vector<CatalogRef> refs,
               related_from(tenant, metalake.id, relation_of(type), ref));
    TRY_ASSIGN(std::vector<Entity> entities, live_members(catalog, tenant, metalake, refs));
    for (Entity& entity : entities) {
      if (!seen.insert(entity.ref).second) continue;
      Label label{std::move(entity), {}, level + 1 < way.refs.size()};
      TRY_ASSIGN(const auto relation,
                 load_relation(tenant, metalake.id, {relation_of(type), ref, label.entity.ref}));
      if (relation) label.values.assign(relation->values().begin(), relation->values().end());
      labels.push_back(std::move(label));
    }
  }
  return labels;
}

Result<PageStart> visit_labelled(Catalog& catalog, const CatalogCall& call, const EntityPath& label,
                                 const std::optional<std::string>& value, const PageRequest& page,
                                 FunctionRef<void(const EntityPath&)> visit) {
  Tenant& tenant = call.tenant;
  TRY(tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(tenant, label));
  TRY(require(way));
  const CatalogRelation relation = relation_of(label.type);
  const Uuid& metalake = way.refs.front().id;
  std::vector<CatalogRef> refs;
  TRY_ASSIGN(PageStart next, related_to(tenant, metalake, relation, way.ref(), page, refs));
  // Those of one table follow each other, and many would decode it many times.
  std::optional<EntityId> table;
  std::optional<ColumnNames> columns;
  for (const CatalogRef& ref : refs) {
    if (value) {
      TRY_ASSIGN(const auto held, load_relation(tenant, metalake, {relation, ref, way.ref()}));
      if (!held || std::ranges::find(held->values(), *value) == held->values().end()) continue;
    }
    std::optional<EntityPath> path;
    if (ref.type != CatalogType::column) {
      TRY_ASSIGN(path, catalog.path_of(tenant, ref));
    } else {
      if (table != ref.number()) {
        TRY_ASSIGN(columns, catalog.column_names(tenant, ref.number()));
        table = ref.number();
      }
      if (columns) path = columns->path_of(ref);
    }
    if (path) visit(*path);
  }
  return next;
}

}  // namespace trellis
