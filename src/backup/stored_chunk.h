// Chunks in messages.
#pragma once

#include "backup/chunk.h"

namespace trellis {

namespace stored {
class BackupChunk;
}

void store_chunk(const ChunkFacts& facts, stored::BackupChunk& out);
ChunkFacts load_chunk(const stored::BackupChunk& chunk);

}  // namespace trellis
