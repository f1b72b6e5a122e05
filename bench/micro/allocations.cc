#include "allocations.h"

#include <cstdlib>
#include <new>

namespace {

constinit thread_local uint64_t allocations = 0;

void* allocate(size_t size) {
  allocations++;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

void* allocate(size_t size, std::align_val_t alignment) {
  allocations++;
  const size_t step = static_cast<size_t>(alignment);
  // aligned_alloc wants a multiple of the alignment.
  if (void* memory = std::aligned_alloc(step, (size + step - 1) / step * step)) return memory;
  throw std::bad_alloc();
}

}  // namespace

namespace trellis {

uint64_t allocations_of_this_thread() { return allocations; }

}  // namespace trellis

// The forms that are not here (arrays, nothrow) are made of these by the standard library.
void* operator new(size_t size) { return allocate(size); }
void* operator new(size_t size, std::align_val_t alignment) { return allocate(size, alignment); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
