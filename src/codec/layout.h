// One description per record, from which everything else follows.
//
//   // | 'x' | keyspace u24 | 'f' | 01 | inode u64 |
//   struct FsInodeKey {
//     KeyspaceId keyspace;
//     InodeId inode;
//     static constexpr std::string_view kind = "fs.inode";
//     static constexpr auto layout() {
//       return record(mode_x, field<BigEndian<3>>("keyspace", &FsInodeKey::keyspace), model_fs,
//                     literal("scope", "\x01", "inode"),
//                     field<BigEndian<8>>("inode", &FsInodeKey::inode));
//     }
//   };
//
//   encode(FsInodeKey{ks, ino})          the bytes; append(out, key) without allocating
//   decode<FsInodeKey>(bytes)            the fields, or an Error that names offset and reason
//   explain<FsInodeKey>(bytes)           every field with offset, length, value and meaning
//   parse<FsInodeKey>({{"inode", "5"}})  from text, the inverse of explain
//
// Decoding is total: any bytes give a record or an error, and what is accepted is exactly what
// encode writes (encode(decode(x)) == x). It allocates nothing, except that escaped bytes which
// really contain an escape are unescaped into the caller's scratch buffer.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// Why and where bytes are not a record. All text is static.
struct DecodeFailure {
  size_t offset = 0;
  std::string_view field;
  std::string_view why;
  std::string_view wanted;  // the literal that was expected there, if one was
};

Error to_error(const DecodeFailure& failure);

// Takes bytes off the front of an input; every step is checked.
class Reader {
 public:
  // Escaped bytes go to `scratch`, which may be null for records without escaped fields.
  Reader(ByteView in, Bytes* scratch) : in_(in), scratch_(scratch) {
    if (scratch_ != nullptr) {
      scratch_->clear();
      // Unescaping never lengthens, so views into scratch stay valid while one record is decoded.
      scratch_->reserve(in.size());
    }
  }

  size_t offset() const { return offset_; }
  ByteView rest() const { return in_.substr(offset_); }
  bool at_end() const { return offset_ == in_.size(); }
  void skip(size_t size) { offset_ += size; }  // REQUIRES: rest().size() >= size

  bool take(size_t size, ByteView& out) {
    if (in_.size() - offset_ < size) return fail("too short", in_.size());
    out = in_.substr(offset_, size);
    offset_ += size;
    return true;
  }

  bool fail(std::string_view why) { return fail(why, offset_); }
  bool fail(std::string_view why, size_t offset) {
    failure_.offset = offset;
    failure_.why = why;
    return false;
  }
  DecodeFailure& failure() { return failure_; }

  Bytes& scratch() {
    ASSERT(scratch_ != nullptr);
    return *scratch_;
  }

 private:
  ByteView in_;
  size_t offset_ = 0;
  Bytes* scratch_;
  DecodeFailure failure_;
};

// Bytes parsed from text live as long as the arena.
using TextArena = std::deque<Bytes>;
using TextFields = std::vector<std::pair<std::string, std::string>>;

struct ExplainedField {
  std::string name;
  size_t offset = 0;
  size_t length = 0;
  std::string value;    // what `trellis key encode` takes
  bool number = false;  // the value is a whole number
  std::string meaning;  // for people
};

struct Explanation {
  std::string_view kind;
  std::string pretty;
  std::vector<ExplainedField> fields;
};

// A layout in words, for the map and for messages.
struct Description {
  std::string bytes;  // "'x' | keyspace u24 | 'f' | 01 | inode u64"
  std::vector<std::string_view> fields;
  std::vector<std::string_view> literals;
};

// --- the items of a layout ---

struct Literal {
  std::string_view name;
  std::string_view bytes;
  std::string_view meaning;
  std::string_view pretty;  // its part of the pretty form: "/Redis", or nothing
};

template <size_t N>
constexpr Literal literal(std::string_view name, const char (&bytes)[N], std::string_view meaning,
                          std::string_view pretty = {}) {
  return {name, {bytes, N - 1}, meaning, pretty};
}

// One of the words that a field may be.
struct Word {
  std::string_view bytes;
  std::string_view name;
  std::string_view pretty;  // with its slash
};

template <class Codec, class Record, class Value>
struct Field {
  using codec = Codec;
  std::string_view name;
  Value Record::*member;
  std::string_view meaning;
  std::string_view pretty;  // stands before the value in the pretty form: "/Keyspace"
};

template <class Codec, class Record, class Value>
constexpr Field<Codec, Record, Value> field(std::string_view name, Value Record::*member,
                                            std::string_view meaning = {},
                                            std::string_view pretty = {}) {
  return {name, member, meaning, pretty};
}

// A record inside a record: a Kvrocks key behind our own prefix.
template <class Record, class Inner>
struct Nested {
  Inner Record::*member;
};

template <class Record, class Inner>
constexpr Nested<Record, Inner> nested(Inner Record::*member) {
  return {member};
}

template <class... Items>
constexpr std::tuple<Items...> record(Items... items) {
  return {items...};
}

namespace layout_detail {

template <class T>
inline constexpr bool is_field = false;
template <class C, class R, class V>
inline constexpr bool is_field<Field<C, R, V>> = true;

template <class T, class Visit>
constexpr void for_each_item(Visit&& visit) {
  constexpr auto items = T::layout();
  std::apply([&](const auto&... item) { (visit(item), ...); }, items);
}

template <class T>
constexpr bool needs_scratch();

template <class Item>
constexpr bool item_needs_scratch(const Item&) {
  if constexpr (is_field<Item>)
    return Item::codec::needs_scratch;
  else
    return false;
}
template <class R, class I>
constexpr bool item_needs_scratch(const Nested<R, I>&) {
  return needs_scratch<I>();
}

template <class T>
constexpr bool needs_scratch() {
  bool needs = false;
  for_each_item<T>([&](const auto& item) { needs = needs || item_needs_scratch(item); });
  return needs;
}

template <class T>
void append_record(Bytes& out, const T& record);

template <class T>
void append_item(Bytes& out, const T&, const Literal& item) {
  out.append(item.bytes);
}
template <class T, class C, class V>
void append_item(Bytes& out, const T& record, const Field<C, T, V>& item) {
  ASSERT(C::invalid(record.*item.member) == nullptr);
  C::append(out, record.*item.member);
}
template <class T, class I>
void append_item(Bytes& out, const T& record, const Nested<T, I>& item) {
  append_record(out, record.*item.member);
}

template <class T>
void append_record(Bytes& out, const T& record) {
  for_each_item<T>([&](const auto& item) { append_item(out, record, item); });
}

template <class T>
bool read_record(Reader& reader, T& record);

template <class T>
bool read_item(Reader& reader, T&, const Literal& item) {
  const ByteView rest = reader.rest();
  if (rest.starts_with(item.bytes)) {
    reader.skip(item.bytes.size());
    return true;
  }
  size_t same = 0;
  while (same < rest.size() && rest[same] == item.bytes[same]) same++;
  reader.failure().field = item.name;
  reader.failure().wanted = item.bytes;
  return reader.fail("unknown", reader.offset() + same);
}
template <class T, class C, class V>
bool read_item(Reader& reader, T& record, const Field<C, T, V>& item) {
  if (C::read(reader, record.*item.member)) return true;
  reader.failure().field = item.name;
  return false;
}
template <class T, class I>
bool read_item(Reader& reader, T& record, const Nested<T, I>& item) {
  return read_record(reader, record.*item.member);
}

template <class T>
bool read_record(Reader& reader, T& record) {
  constexpr auto items = T::layout();
  return std::apply([&](const auto&... item) { return (read_item(reader, record, item) && ...); },
                    items);
}

template <class T>
bool read_whole(Reader& reader, T& record) {
  if (!read_record(reader, record)) return false;
  if (reader.at_end()) return true;
  reader.failure().field = "end of key";
  return reader.fail("bytes follow where the key should end");
}

template <class T>
bool explain_record(Reader& reader, T& record, Explanation& out);

template <class T>
bool explain_item(Reader& reader, T& record, const Literal& item, Explanation& out) {
  const size_t start = reader.offset();
  if (!read_item(reader, record, item)) return false;
  out.fields.push_back({.name = std::string(item.name),
                        .offset = start,
                        .length = item.bytes.size(),
                        .value = quote(item.bytes),
                        .number = false,
                        .meaning = std::string(item.meaning)});
  out.pretty += item.pretty;
  return true;
}
template <class T, class C, class V>
bool explain_item(Reader& reader, T& record, const Field<C, T, V>& item, Explanation& out) {
  const size_t start = reader.offset();
  if (!read_item(reader, record, item)) return false;
  const V& value = record.*item.member;
  out.fields.push_back({.name = std::string(item.name),
                        .offset = start,
                        .length = reader.offset() - start,
                        .value = C::text(value),
                        .number = C::number,
                        .meaning = std::string(item.meaning)});
  out.pretty += item.pretty;
  C::append_pretty(out.pretty, value);
  return true;
}
template <class T, class I>
bool explain_item(Reader& reader, T& record, const Nested<T, I>& item, Explanation& out) {
  return explain_record(reader, record.*item.member, out);
}

template <class T>
bool explain_record(Reader& reader, T& record, Explanation& out) {
  constexpr auto items = T::layout();
  return std::apply(
      [&](const auto&... item) { return (explain_item(reader, record, item, out) && ...); },
      items);
}

// Looks a field up in the text, in any order; each may be named once.
Result<std::string_view> find_text(const TextFields& fields, std::string_view name);

template <class T>
Status parse_record(const TextFields& fields, TextArena& arena, T& record);

// A literal may be left out, or given as explain shows it.
Status check_literal(const TextFields& fields, const Literal& item);

template <class T>
Status parse_item(const TextFields& fields, TextArena&, T&, const Literal& item) {
  return check_literal(fields, item);
}
template <class T, class C, class V>
Status parse_item(const TextFields& fields, TextArena& arena, T& record,
                  const Field<C, T, V>& item) {
  TRY_ASSIGN(const std::string_view text, find_text(fields, item.name));
  if (auto status = C::parse(text, arena, record.*item.member); !status)
    return with_context(item.name, std::move(status).error());
  if (const char* why = C::invalid(record.*item.member))
    return Error{Code::invalid, std::string(item.name) + ": " + why};
  return {};
}
template <class T, class I>
Status parse_item(const TextFields& fields, TextArena& arena, T& record,
                  const Nested<T, I>& item) {
  return parse_record(fields, arena, record.*item.member);
}

template <class T>
Status parse_record(const TextFields& fields, TextArena& arena, T& record) {
  Status status;
  for_each_item<T>([&](const auto& item) {
    if (status) status = parse_item(fields, arena, record, item);
  });
  return status;
}

void describe_literal(std::string& out, const Literal& item);
void describe_field(std::string& out, std::string_view name, std::string_view form);
void describe_words(std::string& out, std::string_view name, std::span<const Word> words);

template <class T>
void describe_record(Description& out) {
  for_each_item<T>([&]<class Item>(const Item& item) {
    if constexpr (std::is_same_v<Item, Literal>) {
      describe_literal(out.bytes, item);
      out.literals.push_back(item.name);
    } else if constexpr (is_field<Item>) {
      if constexpr (requires { Item::codec::words(); })
        describe_words(out.bytes, item.name, Item::codec::words());
      else
        describe_field(out.bytes, item.name, Item::codec::form);
      out.fields.push_back(item.name);
    } else {
      describe_record<std::remove_cvref_t<decltype(std::declval<T>().*item.member)>>(out);
    }
  });
}

}  // namespace layout_detail

template <class T>
inline constexpr bool needs_scratch = layout_detail::needs_scratch<T>();

// REQUIRES: every field is one that its codec can write (ASSERTed).
template <class T>
void append(Bytes& out, const T& record) {
  layout_detail::append_record(out, record);
}

template <class T>
Bytes encode(const T& record) {
  Bytes out;
  append(out, record);
  return out;
}

// Views in the record point into `in` or into `scratch`.
template <class T>
Result<T> decode(ByteView in, Bytes& scratch) {
  Reader reader(in, &scratch);
  T record{};
  if (!layout_detail::read_whole(reader, record)) return to_error(reader.failure());
  return record;
}
template <class T>
  requires(!needs_scratch<T>)
Result<T> decode(ByteView in) {
  Reader reader(in, nullptr);
  T record{};
  if (!layout_detail::read_whole(reader, record)) return to_error(reader.failure());
  return record;
}

// Empty result: it is no T, and `failure` says why.
template <class T>
bool explain(ByteView in, Explanation& out, DecodeFailure& failure) {
  Bytes scratch;
  Reader reader(in, &scratch);
  T record{};
  out.kind = T::kind;
  if (!layout_detail::explain_record(reader, record, out)) {
    failure = reader.failure();
    return false;
  }
  if (!reader.at_end()) {
    failure = {reader.offset(), "end of key", "bytes follow where the key should end", {}};
    return false;
  }
  // A record whose pretty form is not its fields in order has one of its own.
  if constexpr (requires { T::pretty(record); }) out.pretty = T::pretty(record);
  return true;
}

template <class T>
Description describe() {
  Description description;
  layout_detail::describe_record<T>(description);
  return description;
}

template <class T>
Result<T> parse(const TextFields& fields, TextArena& arena) {
  T record{};
  TRY(layout_detail::parse_record(fields, arena, record));
  return record;
}

}  // namespace trellis
