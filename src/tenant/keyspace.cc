#include "tenant/keyspace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/limits.h"
#include "codec/stored_message.h"
#include "keyspace.pb.h"
#include "tenant/keyspace_message.h"

namespace trellis {
namespace {

constexpr std::array state_names{"ENABLED", "DISABLED", "ARCHIVED", "TOMBSTONE"};
constexpr std::array role_names{"read", "write", "admin", "server admin"};
// DEFAULT is keyspace 0; SYSTEM is what PD calls its own.
constexpr std::array<std::string_view, 2> reserved_names{default_keyspace_name, "SYSTEM"};

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

}  // namespace

std::string_view to_string(KeyspaceState state) { return state_names[static_cast<size_t>(state)]; }

std::optional<KeyspaceState> parse_keyspace_state(std::string_view text) {
  for (size_t i = 0; i < state_names.size(); i++)
    if (same_letters(text, state_names[i])) return static_cast<KeyspaceState>(i);
  return std::nullopt;
}

std::string_view to_string(Role role) { return role_names[static_cast<size_t>(role)]; }

std::optional<Role> parse_role(std::string_view text) {
  for (const Role role : {Role::read, Role::write, Role::admin})
    if (text == to_string(role)) return role;
  return std::nullopt;
}

Status check_new_keyspace_name(std::string_view name) {
  if (name.empty() || name.size() > keyspace_name_bytes_max ||
      !std::ranges::all_of(name, is_name_byte))
    return Error{
        Code::invalid,
        fmt::format("illegal keyspace name {}: use 1 to {} letters, digits, - and _",
                    quote(name.substr(0, 2 * keyspace_name_bytes_max)), keyspace_name_bytes_max),
        "illegal_name"};
  if (std::ranges::find(reserved_names, name) != reserved_names.end())
    return Error{
        Code::invalid,
        fmt::format("{} collides with a protected keyspace name: choose another", quote(name)),
        "reserved_name"};
  return {};
}

void fill_message(const Keyspace& keyspace, stored::KeyspaceMeta& meta) {
  meta.set_id(keyspace.id.value);
  meta.set_name(keyspace.name);
  meta.set_state(static_cast<stored::KeyspaceState>(keyspace.state));
  meta.set_created_at(static_cast<int64_t>(keyspace.created_at_s));
  meta.set_state_changed_at(static_cast<int64_t>(keyspace.state_changed_at_s));
  for (const auto& [key, value] : keyspace.config) (*meta.mutable_config())[key] = value;
  if (keyspace.quota != Quota()) {
    meta.mutable_quota()->set_bytes(keyspace.quota.bytes);
    meta.mutable_quota()->set_keys(keyspace.quota.keys);
    meta.mutable_quota()->set_operations_per_second(keyspace.quota.operations_per_second);
  }
  meta.set_revision(keyspace.revision);
  meta.set_retire_at_ms(keyspace.retire_at_ms);
  meta.set_purged_at(keyspace.purged_at_s);
}

Result<Keyspace> keyspace_of(const stored::KeyspaceMeta& meta) {
  if (meta.id() > keyspace_id_max || meta.state() < stored::ENABLED ||
      meta.state() > stored::TOMBSTONE || meta.created_at() < 0 || meta.state_changed_at() < 0)
    return Error{Code::corrupt, "the stored keyspace does not make sense"};
  Keyspace keyspace;
  keyspace.id = KeyspaceId{meta.id()};
  keyspace.name = meta.name();
  keyspace.state = static_cast<KeyspaceState>(meta.state());
  keyspace.created_at_s = static_cast<uint64_t>(meta.created_at());
  keyspace.state_changed_at_s = static_cast<uint64_t>(meta.state_changed_at());
  keyspace.config = Config(meta.config().begin(), meta.config().end());
  keyspace.quota = {.bytes = meta.quota().bytes(),
                    .keys = meta.quota().keys(),
                    .operations_per_second = meta.quota().operations_per_second()};
  keyspace.revision = meta.revision();
  keyspace.retire_at_ms = meta.retire_at_ms();
  keyspace.purged_at_s = meta.purged_at();
  return keyspace;
}

Bytes encode_keyspace(const Keyspace& keyspace) {
  stored::KeyspaceMeta meta;
  fill_message(keyspace, meta);
  return serialize(meta);
}

Result<Keyspace> decode_keyspace(ByteView bytes) {
  stored::KeyspaceMeta meta;
  // Zeros and nothing at all are a message too, to protobuf.
  if (!meta.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || meta.name().empty())
    return Error{Code::corrupt, "the stored keyspace does not make sense"};
  return keyspace_of(meta);
}

Status check_access(const Caller& caller, Access access, KeyspaceState state,
                    std::string_view keyspace_name) {
  const bool admin = caller.role >= Role::admin;
  const auto denied = [&](const char* text, std::string_view reason) {
    return Error{Code::denied, fmt::format("keyspace {} {}", quote(keyspace_name), text), reason};
  };
  if (state == KeyspaceState::tombstone)
    return denied("is gone: its data is being removed", "keyspace_gone");
  if (state == KeyspaceState::archived && access == Access::write)
    return denied("is archived and read-only: undo that first", "keyspace_archived");
  if (state == KeyspaceState::archived && !admin)
    return denied("is archived: only admins may read it", "keyspace_archived");
  if (state == KeyspaceState::disabled && !admin)
    return denied("is disabled: an admin can enable it", "keyspace_disabled");
  if (static_cast<uint8_t>(caller.role) < static_cast<uint8_t>(access))
    return Error{Code::denied,
                 fmt::format("this needs a token with role {}, and this one has {}",
                             to_string(static_cast<Role>(access)), to_string(caller.role)),
                 "role_too_weak"};
  return {};
}

}  // namespace trellis
