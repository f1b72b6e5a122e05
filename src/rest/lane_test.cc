#include "rest/lane.h"

#include <gtest/gtest.h>

#include <string>

namespace trellis {
namespace lane_test {

uint64_t lane(std::string_view path, std::string_view token = "", std::string_view keyspace = "") {
  HttpRequest request;
  request.path = path;
  const std::string authorization = "Bearer " + std::string(token);
  if (!token.empty()) request.headers.push_back({"authorization", authorization});
  if (!keyspace.empty()) request.headers.push_back({"X-Trellis-Keyspace", keyspace});
  return lane_of(request);
}

TEST(Lane, IsThatOfTheKeyspace) {
  const uint64_t shop = lane("/k/shop/v1/raw/batch");
  EXPECT_NE(shop, 0U);
  EXPECT_EQ(lane("/k/shop/v1/raw/keys"), shop);
  EXPECT_EQ(lane("/v1/raw/keys", "trl_admin_secret", "shop"), shop);
  EXPECT_NE(lane("/k/bank/v1/raw/keys"), shop);
  EXPECT_NE(lane("/v1/raw/keys"), 0U);
  EXPECT_EQ(lane("/api/metalakes"), lane("/v1/raw/keys"));
  EXPECT_EQ(lane("/k/shop/api/metalakes"), shop);
}

TEST(Lane, OfATokenIsOneHoweverItsKeyspaceIsNamed) {
  const uint64_t own = lane("/v1/raw/keys", "trl_000201_9f3c5a7e01d2b4c6_x");
  EXPECT_NE(own, 0U);
  EXPECT_EQ(lane("/k/shop/v1/raw/keys", "trl_000201_0000000000000000_y"), own);
  EXPECT_EQ(lane("/v1/keyspaces/shop", "trl_000201_0000000000000000_y", "any"), own);
  EXPECT_NE(lane("/v1/raw/keys", "trl_000202_9f3c5a7e01d2b4c6_x"), own);
}

TEST(Lane, WhatIsOfNoKeyspaceHasNone) {
  EXPECT_EQ(lane("/pd/api/v2/keyspaces"), 0U);
  EXPECT_EQ(lane("/pd/api/v2/keyspaces/shop/state", "trl_admin_secret"), 0U);
  EXPECT_EQ(lane("/v1/top", "?"), 0U);
}

}  // namespace lane_test
}  // namespace trellis
