#include "base/nearest_name.h"

#include <gtest/gtest.h>

#include <utility>

namespace trellis {
namespace {

TEST(NearestName, IsTheOneThatWasMeant) {
  const std::string names[] = {"resp", "resp-tls", "http", "cache-bytes", "data"};
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"resp", "resp"},
      {"RESP", "resp"},
      {"rsp", "resp"},                // one left out
      {"httpp", "http"},              // one too many
      {"date", "data"},               // another one
      {"htpt", "http"},               // two exchanged
      {"resp-tsl", "resp-tls"},       //
      {"cacheBytes", "cache-bytes"},  //
      {"cache_btyes", "cache-bytes"},
      {"cache-size", ""},
      {"durability", ""},
      {"x", ""},
      {"", ""},
  };
  for (const auto& [given, expected] : cases)
    EXPECT_EQ(nearest_name(given, names), expected) << given;
  EXPECT_EQ(nearest_name("resp", {}), "");
  EXPECT_EQ(nearest_name(std::string(1 << 20, 'r'), names), "");
}

TEST(NearestName, TheFirstOfSeveral) {
  const std::string names[] = {"cat", "car"};
  EXPECT_EQ(nearest_name("caz", names), "cat");
}

}  // namespace
}  // namespace trellis
