#include "codec/field_codecs.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

namespace trellis {
namespace {

constexpr char escape = '\x00';
constexpr char escaped_zero = '\xff';
constexpr char escaped_end = '\x01';
constexpr char escaped_marker = '\x12';

constexpr unsigned varint_zero = 0x88;
constexpr unsigned varint_small_max = 109;                        // one byte: 88..f5
constexpr unsigned varint_wide = varint_zero + varint_small_max;  // f5 + n, n bytes follow
constexpr size_t group_bytes = 8;

size_t significant_bytes(uint64_t value) {
  size_t size = 1;
  while (size < 8 && (value >> (8 * size)) != 0) size++;
  return size;
}

void append_low_bytes(Bytes& out, uint64_t value, size_t size) {
  for (size_t i = size; i-- > 0;) out.push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

namespace field_detail {

Result<uint64_t> parse_number(std::string_view text, uint64_t max) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range || (error == std::errc() && value > max))
    return Error{Code::invalid, fmt::format("{} is too large, at most {}", text, max)};
  if (error != std::errc() || end != text.data() + text.size())
    return Error{Code::invalid, fmt::format("{} is not a whole number", quote(text))};
  return value;
}

Result<int64_t> parse_signed(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return Error{Code::invalid, fmt::format("{} is not a whole number", quote(text))};
  return value;
}

Status parse_bytes(std::string_view text, TextArena& arena, ByteView& out) {
  TRY_ASSIGN(Bytes bytes, unquote(text));
  out = arena.emplace_back(std::move(bytes));
  return {};
}

void append_quoted(std::string& out, ByteView bytes) {
  out += '/';
  out += quote(bytes);
}

bool read_word(Reader& reader, std::span<const Word> table, size_t& index) {
  const ByteView rest = reader.rest();
  for (index = 0; index < table.size(); index++) {
    if (!rest.starts_with(table[index].bytes)) continue;
    reader.skip(table[index].bytes.size());
    return true;
  }
  return reader.fail("not one of its words");
}

Status parse_word(std::string_view text, std::span<const Word> table, size_t& index) {
  std::string names;
  for (index = 0; index < table.size(); index++) {
    if (table[index].name == text) return {};
    names += names.empty() ? "" : ", ";
    names += table[index].name;
  }
  return Error{Code::invalid, fmt::format("{} is not one of: {}", quote(text), names)};
}

}  // namespace field_detail

void OrderedUvarint::append_number(Bytes& out, uint64_t value) {
  if (value <= varint_small_max) {
    out.push_back(static_cast<char>(varint_zero + value));
    return;
  }
  const size_t size = significant_bytes(value);
  out.push_back(static_cast<char>(varint_wide + size));
  append_low_bytes(out, value, size);
}

bool OrderedUvarint::read_number(Reader& reader, uint64_t& value) {
  const size_t start = reader.offset();
  ByteView first;
  if (!reader.take(1, first)) return false;
  const auto lead = static_cast<unsigned char>(first[0]);
  if (lead < varint_zero || lead > varint_wide + 8)
    return reader.fail("not the start of a uvarint (88..fd)", start);
  if (lead <= varint_wide) {
    value = lead - varint_zero;
    return true;
  }
  ByteView raw;
  if (!reader.take(lead - varint_wide, raw)) return false;
  value = load_be(raw.data(), raw.size());
  if (raw[0] == '\0' || value <= varint_small_max)
    return reader.fail("uvarint is not in its shortest form", start);
  return true;
}

void OrderedVarint::append(Bytes& out, int64_t value) {
  if (value >= 0) return OrderedUvarint::append_number(out, static_cast<uint64_t>(value));
  // The n low bytes of the two's complement, behind 88 - n: more negative means more bytes means a
  // smaller first byte.
  const size_t size = significant_bytes(~static_cast<uint64_t>(value) + 1);
  out.push_back(static_cast<char>(varint_zero - size));
  append_low_bytes(out, static_cast<uint64_t>(value), size);
}

bool OrderedVarint::read(Reader& reader, int64_t& value) {
  const size_t start = reader.offset();
  const ByteView rest = reader.rest();
  if (rest.empty() || static_cast<unsigned char>(rest[0]) >= varint_zero) {
    uint64_t number = 0;
    if (!OrderedUvarint::read_number(reader, number)) return false;
    if (number > static_cast<uint64_t>(INT64_MAX)) return reader.fail("number too large", start);
    value = static_cast<int64_t>(number);
    return true;
  }
  const auto lead = static_cast<unsigned char>(rest[0]);
  if (lead < varint_zero - 8) return reader.fail("not the start of a varint (80..fd)", start);
  const size_t size = varint_zero - lead;
  reader.skip(1);
  ByteView raw;
  if (!reader.take(size, raw)) return false;
  uint64_t number = load_be(raw.data(), size);
  if (size < 8) number |= ~0ull << (8 * size);
  value = static_cast<int64_t>(number);
  if (value >= 0 || significant_bytes(~number + 1) != size)
    return reader.fail("varint is not in its shortest form", start);
  return true;
}

void Terminated::append(Bytes& out, ByteView bytes) {
  constexpr char end[] = {escape, escaped_end};
  size_t from = 0;
  for (size_t zero; (zero = bytes.find(escape, from)) != ByteView::npos; from = zero + 1) {
    out.append(bytes.substr(from, zero - from));
    out.push_back(escape);
    out.push_back(escaped_zero);
  }
  const size_t rest = bytes.size() - from;
  const size_t at = out.size();
  out.resize(at + rest + sizeof end);
  if (rest != 0) std::memcpy(out.data() + at, bytes.data() + from, rest);
  std::memcpy(out.data() + at + rest, end, sizeof end);
}

bool Terminated::read(Reader& reader, ByteView& bytes) {
  const ByteView rest = reader.rest();
  const size_t base = reader.offset();
  size_t from = 0;
  Bytes* scratch = nullptr;
  size_t scratch_start = 0;
  for (;;) {
    const size_t zero = rest.find(escape, from);
    if (zero == ByteView::npos || zero + 1 == rest.size())
      return reader.fail("escaped bytes have no end (00 01)", base + rest.size());
    const char next = rest[zero + 1];
    if (next != escaped_end && next != escaped_zero)
      return reader.fail("00 in escaped bytes must be followed by ff or 01", base + zero + 1);
    if (next == escaped_end && scratch == nullptr) {  // no escape inside: refer to the input
      bytes = rest.substr(0, zero);
      reader.skip(zero + 2);
      return true;
    }
    if (scratch == nullptr) {
      scratch = &reader.scratch();
      scratch_start = scratch->size();
    }
    scratch->append(rest.substr(from, zero - from));
    from = zero + 2;
    if (next == escaped_end) {
      bytes = ByteView(*scratch).substr(scratch_start);
      reader.skip(from);
      return true;
    }
    scratch->push_back('\0');
  }
}

void EscapedBytes::append(Bytes& out, ByteView bytes) {
  out.push_back(escaped_marker);
  Terminated::append(out, bytes);
}

bool EscapedBytes::read(Reader& reader, ByteView& bytes) {
  const ByteView rest = reader.rest();
  if (rest.empty() || rest[0] != escaped_marker)
    return reader.fail("escaped bytes must start with 12");
  reader.skip(1);
  return Terminated::read(reader, bytes);
}

template <size_t Lead>
void MemComparableTail<Lead>::append(Bytes& out, ByteView bytes) {
  size_t room = group_bytes - Lead;
  for (;;) {
    const size_t size = std::min(room, bytes.size());
    const size_t pad = room - size;
    out.append(bytes.substr(0, size));
    out.append(pad, '\0');
    out.push_back(static_cast<char>(0xff - pad));
    if (pad != 0) return;
    bytes.remove_prefix(size);
    room = group_bytes;
  }
}

template <size_t Lead>
bool MemComparableTail<Lead>::read(Reader& reader, ByteView& bytes) {
  Bytes& scratch = reader.scratch();
  const size_t scratch_start = scratch.size();
  size_t room = group_bytes - Lead;
  for (;;) {
    const size_t start = reader.offset();
    ByteView group;
    if (!reader.take(room + 1, group)) return false;
    const size_t pad = 0xff - static_cast<unsigned char>(group[room]);
    if (pad > room) return reader.fail("not a group marker (f7..ff)", start + room);
    const ByteView padding = group.substr(room - pad, pad);
    if (const size_t wrong = padding.find_first_not_of('\0'); wrong != ByteView::npos)
      return reader.fail("padding of a group must be zero", start + room - pad + wrong);
    scratch.append(group.substr(0, room - pad));
    if (pad != 0) break;
    room = group_bytes;
  }
  bytes = ByteView(scratch).substr(scratch_start);
  return true;
}

template struct MemComparableTail<0>;
template struct MemComparableTail<4>;

std::string to_string(const Uuid& uuid) {
  const std::string hex = to_hex({reinterpret_cast<const char*>(uuid.data()), uuid.size()});
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

Result<Uuid> parse_uuid(std::string_view text) {
  const Error wrong{
      Code::invalid,
      fmt::format("{} is not a UUID like 0ce61c17-5eb4-4587-8c36-dcf4062ada4c", quote(text))};
  std::string hex;
  for (size_t i = 0; i < text.size(); i++) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (text.size() == 36 && dash) {
      if (text[i] != '-') return wrong;
    } else {
      hex.push_back(text[i]);
    }
  }
  const auto bytes = from_hex(hex);
  if (!bytes || bytes->size() != 16) return wrong;
  Uuid uuid;
  std::memcpy(uuid.data(), bytes->data(), uuid.size());
  return uuid;
}

bool UuidBytes::read(Reader& reader, Uuid& uuid) {
  ByteView raw;
  if (!reader.take(uuid.size(), raw)) return false;
  std::memcpy(uuid.data(), raw.data(), uuid.size());
  return true;
}

template <size_t Width>
void Decimal<Width>::append_number(Bytes& out, uint64_t value) {
  char digits[20];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  const size_t size = static_cast<size_t>(end - digits);
  if (size < Width) out.append(Width - size, '0');
  out.append(digits, size);
}

template <size_t Width>
bool Decimal<Width>::read_number(Reader& reader, uint64_t& value) {
  const ByteView rest = reader.rest();
  const ByteView digits = rest.substr(0, std::min(rest.size(), rest.find('/')));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size())
    return reader.fail("not a decimal number");
  if (digits.size() < Width || (digits.size() > std::max<size_t>(Width, 1) && digits[0] == '0'))
    return reader.fail("decimal number is not padded as it should be");
  reader.skip(digits.size());
  return true;
}

template struct Decimal<1>;
template struct Decimal<8>;

}  // namespace trellis
