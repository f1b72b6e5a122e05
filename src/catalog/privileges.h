// What roles may be allowed or denied, and on what (Gravitino's names). One privilege is one bit.
//
//   TRY(check_privilege("select_table", object));
//   if (rights.has(Privilege::use_schema)) ...
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "catalog.pb.h"
#include "catalog/entity.h"
#include "catalog/request_fields.h"

namespace trellis {

enum class Privilege : uint8_t {
  create_catalog,
  use_catalog,
  create_schema,
  use_schema,
  create_table,
  modify_table,
  select_table,
  create_fileset,
  write_fileset,
  read_fileset,
  create_topic,
  produce_topic,
  consume_topic,
  manage_users,
  manage_groups,
  create_role,
  manage_grants,
  register_model,
  link_model_version,
  use_model,
  create_tag,
  apply_tag,
  view_tag,
  create_policy,
  apply_policy,
  register_job_template,
  use_job_template,
  run_job,
  create_view,
  select_view,
  register_function,
  execute_function,
  modify_function,
};

using PrivilegeSet = uint64_t;
template <class... P>
constexpr PrivilegeSet privileges(P... each) {
  return (PrivilegeSet{0} | ... | (PrivilegeSet{1} << static_cast<unsigned>(each)));
}

// 0: there is none of that name. Some have older names, too.
PrivilegeSet privilege_named(std::string_view name);

// [{"name":"select_table","condition":"allow"}], in lower case, each name once. illegal_argument;
// illegal_privilege if one is both allowed and denied.
Result<std::vector<stored::CatalogPrivilege>> read_privileges(const json::value* list);
// illegal_privilege: it cannot be bound to things of the type.
Status check_binding(const stored::CatalogPrivilege& privilege, const EntityPath& object);
// The type that a catalog must have for it to make sense there or on a schema; empty: any.
std::string_view catalog_type_for(const stored::CatalogPrivilege& privilege);

}  // namespace trellis
