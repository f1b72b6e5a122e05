// PD's API row by row, with every error, and what of PD's defects is not copied.
#include "support/rest_fixture.h"

namespace trellis {
namespace pd_routes_test {

using enum HttpMethod;

// One request and what it answers. A text that ends in "..." is the beginning of the body.
struct Row {
  const char* what;
  HttpMethod method;
  std::string target;
  std::string body;
  unsigned status;
  std::string expected;
};

class PdRoutesTest : public RestFixture {
 protected:
  void run(std::initializer_list<Row> rows) {
    for (const Row& row : rows) {
      SCOPED_TRACE(row.what);
      const Answer answer = ask({.method = row.method, .target = row.target, .body = row.body});
      EXPECT_EQ(answer.status, row.status) << answer.body;
      EXPECT_EQ(answer.content_type, "application/json");
      if (row.expected.ends_with("...")) {
        const std::string start = row.expected.substr(0, row.expected.size() - 3);
        EXPECT_EQ(answer.body.substr(0, start.size()), start);
      } else {
        EXPECT_EQ(answer.body, row.expected);
      }
    }
  }
};

const std::string base = "/pd/api/v2";
const std::string not_found = R"("[PD:keyspace:ErrKeyspaceNotFound]keyspace does not exist")";
const std::string exists = R"("[PD:keyspace:ErrKeyspaceExists]keyspace already exists")";
const std::string bind_json = R"("[PD:gin:ErrBindJSON]bind JSON error: ...)";
const std::string times = R"("created_at":1700000000,"state_changed_at":1700000000)";

std::string state_change(std::string_view from, std::string_view to) {
  return "\"cannot change keyspace state from " + std::string(from) + " to " + std::string(to) +
         "\"";
}

TEST_F(PdRoutesTest, CreatesKeyspaces) {
  const std::string path = base + "/keyspaces";
  run({
      {"a keyspace", post, path, R"({"name":"shop"})", 200,
       R"({"id":1,"name":"shop","state":"ENABLED",)" + times + "}"},
      {"with a config", post, path, R"({"name":"b-2_","config":{"k":"v","user_kind":"basic"}})",
       200,
       R"({"id":2,"name":"b-2_","state":"ENABLED",)" + times +
           R"(,"config":{"k":"v","user_kind":"basic"}})"},
      {"what PD sets itself is dropped", post, path,
       R"({"name":"c","config":{"tso_keyspace_group_id":"7","meta_service_group_id":"x",)"
       R"("meta_service_group_addrs":"y","kept":"z"}})",
       200, R"({"id":3,"name":"c","state":"ENABLED",)" + times + R"(,"config":{"kept":"z"}})"},
      {"null is no config", post, path, R"({"name":"d","config":null})", 200, R"({"id":4,...)"},
      {"again", post, path, R"({"name":"shop"})", 409, exists},
      {"illegal name", post, path, R"({"name":"a b"})", 422,
       R"("illegal keyspace name a b, should contain only alphanumerical and underline")"},
      {"empty name", post, path, R"({"name":""})", 422,
       R"("illegal keyspace name , should contain only alphanumerical and underline")"},
      {"no name", post, path, "{}", 422, R"("illegal keyspace name ,...)"},
      {"long name", post, path, R"({"name":")" + std::string(65, 'a') + "\"}", 422,
       R"("illegal keyspace name aaaa...)"},
      {"reserved name", post, path, R"({"name":"DEFAULT"})", 422,
       R"("illegal keyspace name DEFAULT, collides with a protected keyspace name")"},
      {"no JSON", post, path, "{", 400, bind_json},
      {"empty body", post, path, "", 400, bind_json},
      {"wrong type", post, path, R"({"name":7})", 400, bind_json},
      {"wrong type of config", post, path, R"({"name":"x","config":[]})", 400, bind_json},
      {"wrong type in config", post, path, R"({"name":"x","config":{"k":1}})", 400, bind_json},
      {"null in config", post, path, R"({"name":"x","config":{"k":null}})", 400, bind_json},
      {"unknown member", post, path, R"({"nmae":"x"})", 400,
       R"("[PD:gin:ErrBindJSON]bind JSON error: the body has the unknown member \"nmae\"")"},
      {"unknown parameter", post, path + "?nmae=x", R"({"name":"x"})", 400,
       R"("[TRELLIS:bad_query]...)"},
      {"large config", post, path,
       R"({"name":"x","config":{"k":")" + std::string(70'000, 'v') + "\"}}", 422,
       R"("[TRELLIS:config_too_large]...)"},
  });
}

TEST_F(PdRoutesTest, CreatesKeyspacesById) {
  const std::string path = base + "/keyspaces/id";
  run({
      {"a keyspace", post, path, R"({"id":7,"name":"shop"})", 200,
       R"({"id":7,"name":"shop","state":"ENABLED",)" + times + "}"},
      {"no id", post, path, R"({"name":"x"})", 400, R"("keyspace id is empty")"},
      {"no name", post, path, R"({"id":8})", 400, R"("keyspace name is empty")"},
      {"empty name", post, path, R"({"id":8,"name":""})", 400, R"("keyspace name is empty")"},
      {"id in use", post, path, R"({"id":7,"name":"x"})", 409, exists},
      {"name in use", post, path, R"({"id":8,"name":"shop"})", 409, exists},
      {"id of DEFAULT", post, path, R"({"id":0,"name":"x"})", 422,
       R"("illegal keyspace id 0, collides with a protected keyspace id")"},
      {"largest id", post, path, R"({"id":16777215,"name":"last"})", 200, R"({"id":16777215,...)"},
      {"over it", post, path, R"({"id":16777216,"name":"x"})", 422,
       R"("illegal keyspace id 16777216, larger than spaceID Max 16777215")"},
      {"not cut to 32 bits", post, path, R"({"id":4294967303,"name":"x"})", 422,
       R"("illegal keyspace id 4294967303, larger than spaceID Max 16777215")"},
      {"negative", post, path, R"({"id":-1,"name":"x"})", 400, bind_json},
      {"float", post, path, R"({"id":1.0,"name":"x"})", 400, bind_json},
      {"exponent", post, path, R"({"id":1e3,"name":"x"})", 400, bind_json},
      {"over 64 bits", post, path, R"({"id":18446744073709551616,"name":"x"})", 400, bind_json},
      {"text", post, path, R"({"id":"9","name":"x"})", 400, bind_json},
      {"a keyspace may be called id", post, base + "/keyspaces", R"({"name":"id"})", 200,
       R"({"id":1,"name":"id",...)"},
      {"and be found", get, base + "/keyspaces/id", "", 200, R"({"id":1,"name":"id",...)"},
      {"and be changed", patch, base + "/keyspaces/id/config", R"({"config":{"a":"b"}})", 200,
       R"({"id":1,"name":"id",...)"},
  });
}

TEST_F(PdRoutesTest, SameRequestIdMakesOneKeyspace) {
  const Ask create{.method = post,
                   .target = base + "/keyspaces",
                   .body = R"({"name":"shop","config":{"k":"v"}})",
                   .headers = {{"Idempotency-Key", "7f3a"}}};
  const Answer first = ask(create);
  EXPECT_EQ(first.status, 200);
  const Answer again = ask(create);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, first.body);
  Ask other = create;
  other.body = R"({"name":"store"})";
  const Answer refused = ask(other);
  EXPECT_EQ(refused.status, 422);
  EXPECT_TRUE(refused.body.starts_with(R"("[TRELLIS:request_reused])")) << refused.body;
  other.headers = {{"Idempotency-Key", std::string(129, 'x')}};
  EXPECT_EQ(ask(other).status, 400);
}

TEST_F(PdRoutesTest, IdsRunOut) {
  Commit last_id;
  last_id.writes.put(encode(KeyspaceAllocatorKey{}), "16777215");
  ASSERT_OK(commit(memory_, last_id));
  run({{"no id is left", post, base + "/keyspaces", R"({"name":"shop"})", 422,
        R"("[PD:idalloc:ErrIDExhausted]id exhausted")"}});
}

TEST_F(PdRoutesTest, LoadsKeyspaces) {
  make("shop");
  const std::string shop = R"({"id":1,"name":"shop","state":"ENABLED",)" + times + "}";
  const std::string path = base + "/keyspaces/";
  run({
      {"by name", get, path + "shop", "", 200, shop},
      {"PD's option", get, path + "shop?force_refresh_group_id=true", "", 200, shop},
      {"unknown option", get, path + "shop?x=1", "", 400, R"("[TRELLIS:bad_query]...)"},
      {"other name", get, path + "Shop", "", 404, not_found},
      {"any bytes", get, path + "%00%ff", "", 404, not_found},
      {"by id", get, path + "id/1", "", 200, shop},
      {"DEFAULT", get, path + "id/0", "", 200, R"({"id":0,"name":"DEFAULT","state":"ENABLED",...)"},
      {"other id", get, path + "id/2", "", 404, not_found},
      {"not cut to 32 bits", get, path + "id/4294967296", "", 422,
       R"("illegal keyspace id 4294967296, larger than spaceID Max 16777215")"},
      {"over 64 bits", get, path + "id/18446744073709551616", "", 400, R"("invalid keyspace id")"},
      {"no number", get, path + "id/x", "", 400, R"("invalid keyspace id")"},
      {"sign", get, path + "id/+1", "", 400, R"("invalid keyspace id")"},
      {"negative", get, path + "id/-1", "", 400, R"("invalid keyspace id")"},
      {"blank", get, path + "id/%201", "", 400, R"("invalid keyspace id")"},
  });
}

TEST_F(PdRoutesTest, ListsKeyspaces) {
  for (const char* name : {"a", "b", "c"}) make(name);
  const auto row = [](int id, const char* name) {
    return "{\"id\":" + std::to_string(id) + ",\"name\":\"" + name + "\",\"state\":\"ENABLED\"," +
           times + "}";
  };
  const std::string all =
      row(0, "DEFAULT") + "," + row(1, "a") + "," + row(2, "b") + "," + row(3, "c");
  const std::string path = base + "/keyspaces";
  run({
      {"all", get, path, "", 200, "{\"keyspaces\":[" + all + R"(],"next_page_token":""})"},
      {"limit 0", get, path + "?limit=0&page_token=", "", 200,
       "{\"keyspaces\":[" + all + R"(],"next_page_token":""})"},
      {"a page", get, path + "?limit=2", "", 200,
       "{\"keyspaces\":[" + row(0, "DEFAULT") + "," + row(1, "a") + R"(],"next_page_token":"2"})"},
      {"the next", get, path + "?limit=2&page_token=2", "", 200,
       "{\"keyspaces\":[" + row(2, "b") + "," + row(3, "c") + R"(],"next_page_token":""})"},
      {"behind the last", get, path + "?page_token=4", "", 200,
       R"({"keyspaces":[],"next_page_token":""})"},
      {"limit of all", get, path + "?limit=18446744073709551615", "", 200, R"({"keyspaces":[...)"},
      {"bad limit", get, path + "?limit=x", "", 400, R"("[TRELLIS:bad_query]limit...)"},
      {"negative limit", get, path + "?limit=-1", "", 400, R"("[TRELLIS:bad_query]limit...)"},
      {"bad token", get, path + "?page_token=x", "", 400, R"("[TRELLIS:bad_query]page_token...)"},
      {"token over all ids", get, path + "?page_token=16777216", "", 400,
       R"("startID of the scan 16777216 exceeds spaceID Max 16777215")"},
      {"twice", get, path + "?limit=1&limit=2", "", 400, R"("[TRELLIS:bad_query]...)"},
  });
}

TEST_F(PdRoutesTest, ListsAnyNumberInBoundedMemory) {
  constexpr int count = 2'500;
  for (int i = 0; i < count; ++i) make("k" + std::to_string(i));
  const Answer answer = ask({.target = base + "/keyspaces"});
  EXPECT_EQ(answer.json().at("keyspaces").as_array().size(), count + 1U);
  EXPECT_LT(largest_chunk_, 100'000U);
  EXPECT_GT(answer.body.size(), 2 * largest_chunk_);
}

TEST_F(PdRoutesTest, PatchesConfig) {
  make("shop");
  const std::string path = base + "/keyspaces/shop/config";
  const std::string shop = R"({"id":1,"name":"shop","state":"ENABLED",)" + times;
  const std::string failed =
      R"("[PD:keyspace:ErrKeyspaceConfigPreconditionFailed]keyspace config precondition failed, )";
  run({
      {"set", patch, path, R"({"config":{"a":"1","b":"2"}})", 200,
       shop + R"(,"config":{"a":"1","b":"2"}})"},
      {"merge", patch, path, R"({"config":{"b":null,"c":"3","gone":null}})", 200,
       shop + R"(,"config":{"a":"1","c":"3"}})"},
      {"precondition", patch, path, R"({"config":{"a":"4"},"preconditions":{"a":"1","none":null}})",
       200, shop + R"(,"config":{"a":"4","c":"3"}})"},
      {"other value", patch, path, R"({"config":{"a":"5"},"preconditions":{"a":"1"}})", 412,
       failed + R"(key=a expected=1 actual=4")"},
      {"must be absent", patch, path, R"({"config":{"a":"5"},"preconditions":{"a":null}})", 412,
       failed + R"(key=a expected=<absent> actual=4")"},
      {"must be there", patch, path, R"({"config":{"a":"5"},"preconditions":{"x":"y"}})", 412,
       failed + R"(key=x expected=y actual=<absent>")"},
      {"refused key", patch, path, R"({"config":{"gc_management_type":"keyspace_level"}})", 422,
       R"("[PD:keyspace:ErrUnsupportedOperationInKeyspace]...)"},
      {"nor removed", patch, path, R"({"config":{"gc_management_type":null}})", 422,
       R"("[PD:keyspace:ErrUnsupportedOperationInKeyspace]...)"},
      {"refused key", patch, path, R"({"config":{"region_bound_type":"raw"}})", 422,
       R"("[PD:keyspace:ErrUnsupportedOperationInKeyspace]...)"},
      {"empty", patch, path, "{}", 200, shop + R"(,"config":{"a":"4","c":"3"}})"},
      {"no JSON", patch, path, "[", 400, bind_json},
      {"wrong type", patch, path, R"({"config":{"a":1}})", 400, bind_json},
      {"wrong type", patch, path, R"({"preconditions":"a"})", 400, bind_json},
      {"unknown member", patch, path, R"({"conf":{}})", 400, bind_json},
      {"nobody", patch, base + "/keyspaces/nobody/config", R"({"config":{}})", 404, not_found},
      {"to the end", patch, path, R"({"config":{"a":null,"c":null}})", 200, shop + "}"},
  });
}

TEST_F(PdRoutesTest, ChangesStates) {
  make("shop");
  const std::string path = base + "/keyspaces/shop/state";
  const auto to = [](std::string_view state) {
    return "{\"state\":\"" + std::string(state) + "\"}";
  };
  const auto is = [](std::string_view state) {
    return R"({"id":1,"name":"shop","state":")" + std::string(state) + "\",...";
  };
  run({
      {"no-op", put, path, to("enabled"), 200, is("ENABLED")},
      {"too far", put, path, to("archived"), 409, state_change("ENABLED", "ARCHIVED")},
      {"too far", put, path, to("tombstone"), 409, state_change("ENABLED", "TOMBSTONE")},
      {"disable", put, path, to("Disabled"), 200, is("DISABLED")},
      {"config of a disabled one", patch, base + "/keyspaces/shop/config",
       R"({"config":{"a":"b"}})", 200, is("DISABLED")},
      {"too far", put, path, to("tombstone"), 409, state_change("DISABLED", "TOMBSTONE")},
      {"enable", put, path, to("ENABLED"), 200, is("ENABLED")},
      {"disable", put, path, to("disabled"), 200, is("DISABLED")},
      {"archive", put, path, to("archived"), 200, is("ARCHIVED")},
      {"config is locked", patch, base + "/keyspaces/shop/config", R"({"config":{"a":"c"}})", 409,
       R"("cannot change config for keyspace with state ARCHIVED")"},
      {"not back so far", put, path, to("enabled"), 409, state_change("ARCHIVED", "ENABLED")},
      {"end", put, path, to("tombstone"), 200, is("TOMBSTONE")},
      {"the name is free", put, path, to("tombstone"), 404, not_found},
      {"the id is kept", get, base + "/keyspaces/id/1", "", 200, is("TOMBSTONE")},
      {"DEFAULT", put, base + "/keyspaces/DEFAULT/state", to("disabled"), 422,
       R"("[PD:keyspace:ErrModifyDefaultKeyspace]cannot modify default keyspace's state")"},
      {"unknown state", put, path, to("asleep"), 400, R"("unknown target state: asleep")"},
      {"no state", put, path, "{}", 400, R"("unknown target state...)"},
      {"wrong type", put, path, R"({"state":1})", 400, bind_json},
      {"nobody", put, base + "/keyspaces/nobody/state", to("disabled"), 404, not_found},
  });
}

TEST_F(PdRoutesTest, MovesSafePoints) {
  make("shop");
  const std::string gc = base + "/gc/safepoint/1";
  const std::string txn = base + "/gc/txn_safepoint/1";
  const auto at = [](uint64_t point) { return R"({"safe_point":)" + std::to_string(point) + "}"; };
  run({
      {"at first", get, gc, "", 200, R"({"keyspace_id":1,"safe_point":0})"},
      {"at first", get, txn, "", 200,
       R"({"keyspace_id":1,"safe_point":0,"blocker_description":""})"},
      {"ahead of txn", put, gc, at(5), 409, R"("[PD:gc:ErrGCSafePointExceedsTxnSafePoint]...)"},
      {"txn", put, txn, at(10), 200,
       R"({"keyspace_id":1,"safe_point":10,"blocker_description":""})"},
      {"back", put, txn, at(9), 409, R"("[PD:gc:ErrDecreasingTxnSafePoint]...)"},
      {"gc", put, gc, at(7), 200, R"({"keyspace_id":1,"safe_point":7})"},
      {"back", put, gc, at(6), 409, R"("[PD:gc:ErrDecreasingGCSafePoint]...)"},
      {"future", put, txn, at(UINT64_MAX), 422, R"("[TRELLIS:safe_point_in_future]...)"},
      {"no point", put, gc, "{}", 400, bind_json},
      {"no number", put, gc, R"({"safe_point":"1"})", 400, bind_json},
      {"negative", put, txn, R"({"safe_point":-1})", 400, bind_json},
      {"exponent", put, txn, R"({"safe_point":1e1})", 400, bind_json},
      {"nobody", get, base + "/gc/safepoint/2", "", 404, not_found},
      {"nobody", put, base + "/gc/txn_safepoint/2", at(1), 404, not_found},
      {"bad id", get, base + "/gc/safepoint/4294967297", "", 422, R"("illegal keyspace id ...)"},
      {"bad id", get, base + "/gc/state/x", "", 400, R"("invalid keyspace id")"},
  });
}

TEST_F(PdRoutesTest, KeepsServiceSafePoints) {
  make("shop");
  const std::string path = base + "/gc/service_safepoint/1";
  const std::string backup =
      R"({"service_id":"backup-7","safe_point":20,"expired_at":1700000060,"set_at":1700000000})";
  run({
      {"none", get, path, "", 200, R"({"keyspace_id":1,"service_safe_points":[]})"},
      {"txn", put, base + "/gc/txn_safepoint/1", R"({"safe_point":10})", 200, "{..."},
      {"set", put, path + "/backup-7", R"({"safe_point":20,"ttl":60})", 200, backup},
      {"all", get, path, "", 200, R"({"keyspace_id":1,"service_safe_points":[)" + backup + "]}"},
      {"it holds", put, base + "/gc/txn_safepoint/1", R"({"safe_point":30})", 200,
       R"({"keyspace_id":1,"safe_point":20,"blocker_description":"...)"},
      {"state", get, base + "/gc/state/1", "", 200,
       R"({"keyspace_id":1,"gc_safe_point":0,"txn_safe_point":20,"service_safe_points":[)" +
           backup + "]}"},
      {"behind", put, path + "/late", R"({"safe_point":19,"ttl":60})", 409,
       R"("[PD:gc:ErrGCBarrierTSBehindTxnSafePoint]...)"},
      {"reserved", put, path + "/gc_worker", R"({"safe_point":30,"ttl":60})", 422,
       R"("[PD:gc:ErrReservedGCBarrierID]...)"},
      {"no ttl", put, path + "/x", R"({"safe_point":30})", 400, bind_json},
      {"ttl 0", put, path + "/x", R"({"safe_point":30,"ttl":0})", 422,
       R"("[TRELLIS:illegal_ttl]...)"},
      {"for ever", put, path + "/x", R"({"safe_point":30,"ttl":9223372036854775807})", 200,
       R"({"service_id":"x","safe_point":30,"expired_at":9223372036854775807,...)"},
      {"delete", del, path + "/backup-7", "", 200, backup},
      {"again", del, path + "/backup-7", "", 404, R"("[TRELLIS:barrier_not_found]...)"},
      {"illegal service", del, path + "/%00", "", 422, R"("[TRELLIS:illegal_service]...)"},
      {"nobody", get, base + "/gc/service_safepoint/9", "", 404, not_found},
  });
}

TEST_F(PdRoutesTest, HasNoGroups) {
  const std::string groups = base + "/tso/keyspace-groups";
  const std::string meta = base + "/meta-service-groups";
  const std::string no_groups = R"("[TRELLIS:no_groups]...)";
  run({
      {"list", get, groups, "", 200, "[]"},
      {"list", get, groups + "?state=merge&limit=1&page_token=2", "", 200, "[]"},
      {"one", get, groups + "/0", "", 200, "null"},
      {"create", post, groups, "{}", 501, no_groups},
      {"delete", del, groups + "/1", "", 501, no_groups},
      {"patch", patch, groups + "/1", "{}", 501, no_groups},
      {"alloc", post, groups + "/1/alloc", "{}", 501, no_groups},
      {"split", post, groups + "/1/split", "{}", 501, no_groups},
      {"split", del, groups + "/1/split", "", 501, no_groups},
      {"merge", post, groups + "/1/merge", "{}", 501, no_groups},
      {"merge", del, groups + "/1/merge", "", 501, no_groups},
      {"keyspaces", del, groups + "/1/keyspaces", "{}", 501, no_groups},
      {"list", get, meta, "", 200, "[]"},
      {"patch", patch, meta, "{}", 501, no_groups},
      {"status", patch, meta + "/g/status", "{}", 501, no_groups},
  });
}

TEST_F(PdRoutesTest, ErrorsOfTheServerAreTextsToo) {
  run({
      {"path", get, "/pd/api/v2/nothing", "", 404, "\"\""},
      {"method", del, "/pd/api/v2/keyspaces", "", 405, "\"\""},
  });
  EXPECT_EQ(error_response(503, "too many\nconnections", "/pd/x").body,
            R"("too many\nconnections")");
  EXPECT_EQ(error_response(503, "full", "/v1/x").body,
            R"({"code":"unavailable","message":"full","details":{},"retryable":true})");
  EXPECT_EQ(error_response(404, "no", "/pd").body,
            R"({"code":"path_not_found","message":"no","details":{},"retryable":false})");
}

}  // namespace pd_routes_test
}  // namespace trellis
