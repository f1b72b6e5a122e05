#include "rocksdb_engine/scan_page.h"

#include <memory>

#include "base/assert.h"
#include "codec/redis_collection.h"
#include "engine/page_evidence.h"
#include "rocksdb_engine/rocksdb_status.h"

namespace trellis {

namespace {

constexpr char forward_mark = 'f';
constexpr char reverse_mark = 'r';
constexpr size_t bulk_readahead_bytes = 256 * 1024;

// An iterator within bounds. RocksDB keeps pointers to the bounds, so they stay beside it.
class BoundedIterator {
 public:
  BoundedIterator(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family, ByteView begin,
                  ByteView end, bool reverse,
                  ScanRequest::Reading reading = ScanRequest::Reading::often)
      : begin_(to_slice(begin)), end_(to_slice(end)), reverse_(reverse) {
    rocksdb::ReadOptions options;
    options.total_order_seek = reverse || redis_collection_of(begin, end).empty();
    options.fill_cache = reading == ScanRequest::Reading::often;
    if (reading == ScanRequest::Reading::much_once) options.readahead_size = bulk_readahead_bytes;
    if (!begin.empty()) options.iterate_lower_bound = &begin_;
    if (!end.empty()) options.iterate_upper_bound = &end_;
    iterator_.reset(db.NewIterator(options, &family));
    if (reverse_) {
      iterator_->SeekToLast();
    } else if (begin.empty()) {
      iterator_->SeekToFirst();
    } else {
      iterator_->Seek(begin_);
    }
  }
  BoundedIterator(const BoundedIterator&) = delete;
  BoundedIterator& operator=(const BoundedIterator&) = delete;

  bool valid() const { return iterator_->Valid(); }
  void advance() { reverse_ ? iterator_->Prev() : iterator_->Next(); }
  ByteView key() const { return to_view(iterator_->key()); }
  ByteView value() const { return to_view(iterator_->value()); }
  Status status() const {
    const rocksdb::Status status = iterator_->status();
    if (status.ok()) return {};
    return read_error(status);
  }

 private:
  const rocksdb::Slice begin_;
  const rocksdb::Slice end_;
  const bool reverse_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

// Marked with its direction: an expectation has none.
void append_entry(Bytes& evidence, bool reverse, ByteView key, ByteView value) {
  if (evidence.empty()) evidence.push_back(reverse ? reverse_mark : forward_mark);
  append_evidence(evidence, key, value);
}

}  // namespace

Result<ScanPage> scan_page(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                           const ScanRequest& request, ScanVisitor visit) {
  ASSERT(request.entries_max > 0);
  ScanPage page;
  if (empty_interval(request.begin, request.end)) return page;
  BoundedIterator at(db, family, request.begin, request.end, request.reverse, request.reading);
  size_t bytes = 0;
  for (; at.valid(); at.advance()) {
    const ByteView key = at.key();
    const ByteView value = at.value();
    bytes += key.size() + value.size();
    if (page.entries > 0 && bytes > request.bytes_max) {  // the next page begins with this one
      page.resume = request.reverse ? successor(key) : Bytes(key);
      break;
    }
    page.entries++;
    if (request.want_evidence) append_entry(page.evidence, request.reverse, key, value);
    const bool stopped = visit(key, value) == Visit::stop;
    const bool full = page.entries == request.entries_max || bytes >= request.bytes_max;
    // Not one step further: there may be a million tombstones before the next entry.
    if (stopped || full) {
      page.resume = request.reverse ? Bytes(key) : successor(key);
      break;
    }
  }
  TRY(at.status());
  return page;
}

Result<bool> interval_unchanged(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& family,
                                ByteView begin, ByteView end, ByteView seen) {
  if (empty_interval(begin, end)) return seen.empty();
  const bool reverse = seen.starts_with(reverse_mark);
  if (!seen.empty()) seen.remove_prefix(1);
  BoundedIterator at(db, family, begin, end, reverse);
  for (; at.valid(); at.advance()) {
    if (!take_evidence(seen, at.key(), at.value())) return false;
  }
  TRY(at.status());
  return seen.empty();
}

}  // namespace trellis
