// The fuzzer's entry point on seeded input: commands of every kind, of which some make no sense,
// and mutations of them.
#include <gtest/gtest.h>

#include "base/random.h"
#include "redis/command.h"
#include "support/resp_fuzz.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

constexpr std::string_view words[] = {
    "a",
    "b",
    "c",
    "{k}",
    "0",
    "1",
    "-1",
    "2",
    "10",
    "3.5",
    "inf",
    "(1",
    "[a",
    "-",
    "+",
    "*",
    "LIMIT",
    "COUNT",
    "MATCH",
    "GET",
    "EX",
    "PX",
    "NX",
    "XX",
    "GT",
    "CH",
    "INCR",
    "WITHSCORES",
    "BYLEX",
    "REV",
    "LEFT",
    "RIGHT",
    "AGGREGATE",
    "SUM",
    "WEIGHTS",
    "STORE",
    "ALPHA",
    "DESC",
    "SETNAME",
    "AUTH",
    "",
    "a\r\nb",
    "9223372036854775807",
    "100000",
    "KEEPTTL",
    "REPLACE",
    "DB",
};
constexpr std::string_view broken[] = {
    "*x\r\n",
    "*1\r\n$-1\r\n",
    "*1\r\n:1\r\n",
    "PING\r\n",
    "SET a \"b\r\n",
    "*0\r\n",
    "\r\n",
    "*2\r\n$4\r\nECHO\r\n$20000000\r\n",
    "*2000000\r\n$1\r\na\r\n",
    "GET a\n",
    "*-1\r\n",
};

Bytes bulk(ByteView word) {
  return "$" + std::to_string(word.size()) + "\r\n" + Bytes(word) + "\r\n";
}

Bytes random_command(Random& random) {
  if (random.one_in(12)) return Bytes(broken[random.below(std::size(broken))]);
  const auto commands = all_commands();
  const Command& command = *commands[random.below(commands.size())];
  Bytes out = bulk(command.name);
  uint64_t count = static_cast<uint64_t>(std::abs(command.arity));
  count = std::max<uint64_t>(count, 1) - 1 + (random.one_in(2) ? random.below(4) : 0);
  for (uint64_t i = 0; i < count; i++) out += bulk(words[random.below(std::size(words))]);
  return "*" + std::to_string(count + 1) + "\r\n" + out;
}

TEST(RespFuzz, SplitsDoNotMatter) {
  Random random(test_seed(1));
  for (int round = 0; round < 1'500; round++) {
    Bytes input = random.bytes(2);
    for (uint64_t i = random.below(20); i > 0; i--) input += random_command(random);
    if (random.one_in(3) && input.size() > 4)
      input[2 + random.below(input.size() - 2)] = static_cast<char>(random.below(256));
    fuzz_resp(input);
  }
}

}  // namespace
}  // namespace trellis
