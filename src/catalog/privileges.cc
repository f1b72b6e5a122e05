#include "catalog/privileges.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "catalog/catalog_error.h"

namespace trellis {
namespace {

constexpr unsigned types(std::initializer_list<CatalogType> types) {
  unsigned bits = 0;
  for (const CatalogType type : types) bits |= 1u << static_cast<unsigned>(type);
  return bits;
}

constexpr unsigned on_metalake = types({CatalogType::metalake});
constexpr unsigned on_catalog = on_metalake | types({CatalogType::catalog});
constexpr unsigned on_schema = on_catalog | types({CatalogType::schema});
constexpr unsigned on_table = on_schema | types({CatalogType::table});
constexpr unsigned on_fileset = on_schema | types({CatalogType::fileset});
constexpr unsigned on_topic = on_schema | types({CatalogType::topic});
constexpr unsigned on_model = on_schema | types({CatalogType::model});
constexpr unsigned on_view = on_schema | types({CatalogType::view});
constexpr unsigned on_function = on_schema | types({CatalogType::function});

struct PrivilegeForm {
  std::string_view name;
  Privilege privilege;
  unsigned types;
  std::string_view catalog_type = {};
};

constexpr PrivilegeForm forms[] = {
    {"create_catalog", Privilege::create_catalog, on_metalake},
    {"use_catalog", Privilege::use_catalog, on_catalog},
    {"create_schema", Privilege::create_schema, on_catalog},
    {"use_schema", Privilege::use_schema, on_schema},
    {"create_table", Privilege::create_table, on_schema, "relational"},
    {"modify_table", Privilege::modify_table, on_table, "relational"},
    {"select_table", Privilege::select_table, on_table, "relational"},
    {"create_fileset", Privilege::create_fileset, on_schema, "fileset"},
    {"write_fileset", Privilege::write_fileset, on_fileset, "fileset"},
    {"read_fileset", Privilege::read_fileset, on_fileset, "fileset"},
    {"create_topic", Privilege::create_topic, on_schema, "messaging"},
    {"produce_topic", Privilege::produce_topic, on_topic, "messaging"},
    {"consume_topic", Privilege::consume_topic, on_topic, "messaging"},
    {"manage_users", Privilege::manage_users, on_metalake},
    {"manage_groups", Privilege::manage_groups, on_metalake},
    {"create_role", Privilege::create_role, on_metalake},
    {"manage_grants", Privilege::manage_grants,
     on_table | on_fileset | on_topic | on_model | on_view | on_function},
    {"register_model", Privilege::register_model, on_schema, "model"},
    {"create_model", Privilege::register_model, on_schema, "model"},
    {"link_model_version", Privilege::link_model_version, on_model, "model"},
    {"create_model_version", Privilege::link_model_version, on_model, "model"},
    {"use_model", Privilege::use_model, on_model, "model"},
    {"create_tag", Privilege::create_tag, on_metalake},
    {"apply_tag", Privilege::apply_tag, on_metalake | types({CatalogType::tag})},
    {"view_tag", Privilege::view_tag, on_metalake | types({CatalogType::tag})},
    {"create_policy", Privilege::create_policy, on_metalake},
    {"apply_policy", Privilege::apply_policy, on_metalake | types({CatalogType::policy})},
    {"register_job_template", Privilege::register_job_template, on_metalake},
    {"use_job_template", Privilege::use_job_template, on_metalake},
    {"run_job", Privilege::run_job, on_metalake},
    {"create_view", Privilege::create_view, on_schema, "relational"},
    {"select_view", Privilege::select_view, on_view, "relational"},
    {"register_function", Privilege::register_function, on_schema},
    {"execute_function", Privilege::execute_function, on_function},
    {"modify_function", Privilege::modify_function, on_function},
};

const PrivilegeForm* form_named(std::string_view name) {
  const auto* const found = std::ranges::find(forms, name, &PrivilegeForm::name);
  return found == std::end(forms) ? nullptr : found;
}

Result<stored::CatalogPrivilege> read_privilege(const json::value& value) {
  TRY_ASSIGN(RequestFields fields, RequestFields::of(value, "privilege"));
  TRY_ASSIGN(const std::string name, fields.required_text("name"));
  TRY_ASSIGN(const std::string condition, fields.required_text("condition"));
  TRY(fields.finish());
  stored::CatalogPrivilege privilege;
  privilege.set_name(ascii_lowered(name));
  if (form_named(privilege.name()) == nullptr)
    return illegal_argument(fmt::format("There is no privilege {}", quote(name)));
  const std::string kind = ascii_lowered(condition);
  if (kind != "allow" && kind != "deny")
    return illegal_argument(fmt::format("A condition is allow or deny, not {}", quote(condition)));
  privilege.set_deny(kind == "deny");
  return privilege;
}

}  // namespace

PrivilegeSet privilege_named(std::string_view name) {
  const PrivilegeForm* const form = form_named(name);
  return form == nullptr ? 0 : privileges(form->privilege);
}

Result<std::vector<stored::CatalogPrivilege>> read_privileges(const json::value* list) {
  if (list == nullptr || !list->is_array() || list->as_array().empty())
    return illegal_argument("privileges cannot be null or empty");
  std::vector<stored::CatalogPrivilege> privileges;
  for (const json::value& value : list->as_array()) {
    TRY_ASSIGN(stored::CatalogPrivilege privilege, read_privilege(value));
    const auto same = std::ranges::find_if(
        privileges, [&](const auto& other) { return other.name() == privilege.name(); });
    if (same == privileges.end())
      privileges.push_back(std::move(privilege));
    else if (same->deny() != privilege.deny())
      return illegal_privilege(fmt::format(
          "Doesn't support duplicated privilege name {} with different condition", same->name()));
  }
  return privileges;
}

Status check_binding(const stored::CatalogPrivilege& privilege, const EntityPath& object) {
  const PrivilegeForm* const form = form_named(privilege.name());
  if (form != nullptr && (form->types >> static_cast<unsigned>(object.type) & 1) != 0) return {};
  return illegal_privilege(fmt::format("Securable object {} type {} doesn't support privilege {}",
                                       to_string(object), catalog_word(object.type).name,
                                       privilege.name()));
}

std::string_view catalog_type_for(const stored::CatalogPrivilege& privilege) {
  const PrivilegeForm* const form = form_named(privilege.name());
  return form == nullptr ? std::string_view() : form->catalog_type;
}

}  // namespace trellis
