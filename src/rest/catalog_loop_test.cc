// What of the catalog begins on a loop, which must not wait for others or for a disk.
#include "base/no_wait.h"
#include "net/would_wait.h"
#include "support/rest_fixture.h"

namespace trellis {
namespace {

using enum HttpMethod;

class CatalogLoopTest : public RestFixture {
 protected:
  Answer rename(const std::string& from, const std::string& to, const std::string& more = "") {
    return ask(
        {.method = put,
         .target = "/api/metalakes/" + from,
         .body = R"({"updates":[{"@type":"rename","newName":")" + to + R"("})" + more + "]}"});
  }
};

TEST_F(CatalogLoopTest, WritesThatWaitForADiskAreForWorkers) {
  for (const Durability durability : {Durability::everysec, Durability::always}) {
    MapHandle map{engine_, transactor_, clock_, durability};
    auto keyspaces = Keyspaces::open(map);
    ASSERT_OK(keyspaces);
    const RestContext context{**keyspaces, *tokens_,  *gc_,     *collector_, raw_,     *files_,
                              catalog_,    *backups_, metrics_, clock_,      *ranges_, {}};
    size_t looked_at = 0;
    for (const Route& route : make_routes(context)) {
      const std::string_view one = "/api/metalakes/{metalake}";
      if (route.pattern == one) {
        looked_at++;
        EXPECT_EQ(route.runs == Route::Runs::loop,
                  route.method == get || durability != Durability::always);
      }
      // These may be long, or more than one transaction.
      const bool is_for_workers = (route.pattern == "/api/metalakes" && route.method == get) ||
                                  route.pattern.ends_with("/objects/{type}/{fullName}/tags");
      if (is_for_workers) {
        EXPECT_EQ(route.runs, Route::Runs::worker);
      }
    }
    EXPECT_EQ(looked_at, 4U) << "GET, PUT, PATCH, DELETE";
  }
}

TEST_F(CatalogLoopTest, WhatWouldWaitSaysSoAndIsNotDone) {
  const Ask create{.method = post, .target = "/api/metalakes", .body = R"({"name":"lake"})"};
  ASSERT_OK(map_.transact(Scope::all_of(default_keyspace), [&](View&) -> Status {
    const NoWait no_wait;
    EXPECT_EQ(ask(create).status, would_wait_status);
    return {};
  }));
  EXPECT_EQ(ask({.target = "/api/metalakes/lake"}).status, 404U);
  const NoWait no_wait;
  EXPECT_EQ(ask(create).status, 200U);
  EXPECT_EQ(rename("lake", "sea").status, 200U);
  const std::string large =
      R"(,{"@type":"setProperty","property":"p","value":")" + std::string(20'000, 'x') + R"("})";
  EXPECT_EQ(rename("sea", "pond", large).status, would_wait_status);
  EXPECT_EQ(ask({.target = "/api/metalakes/sea"}).status, 200U);
}

TEST_F(CatalogLoopTest, LargeEntitiesAreForWorkers) {
  const std::string part = R"("value":")" + std::string(14'000, 'x') + R"("})";
  ASSERT_EQ(ask({.method = post, .target = "/api/metalakes", .body = R"({"name":"lake"})"}).status,
            200U);
  const auto grow = [&](int i) {
    return ask({.method = put,
                .target = "/api/metalakes/lake",
                .body = R"({"updates":[{"@type":"setProperty","property":"p)" + std::to_string(i) +
                        "\"," + part + "]}"})
        .status;
  };
  {
    const NoWait no_wait;
    for (int i = 0; i < 4; i++) EXPECT_EQ(grow(i), 200U);
    EXPECT_EQ(grow(4), would_wait_status);
    EXPECT_EQ(ask({.target = "/api/metalakes/lake"}).status, 200U);
  }
  EXPECT_EQ(grow(4), 200U);
  const NoWait no_wait;
  EXPECT_EQ(ask({.target = "/api/metalakes/lake"}).status, would_wait_status);
  EXPECT_EQ(rename("lake", "sea").status, would_wait_status);
}

}  // namespace
}  // namespace trellis
