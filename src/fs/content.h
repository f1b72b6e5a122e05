// Content of files within a change.
#pragma once

#include "fs/change.h"

namespace trellis {

// What set_size needs, the inode aside. `seen` may be outdated.
Status plan_set_size(FsPlan& plan, InodeId inode, const FsInode& seen, uint64_t size);
Status set_size(FsChange& change, InodeId inode, FsInode& file, uint64_t size);

}  // namespace trellis
