#include "redis/fence_book.h"

namespace trellis {
namespace {

constexpr size_t books_bytes_max = 64 * 1024 * 1024;
// One that has marks is of use to the collector, unless its collection is no more.
constexpr uint64_t marked_idle_ms_max = 600'000;
constexpr size_t looks_max = 16;

// About: if all fences are read.
size_t book_bytes(ByteView collection, uint64_t members) {
  constexpr uint64_t members_of_fence = 64;
  constexpr size_t fence_bytes = 112;
  constexpr size_t entry_bytes = 512;
  return entry_bytes + 2 * collection.size() + members / members_of_fence * fence_bytes;
}

}  // namespace

std::shared_ptr<FenceBook> FenceBooks::get(ByteView collection, uint64_t members) {
  const std::lock_guard lock(mutex_);
  const uint64_t now_ms = clock_.unix_ms();
  if (const auto found = by_collection_.find(collection); found != by_collection_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    found->second->used_ms = now_ms;
    return found->second->book;
  }
  auto book = std::make_shared<FenceBook>();
  const size_t bytes = book_bytes(collection, members);
  if (!make_room(bytes)) return book;
  book->is_kept = true;
  entries_.push_front({Bytes(collection), book, bytes, now_ms});
  by_collection_.emplace(entries_.front().collection, entries_.begin());
  bytes_ += bytes;
  return book;
}

void FenceBooks::take(ByteView collection) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_collection_.find(collection); found != by_collection_.end())
    erase(found->second);
}

// There is always room for it: it was there before.
void FenceBooks::put(ByteView collection, std::shared_ptr<FenceBook> book, uint64_t members) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_collection_.find(collection); found != by_collection_.end())
    erase(found->second);
  const size_t bytes = book_bytes(collection, members);
  entries_.push_front({Bytes(collection), std::move(book), bytes, clock_.unix_ms()});
  by_collection_.emplace(entries_.front().collection, entries_.begin());
  bytes_ += bytes;
}

void FenceBooks::erase(Entries::iterator entry) {
  bytes_ -= entry->bytes;
  by_collection_.erase(entry->collection);
  entries_.erase(entry);
}

bool FenceBooks::make_room(size_t bytes) {
  const uint64_t now_ms = clock_.unix_ms();
  auto entry = entries_.end();
  for (size_t looks = 0; looks < looks_max && bytes_ + bytes > books_bytes_max; looks++) {
    if (entry == entries_.begin()) break;
    --entry;
    const bool is_old = entry->used_ms + marked_idle_ms_max < now_ms;
    // Somebody may have it now; what it is then told is read again by the next one.
    const bool may_go = (!entry->book->is_noted && entry->book.use_count() == 1) || is_old;
    if (!may_go) continue;
    const auto next = std::next(entry);
    erase(entry);
    entry = next;
  }
  return bytes_ + bytes <= books_bytes_max;
}

}  // namespace trellis
