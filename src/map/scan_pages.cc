#include "map/scan_pages.h"

#include <cstring>
#include <utility>

#include "codec/redis_collection.h"

namespace trellis {
namespace {

constexpr char page_mark = 'p';  // no record that is cached begins so
constexpr size_t page_bytes_max = 32 * 1024;
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

}  // namespace

Bytes scan_page_name(ByteView collection) {
  Bytes name;
  name.reserve(collection.size() + 1);
  name.push_back(page_mark);
  name.append(collection);
  return name;
}

Result<ScanPage> scan_through(RecordCache& cache, Engine& engine, const ScanRequest& request,
                              ScanVisitor visit) {
  const ByteView collection = redis_collection_of(request.begin, request.end);
  if (collection.empty()) return engine.scan(request, visit);
  const Bytes name = scan_page_name(collection);
  Bytes kept = described(request);
  Value known;
  if (cache.get_page(name, known) && known.bytes().starts_with(kept))
    return replay(known.bytes().substr(kept.size()), request.reverse, visit);
  if (!cache.asked_before(kept)) return engine.scan(request, visit);
  Bytes entries;
  TRY_ASSIGN(ScanPage page, engine.scan(request, [&](ByteView key, ByteView value) {
    if (entries.size() < page_bytes_max) {
      append_text(entries, key);
      append_text(entries, value);
    }
    return visit(key, value);
  }));
  if (entries.size() >= page_bytes_max) return page;
  kept.push_back(page.resume ? 1 : 0);
  append_text(kept, page.resume ? ByteView(*page.resume) : ByteView());
  kept.append(entries);
  cache.put_page(name, kept);
  return page;
}

}  // namespace trellis
