#include "resp/resp_parser.h"

#include <gtest/gtest.h>

#include <list>

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
  std::list<Bytes> refusals;  // in place of the words of what is too large
  size_t begin = 0;
  for (const size_t end : marks) {
    for (;;) {
      const ByteView input = all.substr(begin, end - begin);
      const Step step = parser.next(input, limits);
      if (step == Step::more) break;
      if (step == Step::error) {
        heard.error = parser.error();
        return finish();
      }
      if (step == Step::command) parser.take_args(input, lines, args.emplace_back());
      if (step == Step::too_large) {
        Bytes& refusal = refusals.emplace_back(parser.error());
        args.push_back({refusal});
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
  EXPECT_EQ(hear("get \"a\n").error, "ERR Protocol error: unbalanced quotes in request");
  EXPECT_EQ(hear("get \"a\"b\n").error, "ERR Protocol error: unbalanced quotes in request");
  EXPECT_EQ(hear(Bytes(70'000, 'a')).error, "ERR Protocol error: too big inline request");
}

TEST(RespParser, Errors) {
  EXPECT_EQ(hear("*x\r\n").error, "ERR Protocol error: invalid multibulk length");
  EXPECT_EQ(hear("*2147483648\r\n").error, "ERR Protocol error: invalid multibulk length");
  EXPECT_EQ(hear("*20000000000000000000\r\n").error,
            "ERR Protocol error: invalid multibulk length");
  EXPECT_EQ(hear("*1\r\nPING\r\n").error, "ERR Protocol error: expected '$', got 'P'");
  EXPECT_EQ(hear("*1\r\n$-1\r\n").error, "ERR Protocol error: invalid bulk length");
  EXPECT_EQ(hear("*1\r\n$536870913\r\n").error, "ERR Protocol error: invalid bulk length");
  EXPECT_EQ(hear("*" + Bytes(70'000, '1')).error, "ERR Protocol error: too big mbulk count string");
  EXPECT_EQ(hear("*1\r\n$" + Bytes(70'000, '1')).error,
            "ERR Protocol error: too big bulk count string");
  EXPECT_EQ(hear("*11\r\n", RespLimits{.is_stranger = true}).error,
            "ERR Protocol error: unauthenticated multibulk length");
  EXPECT_EQ(hear("*1\r\n$16385\r\n", RespLimits{.is_stranger = true}).error,
            "ERR Protocol error: unauthenticated bulk length");
}

// What is too large is answered in its turn, and costs no memory.
TEST(RespParser, TooLarge) {
  const RespLimits limits{.args_max = 4, .bulk_bytes_max = 6, .command_bytes_max = 40};
  const Bytes ping = "*1\r\n$4\r\nPING\r\n";
  const auto refused = [&](const Bytes& command) {
    const Heard heard = hear(ping + command + ping, limits);
    EXPECT_EQ(heard.error, "");
    EXPECT_EQ(heard.commands.size(), 3U);
    EXPECT_EQ(heard.commands.back(), Words{"PING"});
    return heard.commands.at(1).at(0);
  };
  EXPECT_EQ(refused("*2\r\n$3\r\nGET\r\n$7\r\n1234567\r\n"),
            "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
  EXPECT_EQ(refused("*5\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$0\r\n\r\n$9\r\n123456789\r\n"),
            "ERR a command has at most 4 arguments: send several");
  EXPECT_EQ(refused("*4\r\n$6\r\n123456\r\n$6\r\n123456\r\n$6\r\n123456\r\n$1\r\n1\r\n"),
            "ERR a command has at most 40 bytes (client-query-buffer-limit): send several");

  RespParser parser;
  EXPECT_EQ(parser.next("*2\r\n$9\r\n123", limits), Step::nothing);
  EXPECT_EQ(parser.consumed(), 11U);
  EXPECT_EQ(parser.next("", limits), Step::more);
  EXPECT_EQ(parser.next("456", limits), Step::nothing);
  EXPECT_EQ(parser.next("789", limits), Step::nothing);
  EXPECT_EQ(parser.next("\r", limits), Step::more);
  EXPECT_EQ(parser.next("\r\n$1\r\n1\r", limits), Step::nothing);
  EXPECT_EQ(parser.consumed(), 7U);
  EXPECT_EQ(parser.next("\r\n*", limits), Step::too_large);
  EXPECT_EQ(parser.consumed(), 2U);
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
    const RespLimits limits{
        .args_max = 1 + random.below(4), .bulk_bytes_max = 4, .command_bytes_max = 30};
    ASSERT_EQ(hear(all, marks, limits), hear(all, limits)) << quote(all);
  }
}

}  // namespace
}  // namespace trellis
