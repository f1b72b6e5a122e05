#include "fs/file_lister.h"

#include <algorithm>
#include <utility>

#include "fs/change.h"

namespace trellis {
namespace {

// However deep, and however few are wanted.
constexpr size_t page_entries_min = 16;

ByteView without_slashes(ByteView path) {
  return path.substr(std::min(path.find_first_not_of('/'), path.size()));
}

}  // namespace

FileLister::FileLister(std::shared_ptr<FileSystem> fs, Caller caller, ListOptions options)
    : fs_(std::move(fs)),
      caller_(std::move(caller)),
      options_(std::move(options)),
      start_after_(without_slashes(options_.start_after)) {}

Status FileLister::begin(InodeId directory, Bytes path, Bytes prefix) {
  if (prefix.empty()) {
    const bool is_root = path.empty();
    if (is_root ? options_.start_after.empty() : is_behind_start(path)) {
      first_ = {is_root ? "/" : path, {directory, FileType::directory, 0}, {}};
      if (options_.attributes) {
        auto found = fs_->stat(caller_, directory);
        if (!found && found.error().reason == "stale") return {};
        TRY(found);
        first_->attributes = *found;
        first_->entry.generation = found->generation;
      }
    }
  }
  return enter(directory, std::move(path), std::move(prefix));
}

Status FileLister::enter(InodeId directory, Bytes path, Bytes prefix) {
  Frame frame{directory, std::move(path), std::move(prefix)};
  const ByteView start = start_after_;
  ByteView behind;  // the name in this directory behind which it starts
  if (start.starts_with(frame.path))
    behind =
        start.substr(frame.path.size(), start.find('/', frame.path.size()) - frame.path.size());
  else if (start > ByteView(frame.path))
    return {};
  if (!behind.empty() && behind >= ByteView(frame.prefix))
    TRY(seek(frame, behind, true));
  else if (!frame.prefix.empty())
    TRY(seek(frame, frame.prefix, false));
  frames_.push_back(std::move(frame));
  return {};
}

// To the name `from`. If the listing starts behind it, it counts as a directory only, and so do
// those that are before it by their names, and behind it with their '/'.
Status FileLister::seek(Frame& frame, ByteView from, bool is_behind) {
  frame.after = Bytes(from);
  if (!is_behind) {
    Engine& engine = fs_->tenant().map().engine;
    TRY_ASSIGN(const auto entry, see_entry(engine, fs_->keyspace(), frame.directory, from));
    if (entry) frame.page.push_back({Bytes(from), *entry, {}});
    return add_attributes(frame.page);
  }
  for (size_t length = std::max<size_t>(frame.prefix.size(), 1); length < from.size(); length++)
    if (static_cast<unsigned char>(from[length]) < '/')
      TRY(wait_for(frame, from.substr(0, length)));
  return wait_for(frame, from);
}

Status FileLister::wait_for(Frame& frame, ByteView name) {
  if (name.size() > file_name_bytes_max || !name.starts_with(frame.prefix)) return {};
  Engine& engine = fs_->tenant().map().engine;
  TRY_ASSIGN(const auto entry, see_entry(engine, fs_->keyspace(), frame.directory, name));
  if (!entry || entry->type != FileType::directory) return {};
  std::deque<Item> one{{Bytes(name), *entry, {}}};
  TRY(add_attributes(one));
  if (!one.empty()) frame.waiting.push_back(std::move(one.front()));
  return {};
}

Status FileLister::add_attributes(std::deque<Item>& items) {
  if (!options_.attributes || items.empty()) return {};
  std::vector<InodeId> inodes;
  inodes.reserve(items.size());
  for (const Item& item : items) inodes.push_back(item.entry.inode);
  TRY_ASSIGN(auto found, fs_->stat_many(caller_, inodes));
  for (size_t i = 0; i < items.size(); i++) items[i].attributes = std::move(found[i]);
  // Removed since.
  std::erase_if(items, [](const Item& item) { return !item.attributes; });
  return {};
}

Status FileLister::load(Frame& frame) {
  const size_t depth = std::min<size_t>(frames_.size() - 1, 10);
  const size_t entries_max = std::max(options_.page_entries >> depth, page_entries_min);
  std::deque<Item> items;
  bool is_past = false;
  auto page = fs_->list(caller_, frame.directory, frame.after, entries_max,
                        [&](const DirectoryEntry& entry) {
                          is_past = !entry.name.starts_with(frame.prefix);
                          if (is_past) return Visit::stop;
                          items.push_back({Bytes(entry.name), entry.entry, {}});
                          return Visit::go_on;
                        });
  if (!page && page.error().reason == "stale") {
    frame.has_more = false;
    return {};
  }
  TRY(page);
  TRY(add_attributes(items));
  frame.page = std::move(items);
  frame.has_more = !is_past && page->resume.has_value();
  if (frame.has_more) frame.after = std::move(*page->resume);
  return {};
}

Result<std::optional<FileLister::Item>> FileLister::take(Frame& frame) {
  for (;;) {
    while (frame.page.empty() && frame.has_more) TRY(load(frame));
    if (!frame.waiting.empty() &&
        (frame.page.empty() || frame.waiting.back().key() < frame.page.front().key())) {
      std::optional<Item> item(std::move(frame.waiting.back()));
      frame.waiting.pop_back();
      return item;
    }
    if (frame.page.empty()) return std::optional<Item>();
    std::optional<Item> item(std::move(frame.page.front()));
    frame.page.pop_front();
    if (item->entry.type != FileType::directory) return item;
    frame.waiting.push_back(std::move(*item));
  }
}

Result<std::optional<ListedFile>> FileLister::next() {
  if (first_) return std::exchange(first_, std::nullopt);
  while (!frames_.empty()) {
    TRY_ASSIGN(auto item, take(frames_.back()));
    if (!item) {
      frames_.pop_back();
      continue;
    }
    const Bytes path = frames_.back().path + item->key();
    if (options_.recursive && item->entry.type == FileType::directory &&
        (is_behind_start(path) || ByteView(start_after_).starts_with(path)))
      TRY(enter(item->entry.inode, path, {}));
    if (is_behind_start(path))
      return std::optional(ListedFile{path, item->entry, std::move(item->attributes)});
  }
  return std::optional<ListedFile>();
}

}  // namespace trellis
