#include "range/node_memory.h"

#include <sys/mman.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

namespace trellis {

namespace {

constexpr size_t node_step_bytes = 64;
constexpr size_t node_sizes = 128;  // what is larger is not worth it: its keys are
constexpr size_t chunk_bytes = size_t{2} << 20;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool keep_nodes = false;  // they must see what is freed
#else
constexpr bool keep_nodes = true;
#endif

size_t size_of(size_t bytes) { return (bytes + node_step_bytes - 1) / node_step_bytes; }

struct FreeNode {
  FreeNode* next;
};

struct NodeMemory {
  std::mutex mutex;
  std::array<FreeNode*, node_sizes> free{};
  std::vector<void*> chunks;
  char* rest = nullptr;  // of the last chunk
  size_t rest_steps = 0;

  void give(size_t size, void* node) {
    auto* const first = static_cast<FreeNode*>(node);
    first->next = free[size];
    free[size] = first;
  }

  void add_chunk() {
    if (rest_steps > 0 && rest_steps < node_sizes) give(rest_steps, rest);
    void* const chunk = std::aligned_alloc(chunk_bytes, chunk_bytes);
    if (chunk == nullptr) throw std::bad_alloc();
    madvise(chunk, chunk_bytes, MADV_HUGEPAGE);  // or not: it works without
    chunks.push_back(chunk);
    rest = static_cast<char*>(chunk);
    rest_steps = chunk_bytes / node_step_bytes;
  }
};

NodeMemory& node_memory() {
  static auto* const memory = new NodeMemory();  // references in other statics may outlive it
  return *memory;
}

}  // namespace

void* allocate_node(size_t bytes) {
  const size_t size = size_of(bytes);
  if (!keep_nodes || size >= node_sizes) return ::operator new(bytes);
  NodeMemory& memory = node_memory();
  const std::lock_guard lock(memory.mutex);
  if (FreeNode* const node = memory.free[size]) {
    memory.free[size] = node->next;
    return node;
  }
  if (memory.rest_steps < size) memory.add_chunk();
  void* const node = memory.rest;
  memory.rest += size * node_step_bytes;
  memory.rest_steps -= size;
  return node;
}

void free_node(void* node, size_t bytes) {
  const size_t size = size_of(bytes);
  if (!keep_nodes || size >= node_sizes) return ::operator delete(node);
  NodeMemory& memory = node_memory();
  const std::lock_guard lock(memory.mutex);
  memory.give(size, node);
}

}  // namespace trellis
