#include "rocksdb_engine/merge_operators.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "base/limits.h"
#include "codec/counter_value.h"
#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {
namespace {

Bytes merge(const rocksdb::MergeOperator& merger, std::optional<Bytes> base,
            const std::vector<Bytes>& operands) {
  const rocksdb::Slice base_slice = base.has_value() ? to_slice(*base) : rocksdb::Slice();
  std::vector<rocksdb::Slice> slices;
  for (const Bytes& operand : operands) slices.push_back(to_slice(operand));
  const rocksdb::MergeOperator::MergeOperationInput in(
      "key", base.has_value() ? &base_slice : nullptr, slices, nullptr);
  Bytes merged;
  rocksdb::Slice existing(nullptr, 0);
  rocksdb::MergeOperator::MergeOperationOutput out(merged, existing);
  EXPECT_TRUE(merger.FullMergeV2(in, &out));
  return existing.data() != nullptr ? existing.ToString() : merged;
}

TEST(CounterOperator, AddsAndWraps) {
  const auto merger = make_counter_operator();
  const auto sum = [&](std::optional<Bytes> base, std::vector<int64_t> deltas) {
    std::vector<Bytes> operands;
    for (const int64_t delta : deltas) operands.push_back(encode_counter_value(delta));
    return decode_counter_value(merge(*merger, base, operands));
  };
  constexpr int64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(sum(std::nullopt, {5}), 5);
  EXPECT_EQ(sum(encode_counter_value(40), {3, -1}), 42);
  EXPECT_EQ(sum(encode_counter_value(-1), {-1}), -2);
  EXPECT_EQ(sum(encode_counter_value(max), {1}), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(sum(encode_counter_value(max), {1, -1}), max);
}

TEST(CounterOperator, NeverFails) {
  const auto merger = make_counter_operator();
  const Bytes two = encode_counter_value(2);
  for (const Bytes& bad : {Bytes(), Bytes("\x01"), Bytes("text"), Bytes(9, '\x02'), two + "x"}) {
    EXPECT_EQ(merge(*merger, bad, {two}), two);
    EXPECT_EQ(merge(*merger, two, {bad}), two);
  }
}

Bytes stored_block(ByteView data) {
  const auto header = block_header(data);
  return Bytes(header.begin(), header.end()).append(data);
}
Bytes stored_patch(uint32_t offset, ByteView data) {
  const auto header = patch_header(offset, data);
  return Bytes(header.begin(), header.end()).append(data);
}

TEST(BlockOperator, FoldsPatchesOntoBlocksAndHoles) {
  const auto merger = make_block_operator();
  EXPECT_EQ(merge(*merger, stored_block("abcdef"), {stored_patch(2, "XY")}),
            stored_block("abXYef"));
  EXPECT_EQ(merge(*merger, stored_block("ab"), {stored_patch(4, "XY"), stored_patch(1, "Z")}),
            stored_block(ByteView("aZ\0\0XY", 6)));
  EXPECT_EQ(merge(*merger, std::nullopt, {stored_patch(1, "X")}), stored_block(ByteView("\0X", 2)));
  EXPECT_EQ(merge(*merger, std::nullopt, {stored_patch(0, "")}), stored_block(""));
}

TEST(BlockOperator, DamageIsKeptAndRefusedByReads) {
  const auto merger = make_block_operator();
  const auto is_damaged = [](const Bytes& stored) {
    const auto read = decode_block(stored);
    return !read.has_value() && read.error().code == Code::corrupt;
  };
  const Bytes good = stored_block("abcdef");
  const Bytes patch = stored_patch(2, "XY");
  for (size_t i = 0; i < good.size(); i++) {
    Bytes bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_TRUE(is_damaged(bad)) << i;
    const Bytes folded = merge(*merger, bad, {patch});
    EXPECT_TRUE(is_damaged(folded)) << i;
    EXPECT_TRUE(is_damaged(merge(*merger, folded, {patch}))) << i;  // another patch heals nothing
  }
  for (size_t i = 0; i < patch.size(); i++) {
    Bytes bad = patch;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_TRUE(is_damaged(merge(*merger, good, {bad}))) << i;
  }
  EXPECT_TRUE(is_damaged(merge(*merger, Bytes(), {patch})));
  EXPECT_FALSE(decode_block("\x03").error().message.empty());
  EXPECT_TRUE(is_damaged(merge(*merger, good, {Bytes()})));
  EXPECT_TRUE(is_damaged(merge(*merger, good, {stored_patch(block_bytes_max, "x")})));
}

}  // namespace
}  // namespace trellis
