#include "fs/posix_acl.h"

#include <algorithm>

#include "base/assert.h"
#include "fs/fs_error.h"

namespace trellis {
namespace {

constexpr uint32_t acl_version = 2;
constexpr size_t acl_head_bytes = 4;
constexpr size_t acl_entry_bytes = 8;

uint32_t load_le(ByteView bytes, size_t offset, size_t width) {
  uint32_t number = 0;
  for (size_t i = width; i-- > 0;)
    number = number << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return number;
}

void append_le(Bytes& out, uint32_t number, size_t width) {
  for (size_t i = 0; i < width; i++) out.push_back(static_cast<char>(number >> (8 * i)));
}

bool has_id(AclTag tag) { return tag == AclTag::user || tag == AclTag::group; }

bool is_tag(AclTag tag) {
  switch (tag) {
    case AclTag::owner:
    case AclTag::user:
    case AclTag::owning_group:
    case AclTag::group:
    case AclTag::mask:
    case AclTag::others: return true;
  }
  return false;
}

Status check_acl(const std::vector<AclEntry>& entries) {
  uint16_t last = 0;
  uint16_t seen = 0;
  for (const AclEntry& entry : entries) {
    if (!is_tag(entry.tag)) return fs_error::invalid("an ACL has an entry of no known kind");
    if (entry.permissions > 7) return fs_error::invalid("an ACL grants no known permission");
    if (has_id(entry.tag) && entry.id == acl_no_id)
      return fs_error::invalid("an ACL's user or group has no id");
    const auto tag = static_cast<uint16_t>(entry.tag);
    // Tags rise with the order of entries; only users and groups come more than once.
    if (tag < last || (tag == last && !has_id(entry.tag)))
      return fs_error::invalid("an ACL's entries are out of order");
    last = tag;
    seen |= tag;
  }
  constexpr uint16_t needed = 0x01 | 0x04 | 0x20;
  if ((seen & needed) != needed)
    return fs_error::invalid("an ACL needs entries for owner, owning group and others");
  if ((seen & (0x02 | 0x08)) != 0 && (seen & 0x10) == 0)
    return fs_error::invalid("an ACL that names users or groups needs a mask");
  return {};
}

}  // namespace

Result<PosixAcl> decode_acl(ByteView bytes) {
  if (bytes.size() < acl_head_bytes || (bytes.size() - acl_head_bytes) % acl_entry_bytes != 0)
    return fs_error::invalid("an ACL has no such size");
  if (load_le(bytes, 0, 4) != acl_version) return fs_error::invalid("this is no ACL of version 2");
  PosixAcl acl;
  for (size_t at = acl_head_bytes; at < bytes.size(); at += acl_entry_bytes) {
    AclEntry entry{.tag = static_cast<AclTag>(load_le(bytes, at, 2)),
                   .permissions = static_cast<uint16_t>(load_le(bytes, at + 2, 2)),
                   .id = load_le(bytes, at + 4, 4)};
    if (!has_id(entry.tag)) entry.id = acl_no_id;
    acl.entries.push_back(entry);
  }
  if (!acl.entries.empty()) TRY(check_acl(acl.entries));
  return acl;
}

Bytes encode_acl(const PosixAcl& acl) {
  Bytes out;
  append_le(out, acl_version, 4);
  for (const AclEntry& entry : acl.entries) {
    append_le(out, static_cast<uint16_t>(entry.tag), 2);
    append_le(out, entry.permissions, 2);
    append_le(out, entry.id, 4);
  }
  return out;
}

AclEntry* PosixAcl::find(AclTag tag) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const AclEntry& entry) { return entry.tag == tag; });
  return found == entries.end() ? nullptr : &*found;
}

AclEntry& PosixAcl::of_group_bits() {
  AclEntry* const mask = find(AclTag::mask);
  AclEntry* const shown = mask != nullptr ? mask : find(AclTag::owning_group);
  ASSERT(shown != nullptr);
  return *shown;
}

uint16_t PosixAcl::mode() const {
  const AclEntry& group = const_cast<PosixAcl*>(this)->of_group_bits();
  return static_cast<uint16_t>(find(AclTag::owner)->permissions << 6 | group.permissions << 3 |
                               find(AclTag::others)->permissions);
}

bool PosixAcl::is_mode_only() const {
  return std::none_of(entries.begin(), entries.end(), [](const AclEntry& entry) {
    return has_id(entry.tag) || entry.tag == AclTag::mask;
  });
}

void PosixAcl::set_mode(uint16_t mode) {
  find(AclTag::owner)->permissions = mode >> 6 & 7;
  of_group_bits().permissions = mode >> 3 & 7;
  find(AclTag::others)->permissions = mode & 7;
}

void PosixAcl::restrict_to(uint16_t mode) { set_mode(this->mode() & mode); }

}  // namespace trellis
