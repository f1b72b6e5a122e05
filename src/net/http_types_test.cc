#include "net/http_types.h"

#include <gtest/gtest.h>

namespace trellis {
namespace {

HttpRequest with_query(std::string_view query) {
  HttpRequest request;
  request.query = query;
  return request;
}

TEST(HttpTypes, QueryValuesAreDecoded) {
  const HttpRequest request = with_query("a=1&b=x%20y+z&empty=&flag&%63=d&=nameless&e=1=2");
  EXPECT_EQ(query_value(request, "a").value(), "1");
  EXPECT_EQ(query_value(request, "b").value(), "x y z");
  EXPECT_EQ(query_value(request, "empty").value(), "");
  EXPECT_EQ(query_value(request, "flag").value(), "");
  EXPECT_EQ(query_value(request, "c").value(), "d");
  EXPECT_EQ(query_value(request, "e").value(), "1=2");
  EXPECT_EQ(query_value(request, "").value(), "nameless");
  EXPECT_EQ(query_value(request, "none").value(), std::nullopt);
  EXPECT_EQ(query_value(with_query(""), "a").value(), std::nullopt);
}

TEST(HttpTypes, AmbiguousOrBadQueriesAreErrors) {
  EXPECT_EQ(query_value(with_query("a=1&a=1"), "a").error().code, Code::invalid);
  EXPECT_EQ(query_value(with_query("a=1&%61=2"), "a").error().code, Code::invalid);
  EXPECT_EQ(query_value(with_query("a=%"), "a").error().code, Code::invalid);
  EXPECT_EQ(query_value(with_query("%zz=1"), "a").error().code, Code::invalid);
  EXPECT_FALSE(query_names(with_query("a&%")).has_value());
}

TEST(HttpTypes, QueryNamesAreListed) {
  EXPECT_EQ(query_names(with_query("a=1&&b&%63=2&a")).value(),
            (std::vector<std::string>{"a", "b", "c", "a"}));
  EXPECT_TRUE(query_names(with_query("")).value().empty());
}

TEST(HttpTypes, HeadersAreFoundInAnyCase) {
  HttpRequest request;
  request.headers = {{"Content-Type", "a"}, {"X-Y", "b"}, {"x-y", "c"}};
  EXPECT_EQ(request.header("content-type"), "a");
  EXPECT_EQ(request.header("X-y"), "b");
  EXPECT_EQ(request.header("X"), "");
}

TEST(HttpTypes, AWakerOfNothingDoesNothing) {
  const Waker waker;
  waker.wake();
}

}  // namespace
}  // namespace trellis
