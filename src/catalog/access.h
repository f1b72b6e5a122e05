// Who may do what, when authorization is on (docs/decisions/0009-catalog.md).
//
//   TRY_ASSIGN(const auto access, CatalogAccess::of(catalog, call, "lake"));
//   TRY_ASSIGN(const bool may, access->may(table, privileges(Privilege::select_table)));
//
// A privilege holds on a thing and on all below it; a deny anywhere on the way wins. To reach
// something one needs use_catalog and use_schema on the way, which owners of the metalake and the
// catalog do not. One check reads one grant for each role and level: O(depth).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/privileges.h"

namespace trellis {

// What roles say about one way.
struct GrantSum {
  PrivilegeSet allowed = 0;
  PrivilegeSet denied = 0;
  void add(std::span<const stored::CatalogPrivilege> privileges);
  void add(const GrantSum& other) {
    allowed |= other.allowed;
    denied |= other.denied;
  }
  bool has(PrivilegeSet any_of) const { return (allowed & ~denied & any_of) != 0; }
};

struct CatalogRights {
  GrantSum grants;
  std::vector<bool> owns;  // by level, from the metalake down
  bool owns_level(size_t level) const { return level < owns.size() && owns[level]; }
};
// With a thing of the type, which need not be there: what it would stand in is enough.
bool is_allowed(const CatalogRights& rights, CatalogType type, PrivilegeSet any_of);

// What one needs to see a thing of the type.
PrivilegeSet privileges_to_load(CatalogType type);

// One caller in one metalake, at one instant.
class CatalogAccess {
 public:
  // Absent: there is no such metalake.
  static Result<std::optional<CatalogAccess>> of(Catalog& catalog, const CatalogCall& call,
                                                 const std::string& metalake);

  const CatalogRef& metalake() const { return metalake_; }
  // Absent: none of its users, who may do nothing in it.
  const std::optional<CatalogRef>& user() const { return user_; }
  std::span<const CatalogRef> roles() const { return roles_; }

  Result<CatalogRights> rights_on(std::span<const CatalogRef> refs) const;
  // It, or something that it stands in.
  Result<bool> owns(const Entity& entity) const;
  // With what the path names, or would.
  Result<bool> may(const EntityPath& path, PrivilegeSet any_of) const;
  Result<bool> may_load(const EntityPath& path) const {
    return may(path, privileges_to_load(path.type));
  }
  // What the path names, or something that it stands in.
  Result<bool> may_manage_grants(const EntityPath& path) const;

 private:
  friend class ChildFilter;
  CatalogAccess(Tenant& tenant, const CatalogRef& metalake)
      : tenant_(&tenant), metalake_(metalake) {}

  Tenant* tenant_;
  CatalogRef metalake_;
  std::optional<CatalogRef> user_;
  std::vector<CatalogRef> roles_;
};

// Which things in one place a caller may see: what holds for the place is asked once, then one scan
// for each role finds those for which something else does, or if there are too many to keep, they
// are asked for with each page.
class ChildFilter {
 public:
  static Result<ChildFilter> of(const CatalogAccess& access, const EntityPath& parent,
                                CatalogType type, size_t others_max = 10'000);
  // Nothing has to be left out.
  bool keeps_all() const { return all_; }
  // Which of them are seen.
  Result<std::vector<bool>> keep(std::span<const CatalogRef> refs) const;

 private:
  ChildFilter(const CatalogAccess& access, CatalogType type) : access_(access), type_(type) {}

  CatalogAccess access_;
  CatalogType type_;
  CatalogRights rights_;
  Status read_others(const EntityWay& way, const CatalogRef& role, size_t others_max);
  Result<std::vector<GrantSum>> others_of(std::span<const CatalogRef> refs) const;

  CatalogRef parent_;
  std::map<CatalogRef, GrantSum> others_;
  bool too_many_ = false;  // for others_, which is empty
  bool all_ = false;
};

// Which metalakes have a user of that name.
Result<std::vector<bool>> metalakes_with_user(Tenant& tenant, const std::string& user,
                                              std::span<const CatalogRef> metalakes);

}  // namespace trellis
