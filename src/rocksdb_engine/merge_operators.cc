#include "rocksdb_engine/merge_operators.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/crc32c.h"
#include "base/limits.h"
#include "codec/counter_value.h"
#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {

namespace {

constexpr char block_format = 0x01;
constexpr char patch_format = 0x02;
constexpr char damaged_format = 0x03;

void store_be(char* out, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; i++) out[i] = static_cast<char>(value >> (8 * (width - 1 - i)));
}

int64_t counter_or_zero(const rocksdb::Slice& stored) {
  return decode_counter_value(to_view(stored)).value_or(0);
}

class CounterOperator final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice& /*key*/, const rocksdb::Slice* existing,
             const rocksdb::Slice& operand, std::string* sum, rocksdb::Logger*) const override {
    const int64_t base = existing == nullptr ? 0 : counter_or_zero(*existing);
    *sum = encode_counter_value(add_wrapping(base, counter_or_zero(operand)));
    return true;
  }
  const char* Name() const override { return "trellis.counter.1"; }
};

struct Patch {
  uint32_t offset;
  ByteView data;
};

std::optional<Patch> decode_patch(ByteView stored) {
  if (stored.size() < patch_header_bytes || stored[0] != patch_format) return std::nullopt;
  if (crc32c(stored.substr(5)) != load_be(stored.data() + 1, 4)) return std::nullopt;
  const Patch patch{static_cast<uint32_t>(load_be(stored.data() + 5, 4)),
                    stored.substr(patch_header_bytes)};
  if (patch.offset > block_bytes_max || patch.data.size() > block_bytes_max - patch.offset) {
    return std::nullopt;
  }
  return patch;
}

// Folds in place, behind room for the header, and says what was wrong if something was.
std::optional<std::string> fold(const rocksdb::MergeOperator::MergeOperationInput& in, Bytes& out) {
  out.assign(block_header_bytes, '\0');
  if (in.existing_value != nullptr) {
    const Result<ByteView> base = decode_block(to_view(*in.existing_value));
    if (!base.has_value()) return base.error().message;
    out.append(*base);
  }
  for (const rocksdb::Slice& operand : in.operand_list) {
    const std::optional<Patch> patch = decode_patch(to_view(operand));
    if (!patch.has_value()) return "a patch has a wrong checksum or form";
    const size_t end = block_header_bytes + patch->offset + patch->data.size();
    if (out.size() < end) out.resize(end, '\0');
    std::copy(patch->data.begin(), patch->data.end(),
              out.begin() + static_cast<ptrdiff_t>(block_header_bytes + patch->offset));
  }
  return std::nullopt;
}

class BlockOperator final : public rocksdb::MergeOperator {
 public:
  bool FullMergeV2(const MergeOperationInput& in, MergeOperationOutput* out) const override {
    Bytes& block = out->new_value;
    if (const std::optional<std::string> damage = fold(in, block)) {
      block.assign(1, damaged_format);
      block.append(*damage);
      return true;
    }
    const auto header = block_header(ByteView(block).substr(block_header_bytes));
    std::copy(header.begin(), header.end(), block.begin());
    return true;
  }
  const char* Name() const override { return "trellis.block.1"; }
};

}  // namespace

std::array<char, block_header_bytes> block_header(ByteView data) {
  std::array<char, block_header_bytes> out;
  out[0] = block_format;
  store_be(out.data() + 1, crc32c(data), 4);
  return out;
}

std::array<char, patch_header_bytes> patch_header(uint32_t offset, ByteView data) {
  std::array<char, patch_header_bytes> out;
  out[0] = patch_format;
  store_be(out.data() + 5, offset, 4);
  store_be(out.data() + 1, crc32c(data, crc32c({out.data() + 5, 4})), 4);
  return out;
}

Result<ByteView> decode_block(ByteView stored) {
  if (stored.empty()) return Error{Code::corrupt, "block value is empty"};
  if (stored[0] == damaged_format) {
    const ByteView why = stored.substr(1);
    return Error{Code::corrupt, Bytes(why.empty() ? "block value was damaged before" : why)};
  }
  if (stored[0] != block_format || stored.size() < block_header_bytes) {
    return Error{Code::corrupt, "block value has an unknown form"};
  }
  const ByteView data = stored.substr(block_header_bytes);
  if (crc32c(data) != load_be(stored.data() + 1, 4)) {
    return Error{Code::corrupt, "block value has a wrong checksum"};
  }
  return data;
}

std::shared_ptr<rocksdb::MergeOperator> make_counter_operator() {
  return std::make_shared<CounterOperator>();
}

std::shared_ptr<rocksdb::MergeOperator> make_block_operator() {
  return std::make_shared<BlockOperator>();
}

}  // namespace trellis
