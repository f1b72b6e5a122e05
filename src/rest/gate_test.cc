// Who may call what: every route with every kind of caller, and what browsers may not do.
#include <algorithm>
#include <map>

#include "rest/catalog_answers.h"
#include "support/rest_fixture.h"

namespace trellis {
namespace gate_test {

using enum HttpMethod;

enum class Who { everybody, read, write, admin, server };

struct Rule {
  HttpMethod method;
  std::string_view pattern;
  Who who;
  std::string_view body = {};
};

// The table of docs/decisions/0004-keyspaces.md. A body is one that passes, where an action is
// checked behind it, and one that is refused, where it must not happen.
constexpr Rule rules[] = {
    {get, "/pd/api/v2/keyspaces", Who::server},
    {post, "/pd/api/v2/keyspaces", Who::server, "?"},
    {post, "/pd/api/v2/keyspaces/id", Who::server, "?"},
    {get, "/pd/api/v2/keyspaces/{name}", Who::read},
    {get, "/pd/api/v2/keyspaces/id/{id}", Who::read},
    {patch, "/pd/api/v2/keyspaces/{name}/config", Who::admin, "?"},
    {put, "/pd/api/v2/keyspaces/{name}/state", Who::server, "?"},
    {get, "/pd/api/v2/gc/safepoint/{id}", Who::read},
    {put, "/pd/api/v2/gc/safepoint/{id}", Who::admin, "?"},
    {get, "/pd/api/v2/gc/txn_safepoint/{id}", Who::read},
    {put, "/pd/api/v2/gc/txn_safepoint/{id}", Who::admin, "?"},
    {get, "/pd/api/v2/gc/service_safepoint/{id}", Who::read},
    {put, "/pd/api/v2/gc/service_safepoint/{id}/{service}", Who::admin, "?"},
    {del, "/pd/api/v2/gc/service_safepoint/{id}/{service}", Who::admin},
    {get, "/pd/api/v2/gc/state/{id}", Who::read},
    {get, "/pd/api/v2/tso/keyspace-groups", Who::server},
    {post, "/pd/api/v2/tso/keyspace-groups", Who::server},
    {get, "/pd/api/v2/tso/keyspace-groups/{id}", Who::server},
    {del, "/pd/api/v2/tso/keyspace-groups/{id}", Who::server},
    {patch, "/pd/api/v2/tso/keyspace-groups/{id}", Who::server},
    {post, "/pd/api/v2/tso/keyspace-groups/{id}/alloc", Who::server},
    {post, "/pd/api/v2/tso/keyspace-groups/{id}/split", Who::server},
    {del, "/pd/api/v2/tso/keyspace-groups/{id}/split", Who::server},
    {post, "/pd/api/v2/tso/keyspace-groups/{id}/merge", Who::server},
    {del, "/pd/api/v2/tso/keyspace-groups/{id}/merge", Who::server},
    {del, "/pd/api/v2/tso/keyspace-groups/{id}/keyspaces", Who::server},
    {get, "/pd/api/v2/meta-service-groups", Who::server},
    {patch, "/pd/api/v2/meta-service-groups", Who::server},
    {patch, "/pd/api/v2/meta-service-groups/{id}/status", Who::server},
    {get, "/v1/keyspaces/{name}", Who::read},
    {get, "/v1/keyspace-ids/{id}", Who::read},
    {post, "/v1/keyspaces/{name}/rename", Who::server, "?"},
    {post, "/v1/keyspaces/{name}/undo", Who::server},
    {post, "/v1/keyspaces/{name}/purge", Who::server},
    {get, "/v1/keyspace-ids/{id}/purge", Who::server},
    {put, "/v1/keyspaces/{name}/quota", Who::server, "?"},
    {post, "/v1/keyspaces/{name}/tokens", Who::admin, "?"},
    {get, "/v1/keyspaces/{name}/tokens", Who::admin},
    {del, "/v1/keyspaces/{name}/tokens/{id}", Who::admin},
    {get, "/v1/keyspaces/{name}/gc", Who::read},
    {get, "/v1/keyspace-ids/{id}/gc", Who::read},
    {get, "/v1/collector", Who::server},
    {post, "/v1/collector", Who::server, "?"},
    {get, "/v1/top", Who::server},
    {get, "/v1/audit", Who::server},
    {get, "/v1/watch/keyspaces", Who::server},
    {get, "/v1/raw/keys/{key*}", Who::read},
    {head, "/v1/raw/keys/{key*}", Who::read},
    {put, "/v1/raw/keys/{key*}", Who::write},
    {del, "/v1/raw/keys/{key*}", Who::write},
    {get, "/v1/raw/keys", Who::read},
    {post, "/v1/raw/batch", Who::write, R"({"operations":[{"delete":{"key":"x"}}]})"},
    {post, "/v1/raw/cas", Who::write, R"({"key":"x","expected":null,"new":null})"},
    {get, "/v1/raw/export", Who::read},
    {post, "/v1/raw/export", Who::read, "{}"},
    {get, "/v1/raw/parts", Who::read},
    {post, "/v1/raw/import", Who::write},
    {get, "/v1/files/{path*}", Who::read},
    {head, "/v1/files/{path*}", Who::read},
    {put, "/v1/files/{path*}", Who::write},
    {del, "/v1/files/{path*}", Who::write},
    {get, "/v1/fs/stat", Who::read},
    {get, "/v1/fs/du", Who::read},
    {get, "/v1/fs/figures", Who::read},
    {post, "/v1/fs/copy", Who::write, R"({"from":"x","to":"y"})"},
    {post, "/v1/fs/rename", Who::write, R"({"from":"x","to":"y"})"},
    {get, "/v1/fs/quota", Who::read},
    {put, "/v1/fs/quota", Who::write, "{}"},
    {get, "/v1/fs/trash", Who::read},
    {put, "/v1/fs/trash", Who::write, R"({"keep_ms":1})"},
    {post, "/v1/fs/trash/restore", Who::write, R"({"item":"2026010100/1-2-x"})"},
    {post, "/v1/fs/trash/empty", Who::write},
    {post, "/v1/fs/fsck", Who::read},
    {get, "/v1/backups", Who::server},
    {post, "/v1/backups", Who::server, "?"},
    {del, "/v1/backups/{backup}", Who::server},
    {get, "/v1/backups/stream", Who::server},
    {post, "/v1/backups/stream", Who::server, "?"},
    {post, "/v1/backups/restores", Who::server, "?"},
    {post, "/v1/backups/verifications", Who::server, "?"},
    {get, "/v1/backups/jobs", Who::server},
    {get, "/v1/backups/jobs/{job}", Who::server},
    {post, "/v1/backups/jobs/{job}/pause", Who::server},
    {post, "/v1/backups/jobs/{job}/resume", Who::server},
    {post, "/v1/backups/jobs/{job}/cancel", Who::server},
    {get, "/v1/ranges", Who::server},
    {get, "/v1/ranges/lookup", Who::server},
    {get, "/v1/ranges/hot", Who::server},
    {get, "/v1/ranges/history", Who::server},
    {get, "/v1/ranges/plan", Who::server},
    {post, "/v1/ranges/split", Who::server, "?"},
    {post, "/v1/ranges/merge", Who::server, "?"},
    {post, "/v1/ranges/keeper", Who::server, "?"},
    {post, "/v1/ranges/verify", Who::server},
    {post, "/v1/ranges/rebuild", Who::server},
    {get, "/v1/ranges/jobs", Who::server},
    {post, "/v1/ranges/jobs", Who::server, "?"},
    {get, "/v1/ranges/jobs/{job}", Who::server},
    {post, "/v1/ranges/jobs/{job}", Who::server, "?"},
    {get, "/v1/ranges/jobs/{job}/checksums", Who::server},
    {get, "/v1/ranges/{range}", Who::server},
    {get, "/metrics", Who::server},
    {get, "/healthz", Who::everybody},
    {get, "/readyz", Who::everybody},
    {get, "/openapi.json", Who::everybody},
    {get, "/api/version", Who::everybody},
    {get, "/api/openapi.json", Who::everybody},
    {get, "/api/health", Who::everybody},
    {get, "/api/health/live", Who::everybody},
    {get, "/api/health/ready", Who::everybody},
    {get, "/configs", Who::everybody},
};
// The catalog's other routes have one rule for all.
constexpr Rule catalog_read{get, "/api/", Who::read};
constexpr Rule catalog_read_with_body{post, "/api/", Who::read, "?"};
constexpr Rule catalog_write{post, "/api/", Who::write, "?"};
constexpr Rule catalog_write_without_body{del, "/api/", Who::write};

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  if (const size_t at = text.find(what); at != std::string::npos) {
    text.replace(at, what.size(), with);
  }
  return text;
}

class GateTest : public RestFixture {
 protected:
  static constexpr std::string_view in_keyspace = "/k/{keyspace}";

  void SetUp() override {
    RestFixture::SetUp();
    shop_ = make("shop");
    other_ = make("other");
  }

  std::string target(std::string pattern, std::string_view name, KeyspaceId id) const {
    pattern = replaced(std::move(pattern), "{keyspace}", name);
    pattern = replaced(std::move(pattern), "{name}", name);
    pattern = replaced(std::move(pattern), "tokens/{id}", "tokens/0123456789abcdef");
    pattern = replaced(std::move(pattern), "{id}", std::to_string(id.value));
    pattern = replaced(std::move(pattern), "{service}", "backup");
    pattern = replaced(std::move(pattern), "{path*}", "some/file");
    return replaced(std::move(pattern), "{key*}", "some/key");
  }

  // The rule of a route, which is the same behind /k/{keyspace}.
  static const Rule* rule_of(const Route& route) {
    std::string_view pattern = route.pattern;
    if (pattern.starts_with(in_keyspace)) pattern.remove_prefix(in_keyspace.size());
    const auto* rule = std::ranges::find_if(rules, [&](const Rule& known) {
      return known.method == route.method && known.pattern == pattern;
    });
    if (rule != std::end(rules)) return rule;
    return is_catalog_path(pattern) ? &catalog_rule(route) : nullptr;
  }

  static const Rule& catalog_rule(const Route& route) {
    if (route.method == get) return catalog_read;
    if (route.pattern.ends_with(":batchGet") || route.pattern.ends_with("/testConnection"))
      return catalog_read_with_body;
    return route.body == Route::Body::none ? catalog_write_without_body : catalog_write;
  }

  static bool names_keyspace(const Route& route) {
    return route.pattern.find("{keyspace}") != std::string_view::npos ||
           route.pattern.find("{name}") != std::string_view::npos ||
           (route.pattern.find("{id}") != std::string_view::npos &&
            route.pattern.find("groups") == std::string_view::npos);
  }

  static std::string reason_of(const Answer& answer) {
    if (!answer.body.starts_with("\"[TRELLIS:")) return answer.code();
    return answer.body.substr(10, answer.body.find(']') - 10);
  }

  // "passed", or the status and reason of what the gate said.
  static std::string outcome(const Answer& answer) {
    if (answer.status != 401 && answer.status != 403) return "passed";
    EXPECT_EQ(answer.header("WWW-Authenticate"), answer.status == 401 ? "Bearer" : "");
    return std::to_string(answer.status) + " " + reason_of(answer);
  }
  // The catalog says it in Gravitino's words, of which only the status is the same.
  static std::string catalog_outcome(const Answer& answer) {
    if (answer.status != 401 && answer.status != 403) return "passed";
    EXPECT_NE(
        answer.body.find(answer.status == 401 ? "UnauthorizedException" : "ForbiddenException"),
        std::string::npos);
    return std::to_string(answer.status);
  }

  Ask ask_of(const Route& route, const Rule& rule, std::string_view name, KeyspaceId id) const {
    return {.method = route.method,
            .target = target(std::string(route.pattern), name, id),
            .body = std::string(rule.body)};
  }

  KeyspaceId shop_;
  KeyspaceId other_;
};

TEST_F(GateTest, EveryRouteHasARule) {
  for (const Route& route : router_->routes()) {
    EXPECT_NE(rule_of(route), nullptr) << to_string(route.method) << " " << route.pattern;
  }
  const auto others = std::ranges::count_if(router_->routes(), [](const Route& route) {
    const Rule* rule = rule_of(route);
    return rule != nullptr && !rule->pattern.ends_with("/api/");
  });
  // What is also behind /k/{keyspace}.
  EXPECT_EQ(static_cast<size_t>(others), std::size(rules) + 33);
}

TEST_F(GateTest, EveryRouteWithEveryCaller) {
  const std::string admin_token = make_admin_token();
  const Tokens::Made revoked = make_token(shop_, Role::admin);
  ASSERT_OK(tokens_->revoke(shop_, revoked.token.id, {Role::server_admin, "root"}));
  const Tokens::Made expired = make_token(shop_, Role::admin, start_ms + 1'000);
  clock_.advance_ms(1'000);
  struct CallerCase {
    const char* what;
    std::string token;
    bool is_local;
    std::optional<Role> role;  // absent: 401
    std::string_view refused = {};
    bool is_stranger = false;  // of the other keyspace
  };
  const CallerCase callers[] = {
      {"no token, remote", "", false, {}, "401 no_token"},
      {"no token, local", "", true, Role::server_admin},
      {"bad token", "trl_nonsense", false, {}, "401 bad_token"},
      {"bad token, local", "trl_nonsense", true, {}, "401 bad_token"},
      {"expired token", expired.secret, true, {}, "401 token_expired"},
      {"revoked token", revoked.secret, true, {}, "401 bad_token"},
      {"read", make_token(shop_, Role::read).secret, false, Role::read},
      {"write", make_token(shop_, Role::write).secret, false, Role::write},
      {"admin", make_token(shop_, Role::admin).secret, false, Role::admin},
      {"admin, local", make_token(shop_, Role::admin).secret, true, Role::admin},
      {"admin of another", make_token(other_, Role::admin).secret, false, Role::admin, "", true},
      {"server admin", admin_token, false, Role::server_admin},
  };
  for (const CallerCase& caller : callers) {
    context_->options.admin_token = caller.token == admin_token ? admin_token : "";
    for (const Route& route : router_->routes()) {
      const Rule* rule = rule_of(route);
      ASSERT_NE(rule, nullptr);
      Ask question = ask_of(route, *rule, "shop", shop_);
      question.token = caller.token;
      question.is_local = caller.is_local;
      SCOPED_TRACE(std::string(caller.what) + ": " + std::string(to_string(route.method)) + " " +
                   question.target);
      std::string expected = "passed";
      if (rule->who != Who::everybody) {
        const auto needed = static_cast<Role>(static_cast<int>(rule->who) - 1);
        if (!caller.role.has_value()) {
          expected = caller.refused;
        } else if (caller.is_stranger && rule->who != Who::server && names_keyspace(route)) {
          expected = "403 wrong_keyspace";
        } else if (*caller.role < needed) {
          expected = "403 role_too_weak";
        }
      }
      const Answer answer = ask(question);
      if (is_catalog_path(question.target))
        EXPECT_EQ(catalog_outcome(answer), expected == "passed" ? expected : expected.substr(0, 3))
            << answer.body;
      else
        EXPECT_EQ(outcome(answer), expected) << answer.body;
      EXPECT_LT(answer.status, 502U) << answer.body;
    }
  }
  EXPECT_OK(keyspaces_->load("shop"));  // nobody did it harm
}

TEST_F(GateTest, StrangersCannotTellWhatExists) {
  const std::string token = make_token(other_, Role::admin).secret;
  for (const Route& route : router_->routes()) {
    if (!names_keyspace(route)) continue;
    const Rule* rule = rule_of(route);
    ASSERT_NE(rule, nullptr);
    if (rule->who == Who::everybody) continue;
    Ask there = ask_of(route, *rule, "shop", shop_);
    Ask absent = ask_of(route, *rule, "nobody", KeyspaceId{777});
    there.token = absent.token = token;
    SCOPED_TRACE(std::string(to_string(route.method)) + " " + there.target);
    const Answer a = ask(there);
    const Answer b = ask(absent);
    EXPECT_EQ(a.status, 403U);
    EXPECT_EQ(b.status, 403U);
    EXPECT_EQ(a.body, b.body);
  }
  for (const char* name : {"shop", "nobody"}) {
    const Answer answer = ask(
        {.target = "/v1/raw/keys/a", .token = token, .headers = {{"X-Trellis-Keyspace", name}}});
    EXPECT_EQ(outcome(answer), "403 wrong_keyspace");
  }
}

TEST_F(GateTest, LocalCallersWithoutAToken) {
  struct Row {
    const char* what;
    std::vector<HttpHeader> headers;
    std::string_view expected;
  };
  const Row rows[] = {
      {"127.0.0.1", {{"Host", "127.0.0.1:7380"}}, "passed"},
      {"without port", {{"Host", "127.0.0.1"}}, "passed"},
      {"localhost", {{"Host", "LocalHost:1"}}, "passed"},
      {"IPv6", {{"Host", "[::1]:7380"}}, "passed"},
      {"IPv6 without port", {{"Host", "[::1]"}}, "passed"},
      {"a name that points here", {{"Host", "evil.example"}}, "403 browser_refused"},
      {"a picture of another page", {{"Sec-Fetch-Site", "cross-site"}}, "403 browser_refused"},
      {"begins like it", {{"Host", "localhost.evil.example"}}, "403 browser_refused"},
      {"begins like it", {{"Host", "127.0.0.1.evil.example:80"}}, "403 browser_refused"},
      {"empty", {{"Host", ""}}, "403 browser_refused"},
      {"brackets", {{"Host", "[::1].evil.example"}}, "403 browser_refused"},
      {"own page", {{"Host", "localhost:7380"}, {"Origin", "http://localhost:7380"}}, "passed"},
      {"another site",
       {{"Host", "localhost:7380"}, {"Origin", "https://evil.example"}},
       "403 browser_refused"},
      {"another program here",
       {{"Host", "localhost:7380"}, {"Origin", "http://localhost:3000"}},
       "403 browser_refused"},
      {"sandboxed page", {{"Host", "localhost:7380"}, {"Origin", "null"}}, "403 browser_refused"},
      {"empty origin", {{"Host", "localhost:7380"}, {"Origin", ""}}, "403 browser_refused"},
      {"through a proxy", {{"X-Forwarded-For", "203.0.113.7"}}, "401 no_token"},
      {"through a proxy", {{"Forwarded", "for=203.0.113.7"}}, "401 no_token"},
      {"through a proxy", {{"x-real-ip", "203.0.113.7"}}, "401 no_token"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    for (const char* target : {"/pd/api/v2/keyspaces", "/v1/top", "/v1/raw/keys/a", "/metrics"}) {
      EXPECT_EQ(outcome(ask({.target = target, .headers = row.headers})), row.expected) << target;
    }
    // A token needs none of this.
    EXPECT_EQ(outcome(ask({.target = "/v1/keyspaces/shop",
                           .token = make_token(shop_, Role::read).secret,
                           .headers = row.headers})),
              "passed");
    EXPECT_EQ(ask({.target = "/healthz", .headers = row.headers}).status, 200U);
  }
}

TEST_F(GateTest, TokensCanBeDemandedOfAll) {
  context_->options.auth = RestOptions::Auth::required;
  EXPECT_EQ(outcome(ask({.target = "/v1/top"})), "401 no_token");
  context_->options.auth = RestOptions::Auth::loopback;
  context_->options.admin_token = make_admin_token();
  EXPECT_EQ(outcome(ask({.target = "/v1/top"})), "401 no_token");
  EXPECT_EQ(outcome(ask({.target = "/v1/top", .token = context_->options.admin_token})), "passed");
  EXPECT_EQ(outcome(ask({.target = "/v1/top", .token = make_admin_token()})), "401 bad_token");
  // An empty admin token is none, not one that everybody knows.
  context_->options.admin_token = "";
  EXPECT_EQ(outcome(ask({.target = "/v1/top", .headers = {{"Authorization", "Bearer "}}})),
            "401 bad_token");
}

TEST_F(GateTest, FormsOfAuthorization) {
  const std::string token = make_token(shop_, Role::read).secret;
  const std::pair<std::string, std::string_view> rows[] = {
      {"Bearer " + token, "passed"},
      {"bearer " + token, "passed"},
      {"Bearer   " + token, "passed"},
      {"Bearer", "401 bad_token"},
      {"Bearer ", "401 bad_token"},
      {"", "401 bad_token"},
      {token, "401 bad_token"},
      {"Basic dXNlcjpwYXNz", "401 bad_token"},
      {"Bearer " + token + " x", "401 bad_token"},
      {"Bearer " + token.substr(0, token.size() - 1), "401 bad_token"},
  };
  for (const auto& [value, expected] : rows) {
    EXPECT_EQ(outcome(ask({.target = "/v1/keyspaces/shop", .headers = {{"Authorization", value}}})),
              expected)
        << value;
  }
  const Answer twice = ask({.target = "/v1/keyspaces/shop",
                            .token = token,
                            .headers = {{"Authorization", "Bearer " + token}}});
  EXPECT_EQ(twice.status, 400U);
  EXPECT_EQ(twice.code(), "header_twice");
}

TEST_F(GateTest, KeyspaceOfData) {
  const std::string token = make_token(shop_, Role::write).secret;
  const auto value_in = [&](KeyspaceId id) -> std::string {
    const auto tenant = keyspaces_->tenant(id);
    const auto entry = raw_.get(**tenant, {Role::server_admin, "root"}, "key");
    return entry && entry->has_value() ? std::string((*entry)->value()) : "";
  };
  const auto put_key = [&](std::string path, std::string body, std::string with_token,
                           std::vector<HttpHeader> headers) {
    return outcome(ask({.method = put,
                        .target = path + "/v1/raw/keys/key",
                        .body = std::move(body),
                        .token = std::move(with_token),
                        .headers = std::move(headers)}));
  };
  EXPECT_EQ(put_key("", "default", "", {}), "passed");
  EXPECT_EQ(value_in(default_keyspace), "default");
  EXPECT_EQ(put_key("", "header", "", {{"X-Trellis-Keyspace", "shop"}}), "passed");
  EXPECT_EQ(value_in(shop_), "header");
  EXPECT_EQ(put_key("/k/other", "path", "", {{"X-Trellis-Keyspace", "shop"}}), "passed");
  EXPECT_EQ(value_in(other_), "path");
  EXPECT_EQ(put_key("", "token", token, {}), "passed");
  EXPECT_EQ(value_in(shop_), "token");
  EXPECT_EQ(put_key("/k/shop", "path and token", token, {}), "passed");
  EXPECT_EQ(put_key("", "header and token", token, {{"X-Trellis-Keyspace", "shop"}}), "passed");
  EXPECT_EQ(put_key("/k/other", "no", token, {}), "403 wrong_keyspace");
  EXPECT_EQ(put_key("/k/DEFAULT", "no", token, {}), "403 wrong_keyspace");
  EXPECT_EQ(put_key("", "no", token, {{"X-Trellis-Keyspace", "other"}}), "403 wrong_keyspace");
  EXPECT_EQ(put_key("", "no", token, {{"X-Trellis-Keyspace", ""}}), "403 wrong_keyspace");
  EXPECT_EQ(value_in(other_), "path");
  EXPECT_EQ(value_in(default_keyspace), "default");
  EXPECT_EQ(ask({.target = "/k/nobody/v1/raw/keys/key"}).code(), "keyspace_not_found");
  EXPECT_EQ(ask({.target = "/%6B/shop/v1/raw/keys/key"}).body, "header and token");
}

TEST_F(GateTest, TokenFollowsItsKeyspaceNotItsName) {
  const Caller root{Role::server_admin, "root"};
  const std::string token = make_token(shop_, Role::admin).secret;
  ASSERT_OK(keyspaces_->rename("shop", "store", root));
  const KeyspaceId new_shop = make("shop");
  EXPECT_EQ(outcome(ask({.target = "/k/shop/v1/raw/keys/a", .token = token})),
            "403 wrong_keyspace");
  EXPECT_EQ(outcome(ask({.target = "/v1/keyspaces/shop", .token = token})), "403 wrong_keyspace");
  EXPECT_EQ(outcome(ask({.target = "/k/store/v1/raw/keys/a", .token = token})), "passed");
  EXPECT_EQ(ask({.target = "/v1/keyspaces/store", .token = token}).status, 200U);

  // Of a tombstone, whose name has gone to another one.
  const std::string new_token = make_token(new_shop, Role::admin).secret;
  for (const KeyspaceState state :
       {KeyspaceState::disabled, KeyspaceState::archived, KeyspaceState::tombstone}) {
    ASSERT_OK(keyspaces_->set_state("shop", state, root));
  }
  make("shop");
  EXPECT_EQ(outcome(ask({.target = "/k/shop/v1/raw/keys/a", .token = new_token})),
            "403 wrong_keyspace");
  for (const Ask& question : {Ask{.method = patch,
                             .target = "/pd/api/v2/keyspaces/shop/config",
                             .body = R"({"config":{"a":"b"}})",
                             .token = new_token},
                              Ask{.target = "/v1/keyspaces/shop/tokens", .token = new_token}}) {
    EXPECT_EQ(outcome(ask(question)), "403 keyspace_gone") << question.target;
  }
  EXPECT_TRUE(keyspaces_->load("shop")->config.empty());
}

}  // namespace gate_test
}  // namespace trellis
