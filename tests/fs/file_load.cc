#include "fs/file_load.h"

#include <fmt/format.h>

#include <vector>

#include "base/random.h"
#include "codec/fs_keys.h"
#include "codec/system_keys.h"
#include "fs/fsck.h"
#include "support/make_keyspace.h"
#include "tenant/collector.h"
#include "tenant/keyspaces.h"

namespace trellis {
namespace {

constexpr uint64_t steps_of_a_file = 6;
constexpr uint64_t files_kept = 8;
constexpr uint64_t patch_offset = 70'000;
constexpr uint64_t patch_bytes = 4'096;

enum Step : uint64_t { to_make, to_write, to_overwrite, to_rename, to_append, to_remove_old };

// Large ones and small ones, so that some are never in blocks.
uint64_t bytes_of(uint64_t file) { return file % 3 == 0 ? 1'000 : 100'000 + file % 7 * 30'000; }
Bytes content_of(size_t lane, uint64_t file, Step step, uint64_t bytes) {
  return Random(lane * 1'000'000 + file * 10 + step).bytes(bytes);
}
std::string new_name(uint64_t file) { return fmt::format("new-{}", file); }
std::string name_of_file(uint64_t file) { return fmt::format("file-{}", file); }

// Of a lane after so many steps.
std::map<std::string, std::string> expected(size_t lane, uint64_t steps) {
  std::map<std::string, std::string> files;
  const uint64_t last = steps / steps_of_a_file;
  for (uint64_t file = last < files_kept ? 0 : last - files_kept; file <= last; file++) {
    const uint64_t done = file == last ? steps % steps_of_a_file : steps_of_a_file;
    if (done <= to_make) continue;
    std::string content = content_of(lane, file, to_make, 100);
    if (done > to_write) content = content_of(lane, file, to_write, bytes_of(file));
    if (done > to_overwrite && content.size() > patch_offset)
      content.replace(patch_offset, patch_bytes, content_of(lane, file, to_overwrite, patch_bytes));
    if (done > to_append) content += content_of(lane, file, to_append, 10'000);
    files[done > to_rename ? name_of_file(file) : new_name(file)] = std::move(content);
  }
  return files;
}

Error corrupt(std::string what) { return {Code::corrupt, std::move(what)}; }

}  // namespace

Result<std::unique_ptr<FileLoad>> FileLoad::open(Engine& engine, Clock& clock,
                                                 Durability durability) {
  Value stored;
  TRY(engine.get(encode(KeyspaceMetaKey{id}), stored));
  if (!stored.found()) TRY(make_keyspace(engine, id, "files"));
  std::unique_ptr<FileLoad> load(new FileLoad(engine, clock, durability));
  TRY_ASSIGN(load->fs_, FileSystem::open(std::make_shared<Tenant>(load->map_, id)));
  for (size_t lane = 0; lane < lanes; lane++) {
    const std::string name = fmt::format("lane{}", lane);
    auto found = load->fs_->lookup(load->caller_, root_inode, name);
    if (!found && found.error().reason == "no_entry")
      found = load->fs_->make(load->caller_, root_inode, name, {.type = FileType::directory});
    TRY(found);
    load->directories_[lane] = found->inode;
  }
  return load;
}

Result<InodeId> FileLoad::find(size_t lane, const std::string& name) {
  TRY_ASSIGN(const FileAttributes found, fs_->lookup(caller_, directories_[lane], name));
  return found.inode;
}

Status FileLoad::step(size_t lane, uint64_t number) {
  const uint64_t file = number / steps_of_a_file;
  const InodeId directory = directories_[lane];
  switch (static_cast<Step>(number % steps_of_a_file)) {
    case to_make:
      TRY(fs_->make(caller_, directory, new_name(file),
                    {.content = content_of(lane, file, to_make, 100)}));
      return {};
    case to_write: {
      TRY_ASSIGN(const InodeId inode, find(lane, new_name(file)));
      return fs_->write(caller_, inode, 0, content_of(lane, file, to_write, bytes_of(file)));
    }
    case to_overwrite: {
      TRY_ASSIGN(const InodeId inode, find(lane, new_name(file)));
      if (bytes_of(file) < patch_offset) return {};
      return fs_->write(caller_, inode, patch_offset,
                        content_of(lane, file, to_overwrite, patch_bytes));
    }
    case to_rename:
      return fs_->rename(caller_, directory, new_name(file), directory, name_of_file(file));
    case to_append: {
      TRY_ASSIGN(const InodeId inode, find(lane, name_of_file(file)));
      TRY(fs_->append(caller_, inode, content_of(lane, file, to_append, 10'000)));
      return {};
    }
    case to_remove_old:
      if (file < files_kept) return {};
      return fs_->unlink(caller_, directory, name_of_file(file - files_kept));
  }
  return {};
}

Status FileLoad::run_lane(size_t lane, uint64_t from, const std::function<void(uint64_t)>& done) {
  for (uint64_t number = from;; number++) {
    TRY(step(lane, number));
    done(number + 1);
  }
}

Status FileLoad::run_collector(const std::atomic<bool>& enough) {
  Bytes prefix = encode(FsSuperblockKey{id}).substr(0, 4);
  prefix += 'g';
  while (!enough) {
    std::vector<Garbage> notes;
    TRY(engine_.scan({.begin = prefix, .end = prefix_end(prefix), .entries_max = 100},
                     [&](ByteView key, ByteView value) {
                       const auto note = decode<GarbageKey>(key);
                       if (note && note->due_ms <= map_.clock.unix_ms())
                         notes.push_back({note->due_ms, Bytes(note->target), note->model,
                                          decode_garbage_value(value).value_or(0)});
                       return Visit::go_on;
                     }));
    for (const Garbage& note : notes) TRY(fs_->collect({&note, 1}));
    if (notes.empty()) map_.clock.pause_us(1'000);
  }
  return {};
}

Result<std::map<std::string, std::string>> FileLoad::files(size_t lane) {
  std::map<std::string, std::string> found;
  std::vector<std::pair<std::string, InodeId>> entries;
  std::optional<Bytes> after = Bytes();
  while (after) {
    TRY_ASSIGN(DirectoryPage page, fs_->list(caller_, directories_[lane], *after, 100,
                                             [&](const DirectoryEntry& entry) {
                                               entries.emplace_back(entry.name, entry.entry.inode);
                                               return Visit::go_on;
                                             }));
    after = std::move(page.resume);
  }
  for (const auto& [name, inode] : entries) {
    TRY_ASSIGN(const FileAttributes stat, fs_->stat(caller_, inode));
    std::string content(stat.size, '\0');
    for (size_t done = 0; done < content.size();) {
      TRY_ASSIGN(const size_t part,
                 fs_->read(caller_, inode, done, {content.data() + done, content.size() - done}));
      if (part == 0) return corrupt(fmt::format("{} is shorter than it says", name));
      done += part;
    }
    found[name] = std::move(content);
  }
  return found;
}

Result<uint64_t> FileLoad::position(size_t lane, uint64_t least, uint64_t most) {
  TRY_ASSIGN(const auto found, files(lane));
  for (uint64_t steps = most;; steps--) {
    if (found == expected(lane, steps)) return steps;
    if (steps == least) break;
  }
  std::string names;
  for (const auto& [name, content] : found) names += fmt::format(" {}:{}", name, content.size());
  return corrupt(
      fmt::format("lane {} is not as {} to {} steps leave it:{}", lane, least, most, names));
}

Status FileLoad::check() {
  std::string wrong;
  JobControl control;
  TRY_ASSIGN(const FsckReport report,
             fsck(*fs_, caller_, {.offline = true}, control, [&](const FsckFinding& found) {
               if (found.kind != FsckKind::block_unused)
                 wrong += fmt::format("{} inode {}: {}\n", to_string(found.kind), found.inode.value,
                                      found.what);
             }));
  if (!report.clean()) return corrupt(wrong);
  TRY_ASSIGN(const Figures stored, stored_figures(engine_, id));
  TRY_ASSIGN(const Figures right, recount(engine_, id));
  return stored == right ? Status() : corrupt("the counters differ from a recount");
}

}  // namespace trellis
