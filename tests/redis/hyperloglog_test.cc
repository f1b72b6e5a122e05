// HyperLogLogs of who may not write.
#include <gtest/gtest.h>

#include "redis_fixture.h"

namespace trellis {
namespace {

class RedisHyperLogLogs : public RedisFixture {};
INSTANTIATE_TEST_SUITE_P(BothWays, RedisHyperLogLogs, testing::Values(Way::latched, Way::expecting),
                         way_name);

// PFCOUNT writes down what it counted; who may only read is told all the same.
TEST_P(RedisHyperLogLogs, AreCountedByReaders) {
  EXPECT_EQ(say("PFADD h a b c"), ":1\r\n");
  const Bytes uncounted = say("GET h");
  const auto reader = connect();
  reader->caller.role = Role::read;
  EXPECT_EQ(say(*reader, "PFADD h d").substr(0, 7), "-NOPERM");
  EXPECT_EQ(say(*reader, "PFCOUNT h"), ":3\r\n");
  EXPECT_EQ(say("GET h"), uncounted);
  EXPECT_EQ(say("PFCOUNT h"), ":3\r\n");
  EXPECT_NE(say("GET h"), uncounted);
  server_->leave(*reader);
}

// It breaks WATCH only where it changes the key.
TEST_P(RedisHyperLogLogs, CountsAreWatched) {
  EXPECT_EQ(say("PFADD h a b c"), ":1\r\n");
  const auto other = connect();
  for (const std::string_view expected : {"*-1\r\n", "*1\r\n:3\r\n"}) {
    EXPECT_EQ(say(*other, "WATCH h"), "+OK\r\n");
    EXPECT_EQ(say("PFCOUNT h"), ":3\r\n");
    EXPECT_EQ(say(*other, "MULTI"), "+OK\r\n");
    EXPECT_EQ(say(*other, "PFCOUNT h"), "+QUEUED\r\n");
    EXPECT_EQ(say(*other, "EXEC"), expected);
  }
  server_->leave(*other);
}

}  // namespace
}  // namespace trellis
