// Identities as types of their own: a KeyspaceId and a RangeId cannot be swapped by mistake.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace trellis {

template <class Tag, class Number>
struct StrongId {
  using number_type = Number;
  Number value{};
  auto operator<=>(const StrongId&) const = default;
};

using KeyspaceId = StrongId<struct KeyspaceTag, uint32_t>;  // 0..16777215, see limits.h
using RangeId = StrongId<struct RangeTag, uint64_t>;
using NodeId = StrongId<struct NodeTag, uint32_t>;
using InodeId = StrongId<struct InodeTag, uint64_t>;
using DataId = StrongId<struct DataTag, uint64_t>;  // whose blocks: usually the inode's own number
using EntityId = StrongId<struct EntityTag, uint64_t>;  // catalog entities below the catalog
using SessionId = StrongId<struct SessionTag, uint64_t>;

}  // namespace trellis

template <class Tag, class Number>
struct std::hash<trellis::StrongId<Tag, Number>> {
  size_t operator()(const trellis::StrongId<Tag, Number>& id) const noexcept {
    return std::hash<Number>{}(id.value);
  }
};
