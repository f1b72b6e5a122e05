// Roles: what they may do with which things, and who has them.
//
// Errors: illegal_argument, illegal_privilege, illegal_role, illegal_metadata_object,
// no_such_metadata_object, those of catalog.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/privileges.h"
#include "catalog/request_fields.h"

namespace trellis {

// {"fullName","type","privileges":[...]}
struct SecurableObject {
  EntityPath path;
  std::vector<stored::CatalogPrivilege> privileges;
};

// A thing by its type, in any case, and its names joined by dots, without the metalake's.
Result<EntityPath> object_named(const std::string& metalake, std::string_view type,
                                std::string_view full_name);

struct RoleDraft {
  stored::CatalogEntity entity;
  std::vector<SecurableObject> objects;
};
// {"name","properties","securableObjects":[...]}
Result<RoleDraft> read_role(const std::string& metalake, const json::value& request);
// {"overrides":[...]}
Result<std::vector<SecurableObject>> read_overrides(const std::string& metalake,
                                                    const json::value& request);
// {"privileges":[...]}
Result<std::vector<stored::CatalogPrivilege>> read_grant(const json::value& request);
// {"roleNames":[...]}
Result<std::vector<std::string>> read_role_names(const json::value& request);
// {"name","externalId","enabled"} of a user or group.
Result<stored::CatalogEntity> read_principal(CatalogType type, const json::value& request);

// The extra's paths follow those of the draft's objects.
Result<Entity> create_role(Catalog& catalog, const CatalogCall& call, const EntityPath& path,
                           RoleDraft draft, CatalogExtra extra = {});
// Those that live, in the order of their refs.
Result<std::vector<SecurableObject>> objects_of_role(Catalog& catalog, Tenant& tenant,
                                                     const Entity& role);

// With privileges in one role.
inline constexpr size_t role_objects_max = 10'000;
enum class GrantKind : uint8_t {
  grant,
  revoke,
  replace,  // these are all that it may do from now on
};
// `if_match`: as in AlterOptions.
Result<Entity> change_grants(Catalog& catalog, const CatalogCall& call, const EntityPath& role,
                             GrantKind kind, std::span<const SecurableObject> objects,
                             const std::string& if_match = {});
// Of a user or group. Those it has or has not already are passed over.
Result<Entity> change_roles(const CatalogCall& call, const EntityPath& principal,
                            std::span<const std::string> names, bool grant,
                            const std::string& if_match = {});

// Names of the roles that a user or group has, and of those that may do something with a thing.
Result<std::vector<std::string>> role_names(Catalog& catalog, Tenant& tenant,
                                            const CatalogRef& metalake,
                                            const CatalogRef& principal);
struct RoleName {
  CatalogRef ref;
  std::string name;
};
Result<std::vector<RoleName>> roles_of_object(Catalog& catalog, const CatalogCall& call,
                                              const EntityPath& object);

}  // namespace trellis
