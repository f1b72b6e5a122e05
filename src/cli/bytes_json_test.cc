#include "cli/bytes_json.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace trellis {
namespace {

TEST(BytesJson, Base64) {
  const std::pair<std::string_view, std::string_view> pairs[] = {{"", ""},
                                                                 {"f", "Zg=="},
                                                                 {"fo", "Zm8="},
                                                                 {"foo", "Zm9v"},
                                                                 {"foob", "Zm9vYg=="},
                                                                 {"fooba", "Zm9vYmE="},
                                                                 {"foobar", "Zm9vYmFy"},
                                                                 {"\xff\xfe", "//4="}};
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text).value(), bytes);
  }
  Random random(7);
  for (size_t size = 0; size < 100; size++) {
    const Bytes bytes = random.bytes(size);
    EXPECT_EQ(from_base64(to_base64(bytes)).value(), bytes);
  }
  for (const std::string_view bad : {"Z", "Zg", "Zg=", "=", "====", "Z===", "Zg==Zg==", "Zh==",
                                     "Zm9=", "Zm 9", "Zm9v\n", "Zm-_"})
    EXPECT_FALSE(from_base64(bad).has_value()) << bad;
}

TEST(BytesJson, TextStaysText) {
  boost::json::object object;
  add_bytes(object, "key",
            "stra\xc3\x9f"
            "e");
  add_bytes(object, "value", "\xff");
  EXPECT_EQ(object["key"].as_string(),
            "stra\xc3\x9f"
            "e");
  EXPECT_EQ(object["value_base64"].as_string(), "/w==");
  EXPECT_EQ(bytes_of(object, "key").value(),
            "stra\xc3\x9f"
            "e");
  EXPECT_EQ(bytes_of(object, "value").value(), "\xff");
  EXPECT_EQ(bytes_of(object, "other").error().message, "there is neither other nor other_base64");
}

}  // namespace
}  // namespace trellis
