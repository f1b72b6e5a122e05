#include "fs/posix_acl.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

// As `getfattr -e hex -n system.posix_acl_access` shows what
// `setfacl -m u:1000:rw-,g:100:r-x,m::rwx` makes of mode 0640.
constexpr const char* named_hex =
    "02000000"
    "01000600ffffffff"
    "02000600e8030000"
    "04000400ffffffff"
    "0800050064000000"
    "10000700ffffffff"
    "20000000ffffffff";

PosixAcl named() { return *decode_acl(*from_hex(named_hex)); }

TEST(PosixAcl, IsWhatTheKernelWrites) {
  const PosixAcl acl = named();
  const std::vector<AclEntry> expected{
      {AclTag::owner, 6, acl_no_id},        {AclTag::user, 6, 1000},
      {AclTag::owning_group, 4, acl_no_id}, {AclTag::group, 5, 100},
      {AclTag::mask, 7, acl_no_id},         {AclTag::others, 0, acl_no_id}};
  EXPECT_EQ(acl.entries, expected);
  EXPECT_EQ(to_hex(encode_acl(acl)), named_hex);
  EXPECT_EQ(acl.mode(), 0670);
  EXPECT_FALSE(acl.is_mode_only());
}

TEST(PosixAcl, TheMaskIsTheGroupOfTheMode) {
  PosixAcl acl = named();
  acl.set_mode(0751);
  EXPECT_EQ(acl.mode(), 0751);
  EXPECT_EQ(acl.entries[0].permissions, 7);
  EXPECT_EQ(acl.entries[2].permissions, 4) << "the owning group keeps its own";
  EXPECT_EQ(acl.entries[4].permissions, 5);
  EXPECT_EQ(acl.entries[5].permissions, 1);

  PosixAcl plain{{{AclTag::owner, 7, acl_no_id},
                  {AclTag::owning_group, 5, acl_no_id},
                  {AclTag::others, 4, acl_no_id}}};
  EXPECT_TRUE(plain.is_mode_only());
  EXPECT_EQ(plain.mode(), 0754);
  plain.set_mode(0640);
  EXPECT_EQ(plain.entries[1].permissions, 4);

  PosixAcl inherited = named();
  inherited.restrict_to(0644);
  EXPECT_EQ(inherited.mode(), 0640);
  EXPECT_EQ(inherited.entries[1].permissions, 6) << "bounded by the mask alone";
}

TEST(PosixAcl, WhatHasNoEntriesIsNone) {
  const auto none = decode_acl(*from_hex("02000000"));
  ASSERT_OK(none);
  EXPECT_TRUE(none->entries.empty());
}

TEST(PosixAcl, WrongOnesAreRefused) {
  const char* const wrong[] = {
      "",
      "02",
      "01000000",
      "0200000001",
      "0200000001000700ffffffff",                                                  // too few
      "020000000100070000000000040007000000000021000700ffffffff",                  // no such tag
      "0200000001000f00ffffffff04000700ffffffff20000700ffffffff",                  // no such right
      "0200000004000700ffffffff01000700ffffffff20000700ffffffff",                  // out of order
      "0200000001000700ffffffff01000700ffffffff04000700ffffffff20000700ffffffff",  // twice
      "0200000001000700ffffffff02000700e803000004000700ffffffff20000700ffffffff",  // no mask
      "0200000001000700ffffffff02000700ffffffff04000700ffffffff10000700ffffffff20000700ffffffff",
  };
  for (const char* hex : wrong) {
    const auto acl = decode_acl(*from_hex(hex));
    ASSERT_FALSE(acl.has_value()) << hex;
    EXPECT_EQ(acl.error().reason, "invalid_argument") << hex;
  }
}

TEST(PosixAcl, AnyBytesAreAnAclOrAnError) {
  const uint64_t seed = test_seed(20261116);
  SCOPED_TRACE(seed);
  Random random(seed);
  size_t accepted = 0;
  for (int round = 0; round < 20'000; round++) {
    Bytes bytes = *from_hex(named_hex);
    for (uint64_t changes = 1 + random.below(3); changes > 0; changes--)
      bytes[random.below(bytes.size())] =
          static_cast<char>(random.below(random.below(2) ? 8 : 256));
    const auto acl = decode_acl(bytes);
    if (!acl) continue;
    accepted++;
    const auto again = decode_acl(encode_acl(*acl));
    ASSERT_OK(again);
    EXPECT_EQ(*again, *acl);
    PosixAcl changed = *acl;
    changed.set_mode(0123);
    EXPECT_EQ(changed.mode(), 0123);
  }
  EXPECT_GT(accepted, 100u);
}

}  // namespace
}  // namespace trellis
