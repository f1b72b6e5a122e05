#include "backup/block_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "backup/units.h"
#include "codec/fs_keys.h"

namespace trellis {
namespace {

Bytes key_of_block(const BlockId& block) {
  return encode(FsBlockKey{block.keyspace, block.data, block.index});
}

// As far from one as from the other, in the first number in which they differ; behind the first.
// REQUIRES: first < last.
BlockId middle_of_blocks(const BlockId& first, const BlockId& last) {
  const auto middle = [](auto a, auto b) { return b - (b - a) / 2; };
  if (first.keyspace != last.keyspace)
    return {KeyspaceId{middle(first.keyspace.value, last.keyspace.value)}, DataId{0}, 0};
  if (first.data != last.data)
    return {first.keyspace, DataId{middle(first.data.value, last.data.value)}, 0};
  return {first.keyspace, first.data, middle(first.index, last.index)};
}

Result<std::optional<BlockId>> first_block(BlockStore& blocks, const BlockInterval& in) {
  TRY_ASSIGN(const BlockPage page, blocks.list(in.begin, in.end, 1));
  if (page.blocks.empty()) return page.resume;
  return std::optional(page.blocks[0].block);
}

// REQUIRES: it is not the first of all.
BlockId block_before(const BlockId& block) {
  if (block.index > 0) return {block.keyspace, block.data, block.index - 1};
  if (block.data.value > 0) return {block.keyspace, DataId{block.data.value - 1}, UINT64_MAX};
  return {KeyspaceId{block.keyspace.value - 1}, DataId{UINT64_MAX}, UINT64_MAX};
}

// Behind the first block of the interval, half-way to its last. Absent: there is no such place.
Result<std::optional<BlockId>> middle_in_blocks(BlockStore& blocks, const BlockInterval& in) {
  TRY_ASSIGN(const auto first, first_block(blocks, in));
  if (!first) return std::optional<BlockId>();
  BlockId low = *first;  // is there; none is behind high
  BlockId high = block_before(in.end);
  while (low < high) {
    const BlockId middle = middle_of_blocks(low, high);
    TRY_ASSIGN(const auto found, first_block(blocks, {middle, in.end}));
    if (found)
      low = *found;
    else
      high = block_before(middle);
  }
  if (low == *first) return std::optional<BlockId>();
  return std::optional(middle_of_blocks(*first, low));
}

}  // namespace

BlockInterval BlockUnits::unit(size_t number) const {
  const auto at = [&](size_t bound) {
    const auto key = decode<FsBlockKey>(bounds[bound]);
    return BlockId{key->keyspace, key->data, key->block};
  };
  return {number == 0 ? scope.begin : at(number - 1),
          number == bounds.size() ? scope.end : at(number)};
}

Result<BlockUnits> cut_block_units(BlockStore& blocks, const BlockInterval& scope, size_t wanted,
                                   std::vector<Bytes> bounds_before) {
  std::erase_if(bounds_before, [&](const Bytes& bound) {
    const auto block = block_of_entry(bound, {});
    return !block || *block <= scope.begin || *block >= scope.end;
  });
  BlockUnits units{.scope = scope, .bounds = std::move(bounds_before)};
  if (are_about_as_many(units.size(), wanted)) return units;
  units.bounds.clear();
  std::deque<BlockInterval> whole{scope};
  while (!whole.empty() && units.size() < wanted) {
    const BlockInterval interval = whole.front();
    whole.pop_front();
    TRY_ASSIGN(const auto middle, middle_in_blocks(blocks, interval));
    if (!middle) continue;
    units.bounds.push_back(key_of_block(*middle));
    whole.push_back({interval.begin, *middle});
    whole.push_back({*middle, interval.end});
  }
  std::ranges::sort(units.bounds);
  return units;
}

void BlockWalk::take(std::vector<EntryChunk>& out) {
  out.push_back(cutter_.take());
  out.back().facts.of_blocks = true;
}

Result<uint64_t> BlockWalk::next(size_t bytes_max, std::vector<EntryChunk>& out) {
  TRY_ASSIGN(const BlockPage page,
             blocks_.list(*from_, end_, std::max<size_t>(bytes_max / block_bytes_max, 1)));
  std::vector<BlockId> ids;
  for (const StoredBlock& stored : page.blocks) ids.push_back(stored.block);
  std::vector<Value> values(ids.size());
  TRY(blocks_.read(ids, values));
  uint64_t bytes = 0;
  for (size_t i = 0; i < ids.size(); i++) {
    if (!values[i].found()) continue;
    const Bytes key = key_of_block(ids[i]);
    bytes += key.size() + values[i].bytes().size();
    if (cutter_.add(key, values[i].bytes())) take(out);
  }
  from_ = page.resume;
  if (done() && !cutter_.empty()) take(out);
  return bytes;
}

Result<BlockId> block_of_entry(ByteView key, ByteView value) {
  const auto decoded = decode<FsBlockKey>(key);
  if (decoded && value.size() <= block_bytes_max)
    return BlockId{decoded->keyspace, decoded->data, decoded->block};
  return Error{Code::corrupt, fmt::format("{} is no block of file data", to_hex(key)),
               "backup_damaged"};
}

}  // namespace trellis
