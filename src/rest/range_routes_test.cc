// Ranges over HTTP.
#include "codec/keyspace_keys.h"
#include "support/rest_fixture.h"

namespace trellis {
namespace range_routes_test {

namespace json = boost::json;
using enum HttpMethod;

class RangeRoutesTest : public RestFixture {
 protected:
  std::string key(ByteView text) { return to_hex(encode(RawKey{{5}, text})); }
  Answer split(const std::string& at) {
    return ask({.method = post, .target = "/v1/ranges/split", .body = "{\"key\":\"" + at + "\"}"});
  }
};

TEST_F(RangeRoutesTest, SplitListLookupAndMerge) {
  ASSERT_EQ(split(key("m")).status, 200U);
  ASSERT_EQ(split(key("t")).status, 200U);
  const json::value page = ask({.target = "/v1/ranges?limit=2"}).json();
  EXPECT_EQ(page.at("total").as_int64(), 3);
  ASSERT_EQ(page.at("ranges").as_array().size(), 2U);
  EXPECT_EQ(page.at("next").as_string(), key("t"));
  const json::value rest = ask({.target = "/v1/ranges?from=" + key("t")}).json();
  ASSERT_EQ(rest.at("ranges").as_array().size(), 1U);
  EXPECT_TRUE(rest.at("next").is_null());
  const json::value found = ask({.target = "/v1/ranges/lookup?key=" + key("n")}).json();
  EXPECT_EQ(found.at("range").at("start").as_string(), key("m"));
  EXPECT_EQ(found.at("path").as_array().size(), 2U);
  EXPECT_EQ(
      ask({.method = post, .target = "/v1/ranges/merge", .body = "{\"key\":\"" + key("n") + "\"}"})
          .status,
      200U);
  EXPECT_EQ(ask({.target = "/v1/ranges"}).json().at("total").as_int64(), 2);
  const json::value history = ask({.target = "/v1/ranges/history"}).json();
  EXPECT_EQ(history.at("events").as_array().size(), 4U);
}

TEST_F(RangeRoutesTest, RefusesWhatMakesNoSense) {
  EXPECT_EQ(split("zz").status, 400U);
  EXPECT_EQ(split("02").status, 400U);
  EXPECT_EQ(ask({.target = "/v1/ranges/lookup"}).status, 400U);
  EXPECT_EQ(ask({.target = "/v1/ranges/x"}).status, 400U);
  EXPECT_EQ(ask({.target = "/v1/ranges/77"}).status, 404U);
  EXPECT_EQ(ask({.target = "/v1/ranges/jobs/77"}).status, 404U);
  for (const char* const body :
       {"", "{}", "{\"kind\":\"x\"}", "{\"kind\":\"check\",\"threads\":0}"})
    EXPECT_EQ(ask({.method = post, .target = "/v1/ranges/jobs", .body = body}).status, 400U)
        << body;
}

TEST_F(RangeRoutesTest, ADamagedDirectoryIsFoundAndRebuilt) {
  ASSERT_EQ(split(key("m")).status, 200U);
  ASSERT_EQ(ask({.target = "/v1/ranges/lookup?key=" + key("a")}).status, 200U);
  Commit damage;
  damage.writes.remove(*from_hex("03" + key("m")));
  ASSERT_OK(commit(memory_, damage));
  const json::value verified = ask({.method = post, .target = "/v1/ranges/verify"}).json();
  EXPECT_EQ(verified.at("of_directory").as_array().size(), 1U);
  EXPECT_EQ(verified.at("of_ranges").as_array().size(), 0U);
  EXPECT_EQ(ask({.method = post, .target = "/v1/ranges/rebuild"}).json().at("written").as_int64(),
            1);
  EXPECT_EQ(ask({.method = post, .target = "/v1/ranges/verify"})
                .json()
                .at("of_directory")
                .as_array()
                .size(),
            0U);
}

TEST_F(RangeRoutesTest, AreForTheServersAdmin) {
  const Tokens::Made made = make_token(make("shop"), Role::admin);
  for (const char* const path :
       {"/v1/ranges", "/v1/ranges/1", "/v1/ranges/plan", "/v1/ranges/jobs"})
    EXPECT_EQ(ask({.target = path, .token = made.secret}).status, 403U) << path;
}

}  // namespace range_routes_test
}  // namespace trellis
