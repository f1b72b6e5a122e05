#include "resp/resp_parser.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

using Step = RespParser::Step;
using Words = std::vector<Bytes>;

// Everything that a stream of bytes says, given in pieces that end at the marks.
struct Heard {
  std::vector<Words> commands;
  std::string error;
  bool operator==(const Heard&) const = default;
};

Heard hear(ByteView all, const std::vector<size_t>& marks, const RespLimits& limits = {}) {
  Heard heard;
  RespParser parser;
  RespParser::Lines lines;
  std::vector<std::vector<ByteView>> args;  // looked at when all are parsed, as the server does
  const auto finish = [&] {
    for (const auto& command : args) heard.commands.emplace_back(command.begin(), command.end());
    return heard;
  };
  size_t begin = 0;
  for (const size_t end : marks) {
    for (;;) {
      const ByteView input = all.substr(begin, end - begin);
      const Step step = parser.next(input, limits);
      if (step == Step::more) {
        EXPECT_GT(parser.wanted(), input.size());
        break;
      }
      if (step == Step::error) {
        heard.error = parser.error();
        return finish();
      }
      if (step == Step::command) {
        args.push_back(parser.args(input, lines));
      }
      begin += parser.consumed();
    }
  }
  return finish();
}

Heard hear(ByteView all, const RespLimits& limits = {}) { return hear(all, {all.size()}, limits); }

TEST(RespParser, Commands) {
  EXPECT_EQ(hear("*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n").commands,
            (std::vector<Words>{{"GET", "a"}, {"PING"}}));
  EXPECT_EQ(hear("*1\r\n$0\r\n\r\n").commands, (std::vector<Words>{{""}}));
  EXPECT_EQ(hear("*0\r\n*-1\r\n\r\n*1\r\n$2\r\n\r\n\r\n").commands, (std::vector<Words>{{"\r\n"}}));
}

TEST(RespParser, Lines) {
  EXPECT_EQ(hear("PING\r\n").commands, (std::vector<Words>{{"PING"}}));
  EXPECT_EQ(hear("  set \"a b\" '\\'x' \"\\x41\\n\" ab\n").commands,
            (std::vector<Words>{{"set", "a b", "'x", "A\n", "ab"}}));
  EXPECT_EQ(hear("\r\n\n  \nPING\n").commands, (std::vector<Words>{{"PING"}}));
  EXPECT_EQ(hear("get \"a\n").error, "Protocol error: unbalanced quotes in request");
  EXPECT_EQ(hear("get \"a\"b\n").error, "Protocol error: unbalanced quotes in request");
  EXPECT_EQ(hear(Bytes(70'000, 'a')).error, "Protocol error: too big inline request");
}

TEST(RespParser, Errors) {
  EXPECT_EQ(hear("*x\r\n").error, "Protocol error: invalid multibulk length");
  EXPECT_EQ(hear("*2147483648\r\n").error, "Protocol error: invalid multibulk length");
  EXPECT_EQ(hear("*20000000000000000000\r\n").error, "Protocol error: invalid multibulk length");
  EXPECT_EQ(hear("*1\r\nPING\r\n").error, "Protocol error: expected '$', got 'P'");
  EXPECT_EQ(hear("*1\r\n$-1\r\n").error, "Protocol error: invalid bulk length");
  EXPECT_EQ(hear("*1\r\n$536870913\r\n").error, "Protocol error: invalid bulk length");
  EXPECT_EQ(hear("*" + Bytes(70'000, '1')).error, "Protocol error: too big mbulk count string");
  EXPECT_EQ(hear("*1\r\n$" + Bytes(70'000, '1')).error,
            "Protocol error: too big bulk count string");
  EXPECT_EQ(hear("*11\r\n", stranger_limits).error,
            "Protocol error: unauthenticated multibulk length");
  EXPECT_EQ(hear("*1\r\n$16385\r\n", stranger_limits).error,
            "Protocol error: unauthenticated bulk length");
}

// However the bytes are cut, they say the same.
TEST(RespParser, CutsDoNotMatter) {
  Random random(test_seed(1));
  constexpr std::string_view alphabet = "*$0123-\r\n\r\n\r\nab\"'\\x ";
  for (int round = 0; round < 20'000; round++) {
    Bytes all;
    for (uint64_t i = random.below(6); i > 0; i--) {
      if (random.below(3) == 0) {
        for (uint64_t n = random.below(12); n > 0; n--)
          all.push_back(alphabet[random.below(alphabet.size())]);
      } else {
        const uint64_t args = random.below(4);
        all += "*" + std::to_string(args) + "\r\n";
        for (uint64_t n = 0; n < args; n++) {
          const Bytes arg = random.bytes(random.below(5));
          all += "$" + std::to_string(arg.size()) + "\r\n" + arg + "\r\n";
        }
      }
    }
    std::vector<size_t> marks;
    for (size_t at = 0; at < all.size();) {
      at = std::min(all.size(), at + 1 + random.below(4));
      marks.push_back(at);
    }
    ASSERT_EQ(hear(all, marks), hear(all)) << quote(all);
  }
}

}  // namespace
}  // namespace trellis
