#include "fs/sessions.h"

#include <algorithm>

#include "fs/locks.h"
#include "fs/names.h"
#include "fs/xattrs.h"

namespace trellis {
namespace {

// What the collector gives back of a session at a time.
constexpr size_t files_dropped_at_once = 256;
constexpr size_t held_page = 1'024;

Bytes session_key(KeyspaceId keyspace, SessionId session) {
  return encode(FsSessionKey{keyspace, session});
}

Bytes held_key(KeyspaceId keyspace, SessionId session, InodeId inode) {
  return encode(FsOpenUnlinkedKey{keyspace, session, inode});
}

Result<FsSession> decode_session(SessionId session, const Value& stored) {
  auto decoded = decode<FsSession>(stored.bytes());
  if (!decoded)
    return fs_error::corrupt(fmt::format("session {}: {}", session.value, decoded.error().message));
  return *decoded;
}

bool is_over(const FsSession& session, uint64_t now_ms) { return session.expires_ms <= now_ms; }

// A directory that was removed with what is in it is the tree's note's to collect until it is
// empty.
Result<bool> has_entries(Engine& engine, KeyspaceId keyspace, InodeId directory) {
  const Bytes prefix = encode(FsEntryKey{keyspace, directory, {}});
  bool found = false;
  TRY(engine.scan({.begin = prefix, .end = prefix_end(prefix), .entries_max = 1},
                  [&](ByteView, ByteView) {
                    found = true;
                    return Visit::stop;
                  }));
  return found;
}

Result<bool> has_locks(FsChange& change, InodeId inode) {
  for (unsigned char kind = 0; kind < std::size(FsLockKey::locks); kind++) {
    TRY_ASSIGN(const auto locks, change.record(encode(FsLockKey{change.keyspace(), inode, kind})));
    if (locks.old.found()) return true;
  }
  return false;
}

}  // namespace

Status check_session(CountedView& view, KeyspaceId keyspace, SessionId session, uint64_t now_ms) {
  Value stored;
  TRY(view.get(session_key(keyspace, session), stored));
  if (!stored.found()) return fs_error::session_gone(session);
  TRY_ASSIGN(const FsSession found, decode_session(session, stored));
  return is_over(found, now_ms) ? Status(fs_error::session_gone(session)) : Status();
}

Result<bool> bury_session(CountedView& view, KeyspaceId keyspace, SessionId session,
                          uint64_t now_ms, bool must_end) {
  const Bytes key = session_key(keyspace, session);
  Value stored;
  TRY(view.get(key, stored));
  if (!stored.found()) return true;
  TRY_ASSIGN(FsSession found, decode_session(session, stored));
  if (!must_end && !is_over(found, now_ms)) return false;
  if (found.expires_ms == 0) return true;
  found.expires_ms = 0;
  view.put(key, encode(found), stored);
  return true;
}

void plan_holders(FsPlan& plan, const OpenFiles& open_files, InodeId inode) {
  for (const SessionId session : open_files.holders(inode)) {
    // Shared: a session that ends meanwhile would not see that it holds the file.
    plan.shared(session_key(plan.keyspace(), session));
    plan.exclusive(held_key(plan.keyspace(), session, inode));
  }
}

Result<bool> keep_for_holders(FsChange& change, const OpenFiles& open_files, InodeId inode) {
  bool is_held = false;
  for (const SessionId session : open_files.holders(inode)) {
    const Bytes key = held_key(change.keyspace(), session, inode);
    if (!change.has_planned(key)) return plan_outdated();
    TRY_ASSIGN(const auto alive, change.record(session_key(change.keyspace(), session)));
    if (!alive.old.found()) continue;
    TRY_ASSIGN(const FsSession found, decode_session(session, alive.old));
    if (found.expires_ms == 0) continue;  // what it held is being given back
    TRY_ASSIGN(const auto held, change.record(key));
    if (!held.old.found()) change.put(held, fs_held_value);
    is_held = true;
  }
  return is_held;
}

Result<std::optional<SessionId>> holder_of(Engine& engine, KeyspaceId keyspace, InodeId inode) {
  Bytes from = session_key(keyspace, SessionId{0});
  const Bytes end = prefix_end(ByteView(from).substr(0, from.size() - 8));
  for (;;) {
    std::optional<SessionId> session;
    TRY(engine.scan({.begin = from, .end = end, .entries_max = 1}, [&](ByteView key, ByteView) {
      session = SessionId{load_be(key.data() + from.size() - 8, 8)};
      return Visit::stop;
    }));
    if (!session) return std::optional<SessionId>();
    Value held;
    TRY(engine.get(held_key(keyspace, *session, inode), held));
    if (held.found()) return session;
    if (session->value == UINT64_MAX) return std::optional<SessionId>();
    from = session_key(keyspace, SessionId{session->value + 1});
  }
}

Status FileSystem::keep_books(const Caller& caller, const Scope& scope,
                              FunctionRef<Status(CountedView&)> fn) {
  TRY(tenant_->admit(caller, Access::read));
  return tenant_->collect(Model::fs, scope, fn);
}

// --- the life of a session ---

Result<SessionId> FileSystem::begin_session(const Caller& caller, std::string_view client) {
  if (client.size() > session_client_bytes_max)
    return fs_error::invalid("a client's name has at most 255 bytes");
  TRY_ASSIGN(const uint64_t id, take_id());
  const SessionId session{id};
  const Bytes key = session_key(keyspace(), session);
  TRY(keep_books(caller, Scope::in(keyspace()).exclusive(key), [&](CountedView& view) -> Status {
    Value old;
    TRY(view.get(key, old));
    const uint64_t now_ms = tenant_->map().clock.unix_ms();
    const uint64_t expires_ms = now_ms + options_.session_ms;
    view.put(key, encode(FsSession{now_ms, expires_ms, client}), old);
    view.leave_garbage(expires_ms, fs_note(FsNote::session, id), 0);
    return {};
  }));
  return session;
}

// Its note stays where it is: the collector moves it when it comes to it.
Status FileSystem::renew_session(const Caller& caller, SessionId session) {
  const Bytes key = session_key(keyspace(), session);
  const auto run = [&](CountedView& view) -> Status {
    const uint64_t now_ms = tenant_->map().clock.unix_ms();
    TRY(check_session(view, keyspace(), session, now_ms));
    Value stored;
    TRY(view.get(key, stored));
    TRY_ASSIGN(FsSession found, decode_session(session, stored));
    found.expires_ms = now_ms + options_.session_ms;
    view.put(key, encode(found), stored);
    return {};
  };
  const Status renewed = keep_books(caller, Scope::in(keyspace()).exclusive(key), run);
  // Another process may have ended it.
  if (!renewed && renewed.error().reason == fs_error::session_gone(session).reason)
    open_files_.forget(session);
  return renewed;
}

Status FileSystem::end_session(const Caller& caller, SessionId session) {
  TRY(tenant_->admit(caller, Access::read));
  TRY(mark_over(session, true));
  TRY(drop_all_held(session, SIZE_MAX));
  const Bytes key = session_key(keyspace(), session);
  return tenant_->collect(Model::fs, Scope::in(keyspace()).exclusive(key),
                          [&](CountedView& view) -> Status {
                            Value stored;
                            TRY(view.get(key, stored));
                            if (stored.found()) view.remove(key, stored);
                            return {};
                          });
}

Result<bool> FileSystem::mark_over(SessionId session, bool must_end) {
  bool over = false;
  TRY(tenant_->collect(Model::fs, Scope::in(keyspace()).exclusive(session_key(keyspace(), session)),
                       [&](CountedView& view) -> Status {
                         TRY_ASSIGN(over, bury_session(view, keyspace(), session,
                                                       tenant_->map().clock.unix_ms(), must_end));
                         return {};
                       }));
  // From now on nothing is opened in it, and nothing kept for it.
  if (over) open_files_.forget(session);
  return over;
}

Result<bool> FileSystem::is_gone(SessionId session) {
  Value stored;
  TRY(tenant_->map().engine.get(session_key(keyspace(), session), stored));
  if (!stored.found()) return true;
  TRY_ASSIGN(const FsSession found, decode_session(session, stored));
  return is_over(found, tenant_->map().clock.unix_ms());
}

Result<bool> FileSystem::drop_all_held(SessionId session, size_t files_max) {
  const Bytes prefix = session_key(keyspace(), session);
  const Bytes end = prefix_end(prefix);
  for (size_t dropped = 0; dropped < files_max;) {
    std::vector<InodeId> page;
    const size_t page_max = std::min(held_page, files_max - dropped);
    TRY(tenant_->map().engine.scan(
        {.begin = successor(prefix), .end = end, .entries_max = page_max},
        [&](ByteView key, ByteView) {
          if (const auto held = decode<FsOpenUnlinkedKey>(key)) page.push_back(held->inode);
          return Visit::go_on;
        }));
    if (page.empty()) return true;
    for (const InodeId inode : page) TRY(drop_held(session, inode));
    dropped += page.size();
  }
  return false;
}

Result<std::optional<Garbage>> FileSystem::drop_held(SessionId session, InodeId inode) {
  const Bytes key = held_key(keyspace(), session, inode);
  const Bytes inode_key = encode(FsInodeKey{keyspace(), inode});
  bool had = false;
  std::optional<Garbage> left;
  const auto run = [&](CountedView& view) -> Status {
    had = false;
    left.reset();
    if (open_files_.is_open(session, inode)) return {};  // again
    Value held;
    TRY(view.get(key, held));
    if (!held.found()) return {};
    had = true;
    view.remove(key, held);
    TRY(drop_locks(view, keyspace(), inode, session));
    Value stored;
    TRY(view.get(inode_key, stored));
    if (!stored.found()) return {};
    TRY_ASSIGN(const FsInode file, decode_inode(inode, stored.bytes()));
    if (file.links > 0) return {};
    if (file.type == FileType::directory) {
      TRY_ASSIGN(const bool is_full, has_entries(tenant_->map().engine, keyspace(), inode));
      if (is_full) return {};
    }
    // With the session in it the note is no other's: several may be left in one millisecond.
    Bytes note = fs_note(FsNote::inode, inode.value);
    append_be64(note, session.value);
    left = Garbage{.due_ms = tenant_->map().clock.unix_ms(),
                   .target = std::move(note),
                   .model = Model::fs,
                   .bytes = file.blocks * block_bytes_max};
    view.leave_garbage(left->due_ms, left->target, left->bytes);
    return {};
  };
  TRY(tenant_->collect(Model::fs, Scope::in(keyspace()).exclusive(key).exclusive(inode_key), run));
  if (had) lock_waits_.released();
  return left;
}

Result<bool> FileSystem::collect_session(const Garbage& note, SessionId session) {
  const Bytes key = session_key(keyspace(), session);
  TRY_ASSIGN(const bool over, mark_over(session, false));
  if (over) {
    TRY_ASSIGN(const bool all, drop_all_held(session, files_dropped_at_once));
    if (!all) return false;
  }
  bool gone = false;
  const auto run = [&](CountedView& view) -> Status {
    gone = false;
    Value stored;
    TRY(view.get(key, stored));
    uint64_t expires_ms = 0;
    if (stored.found()) {
      TRY_ASSIGN(const FsSession found, decode_session(session, stored));
      expires_ms = found.expires_ms;
    }
    // It was renewed; or it was not, and a clock was set back.
    if (expires_ms != 0 && expires_ms <= note.due_ms) return {};
    gone = true;
    view.forget_garbage(note.due_ms, note.target);
    if (expires_ms != 0)
      view.leave_garbage(expires_ms, note.target, 0);
    else if (stored.found())
      view.remove(key, stored);
    return {};
  };
  TRY(tenant_->collect(Model::fs, Scope::in(keyspace()).exclusive(key), run));
  if (gone && has_strangers_) TRY(look_for_strangers());
  return gone;
}

Status FileSystem::look_for_strangers() {
  const Bytes begin = session_key(keyspace(), SessionId{0});
  const Bytes end = session_key(keyspace(), SessionId{strangers_below_});
  bool found = false;
  TRY(tenant_->map().engine.scan({.begin = begin, .end = end, .entries_max = 1},
                                 [&](ByteView, ByteView) {
                                   found = true;
                                   return Visit::stop;
                                 }));
  has_strangers_ = found;
  return {};
}

// --- open files ---

Status FileSystem::open_file(const Caller& caller, SessionId session, InodeId inode) {
  const Bytes inode_key = encode(FsInodeKey{keyspace(), inode});
  const Bytes key = held_key(keyspace(), session, inode);
  const bool is_latched = tenant_->map().latched();
  bool opened = false;
  const auto run = [&](CountedView& view) -> Status {
    TRY(check_session(view, keyspace(), session, tenant_->map().clock.unix_ms()));
    Value stored;
    TRY(view.get(inode_key, stored));
    if (!stored.found()) return fs_error::stale(inode);
    TRY_ASSIGN(const FsInode file, decode_inode(inode, stored.bytes()));
    if (file.links == 0 || !is_latched) {
      Value held;
      TRY(view.get(key, held));
      if (file.links == 0 && !held.found()) return fs_error::stale(inode);
      // Written though it may be there: whoever closes it at this moment is to notice.
      if (!is_latched) view.put(key, fs_held_value, held);
    }
    if (!opened) open_files_.open(session, inode);
    opened = true;
    return {};
  };
  Scope scope = Scope::in(keyspace());
  scope.shared(session_key(keyspace(), session)).shared(inode_key);
  is_latched ? scope.shared(key) : scope.exclusive(key);
  Status done = keep_books(caller, scope, run);
  if (!done && opened) open_files_.close(session, inode);
  return done;
}

Status FileSystem::close_file(const Caller& caller, SessionId session, InodeId inode) {
  const bool is_last = open_files_.close(session, inode);
  TRY(tenant_->admit(caller, Access::read, 0));
  if (is_last) TRY(drop_held(session, inode));
  return {};
}

Status FileSystem::discard_unnamed(const Caller& caller, SessionId session, InodeId inode) {
  const bool is_last = open_files_.close(session, inode);
  TRY(tenant_->admit(caller, Access::read, 0));
  if (!is_last) return {};
  TRY_ASSIGN(const auto left, drop_held(session, inode));
  for (bool is_gone = !left.has_value(); !is_gone;) {
    TRY_ASSIGN(is_gone, collect_inode(*left, inode));
  }
  return {};
}

Result<FileAttributes> FileSystem::make_unnamed(const Caller& caller, SessionId session,
                                                InodeId directory, const NewFile& file) {
  TRY(check_new_file(file));
  if (file.type == FileType::directory)
    return fs_error::not_permitted("a directory cannot be without a name");
  TRY_ASSIGN(const uint64_t id, take_id());
  const InodeId inode{id};
  const Bytes key = held_key(keyspace(), session, inode);
  bool opened = false;
  FileAttributes made;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.share(directory);
    plan.hold(inode);
    plan.shared(session_key(keyspace(), session));
    plan.exclusive(key);
    return {};
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY(check_session(change.view(), keyspace(), session, change.now_ms()));
    TRY_ASSIGN(const FsInode* const parent, change.directory(directory));
    FsInode content = new_inode(file, inode, era_.load(), change.now_ns());
    TRY(inherit(change, directory, *parent, file, inode, content));
    content.links = 0;
    change.make_inode(inode, content);
    made = attributes_of(inode, content);
    TRY_ASSIGN(const auto held, change.record(key));
    change.put(held, fs_held_value);
    if (!opened) open_files_.open(session, inode);
    opened = true;
    return {};
  };
  const Status done = change(&caller, plan, run);
  if (!done && opened) open_files_.close(session, inode);
  TRY(done);
  return made;
}

Result<FileAttributes> FileSystem::adopt(const Caller& caller, SessionId session, InodeId inode,
                                         InodeId directory, ByteView name, const Adoption& how) {
  TRY(check_file_name(name));
  const Bytes key = held_key(keyspace(), session, inode);
  std::optional<FsEntry> planned;
  FileAttributes adopted;
  const auto plan = [&](FsPlan& plan) -> Status {
    plan.entry(directory, name);
    plan.hold(inode);
    plan.shared(session_key(keyspace(), session));
    plan.exclusive(key);
    TRY(plan.charge(directory));
    TRY_ASSIGN(planned, plan.see(directory, name));
    return planned ? plan_replacing(plan, directory, name, *planned) : Status();
  };
  const auto run = [&](FsChange& change) -> Status {
    TRY(check_session(change.view(), keyspace(), session, change.now_ms()));
    TRY_ASSIGN(const auto held, change.record(key));
    TRY_ASSIGN(FsInode* const file, change.inode(inode));
    if (!held.old.found()) return fs_error::stale(inode);
    if (file->links != 0) return fs_error::invalid("the file has a name already");
    TRY(change.directory(directory));
    if (!change.attached(directory)) return fs_error::stale(directory);
    TRY_ASSIGN(const auto there, change.entry(directory, name));
    if (there != planned) return plan_outdated();
    if (there && !how.replace) return fs_error::exists(name);
    TRY(check_expected(change, there, how.expected));
    if (there) {
      TRY(replace_entry(change, directory, name, *there, file->type));
      TRY(change.count(directory, {.entries = -1}));
    }
    file->links = 1;
    file->home = directory;
    file->version++;
    file->changed_ns = change.now_ns();
    TRY(change.put_entry(directory, name, {inode, file->type, file->generation}));
    // Open files with names are known in memory, unless others share the map; locks need it.
    if (change.latched()) {
      TRY_ASSIGN(const bool is_locked, has_locks(change, inode));
      if (!is_locked) change.remove(held);
    }
    adopted = attributes_of(inode, *file);
    FsFigures counted = figures_of(*file);
    counted.entries = 1;
    counted.changed_ns = change.now_ns();
    return change.count(directory, counted);
  };
  TRY(change(&caller, plan, run));
  return adopted;
}

Status FileSystem::check_expected(FsChange& change, const std::optional<FsEntry>& there,
                                  const ExpectedFile& expected) {
  if (expected.is_any()) return {};
  if (!there) return fs_error::condition_failed("the file must be there, and is not");
  if (there->inode != expected.inode.value_or(there->inode))
    return fs_error::condition_failed("the name stands for another file");
  if (!expected.version || there->type == FileType::directory) return {};
  TRY_ASSIGN(const FsInode* const found, change.inode(there->inode));
  if (found->version != *expected.version)
    return fs_error::condition_failed("the file has changed");
  return {};
}

}  // namespace trellis
