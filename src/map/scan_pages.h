// What is remembered of collections between transactions, in the record cache: where their records
// begin and end, and a page that is read again and again (the fields of a hash, the front of a
// list).
//
// Who pops from one end of a sorted set leaves tombstones there, and the next one would have to
// pass over all of them. A page is what a scan found that was asked for twice.
//
// As with records, it is put in and read under the latch of the key, and every commit that writes
// to the collection changes it before the latch goes: ends move out to what was put, the page goes.
//
//   memory:   text head | text tail | page
//             no record before head, none from tail on; empty: not known
//   page:     request | u8 has resume | text resume | (text key | text value)*; empty: none
//   request:  u8 reverse | u32 entries | u32 bytes | text begin | text end
//   text:     u32 size | bytes; all in the machine's own order, for it never leaves it
#pragma once

#include "base/bytes.h"
#include "engine/engine.h"
#include "map/record_cache.h"

namespace trellis {

// engine.scan, through the cache. REQUIRES: the latch of what is scanned, no own writes in it.
Result<ScanPage> scan_through(RecordCache& cache, Engine& engine, const ScanRequest& request,
                              ScanVisitor visit);

// Records of the collection (codec/redis_collection.h) were written; the first and the last that
// were put, empty if none was. REQUIRES: the latch, exclusive.
void collection_written(RecordCache& cache, ByteView collection, ByteView first_put,
                        ByteView last_put);
void forget_collection(RecordCache& cache, ByteView collection);

}  // namespace trellis
