#include "support/power_loss_file_system.h"

#include <algorithm>
#include <cstring>

namespace trellis {

using rocksdb::IOStatus;

namespace {

constexpr size_t page_bytes = 4096;

// RocksDB writes "folder//file" and "folder/" too.
std::string clean(const std::string& path) {
  std::string out;
  for (const char c : path) {
    if (c != '/' || out.empty() || out.back() != '/') out.push_back(c);
  }
  if (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool is_root(const std::string& path) { return path == "/" || path == "."; }

bool below(const std::string& path, const std::string& folder) {
  const std::string prefix = is_root(folder) ? folder.substr(0, folder == "/") : folder + "/";
  return path.size() > prefix.size() && path.compare(0, prefix.size(), prefix) == 0;
}

IOStatus no_such(const std::string& path) {
  return IOStatus::PathNotFound(path, "No such file or directory");
}

}  // namespace

// The open files. Each holds its node, so a deleted file can be read on.

class PowerLossSequentialFile final : public rocksdb::FSSequentialFile {
 public:
  PowerLossSequentialFile(PowerLossFileSystem& files,
                          std::shared_ptr<const PowerLossFileSystem::Node> node,
                          uint64_t generation)
      : files_(files), node_(std::move(node)), generation_(generation) {}
  IOStatus Read(size_t size, const rocksdb::IOOptions&, rocksdb::Slice* result, char* scratch,
                rocksdb::IODebugContext*) override {
    IOStatus status = files_.read(*node_, generation_, offset_, size, result, scratch);
    if (status.ok()) offset_ += result->size();
    return status;
  }
  IOStatus Skip(uint64_t size) override {
    offset_ += size;
    return IOStatus::OK();
  }

 private:
  PowerLossFileSystem& files_;
  const std::shared_ptr<const PowerLossFileSystem::Node> node_;
  const uint64_t generation_;
  uint64_t offset_ = 0;
};

class PowerLossRandomAccessFile final : public rocksdb::FSRandomAccessFile {
 public:
  PowerLossRandomAccessFile(PowerLossFileSystem& files,
                            std::shared_ptr<const PowerLossFileSystem::Node> node,
                            uint64_t generation)
      : files_(files), node_(std::move(node)), generation_(generation) {}
  IOStatus Read(uint64_t offset, size_t size, const rocksdb::IOOptions&, rocksdb::Slice* result,
                char* scratch, rocksdb::IODebugContext*) const override {
    if (files_.read_hook_) files_.read_hook_();
    return files_.read(*node_, generation_, offset, size, result, scratch);
  }

 private:
  PowerLossFileSystem& files_;
  const std::shared_ptr<const PowerLossFileSystem::Node> node_;
  const uint64_t generation_;
};

class PowerLossWritableFile final : public rocksdb::FSWritableFile {
 public:
  PowerLossWritableFile(PowerLossFileSystem& files, std::string path,
                        std::shared_ptr<PowerLossFileSystem::Node> node, uint64_t generation)
      : files_(files), path_(std::move(path)), node_(std::move(node)), generation_(generation) {}
  using rocksdb::FSWritableFile::Append;
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions&,
                  rocksdb::IODebugContext*) override {
    return files_.append(path_, *node_, generation_, data.ToString());
  }
  IOStatus Sync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return files_.sync(path_, *node_, generation_);
  }
  IOStatus Flush(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus Close(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    const std::lock_guard lock(files_.mutex_);
    return files_.check_handle(generation_);
  }
  uint64_t GetFileSize(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    const std::lock_guard lock(files_.mutex_);
    return node_->data.size();
  }
  bool IsSyncThreadSafe() const override { return true; }

 private:
  PowerLossFileSystem& files_;
  const std::string path_;
  const std::shared_ptr<PowerLossFileSystem::Node> node_;
  const uint64_t generation_;
};

class PowerLossDirectory final : public rocksdb::FSDirectory {
 public:
  PowerLossDirectory(PowerLossFileSystem& files, std::string path, uint64_t generation)
      : files_(files), path_(std::move(path)), generation_(generation) {}
  IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return files_.sync_folder(path_, generation_);
  }

 private:
  PowerLossFileSystem& files_;
  const std::string path_;
  const uint64_t generation_;
};

struct PowerLossFileSystem::Lock final : rocksdb::FileLock {
  std::string path;
  uint64_t generation;
};

// Power

void PowerLossFileSystem::cut_power(Random& random) {
  const std::lock_guard lock(mutex_);
  powered_ = false;
  const size_t kept = random.below(unsynced_.size() + 1);
  for (size_t i = 0; i < kept; i++) apply(unsynced_[i], durable_);
  unsynced_.clear();
  std::map<std::shared_ptr<Node>, std::shared_ptr<Node>> survivors;
  Names left;
  for (const auto& [path, node] : durable_) {
    // A file whose folder was not synced is nowhere. Folders sort before what is in them.
    if (!is_root(folder_of(path)) && !left.contains(folder_of(path))) continue;
    std::shared_ptr<Node>& survived = survivors[node];
    if (survived == nullptr) survived = survivor(*node, random);
    left[path] = survived;
  }
  durable_ = left;
  live_ = std::move(left);
}

void PowerLossFileSystem::restore_power() {
  const std::lock_guard lock(mutex_);
  powered_ = true;
  generation_++;
  locked_.clear();
}

std::shared_ptr<PowerLossFileSystem::Node> PowerLossFileSystem::survivor(const Node& node,
                                                                         Random& random) {
  auto left = std::make_shared<Node>();
  left->folder = node.folder;
  left->data = node.data.substr(0, node.synced_bytes);
  const uint64_t keep_of_8 = random.below(9);  // from nothing to all, so that both happen
  for (size_t at = node.synced_bytes; at < node.data.size();) {
    const size_t end = std::min(node.data.size(), (at / page_bytes + 1) * page_bytes);
    if (random.below(8) < keep_of_8) {
      left->data.resize(at, '\0');
      left->data.append(node.data, at, end - at);
    }
    at = end;
  }
  if (left->data.size() > node.synced_bytes && random.one_in(2)) {
    const size_t last_page =
        std::max(node.synced_bytes, (left->data.size() - 1) / page_bytes * page_bytes);
    left->data.resize(last_page + random.below(left->data.size() - last_page + 1));
  }
  left->synced_bytes = left->data.size();
  return left;
}

void PowerLossFileSystem::set_capacity(std::optional<uint64_t> bytes) {
  const std::lock_guard lock(mutex_);
  capacity_ = bytes;
}

// For tests that damage files

std::vector<std::string> PowerLossFileSystem::files(const std::string& folder) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [path, node] : live_) {
    if (!node->folder && below(path, clean(folder))) out.push_back(path);
  }
  return out;
}

std::string PowerLossFileSystem::read_file(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return live_.at(clean(path))->data;
}

void PowerLossFileSystem::replace_file(const std::string& path, std::string content) {
  const std::lock_guard lock(mutex_);
  auto node = std::make_shared<Node>();
  node->synced_bytes = content.size();
  node->data = std::move(content);
  live_[clean(path)] = node;
  durable_[clean(path)] = node;
}

void PowerLossFileSystem::remove_file(const std::string& path) {
  const std::lock_guard lock(mutex_);
  live_.erase(clean(path));
  durable_.erase(clean(path));
}

uint64_t PowerLossFileSystem::file_syncs() const {
  const std::lock_guard lock(mutex_);
  return file_syncs_;
}

// Names

bool PowerLossFileSystem::Change::in(const std::string& folder) const {
  return folder_of(path) == folder || (kind == Kind::rename && folder_of(target) == folder);
}

void PowerLossFileSystem::apply(const Change& change, Names& names) {
  switch (change.kind) {
    case Change::Kind::make: names[change.path] = change.node; break;
    case Change::Kind::remove: names.erase(change.path); break;
    case Change::Kind::rename: {
      Names moved;
      for (auto at = names.begin(); at != names.end();) {
        if (at->first == change.path || below(at->first, change.path)) {
          moved[change.target + at->first.substr(change.path.size())] = at->second;
          at = names.erase(at);
        } else {
          ++at;
        }
      }
      for (auto& [path, node] : moved) names[path] = std::move(node);
      break;
    }
  }
}

void PowerLossFileSystem::change(Change change) {
  apply(change, live_);
  unsynced_.push_back(std::move(change));
}

IOStatus PowerLossFileSystem::check_power() const {
  if (powered_) return IOStatus::OK();
  return IOStatus::IOError("the power is off");
}

IOStatus PowerLossFileSystem::check_handle(uint64_t generation) const {
  if (powered_ && generation == generation_) return IOStatus::OK();
  return IOStatus::IOError("the power is off");
}

IOStatus PowerLossFileSystem::make(const std::string& path, bool folder) {
  if (IOStatus status = check_power(); !status.ok()) return status;
  const std::string parent = folder_of(path);
  if (!is_root(parent)) {
    const auto found = live_.find(parent);
    if (found == live_.end()) return no_such(path);
    if (!found->second->folder) return IOStatus::IOError(path, "Not a directory");
  }
  auto node = std::make_shared<Node>();
  node->folder = folder;
  change({Change::Kind::make, path, {}, std::move(node)});
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::remove(const std::string& path, bool folder) {
  if (IOStatus status = check_power(); !status.ok()) return status;
  const auto found = live_.find(path);
  if (found == live_.end() || found->second->folder != folder) return no_such(path);
  change({Change::Kind::remove, path, {}, nullptr});
  return IOStatus::OK();
}

std::shared_ptr<PowerLossFileSystem::Node> PowerLossFileSystem::find_file(
    const std::string& path) const {
  const auto found = live_.find(path);
  return found == live_.end() || found->second->folder ? nullptr : found->second;
}

uint64_t PowerLossFileSystem::used_bytes() const {
  uint64_t sum = 0;
  for (const auto& [path, node] : live_) sum += node->data.size();
  return sum;
}

// Open files

IOStatus PowerLossFileSystem::append(const std::string& path, Node& node, uint64_t generation,
                                     std::string data) {
  if (write_hook_) {
    if (IOStatus status = write_hook_(path, data); !status.ok()) return status;
  }
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_handle(generation); !status.ok()) return status;
  if (capacity_.has_value()) {
    const uint64_t used = used_bytes();
    const uint64_t free = *capacity_ > used ? *capacity_ - used : 0;
    if (data.size() > free) {
      node.data.append(data, 0, free);
      return IOStatus::NoSpace(path, "No space left on device");
    }
  }
  node.data.append(data);
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::sync(const std::string& path, Node& node, uint64_t generation) {
  size_t covered = 0;
  {
    const std::lock_guard lock(mutex_);
    covered = node.data.size();
    file_syncs_++;
  }
  if (sync_hook_) {
    if (IOStatus status = sync_hook_(path); !status.ok()) return status;
  }
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_handle(generation); !status.ok()) return status;
  node.synced_bytes = std::max(node.synced_bytes, covered);
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::read(const Node& node, uint64_t generation, uint64_t offset,
                                   size_t size, rocksdb::Slice* result, char* scratch) const {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_handle(generation); !status.ok()) return status;
  const size_t from = std::min<uint64_t>(offset, node.data.size());
  const size_t count = std::min(size, node.data.size() - from);
  std::memcpy(scratch, node.data.data() + from, count);
  *result = rocksdb::Slice(scratch, count);
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::sync_folder(const std::string& path, uint64_t generation) {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_handle(generation); !status.ok()) return status;
  std::vector<Change> rest;
  for (Change& change : unsynced_) {
    if (change.in(path)) {
      apply(change, durable_);
    } else {
      rest.push_back(std::move(change));
    }
  }
  unsynced_ = std::move(rest);
  return IOStatus::OK();
}

// rocksdb::FileSystem

IOStatus PowerLossFileSystem::NewSequentialFile(const std::string& name, const FileOptions&,
                                                std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                                IODebugContext*) {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_power(); !status.ok()) return status;
  std::shared_ptr<Node> node = find_file(clean(name));
  if (node == nullptr) return no_such(name);
  *file = std::make_unique<PowerLossSequentialFile>(*this, std::move(node), generation_);
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::NewRandomAccessFile(
    const std::string& name, const FileOptions&, std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
    IODebugContext*) {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_power(); !status.ok()) return status;
  std::shared_ptr<Node> node = find_file(clean(name));
  if (node == nullptr) return no_such(name);
  *file = std::make_unique<PowerLossRandomAccessFile>(*this, std::move(node), generation_);
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::NewWritableFile(const std::string& name, const FileOptions&,
                                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                                              IODebugContext*) {
  const std::lock_guard lock(mutex_);
  const std::string path = clean(name);
  if (IOStatus status = make(path, false); !status.ok()) return status;
  *file = std::make_unique<PowerLossWritableFile>(*this, path, live_.at(path), generation_);
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::NewDirectory(const std::string& name, const IOOptions&,
                                           std::unique_ptr<rocksdb::FSDirectory>* folder,
                                           IODebugContext*) {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_power(); !status.ok()) return status;
  const std::string path = clean(name);
  if (!is_root(path) && !live_.contains(path)) return no_such(name);
  *folder = std::make_unique<PowerLossDirectory>(*this, path, generation_);
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::FileExists(const std::string& name, const IOOptions&,
                                         IODebugContext*) {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_power(); !status.ok()) return status;
  const std::string path = clean(name);
  return is_root(path) || live_.contains(path) ? IOStatus::OK() : IOStatus::NotFound();
}

IOStatus PowerLossFileSystem::GetChildren(const std::string& name, const IOOptions&,
                                          std::vector<std::string>* children, IODebugContext*) {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_power(); !status.ok()) return status;
  const std::string folder = clean(name);
  if (!is_root(folder) && !live_.contains(folder)) return no_such(name);
  children->clear();
  for (const auto& [path, node] : live_) {
    if (folder_of(path) == folder) children->push_back(path.substr(path.rfind('/') + 1));
  }
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::DeleteFile(const std::string& name, const IOOptions&,
                                         IODebugContext*) {
  const std::lock_guard lock(mutex_);
  return remove(clean(name), false);
}

IOStatus PowerLossFileSystem::CreateDir(const std::string& name, const IOOptions&,
                                        IODebugContext*) {
  const std::lock_guard lock(mutex_);
  if (live_.contains(clean(name))) return IOStatus::IOError(name, "File exists");
  return make(clean(name), true);
}

IOStatus PowerLossFileSystem::CreateDirIfMissing(const std::string& name, const IOOptions&,
                                                 IODebugContext*) {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_power(); !status.ok()) return status;
  const std::string path = clean(name);
  const auto found = live_.find(path);
  if (is_root(path) || (found != live_.end() && found->second->folder)) return IOStatus::OK();
  if (found != live_.end()) return IOStatus::IOError(name, "exists but is not a directory");
  return make(path, true);
}

IOStatus PowerLossFileSystem::DeleteDir(const std::string& name, const IOOptions&,
                                        IODebugContext*) {
  const std::lock_guard lock(mutex_);
  return remove(clean(name), true);
}

IOStatus PowerLossFileSystem::GetFileSize(const std::string& name, const IOOptions&, uint64_t* size,
                                          IODebugContext*) {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_power(); !status.ok()) return status;
  const std::shared_ptr<Node> node = find_file(clean(name));
  if (node == nullptr) return no_such(name);
  *size = node->data.size();
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::GetFileModificationTime(const std::string& name, const IOOptions&,
                                                      uint64_t* time, IODebugContext*) {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_power(); !status.ok()) return status;
  if (find_file(clean(name)) == nullptr) return no_such(name);
  *time = 0;
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::RenameFile(const std::string& from, const std::string& to,
                                         const IOOptions&, IODebugContext*) {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_power(); !status.ok()) return status;
  if (!live_.contains(clean(from))) return no_such(from);
  change({Change::Kind::rename, clean(from), clean(to), nullptr});
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::LockFile(const std::string& name, const IOOptions&,
                                       rocksdb::FileLock** lock, IODebugContext*) {
  const std::lock_guard guard(mutex_);
  const std::string path = clean(name);
  if (IOStatus status = check_power(); !status.ok()) return status;
  if (!live_.contains(path)) {
    if (IOStatus status = make(path, false); !status.ok()) return status;
  }
  if (!locked_.insert(path).second) {
    return IOStatus::IOError("While lock file: " + path, "Resource temporarily unavailable");
  }
  auto held = std::make_unique<Lock>();
  held->path = path;
  held->generation = generation_;
  *lock = held.release();
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::UnlockFile(rocksdb::FileLock* lock, const IOOptions&,
                                         IODebugContext*) {
  const std::lock_guard guard(mutex_);
  const std::unique_ptr<Lock> held(static_cast<Lock*>(lock));
  if (held->generation == generation_) locked_.erase(held->path);
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::GetTestDirectory(const IOOptions&, std::string* path,
                                               IODebugContext*) {
  *path = "/test";
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::GetAbsolutePath(const std::string& path, const IOOptions&,
                                              std::string* absolute, IODebugContext*) {
  *absolute = path;
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::GetFreeSpace(const std::string&, const IOOptions&, uint64_t* free,
                                           IODebugContext*) {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_power(); !status.ok()) return status;
  const uint64_t used = used_bytes();
  const uint64_t capacity = capacity_.value_or(uint64_t{1} << 40);
  *free = capacity > used ? capacity - used : 0;
  return IOStatus::OK();
}

IOStatus PowerLossFileSystem::IsDirectory(const std::string& name, const IOOptions&,
                                          bool* is_folder, IODebugContext*) {
  const std::lock_guard lock(mutex_);
  if (IOStatus status = check_power(); !status.ok()) return status;
  const std::string path = clean(name);
  const auto found = live_.find(path);
  if (!is_root(path) && found == live_.end()) return no_such(name);
  *is_folder = is_root(path) || found->second->folder;
  return IOStatus::OK();
}

}  // namespace trellis
