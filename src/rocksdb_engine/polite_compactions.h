// Nobody waits for a compaction, unless it falls so far behind that writes are slowed down: where
// cores are short it gets about a tenth of one, in small pieces. (RocksDB's own setting leaves it
// next to nothing, also while it holds what others need.)
#pragma once

#include <rocksdb/listener.h>

#include <memory>

namespace trellis {

std::shared_ptr<rocksdb::EventListener> make_polite_compactions();

}  // namespace trellis
