#include <gtest/gtest.h>

#include "json/json_body.h"
#include "support/rest_fixture.h"
#include "support/test_seed.h"

namespace trellis {
namespace hostile_body_test {

// Every route that takes JSON, with everything that strangers may send.
class HostileBodyTest : public RestFixture {
 protected:
  std::vector<Ask> json_asks() {
    std::vector<Ask> asks;
    for (const Route& route : router_->routes()) {
      if (route.body == Route::Body::none) continue;
      std::string target(route.pattern);
      if (target.find("groups") != std::string::npos) continue;
      if (target == "/v1/backups/stream") continue;  // its body is no JSON
      for (const auto& [what, with] : std::initializer_list<std::pair<std::string, std::string>>{
               {"{name}", "shop"}, {"{keyspace}", "shop"}, {"{id}", "1"}, {"{service}", "s"}}) {
        if (const size_t at = target.find(what); at != std::string::npos) {
          target.replace(at, what.size(), with);
        }
      }
      if (target.find("*}") == std::string::npos) {  // those have bytes
        asks.push_back({.method = route.method, .target = target});
      }
    }
    return asks;
  }
};

TEST_F(HostileBodyTest, IsRefusedByEveryRoute) {
  make("shop");
  const std::string bodies[] = {
      "{",
      "\xff",
      std::string(100'000, '['),
      std::string(100'000, '{'),
      R"({"name":"x","name":"y"})",
      R"({"a":1e999})",
      R"({"key":"\ud800","value":"1"})",
      std::string("{\"name\":\"a\0b\"}", 14),
      "7",
      "null",
      "\"text\"",
      "[{}]",
      R"({"__proto__":{}})",
  };
  for (Ask question : json_asks()) {
    for (const std::string& body : bodies) {
      question.body = body;
      const Answer answer = ask(question);
      // Gravitino's clients look at the code of this one alone.
      if (question.target.ends_with("/testConnection") &&
          answer.body.starts_with(R"({"code":1001,)"))
        continue;
      if (answer.status == 405 && answer.body.starts_with(R"({"code":1006,)")) continue;  // is off
      EXPECT_EQ(answer.status, 400U)
          << question.target << " " << body.substr(0, 40) << " " << answer.body;
    }
  }
}

TEST_F(HostileBodyTest, RandomBytesNeverBreakAnything) {
  make("shop");
  const std::string seeds[] = {
      R"({"name":"x","config":{"k":"v"},"preconditions":{"k":null},"id":7,"state":"disabled"})",
      R"({"operations":[{"put":{"key":"a","value_base64":"AA==","ttl_ms":5}},{"delete":{}}]})",
      R"({"key":"a","expected":null,"new":{"value":"1","ttl_ms":18446744073709551615}})",
      R"({"key":"a","value":"1","expires_at_ms":1700000005000})",
      R"({"safe_point":7,"ttl":9223372036854775807})",
      R"({"bytes":0,"keys":1,"operations_per_second":100000})",
      R"({"role":"read","label":"\u00e9","ttl_seconds":1})",
  };
  Random random(test_seed(13));
  const std::vector<Ask> asks = json_asks();
  for (uint64_t i = 0; i < test_rounds(20'000); ++i) {
    Ask question = asks[random.below(asks.size())];
    question.body = seeds[random.below(std::size(seeds))];
    for (uint64_t changes = random.below(4); changes > 0 && !question.body.empty(); --changes) {
      const size_t at = random.below(question.body.size());
      switch (random.below(4)) {
        case 0: question.body[at] = static_cast<char>(random.next()); break;
        case 1: question.body.erase(at, 1 + random.below(5)); break;
        case 2: question.body.insert(at, random.bytes(1 + random.below(3))); break;
        default: question.body.insert(at, question.body.substr(random.below(at + 1), 9)); break;
      }
    }
    const Answer answer = ask(question);
    ASSERT_LT(answer.status, 500U)
        << question.target << " " << quote(question.body) << " " << answer.body;
    ASSERT_TRUE(answer.body.empty() || parse_json(answer.body).has_value()) << answer.body;
  }
}

}  // namespace hostile_body_test
}  // namespace trellis
