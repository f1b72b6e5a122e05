#include "net/url.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

TEST(Url, EncodesAllButUnreserved) {
  EXPECT_EQ(percent_encode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encode(" /%+\xff"), "%20%2F%25%2B%FF");
  EXPECT_EQ(percent_encode(ByteView("\0", 1)), "%00");
  EXPECT_EQ(percent_encode_path("a/b c"), "a/b%20c");
}

TEST(Url, DecodesOrSaysWhere) {
  EXPECT_EQ(percent_decode("a%2Fb%2fc+").value(), "a/b/c+");
  EXPECT_EQ(query_decode("a+b%2B").value(), "a b+");
  for (const std::string_view bad : {"%", "%2", "%zz", "%2z", "a%", "%%41"}) {
    const Result<Bytes> decoded = percent_decode(bad);
    ASSERT_FALSE(decoded.has_value()) << bad;
    EXPECT_EQ(decoded.error().code, Code::invalid);
    EXPECT_FALSE(is_percent_encoded(bad)) << bad;
  }
}

TEST(Url, AnyBytesComeBack) {
  Random random(test_seed(3));
  for (uint64_t i = 0; i < test_rounds(10'000); ++i) {
    const Bytes bytes = random.bytes(random.below(40));
    EXPECT_EQ(percent_decode(percent_encode(bytes)).value(), bytes);
    EXPECT_EQ(query_decode(percent_encode(bytes)).value(), bytes);
    EXPECT_EQ(percent_decode(percent_encode_path(bytes)).value(), bytes);
    EXPECT_EQ(is_percent_encoded(bytes), percent_decode(bytes).has_value());
    if (const Result<BaseUrl> url = parse_base_url("http://" + bytes); url.has_value()) {
      EXPECT_FALSE(url->host.empty());
      EXPECT_NE(url->port, 0);
    }
  }
}

TEST(Url, BaseUrlsHaveTheirParts) {
  const BaseUrl plain = parse_base_url("http://localhost:8080").value();
  EXPECT_FALSE(plain.secure);
  EXPECT_EQ(plain.host, "localhost");
  EXPECT_EQ(plain.port, 8080);
  EXPECT_EQ(plain.path, "");
  EXPECT_EQ(plain.authority(), "localhost:8080");
  const BaseUrl secure = parse_base_url("HTTPS://[::1]/base/").value();
  EXPECT_TRUE(secure.secure);
  EXPECT_EQ(secure.host, "::1");
  EXPECT_EQ(secure.port, 443);
  EXPECT_EQ(secure.path, "/base/");
  EXPECT_EQ(secure.authority(), "[::1]:443");
  EXPECT_EQ(parse_base_url("http://a:").value().port, 80);
}

TEST(Url, OtherUrlsAreRefused) {
  for (const std::string_view bad : {"",
                                     "localhost",
                                     "localhost:8080",
                                     "ftp://a",
                                     "http://",
                                     "http:///x",
                                     "http://:80",
                                     "http://a:0",
                                     "http://a:65536",
                                     "http://a:-1",
                                     "http://a:8 0",
                                     "http://a:80x",
                                     "http://user@a",
                                     "http://a?x",
                                     "http://a#x",
                                     "http://a/%zz",
                                     "http://[::1",
                                     "http://[::1]x",
                                     "http://a b",
                                     "http://a\r\nb",
                                     "http://a\\b",
                                     "//a"}) {
    EXPECT_FALSE(parse_base_url(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace trellis
