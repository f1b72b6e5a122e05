// Users, groups, roles, permissions and owners. There are none while authorization is off.
#include <fmt/format.h>

#include "catalog/entity_json.h"
#include "catalog/owners.h"
#include "catalog/roles.h"
#include "json/json_text.h"
#include "rest/catalog_gate.h"
#include "rest/catalog_lists.h"
#include "rest/catalog_routes.h"

namespace trellis {
namespace {

EntityPath path_of_named(const CatalogRequest& request, const std::string& name) {
  return {request.route.type, {request.names[0], name}};
}

void append_text_list(Bytes& out, const std::vector<std::string>& texts) {
  out += '[';
  for (const std::string& text : texts) {
    if (out.back() != '[') out += ',';
    append_json_string(out, text);
  }
  out += ']';
}

// --- users and groups ---

Result<HttpResponse> principal_answer(const CatalogRequest& request, const Entity& entity) {
  Bytes members = fmt::format(",\"{}\":", catalog_word(entity.ref.type).name);
  TRY(append_principal(members, request.catalog(), *request.user.data.tenant, entity));
  return with_entity_tag(catalog_answer(members), entity);
}

Result<HttpResponse> add_principal(CatalogRequest& request) {
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(stored::CatalogEntity draft, read_principal(request.route.type, body));
  request.subject = draft.name();
  const EntityPath path = path_of_named(request, draft.name());
  TRY_ASSIGN(const Entity made, request.catalog().create(request.call(), path, std::move(draft)));
  return principal_answer(request, made);
}

Result<HttpResponse> get_principal(CatalogRequest& request) {
  TRY_ASSIGN(const Entity entity, request.catalog().load(request.call(), request.path()));
  return principal_answer(request, entity);
}

Result<HttpResponse> remove_principal(CatalogRequest& request) {
  DropOptions options;
  TRY_ASSIGN(options.if_match, read_if_match(request));
  TRY_ASSIGN(const bool removed, request.catalog().drop(request.call(), request.path(), options,
                                                        unless_it_owns_metalake()));
  return catalog_answer(removed ? ",\"removed\":true" : ",\"removed\":false");
}

Result<HttpResponse> change_roles_of(CatalogRequest& request, bool grant) {
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(const std::vector<std::string> names, read_role_names(body));
  TRY_ASSIGN(const std::string if_match, read_if_match(request));
  TRY_ASSIGN(const Entity entity,
             change_roles(request.call(), request.path(), names, grant, if_match));
  return principal_answer(request, entity);
}
Result<HttpResponse> grant_roles(CatalogRequest& request) { return change_roles_of(request, true); }
Result<HttpResponse> revoke_roles(CatalogRequest& request) {
  return change_roles_of(request, false);
}

// --- roles ---

Result<HttpResponse> role_answer(const CatalogRequest& request, const Entity& role) {
  TRY_ASSIGN(const std::vector<SecurableObject> objects,
             objects_of_role(request.catalog(), *request.user.data.tenant, role));
  Bytes members = ",\"role\":{\"name\":";
  append_json_string(members, role.name());
  append_text_map(members, "properties", role.stored.properties());
  members += ",\"securableObjects\":[";
  for (const SecurableObject& object : objects) {
    if (members.back() != '[') members += ',';
    append_object_name(members, object.path);
    members += ",\"privileges\":[";
    for (const stored::CatalogPrivilege& privilege : object.privileges) {
      if (members.back() != '[') members += ',';
      members += fmt::format("{{\"name\":\"{}\",\"condition\":\"{}\"}}", privilege.name(),
                             privilege.deny() ? "deny" : "allow");
    }
    members += "]}";
  }
  members += "]";
  append_audit(members, role.stored.audit());
  return with_entity_tag(catalog_answer(members + "}"), role);
}

Result<HttpResponse> add_role(CatalogRequest& request) {
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(RoleDraft draft, read_role(request.names[0], body));
  for (SecurableObject& object : draft.objects) TRY(apply_provider(request, object.path));
  request.subject = draft.entity.name();
  const EntityPath path = path_of_named(request, draft.entity.name());
  TRY_ASSIGN(CatalogExtra extra, extra_of_create(request, path, 1 + draft.objects.size()));
  TRY_ASSIGN(const Entity made, create_role(request.catalog(), request.call(), path,
                                            std::move(draft), std::move(extra)));
  return role_answer(request, made);
}

Result<HttpResponse> get_role(CatalogRequest& request) {
  TRY_ASSIGN(const Entity role, request.catalog().load(request.call(), request.path()));
  return role_answer(request, role);
}

Result<HttpResponse> delete_role(CatalogRequest& request) {
  DropOptions options;
  TRY_ASSIGN(options.if_match, read_if_match(request));
  TRY_ASSIGN(const bool dropped, request.catalog().drop(request.call(), request.path(), options));
  return catalog_answer(fmt::format(",\"dropped\":{0},\"deleted\":{0}", dropped));
}

Result<HttpResponse> list_roles_of_object(CatalogRequest& request) {
  TRY(check_paging(request, Paging::none));
  TRY_ASSIGN(const EntityPath object, object_path(request));
  TRY_ASSIGN(const std::vector<RoleName> roles,
             roles_of_object(request.catalog(), request.call(), object));
  std::vector<CatalogRef> refs;
  for (const RoleName& role : roles) refs.push_back(role.ref);
  TRY_ASSIGN(const std::vector<bool> seen, visible_members(request, CatalogType::role, refs));
  std::vector<std::string> names;
  for (size_t i = 0; i < roles.size(); i++)
    if (seen[i]) names.push_back(roles[i].name);
  Bytes members = ",\"names\":";
  append_text_list(members, names);
  return catalog_answer(members);
}

// --- permissions ---

Result<HttpResponse> change_privileges(CatalogRequest& request, GrantKind kind) {
  SecurableObject object;
  TRY_ASSIGN(object.path, object_path(request, 2));
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(object.privileges, read_grant(body));
  TRY_ASSIGN(const std::string if_match, read_if_match(request));
  TRY_ASSIGN(const Entity role, change_grants(request.catalog(), request.call(), request.path(),
                                              kind, std::span(&object, 1), if_match));
  return role_answer(request, role);
}
Result<HttpResponse> grant_privileges(CatalogRequest& request) {
  return change_privileges(request, GrantKind::grant);
}
Result<HttpResponse> revoke_privileges(CatalogRequest& request) {
  return change_privileges(request, GrantKind::revoke);
}

Result<HttpResponse> override_privileges(CatalogRequest& request) {
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(std::vector<SecurableObject> objects, read_overrides(request.names[0], body));
  for (SecurableObject& object : objects) TRY(apply_provider(request, object.path));
  TRY_ASSIGN(const std::string if_match, read_if_match(request));
  TRY_ASSIGN(const Entity role, change_grants(request.catalog(), request.call(), request.path(),
                                              GrantKind::replace, objects, if_match));
  return role_answer(request, role);
}

// --- owners ---

Result<HttpResponse> get_owner(CatalogRequest& request) {
  TRY_ASSIGN(const EntityPath object, object_path(request));
  TRY_ASSIGN(const auto owner, owner_of(request.catalog(), request.call(), object));
  if (!owner) return catalog_answer();
  Bytes members = ",\"owner\":{\"name\":";
  append_json_string(members, owner->name());
  members += fmt::format(",\"type\":\"{}\"}}", catalog_word(owner->type).name);
  return catalog_answer(members);
}

Result<HttpResponse> put_owner(CatalogRequest& request) {
  TRY_ASSIGN(const EntityPath object, object_path(request));
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(const EntityPath owner, read_owner(request.names[0], body));
  TRY(set_owner(request.call(), object, owner));
  return catalog_answer(",\"set\":true");
}

std::vector<CatalogRoute> make_user_routes() {
  using enum HttpMethod;
  using enum CatalogRoute::Under;
  constexpr auto u = CatalogType::user;
  constexpr auto g = CatalogType::group;
  constexpr auto r = CatalogType::role;
  constexpr size_t any = catalog_body_bytes_max;
  constexpr std::string_view permission = "permission";
  return {
      {get, metalake, "/users", u, "LIST", list_entities},
      {post, metalake, "/users", u, "CREATE", add_principal, any},
      {get, metalake, "/users/{user}", u, "GET", get_principal},
      {del, metalake, "/users/{user}", u, "REMOVE", remove_principal},

      {get, metalake, "/groups", g, "LIST", list_entities},
      {post, metalake, "/groups", g, "CREATE", add_principal, any},
      {get, metalake, "/groups/{group}", g, "GET", get_principal},
      {del, metalake, "/groups/{group}", g, "REMOVE", remove_principal},

      {get, metalake, "/roles", r, "LIST", list_entities},
      {post, metalake, "/roles", r, "CREATE", add_role, any},
      {get, metalake, "/roles/{role}", r, "GET", get_role},
      {del, metalake, "/roles/{role}", r, "DELETE", delete_role},
      {get, object, "/roles", r, "LIST", list_roles_of_object},

      {put, metalake, "/permissions/users/{user}/grant", u, "GRANT", grant_roles, any, permission},
      {put, metalake, "/permissions/users/{user}/revoke", u, "REVOKE", revoke_roles, any,
       permission},
      {put, metalake, "/permissions/groups/{group}/grant", g, "GRANT", grant_roles, any,
       permission},
      {put, metalake, "/permissions/groups/{group}/revoke", g, "REVOKE", revoke_roles, any,
       permission},
      {put, metalake, "/permissions/roles/{role}", r, "UPDATE", override_privileges, any,
       permission},
      {put, metalake, "/permissions/roles/{role}/{type}/{fullName}/grant", r, "GRANT",
       grant_privileges, any, permission},
      {put, metalake, "/permissions/roles/{role}/{type}/{fullName}/revoke", r, "REVOKE",
       revoke_privileges, any, permission},

      {get, metalake, "/owners/{type}/{fullName}", CatalogType::metalake, "GET", get_owner, 0,
       "owner"},
      {put, metalake, "/owners/{type}/{fullName}", CatalogType::metalake, "SET", put_owner, any,
       "owner"},
  };
}

}  // namespace

std::span<const CatalogRoute> catalog_user_routes() {
  static const std::vector<CatalogRoute> routes = make_user_routes();
  return routes;
}

}  // namespace trellis
