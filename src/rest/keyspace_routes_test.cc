// Keyspaces beyond PD: what is known of them, their life, tokens, GC, and the log of it all.
#include "support/rest_fixture.h"

namespace trellis {
namespace keyspace_routes_test {

using enum HttpMethod;
namespace json = boost::json;

const Caller root{Role::server_admin, "root"};

class KeyspaceRoutesTest : public RestFixture {
 protected:
  Answer send(HttpMethod method, const std::string& target, std::string body = "") {
    return ask({.method = method, .target = target, .body = std::move(body)});
  }
  void set_states(const std::string& name, std::initializer_list<KeyspaceState> states) {
    for (const KeyspaceState state : states) ASSERT_OK(keyspaces_->set_state(name, state, root));
  }
  // Runs the collector until it has nothing more to do now.
  void collect() {
    Collector collector(*keyspaces_, *gc_);
    collector.own(Model::raw, raw_);
    for (int i = 0; i < 1'000; ++i) {
      const auto wait_ms = collector.step();
      ASSERT_OK(wait_ms);
      if (!wait_ms->has_value() || **wait_ms > 0) return;
    }
    FAIL() << "the collector does not come to an end";
  }
};

TEST_F(KeyspaceRoutesTest, Describes) {
  make("shop");
  EXPECT_EQ(send(get, "/v1/keyspaces/shop").body,
            R"({"keyspace":{"id":1,"name":"shop","state":"ENABLED","created_at":1700000000,)"
            R"("state_changed_at":1700000000},"revision":2,"retire_at_ms":null,"purged_at":null,)"
            R"("quota":{"bytes":0,"keys":0,"operations_per_second":0},)"
            R"("figures":{"bytes":0,"live_bytes":0,"waiting_bytes":0,"keys":0},)"
            R"("load":{"reads_per_second":0,"writes_per_second":0,"reads":0,"writes":0},)"
            R"("gc":"nothing waits","purge":null})");
  EXPECT_EQ(send(get, "/v1/keyspaces/shop").body, send(get, "/v1/keyspace-ids/1").body);
  send(put, "/k/shop/v1/raw/keys/a", "12345");
  send(put, "/k/shop/v1/raw/keys/b?ttl_ms=1000", "12345");
  send(get, "/k/shop/v1/raw/keys/b");
  clock_.advance_ms(2'000);
  const json::value known = send(get, "/v1/keyspaces/shop").json();
  const json::object& figures = known.at("figures").as_object();
  EXPECT_EQ(figures.at("keys").as_int64(), 2);
  EXPECT_GT(figures.at("waiting_bytes").as_int64(), 0);
  EXPECT_EQ(figures.at("live_bytes").as_int64() + figures.at("waiting_bytes").as_int64(),
            figures.at("bytes").as_int64());
  EXPECT_EQ(known.at("load").at("reads").as_int64(), 1);
  EXPECT_EQ(known.at("load").at("writes").as_int64(), 2);
  EXPECT_NE(known.at("gc").as_string(), "nothing waits");

  EXPECT_EQ(send(get, "/v1/keyspaces/nobody").code(), "keyspace_not_found");
  EXPECT_EQ(send(get, "/v1/keyspaces/nobody").status, 404U);
  EXPECT_EQ(send(get, "/v1/keyspace-ids/9").status, 404U);
  EXPECT_EQ(send(get, "/v1/keyspace-ids/x").status, 400U);
  EXPECT_EQ(send(get, "/v1/keyspace-ids/4294967297").status, 422U);
  EXPECT_EQ(send(get, "/v1/keyspaces/shop?x=1").code(), "bad_query");
}

TEST_F(KeyspaceRoutesTest, Renames) {
  make("shop");
  make("other");
  const auto rename = [&](const std::string& name, std::string body) {
    return send(post, "/v1/keyspaces/" + name + "/rename", std::move(body));
  };
  EXPECT_EQ(rename("shop", R"({"name":"store"})").json().at("keyspace").at("name").as_string(),
            "store");
  EXPECT_EQ(send(get, "/v1/keyspaces/shop").status, 404U);
  EXPECT_EQ(rename("shop", R"({"name":"x"})").status, 404U);
  EXPECT_EQ(rename("store", R"({"name":"other"})").status, 409U);
  EXPECT_EQ(rename("store", R"({"name":"a b"})").status, 422U);
  EXPECT_EQ(rename("store", R"({"name":"SYSTEM"})").code(), "reserved_name");
  EXPECT_EQ(rename("DEFAULT", R"({"name":"x"})").code(), "default_keyspace");
  EXPECT_EQ(rename("store", R"({})").code(), "bad_body");
  EXPECT_EQ(rename("store", R"({"name":7})").code(), "bad_body");
  EXPECT_EQ(rename("store", R"({"name":"x","id":1})").code(), "bad_body");
}

TEST_F(KeyspaceRoutesTest, UndoesAndPurges) {
  const KeyspaceId shop = make("shop");
  send(put, "/k/shop/v1/raw/keys/a", "1");
  const auto refused = [&](const std::string& what) {
    const Answer answer = send(post, "/v1/keyspaces/shop/" + what);
    EXPECT_EQ(answer.status, 409U);
    EXPECT_EQ(answer.code(), "illegal_state_change");
    EXPECT_FALSE(answer.json().at("retryable").as_bool());
  };
  refused("undo");
  refused("purge");
  EXPECT_EQ(keyspaces_->load(shop)->state, KeyspaceState::enabled);
  set_states("shop", {KeyspaceState::disabled});
  refused("undo");
  refused("purge");
  set_states("shop", {KeyspaceState::archived});
  EXPECT_EQ(send(get, "/v1/keyspaces/shop").json().at("retire_at_ms").as_int64(),
            static_cast<int64_t>(start_ms + KeyspacesOptions().archive_retention_ms));
  EXPECT_EQ(send(post, "/v1/keyspaces/shop/undo").json().at("keyspace").at("state").as_string(),
            "DISABLED");
  EXPECT_EQ(send(get, "/v1/keyspace-ids/1/purge").code(), "purge_not_found");

  set_states("shop", {KeyspaceState::archived});
  EXPECT_EQ(send(post, "/v1/keyspaces/shop/purge", R"({"force":true})").code(), "bad_body");
  const Answer purged = send(post, "/v1/keyspaces/shop/purge", "{}");
  EXPECT_EQ(purged.status, 202U);
  EXPECT_EQ(purged.json().at("keyspace").at("state").as_string(), "TOMBSTONE");
  EXPECT_EQ(send(post, "/v1/keyspaces/shop/purge").status, 404U);
  EXPECT_EQ(send(get, "/v1/keyspace-ids/1/purge").body,
            R"({"state":"waiting","started_ms":null,"updated_ms":null,"finished_ms":null,)"
            R"("bytes_total":0,"bytes_done":0,"entries_done":0,"held_by":null})");
  EXPECT_EQ(send(get, "/v1/keyspace-ids/1").json().at("purge").at("state").as_string(), "waiting");
  collect();
  const json::value progress = send(get, "/v1/keyspace-ids/1/purge").json();
  EXPECT_EQ(progress.at("state").as_string(), "done");
  EXPECT_EQ(progress.at("bytes_done").as_int64(), progress.at("bytes_total").as_int64());
  EXPECT_GT(progress.at("entries_done").as_int64(), 0);
  EXPECT_EQ(progress.at("finished_ms").as_int64(), static_cast<int64_t>(start_ms));
  const json::value known = send(get, "/v1/keyspace-ids/1").json();
  EXPECT_EQ(known.at("purged_at").as_int64(), static_cast<int64_t>(start_ms / 1000));
  EXPECT_EQ(known.at("figures").at("bytes").as_int64(), 0);
  EXPECT_EQ(send(get, "/pd/api/v2/keyspaces/id/1").status, 404U);
}

TEST_F(KeyspaceRoutesTest, APurgeThatIsHeldSaysByWhom) {
  const KeyspaceId shop = make("shop");
  send(put, "/k/shop/v1/raw/keys/a", "1");
  ASSERT_OK(gc_->set_barrier(shop, "backup-7", 5, 3'600, root));
  set_states("shop", {KeyspaceState::disabled, KeyspaceState::archived, KeyspaceState::tombstone});
  collect();
  const json::value progress = send(get, "/v1/keyspace-ids/1/purge").json();
  EXPECT_EQ(progress.at("state").as_string(), "held");
  EXPECT_NE(progress.at("held_by").as_string().find("backup-7"), json::string::npos);
}

TEST_F(KeyspaceRoutesTest, SetsQuotas) {
  make("shop");
  const auto quota = [&](std::string body) {
    return send(put, "/v1/keyspaces/shop/quota", std::move(body));
  };
  EXPECT_EQ(quota(R"({"bytes":100,"keys":7})").body,
            R"({"quota":{"bytes":100,"keys":7,"operations_per_second":0}})");
  EXPECT_EQ(quota(R"({"operations_per_second":5,"keys":0})").body,
            R"({"quota":{"bytes":100,"keys":0,"operations_per_second":5}})");
  EXPECT_EQ(quota("{}").body, R"({"quota":{"bytes":100,"keys":0,"operations_per_second":5}})");
  for (const char* bad : {R"({"bytes":-1})", R"({"bytes":1.5})", R"({"bytes":"1"})",
                          R"({"byte":1})", R"({"bytes":1,"bytes":2})", "[]", ""}) {
    EXPECT_EQ(quota(bad).code(), "bad_body") << bad;
  }
  EXPECT_EQ(send(put, "/v1/keyspaces/nobody/quota", "{}").status, 404U);
}

TEST_F(KeyspaceRoutesTest, MakesListsAndRevokesTokens) {
  make("shop");
  const std::string path = "/v1/keyspaces/shop/tokens";
  const Answer made = send(post, path, R"({"role":"write","label":"ci","ttl_seconds":3600})");
  EXPECT_EQ(made.status, 201U);
  EXPECT_EQ(made.header("Cache-Control"), "no-store");
  const json::value token = made.json();
  EXPECT_EQ(token.at("expires_at_ms").as_int64(), static_cast<int64_t>(start_ms + 3'600'000));
  const std::string secret(token.at("token").as_string());
  EXPECT_TRUE(secret.starts_with("trl_000001_"));
  const std::string id(token.at("id").as_string());
  const Answer list = send(get, path);
  EXPECT_EQ(list.body, R"({"tokens":[{"id":")" + id +
                           R"(","role":"write","label":"ci","created_at_ms":1700000000000,)"
                           R"("expires_at_ms":1700003600000}]})");
  EXPECT_EQ(ask({.target = "/v1/raw/keys/a", .token = secret, .is_local = false}).status, 404U);
  EXPECT_EQ(send(del, path + "/" + id).status, 204U);
  EXPECT_EQ(send(del, path + "/" + id).code(), "token_not_found");
  EXPECT_EQ(ask({.target = "/v1/raw/keys/a", .token = secret, .is_local = false}).status, 401U);

  EXPECT_TRUE(send(post, path, R"({"role":"read"})").json().at("expires_at_ms").is_null());
  for (const auto& [body, status, code] :
       {std::tuple{R"({"role":"root"})", 400U, "bad_body"},
        {"{}", 400U, "bad_body"},
        {R"({"role":"server admin"})", 400U, "bad_body"},
        {R"({"role":"read","ttl_seconds":0})", 422U, "illegal_ttl"},
        {R"({"role":"read","ttl_seconds":18446744073709551615})", 422U, "illegal_ttl"},
        {R"({"role":"read","ttl":5})", 400U, "bad_body"},
        {R"({"role":"read","label":"\u0007"})", 422U, "illegal_token"}}) {
    const Answer answer = send(post, path, body);
    EXPECT_EQ(answer.status, status) << body;
    EXPECT_EQ(answer.code(), code) << body;
  }
}

TEST_F(KeyspaceRoutesTest, ExplainsGc) {
  const KeyspaceId shop = make("shop");
  EXPECT_EQ(send(get, "/v1/keyspaces/shop/gc").body,
            R"({"keyspace_id":1,"gc_safe_point":0,"txn_safe_point":0,"service_safe_points":[],)"
            R"("held_by":null,"waiting_bytes":0,"waiting_notes":0,"more":false,)"
            R"("oldest_due_ms":null,"paused":false,"collecting":null,)"
            R"("explanation":"nothing waits"})");
  send(put, "/k/shop/v1/raw/keys/a?ttl_ms=1000", "1");
  ASSERT_OK(gc_->set_barrier(shop, "backup-7", 5, 3'600, root));
  clock_.advance_ms(5'000);
  const json::value why = send(get, "/v1/keyspaces/shop/gc").json();
  EXPECT_EQ(why.at("held_by").at("service_id").as_string(), "backup-7");
  EXPECT_EQ(why.at("waiting_notes").as_int64(), 1);
  EXPECT_EQ(why.at("oldest_due_ms").as_int64(), static_cast<int64_t>(start_ms + 1'000));
}

TEST_F(KeyspaceRoutesTest, Top) {
  make("small");
  make("large");
  send(put, "/k/small/v1/raw/keys/a", "1");
  send(put, "/k/small/v1/raw/keys/b", "1");
  send(put, "/k/large/v1/raw/keys/a", std::string(1'000, 'x'));
  const auto names = [&](const std::string& query) {
    std::string out;
    const json::value answer = send(get, "/v1/top" + query).json();
    for (const json::value& entry : answer.at("keyspaces").as_array()) {
      out += std::string(entry.at("name").as_string()) + " ";
    }
    return out;
  };
  EXPECT_EQ(names(""), "large small DEFAULT ");
  EXPECT_EQ(names("?by=bytes&limit=1"), "large ");
  EXPECT_EQ(names("?by=keys&limit=2"), "small large ");
  EXPECT_TRUE(names("?by=operations").starts_with("small large"));
  EXPECT_EQ(send(get, "/v1/top?by=size").code(), "bad_query");
  EXPECT_EQ(send(get, "/v1/top?limit=0").code(), "bad_query");
  EXPECT_EQ(send(get, "/v1/top?limit=1001").code(), "bad_query");
}

TEST_F(KeyspaceRoutesTest, Audit) {
  make("shop");
  make("other");
  send(put, "/pd/api/v2/keyspaces/shop/state", R"({"state":"disabled"})");
  send(post, "/v1/keyspaces/shop/rename", R"({"name":"store"})");
  const auto revisions = [&](const std::string& query) {
    const json::value answer = send(get, "/v1/audit" + query).json();
    std::string out;
    for (const json::value& change : answer.at("changes").as_array()) {
      out += std::to_string(change.at("revision").as_int64()) + " ";
    }
    return out + "of " + std::to_string(answer.at("last_revision").as_int64());
  };
  EXPECT_EQ(revisions(""), "1 2 3 4 5 of 5");
  EXPECT_EQ(revisions("?since=3"), "4 5 of 5");
  EXPECT_EQ(revisions("?since=5"), "of 5");
  EXPECT_EQ(revisions("?limit=2"), "1 2 of 2");
  EXPECT_EQ(revisions("?since=2&limit=2"), "3 4 of 4");
  EXPECT_EQ(revisions("?keyspace=store"), "2 4 5 of 5");
  EXPECT_EQ(revisions("?keyspace=shop"), "2 4 5 of 5");
  EXPECT_EQ(revisions("?keyspace=nobody"), "of 5");
  EXPECT_EQ(send(get, "/v1/audit?since=3&limit=1").body,
            R"({"changes":[{"revision":4,"time_ms":1700000000000,"actor":"loopback",)"
            R"("action":"state","keyspace_id":1,"name":"shop","detail":"ENABLED -> DISABLED"}],)"
            R"("last_revision":4})");
  EXPECT_EQ(send(get, "/v1/audit?since=6").status, 422U);
  EXPECT_EQ(send(get, "/v1/audit?since=x").code(), "bad_query");
}

TEST_F(KeyspaceRoutesTest, AuditOfALogWithoutItsBeginning) {
  open({.changes = {.entries_max = 10}});
  for (int i = 0; i < 50; ++i) make("k" + std::to_string(i));
  const json::value all = send(get, "/v1/audit").json();
  EXPECT_EQ(all.at("changes").as_array().size(), 10U);
  EXPECT_EQ(all.at("last_revision").as_int64(), 51);
  const Answer gone = send(get, "/v1/audit?since=3");
  EXPECT_EQ(gone.status, 410U);
  EXPECT_EQ(gone.code(), "compacted");
}

TEST_F(KeyspaceRoutesTest, Collector) {
  const auto pace = [&](const std::string& body) {
    return ask({.method = post, .target = "/v1/collector", .body = body});
  };
  const std::string rest = R"(,"notes":0,"purged_bytes":0})";
  EXPECT_EQ(send(get, "/v1/collector").body,
            R"({"paused":false,"bytes_per_second":0,"threads":2)" + rest);
  EXPECT_EQ(pace(R"({"paused":true,"bytes_per_second":5})").body,
            R"({"paused":true,"bytes_per_second":5,"threads":2)" + rest);
  EXPECT_EQ(pace(R"({"threads":16})").body,
            R"({"paused":true,"bytes_per_second":5,"threads":16)" + rest);
  EXPECT_TRUE(send(get, "/v1/keyspaces/DEFAULT/gc").json().at("paused").as_bool());
  for (const char* body : {"", "[]", R"({"paused":1})", R"({"threads":0})", R"({"threads":17})",
                           R"({"threads":4294967297})", R"({"speed":1})"})
    EXPECT_EQ(pace(body).status, 400U) << body;
  EXPECT_EQ(send(get, "/v1/collector").body,
            R"({"paused":true,"bytes_per_second":5,"threads":16)" + rest);
  const std::string token = make_token(make("shop"), Role::admin).secret;
  EXPECT_EQ(ask({.target = "/v1/collector", .token = token}).status, 403U);
}

TEST_F(KeyspaceRoutesTest, Operators) {
  EXPECT_EQ(send(get, "/healthz").body, R"({"status":"ok"})");
  EXPECT_EQ(send(get, "/readyz").body, R"({"status":"ready"})");
  const auto counter = metrics_.counter("trellis_test_total", "Tests.");
  ASSERT_OK(counter);
  counter->add(3);
  const Answer metrics = send(get, "/metrics");
  EXPECT_TRUE(metrics.content_type.starts_with("text/plain; version=0.0.4"));
  EXPECT_NE(metrics.body.find("trellis_test_total 3"), std::string::npos);
}

}  // namespace keyspace_routes_test
}  // namespace trellis
