// PD's HTTP API v2: keyspaces, and the groups that there are none of here.
#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "json/json_body.h"
#include "json/json_text.h"
#include "rest/answers.h"
#include "rest/gate.h"
#include "rest/keyspace_json.h"
#include "rest/request_reading.h"
#include "rest/routes.h"

namespace trellis {
namespace {

constexpr size_t list_page_keyspaces = 500;

Result<HttpResponse> keyspace_answer(Result<Keyspace> keyspace) {
  if (!keyspace) return std::move(keyspace).error();
  return json_answer(keyspace_json(*keyspace));
}

// PD's words, which name what was asked for.
Error in_words_of_pd(Error error, const Keyspaces::Creation& creation) {
  if (error.reason == "illegal_name") {
    error.message =
        fmt::format("illegal keyspace name {}, should contain only alphanumerical and underline",
                    creation.name);
  } else if (error.reason == "reserved_name") {
    error.message = fmt::format("illegal keyspace name {}, collides with a protected keyspace name",
                                creation.name);
  } else if (error.reason == "illegal_id") {
    const uint64_t id = creation.id.value_or(0);
    error.message =
        id > keyspace_id_max
            ? fmt::format("illegal keyspace id {}, larger than spaceID Max {}", id, keyspace_id_max)
            : fmt::format("illegal keyspace id {}, collides with a protected keyspace id", id);
  }
  return error;
}

Error missing_member(std::string_view what) {
  return {Code::invalid, fmt::format("keyspace {} is empty", what), "missing_member"};
}

using TextMap = std::map<std::string, std::optional<std::string>, std::less<>>;

// {"k":"v","gone":null}
Result<TextMap> read_text_map(JsonMembers& members, std::string_view name) {
  TextMap map;
  const json::value* value = members.find(name);
  if (value == nullptr || value->is_null()) return map;
  const json::object* object = value->if_object();
  if (object == nullptr) return bad_body(fmt::format("{} is no object", quote(name)));
  for (const auto& member : *object) {
    const std::string key(member.key().data(), member.key().size());
    if (const json::string* text = member.value().if_string()) {
      map[key] = std::string(text->data(), text->size());
    } else if (member.value().is_null()) {
      map[key] = std::nullopt;
    } else {
      return bad_body(fmt::format("{}: {} is neither text nor null", quote(name), quote(key)));
    }
  }
  return map;
}

Result<HttpResponse> create(const RestContext& context, const HttpRequest& request, bool by_id) {
  TRY_ASSIGN(const Caller caller, identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  TRY_ASSIGN(const auto name, members.text("name"));
  TRY_ASSIGN(const TextMap config, read_text_map(members, "config"));
  Keyspaces::Creation creation{.name = std::string(name.value_or("")),
                               .id = std::nullopt,
                               .config = {},
                               .request_id = std::string(request.header("Idempotency-Key"))};
  if (by_id) {
    TRY_ASSIGN(creation.id, members.number("id"));
  }
  TRY(members.finish());
  if (by_id && !creation.id.has_value()) return missing_member("id");
  if (by_id && creation.name.empty()) return missing_member("name");
  for (const auto& [key, value] : config) {
    if (!value.has_value()) return bad_body(fmt::format("config: {} is null", quote(key)));
    creation.config[key] = *value;
  }
  Result<Keyspace> keyspace = context.keyspaces.create(creation, caller);
  if (!keyspace) return in_words_of_pd(std::move(keyspace).error(), creation);
  return json_answer(keyspace_json(*keyspace));
}

Result<HttpResponse> create_keyspace(const RestContext& context, const HttpRequest& request) {
  return create(context, request, false);
}

Result<HttpResponse> create_keyspace_by_id(const RestContext& context, const HttpRequest& request) {
  return create(context, request, true);
}

// {"keyspaces":[...],"next_page_token":""}, however many there are, a page at a time.
class KeyspaceList final : public BodySource {
 public:
  KeyspaceList(Keyspaces& keyspaces, KeyspaceId from, uint64_t limit)
      : keyspaces_(keyspaces), from_(from), left_(limit) {}

  Result<Chunk> next() override {
    const size_t wanted = std::min<uint64_t>(left_, list_page_keyspaces);
    TRY_ASSIGN(const Keyspaces::Page page, keyspaces_.list(from_, wanted));
    Chunk chunk;
    chunk.bytes = is_first_ ? "{\"keyspaces\":[" : "";
    for (const Keyspace& keyspace : page.keyspaces) {
      if (!std::exchange(is_first_, false)) chunk.bytes += ',';
      append_json(chunk.bytes, keyspace_json(keyspace));
    }
    left_ -= page.keyspaces.size();
    if (page.next.has_value() && left_ > 0) {
      from_ = *page.next;
      chunk.then = Chunk::Then::more;
      return chunk;
    }
    chunk.bytes += "],\"next_page_token\":\"";
    if (page.next.has_value()) chunk.bytes += std::to_string(page.next->value);
    chunk.bytes += "\"}";
    return chunk;
  }

 private:
  Keyspaces& keyspaces_;
  KeyspaceId from_;
  uint64_t left_;
  bool is_first_ = true;
};

Result<HttpResponse> list_keyspaces(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {"page_token", "limit"}));
  TRY_ASSIGN(const auto from, query_number(request, "page_token"));
  TRY_ASSIGN(const auto limit, query_number(request, "limit"));
  if (from.value_or(0) > keyspace_id_max) {
    return Error{
        Code::invalid,
        fmt::format("startID of the scan {} exceeds spaceID Max {}", *from, keyspace_id_max),
        "bad_page_token"};
  }
  HttpResponse response;
  response.content_type = json_type;
  response.stream = std::make_unique<KeyspaceList>(
      context.keyspaces, KeyspaceId{static_cast<uint32_t>(from.value_or(0))},
      limit.value_or(0) == 0 ? UINT64_MAX : *limit);
  return response;
}

Result<HttpResponse> get_keyspace(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call,
             enter_keyspace(context, request, request.captures[0], Role::read));
  // There are no groups whose id could be refreshed; clients send it all the same.
  TRY(check_query(request, {"force_refresh_group_id"}));
  return json_answer(keyspace_json(call.keyspace));
}

Result<HttpResponse> get_keyspace_by_id(const RestContext& context, const HttpRequest& request) {
  const Result<KeyspaceId> id = parse_keyspace_id(request.captures[0]);
  if (!id) {
    TRY(identify(context, request));
    return id.error();
  }
  TRY_ASSIGN(const KeyspaceCall call, enter_keyspace(context, request, *id, Role::read));
  TRY(check_query(request, {}));
  if (call.keyspace.purged_at_s != 0) {
    return Error{Code::not_found, "the keyspace is gone", "keyspace_not_found"};
  }
  return json_answer(keyspace_json(call.keyspace));
}

Result<HttpResponse> patch_config(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const KeyspaceCall call,
             enter_keyspace(context, request, request.captures[0], Role::admin));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  TRY_ASSIGN(const TextMap patch, read_text_map(members, "config"));
  TRY_ASSIGN(const TextMap preconditions, read_text_map(members, "preconditions"));
  TRY(members.finish());
  return keyspace_answer(
      context.keyspaces.patch_config(call.keyspace.id, patch, preconditions, call.caller));
}

Result<HttpResponse> set_state(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const Caller caller, identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  TRY_ASSIGN(const auto text, members.text("state"));
  TRY(members.finish());
  const auto state = parse_keyspace_state(text.value_or(""));
  if (!state.has_value()) {
    return Error{Code::invalid, fmt::format("unknown target state: {}", text.value_or("")),
                 "bad_state"};
  }
  return keyspace_answer(context.keyspaces.set_state(request.captures[0], *state, caller));
}

// --- groups: PD spreads the timestamps of keyspaces over them, which here need none ---

Result<HttpResponse> list_groups(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {"state", "page_token", "limit"}));
  return text_answer("[]");
}

Result<HttpResponse> get_group(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  return text_answer("null");
}

Result<HttpResponse> refuse_group_change(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  return Error{Code::unsupported,
               "this server has no groups: every keyspace is served as it is, without one",
               "no_groups"};
}

}  // namespace

void add_pd_keyspace_routes(const RestContext& context, std::vector<Route>& routes) {
  using enum HttpMethod;
  constexpr size_t body = small_body_bytes_max;
  const RouteSpec specs[] = {
      {post, "/pd/api/v2/keyspaces", create_keyspace, body},
      {post, "/pd/api/v2/keyspaces/id", create_keyspace_by_id, body},
      {get, "/pd/api/v2/keyspaces", list_keyspaces},
      {get, "/pd/api/v2/keyspaces/{name}", get_keyspace},
      {get, "/pd/api/v2/keyspaces/id/{id}", get_keyspace_by_id},
      {patch, "/pd/api/v2/keyspaces/{name}/config", patch_config, body},
      {put, "/pd/api/v2/keyspaces/{name}/state", set_state, body},
      {get, "/pd/api/v2/tso/keyspace-groups", list_groups},
      {get, "/pd/api/v2/tso/keyspace-groups/{id}", get_group},
      {post, "/pd/api/v2/tso/keyspace-groups", refuse_group_change, body},
      {del, "/pd/api/v2/tso/keyspace-groups/{id}", refuse_group_change, body},
      {patch, "/pd/api/v2/tso/keyspace-groups/{id}", refuse_group_change, body},
      {post, "/pd/api/v2/tso/keyspace-groups/{id}/alloc", refuse_group_change, body},
      {post, "/pd/api/v2/tso/keyspace-groups/{id}/split", refuse_group_change, body},
      {del, "/pd/api/v2/tso/keyspace-groups/{id}/split", refuse_group_change, body},
      {post, "/pd/api/v2/tso/keyspace-groups/{id}/merge", refuse_group_change, body},
      {del, "/pd/api/v2/tso/keyspace-groups/{id}/merge", refuse_group_change, body},
      {del, "/pd/api/v2/tso/keyspace-groups/{id}/keyspaces", refuse_group_change, body},
      {get, "/pd/api/v2/meta-service-groups", list_groups},
      {patch, "/pd/api/v2/meta-service-groups", refuse_group_change, body},
      {patch, "/pd/api/v2/meta-service-groups/{id}/status", refuse_group_change, body},
  };
  for (const RouteSpec& spec : specs) routes.push_back(make_route(context, spec));
}

}  // namespace trellis
