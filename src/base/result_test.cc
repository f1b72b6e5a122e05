#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace trellis {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return Error{Code::invalid, "odd"};
  return number / 2;
}

Result<int> quarter(int number) {
  TRY_ASSIGN(const int once, half(number));
  TRY_ASSIGN(const int twice, half(once));  // two in one scope: the hidden names differ
  return twice;
}

Status check_even(int number, bool& reached_end) {
  TRY(half(number));
  reached_end = true;
  return {};
}

TEST(Result, TryAssignGoesOnOrReturnsTheError) {
  EXPECT_EQ(quarter(8).value(), 2);
  ASSERT_FALSE(quarter(6).has_value());
  EXPECT_EQ(quarter(6).error().code, Code::invalid);
  EXPECT_EQ(quarter(6).error().message, "odd");
}

TEST(Result, TryGoesOnOrReturnsTheError) {
  bool reached_end = false;
  EXPECT_TRUE(check_even(2, reached_end).has_value());
  EXPECT_TRUE(reached_end);
  reached_end = false;
  EXPECT_EQ(check_even(3, reached_end).error().message, "odd");
  EXPECT_FALSE(reached_end);
}

TEST(Result, TryEvaluatesOnce) {
  int calls = 0;
  auto counted = [&]() -> Status {
    calls++;
    return {};
  };
  auto run = [&]() -> Status {
    TRY(counted());
    return {};
  };
  EXPECT_TRUE(run().has_value());
  EXPECT_EQ(calls, 1);
}

TEST(Result, TryIsOneStatement) {
  auto run = [](bool choose) -> Status {
    if (choose)
      TRY(Status(Error{Code::busy, "chosen"}));
    else
      return Error{Code::busy, "other"};
    return {};
  };
  EXPECT_EQ(run(true).error().message, "chosen");
  EXPECT_EQ(run(false).error().message, "other");
}

TEST(Result, MovesWhatCannotBeCopied) {
  auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(7); };
  auto use = [&]() -> Result<int> {
    TRY_ASSIGN(std::unique_ptr<int> owned, make());
    return *owned;
  };
  EXPECT_EQ(use().value(), 7);
}

TEST(Result, AbsenceIsNotAnError) {
  auto absent = []() -> Result<std::optional<int>> { return std::nullopt; };
  ASSERT_TRUE(absent().has_value());
  EXPECT_FALSE(absent()->has_value());
}

// Result<bool> must copy the bool inside, not whether there is one. (tl::expected takes anything
// that converts to bool as a value, and a Result does.)
TEST(Result, OfBoolCopiesItsValue) {
  std::vector<Result<bool>> all = {false, true, Error{Code::busy, "text"}};
  for (size_t i = 0; i < all.size(); i++) {
    SCOPED_TRACE(i);
    Result<bool> copy(all[i]);
    Result<bool> braced{all[i]};
    Result<bool> assigned = true;
    assigned = all[i];
    Result<bool> moved(std::move(all[i]));
    for (const Result<bool>& result : {copy, braced, assigned, moved}) {
      ASSERT_EQ(result.has_value(), i < 2);
      if (i < 2) {
        EXPECT_EQ(*result, i == 1);
      } else {
        EXPECT_EQ(result.error().message, "text");
      }
    }
  }
}

TEST(Result, DefaultStatusIsSuccess) {
  EXPECT_TRUE(Status().has_value());
  discard(Status(Error{Code::busy, "dropped on purpose"}));
}

TEST(Error, Text) {
  const Error error = with_context("open /data", Error{Code::busy, "in use"});
  EXPECT_EQ(error.code, Code::busy);
  EXPECT_EQ(error.message, "open /data: in use");
  EXPECT_EQ(to_string(error), "busy: open /data: in use");
}

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Code::maybe); code++)
    names.insert(to_string(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), static_cast<size_t>(Code::maybe) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace trellis
