// All operations in random order by several clients, on every engine, with faults and crashes: the
// file system is what a simple one in memory (fs_model.h) is.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "fs/fs_world.h"
#include "fs/lock_model.h"
#include "fs/trash.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr uint64_t file_bytes_max = 6 * block;

class Clients {
 public:
  static constexpr size_t sessions_max = 3;

  Clients(FsWorld& world, uint64_t seed, InodeId base = root_inode,
          std::mutex* collecting = nullptr)
      : world_(world),
        random_(seed),
        base_(base),
        collecting_(collecting),
        model_(base == root_inode ? FsModel() : FsModel({base})) {
    begin_sessions();
    if (base == root_inode) make_trash_hour();
  }

  const FsModel& model() const { return model_; }
  uint64_t unknown() const { return unknown_; }

  // One operation of one of the clients.
  void step();
  void expect_equal() {
    const std::string difference = world_.difference(model_, base_);
    EXPECT_EQ(difference, "") << "after " << last_;
  }
  void collect() {
    if (crashing_) return;  // comes after the crash
    const bool faults = faults_;
    set_faults(false);
    if (collecting_ != nullptr) {
      const std::lock_guard lock(*collecting_);
      world_.collect_all();
    } else {
      world_.collect_all();
    }
    set_faults(faults);
  }
  void set_faults(bool on) {
    faults_ = on;
    world_.set_faults(on);
  }
  // All clients are gone with what they had open.
  void start_anew();
  // The next operation ends in a crash, if it comes so far.
  void crash_within_the_next() {
    crashing_ = world_.faulty() != nullptr;
    if (crashing_)
      world_.faulty()->crash_at(static_cast<CrashPoint>(random_.below(4)), 1 + random_.below(4));
  }

 private:
  struct Client {
    size_t server;
    SessionId session;
    std::vector<uint64_t> opened;
  };

  void begin_sessions();
  void make_trash_hour();
  FileSystem& fs() { return world_.fs(clients_[client_].server); }
  const Caller& caller() const { return world_.caller(); }
  std::string any_name() { return std::string(1, static_cast<char>('a' + random_.below(6))); }
  uint64_t any(const std::function<bool(const ModelFile&)>& is_wanted);
  uint64_t any_directory() {
    return any([](const ModelFile& file) { return file.is_directory(); });
  }
  uint64_t any_file() {
    return any([](const ModelFile& file) { return file.type == FileType::regular; });
  }
  uint64_t any_inode() {
    return any([](const ModelFile&) { return true; });
  }
  // Mostly one that is there.
  std::string any_entry(uint64_t directory);
  NewFile any_new_file(Bytes& content);
  uint64_t any_offset() {
    const uint64_t offset = random_.below(file_bytes_max);
    return random_.one_in(3) ? offset - offset % block : offset;
  }
  uint64_t any_size() {
    if (random_.one_in(3)) return block * (1 + random_.below(2));
    return random_.one_in(2) ? 1 + random_.below(3'000) : 1 + random_.below(2 * block);
  }

  // What became of an operation that the model can do or cannot.
  // Quotas limit what it adds to `limited_from`, if that is not what is there.
  void settle(const Status& done, bool can, FsModel after, uint64_t content_of = 0,
              const FsModel* limited_from = nullptr);
  void resolve(const Error& error, FsModel after, uint64_t content_of);
  bool is_mixed(uint64_t inode, const FsModel& after);

  FsModel without_moved_home(uint64_t directory, const std::string& name, bool stays);

  void make();
  void link();
  void unlink();
  void remove_directory();
  void remove_tree();
  void rename();
  void set_attributes();
  void set_size();
  void write();
  void append();
  void fallocate();
  void copy();
  void read();
  void seek();
  void set_xattr();
  void set_quota();
  void open();
  void close();
  void make_unnamed();
  void move_to_trash();
  void take_from_trash();
  void lock();

  FsWorld& world_;
  Random random_;
  const InodeId base_;
  std::mutex* const collecting_;
  FsModel model_;
  std::vector<Client> clients_;
  LockModel locks_;
  std::set<uint64_t> locks_unknown_;  // of these inodes
  std::string hour_name_;             // of the trash: time does not go as far as the next
  uint64_t hour_ = 0;
  size_t client_ = 0;
  bool faults_ = false;
  bool crashing_ = false;
  uint64_t unknown_ = 0;
  std::string last_;
};

// --- choices ---

void Clients::begin_sessions() {
  for (size_t i = 0; i < sessions_max; i++) {
    const auto session = world_.fs(i).begin_session(caller(), "client");
    EXPECT_OK(session);
    clients_.push_back({i, session.value_or(SessionId{0}), {}});
  }
}

// Not while there are faults, which would leave an hour with nothing in it.
void Clients::make_trash_hour() {
  hour_name_ = trash_hour_name(world_.clock().unix_ms() / trash_hour_ms);
  const NewFile file{.content = "1"};
  const auto made = fs().make(caller(), root_inode, "z", file);
  EXPECT_OK(made);
  EXPECT_OK(fs().move_to_trash(caller(), root_inode, "z"));
  const auto hour = fs().lookup(caller(), trash_inode, hour_name_);
  EXPECT_OK(hour);
  if (!made || !hour) return;
  hour_ = hour->inode.value;
  model_.make(trash_inode.value, hour_name_, hour_, {.type = FileType::directory, .mode = 0700});
  const Bytes name = trash_name({root_inode, made->inode, "z"});
  model_.make(hour_, name, made->inode.value, file);
}

void Clients::start_anew() {
  crashing_ = false;
  locks_.clear();
  locks_unknown_.clear();
  for (const Client& client : clients_)
    EXPECT_OK(world_.fs(client.server).end_session(caller(), client.session));
  clients_.clear();
  model_.opened.clear();
  model_.forget_closed();
  begin_sessions();
  collect();
}

uint64_t Clients::any(const std::function<bool(const ModelFile&)>& is_wanted) {
  std::vector<uint64_t> found;
  for (const auto& [inode, file] : model_.files())
    if (inode != trash_inode.value && inode != hour_ && is_wanted(*file)) found.push_back(inode);
  return found.empty() ? 0 : found[random_.below(found.size())];
}

std::string Clients::any_entry(uint64_t directory) {
  const auto& entries = model_.at(directory).entries;
  if (entries.empty() || random_.one_in(8)) return any_name();
  auto entry = entries.begin();
  std::advance(entry, static_cast<ptrdiff_t>(random_.below(entries.size())));
  return entry->first;
}

NewFile Clients::any_new_file(Bytes& content) {
  NewFile file{.mode = static_cast<uint16_t>(random_.below(01000)),
               .uid = static_cast<uint32_t>(random_.below(5)),
               .gid = static_cast<uint32_t>(random_.below(5))};
  content = random_.bytes(1 + random_.below(random_.one_in(4) ? inline_bytes_max : 50));
  switch (random_.below(8)) {
    case 0:
    case 1:
    case 2: file.type = FileType::directory; break;
    case 3:
      file.type = FileType::symlink;
      file.target = content;
      break;
    case 4: file.type = FileType::fifo; break;
    default: file.content = content;
  }
  return file;
}

// --- outcomes ---

void Clients::settle(const Status& done, bool can, FsModel after, uint64_t content_of,
                     const FsModel* limited_from) {
  const FsModel& from = limited_from == nullptr ? model_ : *limited_from;
  const bool is_full = can && from.is_over_quota(after);
  after.forget_closed();
  if (done) {
    EXPECT_TRUE(can) << last_ << " was done";
    EXPECT_FALSE(is_full) << last_ << " was done, and a quota is full";
    model_ = std::move(after);
    return;
  }
  const Error& error = done.error();
  if (error.code == Code::unavailable || error.code == Code::maybe)
    return resolve(error, std::move(after), content_of);
  EXPECT_FALSE(can && !is_full) << last_ << ": " << to_string(error);
  if (!is_full) return;
  EXPECT_EQ(error.reason, "directory_quota_exceeded") << last_;
  if (content_of != 0) resolve(error, std::move(after), content_of);  // several changes
}

// It was done, or not; of content each block was.
void Clients::resolve(const Error& error, FsModel after, uint64_t content_of) {
  unknown_++;
  if (crashing_) {
    world_.crash(random_);
    for (Client& client : clients_) client.opened.clear();
    after.opened.clear();
    after.forget_closed();
    start_anew();
  }
  const bool faults = faults_;
  set_faults(false);
  collect();
  const std::string from_after = world_.difference(after, base_);
  if (from_after.empty()) {
    model_ = std::move(after);
  } else {
    const std::string from_before = world_.difference(model_, base_);
    if (!from_before.empty() && (content_of == 0 || !is_mixed(content_of, after)))
      ADD_FAILURE() << last_ << ", which failed with " << to_string(error) << ", was neither done ("
                    << from_after << ") nor not (" << from_before << ")";
  }
  set_faults(faults);
}

bool Clients::is_mixed(uint64_t inode, const FsModel& after) {
  const ModelFile* const now = after.find(inode);
  if (now == nullptr) return false;
  const ModelFile was = model_.at(inode);
  const ModelFile is = world_.read_file(inode);
  for (uint64_t at = 0; at < is.content.size(); at += block) {
    const auto part = [&](const std::string& content) {
      std::string found = at < content.size() ? content.substr(at, block) : "";
      found.resize(std::min<uint64_t>(block, is.content.size() - at));
      return found;
    };
    if (part(is.content) != part(was.content) && part(is.content) != part(now->content))
      return false;
  }
  ModelFile& mixed = model_.edit(inode);
  mixed.content = is.content;
  mixed.is_inline = is.is_inline;
  mixed.mapped = is.mapped;
  return world_.difference(model_, base_).empty();
}

// --- operations ---

void Clients::make() {
  const uint64_t directory = any_directory();
  const std::string name = random_.one_in(3) ? any_entry(directory) : any_name();
  Bytes content;
  const NewFile file = any_new_file(content);
  last_ = fmt::format("make {}/{}", directory, name);
  FsModel after = model_;
  constexpr uint64_t not_known = UINT64_MAX;
  const bool can = after.make(directory, name, not_known, file);
  const auto made = fs().make(caller(), InodeId{directory}, name, file);
  if (made) {
    after = model_;
    after.make(directory, name, made->inode.value, file);
    return settle({}, can, std::move(after));
  }
  if (crashing_ && world_.faulty()->crashed()) world_.faulty()->restart();
  const bool faults = faults_;
  set_faults(false);
  const auto found = world_.fs().lookup(caller(), InodeId{directory}, name);
  set_faults(faults);
  if (can && found) {
    after = model_;
    after.make(directory, name, found->inode.value, file);
  }
  settle(made.error(), can, std::move(after));
}

void Clients::link() {
  const uint64_t inode = any_inode();
  const uint64_t directory = any_directory();
  const std::string name = any_name();
  last_ = fmt::format("link {} to {}/{}", inode, directory, name);
  FsModel after = model_;
  const bool can = after.link(inode, directory, name);
  const auto done = fs().link(caller(), InodeId{inode}, InodeId{directory}, name);
  settle(done ? Status() : done.error(), can, std::move(after));
}

void Clients::unlink() {
  const uint64_t directory = any_directory();
  const std::string name = any_entry(directory);
  last_ = fmt::format("unlink {}/{}", directory, name);
  FsModel after = model_;
  const bool can = after.unlink(directory, name);
  settle(fs().unlink(caller(), InodeId{directory}, name), can, after, 0, &after);
}

void Clients::remove_directory() {
  const uint64_t directory = any_directory();
  const std::string name = any_entry(directory);
  last_ = fmt::format("remove directory {}/{}", directory, name);
  FsModel after = model_;
  const bool can = after.remove_directory(directory, name);
  settle(fs().remove_directory(caller(), InodeId{directory}, name), can, std::move(after));
}

// Names in it are gone when it is collected.
void Clients::remove_tree() {
  const uint64_t directory = any_directory();
  const std::string name = any_entry(directory);
  last_ = fmt::format("remove tree {}/{}", directory, name);
  FsModel after = model_;
  const bool can = after.remove_tree(directory, name);
  settle(fs().remove_tree(caller(), InodeId{directory}, name), can, after, 0, &after);
  collect();
}

void Clients::rename() {
  const uint64_t from = any_directory();
  const uint64_t to = random_.one_in(3) ? from : any_directory();
  const std::string from_name = any_entry(from);
  const std::string to_name = random_.one_in(2) ? any_entry(to) : any_name();
  const auto mode = static_cast<RenameMode>(random_.below(3));
  last_ = fmt::format("rename {}/{} to {}/{}, mode {}", from, from_name, to, to_name,
                      static_cast<int>(mode));
  FsModel after = model_;
  const bool can = after.rename(from, from_name, to, to_name, mode);
  const FsModel limited_from = without_moved_home(to, to_name, mode == RenameMode::exchange);
  settle(fs().rename(caller(), InodeId{from}, from_name, InodeId{to}, to_name, mode), can, after, 0,
         &limited_from);
}

// A file with other names that makes room for something moves what it counts: no quota limits that.
FsModel Clients::without_moved_home(uint64_t directory, const std::string& name, bool stays) {
  FsModel model = model_;
  const auto& entries = model_.at(directory).entries;
  const auto entry = entries.find(name);
  if (!stays && entry != entries.end() && model_.at(entry->second).names.size() > 1)
    model.unlink(directory, name);
  return model;
}

void Clients::set_attributes() {
  const uint64_t inode = any_inode();
  if (inode == root_inode.value) return;
  AttributePatch patch;
  FsModel after = model_;
  ModelFile& file = after.edit(inode);
  if (random_.one_in(2)) patch.mode = file.mode = static_cast<uint16_t>(random_.below(02000));
  if (random_.one_in(2)) patch.uid = file.uid = static_cast<uint32_t>(random_.below(9));
  if (random_.one_in(2)) patch.gid = file.gid = static_cast<uint32_t>(random_.below(9));
  last_ = fmt::format("set attributes of {}", inode);
  const auto done = fs().set_attributes(caller(), InodeId{inode}, patch);
  settle(done ? Status() : done.error(), true, std::move(after));
}

void Clients::set_size() {
  const uint64_t inode = random_.one_in(8) ? any_inode() : any_file();
  if (inode == 0) return;
  const uint64_t size = random_.one_in(3) ? random_.below(inline_bytes_max) : any_offset();
  last_ = fmt::format("set size of {} to {}", inode, size);
  FsModel after = model_;
  const bool can = after.set_size(inode, size);
  const auto done = fs().set_attributes(caller(), InodeId{inode}, {.size = size});
  settle(done ? Status() : done.error(), can, std::move(after), can ? inode : 0);
}

void Clients::write() {
  const uint64_t inode = random_.one_in(8) ? any_inode() : any_file();
  if (inode == 0) return;
  const uint64_t offset = random_.one_in(3) ? random_.below(5'000) : any_offset();
  const Bytes bytes = random_.bytes(any_size());
  last_ = fmt::format("write {} at {} of {}", bytes.size(), offset, inode);
  FsModel after = model_;
  const bool can = after.write(inode, offset, bytes);
  settle(fs().write(caller(), InodeId{inode}, offset, bytes), can, std::move(after),
         can ? inode : 0);
}

void Clients::append() {
  const uint64_t inode = any_file();
  if (inode == 0 || model_.at(inode).content.size() > file_bytes_max) return;
  const uint64_t end = model_.at(inode).content.size();
  const Bytes bytes = random_.bytes(any_size());
  last_ = fmt::format("append {} to {}", bytes.size(), inode);
  FsModel after = model_;
  after.write(inode, end, bytes);
  const auto done = fs().append(caller(), InodeId{inode}, bytes);
  if (done) {
    EXPECT_EQ(*done, end) << last_;
  }
  settle(done ? Status() : done.error(), true, std::move(after), inode);
}

void Clients::fallocate() {
  const uint64_t inode = any_file();
  if (inode == 0) return;
  FallocateMode mode{.kind = static_cast<FallocateMode::Kind>(random_.below(5)),
                     .keep_size = random_.one_in(2)};
  uint64_t offset = any_offset();
  uint64_t size = any_size();
  const bool moves = mode.kind >= FallocateMode::Kind::collapse;
  if (moves && !random_.one_in(8)) {
    offset = block * random_.below(4);
    size = block * (1 + random_.below(2));
    mode.keep_size = false;
  }
  if (mode.kind == FallocateMode::Kind::insert && model_.at(inode).content.size() > file_bytes_max)
    return;
  if (mode.kind == FallocateMode::Kind::punch_hole) mode.keep_size = !random_.one_in(8);
  last_ = fmt::format("fallocate {} of {} at {}, {}{}", static_cast<int>(mode.kind), inode, offset,
                      size, mode.keep_size ? ", size kept" : "");
  FsModel after = model_;
  const bool can = after.fallocate(inode, mode, offset, size);
  settle(fs().fallocate(caller(), InodeId{inode}, mode, offset, size), can, std::move(after),
         can ? inode : 0);
}

void Clients::copy() {
  const uint64_t from = any_file();
  const uint64_t to = any_file();
  if (from == 0 || to == 0) return;
  const bool whole = random_.one_in(3);
  const uint64_t from_offset = whole ? 0 : any_offset();
  const uint64_t to_offset = whole || random_.one_in(2) ? from_offset : any_offset();
  const uint64_t size = whole ? 0 : any_size();
  last_ = fmt::format("copy {} at {} of {} to {} of {}", size, from_offset, from, to_offset, to);
  FsModel after = model_;
  const bool can = after.copy_range(from, from_offset, to, to_offset, size);
  const auto done =
      fs().copy_range(caller(), InodeId{from}, from_offset, InodeId{to}, to_offset, size);
  settle(done ? Status() : done.error(), can, std::move(after), can ? to : 0);
}

void Clients::read() {
  const uint64_t inode = any_file();
  if (inode == 0) return;
  const uint64_t offset = any_offset();
  std::string into(any_size(), 'x');
  last_ = fmt::format("read {} at {} of {}", into.size(), offset, inode);
  const auto size = fs().read(caller(), InodeId{inode}, offset, into);
  if (!size) {
    EXPECT_EQ(size.error().code, Code::unavailable) << last_ << to_string(size.error());
    return;
  }
  const std::string& content = model_.at(inode).content;
  const std::string right = offset < content.size() ? content.substr(offset, into.size()) : "";
  EXPECT_EQ(*size, right.size()) << last_;
  EXPECT_TRUE(into.substr(0, *size) == right) << last_;
}

void Clients::seek() {
  const uint64_t inode = any_file();
  if (inode == 0) return;
  const ModelFile& file = model_.at(inode);
  const uint64_t offset = any_offset();
  const bool for_data = random_.one_in(2);
  last_ = fmt::format("seek {} from {} in {}", for_data ? "data" : "hole", offset, inode);
  std::optional<uint64_t> right;
  for (uint64_t at = offset; at < file.content.size() && !right; at = (at / block + 1) * block)
    if ((file.is_inline || file.mapped.contains(at / block)) == for_data) right = at;
  if (!right && !for_data && offset < file.content.size()) right = file.content.size();
  const auto found = for_data ? fs().seek_data(caller(), InodeId{inode}, offset)
                              : fs().seek_hole(caller(), InodeId{inode}, offset);
  if (!found && found.error().code == Code::unavailable) return;
  EXPECT_EQ(found.has_value(), right.has_value()) << last_;
  if (found && right) {
    EXPECT_EQ(*found, *right) << last_;
  }
}

void Clients::set_xattr() {
  const uint64_t inode = any_file();
  if (inode == 0) return;
  const std::string name = "user." + any_name();
  const Bytes value = random_.bytes(random_.below(50));
  const bool removes = random_.one_in(3);
  last_ = fmt::format("{} attribute {} of {}", removes ? "remove" : "set", name, inode);
  FsModel after = model_;
  auto& xattrs = after.edit(inode).xattrs;
  const bool can = !removes || xattrs.erase(name) > 0;
  if (!removes) xattrs[name] = value;
  settle(removes ? fs().remove_xattr(caller(), InodeId{inode}, name)
                 : fs().set_xattr(caller(), InodeId{inode}, name, value),
         can, std::move(after));
}

void Clients::set_quota() {
  const uint64_t directory = any_directory();
  if (directory == root_inode.value) return;
  FsQuota quota{};
  const TreeFigures used = model_.figures(directory);
  if (random_.one_in(2)) quota.bytes_max = used.space + block * random_.below(10);
  if (random_.one_in(2)) quota.inodes_max = used.inodes + random_.below(5);
  last_ = fmt::format("set quota of {}", directory);
  FsModel after = model_;
  after.edit(directory).quota = quota;
  settle(fs().set_quota(caller(), InodeId{directory}, quota), true, std::move(after));
}

void Clients::open() {
  const uint64_t inode = any([](const ModelFile& file) { return !file.is_directory(); });
  if (inode == 0 || model_.at(inode).names.empty()) return;
  last_ = fmt::format("open {}", inode);
  const auto done = fs().open_file(caller(), clients_[client_].session, InodeId{inode});
  if (!done) {
    EXPECT_TRUE(done.error().code == Code::unavailable || done.error().code == Code::maybe)
        << to_string(done.error());
    return;
  }
  clients_[client_].opened.push_back(inode);
  model_.opened.insert(inode);
}

void Clients::close() {
  auto& opened = clients_[client_].opened;
  if (opened.empty()) return;
  const size_t which = random_.below(opened.size());
  const uint64_t inode = opened[which];
  opened.erase(opened.begin() + static_cast<ptrdiff_t>(which));
  last_ = fmt::format("close {}", inode);
  const SessionId session = clients_[client_].session;
  const Status closed = fs().close_file(caller(), session, InodeId{inode});
  if (std::find(opened.begin(), opened.end(), inode) == opened.end()) locks_.close(inode, session);
  if (!closed) locks_unknown_.insert(inode);
  model_.opened.erase(model_.opened.find(inode));
  model_.forget_closed();
}

void Clients::make_unnamed() {
  const uint64_t directory = any_directory();
  const std::string name = any_name();
  const bool replaces = random_.one_in(2);
  const Bytes content = random_.bytes(random_.below(100));
  const NewFile file{.mode = 0600, .content = content};
  last_ = fmt::format("adopt as {}/{}", directory, name);
  const SessionId session = clients_[client_].session;
  const auto made = fs().make_unnamed(caller(), session, InodeId{directory}, file);
  if (!made) return;  // whatever became of it goes with the session
  FsModel after = model_;
  after.opened.insert(made->inode.value);
  after.make_unnamed(made->inode.value, file);
  model_ = after;
  clients_[client_].opened.push_back(made->inode.value);
  const bool can = after.adopt(made->inode.value, directory, name, replaces);
  const FsModel limited_from = without_moved_home(directory, name, false);
  const auto done =
      fs().adopt(caller(), session, made->inode, InodeId{directory}, name, {.replace = replaces});
  settle(done ? Status() : done.error(), can, after, 0, &limited_from);
}

void Clients::move_to_trash() {
  if (hour_ == 0) return;
  const uint64_t directory = any_directory();
  const std::string name = any_entry(directory);
  last_ = fmt::format("move {}/{} to the trash", directory, name);
  FsModel after = model_;
  const auto& entries = model_.at(directory).entries;
  const auto entry = entries.find(name);
  if (entry != entries.end()) {
    const Bytes to_name = trash_name({InodeId{directory}, InodeId{entry->second}, name});
    // The same name of the same file may be there already.
    if (!after.rename(directory, name, hour_, to_name, RenameMode::no_replace))
      after.unlink(directory, name);
  }
  settle(fs().move_to_trash(caller(), InodeId{directory}, name), entry != entries.end(), after, 0,
         &after);
}

// Back to where it was, or for good.
void Clients::take_from_trash() {
  if (hour_ == 0 || model_.at(hour_).entries.empty()) return;
  const std::string stored = any_entry(hour_);
  FsModel after = model_;
  if (random_.one_in(4)) {
    last_ = fmt::format("remove {} from the trash", stored);
    const bool can = after.remove_tree(hour_, stored);
    settle(fs().move_to_trash(caller(), InodeId{hour_}, stored), can, after, 0, &after);
    return collect();
  }
  last_ = fmt::format("restore {}", stored);
  const auto parsed = parse_trash_name(stored);
  const ModelFile* const parent = parsed ? model_.find(parsed->parent.value) : nullptr;
  const bool can = parent != nullptr && parent->is_directory() &&
                   model_.is_below(parsed->parent.value, root_inode.value) &&
                   after.rename(hour_, stored, parsed->parent.value, Bytes(parsed->name),
                                RenameMode::no_replace);
  const auto done = fs().restore(caller(), hour_name_ + '/' + stored);
  settle(done ? Status() : done.error(), can, after);
}

void Clients::lock() {
  const Client& client = clients_[client_];
  if (client.opened.empty()) return;
  const uint64_t inode = client.opened[random_.below(client.opened.size())];
  if (locks_unknown_.contains(inode)) return;
  const auto kind = random_.one_in(3) ? LockModel::Kind::flock : LockModel::Kind::posix;
  FsLock wanted{.session = client.session,
                .owner = 1 + random_.below(2),
                .first = random_.below(LockModel::bytes),
                .last = 0,
                .process = 1,
                .type = random_.one_in(2) ? FileLockType::exclusive : FileLockType::shared};
  wanted.last = wanted.first + random_.below(LockModel::bytes - wanted.first);
  const bool is_locked = locks_.is_locked(inode, kind, wanted);
  const bool unlocks = random_.one_in(3);
  last_ = fmt::format("{} {}", unlocks ? "unlock" : "lock", inode);
  const auto tested = fs().test_lock(caller(), InodeId{inode}, kind, wanted);
  if (tested) {
    EXPECT_EQ(tested->has_value(), is_locked) << last_;
  }
  const Status done = unlocks ? fs().unlock(caller(), InodeId{inode}, kind, wanted)
                              : fs().lock(caller(), InodeId{inode}, kind, wanted);
  if (!done && (done.error().code == Code::unavailable || done.error().code == Code::maybe)) {
    locks_unknown_.insert(inode);
    return;
  }
  const bool can = unlocks || !is_locked;
  EXPECT_EQ(done.has_value(), can) << last_ << (done ? "" : to_string(done.error()));
  if (!can && !done) {
    EXPECT_EQ(done.error().reason, "would_block") << last_;
  }
  if (done) locks_.set(inode, kind, wanted, !unlocks);
}

void Clients::step() {
  client_ = random_.below(clients_.size());
  static constexpr void (Clients::*operations[])() = {
      &Clients::make,        &Clients::make,          &Clients::make,
      &Clients::make,        &Clients::link,          &Clients::link,
      &Clients::unlink,      &Clients::unlink,        &Clients::rename,
      &Clients::rename,      &Clients::rename,        &Clients::remove_directory,
      &Clients::write,       &Clients::write,         &Clients::write,
      &Clients::append,      &Clients::set_size,      &Clients::set_attributes,
      &Clients::fallocate,   &Clients::fallocate,     &Clients::copy,
      &Clients::copy,        &Clients::read,          &Clients::seek,
      &Clients::set_xattr,   &Clients::set_quota,     &Clients::open,
      &Clients::close,       &Clients::close,         &Clients::make_unnamed,
      &Clients::remove_tree, &Clients::move_to_trash, &Clients::take_from_trash,
      &Clients::open,        &Clients::lock,          &Clients::lock};
  (this->*operations[random_.below(std::size(operations))])();
}

class FsProperty : public testing::TestWithParam<WayOfEngine> {
 protected:
  // An object store in memory takes its time.
  static uint64_t rounds(uint64_t full) {
    return test_rounds(full) / (GetParam().kind.name.starts_with("cluster") ? 4 : 1);
  }
};

TEST_P(FsProperty, DoesWhatASimpleOneDoes) {
  const uint64_t seed = test_seed(1);
  FsWorld world(GetParam(), seed);
  Clients clients(world, seed);
  Random random(seed);
  for (uint64_t round = 0; round < rounds(60) && !HasFailure(); round++) {
    clients.set_faults(true);
    for (int i = 0; i < 25 && !HasFailure(); i++) clients.step();
    clients.set_faults(false);
    clients.expect_equal();
    if (random.one_in(3)) clients.collect();
    if (random.one_in(4)) world.check();
    world.clock().advance_ms(random.below(20));
  }
  clients.start_anew();
  clients.expect_equal();
  world.check();
  if (world.faulty() != nullptr) {
    EXPECT_GT(clients.unknown(), 0u);
  }
}

TEST_P(FsProperty, SurvivesCrashes) {
  const uint64_t seed = test_seed(2);
  FsWorld world(GetParam(), seed);
  Clients clients(world, seed);
  Random random(seed);
  for (uint64_t round = 0; round < rounds(60) && !HasFailure(); round++) {
    for (uint64_t i = random.below(20); i > 0 && !HasFailure(); i--) clients.step();
    clients.crash_within_the_next();
    clients.step();
    if (random.one_in(5))
      world.reopen();
    else
      world.crash(random);
    clients.start_anew();
    clients.expect_equal();
    world.check();
  }
}

// Several threads, each with a directory of its own, and all of them counted in the root.
TEST_P(FsProperty, ThreadsDoNotDisturbEachOther) {
  constexpr size_t threads = 4;
  const uint64_t seed = test_seed(3);
  if (GetParam().kind.name == "faulty") GTEST_SKIP() << "which threads would a fault be of";
  FsWorld world(GetParam(), seed);
  std::mutex collecting;
  std::vector<std::unique_ptr<Clients>> clients;
  for (size_t i = 0; i < threads; i++) {
    const auto base = world.fs().make(world.caller(), root_inode, "base" + std::to_string(i),
                                      {.type = FileType::directory, .mode = 0755});
    ASSERT_OK(base);
    clients.push_back(std::make_unique<Clients>(world, seed + i, base->inode, &collecting));
  }
  for (uint64_t round = 0; round < rounds(10) && !HasFailure(); round++) {
    std::vector<std::thread> running;
    for (size_t i = 0; i < threads; i++)
      running.emplace_back([&, i] {
        for (int step = 0; step < 40 && !HasFailure(); step++) clients[i]->step();
      });
    for (std::thread& thread : running) thread.join();
    uint64_t inodes = threads;
    for (const auto& own : clients) {
      own->expect_equal();
      for (const auto& [inode, file] : own->model().files())
        if (file->is_directory() && file->parent == 0) inodes += own->model().figures(inode).inodes;
    }
    EXPECT_EQ(world.fs().tree_figures(world.caller(), root_inode)->inodes, inodes);
    world.check();
  }
}

INSTANTIATE_TEST_SUITE_P(All, FsProperty, testing::ValuesIn(fs_setups()),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace trellis
