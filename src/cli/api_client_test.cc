#include "cli/api_client.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace trellis {
namespace {

std::string message_of(unsigned status, std::string_view body,
                       std::vector<HttpHeader> headers = {}) {
  return answer_error({.status = status, .headers = std::move(headers), .body = Bytes(body)},
                      "http://127.0.0.1:1")
      .message;
}

TEST(ApiErrors, OfPd) {
  EXPECT_EQ(message_of(404, R"("[PD:keyspace:ErrKeyspaceNotFound]keyspace does not exist")"),
            "keyspace does not exist; `trellis keyspace list` shows those that there are");
  EXPECT_EQ(message_of(409, R"("[PD:gc:ErrDecreasingGCSafePoint]it goes back")"), "it goes back");
  EXPECT_EQ(message_of(422, R"("illegal keyspace name a/b")"), "illegal keyspace name a/b");
  EXPECT_EQ(message_of(401, R"("[TRELLIS:bad_token]no such token")"),
            "no such token; put a token into TRELLIS_TOKEN, or give --token - and it on standard "
            "input");
}

TEST(ApiErrors, OfV1) {
  EXPECT_EQ(message_of(429, R"({"code":"rate_exceeded","message":"too fast","retryable":true})",
                       {{"Retry-After", "3"}}),
            "too fast; try again in 3 s");
  EXPECT_EQ(message_of(410, R"({"code":"compacted","message":"too old"})"),
            "too old; start again without --since");
  EXPECT_EQ(message_of(412, R"({"code":"condition_failed","message":"no",
                                "details":{"current":{"value_base64":"/w=="}}})"),
            "no; its value is \"\\xff\"");
  EXPECT_EQ(message_of(412, R"({"code":"condition_failed","message":"no",
                                "details":{"current":null}})"),
            "no; the key is not there");
  EXPECT_EQ(message_of(412, R"({"code":"condition_failed","message":"no"})"), "no");
}

TEST(ApiErrors, OfSomebodyElse) {
  for (const std::string_view body : {"", "<html>", "[]", "7", "{}", "{\"error\":\"x\"}", "{"})
    EXPECT_EQ(message_of(404, body),
              "http://127.0.0.1:1 answered with HTTP status 404 and no error of Trellis: is a "
              "Trellis server there?");
}

TEST(ApiMembers, WhatIsNotThereIsEmpty) {
  const auto value = boost::json::parse(
      R"({"text":"a","number":7,"large":18446744073709551615,"negative":-1,"real":1.5,
          "object":{"b":1},"array":[1],"null":null})");
  const boost::json::object& object = value.as_object();
  EXPECT_EQ(text_at(object, "text"), "a");
  EXPECT_EQ(text_at(object, "number"), "");
  EXPECT_EQ(number_at(object, "number"), 7u);
  EXPECT_EQ(number_at(object, "large"), ~uint64_t{0});
  EXPECT_FALSE(number_at(object, "negative").has_value());
  EXPECT_FALSE(number_at(object, "null").has_value());
  EXPECT_EQ(real_at(object, "real"), 1.5);
  EXPECT_EQ(real_at(object, "number"), 7);
  EXPECT_EQ(object_at(object, "object").size(), 1u);
  EXPECT_EQ(object_at(object, "none").size(), 0u);
  EXPECT_EQ(array_at(object, "array").size(), 1u);
  EXPECT_EQ(array_at(object, "text").size(), 0u);
}

}  // namespace
}  // namespace trellis
