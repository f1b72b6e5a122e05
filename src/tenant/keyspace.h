// A keyspace is a tenant: what is known of one, who may do what in it, and what its names may be.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "base/strong_id.h"

namespace trellis {

// ENABLED serves; DISABLED serves admins only; ARCHIVED lets admins read; TOMBSTONE is collected.
// The numbers are those of the stored message.
enum class KeyspaceState : uint8_t { enabled, disabled, archived, tombstone };

std::string_view to_string(KeyspaceState state);                           // "ENABLED"
std::optional<KeyspaceState> parse_keyspace_state(std::string_view text);  // in any case

// 0: no limit.
struct Quota {
  uint64_t bytes = 0;
  uint64_t keys = 0;
  uint64_t operations_per_second = 0;
  bool operator==(const Quota&) const = default;
};

// Absent: stays as it is.
struct QuotaPatch {
  std::optional<uint64_t> bytes = {};
  std::optional<uint64_t> keys = {};
  std::optional<uint64_t> operations_per_second = {};
};

using Config = std::map<std::string, std::string, std::less<>>;

struct Keyspace {
  KeyspaceId id;
  std::string name;
  KeyspaceState state = KeyspaceState::enabled;
  uint64_t created_at_s = 0;
  uint64_t state_changed_at_s = 0;
  Config config;
  Quota quota;
  uint64_t revision = 0;      // of its last change
  uint64_t retire_at_ms = 0;  // while archived: when it becomes a tombstone
  uint64_t purged_at_s = 0;   // when the last of its data was collected; only its id is kept
  bool operator==(const Keyspace&) const = default;
};

inline constexpr KeyspaceId default_keyspace{0};
inline constexpr std::string_view default_keyspace_name = "DEFAULT";

// ^[-A-Za-z0-9_]{1,64}$, and not reserved. Reasons: illegal_name, reserved_name.
Status check_new_keyspace_name(std::string_view name);

// The stored form (keyspace.proto), the seed's message. Decoding is total.
Bytes encode_keyspace(const Keyspace& keyspace);
Result<Keyspace> decode_keyspace(ByteView bytes);

// What a caller may do, each including those before it. A server admin is an admin of every
// keyspace.
enum class Role : uint8_t { read, write, admin, server_admin };
std::string_view to_string(Role role);
std::optional<Role> parse_role(std::string_view text);  // read, write, admin

enum class Access : uint8_t { read, write, admin };

// Who asks. The name goes into the log of administrative actions.
struct Caller {
  Role role;
  std::string name;
};

// Whether the role allows the access in that state; reasons: keyspace_disabled, keyspace_archived,
// keyspace_gone, role_too_weak.
Status check_access(const Caller& caller, Access access, KeyspaceState state,
                    std::string_view keyspace_name);

}  // namespace trellis
