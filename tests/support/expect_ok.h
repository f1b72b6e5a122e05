// Results in tests: what must succeed does, or the test fails with the words of its error.
#pragma once

#include <gtest/gtest.h>

#include "base/result.h"

#define EXPECT_OK(expression)                                          \
  do {                                                                 \
    const auto& ok_ = (expression);                                    \
    EXPECT_TRUE(ok_.has_value()) << ::trellis::to_string(ok_.error()); \
  } while (false)
#define ASSERT_OK(expression)                                          \
  do {                                                                 \
    const auto& ok_ = (expression);                                    \
    ASSERT_TRUE(ok_.has_value()) << ::trellis::to_string(ok_.error()); \
  } while (false)
#define EXPECT_CODE(expression, expected)                               \
  do {                                                                  \
    const auto& code_ = (expression);                                   \
    EXPECT_FALSE(code_.has_value());                                    \
    if (!code_.has_value()) {                                           \
      EXPECT_EQ(code_.error().code, expected) << code_.error().message; \
    }                                                                   \
  } while (false)
#define EXPECT_REASON(expression, expected_code, expected_reason)                    \
  do {                                                                               \
    const auto& reason_ = (expression);                                              \
    EXPECT_FALSE(reason_.has_value());                                               \
    if (!reason_.has_value()) {                                                      \
      EXPECT_EQ(reason_.error().code, expected_code) << reason_.error().message;     \
      EXPECT_EQ(reason_.error().reason, expected_reason) << reason_.error().message; \
    }                                                                                \
  } while (false)
