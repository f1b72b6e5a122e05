// Relations between things of one metalake (object to tag, to policy, to owner; user or group to
// role; role to object): rl_ from one end and ri_ from the other, written in one transaction, in
// which both ends live. Whoever reads one looks whether its other end still does.
//
// Grants have a third record, ga_, by which a list finds what differs below one parent.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/record_page.h"

namespace trellis {

struct RelationEnds {
  CatalogRelation relation;
  CatalogRef from;
  CatalogRef to;
};

// What put_relation() and remove_relation() of it write.
void plan_relation(CatalogPlan& plan, const Uuid& metalake, const RelationEnds& ends);
// REQUIRES of all: the plan names it.
Result<std::optional<stored::CatalogRelation>> read_relation(CatalogChange& change,
                                                             const Uuid& metalake,
                                                             const RelationEnds& ends);
// New, or instead of what it was; the audit is set.
Status put_relation(CatalogChange& change, const Uuid& metalake, const RelationEnds& ends,
                    stored::CatalogRelation relation = {});
// Whether it was there.
Result<bool> remove_relation(CatalogChange& change, const Uuid& metalake, const RelationEnds& ends);

// The other ends, dead or alive, in the order of their keys: no more than related_max.
inline constexpr size_t related_max = 10'000;
using RelationGet = FunctionRef<Result<ScanPage>(const ScanRequest&, ScanVisitor)>;
Result<std::vector<CatalogRef>> related_from(RelationGet scan, KeyspaceId keyspace,
                                             const Uuid& metalake, CatalogRelation relation,
                                             const CatalogRef& from);
Result<std::vector<CatalogRef>> related_from(Tenant& tenant, const Uuid& metalake,
                                             CatalogRelation relation, const CatalogRef& from);
Result<std::vector<CatalogRef>> related_from(CatalogChange& change, const Uuid& metalake,
                                             CatalogRelation relation, const CatalogRef& from);
// Appends a page of those that have a relation to `to`.
Result<PageStart> related_to(Tenant& tenant, const Uuid& metalake, CatalogRelation relation,
                             const CatalogRef& to, const PageRequest& page,
                             std::vector<CatalogRef>& refs);
// The record itself, without locks.
Result<std::optional<stored::CatalogRelation>> load_relation(Tenant& tenant, const Uuid& metalake,
                                                             const RelationEnds& ends);

// Tags, policies, users, groups and roles by their refs, those that live, in the order asked for.
// They are read a few at a time: whoever needs little of each keeps only that.
Status visit_live_members(Catalog& catalog, Tenant& tenant, const CatalogRef& metalake,
                          std::span<const CatalogRef> refs, FunctionRef<void(Entity&)> visit);
// All of each.
Result<std::vector<Entity>> live_members(Catalog& catalog, Tenant& tenant,
                                         const CatalogRef& metalake,
                                         std::span<const CatalogRef> refs);

// --- grants ---

// ga_ of a thing that stands in `above` (its last; a metalake: the root).
Bytes grant_key(KeyspaceId keyspace, const CatalogRef& role, std::span<const CatalogRef> above,
                const CatalogRef& ref);
void plan_grant(CatalogPlan& plan, const CatalogRef& role, std::span<const CatalogRef> above,
                const CatalogRef& ref);
// Empty privileges: it goes.
Status put_grant(CatalogChange& change, const CatalogRef& role, std::span<const CatalogRef> above,
                 const CatalogRef& ref, std::span<const stored::CatalogPrivilege> privileges);
Result<std::vector<stored::CatalogPrivilege>> decode_grant(ByteView value);

// A thing that moves below another parent takes its ga_ records along. The plan says whose they
// are; the change starts over if there are others by then.
Result<std::vector<CatalogRef>> plan_grants_move(CatalogPlan& plan, Tenant& tenant,
                                                 const EntityWay& way);
Status move_grants(CatalogChange& change, std::span<const CatalogRef> planned, const EntityWay& way,
                   std::span<const CatalogRef> above);

}  // namespace trellis
