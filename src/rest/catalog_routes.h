// Gravitino's REST API: tables of routes, one line each, and what their handlers share.
//
//   {get, Under::schema, "/tables/{table}", CatalogType::table, "LOAD", load_entity},
//
// Each path is there twice, as /api/metalakes/... and /k/{keyspace}/api/metalakes/... A handler
// asks the catalog for one thing and says how the answer looks; what it means is decided in
// src/catalog. Unknown members of bodies are refused; unknown parameters of queries are ignored, as
// newer clients send some.
#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/access.h"
#include "catalog/catalog.h"
#include "catalog/provider_rules.h"
#include "net/http_types.h"
#include "rest/gate.h"
#include "rest/rest.h"

namespace trellis {

struct CatalogRoute;

// A request that has come through the gate.
struct CatalogRequest {
  const RestContext& context;
  const HttpRequest& http;
  const CatalogRoute& route;
  UserCall user;
  std::span<const std::string> names = {};  // of the path, decoded, without the keyspace's
  std::vector<std::string> own_names = {};  // what `names` are then, if the provider changes some
  // What messages say that it is about. Those who learn a name from the body set it.
  std::string subject = {};
  std::string parent = {};
  // Of the caller, in the metalake. Absent: authorization is off.
  std::optional<CatalogAccess> access = {};

  Catalog& catalog() const { return context.catalog; }
  CatalogCall call() const { return {*user.data.tenant, user.data.caller, user.user}; }
  // What the path names, and what that stands in, or what a new one would.
  EntityPath path() const;
  EntityPath parent_path() const;
};

using CatalogHandler = Result<HttpResponse> (*)(CatalogRequest& request);

struct CatalogRoute {
  enum class Under : uint8_t { api, metalake, catalog, schema, table, model, object };

  HttpMethod method;
  Under under;
  std::string_view path;  // below that; static text
  CatalogType type;
  std::string_view operation;  // as messages name it
  CatalogHandler handler;
  size_t body_bytes_max = 0;   // 0: it takes none
  std::string_view noun = {};  // as messages name it, if not by its type
  bool reads = false;          // though it is no GET
  // Its handler is one transaction, with nothing behind it that may fail: it may begin on a loop.
  bool is_one_step = false;
};

// Whether its path has {type}/{fullName} behind the metalake.
bool is_about_object(const CatalogRoute& route);

// A table with its columns, and what escapes make of it.
constexpr size_t catalog_body_bytes_max = 32 * 1024 * 1024;

// The parts of the table.
std::span<const CatalogRoute> catalog_server_routes();
std::span<const CatalogRoute> catalog_entity_routes();
std::span<const CatalogRoute> catalog_fileset_routes();
std::span<const CatalogRoute> catalog_member_routes();
std::span<const CatalogRoute> catalog_feed_routes();
std::span<const CatalogRoute> catalog_label_routes();
std::span<const CatalogRoute> catalog_user_routes();

Result<HttpResponse> create_fileset(CatalogRequest& request);

// Routes refer to texts that are kept for ever: each once.
std::string_view keep_text(std::string text);

// The body, all of it.
Result<boost::json::value> read_catalog_body(const CatalogRequest& request);
// The same as the provider of its catalog wants names to be, and what they may be like.
struct NamedBody {
  boost::json::value body;
  NamePattern pattern = NamePattern::plain;
};
Result<NamedBody> read_named_body(const CatalogRequest& request);
// A path as the provider of its catalog wants names to be.
Status apply_provider(const CatalogRequest& request, EntityPath& path);
// true and True, false and False; absent is false.
Result<bool> catalog_flag(const CatalogRequest& request, std::string_view name);
// Of the header If-Match; empty: whatever it is.
Result<std::string> read_if_match(const CatalogRequest& request);

// Of "application/vnd.gravitino.v2+json", wherever it stands; absent: a version that is not known.
std::optional<unsigned> accepted_media_version(std::string_view accept);

// Of /objects/{type}/{fullName}: names joined by dots, without the metalake's. `at`: where the
// type is among the names.
Result<EntityPath> object_path(const CatalogRequest& request, size_t at = 1);
// {"fullName","type"
void append_object_name(Bytes& out, const EntityPath& path);
// A type by its name, in any case.
std::optional<CatalogType> catalog_type_named(std::string_view name);

// Of a body that makes something of the route's type; the name in it is what messages say.
Result<stored::CatalogEntity> read_draft(CatalogRequest& request);
// Makes it where the path says, and answers with it.
Result<HttpResponse> create_drafted(CatalogRequest& request, stored::CatalogEntity draft);

// With the ETag of what it shows.
HttpResponse with_entity_tag(HttpResponse response, const Entity& entity);

// "tables": the member with many of them.
std::string_view catalog_plural(CatalogType type);
// {"code":0} and what `append` adds behind it, which begins with a comma.
HttpResponse catalog_answer(std::string_view members = {});

}  // namespace trellis
