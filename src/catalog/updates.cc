#include "catalog/updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "catalog/catalog_error.h"
#include "catalog/drafts.h"
#include "catalog/entity.h"
#include "catalog/function_definition.h"
#include "catalog/name_rules.h"
#include "catalog/secrets.h"
#include "catalog/table_definition.h"
#include "catalog/table_updates.h"

namespace trellis {
namespace {

using stored::CatalogEntity;
using Step = CatalogUpdates::Step;

Result<Step> read_rename(CatalogType type, RequestFields& fields) {
  TRY_ASSIGN(std::string name, fields.required_text("newName"));
  TRY(check_name(type, name, fields.name_pattern));
  return Step([name = std::move(name)](ChangingEntity& entity) -> Status {
    entity.stored().set_name(name);
    return {};
  });
}

Step comment_step(std::optional<std::string> comment) {
  return [comment = std::move(comment)](ChangingEntity& entity) -> Status {
    if (comment) {
      entity.stored().set_comment(*comment);
    } else {
      entity.stored().clear_comment();
    }
    return {};
  };
}

Result<Step> read_comment(CatalogType, RequestFields& fields) {
  TRY_ASSIGN(std::optional<std::string> comment, fields.text("newComment"));
  if (comment) TRY(check_comment(*comment));
  return comment_step(std::move(comment));
}

Result<Step> read_no_comment(CatalogType, RequestFields&) { return comment_step(std::nullopt); }

Result<std::string> read_property(CatalogType type, RequestFields& fields) {
  TRY_ASSIGN(std::string property, fields.required_text("property"));
  TRY(check_property(type, property));
  if (type == CatalogType::fileset &&
      (property == "default-location-name" || property.starts_with("placeholder-"))) {
    return illegal_argument(fmt::format("Property {} is immutable", property));
  }
  return property;
}

Result<Step> read_set_property(CatalogType type, RequestFields& fields) {
  TRY_ASSIGN(std::string property, read_property(type, fields));
  TRY_ASSIGN(std::optional<std::string> value, fields.text("value"));
  if (!value) return illegal_argument("\"value\" field is required and cannot be null");
  TRY(check_secret(type, property, *value));
  return Step([property = std::move(property),
               value = std::move(*value)](ChangingEntity& entity) -> Status {
    (*entity.stored().mutable_properties())[property] = value;
    return {};
  });
}

Result<Step> read_remove_property(CatalogType type, RequestFields& fields) {
  TRY_ASSIGN(std::string property, read_property(type, fields));
  return Step([property = std::move(property)](ChangingEntity& entity) -> Status {
    entity.stored().mutable_properties()->erase(property);
    return {};
  });
}

// All of a view but its name and properties.
Result<Step> read_replace_view(CatalogType, RequestFields& fields) {
  stored::CatalogView view;
  TRY_ASSIGN(const std::vector<const json::value*> columns, fields.list("columns"));
  TRY(check_column_count(columns.size()));
  for (const json::value* column : columns) {
    TRY_ASSIGN(*view.add_columns(), read_column(*column));
  }
  TRY_ASSIGN(*view.mutable_representations_json(),
             read_representations(fields.find("representations")));
  TRY_ASSIGN(const std::optional<std::string> default_catalog, fields.text("defaultCatalog"));
  TRY_ASSIGN(const std::optional<std::string> default_schema, fields.text("defaultSchema"));
  if (default_catalog) view.set_default_catalog(*default_catalog);
  if (default_schema) view.set_default_schema(*default_schema);
  TRY_ASSIGN(std::optional<std::string> comment, fields.text("comment"));
  if (comment) TRY(check_comment(*comment));
  return Step(
      [view, set_comment = comment_step(std::move(comment))](ChangingEntity& entity) -> Status {
        *entity.stored().mutable_view() = view;
        return set_comment(entity);
      });
}

using ChangeDefinitions = std::function<Status(FunctionDefinitions&)>;
Step definitions_step(ChangeDefinitions change) {
  return [change = std::move(change)](ChangingEntity& entity) -> Status {
    TRY_ASSIGN(FunctionDefinitions * definitions, entity.definitions());
    return change(*definitions);
  };
}

Result<Step> read_add_definition(CatalogType, RequestFields& fields) {
  const json::value* given = fields.find("definition");
  TRY_ASSIGN(json::value definition,
             normal_definition(given == nullptr ? json::value() : *given, "definition"));
  return definitions_step(
      [definition](FunctionDefinitions& definitions) { return definitions.add(definition); });
}

Result<Step> read_remove_definition(CatalogType, RequestFields& fields) {
  TRY_ASSIGN(json::value parameters, normal_parameters(fields.find("parameters"), "parameters"));
  return definitions_step(
      [parameters](FunctionDefinitions& definitions) { return definitions.remove(parameters); });
}

Result<json::value> read_impl(RequestFields& fields) {
  const json::value* impl = fields.find("implementation");
  if (impl != nullptr) return normal_impl(*impl);
  return illegal_argument("\"implementation\" field is required and cannot be null");
}

Result<Step> read_add_impl(CatalogType, RequestFields& fields) {
  TRY_ASSIGN(json::value parameters, normal_parameters(fields.find("parameters"), "parameters"));
  TRY_ASSIGN(json::value impl, read_impl(fields));
  return definitions_step([parameters, impl](FunctionDefinitions& definitions) {
    return definitions.add_impl(parameters, impl);
  });
}

Result<std::string> read_runtime(RequestFields& fields) {
  TRY_ASSIGN(const std::optional<std::string> runtime, fields.text("runtime"));
  if (runtime) return normal_runtime(*runtime);
  return illegal_argument("\"runtime\" field is required and cannot be null");
}

Result<Step> read_update_impl(CatalogType, RequestFields& fields) {
  TRY_ASSIGN(json::value parameters, normal_parameters(fields.find("parameters"), "parameters"));
  TRY_ASSIGN(std::string runtime, read_runtime(fields));
  TRY_ASSIGN(json::value impl, read_impl(fields));
  return definitions_step([parameters, runtime, impl](FunctionDefinitions& definitions) {
    return definitions.update_impl(parameters, runtime, impl);
  });
}

Result<Step> read_remove_impl(CatalogType, RequestFields& fields) {
  TRY_ASSIGN(json::value parameters, normal_parameters(fields.find("parameters"), "parameters"));
  TRY_ASSIGN(std::string runtime, read_runtime(fields));
  return definitions_step([parameters, runtime](FunctionDefinitions& definitions) {
    return definitions.remove_impl(parameters, runtime);
  });
}

Result<Step> read_content(CatalogType, RequestFields& fields) {
  TRY_ASSIGN(std::string type, fields.required_text("policyType"));
  const json::value* given = fields.find("newContent");
  if (given == nullptr) return illegal_argument("\"newContent\" must not be null");
  TRY_ASSIGN(std::string content, read_policy_content(type, given));
  return Step(
      [type = std::move(type), content = std::move(content)](ChangingEntity& entity) -> Status {
        stored::CatalogPolicy& policy = *entity.stored().mutable_policy();
        if (policy.policy_type() != type) {
          return illegal_argument(fmt::format("Policy type mismatch: expected {} but got {}",
                                              policy.policy_type(), type));
        }
        policy.set_content_json(content);
        return {};
      });
}

// Types as a set of bits.
constexpr unsigned of(CatalogType type) { return 1U << static_cast<unsigned>(type); }
constexpr unsigned described = of(CatalogType::metalake) | of(CatalogType::catalog) |
                               of(CatalogType::tag) | of(CatalogType::model) |
                               of(CatalogType::fileset) | of(CatalogType::table);
constexpr unsigned with_properties =
    described | of(CatalogType::schema) | of(CatalogType::topic) | of(CatalogType::view);

struct UpdateKind {
  std::string_view name;
  unsigned types;
  Result<Step> (*read)(CatalogType, RequestFields&);
};
constexpr UpdateKind update_kinds[] = {
    {"rename", (with_properties & ~of(CatalogType::topic)) | of(CatalogType::policy), read_rename},
    {"updateComment",
     described | of(CatalogType::topic) | of(CatalogType::function) | of(CatalogType::policy),
     read_comment},
    {"removeComment", of(CatalogType::fileset), read_no_comment},
    {"setProperty", with_properties, read_set_property},
    {"removeProperty", with_properties, read_remove_property},
    {"replaceView", of(CatalogType::view), read_replace_view},
    {"addDefinition", of(CatalogType::function), read_add_definition},
    {"removeDefinition", of(CatalogType::function), read_remove_definition},
    {"addImpl", of(CatalogType::function), read_add_impl},
    {"updateImpl", of(CatalogType::function), read_update_impl},
    {"removeImpl", of(CatalogType::function), read_remove_impl},
    {"updateContent", of(CatalogType::policy), read_content},
};

}  // namespace

Result<std::vector<const json::value*>> read_update_list(const json::value& request) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(request, "request"));
  const json::value* given = fields.find("updates");
  if (given == nullptr) return illegal_argument("\"updates\" field is required and cannot be null");
  TRY_ASSIGN(std::vector<const json::value*> updates, fields.list("updates"));
  TRY(fields.finish());
  if (updates.size() > catalog_updates_max) {
    return illegal_argument(
        fmt::format("\"updates\" has at most {} elements", catalog_updates_max));
  }
  return updates;
}

Result<std::string> update_kind(const json::value& update) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(update, "update"));
  TRY_ASSIGN(std::optional<std::string> kind, fields.text("@type"));
  if (!kind) return illegal_argument("Malformed json request: an update needs \"@type\"");
  return std::move(*kind);
}

Result<CatalogUpdates> CatalogUpdates::read(CatalogType type, const json::value& request,
                                            NamePattern pattern) {
  TRY_ASSIGN(const std::vector<const json::value*> given, read_update_list(request));
  CatalogUpdates updates;
  std::vector<Step> of_columns;
  for (const json::value* update : given) {
    TRY_ASSIGN(const std::string kind, update_kind(*update));
    TRY_ASSIGN(RequestFields fields, RequestFields::of(*update, "update"));
    fields.find("@type");
    fields.name_pattern = pattern;
    if (type == CatalogType::table) {
      if (kind == "rename") {
        TRY_ASSIGN(std::optional<std::string> schema, fields.text("newSchemaName"));
        updates.new_schema_ = schema && !is_blank(*schema) ? std::move(schema) : std::nullopt;
      }
      TRY_ASSIGN(std::optional<TableStep> step, read_table_update(kind, fields));
      if (step) {
        TRY(fields.finish());
        updates.of_table_ = true;
        (step->of_columns ? of_columns : updates.steps_).push_back(std::move(step->step));
        continue;
      }
    }
    const auto* known = std::ranges::find_if(update_kinds, [&](const UpdateKind& row) {
      return row.name == kind && (row.types & of(type)) != 0;
    });
    if (known == std::end(update_kinds)) {
      return illegal_argument(
          fmt::format("Malformed json request: Could not resolve type id '{}' "
                      "as an update of a {}",
                      kind.substr(0, 100), catalog_word(type).name));
    }
    TRY_ASSIGN(Step step, known->read(type, fields));
    TRY(fields.finish());
    updates.steps_.push_back(std::move(step));
  }
  std::ranges::move(of_columns, std::back_inserter(updates.steps_));
  return updates;
}

Status CatalogUpdates::apply(CatalogEntity& entity) const {
  ChangingEntity changed(entity);
  for (const Step& step : steps_) TRY(step(changed));
  CatalogEntity after = changed.finish();
  // Others are not to blame for what was wrong before.
  if (of_table_) {
    TRY(follow_columns(entity.table(), *after.mutable_table()));
    TRY(check_table(after.table()));
  }
  entity = std::move(after);
  return {};
}

}  // namespace trellis
