// What is done to one entity, whatever its type: create, load, alter, drop, bring back.
#include <fmt/format.h>

#include "catalog/drafts.h"
#include "catalog/entity_json.h"
#include "catalog/partitions.h"
#include "catalog/updates.h"
#include "json/json_body.h"
#include "json/json_text.h"
#include "rest/answers.h"
#include "rest/catalog_answers.h"
#include "rest/catalog_gate.h"
#include "rest/catalog_lists.h"
#include "rest/catalog_routes.h"
#include "rest/entity_tags.h"

namespace trellis {
namespace {

// {"code":0,"table":{...}} with its ETag.
HttpResponse entity_answer(const CatalogRequest& request, const Entity& entity,
                           ShowInUse show_in_use = ShowInUse::yes) {
  const CatalogType type = request.route.type;
  Bytes body = fmt::format("{{\"code\":0,\"{}\":", catalog_word(type).name);
  append_entity(body, type, entity.stored, show_in_use);
  body += '}';
  return with_entity_tag(text_answer(std::move(body)), entity);
}

EntityPath path_of_new(const CatalogRequest& request, const stored::CatalogEntity& draft) {
  EntityPath path{request.route.type, request.parent_path().names};
  path.names.push_back(draft.name());
  return path;
}

Result<HttpResponse> create_entity(CatalogRequest& request) {
  TRY_ASSIGN(stored::CatalogEntity draft, read_draft(request));
  return create_drafted(request, std::move(draft));
}

Result<HttpResponse> load_entity(CatalogRequest& request) {
  TRY_ASSIGN(Entity entity, request.catalog().load(request.call(), request.path()));
  bool has_hidden = false;
  if (request.route.type == CatalogType::catalog) {
    TRY_ASSIGN(has_hidden, hide_secrets(request.access, entity));
  }
  HttpResponse response = entity_answer(request, entity);
  if (has_hidden) {
    // Its tag is that of what owners see, whom it must not tell that they have it.
    response.headers.pop_back();
    return response;
  }
  const std::string_view known = request.http.header("If-None-Match");
  if (!known.empty() && names_tag(known, response.headers.back().value, TagMatch::weak)) {
    response.status = 304;
    response.content_type = {};
    response.body.clear();
  }
  return response;
}

// {"updates":[...]}: all of them, in order, or none.
Result<HttpResponse> alter_entity(CatalogRequest& request) {
  TRY_ASSIGN(const NamedBody named, read_named_body(request));
  TRY_ASSIGN(const CatalogUpdates updates,
             CatalogUpdates::read(request.route.type, named.body, named.pattern));
  if (updates.new_schema()) {
    EntityPath moved{request.route.type, request.parent_path().names};
    moved.names[2] = *updates.new_schema();
    moved.names.emplace_back();
    TRY(require_access(request, moved, privileges(Privilege::create_table)));
  }
  AlterOptions options{.new_schema = updates.new_schema()};
  TRY_ASSIGN(options.if_match, read_if_match(request));
  TRY_ASSIGN(const Entity altered,
             request.catalog().alter(
                 request.call(), request.path(),
                 [&](Entity& entity) { return updates.apply(entity.stored); }, options));
  return entity_answer(request, altered);
}

Result<HttpResponse> drop_entity(CatalogRequest& request) {
  DropOptions options;
  TRY_ASSIGN(const bool force, catalog_flag(request, "force"));
  TRY_ASSIGN(const bool cascade, catalog_flag(request, "cascade"));
  options.force = request.route.type == CatalogType::schema ? cascade : force;
  TRY_ASSIGN(options.if_match, read_if_match(request));
  TRY_ASSIGN(const bool dropped, request.catalog().drop(request.call(), request.path(), options));
  return catalog_answer(dropped ? ",\"dropped\":true" : ",\"dropped\":false");
}

// Without a body, or with {}.
Result<HttpResponse> undelete_entity(CatalogRequest& request) {
  if (!request.http.body.empty()) {
    TRY_ASSIGN(const json::value body, read_catalog_body(request));
    TRY_ASSIGN(const JsonMembers members, JsonMembers::of(body, "the body"));
    TRY(members.finish());
  }
  TRY_ASSIGN(const Entity entity, request.catalog().undelete(request.call(), request.path()));
  return entity_answer(request, entity);
}

// {"inUse":true}
Result<HttpResponse> set_in_use(CatalogRequest& request) {
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  const json::value* const in_use = members.find("inUse");
  TRY(members.finish());
  if (in_use == nullptr || !in_use->is_bool()) return bad_body("it needs inUse, true or false");
  TRY_ASSIGN(const std::string if_match, read_if_match(request));
  TRY(request.catalog().set_in_use(request.call(), request.path(), in_use->as_bool(), if_match));
  return catalog_answer();
}

// Nothing is connected to. HTTP says 200 whatever comes of it.
Result<HttpResponse> tested(const Status& checked) {
  if (checked) return catalog_answer();
  if (gravitino_error(checked.error()).status >= 500) return Error(checked.error());
  HttpResponse response = catalog_error(checked.error(), checked.error().message);
  response.status = 200;
  return response;
}

// It fails if the catalog could not be created.
Result<HttpResponse> test_connection(CatalogRequest& request) {
  const auto check = [&]() -> Status {
    TRY_ASSIGN(const stored::CatalogEntity draft, read_draft(request));
    const EntityPath path = path_of_new(request, draft);
    const auto there = request.catalog().load(request.call(), path);
    if (there) return already_exists(CatalogType::catalog, path.name());
    if (there.error().reason == "no_such_catalog") return {};
    return Error(there.error());
  };
  return tested(check());
}

// Of one that is there, as it would be with the updates of the body, if there is one.
Result<HttpResponse> test_catalog(CatalogRequest& request) {
  const auto check = [&]() -> Status {
    CatalogUpdates updates;
    if (!request.http.body.empty()) {
      TRY_ASSIGN(const json::value body, read_catalog_body(request));
      TRY_ASSIGN(updates, CatalogUpdates::read(CatalogType::catalog, body));
    }
    TRY_ASSIGN(Entity catalog, request.catalog().load(request.call(), request.path()));
    if (catalog.stored.disabled()) return not_in_use(CatalogType::catalog, catalog.name());
    return updates.apply(catalog.stored);
  };
  return tested(check());
}

constexpr size_t any_body = catalog_body_bytes_max;

std::vector<CatalogRoute> routes_of_levels() {
  using enum HttpMethod;
  using enum CatalogRoute::Under;
  constexpr auto m = CatalogType::metalake;
  constexpr auto c = CatalogType::catalog;
  constexpr auto s = CatalogType::schema;
  return {
      {get, api, "/metalakes", m, "LIST", list_entities_in_full},
      {post, api, "/metalakes", m, "CREATE", create_entity, any_body},
      {get, metalake, "", m, "LOAD", load_entity},
      {put, metalake, "", m, "ALTER", alter_entity, any_body},
      {patch, metalake, "", m, "ALTER", set_in_use, any_body},
      {del, metalake, "", m, "DROP", drop_entity},
      {post, metalake, "/undelete", m, "UNDELETE", undelete_entity, any_body},

      {get, metalake, "/catalogs", c, "LIST", list_entities},
      {post, metalake, "/catalogs", c, "CREATE", create_entity, any_body},
      {post, metalake, "/catalogs/testConnection", c, "", test_connection, any_body, "", true},
      {post, catalog, "/testConnection", c, "TEST", test_catalog, any_body, "", true},
      {get, catalog, "", c, "LOAD", load_entity},
      {put, catalog, "", c, "ALTER", alter_entity, any_body},
      {patch, catalog, "", c, "ALTER", set_in_use, any_body},
      {del, catalog, "", c, "DROP", drop_entity},
      {post, catalog, "/undelete", c, "UNDELETE", undelete_entity, any_body},

      {get, catalog, "/schemas", s, "LIST", list_entities},
      {post, catalog, "/schemas", s, "CREATE", create_entity, any_body},
      {get, schema, "", s, "LOAD", load_entity},
      {put, schema, "", s, "ALTER", alter_entity, any_body},
      {del, schema, "", s, "DROP", drop_entity},
      {post, schema, "/undelete", s, "UNDELETE", undelete_entity, any_body},
  };
}

// Of tables and what else stands in a schema, all alike.
void add_leaf_routes(CatalogType type, std::string_view create, CatalogHandler create_one,
                     std::vector<CatalogRoute>& routes) {
  using enum HttpMethod;
  constexpr auto schema = CatalogRoute::Under::schema;
  const std::string_view many = keep_text(fmt::format("/{}", catalog_plural(type)));
  const std::string_view batch = keep_text(fmt::format("{}:batchGet", many));
  const std::string_view one = keep_text(fmt::format("{}/{{{}}}", many, catalog_word(type).name));
  const std::string_view undelete = keep_text(fmt::format("{}/undelete", one));
  routes.push_back({get, schema, many, type, "LIST", list_entities});
  routes.push_back({post, schema, many, type, create, create_one, any_body});
  routes.push_back({post, schema, batch, type, "LOAD", get_entities, any_body, "", true});
  routes.push_back({get, schema, one, type, "LOAD", load_entity});
  routes.push_back({put, schema, one, type, "ALTER", alter_entity, any_body});
  routes.push_back({del, schema, one, type, "DROP", drop_entity});
  routes.push_back({post, schema, undelete, type, "UNDELETE", undelete_entity, any_body});
}

// Of tags and policies.
void add_label_routes(CatalogType type, std::vector<CatalogRoute>& routes) {
  using enum HttpMethod;
  constexpr auto metalake = CatalogRoute::Under::metalake;
  const std::string_view many = keep_text(fmt::format("/{}", catalog_plural(type)));
  const std::string_view one = keep_text(fmt::format("{}/{{{}}}", many, catalog_word(type).name));
  const std::string_view undelete = keep_text(fmt::format("{}/undelete", one));
  routes.push_back({get, metalake, many, type, "LIST", list_entities});
  routes.push_back({post, metalake, many, type, "CREATE", create_entity, any_body});
  routes.push_back({get, metalake, one, type, "GET", load_entity});
  routes.push_back({put, metalake, one, type, "ALTER", alter_entity, any_body});
  routes.push_back({del, metalake, one, type, "DELETE", drop_entity});
  routes.push_back({post, metalake, undelete, type, "UNDELETE", undelete_entity, any_body});
}

std::vector<CatalogRoute> make_entity_routes() {
  std::vector<CatalogRoute> routes = routes_of_levels();
  add_leaf_routes(CatalogType::table, "CREATE", create_entity, routes);
  add_leaf_routes(CatalogType::topic, "CREATE", create_entity, routes);
  add_leaf_routes(CatalogType::fileset, "CREATE", create_fileset, routes);
  add_leaf_routes(CatalogType::view, "CREATE", create_entity, routes);
  add_leaf_routes(CatalogType::model, "REGISTER", create_entity, routes);
  add_leaf_routes(CatalogType::function, "REGISTER", create_entity, routes);
  add_label_routes(CatalogType::tag, routes);
  add_label_routes(CatalogType::policy, routes);
  for (CatalogRoute& route : routes)
    for (const CatalogHandler one_step :
         {create_entity, create_fileset, alter_entity, drop_entity, undelete_entity, set_in_use})
      if (route.handler == one_step) route.is_one_step = true;
  return routes;
}

}  // namespace

Result<stored::CatalogEntity> read_draft(CatalogRequest& request) {
  TRY_ASSIGN(const NamedBody named, read_named_body(request));
  if (const json::object* object = named.body.if_object()) {
    const json::value* const name = object->if_contains("name");
    if (name != nullptr && name->is_string()) request.subject = name->as_string();
  }
  return draft_of(request.route.type, named.body, named.pattern);
}

Result<HttpResponse> create_drafted(CatalogRequest& request, stored::CatalogEntity draft) {
  const EntityPath path = path_of_new(request, draft);
  TRY_ASSIGN(CatalogExtra extra, extra_of_create(request, path));
  if (draft.has_table()) {
    TRY_ASSIGN(extra, with_assignments(*draft.mutable_table(), std::move(extra)));
  }
  TRY_ASSIGN(const Entity made,
             request.catalog().create(request.call(), path, std::move(draft), extra));
  // As Gravitino does, whose tests look for it.
  const bool is_metalake = request.route.type == CatalogType::metalake;
  return entity_answer(request, made, is_metalake ? ShowInUse::no : ShowInUse::yes);
}

HttpResponse with_entity_tag(HttpResponse response, const Entity& entity) {
  response.headers.push_back({"ETag", fmt::format("\"{}\"", entity_tag(entity))});
  return response;
}

std::span<const CatalogRoute> catalog_entity_routes() {
  static const std::vector<CatalogRoute> routes = make_entity_routes();
  return routes;
}

}  // namespace trellis
