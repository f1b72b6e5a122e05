#include "map/scan_pages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/redis_collection.h"

namespace trellis {
namespace {

constexpr char page_mark = 'p';  // no record that is cached begins so
constexpr size_t page_bytes_max = 32 * 1024;
constexpr uint64_t passed_over_few = 16;

void append_number(Bytes& out, size_t number) {
  const auto stored = static_cast<uint32_t>(number);
  out.append(reinterpret_cast<const char*>(&stored), sizeof(stored));
}
void append_text(Bytes& out, ByteView text) {
  append_number(out, text.size());
  out.append(text);
}
ByteView take_text(ByteView& from) {
  uint32_t size = 0;
  std::memcpy(&size, from.data(), sizeof(size));
  const ByteView text = from.substr(sizeof(size), size);
  from.remove_prefix(sizeof(size) + size);
  return text;
}
bool take_flag(ByteView& from) {
  const bool flag = from[0] != 0;
  from.remove_prefix(1);
  return flag;
}

Bytes name_of(ByteView collection) {
  Bytes name;
  name.reserve(collection.size() + 1);
  name.push_back(page_mark);
  name.append(collection);
  return name;
}

// As it is stored, taken apart.
struct Memory {
  Value stored;
  ByteView head;
  ByteView tail;
  ByteView page;
};

bool recall(RecordCache& cache, ByteView name, Memory& memory) {
  if (!cache.get_page(name, memory.stored)) return false;
  memory.page = memory.stored.bytes();
  memory.head = take_text(memory.page);
  memory.tail = take_text(memory.page);
  return true;
}

void remember(RecordCache& cache, ByteView name, ByteView head, ByteView tail, ByteView page) {
  Bytes stored;
  stored.reserve(2 * sizeof(uint32_t) + head.size() + tail.size() + page.size());
  append_text(stored, head);
  append_text(stored, tail);
  stored.append(page);
  cache.put_page(name, stored);
}

Bytes described(const ScanRequest& request) {
  Bytes out;
  out.push_back(request.reverse ? 1 : 0);
  append_number(out, request.entries_max);
  append_number(out, request.bytes_max);
  append_text(out, request.begin);
  append_text(out, request.end);
  return out;
}

ScanPage replay(ByteView page, bool reverse, ScanVisitor visit) {
  ScanPage replayed;
  const bool has_resume = take_flag(page);
  const ByteView resume = take_text(page);
  while (!page.empty()) {
    const ByteView key = take_text(page);
    const ByteView value = take_text(page);
    replayed.entries++;
    if (visit(key, value) == Visit::go_on) continue;
    replayed.resume = reverse ? Bytes(key) : successor(key);
    return replayed;
  }
  if (has_resume) replayed.resume = Bytes(resume);
  return replayed;
}

// A scan of what is left between the ends of its collection, and what there is to remember of it.
class CollectionScan {
 public:
  CollectionScan(RecordCache& cache, Engine& engine, const ScanRequest& request,
                 ByteView collection)
      : cache_(cache),
        engine_(engine),
        request_(request),
        collection_(collection),
        name_(name_of(collection)),
        described_(described(request)) {}

  Result<ScanPage> run(ScanVisitor visit) {
    recall(cache_, name_, memory_);
    if (!memory_.page.empty() && memory_.page.starts_with(described_))
      return replay(memory_.page.substr(described_.size()), request_.reverse, visit);
    ScanRequest asked = request_;
    asked.begin = std::max(asked.begin, memory_.head);
    if (!memory_.tail.empty()) asked.end = std::min(asked.end, memory_.tail);
    if (asked.begin >= asked.end) return ScanPage();
    const bool keeps_page = cache_.asked_before(described_);
    TRY_ASSIGN(ScanPage page, engine_.scan(asked, [&](ByteView key, ByteView value) {
      if (first_.empty()) first_ = key;
      if (keeps_page && entries_.size() < page_bytes_max) {
        append_text(entries_, key);
        append_text(entries_, value);
      }
      return visit(key, value);
    }));
    learn(page, keeps_page && entries_.size() < page_bytes_max);
    return page;
  }

 private:
  void learn(const ScanPage& page, bool keeps_page) {
    const bool has_new_end = page.passed_over > passed_over_few && !first_.empty();
    const bool from_head = request_.begin <= std::max(memory_.head, collection_);
    const bool from_tail = request_.end == prefix_end(collection_) ||
                           (!memory_.tail.empty() && request_.end >= memory_.tail);
    const bool has_new_head = has_new_end && !request_.reverse && from_head;
    const bool has_new_tail = has_new_end && request_.reverse && from_tail;
    if (!has_new_head && !has_new_tail && !keeps_page) return;
    if (keeps_page) {
      described_.push_back(page.resume ? 1 : 0);
      append_text(described_, page.resume ? ByteView(*page.resume) : ByteView());
      described_.append(entries_);
    }
    const Bytes behind_first = successor(first_);
    remember(cache_, name_, has_new_head ? ByteView(first_) : memory_.head,
             has_new_tail ? ByteView(behind_first) : memory_.tail,
             keeps_page ? ByteView(described_) : memory_.page);
  }

  RecordCache& cache_;
  Engine& engine_;
  const ScanRequest& request_;
  const ByteView collection_;
  const Bytes name_;
  Bytes described_;
  Memory memory_;
  Bytes first_;
  Bytes entries_;
};

}  // namespace

Result<ScanPage> scan_through(RecordCache& cache, Engine& engine, const ScanRequest& request,
                              ScanVisitor visit) {
  const ByteView collection = redis_collection_of(request.begin, request.end);
  if (collection.empty()) return engine.scan(request, visit);
  return CollectionScan(cache, engine, request, collection).run(visit);
}

void collection_written(RecordCache& cache, ByteView collection, ByteView first_put,
                        ByteView last_put) {
  const Bytes name = name_of(collection);
  Memory memory;
  if (!recall(cache, name, memory)) return;
  if (memory.head.empty() && memory.tail.empty()) return cache.forget(name);
  const Bytes behind_last = successor(last_put);
  if (!first_put.empty()) {
    memory.head = std::min(memory.head, first_put);
    if (!memory.tail.empty()) memory.tail = std::max(memory.tail, ByteView(behind_last));
  }
  remember(cache, name, memory.head, memory.tail, {});
}

void forget_collection(RecordCache& cache, ByteView collection) {
  cache.forget(name_of(collection));
}

}  // namespace trellis
