#include "fs/files.h"

#include <utility>

#include "fs/change.h"

namespace trellis {
namespace {

Status check_conditions(const FileMetadata& found, const ReadConditions& conditions) {
  const auto is = [&](const std::string& tag) { return tag == "*" || tag == found.etag(); };
  if (!conditions.if_match.empty() && !is(conditions.if_match))
    return fs_error::condition_failed("the file has another ETag");
  if (!conditions.if_none_match.empty() && is(conditions.if_none_match))
    return fs_error::condition_failed("the file has that ETag");
  const int64_t modified_ns = found.attributes.modified_ns;
  if (conditions.if_modified_since_ns && modified_ns <= *conditions.if_modified_since_ns)
    return fs_error::condition_failed("the file was not modified since");
  if (conditions.if_unmodified_since_ns && modified_ns > *conditions.if_unmodified_since_ns)
    return fs_error::condition_failed("the file was modified since");
  return {};
}

}  // namespace

std::string FileMetadata::etag() const {
  // By the time, too: after a restore the versions since the backup are counted anew.
  return fmt::format("{:x}-{:x}-{:x}-{:x}", attributes.generation, attributes.inode.value,
                     attributes.version, attributes.changed_ns);
}

Result<FileMetadata> load_metadata(FileSystem& fs, const Caller& caller, InodeId inode) {
  FileMetadata found;
  TRY_ASSIGN(found.attributes, fs.stat(caller, inode));
  if (found.attributes.type != FileType::regular) return found;
  TRY_ASSIGN(const auto stored, fs.hidden_xattr(caller, inode, headers_attribute));
  if (stored) {
    TRY_ASSIGN(found.headers, decode_headers(*stored));
  }
  return found;
}

// --- stat, read ---

Result<FileMetadata> Files::find(const Caller& caller, const FilePath& path, bool follow) {
  for (unsigned attempt = 1;; attempt++) {
    const auto once = [&]() -> Result<FileMetadata> {
      TRY_ASSIGN(const PathEnd end, walk_path(fs(), caller, path, {.follow = follow}));
      if (!end.entry || (path.is_directory && end.entry->type != FileType::directory))
        return fs_error::no_entry(path.text());
      return load_metadata(fs(), caller, end.entry->inode);
    };
    auto found = once();
    if (found || !is_overtaken(found.error()) || attempt == path_attempts_max) return found;
  }
}

Result<FileMetadata> Files::stat(const Caller& caller, ByteView path, const StatOptions& options) {
  TRY_ASSIGN(const FilePath parsed, parse_path(path));
  TRY_ASSIGN(FileMetadata found, find(caller, parsed, options.follow || parsed.is_directory));
  TRY(check_conditions(found, options.conditions));
  return found;
}

Result<bool> Files::exists(const Caller& caller, ByteView path) {
  const auto found = stat(caller, path);
  if (found) return true;
  if (found.error().code == Code::not_found) return false;
  return found.error();
}

Result<FileReader> Files::reader(const Caller& caller, ByteView path, const ReadOptions& options) {
  TRY_ASSIGN(const FilePath parsed, parse_path(path));
  if (parsed.is_directory) return fs_error::is_a_directory(quote(path));
  for (unsigned attempt = 1;; attempt++) {
    TRY_ASSIGN(FileMetadata found, find(caller, parsed, true));
    if (found.is_directory()) return fs_error::is_a_directory(quote(path));
    if (found.attributes.type != FileType::regular) return fs_error::not_a_file(quote(path));
    TRY(check_conditions(found, options.conditions));
    FileReader reader(client_, caller, std::move(found));
    const Status opened = reader.open(options);
    if (opened) return reader;
    const bool again = is_overtaken(opened.error()) || opened.error().reason == "changed_meanwhile";
    if (!again || attempt == path_attempts_max) return opened.error();
  }
}

Result<Bytes> Files::read(const Caller& caller, ByteView path, const ReadOptions& options) {
  TRY_ASSIGN(FileReader opened, reader(caller, path, options));
  const uint64_t size = opened.end() - opened.begin();
  if (size > file_read_bytes_max)
    return Error{Code::too_large, "this is more than 256 MiB: read it piece by piece",
                 "read_too_large"};
  Bytes content(size, '\0');
  for (size_t got = 0; got < size;) {
    TRY_ASSIGN(const size_t part, opened.read({content.data() + got, size - got}));
    got += part;
  }
  return content;
}

// --- directories, removal ---

Status Files::create_dir(const Caller& caller, ByteView path) {
  TRY_ASSIGN(FilePath parsed, parse_path(path));
  if (!parsed.is_directory) return fs_error::not_a_directory(quote(path));
  if (parsed.is_root()) return {};
  parsed.names.emplace_back(".");  // all names before it are those of directories
  for (unsigned attempt = 1;; attempt++) {
    const auto made = walk_path(fs(), caller, parsed, {.make_parents = true});
    if (made) return {};
    if (!is_overtaken(made.error()) || attempt == path_attempts_max) return made.error();
  }
}

Status Files::remove_entry(const Caller& caller, InodeId directory, ByteView name,
                           const FsEntry& entry, bool with_all, const ExpectedFile& expected) {
  if (entry.type == FileType::directory && !with_all)
    return fs().remove_directory(caller, directory, name);
  Status removed = fs().move_to_trash(caller, directory, name, expected);
  // What is full has no room for the trash, and must be made room in. Who asks too often is not
  // full, and an empty directory needs no room.
  if (!removed && removed.error().reason != "rate_exceeded" &&
      (removed.error().code == Code::exhausted || removed.error().code == Code::no_space))
    removed = fs().remove_tree(caller, directory, name, expected);
  return removed;
}

Result<std::optional<uint64_t>> Files::match_version(const Caller& caller, InodeId inode,
                                                     const std::string& if_match) {
  if (if_match.empty() || if_match == "*") return std::optional<uint64_t>();
  FileMetadata found;
  TRY_ASSIGN(found.attributes, fs().stat(caller, inode));
  if (if_match != found.etag()) return fs_error::condition_failed("the file has another ETag");
  return std::optional<uint64_t>(found.attributes.version);
}

Status Files::remove_once(const Caller& caller, const FilePath& path,
                          const RemoveOptions& options) {
  TRY_ASSIGN(const PathEnd end, walk_path(fs(), caller, path, {.follow = false}));
  if (!end.entry || (path.is_directory && end.entry->type != FileType::directory)) {
    if (options.if_match.empty()) return {};
    return fs_error::condition_failed("the file must be there, and is not");
  }
  if (end.entry->type == FileType::directory && !options.if_match.empty())
    return fs_error::is_a_directory(quote(path.text()));
  TRY_ASSIGN(const auto version, match_version(caller, end.entry->inode, options.if_match));
  // What was seen, not what has its name by now: that may be a directory, which is not to go so.
  Status removed = remove_entry(caller, end.directory, end.name, *end.entry, false,
                                {.inode = end.entry->inode, .version = version});
  if (!removed && removed.error().reason == "condition_failed")
    return fs_error::changed_meanwhile(quote(path.text()));
  return removed;
}

Status Files::remove(const Caller& caller, ByteView path, const RemoveOptions& options) {
  TRY_ASSIGN(const FilePath parsed, parse_path(path));
  if (parsed.is_root()) return fs_error::not_permitted("the root stays: remove what is in it");
  for (unsigned attempt = 1;; attempt++) {
    Status removed = remove_once(caller, parsed, options);
    if (removed) return {};
    const bool is_gone = removed.error().reason == "no_entry" || is_overtaken(removed.error());
    if (is_gone && options.if_match.empty()) return {};
    // Whether the condition holds is looked at anew.
    const bool again = is_gone || removed.error().reason == "changed_meanwhile";
    if (!again || attempt == path_attempts_max) return removed;
  }
}

Status Files::remove_all(const Caller& caller, ByteView path) {
  TRY_ASSIGN(const FilePath parsed, parse_path(path));
  if (parsed.is_directory && !parsed.is_root()) {
    TRY_ASSIGN(const PathEnd end, walk_path(fs(), caller, parsed, {.follow = false}));
    if (!end.entry || end.entry->type != FileType::directory) return {};
    const Status removed = remove_entry(caller, end.directory, end.name, *end.entry, true, {});
    return removed || removed.error().code == Code::not_found ? Status() : removed;
  }
  FilePath parent = parsed;
  parent.is_directory = true;
  if (!parsed.is_root()) parent.names.pop_back();
  TRY_ASSIGN(const PathEnd end, walk_path(fs(), caller, parent, {}));
  if (!end.entry || end.entry->type != FileType::directory) return {};
  const Bytes before = parent.is_root() ? Bytes() : parent.text();
  TRY_ASSIGN(FileLister listed, lister(caller, path));
  for (;;) {
    TRY_ASSIGN(const auto found, listed.next());
    if (!found) return {};
    if (found->entry.inode == root_inode) continue;
    ByteView name = found->path;
    name.remove_prefix(before.size());
    if (name.ends_with('/')) name.remove_suffix(1);
    const Status removed = remove_entry(caller, end.entry->inode, name, found->entry, true, {});
    if (!removed && removed.error().code != Code::not_found) return removed;
  }
}

Result<FileLister> Files::lister(const Caller& caller, ByteView path, ListOptions options) {
  TRY_ASSIGN(FilePath parsed, parse_path(path));
  Bytes prefix;
  if (!parsed.is_directory) {
    prefix = std::move(parsed.names.back());
    parsed.names.pop_back();
    parsed.is_directory = true;
  }
  FileLister lister(client_->shared_fs(), caller, std::move(options));
  TRY_ASSIGN(const PathEnd end, walk_path(fs(), caller, parsed, {}));
  if (!end.entry || end.entry->type != FileType::directory) return lister;
  TRY(lister.begin(end.entry->inode, parsed.is_root() ? Bytes() : parsed.text(),
                   std::move(prefix)));
  return lister;
}

// --- rename ---

Status Files::rename(const Caller& caller, ByteView from, ByteView to,
                     const RenameOptions& options) {
  TRY_ASSIGN(const FilePath source, parse_path(from));
  TRY_ASSIGN(const FilePath target, parse_path(to));
  if (source.is_directory != target.is_directory)
    return fs_error::is_spelled_as_file(source.is_directory ? from : to);
  if (source.is_root() || target.is_root())
    return fs_error::not_permitted("the root has no other name");
  for (unsigned attempt = 1;; attempt++) {
    Status renamed = rename_once(caller, source, target, options);
    if (renamed || !is_overtaken(renamed.error()) || attempt == path_attempts_max) return renamed;
  }
}

Status Files::rename_once(const Caller& caller, const FilePath& source, const FilePath& target,
                          const RenameOptions& options) {
  TRY_ASSIGN(const PathEnd from, walk_path(fs(), caller, source, {.follow = false}));
  const bool is_directory = from.entry && from.entry->type == FileType::directory;
  if (!from.entry || (source.is_directory && !is_directory))
    return fs_error::no_entry(source.text());
  if (is_directory && !source.is_directory) return fs_error::is_spelled_as_file(source.text());
  TRY_ASSIGN(const PathEnd to,
             walk_path(fs(), caller, target, {.follow = false, .make_parents = true}));
  if (to.entry && to.entry->inode == from.entry->inode)
    return fs_error::is_same_file(quote(source.text()));
  Status renamed =
      fs().rename(caller, from.directory, from.name, to.directory, to.name,
                  options.if_not_exists ? RenameMode::no_replace : RenameMode::replace);
  if (!renamed && renamed.error().reason == "exists")
    return fs_error::condition_failed("the target is there already");
  return renamed;
}

}  // namespace trellis
