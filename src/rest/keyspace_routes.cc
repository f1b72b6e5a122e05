// Keyspaces beyond PD: all that is known of one, its life, quota, tokens and GC.
#include <fmt/format.h>

#include <algorithm>

#include "json/json_body.h"
#include "rest/answers.h"
#include "rest/gate.h"
#include "rest/keyspace_json.h"
#include "rest/request_reading.h"
#include "rest/routes.h"

namespace trellis {
namespace {

HttpResponse keyspace_answer(const Keyspace& keyspace, unsigned status = 200) {
  return json_answer(json::object{{"keyspace", keyspace_json(keyspace)}}, status);
}

Result<KeyspaceCall> enter_by_id(const RestContext& context, const HttpRequest& request,
                                 Role role) {
  const Result<KeyspaceId> id = parse_keyspace_id(request.captures[0]);
  if (!id) {
    TRY(identify(context, request));
    return id.error();
  }
  TRY_ASSIGN(KeyspaceCall call, enter_keyspace(context, request, *id, role));
  TRY(check_query(request, {}));
  return call;
}

Result<KeyspaceCall> enter_by_name(const RestContext& context, const HttpRequest& request,
                                   Role role) {
  TRY_ASSIGN(KeyspaceCall call, enter_keyspace(context, request, request.captures[0], role));
  TRY(check_query(request, {}));
  return call;
}

// Of what has no such: a keyspace that nothing is left of.
Result<HttpResponse> purged_answer(json::object known, const RestContext& context,
                                   const Keyspace& keyspace) {
  TRY_ASSIGN(const auto purge, load_purge(context.keyspaces.map().engine, keyspace.id));
  known["figures"] =
      json::object{{"bytes", 0}, {"live_bytes", 0}, {"waiting_bytes", 0}, {"keys", 0}};
  known["load"] = load_json({});
  known["gc"] = "nothing waits";
  known["purge"] = purge_json(purge, context.collector.pace().paused);
  return json_answer(known);
}

Result<HttpResponse> describe_as_read(const RestContext& context, const Keyspace& keyspace) {
  json::object known{
      {"keyspace", keyspace_json(keyspace)},
      {"revision", keyspace.revision},
      {"retire_at_ms", number_or_null(keyspace.retire_at_ms)},
      {"purged_at", number_or_null(keyspace.purged_at_s)},
      {"quota", quota_json(keyspace.quota)},
  };
  if (keyspace.purged_at_s != 0) return purged_answer(std::move(known), context, keyspace);
  TRY_ASSIGN(const std::shared_ptr<Tenant> tenant, context.keyspaces.tenant(keyspace.id));
  TRY_ASSIGN(const Figures figures, tenant->figures());
  TRY_ASSIGN(const GcExplanation gc, context.collector.explain(keyspace.id));
  const auto waiting = static_cast<int64_t>(gc.waiting_bytes);
  known["figures"] = json::object{{"bytes", figures.bytes},
                                  {"live_bytes", std::max<int64_t>(figures.bytes - waiting, 0)},
                                  {"waiting_bytes", waiting},
                                  {"keys", figures.keys}};
  known["load"] = load_json(tenant->load());
  known["gc"] = gc.text;
  known["purge"] = nullptr;
  if (keyspace.state == KeyspaceState::tombstone) {
    TRY_ASSIGN(const auto purge, load_purge(context.keyspaces.map().engine, keyspace.id));
    known["purge"] = purge_json(purge, context.collector.pace().paused);
  }
  return json_answer(known);
}

Result<HttpResponse> describe(const RestContext& context, const Keyspace& keyspace) {
  Result<HttpResponse> described = describe_as_read(context, keyspace);
  if (described || described.error().reason != "keyspace_not_found") return described;
  // Its burial ended after it was read: it is there still, as one that nothing is left of.
  TRY_ASSIGN(const Keyspace now, context.keyspaces.load(keyspace.id));
  return describe_as_read(context, now);
}

Result<HttpResponse> get_by_name(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter_by_name(context, request, Role::read));
  return describe(context, call.keyspace);
}

Result<HttpResponse> get_by_id(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter_by_id(context, request, Role::read));
  return describe(context, call.keyspace);
}

// --- life ---

Result<HttpResponse> rename(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const Caller caller, identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  TRY_ASSIGN(const auto name, members.text("name"));
  TRY(members.finish());
  if (!name.has_value()) return bad_body("\"name\" is missing: the new name");
  TRY_ASSIGN(const Keyspace keyspace, context.keyspaces.rename(request.captures[0], *name, caller));
  return keyspace_answer(keyspace);
}

// Of a POST that needs no body: many clients send an empty object all the same.
Status check_empty_body(const HttpRequest& request) {
  if (request.body.empty()) return {};
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(const JsonMembers members, JsonMembers::of(body, "the body"));
  return members.finish();
}

// Takes an archived keyspace on to `to`. That it is archived is asked first because there are other
// ways to those states, which these two paths are not for.
Result<Keyspace> leave_archive(const RestContext& context, const HttpRequest& request,
                               KeyspaceState to) {
  TRY_ASSIGN(const Caller caller, identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY(check_empty_body(request));
  TRY_ASSIGN(const Keyspace keyspace, context.keyspaces.load(request.captures[0]));
  if (keyspace.state != KeyspaceState::archived) {
    return Error{Code::conflict,
                 fmt::format("keyspace {} is {}, and this is for ARCHIVED ones",
                             quote(keyspace.name), to_string(keyspace.state)),
                 "illegal_state_change"};
  }
  return context.keyspaces.set_state(request.captures[0], to, caller);
}

Result<HttpResponse> undo(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const Keyspace keyspace, leave_archive(context, request, KeyspaceState::disabled));
  return keyspace_answer(keyspace);
}

Result<HttpResponse> purge(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const Keyspace keyspace, leave_archive(context, request, KeyspaceState::tombstone));
  return keyspace_answer(keyspace, 202);
}

Result<HttpResponse> get_purge(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const KeyspaceId id, parse_keyspace_id(request.captures[0]));
  TRY_ASSIGN(const Keyspace keyspace, context.keyspaces.load(id));
  if (keyspace.state != KeyspaceState::tombstone) {
    return Error{Code::not_found,
                 fmt::format("keyspace {} is {}: nothing of it is being purged",
                             quote(keyspace.name), to_string(keyspace.state)),
                 "purge_not_found"};
  }
  TRY_ASSIGN(const auto progress, load_purge(context.keyspaces.map().engine, id));
  return json_answer(purge_json(progress, context.collector.pace().paused));
}

Result<HttpResponse> put_quota(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const Caller caller, identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  QuotaPatch patch;
  TRY_ASSIGN(patch.bytes, members.number("bytes"));
  TRY_ASSIGN(patch.keys, members.number("keys"));
  TRY_ASSIGN(patch.operations_per_second, members.number("operations_per_second"));
  TRY(members.finish());
  TRY_ASSIGN(const Keyspace keyspace,
             context.keyspaces.set_quota(request.captures[0], patch, caller));
  return json_answer(json::object{{"quota", quota_json(keyspace.quota)}});
}

// --- tokens ---

Result<uint64_t> expiry_ms(const Clock& clock, std::optional<uint64_t> ttl_s) {
  if (!ttl_s.has_value()) return 0;
  const uint64_t now_ms = clock.unix_ms();
  if (*ttl_s == 0 || *ttl_s > (UINT64_MAX - now_ms) / 1000) {
    return Error{Code::invalid,
                 "ttl_seconds is 0 or too large: leave it out for a token that never expires",
                 "illegal_ttl"};
  }
  return now_ms + *ttl_s * 1000;
}

Result<HttpResponse> create_token(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter_by_name(context, request, Role::admin));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  TRY_ASSIGN(const auto role_name, members.text("role"));
  TRY_ASSIGN(const auto label, members.text("label"));
  TRY_ASSIGN(const auto ttl_s, members.number("ttl_seconds"));
  TRY(members.finish());
  const std::optional<Role> role = parse_role(role_name.value_or(""));
  if (!role.has_value()) return bad_body("\"role\" must be read, write or admin");
  TRY_ASSIGN(const uint64_t expires_at_ms, expiry_ms(context.clock, ttl_s));
  TRY_ASSIGN(const Tokens::Made made,
             context.tokens.create(call.keyspace.id, *role, label.value_or(""), expires_at_ms,
                                   call.caller));
  json::object known = token_json(made.token);
  known["token"] = made.secret;
  HttpResponse response = json_answer(known, 201);
  response.headers.push_back({"Cache-Control", "no-store"});
  return response;
}

Result<HttpResponse> list_tokens(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter_by_name(context, request, Role::admin));
  TRY_ASSIGN(const std::vector<Token> tokens, context.tokens.list(call.keyspace.id));
  json::array out;
  for (const Token& token : tokens) out.push_back(token_json(token));
  return json_answer(json::object{{"tokens", std::move(out)}});
}

Result<HttpResponse> revoke_token(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter_by_name(context, request, Role::admin));
  TRY(context.tokens.revoke(call.keyspace.id, request.captures[1], call.caller));
  return empty_answer();
}

Result<HttpResponse> explanation(const RestContext& context, KeyspaceId id) {
  TRY_ASSIGN(const GcExplanation gc, context.collector.explain(id));
  json::object out{{"keyspace_id", id.value},
                   {"gc_safe_point", gc.state.gc_safe_point},
                   {"txn_safe_point", gc.state.txn_safe_point},
                   {"service_safe_points", barriers_json(gc.state.barriers)},
                   {"held_by", nullptr},
                   {"waiting_bytes", gc.waiting_bytes},
                   {"waiting_notes", gc.waiting_notes},
                   {"more", gc.more},
                   {"oldest_due_ms", nullptr},
                   {"paused", context.collector.pace().paused},
                   {"collecting", nullptr},
                   {"explanation", gc.text}};
  if (gc.held_by.has_value()) out["held_by"] = barrier_json(*gc.held_by);
  if (gc.oldest_due_ms.has_value()) out["oldest_due_ms"] = *gc.oldest_due_ms;
  if (const auto progress = context.collector.progress(id))
    out["collecting"] = json::object{
        {"since_ms", progress->since_ms}, {"notes", progress->notes}, {"bytes", progress->bytes}};
  return json_answer(out);
}

Result<HttpResponse> explain_gc(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter_by_name(context, request, Role::read));
  return explanation(context, call.keyspace.id);
}

Result<HttpResponse> explain_gc_by_id(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call, enter_by_id(context, request, Role::read));
  return explanation(context, call.keyspace.id);
}

// --- the collector ---

HttpResponse collector_answer(const CollectorPace& pace, const Collector::Totals& totals) {
  return json_answer(json::object{{"paused", pace.paused},
                                  {"bytes_per_second", pace.bytes_per_s},
                                  {"threads", pace.threads},
                                  {"notes", totals.notes},
                                  {"purged_bytes", totals.purged_bytes}});
}

Result<HttpResponse> get_collector(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  return collector_answer(context.collector.pace(), context.collector.totals());
}

Result<HttpResponse> set_collector(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const Caller caller, identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  CollectorPacePatch patch;
  if (const json::value* const paused = members.find("paused")) {
    if (!paused->is_bool()) return bad_body("paused must be true or false");
    patch.paused = paused->get_bool();
  }
  TRY_ASSIGN(patch.bytes_per_s, members.number("bytes_per_second"));
  TRY_ASSIGN(const auto threads, members.number("threads"));
  if (threads)
    patch.threads = static_cast<unsigned>(std::min<uint64_t>(*threads, collector_threads_max + 1));
  TRY(members.finish());
  TRY_ASSIGN(const CollectorPace pace, context.collector.set_pace(patch, caller));
  return collector_answer(pace, context.collector.totals());
}

}  // namespace

void add_keyspace_routes(const RestContext& context, std::vector<Route>& routes) {
  using enum HttpMethod;
  constexpr size_t body = small_body_bytes_max;
  const RouteSpec specs[] = {
      {get, "/v1/keyspaces/{name}", get_by_name},
      {get, "/v1/keyspace-ids/{id}", get_by_id},
      {post, "/v1/keyspaces/{name}/rename", rename, body},
      {post, "/v1/keyspaces/{name}/undo", undo, body},
      {post, "/v1/keyspaces/{name}/purge", purge, body},
      {get, "/v1/keyspace-ids/{id}/purge", get_purge},
      {put, "/v1/keyspaces/{name}/quota", put_quota, body},
      {post, "/v1/keyspaces/{name}/tokens", create_token, body},
      {get, "/v1/keyspaces/{name}/tokens", list_tokens},
      {del, "/v1/keyspaces/{name}/tokens/{id}", revoke_token},
      {get, "/v1/keyspaces/{name}/gc", explain_gc},
      {get, "/v1/keyspace-ids/{id}/gc", explain_gc_by_id},
      {get, "/v1/collector", get_collector},
      {post, "/v1/collector", set_collector, body},
  };
  for (const RouteSpec& spec : specs) routes.push_back(make_route(context, spec));
}

}  // namespace trellis
