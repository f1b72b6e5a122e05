#include "rocksdb_engine/key_filter.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace trellis {
namespace {

TEST(KeyFilter, KnowsWhatWasAddedAndLittleElse) {
  constexpr size_t keys = 10'000;
  std::vector<std::unique_ptr<char[]>> memory;
  const auto allocate = [&](size_t bytes) {
    return memory.emplace_back(std::make_unique<char[]>(bytes)).get() + memory.size();
  };
  KeyFilter filter(allocate, 16 * 1024);  // 13 bits of each
  for (size_t i = 0; i < keys; i++) filter.add("key:" + std::to_string(i));
  size_t others = 0;
  for (size_t i = 0; i < keys; i++) {
    EXPECT_TRUE(filter.may_have("key:" + std::to_string(i)));
    others += filter.may_have("other:" + std::to_string(i));
  }
  EXPECT_LT(others, keys / 50);
}

TEST(KeyFilter, WithoutRoomMayHaveAll) {
  KeyFilter filter([](size_t) -> char* { return nullptr; }, 63);
  filter.add("a");
  filter.prefetch("b");
  EXPECT_TRUE(filter.may_have("b"));
}

}  // namespace
}  // namespace trellis
