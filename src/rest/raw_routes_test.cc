// Raw data over HTTP: one key, many keys, all keys; quotas and states on the way.
#include <map>
#include <sstream>

#include "base/no_wait.h"
#include "json/json_text.h"
#include "net/would_wait.h"
#include "support/rest_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace raw_routes_test {

using enum HttpMethod;
namespace json = boost::json;

const Caller root{Role::server_admin, "root"};

class RawRoutesTest : public RestFixture {
 protected:
  Answer put_key(const std::string& key, std::string value, std::vector<HttpHeader> headers = {},
                 std::string query = "") {
    return ask({.method = put,
                .target = "/v1/raw/keys/" + percent_encode(key) + query,
                .body = std::move(value),
                .headers = std::move(headers)});
  }
  Answer get_key(const std::string& key, std::vector<HttpHeader> headers = {}) {
    return ask({.target = "/v1/raw/keys/" + percent_encode(key), .headers = std::move(headers)});
  }
  Answer post_json(const std::string& target, std::string body) {
    return ask({.method = post, .target = target, .body = std::move(body)});
  }
};

TEST_F(RawRoutesTest, OneKey) {
  EXPECT_EQ(get_key("a").status, 404U);
  EXPECT_EQ(get_key("a").code(), "key_not_found");
  EXPECT_EQ(put_key("a", "1").status, 204U);
  const Answer found = get_key("a");
  EXPECT_EQ(found.status, 200U);
  EXPECT_EQ(found.body, "1");
  EXPECT_EQ(found.content_type, "application/octet-stream");
  EXPECT_EQ(found.header("ETag"), '"' + raw_tag("1") + '"');
  EXPECT_EQ(found.header("X-Trellis-Expires-At"), "");
  EXPECT_EQ(ask({.method = del, .target = "/v1/raw/keys/a"}).status, 204U);
  EXPECT_EQ(ask({.method = del, .target = "/v1/raw/keys/a"}).status, 204U);
  EXPECT_EQ(get_key("a").status, 404U);
}

TEST_F(RawRoutesTest, HeadSaysHowLargeAValueIs) {
  put_key("a", "12345");
  const Ask head_key{.method = head, .target = "/v1/raw/keys/a"};
  const HttpResponse response = open_stream(head_key);
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(response.stream_bytes, 5U);
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(ask({.method = head, .target = "/v1/raw/keys/b"}).status, 404U);
}

TEST_F(RawRoutesTest, KeysAndValuesAreBytes) {
  const std::string all_bytes = Random(test_seed(7)).bytes(3'000);
  for (const std::string& key :
       {std::string("a/b//c"), std::string("\0", 1), std::string("%2F"), std::string("?#&=+ "),
        std::string("..") + "/.", std::string("\xff\xfe"), all_bytes}) {
    SCOPED_TRACE(quote(key.substr(0, 20)));
    EXPECT_EQ(put_key(key, all_bytes + key).status, 204U);
    EXPECT_EQ(get_key(key).body, all_bytes + key);
  }
  // A slash may be written as it is.
  EXPECT_EQ(ask({.target = "/v1/raw/keys/a/b//c"}).status, 200U);
  EXPECT_EQ(put_key("empty", "").status, 204U);
  EXPECT_EQ(get_key("empty").status, 200U);
  EXPECT_EQ(get_key("empty").body, "");
  EXPECT_EQ(ask({.target = "/v1/raw/keys/"}).code(), "empty_key");
  EXPECT_EQ(put_key(std::string(raw_key_bytes_max + 1, 'k'), "").status, 413U);
}

TEST_F(RawRoutesTest, Conditions) {
  const std::string tag1 = '"' + raw_tag("1") + '"';
  const std::string tag2 = '"' + raw_tag("2") + '"';
  EXPECT_EQ(put_key("a", "1", {{"If-Match", "*"}}).status, 412U);
  EXPECT_EQ(put_key("a", "1", {{"If-Match", tag1}}).status, 412U);
  EXPECT_EQ(put_key("a", "1", {{"If-None-Match", "*"}}).status, 204U);
  EXPECT_EQ(put_key("a", "2", {{"If-None-Match", "*"}}).status, 412U);
  EXPECT_EQ(put_key("a", "2", {{"If-Match", tag2}}).code(), "condition_failed");
  EXPECT_EQ(put_key("a", "2", {{"If-Match", tag1}}).status, 204U);
  EXPECT_EQ(put_key("a", "2", {{"If-Match", "*"}}).status, 204U);
  EXPECT_EQ(get_key("a").body, "2");

  for (const std::string& list : {tag2, "W/" + tag2, tag1 + " , " + tag2, std::string("*")}) {
    const Answer answer = get_key("a", {{"If-None-Match", list}});
    EXPECT_EQ(answer.status, 304U) << list;
    EXPECT_EQ(answer.body, "");
    EXPECT_EQ(answer.header("ETag"), tag2);
  }
  EXPECT_EQ(get_key("a", {{"If-None-Match", tag1}}).status, 200U);
  EXPECT_EQ(get_key("a", {{"If-None-Match", "nonsense"}}).status, 200U);

  for (const std::string& bad : {std::string("nonsense"), tag1 + "," + tag2, "W/" + tag1,
                                 std::string("\""), std::string("\"\"")}) {
    EXPECT_EQ(put_key("a", "3", {{"If-Match", bad}}).code(), "bad_condition") << bad;
  }
  EXPECT_EQ(put_key("a", "3", {{"If-None-Match", tag1}}).code(), "bad_condition");
  EXPECT_EQ(put_key("a", "3", {{"If-Match", ""}}).code(), "bad_condition");
  EXPECT_EQ(put_key("a", "3", {{"If-None-Match", ""}}).code(), "bad_condition");
  EXPECT_EQ(put_key("a", "3", {{"If-None-Match", "*"}, {"If-Match", "*"}}).code(), "bad_condition");

  const auto delete_if = [&](const std::string& tag) {
    return ask({.method = del, .target = "/v1/raw/keys/a", .headers = {{"If-Match", tag}}}).status;
  };
  EXPECT_EQ(delete_if(tag1), 412U);
  EXPECT_EQ(delete_if(tag2), 204U);
  EXPECT_EQ(delete_if("*"), 412U);
}

TEST_F(RawRoutesTest, Ttl) {
  EXPECT_EQ(put_key("a", "1", {}, "?ttl_ms=1500").status, 204U);
  EXPECT_EQ(get_key("a").header("X-Trellis-Expires-At"), std::to_string(start_ms + 1'500));
  clock_.advance_ms(1'499);
  EXPECT_EQ(get_key("a").status, 200U);
  clock_.advance_ms(1);
  EXPECT_EQ(get_key("a").status, 404U);
  for (const auto& [query, status, code] : {std::tuple{"?ttl_ms=0", 422U, "illegal_ttl"},
                                            {"?ttl_ms=-1", 400U, "bad_query"},
                                            {"?ttl_ms=1e3", 400U, "bad_query"},
                                            {"?ttl_ms=x", 400U, "bad_query"},
                                            {"?ttl=5", 400U, "bad_query"},
                                            {"?ttl_ms=%", 400U, "bad_query"},
                                            {"?ttl_ms=", 400U, "bad_query"},
                                            {"?ttl_ms=18446744073709551615", 422U, "ttl_too_large"},
                                            {"?ttl_ms=18446744073709551616", 400U, "bad_query"}}) {
    const Answer answer = put_key("a", "1", {}, query);
    EXPECT_EQ(answer.status, status) << query;
    EXPECT_EQ(answer.code(), code) << query;
  }
}

TEST_F(RawRoutesTest, Scans) {
  for (const char* key : {"a", "b1", "b2", "b3", "c", "\xff"}) put_key(key, "v");
  const auto keys = [&](const std::string& query) {
    const Answer answer = ask({.target = "/v1/raw/keys" + query});
    EXPECT_EQ(answer.status, 200U) << answer.body;
    std::string out;
    const json::value page = answer.json();
    for (const json::value& entry : page.at("entries").as_array()) {
      const json::object& object = entry.as_object();
      out += out.empty() ? "" : " ";
      out += object.contains("key") ? object.at("key").as_string().c_str()
                                    : object.at("key_base64").as_string().c_str();
    }
    return out;
  };
  EXPECT_EQ(keys(""), "a b1 b2 b3 c /w==");
  EXPECT_EQ(keys("?reverse=true"), "/w== c b3 b2 b1 a");
  EXPECT_EQ(keys("?prefix=b"), "b1 b2 b3");
  EXPECT_EQ(keys("?begin=b2&end=c"), "b2 b3");
  EXPECT_EQ(keys("?prefix=b&begin=b2"), "b2 b3");
  EXPECT_EQ(keys("?prefix=%ff"), "/w==");
  EXPECT_EQ(keys("?limit=2&reverse=false"), "a b1");
  EXPECT_EQ(keys("?prefix=none"), "");
  EXPECT_EQ(ask({.target = "/v1/raw/keys?prefix=a"}).body,
            R"({"entries":[{"key":"a","value":"v"}],"next":null})");
  EXPECT_EQ(ask({.target = "/v1/raw/keys?prefix=a&keys_only=true"}).body,
            R"({"entries":[{"key":"a"}],"next":null})");
  for (const char* bad : {"limit=0", "limit=10001", "limit=-1", "reverse=yes", "keys_only=1",
                          "cursor=xyz", "cursor=a", "perfix=a", "prefix=%zz", "limit=1&limit=1"}) {
    EXPECT_EQ(ask({.target = std::string("/v1/raw/keys?") + bad}).code(), "bad_query") << bad;
  }
}

TEST_F(RawRoutesTest, ScansGoOnWithACursor) {
  Random random(test_seed(11));
  std::map<Bytes, Bytes> model;
  for (int i = 0; i < 300; ++i) {
    const Bytes key = random.bytes(1 + random.below(6));
    model[key] = random.bytes(random.below(20));
    ASSERT_EQ(put_key(key, model[key]).status, 204U);
  }
  for (const bool reverse : {false, true}) {
    std::vector<std::pair<Bytes, Bytes>> found;
    std::string cursor;
    for (int page = 0; page < 1'000; ++page) {
      const Answer answer = ask(
          {.target = "/v1/raw/keys?limit=7&cursor=" + cursor + (reverse ? "&reverse=true" : "")});
      const json::value body = answer.json();
      for (const json::value& entry : body.at("entries").as_array()) {
        const auto bytes = [&](const std::string& name) {
          if (const json::value* text = entry.as_object().if_contains(name)) {
            return Bytes(text->as_string());
          }
          return *base64_decode(entry.at(name + "_base64").as_string());
        };
        found.emplace_back(bytes("key"), bytes("value"));
      }
      if (body.at("next").is_null()) break;
      cursor = body.at("next").as_string();
    }
    if (reverse) std::reverse(found.begin(), found.end());
    EXPECT_TRUE(std::equal(
        found.begin(), found.end(), model.begin(), model.end(),
        [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }));
  }
  // A cursor narrows what was asked for and never widens it.
  const Answer outside = ask({.target = "/v1/raw/keys?begin=b&end=c&cursor=61&limit=10000"});
  const Answer inside = ask({.target = "/v1/raw/keys?begin=b&end=c&limit=10000"});
  EXPECT_EQ(outside.body, inside.body);
}

TEST_F(RawRoutesTest, Batches) {
  put_key("gone", "1");
  const Answer done = post_json(
      "/v1/raw/batch",
      R"({"operations":[{"put":{"key":"a","value":"1"}},{"put":{"key_base64":"/w==",)"
      R"("value_base64":"AAE=","ttl_ms":1000}},{"delete":{"key":"gone"}},{"put":{"key":"a",)"
      R"("value":"2"}}]})");
  EXPECT_EQ(done.body, R"({"applied":4})");
  EXPECT_EQ(get_key("a").body, "2");
  EXPECT_EQ(get_key("\xff").body, std::string("\0\1", 2));
  EXPECT_EQ(get_key("\xff").header("X-Trellis-Expires-At"), std::to_string(start_ms + 1'000));
  EXPECT_EQ(get_key("gone").status, 404U);
  EXPECT_EQ(post_json("/v1/raw/batch", R"({"operations":[]})").body, R"({"applied":0})");
}

TEST_F(RawRoutesTest, BadBatchesChangeNothing) {
  const auto with = [](const std::string& operation) {
    return R"({"operations":[{"put":{"key":"a","value":"1"}},)" + operation + "]}";
  };
  const std::tuple<std::string, unsigned, std::string_view> rows[] = {
      {with(R"({"put":{"key":"","value":"1"}})"), 400, "empty_key"},
      {with(R"({"put":{"key":"b"}})"), 400, "bad_body"},
      {with(R"({"put":{"value":"b"}})"), 400, "bad_body"},
      {with(R"({"put":{"key":"b","key_base64":"Yg==","value":"1"}})"), 400, "bad_body"},
      {with(R"({"put":{"key_base64":"Yg","value":"1"}})"), 400, "bad_body"},
      {with(R"({"put":{"key_base64":"Yh==","value":"1"}})"), 400, "bad_body"},
      {with(R"({"put":{"key":"b","value":"1","ttl_ms":0}})"), 422, "illegal_ttl"},
      {with(R"({"put":{"key":"b","value":"1","ttl":1}})"), 400, "bad_body"},
      {with(R"({"put":{"key":"b","value":1}})"), 400, "bad_body"},
      {with(R"({"put":null})"), 400, "bad_body"},
      {with(R"({"delete":{}})"), 400, "bad_body"},
      {with(R"({"delete":{"key":"a"},"put":{"key":"a","value":"1"}})"), 400, "bad_body"},
      {with("{}"), 400, "bad_body"},
      {with("7"), 400, "bad_body"},
      {R"({"operations":{}})", 400, "bad_body"},
      {R"({})", 400, "bad_body"},
      {R"({"operations":[],"more":1})", 400, "bad_body"},
      {"[]", 400, "bad_body"},
      {"", 400, "bad_body"},
  };
  for (const auto& [body, status, code] : rows) {
    SCOPED_TRACE(body);
    const Answer answer = post_json("/v1/raw/batch", body);
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.code(), code);
    EXPECT_EQ(get_key("a").status, 404U);
  }
  std::string many = R"({"operations":[{"delete":{"key":"k"}})";
  for (size_t i = 0; i < raw_batch_operations_max; ++i) many += R"(,{"delete":{"key":"k"}})";
  EXPECT_EQ(post_json("/v1/raw/batch", many + "]}").code(), "batch_too_large");
}

TEST_F(RawRoutesTest, CompareAndSet) {
  const std::tuple<std::string, unsigned, std::string> rows[] = {
      {R"({"key":"a","expected":{"value":"0"},"new":null})", 412, R"({"current":null})"},
      {R"({"key":"a","expected":null,"new":{"value":"1","ttl_ms":5000}})", 200, ""},
      {R"({"key":"a","expected":null,"new":{"value":"2"}})", 412,
       R"({"current":{"value":"1","expires_at_ms":1700000005000}})"},
      {R"({"key":"a","expected":{"value":"1"},"new":{"value_base64":"/w=="}})", 200, ""},
      {R"({"key":"a","expected":{"value":"1"},"new":{"value":"2"}})", 412,
       R"({"current":{"value_base64":"/w=="}})"},
      {R"({"key":"a","expected":{"value_base64":"/w=="},"new":null})", 200, ""},
  };
  for (const auto& [body, status, details] : rows) {
    SCOPED_TRACE(body);
    const Answer answer = post_json("/v1/raw/cas", body);
    EXPECT_EQ(answer.status, status) << answer.body;
    if (status == 200) {
      EXPECT_EQ(answer.body, R"({"done":true})");
    } else {
      EXPECT_EQ(answer.code(), "condition_failed");
      EXPECT_EQ(json::serialize(answer.json().at("details")), details);
    }
  }
  for (const char* bad :
       {R"({"key":"a","new":null})", R"({"key":"a","expected":null})",
        R"({"expected":null,"new":null})", R"({"key":"a","expected":{},"new":null})",
        R"({"key":"a","expected":"1","new":null})",
        R"({"key":"a","expected":{"value":"1","ttl_ms":1},"new":null})",
        R"({"key":"a","expected":null,"new":{"value":"1","x":1}})"}) {
    EXPECT_EQ(post_json("/v1/raw/cas", bad).code(), "bad_body") << bad;
  }
}

TEST_F(RawRoutesTest, ExportsAndImports) {
  Random random(test_seed(3));
  make("copy");
  for (int i = 0; i < 3'000; ++i) {
    ASSERT_EQ(
        put_key(random.bytes(1 + random.below(8)), random.bytes(random.below(40)), {},
                random.one_in(3) ? "?ttl_ms=" + std::to_string(1 + random.below(1'000'000)) : "")
            .status,
        204U);
  }
  const Answer exported = ask({.target = "/v1/raw/export"});
  EXPECT_EQ(exported.content_type, "application/x-ndjson");
  EXPECT_LT(largest_chunk_, exported.body.size() / 2);
  const auto lines = std::count(exported.body.begin(), exported.body.end(), '\n');
  const Answer imported =
      ask({.method = post, .target = "/k/copy/v1/raw/import", .body = exported.body});
  EXPECT_EQ(imported.body, "{\"imported\":" + std::to_string(lines) + "}");
  EXPECT_EQ(ask({.target = "/k/copy/v1/raw/export"}).body, exported.body);

  // What has expired on the way is passed over.
  clock_.advance_ms(500'000);
  make("late");
  const Answer late =
      ask({.method = post, .target = "/k/late/v1/raw/import", .body = exported.body});
  EXPECT_EQ(late.status, 200U);
  EXPECT_EQ(ask({.target = "/k/late/v1/raw/export"}).body, ask({.target = "/v1/raw/export"}).body);
}

TEST_F(RawRoutesTest, ExportOfAPrefix) {
  for (const char* key : {"a", "b1", "b2", "c"}) put_key(key, key);
  EXPECT_EQ(ask({.target = "/v1/raw/export?prefix=b"}).body,
            "{\"key\":\"b1\",\"value\":\"b1\"}\n{\"key\":\"b2\",\"value\":\"b2\"}\n");
  EXPECT_EQ(ask({.target = "/v1/raw/export?prefix=x"}).body, "");
  EXPECT_EQ(ask({.target = "/v1/raw/export?limit=1"}).code(), "bad_query");
}

TEST_F(RawRoutesTest, ExportOfAnInterval) {
  for (const char* key : {"a", "b1", "b2", "c"}) put_key(key, "v");
  const auto keys_of = [&](const std::string& body) {
    std::string keys;
    const Answer answer = ask({.method = post, .target = "/v1/raw/export", .body = body});
    EXPECT_EQ(answer.status, 200U) << answer.body;
    std::istringstream lines(answer.body);
    for (std::string line; std::getline(lines, line);)
      keys += std::string(boost::json::parse(line).at("key").as_string()) + " ";
    return keys;
  };
  EXPECT_EQ(keys_of("{}"), "a b1 b2 c ");
  EXPECT_EQ(keys_of(R"({"begin":"b1","end":"c"})"), "b1 b2 ");
  EXPECT_EQ(keys_of(R"({"begin_base64":"YjEA"})"), "b2 c ");  // behind b1
  EXPECT_EQ(keys_of(R"({"prefix":"b","begin":"a","end":"b2"})"), "b1 ");
  EXPECT_EQ(keys_of(R"({"begin":"c","end":"a"})"), "");
  for (const char* body : {"", "[]", R"({"begin":1})", R"({"limit":1})"})
    EXPECT_EQ(ask({.method = post, .target = "/v1/raw/export", .body = body}).code(), "bad_body");
}

// Whoever may read a keyspace learns where it is cut, and nothing of its neighbours.
TEST_F(RawRoutesTest, PartsAreOfTheKeyspace) {
  const KeyspaceId ids[] = {make("before"), make("shop"), make("behind")};
  for (const KeyspaceId id : ids)
    for (const char* key : {"", "f", "m"}) {
      const auto split = ranges_->keeper().split(encode(RawKey{id, key}), 0, "by a test");
      ASSERT_OK(split);
    }
  for (const RangeFigures& figures : accounting_.figures({}, 100))
    accounting_.set_size(figures.range, 1'000, 10, 1);
  const std::string token = make_token(ids[1], Role::read).secret;
  const std::string cut = R"("borders":[{"key":"f"},{"key":"m"}])";
  EXPECT_EQ(ask({.target = "/v1/raw/parts", .token = token}).body, "{" + cut + R"(,"keys":0})");
  EXPECT_EQ(ask({.target = "/k/shop/v1/raw/parts"}).body, "{" + cut + R"(,"keys":0})");
  EXPECT_EQ(ask({.target = "/v1/raw/parts?prefix=g", .token = token}).body,
            R"({"borders":[],"keys":null})");
  const Answer other = ask({.target = "/k/behind/v1/raw/parts", .token = token});
  EXPECT_EQ(other.code(), "wrong_keyspace");
  EXPECT_EQ(ask({.target = "/v1/raw/parts", .is_local = false}).code(), "no_token");
  ASSERT_OK(keyspaces_->set_state("shop", KeyspaceState::disabled, root));
  EXPECT_EQ(ask({.target = "/v1/raw/parts", .token = token}).status, 403U);
}

TEST_F(RawRoutesTest, ImportSaysWhichLineIsBad) {
  upload_piece_bytes_max_ = 1'000;
  const auto line = [](int i) {
    return R"({"key":"k)" + std::to_string(i) + R"(","value":"v"})" + "\n";
  };
  std::string good;
  for (int i = 0; i < 300; ++i) good += line(i);
  const std::tuple<std::string, unsigned, std::string_view> rows[] = {
      {"{", 400, "bad_body"},
      {R"({"key":"a"})", 400, "bad_body"},
      {R"({"key":"a","value":"1","ttl_ms":5})", 400, "bad_body"},
      {R"({"key":"","value":"1"})", 400, "empty_key"},
      {R"({"key":"a","value":"1","expires_at_ms":-1})", 400, "bad_body"},
      {R"({"key":"a","value":"1","expires_at_ms":18446744073709551615})", 422, "ttl_too_large"},
      {R"({"key":")" + std::string(raw_key_bytes_max + 1, 'k') + R"(","value":"1"})", 413,
       "key_too_large"},
      {"{\"key\":\"\xff\",\"value\":\"1\"}", 400, "bad_body"},
      {R"(["a","1"])", 400, "bad_body"},
      {R"({"key":"a","value":{"a":[{}]}})", 400, "bad_body"},
  };
  for (const auto& [bad, status, code] : rows) {
    SCOPED_TRACE(bad.substr(0, 60));
    for (const std::string& rest : {"\n" + line(0), std::string("\n"), std::string()}) {
      const Answer answer =
          ask({.method = post, .target = "/v1/raw/import", .body = good + "\r\n" + bad + rest});
      EXPECT_EQ(answer.status, status) << answer.body;
      EXPECT_EQ(answer.code(), code);
      EXPECT_EQ(json::serialize(answer.json().at("details")),
                R"({"line":302,"imported":300,"resume_line":302})");
    }
  }
  // What came before it is there.
  const json::value entries =
      ask({.target = "/v1/raw/keys?limit=1000&keys_only=true"}).json().at("entries");
  EXPECT_EQ(entries.as_array().size(), 300U);
}

TEST_F(RawRoutesTest, ImportOfNothingAndOfLongLines) {
  const auto import_of = [&](std::string body) {
    return ask({.method = post, .target = "/v1/raw/import", .body = std::move(body)});
  };
  EXPECT_EQ(import_of("").body, R"({"imported":0})");
  EXPECT_EQ(import_of("\n \r\n\n").body, R"({"imported":0})");
  EXPECT_EQ(import_of(R"({"key":"a","value":"1"})").body, R"({"imported":1})");
  upload_piece_bytes_max_ = 1'000'000;
  const std::string large(3'000'000, 'x');
  std::string body;
  for (int i = 0; i < 5; ++i) {
    body += R"({"key":"large)" + std::to_string(i) + R"(","value":")" + large + "\"}\n";
    body += R"({"key":"small)" + std::to_string(i) + R"(","value":"1"})" + "\n";
  }
  EXPECT_EQ(import_of(body).body, R"({"imported":10})");
  EXPECT_EQ(get_key("large4").body, large);
  const Answer too_long = import_of(std::string(25 * 1024 * 1024, 'x'));
  EXPECT_EQ(too_long.status, 413U);
  EXPECT_EQ(too_long.code(), "line_too_large");
  // A bad line far before the end does not make the client send all the rest.
  upload_piece_bytes_max_ = 1'000'000;
  const Answer broken_off = import_of("{\n" + std::string(40 * 1024 * 1024, '\n'));
  EXPECT_EQ(broken_off.status, 400U);
  EXPECT_NE(broken_off.body.find("line 1: "), std::string::npos);
  EXPECT_NE(broken_off.body.find("0 entries before it were imported"), std::string::npos);
}

TEST_F(RawRoutesTest, StreamsEndWithTheirToken) {
  const KeyspaceId shop = make("shop");
  const Tokens::Made token = make_token(shop, Role::write);
  for (int i = 0; i < 2'500; ++i) {
    ask({.method = put, .target = "/k/shop/v1/raw/keys/" + std::to_string(i), .body = "v"});
  }
  const Ask question{.target = "/v1/raw/export", .token = token.secret};
  const HttpResponse response = open_stream(question);
  ASSERT_NE(response.stream, nullptr);
  EXPECT_OK(response.stream->next());
  ASSERT_OK(tokens_->revoke(shop, token.token.id, root));
  EXPECT_REASON(response.stream->next(), Code::denied, "bad_token");
}

TEST_F(RawRoutesTest, Quotas) {
  const KeyspaceId shop = make("shop");
  ASSERT_OK(keyspaces_->set_quota("shop", {.bytes = 1'000, .keys = 3}, root));
  const std::string token = make_token(shop, Role::write).secret;
  const auto put_in = [&](const std::string& key, size_t bytes) {
    return ask({.method = put,
                .target = "/v1/raw/keys/" + key,
                .body = std::string(bytes, 'v'),
                .token = token});
  };
  for (const char* key : {"a", "b", "c"}) EXPECT_EQ(put_in(key, 10).status, 204U);
  const Answer keys = put_in("d", 10);
  EXPECT_EQ(keys.status, 429U);
  EXPECT_EQ(keys.code(), "quota_exceeded");
  EXPECT_FALSE(keys.json().at("retryable").as_bool());
  const Answer bytes = put_in("a", 1'000);
  EXPECT_EQ(bytes.status, 429U);
  // Waiting makes no room.
  EXPECT_EQ(bytes.header("Retry-After"), "");
  EXPECT_EQ(put_in("a", 20).status, 204U);
  EXPECT_EQ(ask({.method = post,
                 .target = "/v1/raw/import",
                 .body = R"({"key":"x","value":"1"})",
                 .token = token})
                .code(),
            "quota_exceeded");
}

TEST_F(RawRoutesTest, Rates) {
  const KeyspaceId shop = make("shop");
  ASSERT_OK(keyspaces_->set_quota("shop", {.operations_per_second = 4}, root));
  const Ask question{.target = "/v1/raw/keys/a", .token = make_token(shop, Role::read).secret};
  clock_.advance_ms(10'000);
  unsigned admitted = 0;
  Answer answer = ask(question);
  for (; answer.status == 404 && admitted < 100; answer = ask(question)) ++admitted;
  EXPECT_GE(admitted, 4U);
  EXPECT_LE(admitted, 6U);
  EXPECT_EQ(answer.status, 429U);
  EXPECT_EQ(answer.code(), "rate_exceeded");
  EXPECT_EQ(answer.header("Retry-After"), "1");
  EXPECT_TRUE(answer.json().at("retryable").as_bool());
  const int64_t wait_ms = answer.json().at("details").at("retry_after_ms").as_int64();
  EXPECT_GT(wait_ms, 0);
  EXPECT_LE(wait_ms, 1'000);
  clock_.advance_ms(static_cast<uint64_t>(wait_ms));
  EXPECT_EQ(ask(question).status, 404U);
}

TEST_F(RawRoutesTest, AnExportWaitsForItsRate) {
  make("shop");
  for (int i = 0; i < 4'500; ++i) {
    ask({.method = put, .target = "/k/shop/v1/raw/keys/" + std::to_string(i), .body = "v"});
  }
  ASSERT_OK(keyspaces_->set_quota("shop", {.operations_per_second = 1}, root));
  clock_.advance_ms(10'000);
  waits_ = true;
  const uint64_t before_ms = clock_.unix_ms();
  const Answer answer = ask({.target = "/k/shop/v1/raw/export"});
  EXPECT_EQ(std::count(answer.body.begin(), answer.body.end(), '\n'), 4'500);
  EXPECT_GE(clock_.unix_ms() - before_ms, 2'000U);
}

TEST_F(RawRoutesTest, AnImportOverItsRateSaysWhereToGoOn) {
  make("shop");
  std::vector<std::string> lines;
  for (int i = 0; i < 200; ++i) {
    lines.push_back(R"({"key":")" + std::to_string(1'000 + i) + R"(","value":"v"})");
    if (i % 10 == 0) lines.emplace_back("");
  }
  ASSERT_OK(keyspaces_->set_quota("shop", {.operations_per_second = 50}, root));
  size_t first = 0;
  int refused = 0;
  for (;;) {
    std::string body;
    for (size_t i = first; i < lines.size(); i++) body += lines[i] + "\n";
    const Answer answer = ask({.method = post, .target = "/k/shop/v1/raw/import", .body = body});
    if (answer.status == 200U) break;
    ASSERT_EQ(answer.code(), "rate_exceeded") << answer.body;
    EXPECT_TRUE(answer.json().at("retryable").as_bool());
    EXPECT_NE(answer.header("Retry-After"), "");
    first += answer.json().at("details").at("resume_line").to_number<size_t>() - 1;
    clock_.advance_ms(1'000);
    ASSERT_LT(++refused, 20);
  }
  EXPECT_GE(refused, 2);
  const Answer all = ask({.target = "/k/shop/v1/raw/keys?limit=1000&keys_only=true"});
  EXPECT_EQ(all.json().at("entries").as_array().size(), 200U);
}

TEST_F(RawRoutesTest, StatesOnTheDataPath) {
  const KeyspaceId shop = make("shop");
  const std::pair<std::string_view, std::string> callers[] = {
      {"read", make_token(shop, Role::read).secret},
      {"write", make_token(shop, Role::write).secret},
      {"admin", make_token(shop, Role::admin).secret},
      {"server", ""},
  };
  ASSERT_EQ(ask({.method = put, .target = "/k/shop/v1/raw/keys/a", .body = "1"}).status, 204U);
  struct Row {
    KeyspaceState state;
    // For read, write, admin and server admin: of a get, of a put.
    std::array<std::string_view, 4> reads;
    std::array<std::string_view, 4> writes;
  };
  constexpr std::string_view disabled = "keyspace_disabled";
  constexpr std::string_view archived = "keyspace_archived";
  constexpr std::string_view gone = "keyspace_gone";
  const Row rows[] = {
      {KeyspaceState::enabled, {"", "", "", ""}, {"role_too_weak", "", "", ""}},
      {KeyspaceState::disabled, {disabled, disabled, "", ""}, {disabled, disabled, "", ""}},
      {KeyspaceState::archived,
       {archived, archived, "", ""},
       {archived, archived, archived, archived}},
      {KeyspaceState::tombstone,
       {gone, gone, gone, "keyspace_not_found"},
       {gone, gone, gone, "keyspace_not_found"}},
  };
  for (const Row& row : rows) {
    ASSERT_OK(keyspaces_->set_state("shop", row.state, root));
    for (size_t i = 0; i < std::size(callers); ++i) {
      SCOPED_TRACE(std::string(to_string(row.state)) + " " + std::string(callers[i].first));
      const std::string base = callers[i].second.empty() ? "/k/shop" : "";
      const auto code = [&](HttpMethod method, const std::string& path, std::string body) {
        const Answer answer = ask({.method = method,
                                   .target = base + path,
                                   .body = std::move(body),
                                   .token = callers[i].second});
        EXPECT_EQ(answer.status >= 400, !answer.code().empty()) << answer.body;
        return answer.code();
      };
      EXPECT_EQ(code(get, "/v1/raw/keys/a", ""), row.reads[i]);
      EXPECT_EQ(code(get, "/v1/raw/keys", ""), row.reads[i]);
      EXPECT_EQ(code(get, "/v1/raw/export", ""), row.reads[i]);
      EXPECT_EQ(code(put, "/v1/raw/keys/a", "1"), row.writes[i]);
      EXPECT_EQ(code(del, "/v1/raw/keys/b", ""), row.writes[i]);
      EXPECT_EQ(code(post, "/v1/raw/batch", R"({"operations":[{"delete":{"key":"b"}}]})"),
                row.writes[i]);
      EXPECT_EQ(code(post, "/v1/raw/cas", R"({"key":"b","expected":null,"new":null})"),
                row.writes[i]);
      EXPECT_EQ(code(post, "/v1/raw/import", ""), row.writes[i]);
    }
  }
}

TEST_F(RawRoutesTest, WritesThatWaitForADiskAreForWorkers) {
  for (const Durability durability : {Durability::everysec, Durability::always}) {
    MapHandle map{engine_, transactor_, clock_, durability};
    auto keyspaces = Keyspaces::open(map);
    ASSERT_OK(keyspaces);
    const RestContext context{**keyspaces, *tokens_,  *gc_,     *collector_, raw_,     *files_,
                              catalog_,    *backups_, metrics_, clock_,      *ranges_, {}};
    const std::vector<Route> routes = make_routes(context);
    for (const Route& route : routes) {
      if (route.pattern.find("{key*}") == std::string_view::npos) continue;
      const bool is_read = route.method == get || route.method == head;
      EXPECT_EQ(route.runs == Route::Runs::loop, is_read || durability != Durability::always);
    }
  }
}

// A loop runs it again on a worker; a client never hears of it.
TEST_F(RawRoutesTest, WhatWouldWaitSaysSo) {
  const Ask write{.method = put, .target = "/v1/raw/keys/a", .body = "1"};
  ASSERT_OK(map_.transact(Scope::all_of(default_keyspace), [&](View&) -> Status {
    const NoWait no_wait;
    EXPECT_EQ(ask(write).status, would_wait_status);
    EXPECT_EQ(ask({.method = del, .target = "/v1/raw/keys/a"}).status, would_wait_status);
    return {};
  }));
  const NoWait no_wait;
  EXPECT_EQ(ask(write).status, 204U);
}

}  // namespace raw_routes_test
}  // namespace trellis
