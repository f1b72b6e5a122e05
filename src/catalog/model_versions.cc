#include "catalog/model_versions.h"

#include <fmt/format.h>

#include <algorithm>

#include "catalog/catalog_error.h"
#include "catalog/counter.h"
#include "catalog/drafts.h"
#include "catalog/name_rules.h"
#include "catalog/updates.h"
#include "codec/stored_message.h"

namespace trellis {
namespace {

using stored::CatalogModelVersion;
using VersionStep = ModelVersionUpdates::Step;

constexpr const char* version_what = "version of a model";
// How often an alias that moves meanwhile is followed.
constexpr int alias_reads_max = 10;

std::string name_text(const ModelVersionName& name) {
  return name.version ? std::to_string(*name.version) : quote(name.alias);
}

Error no_such_version(const EntityPath& model, const ModelVersionName& name) {
  return {Code::not_found,
          fmt::format("Model version {} of {} does not exist", name_text(name), to_string(model)),
          "no_such_model_version"};
}

// What people and Java would take for a number: then it could be a version.
bool is_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const auto only = [](std::string_view rest, std::string_view characters) {
    return !rest.empty() && rest.find_first_not_of(characters) == std::string_view::npos;
  };
  if (text.starts_with("0x") || text.starts_with("0X") || text.starts_with('#')) {
    return only(text.substr(text[0] == '#' ? 1 : 2), "0123456789abcdefABCDEF");
  }
  if (text.empty() || text.find_first_of("0123456789") == std::string_view::npos) return false;
  if (std::string_view("lLfFdD").find(text.back()) != std::string_view::npos) {
    text.remove_suffix(1);
  }
  if (const size_t exponent = text.find_first_of("eE"); exponent != std::string_view::npos) {
    std::string_view power = text.substr(exponent + 1);
    if (power.starts_with('-') || power.starts_with('+')) power.remove_prefix(1);
    if (!only(power, "0123456789")) return false;
    text = text.substr(0, exponent);
  }
  return only(text, "0123456789.") && std::ranges::count(text, '.') <= 1;
}

Status check_alias(const std::string& alias) {
  if (is_blank(alias)) return illegal_argument("alias must not be null or empty");
  if (is_number(alias)) {
    return illegal_argument("alias must not be a number or a number string");
  }
  if (alias.size() > catalog_name_bytes_max) {
    return illegal_argument(fmt::format("an alias has {} bytes at most", catalog_name_bytes_max));
  }
  return {};
}

Status check_uris(const CatalogModelVersion& version) {
  if (version.uris().empty()) {
    return illegal_argument("At least one URI needs to be set for the model version");
  }
  for (const auto& [name, uri] : version.uris()) {
    if (is_blank(name)) return illegal_argument("URI name must not be blank");
    if (is_blank(uri)) return illegal_argument("URI must not be blank");
  }
  return {};
}

Bytes version_key(KeyspaceId keyspace, EntityId model, uint32_t version) {
  return encode(CatalogModelVersionKey{keyspace, model, version});
}
Bytes alias_key(KeyspaceId keyspace, EntityId model, std::string_view alias) {
  return encode(CatalogAliasKey{keyspace, model, alias});
}

// The number, if there is such a version or alias.
Result<std::optional<uint32_t>> number_of_version(CatalogGet get, KeyspaceId keyspace,
                                                  EntityId model, const ModelVersionName& name) {
  if (name.version) return name.version;
  if (name.alias.empty() || name.alias.size() > catalog_name_bytes_max) return std::nullopt;
  Value value;
  TRY(get(alias_key(keyspace, model, name.alias), value));
  if (!value.found()) return std::nullopt;
  TRY_ASSIGN(const uint64_t number, decode_counter(value.bytes(), "alias of a model"));
  return static_cast<uint32_t>(number);
}

// A model in a change, with what all its versions and aliases are locked by.
constexpr auto plan_versions = [](CatalogPlan& plan) -> Status {
  TRY(plan.require());
  plan.write_entity();
  const EntityId model = plan.way().ref().number();
  plan.exclusive(version_key(plan.keyspace(), model, 0));
  plan.exclusive(alias_key(plan.keyspace(), model, "a"));
  return {};
};

struct FoundVersion {
  CatalogChange::Record record;
  CatalogModelVersion version;
};
Result<std::optional<FoundVersion>> find_version(CatalogChange& change,
                                                 const ModelVersionName& name) {
  const EntityId model = change.way().ref().number();
  TRY_ASSIGN(
      const std::optional<uint32_t> number,
      number_of_version([&](ByteView key, Value& value) { return change.view().get(key, value); },
                        change.keyspace(), model, name));
  if (!number) return std::nullopt;
  FoundVersion found;
  TRY_ASSIGN(found.record, change.record(version_key(change.keyspace(), model, *number)));
  if (!found.record.found()) return std::nullopt;
  TRY(decode_message(found.record.value(), found.version, version_what));
  return found;
}

// Writes the aliases that are new and removes those that are gone.
Status put_aliases(CatalogChange& change, const CatalogModelVersion& before,
                   const CatalogModelVersion& after) {
  const EntityId model = change.way().ref().number();
  const auto has = [](const CatalogModelVersion& version, const std::string& alias) {
    return std::ranges::find(version.aliases(), alias) != version.aliases().end();
  };
  for (const std::string& alias : before.aliases()) {
    if (has(after, alias)) continue;
    TRY_ASSIGN(const CatalogChange::Record record,
               change.record(alias_key(change.keyspace(), model, alias)));
    change.remove(record);
  }
  for (const std::string& alias : after.aliases()) {
    if (has(before, alias)) continue;
    TRY_ASSIGN(const CatalogChange::Record record,
               change.record(alias_key(change.keyspace(), model, alias)));
    if (record.found()) {
      return Error{Code::exists,
                   fmt::format("Model version aliases {} already exist", quote(alias)),
                   "model_version_aliases_exist"};
    }
    change.put(record, encode_counter(after.version()));
  }
  return {};
}

Result<Entity> load_model(CatalogChange& change) {
  TRY(change.require());
  return change.entity();
}

VersionStep comment_step_of(std::optional<std::string> comment) {
  return [comment = std::move(comment)](CatalogModelVersion& version) -> Status {
    if (comment) {
      version.set_comment(*comment);
    } else {
      version.clear_comment();
    }
    return {};
  };
}

Result<VersionStep> read_version_comment(RequestFields& fields) {
  TRY_ASSIGN(std::optional<std::string> comment, fields.text("newComment"));
  if (comment) TRY(check_comment(*comment));
  return comment_step_of(std::move(comment));
}

Result<VersionStep> read_version_set(RequestFields& fields) {
  TRY_ASSIGN(const std::string property, fields.required_text("property"));
  TRY(check_property(CatalogType::model, property));
  TRY_ASSIGN(const std::optional<std::string> value, fields.text("value"));
  if (!value) return illegal_argument("\"value\" field is required and cannot be null");
  return VersionStep([property, value = *value](CatalogModelVersion& version) -> Status {
    (*version.mutable_properties())[property] = value;
    return {};
  });
}

Result<VersionStep> read_version_remove(RequestFields& fields) {
  TRY_ASSIGN(const std::string property, fields.required_text("property"));
  TRY(check_property(CatalogType::model, property));
  return VersionStep([property](CatalogModelVersion& version) -> Status {
    version.mutable_properties()->erase(property);
    return {};
  });
}

Result<VersionStep> read_update_uri(RequestFields& fields) {
  TRY_ASSIGN(const std::string uri, fields.required_text("newUri"));
  TRY_ASSIGN(const std::optional<std::string> given, fields.text("uriName"));
  const std::string name = given && !is_blank(*given) ? *given : std::string(unknown_location);
  return VersionStep([name, uri](CatalogModelVersion& version) -> Status {
    const auto found = version.mutable_uris()->find(name);
    if (found != version.mutable_uris()->end()) found->second = uri;
    return {};
  });
}

Result<VersionStep> read_add_uri(RequestFields& fields) {
  TRY_ASSIGN(const std::string name, fields.required_text("uriName"));
  TRY_ASSIGN(const std::string uri, fields.required_text("uri"));
  return VersionStep([name, uri](CatalogModelVersion& version) -> Status {
    version.mutable_uris()->insert({name, uri});
    return {};
  });
}

Result<VersionStep> read_remove_uri(RequestFields& fields) {
  TRY_ASSIGN(const std::string name, fields.required_text("uriName"));
  return VersionStep([name](CatalogModelVersion& version) -> Status {
    version.mutable_uris()->erase(name);
    return {};
  });
}

Result<VersionStep> read_aliases(RequestFields& fields) {
  if (fields.find("aliasesToAdd") == nullptr && fields.find("aliasesToRemove") == nullptr) {
    return illegal_argument("At least one of aliasesToAdd or aliasesToRemove must be non-null");
  }
  TRY_ASSIGN(const std::vector<std::string> added, fields.text_list("aliasesToAdd"));
  TRY_ASSIGN(const std::vector<std::string> removed, fields.text_list("aliasesToRemove"));
  for (const std::string& alias : added) TRY(check_alias(alias));
  return VersionStep([added, removed](CatalogModelVersion& version) -> Status {
    auto& aliases = *version.mutable_aliases();
    for (const std::string& alias : removed) {
      const auto found = std::ranges::find(aliases, alias);
      if (found != aliases.end()) aliases.erase(found);
    }
    for (const std::string& alias : added) {
      if (std::ranges::find(aliases, alias) == aliases.end()) *aliases.Add() = alias;
    }
    return {};
  });
}

struct VersionUpdateKind {
  std::string_view name;
  Result<VersionStep> (*read)(RequestFields&);
};
constexpr VersionUpdateKind version_update_kinds[] = {{"updateComment", read_version_comment},
                                                      {"setProperty", read_version_set},
                                                      {"removeProperty", read_version_remove},
                                                      {"updateUri", read_update_uri},
                                                      {"addUri", read_add_uri},
                                                      {"removeUri", read_remove_uri},
                                                      {"updateAliases", read_aliases}};

}  // namespace

Result<CatalogModelVersion> read_model_version(const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  CatalogModelVersion draft;
  TRY_ASSIGN(const std::vector<std::string> aliases, fields.text_list("aliases"));
  for (const std::string& alias : aliases) {
    TRY(check_alias(alias));
    if (std::ranges::find(draft.aliases(), alias) == draft.aliases().end()) {
      draft.add_aliases(alias);
    }
  }
  TRY_ASSIGN(const TextMap uris, fields.text_map("uris"));
  TRY_ASSIGN(const std::optional<std::string> uri, fields.text("uri"));
  draft.mutable_uris()->insert(uris.begin(), uris.end());
  if (uri && !is_blank(*uri)) (*draft.mutable_uris())[std::string(unknown_location)] = *uri;
  if (draft.uris().empty()) return illegal_argument("URI cannot be empty");
  TRY(check_uris(draft));
  TRY_ASSIGN(const std::optional<std::string> comment, fields.text("comment"));
  if (comment) {
    TRY(check_comment(*comment));
    draft.set_comment(*comment);
  }
  TRY_ASSIGN(const TextMap properties, fields.text_map("properties"));
  TRY(check_properties(CatalogType::model, properties));
  draft.mutable_properties()->insert(properties.begin(), properties.end());
  TRY(fields.finish());
  return draft;
}

Result<uint32_t> link_model_version(const CatalogCall& call, const EntityPath& model,
                                    CatalogModelVersion draft) {
  uint32_t number = 0;
  TRY(change_catalog(
      call, std::span(&model, 1), plan_versions, [&](CatalogChange& change) -> Status {
        TRY_ASSIGN(Entity entity, load_model(change));
        stored::CatalogModel& stored = *entity.stored.mutable_model();
        number = stored.next_version();
        if (number == UINT32_MAX) return illegal_argument("the model has no more versions");
        stored.set_next_version(number + 1);
        draft.set_version(number);
        draft.mutable_audit()->set_creator(call.user);
        draft.mutable_audit()->set_created_ms(change.now_ms());
        TRY_ASSIGN(const CatalogChange::Record record,
                   change.record(version_key(change.keyspace(), entity.ref.number(), number)));
        TRY(put_aliases(change, {}, draft));
        change.put(record, encode_message(draft));
        TRY(change.put(entity));
        return change.log("link_version", entity);
      }));
  return number;
}

Result<CatalogModelVersion> load_model_version(const CatalogCall& call, const EntityPath& model,
                                               const ModelVersionName& name) {
  TRY(call.tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(call.tenant, model));
  TRY(require(way));
  Engine& engine = call.tenant.map().engine;
  const EntityId id = way.ref().number();
  const auto get = [&](ByteView key, Value& value) { return engine.get(key, value); };
  for (int reads = 0; reads < alias_reads_max; ++reads) {
    TRY_ASSIGN(const std::optional<uint32_t> number,
               number_of_version(get, call.tenant.id(), id, name));
    if (!number) break;
    Value value;
    TRY(engine.get(version_key(call.tenant.id(), id, *number), value));
    if (!value.found()) {
      if (name.version) break;
      continue;  // the alias was moved and its version deleted in between
    }
    CatalogModelVersion version;
    TRY(decode_message(value.bytes(), version, version_what));
    return version;
  }
  return no_such_version(model, name);
}

Result<PageStart> list_model_versions(const CatalogCall& call, const EntityPath& model,
                                      const PageRequest& page, ModelVersionVisitor visit) {
  TRY(call.tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(call.tenant, model));
  TRY(require(way));
  const EntityId id = way.ref().number();
  const Bytes begin = version_key(call.tenant.id(), id, 0);
  const Bytes end = successor(version_key(call.tenant.id(), id, UINT32_MAX));
  const auto take = [&](ByteView, ByteView value) -> Status {
    CatalogModelVersion version;
    TRY(decode_message(value, version, version_what));
    visit(version);
    return {};
  };
  return read_record_page(call.tenant, begin, end, page, take);
}

Result<bool> delete_model_version(const CatalogCall& call, const EntityPath& model,
                                  const ModelVersionName& name) {
  bool deleted = false;
  const Status done = change_catalog(
      call, std::span(&model, 1), plan_versions, [&](CatalogChange& change) -> Status {
        deleted = false;
        TRY_ASSIGN(Entity entity, load_model(change));
        TRY_ASSIGN(const std::optional<FoundVersion> found, find_version(change, name));
        if (!found) return {};
        CatalogModelVersion without = found->version;
        without.clear_aliases();
        TRY(put_aliases(change, found->version, without));
        change.remove(found->record);
        deleted = true;
        return change.log("delete_version", entity);
      });
  if (!done && done.error().reason == "no_such_model") return false;
  TRY(done);
  return deleted;
}

Result<CatalogModelVersion> alter_model_version(const CatalogCall& call, const EntityPath& model,
                                                const ModelVersionName& name,
                                                const ModelVersionUpdates& updates) {
  CatalogModelVersion version;
  TRY(change_catalog(
      call, std::span(&model, 1), plan_versions, [&](CatalogChange& change) -> Status {
        TRY_ASSIGN(Entity entity, load_model(change));
        TRY_ASSIGN(const std::optional<FoundVersion> found, find_version(change, name));
        if (!found) return no_such_version(model, name);
        version = found->version;
        TRY(updates.apply(version));
        version.mutable_audit()->set_modifier(call.user);
        version.mutable_audit()->set_modified_ms(change.now_ms());
        TRY(put_aliases(change, found->version, version));
        change.put(found->record, encode_message(version));
        return change.log("alter_version", entity);
      }));
  return version;
}

Result<ModelVersionUpdates> ModelVersionUpdates::read(const json::value& request) {
  TRY_ASSIGN(const std::vector<const json::value*> given, read_update_list(request));
  ModelVersionUpdates updates;
  for (const json::value* update : given) {
    TRY_ASSIGN(const std::string kind, update_kind(*update));
    TRY_ASSIGN(RequestFields fields, RequestFields::of(*update, "update"));
    const auto* known =
        std::ranges::find(version_update_kinds, std::string_view(kind), &VersionUpdateKind::name);
    if (known == std::end(version_update_kinds)) {
      return illegal_argument(
          fmt::format("Malformed json request: Could not resolve type id '{}' "
                      "as an update of a model version",
                      kind.substr(0, 100)));
    }
    TRY_ASSIGN(VersionStep step, known->read(fields));
    updates.steps_.push_back(std::move(step));
  }
  return updates;
}

Status ModelVersionUpdates::apply(CatalogModelVersion& version) const {
  CatalogModelVersion changed = version;
  for (const Step& step : steps_) TRY(step(changed));
  TRY(check_uris(changed));
  version = std::move(changed);
  return {};
}

Result<std::string> model_version_uri(const CatalogModelVersion& version,
                                      const stored::CatalogEntity& model, const std::string& name) {
  std::string wanted = name;
  if (wanted.empty() && version.uris().size() == 1) return version.uris().begin()->second;
  for (const auto* properties : {&version.properties(), &model.properties()}) {
    const auto by_default = properties->find("default-uri-name");
    if (wanted.empty() && by_default != properties->end()) wanted = by_default->second;
  }
  const auto found = version.uris().find(wanted);
  if (found != version.uris().end()) return found->second;
  return Error{Code::not_found,
               fmt::format("URI name {} does not exist in version {} of model {}", quote(wanted),
                           version.version(), model.name()),
               "no_such_uri_name"};
}

}  // namespace trellis
