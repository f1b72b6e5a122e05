// How single fields are written: the codecs that layouts are made of.
//
//   BigEndian<n>      n bytes, most significant first                         order of numbers
//   OrderedUvarint    CockroachDB: 0..109 one byte 88+v, else f5+n then n bytes  order of numbers
//   OrderedVarint     the same, with negative numbers below                   order of numbers
//   EscapedBytes      12, body with 00 -> 00 ff, end 00 01                    order of bytes
//   Terminated        the same without the leading 12
//   MemComparable     TiKV: groups of 8, zero padded, each with marker ff - pad  order of bytes
//   LengthPrefixed<n> length in n bytes big-endian, then the bytes            no order
//   Remaining         all bytes to the end of the key                         order of bytes
//   Uuid              16 bytes
//   Decimal<n>        decimal digits, zero padded to at least n   order of numbers up to n digits
//   OneOf<table>      one of a fixed set of words
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "codec/layout.h"

namespace trellis {

namespace field_detail {

template <class V>
constexpr uint64_t number(const V& value) {
  if constexpr (requires { value.value; })
    return value.value;
  else
    return static_cast<uint64_t>(value);
}

template <class V>
constexpr void set_number(V& out, uint64_t value) {
  if constexpr (requires { out.value; })
    out.value = static_cast<typename V::number_type>(value);
  else
    out = static_cast<V>(value);
}

// The largest number that the field's C++ type holds: wider bytes in a key are an error.
template <class V>
constexpr uint64_t number_max() {
  if constexpr (requires(V v) { v.value; })
    return static_cast<uint64_t>(static_cast<typename V::number_type>(~0ull));
  else
    return static_cast<uint64_t>(static_cast<std::make_unsigned_t<V>>(~0ull));
}

constexpr std::string_view number_form(size_t width) {
  constexpr std::string_view forms[] = {"", "u8", "u16", "u24", "u32", "u40", "u48", "u56", "u64"};
  return forms[width];
}
constexpr std::string_view prefixed_form(size_t width) {
  return width == 1 ? "u8+bytes" : width == 4 ? "u32+bytes" : "u64+bytes";
}

Result<uint64_t> parse_number(std::string_view text, uint64_t max);
Result<int64_t> parse_signed(std::string_view text);
Status parse_bytes(std::string_view text, TextArena& arena, ByteView& out);
void append_quoted(std::string& out, ByteView bytes);

}  // namespace field_detail

struct NumberText {
  static constexpr bool needs_scratch = false;
  static constexpr bool number = true;
  template <class V>
  static std::string text(const V& value) {
    return std::to_string(field_detail::number(value));
  }
  template <class V>
  static void append_pretty(std::string& out, const V& value) {
    out += '/';
    out += text(value);
  }
};

template <size_t Width>
struct BigEndian : NumberText {
  static_assert(Width >= 1 && Width <= 8);
  static constexpr uint64_t max = Width == 8 ? ~0ull : (1ull << (8 * Width % 64)) - 1;
  static constexpr std::string_view form = field_detail::number_form(Width);

  static constexpr size_t width = Width;

  template <class V>
  static void store(char* out, const V& value) {
    const uint64_t number = field_detail::number(value);
    for (size_t i = 0; i < Width; i++) out[i] = static_cast<char>(number >> (8 * (Width - 1 - i)));
  }
  template <class V>
  static void append(Bytes& out, const V& value) {
    char raw[Width];
    store(raw, value);
    out.append(raw, Width);
  }
  template <class V>
  static bool read(Reader& reader, V& value) {
    ByteView raw;
    if (!reader.take(Width, raw)) return false;
    field_detail::set_number(value, load_be(raw.data(), Width));
    return true;
  }
  template <class V>
  static Status parse(std::string_view text, TextArena&, V& value) {
    TRY_ASSIGN(const uint64_t number, field_detail::parse_number(text, max));
    field_detail::set_number(value, number);
    return {};
  }
  template <class V>
  static const char* invalid(const V& value) {
    return field_detail::number(value) <= max ? nullptr : "number too large for its field";
  }
};

// For codecs of numbers of no fixed width, which say how with append_number and read_number.
template <class Codec>
struct AnyWidth : NumberText {
  template <class V>
  static void append(Bytes& out, const V& value) {
    Codec::append_number(out, field_detail::number(value));
  }
  template <class V>
  static bool read(Reader& reader, V& value) {
    uint64_t number = 0;
    const size_t start = reader.offset();
    if (!Codec::read_number(reader, number)) return false;
    if (number > field_detail::number_max<V>()) return reader.fail("number too large", start);
    field_detail::set_number(value, number);
    return true;
  }
  template <class V>
  static Status parse(std::string_view text, TextArena&, V& value) {
    TRY_ASSIGN(const uint64_t number,
               field_detail::parse_number(text, field_detail::number_max<V>()));
    field_detail::set_number(value, number);
    return {};
  }
  template <class V>
  static const char* invalid(const V&) {
    return nullptr;
  }
};

struct OrderedUvarint : AnyWidth<OrderedUvarint> {
  static constexpr std::string_view form = "uvarint";
  static void append_number(Bytes& out, uint64_t value);
  static bool read_number(Reader& reader, uint64_t& value);
};

struct OrderedVarint {
  static constexpr bool needs_scratch = false;
  static constexpr bool number = true;
  static constexpr std::string_view form = "varint";
  static void append(Bytes& out, int64_t value);
  static bool read(Reader& reader, int64_t& value);
  static std::string text(int64_t value) { return std::to_string(value); }
  static void append_pretty(std::string& out, int64_t value) { out += '/' + text(value); }
  static Status parse(std::string_view text, TextArena&, int64_t& value) {
    TRY_ASSIGN(value, field_detail::parse_signed(text));
    return {};
  }
  static const char* invalid(int64_t) { return nullptr; }
};

struct BytesText {
  static constexpr bool needs_scratch = false;
  static constexpr bool number = false;
  static std::string text(ByteView bytes) { return quote(bytes); }
  static void append_pretty(std::string& out, ByteView bytes) {
    field_detail::append_quoted(out, bytes);
  }
  static Status parse(std::string_view text, TextArena& arena, ByteView& out) {
    return field_detail::parse_bytes(text, arena, out);
  }
  static const char* invalid(ByteView) { return nullptr; }
};

struct Terminated : BytesText {
  static constexpr bool needs_scratch = true;
  static constexpr std::string_view form = "escaped";
  static void append(Bytes& out, ByteView bytes);
  static bool read(Reader& reader, ByteView& bytes);
};

struct EscapedBytes : Terminated {
  static constexpr std::string_view form = "escaped (12 ... 00 01)";
  static void append(Bytes& out, ByteView bytes);
  static bool read(Reader& reader, ByteView& bytes);
};

// As the last field, behind `Lead` bytes that share its first group: the keyspace prefix.
template <size_t Lead>
struct MemComparableTail : BytesText {
  static_assert(Lead < 8);
  static constexpr bool needs_scratch = true;
  static constexpr std::string_view form = "memcomparable";
  static void append(Bytes& out, ByteView bytes);
  static bool read(Reader& reader, ByteView& bytes);
};
using MemComparable = MemComparableTail<0>;

template <size_t Width>
struct LengthPrefixed : BytesText {
  static constexpr std::string_view form = field_detail::prefixed_form(Width);
  static void append(Bytes& out, ByteView bytes) {
    BigEndian<Width>::append(out, static_cast<uint64_t>(bytes.size()));
    out.append(bytes);
  }
  static bool read(Reader& reader, ByteView& bytes) {
    const size_t start = reader.offset();
    uint64_t size = 0;
    if (!BigEndian<Width>::read(reader, size)) return false;
    if (size > reader.rest().size()) return reader.fail("length goes past the end", start);
    return reader.take(size, bytes);
  }
  static const char* invalid(ByteView bytes) {
    return bytes.size() <= BigEndian<Width>::max ? nullptr : "too long for its length field";
  }
};

struct Remaining : BytesText {
  static constexpr std::string_view form = "bytes";
  static constexpr bool is_bare = true;
  static void append(Bytes& out, ByteView bytes) { out.append(bytes); }
  static bool read(Reader& reader, ByteView& bytes) {
    return reader.take(reader.rest().size(), bytes);
  }
};

using Uuid = std::array<unsigned char, 16>;
std::string to_string(const Uuid& uuid);
Result<Uuid> parse_uuid(std::string_view text);

struct UuidBytes {
  static constexpr bool needs_scratch = false;
  static constexpr bool number = false;
  static constexpr std::string_view form = "uuid";
  static void append(Bytes& out, const Uuid& uuid) {
    out.append(reinterpret_cast<const char*>(uuid.data()), uuid.size());
  }
  static bool read(Reader& reader, Uuid& uuid);
  static std::string text(const Uuid& uuid) { return to_string(uuid); }
  static void append_pretty(std::string& out, const Uuid& uuid) { out += '/' + to_string(uuid); }
  static Status parse(std::string_view text, TextArena&, Uuid& uuid) {
    TRY_ASSIGN(uuid, parse_uuid(text));
    return {};
  }
  static const char* invalid(const Uuid&) { return nullptr; }
};

// Digits up to the next '/' or the end, as PD writes ids into paths.
template <size_t Width>
struct Decimal : AnyWidth<Decimal<Width>> {
  static constexpr std::string_view form = "decimal";
  static void append_number(Bytes& out, uint64_t value);
  static bool read_number(Reader& reader, uint64_t& value);
};

// One of a fixed set. The table is an array of Word; the field's value is an enum whose numbers
// are the table's indexes.
namespace field_detail {
bool read_word(Reader& reader, std::span<const Word> table, size_t& index);
Status parse_word(std::string_view text, std::span<const Word> table, size_t& index);
}  // namespace field_detail

template <const auto& Table>
struct OneOf {
  static constexpr bool needs_scratch = false;
  static constexpr bool number = false;
  static constexpr std::string_view form = "word";
  static constexpr std::span<const Word> words() { return Table; }
  template <class V>
  static const Word& word(V value) {
    return Table[static_cast<size_t>(value)];
  }
  template <class V>
  static void append(Bytes& out, V value) {
    out.append(word(value).bytes);
  }
  template <class V>
  static bool read(Reader& reader, V& value) {
    size_t index = 0;
    if (!field_detail::read_word(reader, Table, index)) return false;
    value = static_cast<V>(index);
    return true;
  }
  template <class V>
  static std::string text(V value) {
    return std::string(word(value).name);
  }
  template <class V>
  static void append_pretty(std::string& out, V value) {
    out += word(value).pretty;
  }
  template <class V>
  static Status parse(std::string_view text, TextArena&, V& value) {
    size_t index = 0;
    TRY(field_detail::parse_word(text, Table, index));
    value = static_cast<V>(index);
    return {};
  }
  template <class V>
  static const char* invalid(V value) {
    return static_cast<size_t>(value) < std::size(Table) ? nullptr : "not one of its words";
  }
};

}  // namespace trellis
