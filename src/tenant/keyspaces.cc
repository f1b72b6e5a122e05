#include "tenant/keyspaces.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <shared_mutex>

#include "base/limits.h"
#include "base/log.h"
#include "base/utf8.h"
#include "codec/stored_message.h"
#include "codec/system_keys.h"
#include "keyspace.pb.h"
#include "tenant/gc.h"
#include "tenant/sha256.h"

namespace trellis {
namespace {

constexpr uint32_t ids_at_once = 100;  // PD's window; what is left of it at a restart is skipped
constexpr uint64_t request_kept_ms = 24ull * 3600 * 1000;
constexpr unsigned attempts_max = 100;
constexpr size_t page_bytes_max = 1024 * 1024;  // of a list, about: a config may have 64 KiB
const Caller itself{Role::server_admin, "trellis"};
// What PD sets by itself: dropped if a client gives it.
constexpr std::string_view config_dropped[] = {"tso_keyspace_group_id", "meta_service_group_id",
                                               "meta_service_group_addrs"};
// What would move a tenant's data or its GC elsewhere.
constexpr std::string_view config_refused[] = {"gc_management_type", "region_bound_type"};

Error not_found(std::string_view which) {
  return {Code::not_found, fmt::format("keyspace {} does not exist", which), "keyspace_not_found"};
}

Result<uint32_t> decode_id(const Value& value) {
  const ByteView text = value.bytes();
  uint32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id > keyspace_id_max)
    return Error{Code::corrupt, "a stored keyspace id does not make sense"};
  return id;
}

Status check_config(const Config& config) {
  size_t bytes = 0;
  for (const auto& [key, value] : config) {
    bytes += key.size() + value.size();
    if (key.empty() || !is_utf8(key) || !is_utf8(value))
      return Error{Code::invalid, "a config key is empty, or the config is not UTF-8 text",
                   "illegal_config"};
  }
  if (bytes > keyspace_config_bytes_max)
    return Error{Code::too_large,
                 fmt::format("the config of a keyspace has at most {} bytes, this one has {}",
                             keyspace_config_bytes_max, bytes),
                 "config_too_large"};
  return {};
}

std::optional<std::string> config_value(const Config& config, const std::string& key) {
  const auto found = config.find(key);
  return found == config.end() ? std::nullopt : std::optional(found->second);
}

// Everything that makes one create request another.
Bytes digest_of(const Keyspaces::Creation& creation) {
  Bytes all;
  const auto add = [&](std::string_view part) {
    append_be64(all, part.size());
    all += part;
  };
  add(creation.name);
  add(creation.id ? std::to_string(*creation.id) : "");
  for (const auto& [key, value] : creation.config) {
    add(key);
    add(value);
  }
  return sha256(all);
}

bool is_allowed(KeyspaceState from, KeyspaceState to) {
  using enum KeyspaceState;
  switch (from) {
    case enabled: return to == disabled;
    case disabled: return to == enabled || to == archived;
    case archived: return to == disabled || to == tombstone;
    case tombstone: return false;
  }
  return false;
}

// Those who watch the log are told of it too: at worst they look once more for nothing.
bool is_maybe(const Status& status) { return !status && status.error().code == Code::maybe; }

Bytes due_key(uint64_t due_ms, KeyspaceId id, DueJob job, ByteView detail = {}) {
  return encode(KeyspaceDueKey{due_ms, id, job, detail});
}

void remember_request(View& view, const Keyspaces::Creation& creation, KeyspaceId made,
                      uint64_t now_ms) {
  stored::CreateRequest request;
  request.set_keyspace(made.value);
  request.set_digest(digest_of(creation));
  request.set_forget_at_ms(now_ms + request_kept_ms);
  view.put(encode(KeyspaceRequestKey{creation.request_id}), encode_message(request));
  view.put(due_key(now_ms + request_kept_ms, made, DueJob::request, creation.request_id),
           due_entry_value);
}

}  // namespace

struct Keyspaces::ChangeOf {
  const char* action;
  const Caller& caller;
  // More than the keyspace's own records: nobody may use it meanwhile, or other keys change too.
  bool alone = false;
  std::vector<Bytes> keys = {};
  std::string_view name = {};  // must still be its name
};

struct Keyspaces::Attempt {
  KeyspaceId id;
  bool id_taken = false;
  std::optional<KeyspaceId> made_before;
  Keyspace keyspace;
};

Keyspaces::Keyspaces(MapHandle map, KeyspacesOptions options)
    : map_(map), options_(options), changes_(map, options.changes) {}

Result<std::unique_ptr<Keyspaces>> Keyspaces::open(MapHandle map, KeyspacesOptions options) {
  std::unique_ptr<Keyspaces> keyspaces(new Keyspaces(map, options));
  TRY(keyspaces->make_default());
  return keyspaces;
}

Status Keyspaces::make_default() {
  const Bytes meta_key = encode(KeyspaceMetaKey{default_keyspace});
  const Bytes name_key = encode(KeyspaceNameKey{default_keyspace_name});
  Scope scope = Scope::system();
  scope.exclusive(meta_key).exclusive(name_key);
  ChangeLog::lock(scope);
  return map_.transact(scope, [&](View& view) -> Status {
    Value value;
    TRY(view.get(meta_key, value));
    if (value.found()) return {};
    Keyspace keyspace;
    keyspace.id = default_keyspace;
    keyspace.name = default_keyspace_name;
    keyspace.created_at_s = keyspace.state_changed_at_s = map_.clock.unix_ms() / 1'000;
    Change change{.actor = itself.name,
                  .action = "create",
                  .keyspace = keyspace.id,
                  .name = keyspace.name,
                  .detail = {},
                  .after = keyspace};
    TRY(changes_.append(view, change));
    view.put(meta_key, encode_keyspace(*change.after));
    view.put(name_key, "0");
    return {};
  });
}

// --- create ---

Result<KeyspaceId> Keyspaces::next_id() {
  const std::lock_guard lock(ids_mutex_);
  if (ids_next_ == ids_end_) {
    const Bytes key = encode(KeyspaceAllocatorKey{});
    uint32_t last = 0;
    uint32_t end = 0;
    const auto reserve = [&](View& view) -> Status {
      Value value;
      TRY(view.get(key, value));
      last = 0;
      if (value.found()) {
        TRY_ASSIGN(last, decode_id(value));
      }
      if (last >= keyspace_id_max)
        return Error{Code::invalid, "all keyspace ids are used: ids are never given twice",
                     "ids_exhausted"};
      end = std::min(last + ids_at_once, keyspace_id_max);
      view.put(key, std::to_string(end));
      return {};
    };
    // Whatever the durability of the rest: an id whose keyspace a power cut took is not given
    // again.
    TRY(map_.transact_durably(Scope::system().exclusive(key), reserve));
    ids_next_ = last + 1;
    ids_end_ = end + 1;
  }
  return KeyspaceId{ids_next_++};
}

Result<Keyspace> Keyspaces::create(const Creation& asked, const Caller& caller) {
  Creation creation = asked;
  for (const std::string_view key : config_dropped)
    if (const auto found = creation.config.find(key); found != creation.config.end())
      creation.config.erase(found);
  TRY(check_new_keyspace_name(creation.name));
  TRY(check_config(creation.config));
  if (creation.id && (*creation.id == 0 || *creation.id > keyspace_id_max))
    return Error{Code::invalid,
                 fmt::format("keyspace id {} is not from 1 to {}", *creation.id, keyspace_id_max),
                 "illegal_id"};
  if (creation.request_id.size() > request_id_bytes_max)
    return Error{Code::invalid,
                 fmt::format("a request id has at most {} bytes", request_id_bytes_max),
                 "illegal_request_id"};
  for (;;) {
    Attempt attempt;
    if (creation.id) {
      attempt.id = KeyspaceId{static_cast<uint32_t>(*creation.id)};
    } else {
      // Not for a name that is taken: ids are not given back.
      TRY_ASSIGN(const auto taken, find_id(creation.name));
      if (taken && creation.request_id.empty())
        return Error{Code::exists, fmt::format("keyspace {} already exists", quote(creation.name)),
                     "keyspace_exists"};
      if (!taken) {
        TRY_ASSIGN(attempt.id, next_id());
      }
    }
    const Status status = try_create(creation, caller, attempt);
    if (is_maybe(status)) changes_.announce();
    TRY(status);
    if (attempt.made_before) return load(*attempt.made_before);
    if (attempt.id_taken) continue;  // somebody chose it by number: ours is the next one
    changes_.announce();
    return attempt.keyspace;
  }
}

Status Keyspaces::try_create(const Creation& creation, const Caller& caller, Attempt& attempt) {
  const Bytes meta_key = encode(KeyspaceMetaKey{attempt.id});
  const Bytes name_key = encode(KeyspaceNameKey{creation.name});
  const Bytes request_key = encode(KeyspaceRequestKey{creation.request_id});
  Scope scope = Scope::system();
  scope.exclusive(meta_key).exclusive(name_key);
  if (!creation.request_id.empty()) scope.exclusive(request_key);
  const Bytes restore_key = encode(KeyspaceRestoreKey{attempt.id, {}});
  if (creation.restore_record) scope.exclusive(restore_key);
  ChangeLog::lock(scope);
  const auto check_request = [&](View& view) -> Result<bool> {
    Value value;
    TRY(view.get(request_key, value));
    if (!value.found()) return false;
    stored::CreateRequest request;
    TRY(decode_message(value.bytes(), request, "create request"));
    if (request.digest() != digest_of(creation))
      return Error{Code::invalid,
                   fmt::format("request id {} was used for another request: use a new one",
                               quote(creation.request_id)),
                   "request_reused"};
    attempt.made_before = KeyspaceId{request.keyspace()};
    return true;
  };
  return map_.transact(scope, [&](View& view) -> Status {
    attempt.made_before.reset();
    attempt.id_taken = false;
    if (!creation.request_id.empty()) {
      TRY_ASSIGN(const bool known, check_request(view));
      if (known) return {};
    }
    Value value;
    TRY(view.get(name_key, value));
    if (value.found())
      return Error{Code::exists, fmt::format("keyspace {} already exists", quote(creation.name)),
                   "keyspace_exists"};
    TRY(view.get(meta_key, value));
    if (value.found() && creation.id)
      return Error{Code::exists, fmt::format("keyspace id {} is or was in use", *creation.id),
                   "keyspace_exists"};
    attempt.id_taken = value.found();
    if (attempt.id_taken) return {};

    const uint64_t now_ms = map_.clock.unix_ms();
    Keyspace keyspace;
    keyspace.id = attempt.id;
    keyspace.name = creation.name;
    keyspace.created_at_s = keyspace.state_changed_at_s = now_ms / 1'000;
    keyspace.config = creation.config;
    keyspace.quota = creation.quota;
    if (creation.restore_record) keyspace.state = KeyspaceState::tombstone;
    Change change{.actor = caller.name,
                  .action = "create",
                  .keyspace = keyspace.id,
                  .name = keyspace.name,
                  .detail = {},
                  .after = std::move(keyspace)};
    TRY(changes_.append(view, change));
    view.put(meta_key, encode_keyspace(*change.after));
    view.put(name_key, std::to_string(attempt.id.value));
    if (creation.restore_record) view.put(restore_key, *creation.restore_record);
    if (!creation.request_id.empty()) remember_request(view, creation, attempt.id, now_ms);
    attempt.keyspace = std::move(*change.after);
    return {};
  });
}

// --- load and list ---

Result<std::optional<KeyspaceId>> Keyspaces::find_id(std::string_view name) {
  Value value;
  TRY(map_.engine.get(encode(KeyspaceNameKey{name}), value));
  if (!value.found()) return std::optional<KeyspaceId>();
  TRY_ASSIGN(const uint32_t id, decode_id(value));
  return std::optional(KeyspaceId{id});
}

Result<Keyspace> Keyspaces::load(std::string_view name) {
  for (unsigned attempt = 0; attempt < attempts_max; attempt++) {
    TRY_ASSIGN(const auto id, find_id(name));
    if (!id) return not_found(quote(name));
    auto keyspace = load(*id);
    if (!keyspace || keyspace->name == name) return keyspace;
    // It was renamed between the two reads.
  }
  return Error{Code::conflict, fmt::format("keyspace {} changes all the time", quote(name))};
}

Result<Keyspace> Keyspaces::load(KeyspaceId id) {
  Value value;
  TRY(map_.engine.get(encode(KeyspaceMetaKey{id}), value));
  if (!value.found()) return not_found(std::to_string(id.value));
  return decode_keyspace(value.bytes());
}

Result<Keyspaces::Page> Keyspaces::list(KeyspaceId from, size_t limit) {
  Page page;
  size_t bytes = 0;
  Status bad;
  Bytes begin = encode(KeyspaceMetaKey{from});
  const Bytes end = successor(encode(KeyspaceMetaKey{KeyspaceId{keyspace_id_max}}));
  const auto visit = [&](ByteView, ByteView value) {
    auto keyspace = decode_keyspace(value);
    if (!keyspace) {
      bad = std::move(keyspace).error();
      return Visit::stop;
    }
    if (keyspace->purged_at_s != 0) return Visit::go_on;
    if (page.keyspaces.size() == limit || bytes >= page_bytes_max) {
      page.next = keyspace->id;
      return Visit::stop;
    }
    bytes += value.size();
    page.keyspaces.push_back(std::move(*keyspace));
    return Visit::go_on;
  };
  while (!page.next) {
    // By its own measure: of a page of one there may be many purged ones to pass over. The visitor
    // stops it.
    TRY_ASSIGN(ScanPage scanned,
               map_.engine.scan({.begin = begin, .end = end, .entries_max = 4'096}, visit));
    TRY(bad);
    if (!scanned.resume) break;
    begin = std::move(*scanned.resume);
  }
  return page;
}

// --- changes ---

Result<Keyspace> Keyspaces::change_id(KeyspaceId id, const ChangeOf& what, Edit edit) {
  const Bytes meta_key = encode(KeyspaceMetaKey{id});
  const Bytes name_key = encode(KeyspaceNameKey{what.name});
  Scope scope = what.alone ? Scope::all_of(id) : Scope::system();
  scope.exclusive(meta_key);
  if (!what.name.empty()) scope.exclusive(name_key);
  for (const Bytes& key : what.keys) scope.exclusive(key);
  ChangeLog::lock(scope);
  Keyspace keyspace;
  bool changed = false;
  const Status status = map_.transact_durably(scope, [&](View& view) -> Status {
    Value value;
    if (!what.name.empty()) {
      TRY(view.get(name_key, value));
      if (!value.found()) return not_found(quote(what.name));
      TRY_ASSIGN(const uint32_t named, decode_id(value));
      if (named != id.value) return Error{Code::conflict, "renamed meanwhile", "renamed"};
    }
    TRY(view.get(meta_key, value));
    if (!value.found()) return not_found(std::to_string(id.value));
    TRY_ASSIGN(keyspace, decode_keyspace(value.bytes()));
    const std::string name = keyspace.name;
    TRY_ASSIGN(const auto detail, edit(view, keyspace));
    changed = detail.has_value();
    if (!changed) return {};
    Change change{.actor = what.caller.name,
                  .action = what.action,
                  .keyspace = id,
                  .name = name,
                  .detail = *detail,
                  .after = keyspace};
    TRY_ASSIGN(keyspace.revision, changes_.append(view, change));
    view.put(meta_key, encode_keyspace(keyspace));
    doubt(id, keyspace.state);
    return {};
  });
  if (is_maybe(status)) changes_.announce();
  TRY(status);
  if (!changed) return keyspace;
  log_info("keyspace changed", {{"keyspace", keyspace.name},
                                {"id", id.value},
                                {"action", what.action},
                                {"by", what.caller.name},
                                {"revision", keyspace.revision}});
  changes_.announce();
  return keyspace;
}

Result<Keyspace> Keyspaces::change(std::string_view name, const ChangeOf& what, Edit edit) {
  ChangeOf named = what;
  named.name = name;
  for (unsigned attempt = 0; attempt < attempts_max; attempt++) {
    TRY_ASSIGN(const auto id, find_id(name));
    if (!id) return not_found(quote(name));
    auto keyspace = change_id(*id, named, edit);
    if (keyspace || keyspace.error().reason != "renamed") return keyspace;
  }
  return Error{Code::conflict, fmt::format("keyspace {} changes all the time", quote(name))};
}

Result<Keyspace> Keyspaces::patch_config(KeyspaceId id, const ConfigPatch& patch,
                                         const ConfigPatch& preconditions, const Caller& caller) {
  const auto edit = [&](View&, Keyspace& keyspace) -> Result<std::optional<std::string>> {
    if (keyspace.state > KeyspaceState::disabled)
      return Error{
          Code::conflict,
          fmt::format("cannot change config for keyspace with state {}", to_string(keyspace.state)),
          "config_locked"};
    for (const auto& [key, expected] : preconditions) {
      const auto actual = config_value(keyspace.config, key);
      if (actual == expected) continue;
      return Error{Code::refused,
                   fmt::format("keyspace config precondition failed, key={} expected={} actual={}",
                               key, expected.value_or("<absent>"), actual.value_or("<absent>")),
                   "precondition_failed"};
    }
    std::string changed;  // keys, for the log
    for (const auto& [key, value] : patch) {
      if (std::ranges::find(config_dropped, key) != std::end(config_dropped)) continue;
      if (std::ranges::find(config_refused, key) != std::end(config_refused))
        return Error{Code::invalid, fmt::format("the config key {} cannot be changed", key),
                     "config_key_refused"};
      if (config_value(keyspace.config, key) == value) continue;
      if (value) {
        keyspace.config.insert_or_assign(key, *value);
      } else {
        keyspace.config.erase(key);
      }
      changed += changed.empty() ? key : ", " + key;
    }
    TRY(check_config(keyspace.config));
    if (changed.empty()) return std::optional<std::string>();
    return std::optional(std::move(changed));
  };
  return change_id(id, {.action = "config", .caller = caller}, edit);
}

Result<Keyspace> Keyspaces::set_quota(std::string_view name, const QuotaPatch& patch,
                                      const Caller& caller) {
  const auto edit = [&](View&, Keyspace& keyspace) -> Result<std::optional<std::string>> {
    Quota quota = keyspace.quota;
    quota.bytes = patch.bytes.value_or(quota.bytes);
    quota.keys = patch.keys.value_or(quota.keys);
    quota.operations_per_second = patch.operations_per_second.value_or(quota.operations_per_second);
    if (keyspace.quota == quota) return std::optional<std::string>();
    keyspace.quota = quota;
    return std::optional(fmt::format("bytes {}, keys {}, operations per second {}", quota.bytes,
                                     quota.keys, quota.operations_per_second));
  };
  return change(name, {.action = "quota", .caller = caller}, edit);
}

Result<Keyspace> Keyspaces::rename(std::string_view name, std::string_view new_name,
                                   const Caller& caller) {
  TRY(check_new_keyspace_name(new_name));
  const Bytes old_key = encode(KeyspaceNameKey{name});
  const Bytes new_key = encode(KeyspaceNameKey{new_name});
  const auto edit = [&](View& view, Keyspace& keyspace) -> Result<std::optional<std::string>> {
    if (keyspace.id == default_keyspace)
      return Error{Code::invalid, "the default keyspace keeps its name", "default_keyspace"};
    if (name == new_name) return std::optional<std::string>();
    Value value;
    TRY(view.get(new_key, value));
    if (value.found())
      return Error{Code::exists, fmt::format("keyspace {} already exists", quote(new_name)),
                   "keyspace_exists"};
    view.remove(old_key);
    view.put(new_key, std::to_string(keyspace.id.value));
    keyspace.name = new_name;
    return std::optional(fmt::format("{} -> {}", name, new_name));
  };
  return change(name, {.action = "rename", .caller = caller, .keys = {new_key}}, edit);
}

// --- life and death ---

Result<std::optional<std::string>> Keyspaces::edit_state(View& view, Keyspace& keyspace,
                                                         KeyspaceState to) {
  const KeyspaceState from = keyspace.state;
  if (from == to) return std::optional<std::string>();
  if (keyspace.id == default_keyspace)
    return Error{Code::invalid, "cannot modify default keyspace's state", "default_keyspace"};
  if (!is_allowed(from, to))
    return Error{
        Code::conflict,
        fmt::format("cannot change keyspace state from {} to {}", to_string(from), to_string(to)),
        "illegal_state_change"};
  const uint64_t now_ms = map_.clock.unix_ms();
  if (from == KeyspaceState::archived) {
    view.remove(due_key(keyspace.retire_at_ms, keyspace.id, DueJob::retire));
    keyspace.retire_at_ms = 0;
  }
  if (to == KeyspaceState::archived) {
    keyspace.retire_at_ms = now_ms + options_.archive_retention_ms;
    view.put(due_key(keyspace.retire_at_ms, keyspace.id, DueJob::retire), due_entry_value);
  }
  if (to == KeyspaceState::tombstone) {
    view.remove(encode(KeyspaceNameKey{keyspace.name}));
    view.put(due_key(now_ms, keyspace.id, DueJob::purge), due_entry_value);
  }
  keyspace.state = to;
  keyspace.state_changed_at_s = now_ms / 1'000;
  return std::optional(fmt::format("{} -> {}", to_string(from), to_string(to)));
}

Result<Keyspace> Keyspaces::set_state(std::string_view name, KeyspaceState to,
                                      const Caller& caller) {
  const auto edit = [&](View& view, Keyspace& keyspace) { return edit_state(view, keyspace, to); };
  auto keyspace = change(name, {.action = "state", .caller = caller, .alone = true}, edit);
  wake_collector_();
  return keyspace;
}

Status Keyspaces::retire(KeyspaceId id, uint64_t due_ms) {
  TRY_ASSIGN(const Keyspace before, load(id));
  const auto edit = [&](View& view, Keyspace& keyspace) -> Result<std::optional<std::string>> {
    // Then its name is not in the scope. The collector comes again.
    if (keyspace.name != before.name) return Error{Code::conflict, "renamed meanwhile", "renamed"};
    if (keyspace.state != KeyspaceState::archived || keyspace.retire_at_ms != due_ms) {
      view.remove(due_key(due_ms, id, DueJob::retire));
      return std::optional<std::string>();
    }
    // The clock was set back: the entry stays.
    if (due_ms > map_.clock.unix_ms()) return std::optional<std::string>();
    return edit_state(view, keyspace, KeyspaceState::tombstone);
  };
  const auto keyspace = change_id(id,
                                  {.action = "state",
                                   .caller = {Role::server_admin, "retention"},
                                   .alone = true,
                                   .keys = {encode(KeyspaceNameKey{before.name})}},
                                  edit);
  if (!keyspace) return keyspace.error();
  return {};
}

Status Keyspaces::bury(KeyspaceId id, uint64_t due_ms) {
  std::vector<std::pair<Bytes, Bytes>> intervals;
  append_gc_intervals(id, intervals);
  const Bytes tokens = encode(KeyspaceTokenKey{id, {}});
  intervals.emplace_back(tokens, prefix_end(tokens));
  std::vector<Bytes> keys;
  for (const auto& [begin, end] : intervals) keys.push_back(begin);
  const auto edit = [&](View& view, Keyspace& keyspace) -> Result<std::optional<std::string>> {
    view.remove(due_key(due_ms, id, DueJob::purge));
    if (keyspace.state != KeyspaceState::tombstone || keyspace.purged_at_s != 0)
      return std::optional<std::string>();
    for (const auto& [begin, end] : intervals) view.remove_range(begin, end);
    keyspace.purged_at_s = std::max<uint64_t>(map_.clock.unix_ms() / 1'000, 1);
    keyspace.config.clear();
    return std::optional<std::string>("all data is removed");
  };
  const auto keyspace = change_id(
      id, {.action = "purge", .caller = itself, .alone = true, .keys = std::move(keys)}, edit);
  if (!keyspace) return keyspace.error();
  if (keyspace->purged_at_s != 0) forget(id);
  return {};
}

// --- restoring ---

Result<Keyspace> Keyspaces::finish_restore(KeyspaceId id, KeyspaceState state, ByteView record,
                                           const Caller& caller) {
  const Bytes restore_key = encode(KeyspaceRestoreKey{id, {}});
  const auto edit = [&](View& view, Keyspace& keyspace) -> Result<std::optional<std::string>> {
    Value value;
    TRY(view.get(restore_key, value));
    if (keyspace.state != KeyspaceState::tombstone || !value.found())
      return Error{Code::conflict, fmt::format("{} is not being restored", quote(keyspace.name)),
                   "not_restoring"};
    view.put(restore_key, record);
    keyspace.state = state;
    keyspace.state_changed_at_s = map_.clock.unix_ms() / 1'000;
    return std::optional<std::string>(to_string(state));
  };
  TRY_ASSIGN(const auto held, tenant(id));
  auto keyspace = change_id(
      id, {.action = "restore", .caller = caller, .alone = true, .keys = {restore_key}}, edit);
  held->doubt_figures();  // it did not see what was written
  return keyspace;
}

Status Keyspaces::abandon_restore(KeyspaceId id, const Caller& caller) {
  TRY_ASSIGN(const Keyspace before, load(id));
  const Bytes name_key = encode(KeyspaceNameKey{before.name});
  const Bytes records = encode(KeyspaceRestoreKey{id, {}});
  const auto edit = [&](View& view, Keyspace& keyspace) -> Result<std::optional<std::string>> {
    if (keyspace.name != before.name) return Error{Code::conflict, "renamed meanwhile", "renamed"};
    Value value;
    TRY(view.get(records, value));
    if (keyspace.state != KeyspaceState::tombstone || !value.found())
      return std::optional<std::string>();
    view.remove(records);
    view.remove(name_key);
    view.put(due_key(map_.clock.unix_ms(), id, DueJob::purge), due_entry_value);
    return std::optional<std::string>("abandoned");
  };
  const auto keyspace = change_id(
      id, {.action = "restore", .caller = caller, .alone = true, .keys = {records, name_key}},
      edit);
  if (!keyspace) return keyspace.error();
  wake_collector_();
  return {};
}

// --- tenants ---

Result<std::shared_ptr<Tenant>> Keyspaces::tenant(std::string_view name) {
  if (map_.latched()) {
    const std::shared_lock lock(tenants_mutex_);
    // The name may have gone to another keyspace since.
    const auto found = tenants_by_name_.find(std::string(name));
    if (found != tenants_by_name_.end() && found->second->is_named(name)) return found->second;
  }
  TRY_ASSIGN(const Keyspace keyspace, load(name));
  TRY_ASSIGN(auto held, tenant(keyspace.id));
  const std::lock_guard lock(tenants_mutex_);
  if (tenants_by_name_.size() >= options_.tenants_max) tenants_by_name_.clear();
  tenants_by_name_.insert_or_assign(std::string(name), held);
  return held;
}

Result<std::shared_ptr<Tenant>> Keyspaces::tenant(KeyspaceId id) {
  {
    const std::shared_lock lock(tenants_mutex_);
    if (const auto found = tenants_.find(id); found != tenants_.end()) return found->second;
  }
  TRY_ASSIGN(const Keyspace keyspace, load(id));
  const std::lock_guard lock(tenants_mutex_);
  if (tenants_.size() >= options_.tenants_max) make_room();
  // Whatever was read is only proof that it exists: a Tenant reads its own truth.
  return tenants_.try_emplace(id, std::make_shared<Tenant>(map_, keyspace.id)).first->second;
}

// The Tenant of a keyspace that changes, if it is in memory, hears of it before the change is made:
// one that is made meanwhile reads its own truth, for which it needs the latches of the change.
// Without latches each operation reads what is stored anyway.
void Keyspaces::doubt(KeyspaceId id, KeyspaceState next) {
  if (!map_.latched()) return;
  const std::shared_lock lock(tenants_mutex_);
  if (const auto found = tenants_.find(id); found != tenants_.end()) found->second->doubt(next);
}

// Forgets tenants that nobody holds and nobody used since the last time; if all were used, then
// those that nobody holds. REQUIRES: tenants_mutex_ is held.
void Keyspaces::make_room() {
  tenants_by_name_.clear();
  const auto unheld = [](const auto& entry) { return entry.second.use_count() == 1; };
  const auto idle = [&](const auto& entry) { return unheld(entry) && !entry.second->take_used(); };
  if (std::erase_if(tenants_, idle) == 0) std::erase_if(tenants_, unheld);
}

void Keyspaces::forget(KeyspaceId id) {
  const std::lock_guard lock(tenants_mutex_);
  tenants_.erase(id);
  std::erase_if(tenants_by_name_, [&](const auto& entry) { return entry.second->id() == id; });
}

size_t Keyspaces::active_tenants_count() const {
  const std::shared_lock lock(tenants_mutex_);
  return tenants_.size();
}

std::vector<std::shared_ptr<Tenant>> Keyspaces::active_tenants() const {
  std::vector<std::shared_ptr<Tenant>> tenants;
  const std::shared_lock lock(tenants_mutex_);
  tenants.reserve(tenants_.size());
  for (const auto& [id, tenant] : tenants_) tenants.push_back(tenant);
  return tenants;
}

}  // namespace trellis
