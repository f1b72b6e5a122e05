#include "rest/catalog_answers.h"

#include <gtest/gtest.h>

#include "rest/catalog_routes.h"

namespace trellis {
namespace catalog_answers_test {

TEST(CatalogAnswers, EveryReasonHasItsRow) {
  struct Row {
    Code code;
    std::string_view reason;
    unsigned status;
    unsigned number;
    std::string_view type;
  };
  const Row rows[] = {
      {Code::invalid, "illegal_argument", 400, 1001, "IllegalArgumentException"},
      {Code::invalid, "bad_body", 400, 1001, "IllegalArgumentException"},
      {Code::too_large, "", 400, 1001, "IllegalArgumentException"},
      {Code::invalid, "illegal_name", 400, 1001, "IllegalNameIdentifierException"},
      {Code::invalid, "illegal_privilege", 400, 1001, "IllegalPrivilegeException"},
      {Code::not_found, "no_such_table", 404, 1003, "NoSuchTableException"},
      {Code::not_found, "no_such_model_version", 404, 1003, "NoSuchModelVersionException"},
      {Code::not_found, "keyspace_not_found", 404, 1003, "NotFoundException"},
      {Code::exists, "metalake_exists", 409, 1004, "MetalakeAlreadyExistsException"},
      {Code::exists, "tag_associated", 409, 1004, "TagAlreadyAssociatedException"},
      {Code::refused, "non_empty_schema", 409, 1005, "NonEmptySchemaException"},
      {Code::refused, "unsupported", 405, 1006, "UnsupportedOperationException"},
      {Code::unsupported, "", 405, 1006, "UnsupportedOperationException"},
      {Code::denied, "forbidden", 403, 1008, "ForbiddenException"},
      {Code::denied, "role_too_weak", 403, 1008, "ForbiddenException"},
      {Code::refused, "catalog_not_in_use", 409, 1009, "CatalogNotInUseException"},
      {Code::refused, "catalog_in_use", 409, 1010, "CatalogInUseException"},
      {Code::denied, "no_token", 401, 1011, "UnauthorizedException"},
      {Code::conflict, "version_changed", 409, 1012, "OptimisticLockException"},
      {Code::conflict, "", 409, 1012, "OptimisticLockException"},
      {Code::corrupt, "", 500, 1002, "RuntimeException"},
      {Code::unavailable, "", 503, 1002, "RuntimeException"},
  };
  for (const Row& row : rows) {
    const GravitinoError got = gravitino_error({row.code, "what", row.reason});
    EXPECT_EQ(got.status, row.status) << row.reason;
    EXPECT_EQ(got.code, row.number) << row.reason;
    EXPECT_EQ(got.type, row.type) << row.reason;
  }
}

TEST(CatalogAnswers, ErrorsAlwaysSaySomething) {
  EXPECT_EQ(
      catalog_error({Code::invalid, ""}, "").body,
      R"({"code":1001,"type":"IllegalArgumentException","message":"IllegalArgumentException"})");
  EXPECT_EQ(catalog_error(404, "a \"path\"").body,
            R"({"code":1003,"type":"NotFoundException","message":"a \"path\""})");
}

TEST(CatalogAnswers, WhichPathsAreTheCatalogs) {
  for (const char* path : {"/api", "/api/metalakes", "/k/shop/api", "/k/shop/api/version"})
    EXPECT_TRUE(is_catalog_path(path)) << path;
  for (const char* path :
       {"/", "/apis", "/v1/api", "/k", "/k/", "/k/api", "/k/shop/v1/api", "/pd/api"})
    EXPECT_FALSE(is_catalog_path(path)) << path;
}

TEST(CatalogAnswers, MediaVersions) {
  EXPECT_EQ(accepted_media_version(""), 1U);
  EXPECT_EQ(accepted_media_version("*/*"), 1U);
  EXPECT_EQ(accepted_media_version("application/vnd.gravitino.v1+json"), 1U);
  EXPECT_EQ(accepted_media_version("text/html,application/vnd.gravitino.v2+json;q=0.5"), 2U);
  EXPECT_EQ(accepted_media_version(
                "application/vnd.gravitino.v9+json, application/vnd.gravitino.v2+json"),
            2U);
  for (const char* unknown :
       {"application/vnd.gravitino.v3+json", "application/vnd.gravitino.v+json",
        "application/vnd.gravitino.v01+json",
        "application/vnd.gravitino.v99999999999999999999+json"})
    EXPECT_EQ(accepted_media_version(unknown), std::nullopt) << unknown;
}

}  // namespace catalog_answers_test
}  // namespace trellis
