// POSIX ACLs: who may do what with a file, beyond its mode. They are kept as the extended
// attributes by which Linux knows them, in the kernel's form, integers little-endian:
//
//   | version u32 = 2 | tag u16, permissions u16, id u32 | ... |
//
// Entries come in this order: the owner (tag 1), users (2), the owning group (4), groups (8), the
// mask (16), all others (32). The mask bounds users and groups, and must be there if one is; it
// shows as the group's bits of the mode.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

inline constexpr ByteView acl_access_name = "system.posix_acl_access";
inline constexpr ByteView acl_default_name = "system.posix_acl_default";

enum class AclTag : uint16_t {
  owner = 0x01,
  user = 0x02,
  owning_group = 0x04,
  group = 0x08,
  mask = 0x10,
  others = 0x20,
};

struct AclEntry {
  AclTag tag;
  uint16_t permissions;  // 4 read, 2 write, 1 execute
  uint32_t id;           // of a user or group; else all ones
  bool operator==(const AclEntry&) const = default;
};
constexpr uint32_t acl_no_id = 0xffff'ffff;

struct PosixAcl {
  std::vector<AclEntry> entries;  // empty: there is none
  bool operator==(const PosixAcl&) const = default;

  // The permission bits that it shows as.
  uint16_t mode() const;
  // Whether the mode says it all.
  bool is_mode_only() const;
  // Makes it show as these bits, as chmod does.
  void set_mode(uint16_t mode);
  // What a file that is made with this mode has by it: no more than both allow.
  void restrict_to(uint16_t mode);

 private:
  AclEntry* find(AclTag tag);
  const AclEntry* find(AclTag tag) const { return const_cast<PosixAcl*>(this)->find(tag); }
  AclEntry& of_group_bits();
};

// Reason of an error: invalid_argument. What has no entries is accepted: it removes an ACL.
Result<PosixAcl> decode_acl(ByteView bytes);
Bytes encode_acl(const PosixAcl& acl);

}  // namespace trellis
