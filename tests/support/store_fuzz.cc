#include "support/store_fuzz.h"

#include <fmt/format.h>
#include <rocksdb/env.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "base/settings.h"
#include "codec/counter_value.h"
#include "rocksdb_engine/data_directory.h"
#include "rocksdb_engine/merge_operators.h"
#include "rocksdb_engine/rocksdb_status.h"
#include "rocksdb_engine/wal_check.h"
#include "support/power_loss_file_system.h"

namespace trellis {
namespace {

uint8_t take_byte(ByteView& input) {
  if (input.empty()) return 0;
  const auto byte = static_cast<uint8_t>(input[0]);
  input.remove_prefix(1);
  return byte;
}

// Up to so many bytes, by a size of two bytes in front of them.
ByteView take_part(ByteView& input, size_t size_max) {
  const size_t asked = static_cast<size_t>(take_byte(input)) << 8 | take_byte(input);
  const size_t size = std::min({asked, size_max, input.size()});
  const ByteView part = input.substr(0, size);
  input.remove_prefix(size);
  return part;
}

Bytes merge(const rocksdb::MergeOperator& merger, const std::optional<Bytes>& base,
            const std::vector<Bytes>& operands) {
  const rocksdb::Slice base_slice = base.has_value() ? to_slice(*base) : rocksdb::Slice();
  std::vector<rocksdb::Slice> slices;
  for (const Bytes& operand : operands) slices.push_back(to_slice(operand));
  const rocksdb::MergeOperator::MergeOperationInput in(
      "key", base.has_value() ? &base_slice : nullptr, slices, nullptr);
  Bytes merged;
  rocksdb::Slice existing(nullptr, 0);
  rocksdb::MergeOperator::MergeOperationOutput out(merged, existing);
  ASSERT(merger.FullMergeV2(in, &out));
  return existing.data() != nullptr ? existing.ToString() : merged;
}

template <size_t size>
Bytes with_header(const std::array<char, size>& header, ByteView data) {
  return Bytes(header.begin(), header.end()).append(data);
}

// What the operator must give: nothing if it must give a damaged block.
struct BlockModel {
  std::optional<Bytes> stored;
  std::vector<Bytes> patches;
  std::optional<Bytes> data = Bytes();

  void set_stored(ByteView part, bool sealed) {
    stored = sealed ? with_header(block_header(part), part) : Bytes(part);
    const auto decoded = decode_block(*stored);
    if (decoded.has_value()) {
      ASSERT(with_header(block_header(*decoded), *decoded) == *stored);
      data = Bytes(*decoded);
    } else {
      ASSERT(!sealed && decoded.error().code == Code::corrupt);
      data.reset();
    }
  }
  void add_sealed(uint32_t offset, ByteView part) {
    patches.push_back(with_header(patch_header(offset, part), part));
    if (size_t{offset} + part.size() > block_bytes_max) data.reset();
    if (!data.has_value()) return;
    data->resize(std::max(data->size(), offset + part.size()), '\0');
    data->replace(offset, part.size(), part);
  }
};

uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

void append_le(Bytes& out, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; i++) out.push_back(static_cast<char>(value >> (8 * i)));
}

void append_fragment(Bytes& out, uint8_t type, ByteView data) {
  Bytes covered(1, static_cast<char>(type));
  covered.append(data);
  append_le(out, masked(crc32c(covered)), 4);
  append_le(out, data.size(), 2);
  out.append(covered);
}

constexpr size_t wal_page_bytes = 32 * 1024;
constexpr size_t fragment_header_bytes = 7;

// Fragments with right checksums, whatever they hold and in whatever order their types are.
Bytes sealed_wal(ByteView input) {
  Bytes out;
  while (!input.empty()) {
    const uint8_t type = take_byte(input) % 6;
    append_fragment(out, type, take_part(input, wal_page_bytes));
  }
  return out;
}

}  // namespace

Bytes wal_with_records(const std::vector<Bytes>& records) {
  Bytes out;
  for (const Bytes& record : records) {
    ByteView rest = record;
    bool first = true;
    do {
      size_t room = wal_page_bytes - out.size() % wal_page_bytes;
      if (room < fragment_header_bytes) {
        out.append(room, '\0');
        room = wal_page_bytes;
      }
      const ByteView part = rest.substr(0, room - fragment_header_bytes);
      rest.remove_prefix(part.size());
      const uint8_t type = first ? (rest.empty() ? 1 : 2) : (rest.empty() ? 4 : 3);
      append_fragment(out, type, part);
      first = false;
    } while (!rest.empty());
  }
  return out;
}

void fuzz_block(ByteView input) {
  static const auto merger = make_block_operator();
  BlockModel model;
  const uint8_t mode = take_byte(input);
  const bool sealed = (mode & 1) != 0;
  if ((mode & 2) != 0) model.set_stored(take_part(input, block_bytes_max), sealed);
  bool raw_patches = false;
  while (!input.empty() && model.patches.size() < 8) {
    if ((mode & 4) != 0) {
      const auto offset = static_cast<uint32_t>(take_byte(input)) << (take_byte(input) % 25);
      model.add_sealed(offset, take_part(input, block_bytes_max));
    } else {
      raw_patches = true;
      model.patches.emplace_back(take_part(input, block_bytes_max));
    }
  }
  if (model.patches.empty()) return;
  const Bytes merged = merge(*merger, model.stored, model.patches);
  const auto read = decode_block(merged);
  if (!read.has_value()) {
    ASSERT(read.error().code == Code::corrupt && !read.error().message.empty());
    ASSERT(raw_patches || !model.data.has_value());
    return;
  }
  ASSERT(model.data.has_value());  // damage never heals
  ASSERT(read->size() <= std::max<size_t>(block_bytes_max, model.data->size()));
  ASSERT(raw_patches || *read == *model.data);
}

void fuzz_counter(ByteView input) {
  static const auto merger = make_counter_operator();
  const auto value = decode_counter_value(input);
  if (value) ASSERT(encode_counter_value(*value) == input);
  const Bytes one = encode_counter_value(1);
  const Bytes sum = encode_counter_value(add_wrapping(value.value_or(0), 1));
  ASSERT(merge(*merger, Bytes(input), {one}) == sum);
  ASSERT(merge(*merger, one, {Bytes(input)}) == sum);
}

void fuzz_wal(ByteView input) {
  static const auto files = std::make_shared<PowerLossFileSystem>();
  static const auto env = rocksdb::NewCompositeEnv(files);
  ASSERT(env->CreateDirIfMissing("/wal").ok());
  const uint8_t mode = take_byte(input);
  const ByteView second = take_part(input, input.size());
  const auto content = [](ByteView part, bool sealed) {
    return sealed ? sealed_wal(part) : Bytes(part);
  };
  files->replace_file("/wal/000007.log", content(input, (mode & 1) != 0));
  files->replace_file("/wal/000009.log", content(second, (mode & 2) != 0));
  const auto limits = check_wals(*env, "/wal", (mode & 4) != 0 ? 8 : 0);
  if (!limits.has_value()) {
    ASSERT(limits.error().code == Code::corrupt);
    ASSERT(limits.error().message.find(".log") != std::string::npos);
    return;
  }
  for (const auto& [number, limit] : *limits) {
    ASSERT(number == 9 || (number == 7 && (mode & 4) == 0));
  }
}

void fuzz_marker(ByteView input) {
  const auto status = parse_marker(input);
  if (!status.has_value()) {
    ASSERT(status.error().code == Code::corrupt || status.error().code == Code::unsupported);
    ASSERT(!status.error().message.empty());
    return;
  }
  ASSERT(input.find("format ") != ByteView::npos);
  ASSERT(input.find("engine rocksdb") != ByteView::npos);
}

void fuzz_store(ByteView input) {
  fuzz_block(input);
  fuzz_counter(input);
  fuzz_wal(input);
  fuzz_marker(input);
}

// The settings are read from a path, so the input becomes a file in memory.
void fuzz_settings(ByteView input) {
  const int file = ::memfd_create("trellis.toml", MFD_CLOEXEC);
  ASSERT(file >= 0);
  ASSERT(::write(file, input.data(), input.size()) == static_cast<ssize_t>(input.size()));
  const std::string path = fmt::format("/proc/self/fd/{}", file);
  const auto settings = load_settings({.flags = {{"config", path}}, .environment = {}});
  ::close(file);
  if (settings.has_value()) {
    ASSERT(settings->config == path);
    ASSERT(!describe_settings(*settings).empty());
  } else {
    ASSERT(settings.error().message.find(path) != std::string::npos);
  }
}

}  // namespace trellis
