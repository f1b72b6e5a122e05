// PD's GC of keyspaces: safe points, and the barriers that services hold them with.
#include <fmt/format.h>

#include "json/json_body.h"
#include "rest/answers.h"
#include "rest/gate.h"
#include "rest/keyspace_json.h"
#include "rest/request_reading.h"
#include "rest/routes.h"

namespace trellis {
namespace {

// The keyspace of the path's id, which the caller may act on in that role.
Result<KeyspaceCall> enter(const RestContext& context, const HttpRequest& request, Role role) {
  const Result<KeyspaceId> id = parse_keyspace_id(request.captures[0]);
  if (!id) {
    TRY(identify(context, request));
    return id.error();
  }
  TRY_ASSIGN(KeyspaceCall call, enter_keyspace(context, request, *id, role));
  TRY(check_query(request, {}));
  return call;
}

Result<uint64_t> read_safe_point(JsonMembers& members) {
  TRY_ASSIGN(const auto safe_point, members.number("safe_point"));
  if (!safe_point.has_value()) return bad_body("\"safe_point\" is missing");
  return *safe_point;
}

Result<uint64_t> read_only_safe_point(const HttpRequest& request) {
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  TRY_ASSIGN(const uint64_t safe_point, read_safe_point(members));
  TRY(members.finish());
  return safe_point;
}

// PD has an error for each of the two points.
Error name_the_point(Error error, std::string_view reason) {
  if (error.reason == "safe_point_back") error.reason = reason;
  return error;
}

HttpResponse safe_point_answer(KeyspaceId id, uint64_t safe_point) {
  return json_answer(json::object{{"keyspace_id", id.value}, {"safe_point", safe_point}});
}

HttpResponse txn_answer(KeyspaceId id, uint64_t safe_point, std::string_view blocker) {
  return json_answer(json::object{
      {"keyspace_id", id.value}, {"safe_point", safe_point}, {"blocker_description", blocker}});
}

Result<HttpResponse> get_safe_point(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter(context, request, Role::read));
  TRY_ASSIGN(const GcState state, context.gc.load(call.keyspace.id));
  return safe_point_answer(call.keyspace.id, state.gc_safe_point);
}

Result<HttpResponse> put_safe_point(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter(context, request, Role::admin));
  TRY_ASSIGN(const uint64_t target, read_only_safe_point(request));
  auto advance = context.gc.advance_gc_safe_point(call.keyspace.id, target, call.caller);
  if (!advance) return name_the_point(std::move(advance).error(), "gc_safe_point_back");
  return safe_point_answer(call.keyspace.id, advance->after);
}

Result<HttpResponse> get_txn_safe_point(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter(context, request, Role::read));
  TRY_ASSIGN(const GcState state, context.gc.load(call.keyspace.id));
  return txn_answer(call.keyspace.id, state.txn_safe_point, "");
}

Result<HttpResponse> put_txn_safe_point(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter(context, request, Role::admin));
  TRY_ASSIGN(const uint64_t target, read_only_safe_point(request));
  auto advance = context.gc.advance_txn_safe_point(call.keyspace.id, target, call.caller);
  if (!advance) return name_the_point(std::move(advance).error(), "txn_safe_point_back");
  return txn_answer(call.keyspace.id, advance->after, advance->blocker);
}

Result<HttpResponse> list_barriers(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter(context, request, Role::read));
  TRY_ASSIGN(const GcState state, context.gc.load(call.keyspace.id));
  return json_answer(json::object{{"keyspace_id", call.keyspace.id.value},
                                  {"service_safe_points", barriers_json(state.barriers)}});
}

Result<HttpResponse> put_barrier(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter(context, request, Role::admin));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  TRY_ASSIGN(const uint64_t safe_point, read_safe_point(members));
  TRY_ASSIGN(const auto ttl_s, members.number("ttl"));
  TRY(members.finish());
  if (!ttl_s.has_value()) return bad_body("\"ttl\" is missing: seconds for which it holds");
  TRY_ASSIGN(const Barrier barrier, context.gc.set_barrier(call.keyspace.id, request.captures[1],
                                                           safe_point, *ttl_s, call.caller));
  return json_answer(barrier_json(barrier));
}

Result<HttpResponse> delete_barrier(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter(context, request, Role::admin));
  TRY_ASSIGN(const Barrier barrier,
             context.gc.delete_barrier(call.keyspace.id, request.captures[1], call.caller));
  return json_answer(barrier_json(barrier));
}

Result<HttpResponse> get_gc_state(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter(context, request, Role::read));
  TRY_ASSIGN(const GcState state, context.gc.load(call.keyspace.id));
  return json_answer(json::object{{"keyspace_id", call.keyspace.id.value},
                                  {"gc_safe_point", state.gc_safe_point},
                                  {"txn_safe_point", state.txn_safe_point},
                                  {"service_safe_points", barriers_json(state.barriers)}});
}

}  // namespace

void add_pd_gc_routes(const RestContext& context, std::vector<Route>& routes) {
  using enum HttpMethod;
  constexpr size_t body = small_body_bytes_max;
  const RouteSpec specs[] = {
      {get, "/pd/api/v2/gc/safepoint/{id}", get_safe_point},
      {put, "/pd/api/v2/gc/safepoint/{id}", put_safe_point, body},
      {get, "/pd/api/v2/gc/txn_safepoint/{id}", get_txn_safe_point},
      {put, "/pd/api/v2/gc/txn_safepoint/{id}", put_txn_safe_point, body},
      {get, "/pd/api/v2/gc/service_safepoint/{id}", list_barriers},
      {put, "/pd/api/v2/gc/service_safepoint/{id}/{service}", put_barrier, body},
      {del, "/pd/api/v2/gc/service_safepoint/{id}/{service}", delete_barrier},
      {get, "/pd/api/v2/gc/state/{id}", get_gc_state},
  };
  for (const RouteSpec& spec : specs) routes.push_back(make_route(context, spec));
}

}  // namespace trellis
