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
#include <cstring>
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

// How many bytes an item has whatever the record holds; 0: that depends.
constexpr size_t fixed_width(const Literal& item) { return item.bytes.size(); }
template <class C, class R, class V>
constexpr size_t fixed_width(const Field<C, R, V>&) {
  if constexpr (requires { C::width; })
    return C::width;
  else
    return 0;
}
template <class R, class I>
constexpr size_t fixed_width(const Nested<R, I>&) {
  return 0;
}

template <class T>
constexpr size_t fixed_bytes() {
  size_t bytes = 0;
  for_each_item<T>([&](const auto& item) { bytes += fixed_width(item); });
  return bytes;
}

// Items of fixed width are put side by side here, and appended at once: an append for each would
// take most of the time.
template <size_t Capacity>
class FixedItems {
 public:
  char* add(size_t bytes) { return bytes_ + std::exchange(size_, size_ + bytes); }
  void append_to(Bytes& out) {
    out.append(bytes_, size_);
    size_ = 0;
  }

 private:
  char bytes_[Capacity + 1];
  size_t size_ = 0;
};

template <class T>
void append_record(Bytes& out, const T& record);

template <size_t N, class T>
void append_item(Bytes&, FixedItems<N>& fixed, const T&, const Literal& item) {
  std::memcpy(fixed.add(item.bytes.size()), item.bytes.data(), item.bytes.size());
}
template <size_t N, class T, class C, class V>
void append_item(Bytes& out, FixedItems<N>& fixed, const T& record, const Field<C, T, V>& item) {
  ASSERT(C::invalid(record.*item.member) == nullptr);
  if constexpr (requires { C::width; }) {
    C::store(fixed.add(C::width), record.*item.member);
  } else {
    fixed.append_to(out);
    C::append(out, record.*item.member);
  }
}
template <size_t N, class T, class I>
void append_item(Bytes& out, FixedItems<N>& fixed, const T& record, const Nested<T, I>& item) {
  fixed.append_to(out);
  append_record(out, record.*item.member);
}

template <class T>
void append_record(Bytes& out, const T& record) {
  FixedItems<fixed_bytes<T>()> fixed;
  for_each_item<T>([&](const auto& item) { append_item(out, fixed, record, item); });
  fixed.append_to(out);
}

// About as many as it will have, and no fewer unless something is escaped.
template <class T>
size_t expected_bytes(const T& record) {
  size_t bytes = fixed_bytes<T>();
  const auto count = [&]<class It>(const It& item) {
    if constexpr (is_field<It>) {
      using Codec = typename It::codec;
      if constexpr (requires { Codec::is_bare; })  // the bytes as they are
        bytes += (record.*item.member).size();
      else if constexpr (requires { ByteView(record.*item.member); })
        bytes += ByteView(record.*item.member).size() + 4;
      else if constexpr (!requires { Codec::width; })
        bytes += 10;
    } else if constexpr (!std::is_same_v<It, Literal>) {
      bytes += expected_bytes(record.*item.member);
    }
  };
  for_each_item<T>(count);
  return bytes;
}

// Says at which byte of the literal the input differs.
bool fail_literal(Reader& reader, std::string_view name, std::string_view bytes);

template <class T>
bool read_record(Reader& reader, T& record);

template <class T>
bool read_item(Reader& reader, T&, const Literal& item) {
  if (!reader.rest().starts_with(item.bytes)) return fail_literal(reader, item.name, item.bytes);
  reader.skip(item.bytes.size());
  return true;
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

inline bool read_end(Reader& reader) {
  if (reader.at_end()) return true;
  reader.failure().field = "end of key";
  return reader.fail("bytes follow where the key should end");
}

// The same list at run time, for what is not hot: explaining, parsing and describing work on it
// without being compiled again for every record.
struct FieldOps {
  void (*append)(Bytes& out, const void* value);
  bool (*read)(Reader& reader, void* value);
  std::string (*text)(const void* value);
  void (*append_pretty)(std::string& out, const void* value);
  Status (*parse)(std::string_view text, TextArena& arena, void* value);
  const char* (*invalid)(const void* value);
  std::string_view form;
  std::span<const Word> words;
  bool number;
};

struct Item {
  std::string_view name;
  std::string_view meaning;
  std::string_view pretty;
  std::string_view literal;  // its bytes
  const FieldOps* ops;       // null: a literal
  size_t offset;             // of the field in its record
};
using Items = std::vector<Item>;

template <class C>
constexpr std::span<const Word> words_of() {
  if constexpr (requires { C::words(); })
    return C::words();
  else
    return {};
}

template <class C, class V>
inline const FieldOps field_ops{
    .append = [](Bytes& out, const void* v) { C::append(out, *static_cast<const V*>(v)); },
    .read = [](Reader& reader, void* v) { return C::read(reader, *static_cast<V*>(v)); },
    .text = [](const void* v) { return C::text(*static_cast<const V*>(v)); },
    .append_pretty = [](std::string& out,
                        const void* v) { C::append_pretty(out, *static_cast<const V*>(v)); },
    .parse = [](std::string_view text, TextArena& arena,
                void* v) { return C::parse(text, arena, *static_cast<V*>(v)); },
    .invalid = [](const void* v) { return C::invalid(*static_cast<const V*>(v)); },
    .form = C::form,
    .words = words_of<C>(),
    .number = C::number};

template <class T, class V>
size_t offset_of(V T::*member) {
  const T record{};
  return static_cast<size_t>(reinterpret_cast<const char*>(&(record.*member)) -
                             reinterpret_cast<const char*>(&record));
}

template <class T>
void collect_items(size_t base, Items& items) {
  constexpr auto layout = T::layout();
  const auto collect = [&]<class It>(const It& item) {
    if constexpr (std::is_same_v<It, Literal>)
      items.push_back({item.name, item.meaning, item.pretty, item.bytes, nullptr, 0});
    else if constexpr (is_field<It>)
      items.push_back({item.name,
                       item.meaning,
                       item.pretty,
                       {},
                       &field_ops<typename It::codec,
                                  std::remove_cvref_t<decltype(std::declval<T>().*item.member)>>,
                       base + offset_of(item.member)});
    else
      collect_items<std::remove_cvref_t<decltype(std::declval<T>().*item.member)>>(
          base + offset_of(item.member), items);
  };
  std::apply([&](const auto&... item) { (collect(item), ...); }, layout);
}

template <class T>
const Items& items_of() {
  static const Items items = [] {
    Items collected;
    collect_items<T>(0, collected);
    return collected;
  }();
  return items;
}

bool explain_items(const Items& items, Reader& reader, void* record, Explanation& out);
Status parse_items(const Items& items, const TextFields& fields, TextArena& arena, void* record);
Bytes encode_items(const Items& items, const void* record);
Description describe_items(const Items& items);

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
  out.reserve(layout_detail::expected_bytes(record));
  append(out, record);
  return out;
}

// Views in the record point into `in` or into `scratch`.
template <class T>
Result<T> decode(ByteView in, Bytes& scratch) {
  Reader reader(in, &scratch);
  T record{};
  if (!(layout_detail::read_record(reader, record) && layout_detail::read_end(reader)))
    return to_error(reader.failure());
  return record;
}
template <class T>
requires(!needs_scratch<T>) Result<T> decode(ByteView in) {
  Reader reader(in, nullptr);
  T record{};
  if (!(layout_detail::read_record(reader, record) && layout_detail::read_end(reader)))
    return to_error(reader.failure());
  return record;
}

// False: it is no T, and `failure` says why.
template <class T>
bool explain(ByteView in, Explanation& out, DecodeFailure& failure) {
  Bytes scratch;
  Reader reader(in, &scratch);
  T record{};
  out.kind = T::kind;
  if (!layout_detail::explain_items(layout_detail::items_of<T>(), reader, &record, out)) {
    failure = reader.failure();
    return false;
  }
  // A record whose pretty form is not its fields in order has one of its own.
  if constexpr (requires { T::pretty(record); }) out.pretty = T::pretty(record);
  return true;
}

template <class T>
Description describe() {
  return layout_detail::describe_items(layout_detail::items_of<T>());
}

// The arena must outlive the record.
template <class T>
Result<T> parse(const TextFields& fields, TextArena& arena) {
  T record{};
  TRY(layout_detail::parse_items(layout_detail::items_of<T>(), fields, arena, &record));
  return record;
}

}  // namespace trellis
