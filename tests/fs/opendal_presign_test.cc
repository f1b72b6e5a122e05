// 4 cases, none of which the suite would run: presign_write, presign_stat, presign_read and
// presign_delete need URLs that carry a signature, which a library has none of. Here is instead
// what every case of the suite is about: how errors are called.
#include "fs/opendal_fixture.h"

namespace trellis {
namespace {

TEST(OpendalErrorKinds, has_every_reason_once) {
  const auto kind_of = [](Code code, std::string_view reason) {
    return to_string(file_error_kind({code, "", reason}));
  };
  EXPECT_EQ(kind_of(Code::not_found, "no_entry"), "NotFound");
  EXPECT_EQ(kind_of(Code::refused, "condition_failed"), "ConditionNotMatch");
  EXPECT_EQ(kind_of(Code::refused, "not_empty"), "NotEmpty");
  EXPECT_EQ(kind_of(Code::invalid, "is_same_file"), "IsSameFile");
  EXPECT_EQ(kind_of(Code::invalid, "range_not_satisfied"), "RangeNotSatisfied");
  EXPECT_EQ(kind_of(Code::invalid, "is_a_directory"), "IsADirectory");
  EXPECT_EQ(kind_of(Code::invalid, "not_a_directory"), "NotADirectory");
  EXPECT_EQ(kind_of(Code::denied, "role_too_weak"), "PermissionDenied");
  EXPECT_EQ(kind_of(Code::exhausted, "directory_quota_exceeded"), "QuotaExceeded");
  EXPECT_EQ(kind_of(Code::exhausted, "rate_exceeded"), "RateLimited");
  EXPECT_EQ(kind_of(Code::unsupported, ""), "Unsupported");
  EXPECT_EQ(kind_of(Code::no_space, ""), "NoSpace");
  EXPECT_EQ(kind_of(Code::unavailable, ""), "Unexpected");
  EXPECT_TRUE(is_temporary({Code::unavailable, ""}));
  EXPECT_FALSE(is_temporary({Code::not_found, "", "no_entry"}));
}

}  // namespace
}  // namespace trellis
