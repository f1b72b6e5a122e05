// A disk that is nearly full: what adds data is refused, reads and what makes room go on.
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include "base/log.h"
#include "redis_client.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "support/expect_ok.h"
#include "support/power_loss_file_system.h"

namespace trellis {
namespace {

constexpr uint64_t mib = 1 << 20;

class RedisRoom : public testing::Test {
 protected:
  void SetUp() override {
    setup_log(LogLevel::error, LogFormat::text);
    open();
  }

  void open() {
    auto engine = open_rocksdb_engine({.path = "/store",
                                       .clock = clock_,
                                       .cache_bytes = 8 * mib,
                                       .disk_reserve_bytes = 8 * mib,
                                       .room_period = std::chrono::milliseconds(1),
                                       .env = env_.get()});
    ASSERT_OK(engine);
    engine_ = std::move(*engine);
    auto stack = RedisStack::open(*engine_, clock_, Durability::everysec);
    ASSERT_OK(stack);
    stack_ = std::move(*stack);
    client_ = stack_->connect();
  }

  // So much is free from now on, and noticed.
  void set_free(uint64_t bytes, bool is_low) {
    files_->set_capacity(std::nullopt);
    uint64_t free_bytes = 0;
    ASSERT_TRUE(env_->GetFreeSpace("/", &free_bytes).ok());
    files_->set_capacity((uint64_t{1} << 40) - free_bytes + bytes);
    wait_until([&] { return engine_->room().has_value() != is_low; });
  }
  template <class Probe>
  void wait_until(Probe probe) {
    for (int i = 0; i < 30'000 && !probe(); i++) clock_.pause_us(1'000);
    EXPECT_TRUE(probe());
  }

  // Replies of commands, each in its own words: "ok" if it is none of a disk that is nearly full.
  std::string word(Words command) {
    const Bytes reply = client_->say_one(std::move(command));
    if (reply.starts_with("-MISCONF the disk is nearly full")) return "refused";
    return reply.starts_with("-") ? reply : "ok";
  }

  SystemClock clock_;
  std::shared_ptr<PowerLossFileSystem> files_ = std::make_shared<PowerLossFileSystem>();
  std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(files_);
  std::unique_ptr<RocksdbEngine> engine_;
  std::unique_ptr<RedisStack> stack_;
  std::unique_ptr<RedisClient> client_;
};

TEST_F(RedisRoom, OnlyWhatMakesRoomIsWritten) {
  const std::vector<Words> before{{"MSET", "a", "12345", "b", "12345", "n", "1"},
                                  {"HSET", "h", "f", "1", "g", "2"},
                                  {"RPUSH", "l", "1", "2", "3"},
                                  {"ZADD", "z", "1", "a", "2", "b"},
                                  {"SADD", "s", "1", "2"},
                                  {"SELECT", "1"},
                                  {"RPUSH", "l", "1", "2", "3"},
                                  {"SELECT", "0"}};
  ASSERT_EQ(client_->say(before).size(), before.size());
  set_free(4 * mib, true);
  struct Row {
    Words command;
    const char* answer;
  };
  const Row rows[] = {
      {{"SET", "new", "1"}, "refused"},
      {{"SET", "a", "123456"}, "refused"},
      {{"INCR", "n"}, "refused"},
      {{"HSET", "h", "f", "3", "i", "1"}, "refused"},
      {{"RPUSH", "l", "4"}, "refused"},
      {{"EXPIRE", "a", "100"}, "refused"},
      {{"SET", "tiny", "1", "EX", "100"}, "refused"},
      {{"RENAME", "h", "h2"}, "refused"},
      {{"COPY", "h", "h2"}, "refused"},
      {{"GET", "a"}, "ok"},
      {{"HGETALL", "h"}, "ok"},
      {{"SCAN", "0"}, "ok"},
      {{"DEL", "nothing"}, "ok"},
      {{"SET", "a", "1"}, "ok"},  // shorter
      {{"LPOP", "l"}, "ok"},
      {{"HDEL", "h", "f"}, "ok"},
      {{"ZREM", "z", "a"}, "ok"},
      {{"SPOP", "s"}, "ok"},
      {{"DEL", "h"}, "ok"},
      {{"UNLINK", "b"}, "ok"},
      {{"PEXPIRE", "a", "-1"}, "ok"},
      {{"FLUSHDB"}, "ok"},
      {{"FLUSHALL"}, "ok"},
  };
  for (const Row& row : rows) EXPECT_EQ(word(row.command), row.answer) << row.command[0];
  EXPECT_EQ(client_->say_one({"DBSIZE"}), ":0\r\n");

  // Each of a pipeline has its own answer.
  set_free(100 * mib, false);
  EXPECT_EQ(word({"SET", "a", "1"}), "ok");
  set_free(4 * mib, true);
  const std::vector<Words> pipeline{{"SET", "b", "1"}, {"DEL", "a"}, {"SET", "c", "1"}};
  const std::vector<Bytes> replies = client_->say(pipeline);
  EXPECT_TRUE(replies.at(0).starts_with("-MISCONF")) << replies[0];
  EXPECT_EQ(replies.at(1), ":1\r\n");
  EXPECT_TRUE(replies.at(2).starts_with("-MISCONF")) << replies[2];
}

TEST_F(RedisRoom, BelowTheFloorNothingIsWrittenUntilThereIsRoom) {
  EXPECT_EQ(word({"SET", "a", "1"}), "ok");
  set_free(1 * mib, true);
  wait_until([&] { return word({"DEL", "a"}) == "refused"; });
  EXPECT_EQ(client_->say_one({"GET", "a"}), "$1\r\n1\r\n");
  set_free(100 * mib, false);
  EXPECT_EQ(word({"SET", "b", "1"}), "ok");
  EXPECT_EQ(word({"DEL", "a"}), "ok");
}

// What a store says that opens on a disk that is nearly full.
TEST_F(RedisRoom, OpensAndServesReads) {
  EXPECT_EQ(word({"SET", "a", "1"}), "ok");
  client_.reset();
  stack_.reset();
  engine_.reset();
  files_->set_capacity(std::nullopt);
  uint64_t free_bytes = 0;
  ASSERT_TRUE(env_->GetFreeSpace("/", &free_bytes).ok());
  files_->set_capacity((uint64_t{1} << 40) - free_bytes + 1 * mib);
  open();
  EXPECT_EQ(client_->say_one({"GET", "a"}), "$1\r\n1\r\n");
  EXPECT_EQ(word({"SET", "a", "2"}), "refused");
}

}  // namespace
}  // namespace trellis
