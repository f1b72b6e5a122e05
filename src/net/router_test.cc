#include "net/router.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace trellis {
namespace {

Route route(HttpMethod method, std::string_view pattern) {
  return {.method = method, .pattern = pattern, .handle = [](const HttpRequest&) {
            return HttpResponse();
          }};
}

Router table(const std::vector<std::string_view>& patterns) {
  std::vector<Route> routes;
  for (const std::string_view pattern : patterns) routes.push_back(route(HttpMethod::get, pattern));
  return Router::make(std::move(routes)).value();
}

// "pattern a|b" of the match, or "" if there is none.
std::string find(const Router& router, std::string_view path, HttpMethod method = HttpMethod::get) {
  std::vector<std::string> captures;
  const Router::Match match = router.find(method, path, captures);
  if (match.route == nullptr) return "";
  std::string out(match.route->pattern);
  for (const std::string& capture : captures) {
    out += captures.data() == &capture ? " " : "|";
    out += capture;
  }
  return out;
}

TEST(Router, LiteralsWinOverCapturesAndCapturesOverTheRest) {
  const Router router = table({"/a/{x}", "/a/b", "/a/{x*}", "/a/{x}/c", "/a/b/{y}"});
  EXPECT_EQ(find(router, "/a/b"), "/a/b");
  EXPECT_EQ(find(router, "/a/z"), "/a/{x} z");
  EXPECT_EQ(find(router, "/a/z/c"), "/a/{x}/c z");
  EXPECT_EQ(find(router, "/a/b/c"), "/a/b/{y} c");
  EXPECT_EQ(find(router, "/a/z/d"), "/a/{x*} z/d");
  EXPECT_EQ(find(router, "/a/b/c/d"), "/a/{x*} b/c/d");
  EXPECT_EQ(find(router, "/a/"), "/a/{x*} ");
  EXPECT_EQ(find(router, "/a"), "");
  EXPECT_EQ(find(router, "/"), "");
}

TEST(Router, GoesBackWhenASpecialWayLeadsNowhere) {
  const Router router = table({"/{x}/{y}/z", "/a/{y}/w", "/a/b/v"});
  EXPECT_EQ(find(router, "/a/b/z"), "/{x}/{y}/z a|b");
  EXPECT_EQ(find(router, "/a/b/w"), "/a/{y}/w b");
  EXPECT_EQ(find(router, "/a/b/v"), "/a/b/v");
  EXPECT_EQ(find(router, "/a/b/u"), "");
}

TEST(Router, SplitsBeforeItDecodes) {
  const Router router = table({"/keys/{key}", "/tree/{path*}", "/lit/a"});
  EXPECT_EQ(find(router, "/keys/a%2Fb"), "/keys/{key} a/b");
  EXPECT_EQ(find(router, "/keys/a/b"), "");
  EXPECT_EQ(find(router, "/tree/a%2Fb/c%00d//"), std::string("/tree/{path*} a/b/c\0d//", 23));
  EXPECT_EQ(find(router, "/%6cit/%61"), "/lit/a");
  EXPECT_EQ(find(router, "/keys%2Fa"), "");
  EXPECT_EQ(find(router, "/keys/+"), "/keys/{key} +");
}

TEST(Router, PathsAreBytes) {
  const Router router = table({"/a", "/a/", "/{x}/b", "/"});
  EXPECT_EQ(find(router, "/a/"), "/a/");
  EXPECT_EQ(find(router, "/a//"), "");
  EXPECT_EQ(find(router, "//b"), "");  // {x} takes no empty segment
  EXPECT_EQ(find(router, "/./b"), "/{x}/b .");
  EXPECT_EQ(find(router, "/../b"), "/{x}/b ..");
  EXPECT_EQ(find(router, "/"), "/");
  EXPECT_EQ(find(router, ""), "");
  EXPECT_EQ(find(router, "a"), "");
}

TEST(Router, OnlyTheMethodOfTheRequestCounts) {
  const Router router =
      Router::make({route(HttpMethod::get, "/a/b"), route(HttpMethod::del, "/a/{x}"),
                    route(HttpMethod::put, "/a/{x*}")})
          .value();
  EXPECT_EQ(find(router, "/a/b", HttpMethod::get), "/a/b");
  EXPECT_EQ(find(router, "/a/b", HttpMethod::del), "/a/{x} b");
  EXPECT_EQ(find(router, "/a/b", HttpMethod::put), "/a/{x*} b");
  EXPECT_EQ(find(router, "/a/b", HttpMethod::head), "/a/b");
  std::vector<std::string> captures;
  const Router::Match match = router.find(HttpMethod::post, "/a/b", captures);
  EXPECT_EQ(match.route, nullptr);
  EXPECT_EQ(allow_header(match.allow), "GET, HEAD, PUT, DELETE, OPTIONS");
  EXPECT_EQ(router.find(HttpMethod::post, "/none", captures).allow, 0U);
}

TEST(Router, HeadAndOptionsMayHaveRoutesOfTheirOwn) {
  const Router router =
      Router::make({route(HttpMethod::get, "/{x}"), route(HttpMethod::head, "/{y}"),
                    route(HttpMethod::options, "/{z}")})
          .value();
  EXPECT_EQ(find(router, "/a", HttpMethod::head), "/{y} a");
  EXPECT_EQ(find(router, "/a", HttpMethod::options), "/{z} a");
}

TEST(Router, TheTableCanBeRead) {
  const Router router = table({"/b", "/a/{x}"});
  ASSERT_EQ(router.routes().size(), 2U);
  EXPECT_EQ(router.routes()[0].pattern, "/b");
  EXPECT_EQ(router.routes()[1].pattern, "/a/{x}");
}

TEST(Router, BadTablesAreRefused) {
  for (const std::string_view pattern :
       {"", "a", "/{", "/}", "/{}", "/{*}", "/a{x}", "/{x}a", "/{x*}/b", "/{a b}", "/{x**}",
        "/{x}{y}", "/a\nb",
        "/{1}/{2}/{3}/{4}/{5}/{6}/{7}/{8}/{9}/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}"}) {
    EXPECT_FALSE(Router::make({route(HttpMethod::get, pattern)}).has_value()) << pattern;
  }
  EXPECT_FALSE(
      Router::make({route(HttpMethod::get, "/{x}"), route(HttpMethod::get, "/{y}")}).has_value());
  EXPECT_FALSE(Router::make({{.method = HttpMethod::get, .pattern = "/a"}}).has_value());
  Route streamed = route(HttpMethod::put, "/a");
  streamed.body = Route::Body::streamed;
  streamed.body_bytes_max = 1;
  EXPECT_FALSE(Router::make({streamed}).has_value());
  Route unlimited = route(HttpMethod::put, "/a");
  unlimited.body = Route::Body::buffered;
  EXPECT_FALSE(Router::make({unlimited}).has_value());
}

}  // namespace
}  // namespace trellis
