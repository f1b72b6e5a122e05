#include "rest/catalog_gate.h"

#include <fmt/format.h>

#include <algorithm>

#include "catalog/owners.h"
#include "catalog/secrets.h"
#include "net/ascii.h"
#include "rest/request_reading.h"

namespace trellis {
namespace {

bool needs_authorization(const CatalogRoute& route) {
  const bool is_about_users = route.type == CatalogType::user || route.type == CatalogType::group ||
                              route.type == CatalogType::role;
  return route.noun == "owner" || route.noun == "permission" ||
         (is_about_users && route.under != CatalogRoute::Under::api);
}

Error forbidden_to(const CatalogRequest& request, std::string_view what) {
  std::string_view operation = request.route.operation;
  if (operation.empty())  // of credentials, and of a connection that is tested
    operation = request.route.method == HttpMethod::get ? "LOAD" : "CREATE";
  return forbidden(fmt::format("User '{}' is not authorized to perform operation '{}' on '{}'",
                               request.user.user, operation, what));
}

// What a list or something new stands in is what they are refused on.
Error forbidden_to(const CatalogRequest& request) {
  if (is_about_object(request.route)) return forbidden_to(request, request.names[2]);
  if (request.names.empty()) return forbidden_to(request, "metalakes");
  return forbidden_to(request, request.subject.empty() ? request.parent : request.subject);
}

PrivilegeSet privileges_to_create(CatalogType type) {
  switch (type) {
    case CatalogType::catalog: return privileges(Privilege::create_catalog);
    case CatalogType::schema: return privileges(Privilege::create_schema);
    case CatalogType::table: return privileges(Privilege::create_table);
    case CatalogType::topic: return privileges(Privilege::create_topic);
    case CatalogType::fileset: return privileges(Privilege::create_fileset);
    case CatalogType::model: return privileges(Privilege::register_model);
    case CatalogType::view: return privileges(Privilege::create_view);
    case CatalogType::function: return privileges(Privilege::register_function);
    case CatalogType::tag: return privileges(Privilege::create_tag);
    case CatalogType::policy: return privileges(Privilege::create_policy);
    case CatalogType::user: return privileges(Privilege::manage_users);
    case CatalogType::group: return privileges(Privilege::manage_groups);
    case CatalogType::role: return privileges(Privilege::create_role);
    default: return 0;
  }
}

PrivilegeSet privileges_to_alter(CatalogType type) {
  switch (type) {
    case CatalogType::table: return privileges(Privilege::modify_table);
    case CatalogType::topic: return privileges(Privilege::produce_topic);
    case CatalogType::fileset: return privileges(Privilege::write_fileset);
    case CatalogType::function: return privileges(Privilege::modify_function);
    default: return 0;
  }
}

PrivilegeSet privileges_to_drop(CatalogType type) {
  switch (type) {
    case CatalogType::user: return privileges(Privilege::manage_users);
    case CatalogType::group: return privileges(Privilege::manage_groups);
    default: return 0;  // its owner, or the owner of what it stands in
  }
}

EntityPath metalake_of(const CatalogRequest& request) {
  return {CatalogType::metalake, {request.names[0]}};
}

// Something new in the place that the request names.
EntityPath path_of_child(const CatalogRequest& request) {
  EntityPath path{request.route.type, request.parent_path().names};
  path.names.emplace_back();
  return path;
}

Result<bool> may_use_object(const CatalogRequest& request) {
  const CatalogAccess& access = *request.access;
  const CatalogRoute& route = request.route;
  const auto path = object_path(request);
  if (!path) return true;  // the handler says what is wrong with it
  if (route.noun == "owner" && route.method != HttpMethod::get) return access.may(*path, 0);
  if (route.noun == "statistic" && route.operation != "LIST")
    return access.may(*path, privileges(Privilege::modify_table));
  return access.may_load(*path);
}

// users/{user}/grant, roles/{role}/{type}/{fullName}/grant, roles/{role}
Result<bool> may_grant(const CatalogRequest& request) {
  const CatalogAccess& access = *request.access;
  if (request.names.size() < 4) return access.may_manage_grants(metalake_of(request));
  const auto path = object_path(request, 2);
  if (!path) return true;
  return access.may_manage_grants(*path);
}

bool is_self(const CatalogRequest& request) {
  if (request.names.size() < 2) return false;
  return request.route.type == CatalogType::user && request.names[1] == request.user.user;
}

// GET .../tables/{table}?privileges=modify_table: for whoever is about to change it.
Result<bool> asks_to_modify(const CatalogRequest& request) {
  if (request.route.type != CatalogType::table || request.route.operation != "LOAD") return false;
  TRY_ASSIGN(const auto given, query_text(request.http, "privileges"));
  if (!given) return false;
  for (std::string_view rest = *given; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    if (equals_ignoring_case(one, "modify_table")) return true;
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
  }
  return false;
}

Result<bool> may_read(const CatalogRequest& request) {
  const CatalogAccess& access = *request.access;
  const CatalogRoute& route = request.route;
  if (route.path == "/changes") return access.may(metalake_of(request), 0);
  if (route.path == "/search") return true;
  if (route.operation == "LIST_FILES")
    return access.may(request.path(), privileges(Privilege::read_fileset));
  const bool is_list = route.operation == "LIST" && route.noun.empty();
  if (is_list || route.path.ends_with(":batchGet")) {
    TRY_ASSIGN(const bool of_dropped, catalog_flag(request, "dropped"));
    if (of_dropped) return access.may(path_of_child(request), 0);
    return access.may_load(request.parent_path());
  }
  const EntityPath path = request.path();
  TRY_ASSIGN(const bool to_modify, asks_to_modify(request));
  if (to_modify) return access.may(path, privileges(Privilege::modify_table));
  TRY_ASSIGN(const bool may, access.may_load(path));
  if (may || is_self(request)) return true;
  if (route.type != CatalogType::role) return false;
  TRY_ASSIGN(const EntityWay way, find_way(*request.user.data.tenant, path));
  return way.complete() &&
         std::ranges::find(access.roles(), way.ref()) != access.roles().end();  // it has the role
}

Result<bool> may_call(const CatalogRequest& request) {
  const CatalogAccess& access = *request.access;
  const CatalogRoute& route = request.route;
  if (!access.user()) return false;
  if (route.noun == "permission") return may_grant(request);
  if (is_about_object(route)) return may_use_object(request);
  const bool is_load = route.path.ends_with(":batchGet");
  if (route.method == HttpMethod::get || is_load) return may_read(request);
  if (route.noun == "partition")
    return access.may(request.path(), privileges_to_alter(CatalogType::table));
  if (route.operation == "LINK")
    return access.may(request.path(), privileges(Privilege::link_model_version));
  const bool makes = route.operation == "CREATE" || route.operation == "REGISTER" ||
                     route.operation.empty();  // a connection that is tested
  if (makes) return access.may(path_of_child(request), privileges_to_create(route.type));
  if (route.operation == "ALTER")
    return access.may(request.path(), privileges_to_alter(route.type));
  return access.may(request.path(), privileges_to_drop(route.type));
}

// Without a metalake: whoever may write everything in the keyspace makes metalakes, and sees those
// that were dropped. A list leaves out those that are not the caller's.
Status check_above_metalakes(const CatalogRequest& request) {
  if (request.user.data.caller.role >= Role::admin) return {};
  if (request.route.method != HttpMethod::get) return forbidden_to(request);
  TRY_ASSIGN(const bool of_dropped, catalog_flag(request, "dropped"));
  return of_dropped ? Status(forbidden_to(request)) : Status();
}

// Where there is no metalake nothing was checked, so no handler may find one that has come since.
Result<std::optional<HttpResponse>> answer_without_metalake(const CatalogRequest& request) {
  const CatalogRoute& route = request.route;
  if (route.type == CatalogType::metalake && route.operation == "UNDELETE") {
    TRY(check_above_metalakes(request));
    return std::optional<HttpResponse>();
  }
  const bool drops = route.method == HttpMethod::del &&
                     (route.type == CatalogType::metalake || route.type == CatalogType::catalog);
  if (drops) return std::optional(catalog_answer(",\"dropped\":false"));
  return no_such(CatalogType::metalake, request.names[0]);
}

}  // namespace

Result<std::optional<HttpResponse>> check_catalog_access(CatalogRequest& request) {
  std::optional<HttpResponse> go_on;
  const CatalogRoute& route = request.route;
  if (!request.context.options.catalog_authorization) {
    if (!needs_authorization(route)) return go_on;
    return Error{Code::unsupported,
                 "Authorization is off: start the server with --catalog-authorization on",
                 "unsupported"};
  }
  if (request.names.empty()) {
    TRY(check_above_metalakes(request));
    return go_on;
  }
  TRY_ASSIGN(request.access,
             CatalogAccess::of(request.catalog(), request.call(), request.names[0]));
  if (!request.access) return answer_without_metalake(request);
  TRY_ASSIGN(const bool may, may_call(request));
  if (!may) return forbidden_to(request);
  return go_on;
}

Status require_access(const CatalogRequest& request, const EntityPath& path, PrivilegeSet any_of) {
  if (!request.access) return {};
  TRY_ASSIGN(const bool may, request.access->may(path, any_of));
  if (may) return {};
  const bool is_new = path.name().empty();
  return forbidden_to(request, is_new ? path.names[path.names.size() - 2] : path.name());
}

Result<bool> hide_secrets(const std::optional<CatalogAccess>& access, Entity& catalog) {
  if (!access) return false;
  // Asked of what was loaded, not of its path: another may have that by now.
  TRY_ASSIGN(const bool is_owner, access->owns(catalog));
  return !is_owner && hide_secrets(catalog.stored);
}

Result<std::vector<bool>> visible_members(const CatalogRequest& request, CatalogType type,
                                          std::span<const CatalogRef> refs) {
  if (!request.access) return std::vector<bool>(refs.size(), true);
  TRY_ASSIGN(const ChildFilter filter,
             ChildFilter::of(*request.access, metalake_of(request), type));
  return filter.keep(refs);
}

Result<CatalogExtra> extra_of_create(const CatalogRequest& request, const EntityPath& path,
                                     size_t before) {
  if (!request.context.options.catalog_authorization) return CatalogExtra();
  return owned_by_creator(request.catalog(), request.call(), path, before);
}

}  // namespace trellis
