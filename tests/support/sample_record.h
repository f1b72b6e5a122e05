// Random records of any kind, made from their layout: for property tests and fuzzers.
#pragma once

#include <bit>
#include <type_traits>

#include "base/random.h"
#include "codec/catalog_ref.h"
#include "codec/field_codecs.h"
#include "codec/layout.h"

namespace trellis {

namespace sample_detail {

inline uint64_t number(Random& random) {
  switch (random.below(4)) {
    case 0: return random.below(4);
    case 1: return ~random.below(4);
    case 2: return random.next() >> random.below(64);
    default: return random.next();
  }
}

// Short, and rich in the bytes that separators and escapes are made of.
inline ByteView bytes(Random& random, TextArena& arena) {
  constexpr std::string_view special{"\0\x01\x12\xff\xfe_/\"\\xk", 11};
  Bytes& out = arena.emplace_back();
  for (size_t left = random.below(20); left > 0; left--)
    out.push_back(random.one_in(2) ? special[random.below(special.size())]
                                   : static_cast<char>(random.next()));
  return out;
}

inline CatalogRef sample_ref(Random& random) {
  const auto type = static_cast<CatalogType>(random.below(std::size(catalog_types)));
  if (type == CatalogType::column)
    return CatalogRef::column(EntityId{number(random)}, EntityId{number(random)});
  if (!catalog_type_has_uuid(type)) return CatalogRef::of(type, EntityId{number(random)});
  Uuid uuid;
  for (unsigned char& byte : uuid) byte = static_cast<unsigned char>(random.next());
  return CatalogRef::of(type, uuid);
}

template <class Codec, class V>
void fill(Random& random, TextArena& arena, V& value) {
  do {
    if constexpr (std::is_same_v<V, ByteView>)
      value = bytes(random, arena);
    else if constexpr (std::is_same_v<V, Uuid>)
      for (unsigned char& byte : value) byte = static_cast<unsigned char>(random.next());
    else if constexpr (std::is_same_v<V, CatalogRef>)
      value = sample_ref(random);
    else if constexpr (std::is_same_v<V, double>)
      value = std::bit_cast<double>(number(random));
    else if constexpr (std::is_enum_v<V> || std::is_same_v<V, unsigned char>)
      value = static_cast<V>(random.below(16));
    else if constexpr (requires { Codec::max; })
      field_detail::set_number(value, number(random) & Codec::max);
    else
      field_detail::set_number(value, number(random));
  } while (Codec::invalid(value) != nullptr);
}

template <class T>
void fill_record(Random& random, TextArena& arena, T& record) {
  layout_detail::for_each_item<T>([&]<class Item>(const Item& item) {
    if constexpr (layout_detail::is_field<Item>)
      fill<typename Item::codec>(random, arena, record.*item.member);
    else if constexpr (!std::is_same_v<Item, Literal>)
      fill_record(random, arena, record.*item.member);
  });
}

}  // namespace sample_detail

// Views point into the arena.
template <class T>
T sample_record(Random& random, TextArena& arena) {
  T record{};
  sample_detail::fill_record(random, arena, record);
  return record;
}

}  // namespace trellis
