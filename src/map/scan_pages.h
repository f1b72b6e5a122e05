// Pages of collections that are read whole again and again: the fields of a hash, the front of a
// list. They live in the record cache, one for each collection: a scan that was asked for twice,
// and what it found.
//
// As with records, a page is put in and read under the latch of its key, and every commit that
// writes to the collection takes it away before the latch goes.
//
//   request:  u8 reverse | u32 entries | u32 bytes | text begin | text end       (as they were
//   asked) page:     request | u8 has resume | text resume | (text key | text value)* text:     u32
//   size | bytes; all in the machine's own order, for it never leaves it
#pragma once

#include "base/bytes.h"
#include "engine/engine.h"
#include "map/record_cache.h"

namespace trellis {

// The name of the page of a collection (codec/redis_collection.h).
Bytes scan_page_name(ByteView collection);

// engine.scan, through the cache. REQUIRES: the latch of what is scanned, no own writes in it.
Result<ScanPage> scan_through(RecordCache& cache, Engine& engine, const ScanRequest& request,
                              ScanVisitor visit);

}  // namespace trellis
