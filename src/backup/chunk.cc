#include "backup/chunk.h"

#include <fmt/format.h>
#include <xxhash.h>
#include <zstd.h>

#include "tenant/sha256.h"

namespace trellis {
namespace {

constexpr ByteView chunk_magic = "TRLCHNK";
constexpr char chunk_format = 1;
constexpr size_t chunk_header_bytes = 7 + 1 + 1 + 4;
constexpr int compression_level = 1;
enum : char { is_plain = 0, is_zstd = 1 };

Error bad_chunk(std::string_view why) {
  return {Code::corrupt, fmt::format("a chunk is damaged: {}", why), "backup_damaged"};
}

// With a chance that grows with the entry, so that chunks of small and of large ones are alike.
bool ends_chunk(ByteView key, size_t entry_bytes) {
  return XXH3_64bits(key.data(), key.size()) / entry_bytes <
         UINT64_MAX / (chunk_bytes_target - chunk_bytes_min);
}

}  // namespace

bool ChunkCutter::add(ByteView key, ByteView value) {
  if (entries_ == 0) first_key_ = key;
  entries_++;
  append_be32(plain_, static_cast<uint32_t>(key.size()));
  append_be32(plain_, static_cast<uint32_t>(value.size()));
  plain_ += key;
  plain_ += value;
  if (plain_.size() >= chunk_bytes_max) return true;
  return plain_.size() >= chunk_bytes_min &&
         ends_chunk(key, chunk_entry_header_bytes + key.size() + value.size());
}

EntryChunk ChunkCutter::take() {
  EntryChunk chunk{.facts = {.digest = sha256(plain_),
                             .first_key = std::move(first_key_),
                             .entries = entries_,
                             .bytes = plain_.size()},
                   .plain = std::move(plain_)};
  *this = ChunkCutter();
  return chunk;
}

Bytes encode_chunk_file(ByteView plain) {
  Bytes file(chunk_magic);
  file.push_back(chunk_format);
  file.push_back(is_zstd);
  append_be32(file, static_cast<uint32_t>(plain.size()));
  file.resize(chunk_header_bytes + ZSTD_compressBound(plain.size()));
  const size_t packed =
      ZSTD_compress(file.data() + chunk_header_bytes, file.size() - chunk_header_bytes,
                    plain.data(), plain.size(), compression_level);
  if (!ZSTD_isError(packed) && packed < plain.size()) {
    file.resize(chunk_header_bytes + packed);
    return file;
  }
  file.resize(chunk_header_bytes);
  file[chunk_magic.size() + 1] = is_plain;
  file += plain;
  return file;
}

Result<Bytes> unpack_chunk_file(ByteView file) {
  if (file.size() < chunk_header_bytes || !file.starts_with(chunk_magic))
    return bad_chunk("it does not begin as one does");
  if (file[chunk_magic.size()] != chunk_format)
    return Error{Code::unsupported,
                 fmt::format("chunk format {} is not this build's {}: use a newer trellis",
                             static_cast<unsigned char>(file[chunk_magic.size()]),
                             static_cast<int>(chunk_format)),
                 "backup_too_new"};
  const char packing = file[chunk_magic.size() + 1];
  const size_t plain_bytes = load_be(file.data() + chunk_magic.size() + 2, 4);
  const ByteView payload = file.substr(chunk_header_bytes);
  if (plain_bytes == 0 || plain_bytes > chunk_plain_bytes_max)
    return bad_chunk("its size makes no sense");
  Bytes plain;
  if (packing == is_plain) {
    plain = payload;
  } else if (packing == is_zstd) {
    plain.resize(plain_bytes);
    const size_t unpacked =
        ZSTD_decompress(plain.data(), plain.size(), payload.data(), payload.size());
    if (ZSTD_isError(unpacked)) return bad_chunk(ZSTD_getErrorName(unpacked));
    plain.resize(unpacked);
  } else {
    return bad_chunk("its packing is not known");
  }
  if (plain.size() != plain_bytes) return bad_chunk("it is not as long as it says");
  return plain;
}

Result<Bytes> decode_chunk_file(ByteView file, ByteView digest) {
  TRY_ASSIGN(Bytes plain, unpack_chunk_file(file));
  if (sha256(plain) != digest) return bad_chunk("its bytes are not those that were written");
  return plain;
}

Status for_each_entry(ByteView plain, FunctionRef<Status(ByteView key, ByteView value)> visit) {
  ByteView before;
  while (!plain.empty()) {
    if (plain.size() < chunk_entry_header_bytes) return bad_chunk("an entry is cut short");
    const size_t key_bytes = load_be(plain.data(), 4);
    const size_t value_bytes = load_be(plain.data() + 4, 4);
    if (key_bytes == 0 || key_bytes > key_bytes_max || value_bytes > value_bytes_max)
      return bad_chunk("an entry is over a limit");
    plain.remove_prefix(chunk_entry_header_bytes);
    if (plain.size() < key_bytes + value_bytes) return bad_chunk("an entry is cut short");
    const ByteView key = plain.substr(0, key_bytes);
    if (!before.empty() && key <= before) return bad_chunk("its keys are not in order");
    TRY(visit(key, plain.substr(key_bytes, value_bytes)));
    before = key;
    plain.remove_prefix(key_bytes + value_bytes);
  }
  return {};
}

}  // namespace trellis
