// Reads of keys and of pages on range objects, each of one instant.
//
// What one range answers in one operation is of one instant. What several ranges or operations
// answer is asked for again, as guards only: if nothing has changed since, all of it was there at
// the instant between the two. That what is absent has not changed is seen by the structure counter
// of its range, for a key that appears and disappears leaves no version.
//
// Threads: any. Blocking: every call.
#pragma once

#include <map>
#include <set>

#include "cluster_engine/evidence.h"
#include "cluster_engine/stored_order.h"
#include "cluster_engine/transaction_log.h"

namespace trellis {

struct VersionedRecord {
  bool found = false;
  Bytes value;
  Bytes version;
};

// The value with its version, kept for as long as the Value that holds it.
struct VersionedPin {
  std::shared_ptr<const VersionedRecord> record;
  const char* data() const { return record->value.data(); }
  size_t size() const { return record->value.size(); }
};

class ClusterReader {
 public:
  ClusterReader(ObjectStore& store, RangeRouter& router, TransactionLog& log)
      : store_(store), router_(router), log_(log) {}

  enum class Instant : bool { any, one };
  // REQUIRES: addresses.size() == records.size()
  Status read(std::span<const Bytes> addresses, std::span<VersionedRecord> records,
              Instant instant);

  struct Page {
    std::vector<std::pair<Bytes, StoredEntry>> entries;  // key and entry, in the order of the scan
    bool complete = true;                                // nothing follows the last entry
    PageEvidence evidence;                               // of all of it
  };
  Result<Page> scan(const ScanRequest& request);

 private:
  struct Part {
    RangePointer range;
    Bytes begin;
    Bytes end;
    Bytes structure;
  };
  using Parts = std::vector<Part>;
  // Code::conflict: something has changed, look again.
  Status read_once(std::span<const Bytes> addresses, std::span<VersionedRecord> records,
                   Instant instant, Patience& patience);
  Result<Page> scan_once(const ScanRequest& request, Patience& patience);
  Status read_chunk(ByteView begin, ByteView end, bool reverse, size_t wanted, AddressChunk& chunk,
                    Parts& parts, Patience& patience);
  Status read_forward(const RangePointer& range, ByteView begin, ByteView end, size_t wanted,
                      AddressChunk& chunk, Parts& parts, Patience& patience);
  Status read_backward(const RangePointer& range, ByteView begin, ByteView end, size_t wanted,
                       AddressChunk& chunk, Parts& parts, Patience& patience);
  Result<Bytes> find_last(const RangeHeader& range, ByteView begin, ByteView end, size_t wanted);
  Status confirm(const Parts& parts, const Page& page);
  // One guarded read; a range that is not as it was known is forgotten.
  Status ask(FaultPoint point, const RangeHeader& range, ReadOperation operation,
             ReadAnswer& answer);

  ObjectStore& store_;
  RangeRouter& router_;
  TransactionLog& log_;
};

}  // namespace trellis
