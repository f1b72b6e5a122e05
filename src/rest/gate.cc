#include "rest/gate.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "json/json_text.h"
#include "net/ascii.h"

namespace trellis {
namespace {

// What of a header matters here, found in one pass over it.
struct GateHeaders {
  std::optional<std::string_view> authorization;
  std::optional<std::string_view> host;
  std::optional<std::string_view> origin;
  std::optional<std::string_view> keyspace;
  std::optional<std::string_view> request_id;
  bool is_forwarded = false;
  bool is_cross_site = false;  // as the browser itself says
  bool has_twice = false;      // two of one of the above: whom to believe?
};

GateHeaders read_headers(const HttpRequest& request) {
  GateHeaders found;
  const auto take = [&](const HttpHeaderView& header, std::string_view name,
                        std::optional<std::string_view>& into) {
    if (!equals_ignoring_case(header.name, name)) return;
    if (into.has_value()) found.has_twice = true;
    into = header.value;
  };
  for (const HttpHeaderView& header : request.headers) {
    switch (header.name.size()) {
      case 4: take(header, "Host", found.host); break;
      case 6: take(header, "Origin", found.origin); break;
      case 9:
        found.is_forwarded |= equals_ignoring_case(header.name, "Forwarded") ||
                              equals_ignoring_case(header.name, "X-Real-IP");
        break;
      case 3: found.is_forwarded |= equals_ignoring_case(header.name, "Via"); break;
      case 13: take(header, "Authorization", found.authorization); break;
      case 14:
        found.is_cross_site |= equals_ignoring_case(header.name, "Sec-Fetch-Site") &&
                               header.value != "same-origin" && header.value != "none";
        break;
      case 16: found.is_forwarded |= equals_ignoring_case(header.name, "X-Forwarded-Host"); break;
      case 17: found.is_forwarded |= equals_ignoring_case(header.name, "X-Forwarded-Proto"); break;
      case 15:
        found.is_forwarded |= equals_ignoring_case(header.name, "X-Forwarded-For");
        take(header, "Idempotency-Key", found.request_id);
        break;
      case 18: take(header, "X-Trellis-Keyspace", found.keyspace); break;
      default: break;
    }
  }
  return found;
}

Error denied(std::string message, std::string_view reason) {
  return {Code::denied, std::move(message), reason};
}

// Without the port. "[::1]" keeps its brackets.
std::string_view host_without_port(std::string_view authority) {
  const size_t bracket = authority.find(']');
  const size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  return authority.substr(0, colon);
}

bool is_loopback_host(std::string_view authority) {
  const std::string_view host = host_without_port(authority);
  return host == "127.0.0.1" || host == "[::1]" || equals_ignoring_case(host, "localhost");
}

// Whether a page of that origin came from this server itself.
bool is_own_origin(std::string_view origin, std::string_view host) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.size() == scheme.size() + host.size() &&
        equals_ignoring_case(origin.substr(0, scheme.size()), scheme) &&
        equals_ignoring_case(origin.substr(scheme.size()), host)) {
      return true;
    }
  }
  return false;
}

Result<Call> identify_local(const RestContext& context, const HttpRequest& request,
                            const GateHeaders& headers) {
  const RestOptions& options = context.options;
  if (!request.peer_is_loopback || options.auth != RestOptions::Auth::loopback ||
      !options.admin_token.empty() || headers.is_forwarded) {
    return denied("this needs a token: send the header Authorization: Bearer TOKEN", "no_token");
  }
  const std::string_view host = headers.host.value_or("");
  if (!is_loopback_host(host) || headers.is_cross_site ||
      (headers.origin.has_value() && !is_own_origin(*headers.origin, host))) {
    return denied(
        "without a token only programs on this machine may call, not web pages: the Host must be "
        "localhost, 127.0.0.1 or [::1], and no other Origin may be named",
        "browser_refused");
  }
  return Call{.caller = {.role = Role::server_admin, .name = "loopback"}, .keyspace = {}};
}

Result<Call> identify_token(const RestContext& context, std::string_view authorization) {
  static constexpr std::string_view scheme = "Bearer ";
  if (!equals_ignoring_case(authorization.substr(0, scheme.size()), scheme)) {
    return denied("the header Authorization must be: Bearer TOKEN", "bad_token");
  }
  std::string_view token = authorization.substr(scheme.size());
  token.remove_prefix(std::min(token.find_first_not_of(' '), token.size()));
  const std::string& admin_token = context.options.admin_token;
  if (!admin_token.empty() && same_secret(token, admin_token)) {
    return Call{.caller = {.role = Role::server_admin, .name = "admin"}, .keyspace = {}};
  }
  TRY_ASSIGN(Identity identity, context.tokens.authenticate(token));
  return Call{.caller = std::move(identity.caller),
              .keyspace = identity.keyspace,
              .label = std::move(identity.label)};
}

Result<Call> identify(const RestContext& context, const HttpRequest& request,
                      const GateHeaders& headers) {
  if (headers.has_twice) {
    return Error{Code::invalid,
                 "Host, Origin, Authorization, Idempotency-Key and X-Trellis-Keyspace may each be "
                 "sent once",
                 "header_twice"};
  }
  if (headers.authorization.has_value()) return identify_token(context, *headers.authorization);
  return identify_local(context, request, headers);
}

struct Basic {
  std::string user;
  std::string password;
};

Result<Basic> read_basic(std::string_view encoded) {
  const auto bytes = base64_decode(encoded);
  const size_t colon = bytes ? bytes->find(':') : Bytes::npos;
  if (colon == Bytes::npos || !is_utf8(ByteView(*bytes).substr(0, colon)))
    return denied("Basic must be the base64 of USER:PASSWORD", "bad_token");
  return Basic{bytes->substr(0, colon), bytes->substr(colon + 1)};
}

constexpr std::string_view anonymous = "anonymous";
constexpr std::string_view token_prefix = "trl_";

struct UserIdentity {
  Call call;
  std::string user;
  std::string authorization;  // of the token that was used
};

// Whom a caller is in the catalog. `named`: as it calls itself; empty: it does not.
Result<std::string> user_of(const RestContext& context, const Call& call, std::string_view named,
                            bool has_token) {
  const std::string_view own = !has_token           ? anonymous
                               : call.label.empty() ? std::string_view(call.caller.name)
                                                    : std::string_view(call.label);
  if (named.empty() || named == own) return std::string(own);
  // Whoever may do everything in the keyspace may also speak for others.
  if (!context.options.catalog_authorization || call.caller.role >= Role::admin)
    return std::string(named);
  return denied(fmt::format("this token is that of the user {}, and of no other: {}", quote(own),
                            call.label.empty() ? "its label would name another, and it has none"
                                               : "its label says so"),
                "not_your_token");
}

Result<UserIdentity> identify_user(const RestContext& context, const HttpRequest& request,
                                   GateHeaders headers) {
  constexpr std::string_view scheme = "Basic ";
  const std::string_view given = headers.authorization.value_or("");
  if (!equals_ignoring_case(given.substr(0, scheme.size()), scheme)) {
    TRY_ASSIGN(Call call, identify(context, request, headers));
    TRY_ASSIGN(std::string user, user_of(context, call, {}, !given.empty()));
    return UserIdentity{std::move(call), std::move(user), std::string(given)};
  }
  TRY_ASSIGN(Basic basic, read_basic(given.substr(scheme.size())));
  if (!basic.password.starts_with(token_prefix)) {
    headers.authorization.reset();
    auto call = identify(context, request, headers);
    if (call) {
      TRY_ASSIGN(std::string user, user_of(context, *call, basic.user, false));
      return UserIdentity{std::move(*call), std::move(user), {}};
    }
    if (call.error().reason != "no_token") return std::move(call).error();
  }
  const std::string authorization = "Bearer " + basic.password;
  headers.authorization = authorization;
  TRY_ASSIGN(Call call, identify(context, request, headers));
  TRY_ASSIGN(std::string user, user_of(context, call, basic.user, true));
  return UserIdentity{std::move(call), std::move(user), authorization};
}

Error wrong_keyspace() {
  return denied("this token is for another keyspace than the one that the request names",
                "wrong_keyspace");
}

Status check_role(const Caller& caller, Role role) {
  if (caller.role >= role) return {};
  return denied(fmt::format("this needs the role {}, and this token has {}", to_string(role),
                            to_string(caller.role)),
                "role_too_weak");
}

// A new Tenant knows its name when it was asked for once.
Result<bool> is_named(Tenant& tenant, std::string_view name) {
  if (tenant.is_named(name)) return true;
  TRY(tenant.keyspace());
  return tenant.is_named(name);
}

Result<DataCall> enter_tenant(const RestContext& context, Call call,
                              std::optional<std::string_view> name) {
  DataCall data{.caller = std::move(call.caller), .tenant = nullptr};
  if (!call.keyspace.has_value() && name.has_value()) {
    TRY_ASSIGN(data.tenant, context.keyspaces.tenant(*name));
    return data;
  }
  TRY_ASSIGN(data.tenant, context.keyspaces.tenant(call.keyspace.value_or(default_keyspace)));
  if (call.keyspace.has_value() && name.has_value()) {
    TRY_ASSIGN(const bool is_own, is_named(*data.tenant, *name));
    if (!is_own) return wrong_keyspace();
  }
  return data;
}

}  // namespace

Result<Call> identify(const RestContext& context, const HttpRequest& request) {
  return identify(context, request, read_headers(request));
}

Result<Caller> identify_server_admin(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(Call call, identify(context, request));
  TRY(check_role(call.caller, Role::server_admin));
  return std::move(call.caller);
}

Result<KeyspaceCall> enter_keyspace(const RestContext& context, const HttpRequest& request,
                                    std::string_view name, Role role) {
  TRY_ASSIGN(Call call, identify(context, request));
  // By the token's id, never by the name: a name may have come to another keyspace since.
  if (call.keyspace.has_value()) {
    TRY_ASSIGN(Keyspace keyspace, context.keyspaces.load(*call.keyspace));
    if (keyspace.name != name) return wrong_keyspace();
    TRY(check_role(call.caller, role));
    if (keyspace.state == KeyspaceState::tombstone) {
      TRY(check_access(call.caller, Access::read, keyspace.state, keyspace.name));
    }
    return KeyspaceCall{.caller = std::move(call.caller), .keyspace = std::move(keyspace)};
  }
  TRY_ASSIGN(Keyspace keyspace, context.keyspaces.load(name));
  return KeyspaceCall{.caller = std::move(call.caller), .keyspace = std::move(keyspace)};
}

Result<KeyspaceCall> enter_keyspace(const RestContext& context, const HttpRequest& request,
                                    KeyspaceId id, Role role) {
  TRY_ASSIGN(Call call, identify(context, request));
  if (call.keyspace.has_value() && *call.keyspace != id) return wrong_keyspace();
  TRY(check_role(call.caller, role));
  TRY_ASSIGN(Keyspace keyspace, context.keyspaces.load(id));
  return KeyspaceCall{.caller = std::move(call.caller), .keyspace = std::move(keyspace)};
}

Result<DataCall> enter_data(const RestContext& context, const HttpRequest& request,
                            std::optional<std::string_view> named) {
  const GateHeaders headers = read_headers(request);
  TRY_ASSIGN(Call call, identify(context, request, headers));
  return enter_tenant(context, std::move(call), named.has_value() ? named : headers.keyspace);
}

Result<UserCall> enter_data_as_user(const RestContext& context, const HttpRequest& request,
                                    std::optional<std::string_view> named) {
  const GateHeaders headers = read_headers(request);
  TRY_ASSIGN(UserIdentity identity, identify_user(context, request, headers));
  TRY_ASSIGN(DataCall data, enter_tenant(context, std::move(identity.call),
                                         named.has_value() ? named : headers.keyspace));
  return UserCall{std::move(data), std::move(identity.user), std::move(identity.authorization)};
}

Status check_still_valid(const RestContext& context, std::string_view authorization) {
  if (!authorization.empty()) TRY(identify_token(context, authorization));
  return {};
}

}  // namespace trellis
