#include "json/json_body.h"

#include <gtest/gtest.h>

#include <boost/json/array.hpp>

#include "base/random.h"
#include "json/json_text.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

TEST(JsonBodyTest, RefusesWhatReadersCouldDisagreeOn) {
  const std::pair<const char*, std::string> rows[] = {
      {"nothing", ""},
      {"blanks", "  "},
      {"half", "{"},
      {"two values", "{} {}"},
      {"behind it", "{}x"},
      {"comma", R"({"a":1,})"},
      {"comment", "{/* */}"},
      {"single quotes", "{'a':1}"},
      {"twice", R"({"a":1,"a":1})"},
      {"twice, escaped", R"({"a":1,"\u0061":2})"},
      {"twice, deeper", R"({"x":[{"b":1,"c":{"b":2},"b":3}]})"},
      {"no number", R"({"a":01})"},
      {"no number", R"({"a":+1})"},
      {"no number", R"({"a":NaN})"},
      {"beyond a double", R"({"a":1e999})"},
      {"beyond a double", R"([-1.5E400])"},
      {"no UTF-8", "{\"a\":\"\xff\"}"},
      {"no UTF-8 in a name", "{\"\xc0\x80\":1}"},
      {"half a character", "{\"a\":\"\xe2\x82\"}"},
      {"surrogate", "{\"a\":\"\xed\xa0\x80\"}"},
      {"half a pair", R"({"a":"\ud800"})"},
      {"control character", "{\"a\":\"\n\"}"},
      {"byte order mark", "\xef\xbb\xbf{}"},
      {"deep lists", std::string(33, '[') + std::string(33, ']')},
      {"very deep lists", std::string(1'000'000, '[')},
      {"deep objects",
       [] {
         std::string deep;
         for (int i = 0; i < 40; ++i) deep += R"({"a":)";
         return deep + "1" + std::string(40, '}');
       }()},
      {"many values",
       [] {
         std::string many = "[0";
         for (int i = 0; i < 30'000; ++i) many += ",0";
         return many + "]";
       }()},
  };
  for (const auto& [what, text] : rows) {
    SCOPED_TRACE(what);
    const auto parsed = parse_json(text);
    EXPECT_REASON(parsed, Code::invalid, "bad_body");
    EXPECT_TRUE(parsed.has_value() || !parsed.error().message.empty());
  }
}

TEST(JsonBodyTest, TakesWhatIsGood) {
  for (const std::string& text :
       {std::string(
            " {\"a\" : [1, 2.5e3, -1e308, 1e-999, null, true, \"\\ud83d\\ude00\\u0000\"]}\r\n"),
        std::string("7"), std::string("{\"\":{},\"b\":{\"\":[]}}"),
        std::string(R"([{"a":1},{"a":1}])"), std::string(32, '[') + std::string(32, ']')}) {
    EXPECT_OK(parse_json(text));
  }
}

TEST(JsonBodyTest, NumbersAreWholeAndFit) {
  const std::tuple<const char*, std::optional<uint64_t>> rows[] = {
      {"0", 0},
      {"7", 7},
      {"9223372036854775808", 9223372036854775808U},
      {"18446744073709551615", UINT64_MAX},
      {"18446744073709551616", std::nullopt},
      {"1e3", std::nullopt},
      {"1.0", std::nullopt},
      {"-1", std::nullopt},
      {"-9223372036854775809", std::nullopt},
      {"1e400", std::nullopt},
      {"\"7\"", std::nullopt},
      {"true", std::nullopt},
      {"[7]", std::nullopt},
  };
  for (const auto& [text, expected] : rows) {
    SCOPED_TRACE(text);
    const auto body = parse_json(R"({"n":)" + std::string(text) + "}");
    if (!body) {
      EXPECT_FALSE(expected.has_value());
      continue;
    }
    auto members = JsonMembers::of(*body, "it");
    ASSERT_OK(members);
    const auto number = members->number("n");
    EXPECT_EQ(number.has_value(), expected.has_value());
    EXPECT_EQ(number.value_or(std::nullopt), expected);
  }
}

TEST(JsonBodyTest, MembersAreAskedFor) {
  const auto body = parse_json(R"({"name":"x","null":null,"n":5})");
  ASSERT_OK(body);
  auto members = JsonMembers::of(*body, "the body");
  ASSERT_OK(members);
  EXPECT_EQ(**members->text("name"), "x");
  EXPECT_EQ(*members->text("null"), std::nullopt);
  EXPECT_EQ(*members->text("absent"), std::nullopt);
  EXPECT_REASON(members->text("n"), Code::invalid, "bad_body");
  EXPECT_REASON(members->number("name"), Code::invalid, "bad_body");
  EXPECT_OK(members->finish());
  auto fewer = JsonMembers::of(*body, "the body");
  EXPECT_NE(fewer->find("name"), nullptr);
  const Status unknown = fewer->finish();
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().message, "the body has the unknown member \"null\"");
}

TEST(JsonTextTest, StringsAreAlwaysJson) {
  Random random(test_seed(5));
  for (uint64_t i = 0; i < test_rounds(2'000); ++i) {
    const Bytes bytes = random.bytes(random.below(30));
    Bytes text;
    append_json_string(text, bytes);
    const auto parsed = parse_json(text);
    ASSERT_OK(parsed);
    // What is text comes back as it was.
    Bytes entry;
    append_json_entry(entry, {.key = bytes, .value = bytes, .expires_at_ms = i});
    const auto object = parse_json(entry);
    ASSERT_OK(object);
    const auto& members = object->as_object();
    const Bytes back = members.contains("key")
                           ? Bytes(members.at("key").as_string())
                           : base64_decode(members.at("key_base64").as_string()).value_or("bad");
    EXPECT_EQ(back, bytes);
  }
}

TEST(JsonTextTest, NumbersAsPeopleWriteThem) {
  Bytes text;
  append_json(text,
              json::array{1.5, 0.0, -3, UINT64_MAX, true, nullptr, "x", 0.001, 1e300 * 1e300});
  EXPECT_EQ(text, R"([1.5,0,-3,18446744073709551615,true,null,"x",0.001,null])");
}

TEST(JsonTextTest, NumbersAsJavaWritesThem) {
  Bytes text;
  append_json(text,
              json::array{1.5, 0.0, -0.0, 100.0, 0.001, 0.00099, 9999999.0, 1e7, -1.25e-300, 7},
              JsonReals::as_java);
  EXPECT_EQ(text, "[1.5,0.0,-0.0,100.0,0.001,9.9E-4,9999999.0,1.0E7,-1.25E-300,7]");
}

TEST(JsonTextTest, Base64) {
  for (const auto& [bytes, text] :
       std::initializer_list<std::pair<std::string, std::string>>{{"", ""},
                                                                  {"f", "Zg=="},
                                                                  {"fo", "Zm8="},
                                                                  {"foo", "Zm9v"},
                                                                  {"foob", "Zm9vYg=="},
                                                                  {"\xff\xfe\xfd", "//79"}}) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(*base64_decode(text), bytes);
  }
  for (const char* bad : {"Zg", "Zg=", "Zh==", "Zm9=", "====", "Z===", "Zm9v=", "Zm 9v", "Zm9v\n",
                          "_-_-", "Zg==Zg=="}) {
    EXPECT_FALSE(base64_decode(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace trellis
