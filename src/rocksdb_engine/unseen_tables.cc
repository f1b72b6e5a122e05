#include "rocksdb_engine/unseen_tables.h"

#include <algorithm>
#include <memory>
#include <ranges>

#include "base/assert.h"
#include "engine/engine.h"
#include "rocksdb_engine/read_epochs.h"
#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {
namespace {

// Who has to pass over more that was removed one by one leaves it to a compaction.
constexpr uint64_t passed_over_max = 100'000;

// Nothing that is written from now on can make it seen again: it would be newer, and elsewhere.
Result<bool> is_unseen(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family, ReadEpochs& epochs,
                       const rocksdb::SstFileMetaData& table) {
  const Bytes behind = successor(table.largestkey);
  const rocksdb::Slice begin(table.smallestkey);
  const rocksdb::Slice end(behind);
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  options.fill_cache = false;
  options.max_skippable_internal_keys = passed_over_max;
  options.iterate_lower_bound = &begin;
  options.iterate_upper_bound = &end;
  const ReadEpochs::Reader reader(epochs);
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(options, &family));
  at->Seek(begin);
  if (at->Valid() || at->status().IsIncomplete()) return false;
  if (!at->status().ok()) return read_error(at->status());
  return true;
}

}  // namespace

Result<std::vector<std::string>> unseen_tables(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                                               ReadEpochs& epochs, ByteView begin, ByteView end,
                                               const std::atomic<bool>* canceled) {
  rocksdb::ColumnFamilyMetaData tables;
  db.GetColumnFamilyMetaData(&family, &tables);
  std::vector<std::string> unseen;
  const auto lowest = std::ranges::find_if(std::views::reverse(tables.levels),
                                           [](const auto& level) { return !level.files.empty(); });
  // Level 0 has an order of its own.
  if (lowest == std::views::reverse(tables.levels).end() || lowest->level == 0) return unseen;
  for (const rocksdb::SstFileMetaData& table : lowest->files) {
    if (canceled != nullptr && canceled->load()) break;
    if (table.smallestkey < begin || (!end.empty() && table.largestkey >= end)) continue;
    TRY_ASSIGN(const bool goes, is_unseen(db, family, epochs, table));
    if (goes) unseen.push_back(table.name);
  }
  return unseen;
}

Status drop_tables(rocksdb::DB& db, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const rocksdb::Status status = db.DeleteFile(name);
    // It is not there any more, or no longer the lowest.
    if (status.IsInvalidArgument()) continue;
    if (!status.ok()) return write_error(status);
  }
  return {};
}

}  // namespace trellis
