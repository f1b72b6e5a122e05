// Memory for the nodes of caches, in huge pages where the system has them: a lookup among a million
// ranges goes to places far apart, and half of what that costs is finding the pages.
//
// Freed memory is kept for nodes of the same size (in steps of 64 bytes); what a process once used
// for nodes it keeps. References to ranges outlive their cache, so this is of the process.
//
// Threads: any.
#pragma once

#include <cstddef>

namespace trellis {

void* allocate_node(size_t bytes);
void free_node(void* node, size_t bytes);

}  // namespace trellis
