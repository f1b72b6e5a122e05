#include "codec/redis_keys.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>

#include "codec/redis_stream.h"

namespace trellis {
namespace {

constexpr uint64_t sign_bit = 1ull << 63;

}  // namespace

void OrderedScore::append(Bytes& out, double score) {
  ASSERT(!std::isnan(score));
  const auto bits = std::bit_cast<uint64_t>(score);
  append_be64(out, (bits & sign_bit) != 0 ? ~bits : bits | sign_bit);
}

bool OrderedScore::read(Reader& reader, double& score) {
  const size_t start = reader.offset();
  uint64_t ordered = 0;
  if (!BigEndian<8>::read(reader, ordered)) return false;
  const uint64_t bits = (ordered & sign_bit) != 0 ? ordered & ~sign_bit : ~ordered;
  score = std::bit_cast<double>(bits);
  return !std::isnan(score) || reader.fail("NaN has no place in an order", start);
}

std::string OrderedScore::text(double score) { return fmt::format("{}", score); }

Status OrderedScore::parse(std::string_view text, TextArena&, double& score) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), score);
  if (error != std::errc() || end != text.data() + text.size())
    return Error{Code::invalid, fmt::format("{} is not a number", quote(text))};
  return {};
}

void append_stream_entry(Bytes& out, std::span<const ByteView> strings) {
  for (const ByteView string : strings) {
    ASSERT(string.size() <= UINT32_MAX);
    auto size = static_cast<uint32_t>(string.size());
    for (; size >= 0x80; size >>= 7) out.push_back(static_cast<char>(size | 0x80));
    out.push_back(static_cast<char>(size));
    out.append(string);
  }
}

Status visit_stream_entry(ByteView in, FunctionRef<void(ByteView)> visit) {
  size_t offset = 0;
  size_t count = 0;
  while (offset < in.size()) {
    const size_t start = offset;
    uint64_t size = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (offset == in.size() || shift > 28)
        return Error{Code::corrupt, fmt::format("offset {}: length has no end", start)};
      const auto byte = static_cast<unsigned char>(in[offset++]);
      size |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte >= 0x80) continue;
      if ((byte == 0 && shift > 0) || size > UINT32_MAX)
        return Error{Code::corrupt,
                     fmt::format("offset {}: length is not in its shortest form", start)};
      break;
    }
    if (size > in.size() - offset)
      return Error{Code::corrupt, fmt::format("offset {}: length goes past the end", start)};
    visit(in.substr(offset, size));
    offset += size;
    count++;
  }
  if (count % 2 != 0)
    return Error{Code::corrupt, fmt::format("offset {}: a field without a value", in.size())};
  return {};
}

}  // namespace trellis
