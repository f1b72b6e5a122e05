#include "cluster_engine/range_steps.h"

#include <algorithm>
#include <array>

namespace trellis {
namespace {

constexpr EntryKind addressed_kinds[] = {EntryKind::payload, EntryKind::version, EntryKind::intent};

constexpr size_t entries_at_first = 16;  // values may be large

size_t set_bytes(const ObjectChange& change) {
  const auto& set = std::get<OmapSet>(change);
  return set.key.size() + set.value.size();
}

class EntryCopier {
 public:
  EntryCopier(ObjectStore& store, const EntryCopy& copy, const RangeChangeOptions& options)
      : store_(store), copy_(copy), options_(options) {}

  Status run() {
    for (size_t i = 0; i < cursors_.size(); ++i)
      cursors_[i] = {addressed_kinds[i], entry_key(addressed_kinds[i], copy_.begin), true, false};
    while (std::ranges::any_of(cursors_, [](const Cursor& cursor) { return !cursor.done; })) {
      std::vector<ObjectChange> page;
      TRY(read_page(page));
      fit_pages(page);
      TRY(write_page(page));
    }
    return {};
  }

 private:
  struct Cursor {
    EntryKind kind{};
    Bytes after;  // the last key that was read
    bool first = false;
    bool done = false;
  };

  Status read_page(std::vector<ObjectChange>& page) {
    ReadOperation operation{.guards = {generation_is(copy_.source)}};
    for (const Cursor& cursor : cursors_) {
      if (cursor.done) continue;
      if (cursor.first) operation.omap_keys.push_back(cursor.after);
      operation.omap_pages.push_back({.start_after = cursor.after,
                                      .prefix = entry_key(cursor.kind, {}),
                                      .entries_max = entries_});
    }
    const Bytes object = range_object_name(copy_.source.id);
    ReadAnswer answer;
    TRY(object_status(store_.read(copy_.read_point, object, operation, answer), object));
    for (const auto& [key, value] : answer.omap) page.emplace_back(OmapSet{key, value});
    size_t next = 0;
    for (Cursor& cursor : cursors_) {
      if (cursor.done) continue;
      take(cursor, answer.pages[next++], page);
    }
    return {};
  }

  void take(Cursor& cursor, OmapPage& read, std::vector<ObjectChange>& page) const {
    cursor.first = false;
    cursor.done = !read.more;
    for (auto& [key, value] : read.entries) {
      if (ByteView(key).substr(1) >= copy_.end) {
        cursor.done = true;
        break;
      }
      cursor.after = key;
      page.emplace_back(OmapSet{std::move(key), std::move(value)});
    }
  }

  // A read is limited by a number of entries: as many as fill a page if they are as large as those
  // before them, so that memory stays in the order of one, whatever the range holds.
  void fit_pages(const std::vector<ObjectChange>& page) {
    size_t bytes = 0;
    for (const ObjectChange& change : page) bytes += set_bytes(change);
    const size_t fitting = entries_ * options_.page_bytes / std::max<size_t>(bytes, 1);
    const size_t most = std::min(2 * entries_, options_.page_entries);
    entries_ = std::clamp<size_t>(fitting, 1, most);
  }

  Status write_page(std::vector<ObjectChange>& page) {
    const Bytes object = range_object_name(copy_.target.id);
    for (size_t begin = 0; begin < page.size();) {
      WriteOperation operation{.guards = {generation_is(copy_.target)}};
      size_t bytes = 0;
      for (; begin < page.size() && (bytes == 0 || bytes < options_.page_bytes); ++begin) {
        bytes += set_bytes(page[begin]);
        operation.changes.push_back(std::move(page[begin]));
      }
      operation.changes.emplace_back(SetAttribute{"step", std::to_string(++step_)});
      TRY(object_status(store_.write(copy_.write_point, object, operation), object));
    }
    return {};
  }

  ObjectStore& store_;
  const EntryCopy& copy_;
  const RangeChangeOptions& options_;
  std::array<Cursor, std::size(addressed_kinds)> cursors_;
  size_t entries_ = std::min(entries_at_first, options_.page_entries);
  uint64_t step_ = copy_.step;
};

Bytes state_text(const RangeHeader& header) {
  for (const ObjectChange& change : header_changes(header))
    if (const auto& set = std::get<SetAttribute>(change); set.name == "st") return set.value;
  return {};
}

}  // namespace

Status change_header(ObjectStore& store, FaultPoint point, const RangeHeader& from,
                     const RangeHeader& to, std::vector<ObjectChange> more) {
  WriteOperation operation{.guards = {generation_is(from), AttributeIs{"st", state_text(from)}},
                           .changes = header_changes(to)};
  for (ObjectChange& change : more) operation.changes.push_back(std::move(change));
  const Bytes object = range_object_name(from.id);
  return object_status(store.write(point, object, operation), object);
}

std::vector<ObjectChange> remove_entries_from(ByteView from) {
  std::vector<ObjectChange> changes;
  for (const EntryKind kind : addressed_kinds)
    changes.emplace_back(OmapRemoveRange{entry_key(kind, from), prefix_end(entry_key(kind, {}))});
  return changes;
}

Status end_change(ObjectStore& store, const RangeHeader& marked, const Status& failed,
                  FunctionRef<bool(const RangeHeader& now)> is_done) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Result<RangeHeader> now = read_header(store, "change.look", marked.id);
    if (!now.has_value()) continue;
    // If somebody has undone it, the range may be a part of what others are about to do.
    const bool is_own = now->state == marked.state && now->generation == marked.generation;
    const bool is_decided = now->state == RangeState::unsplit || now->state == RangeState::halved ||
                            now->state == RangeState::unmerge || now->state == RangeState::merged;
    if ((!is_own && !is_decided) || settle_seen(store, *now).has_value()) break;
  }
  const Result<RangeHeader> header = read_header(store, "change.look", marked.id);
  if (header.has_value() && is_done(*header)) return {};
  return failed;
}

Status copy_entries(ObjectStore& store, const EntryCopy& copy, const RangeChangeOptions& options) {
  return EntryCopier(store, copy, options).run();
}

}  // namespace trellis
