// A store on a PowerLossFileSystem, and short words for what tests do with it.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "support/power_loss_file_system.h"

namespace trellis {

class StoreFixture : public testing::Test {
 protected:
  void SetUp() override { setup_log(LogLevel::error, LogFormat::text); }

  RocksdbOptions options() {
    return {.path = "/store", .clock = clock_, .cache_bytes = 8 << 20, .env = env_.get()};
  }
  Result<std::unique_ptr<RocksdbEngine>> try_open() { return open_rocksdb_engine(options()); }
  std::unique_ptr<RocksdbEngine> open() {
    auto engine = try_open();
    if (engine.has_value()) return std::move(*engine);
    ADD_FAILURE() << to_string(engine.error());
    std::abort();  // nothing below could work
  }

  static Status put(Engine& engine, ByteView key, ByteView value,
                    Durability durability = Durability::off) {
    Commit one;
    one.writes.put(key, value);
    one.durability = durability;
    return commit(engine, one);
  }
  // "(none)" if there is nothing, the error if there is one.
  static Bytes get(Engine& engine, ByteView key) {
    Value value;
    const Status status = engine.get(key, value);
    if (!status.has_value()) return to_string(status.error());
    return value.found() ? Bytes(value.bytes()) : "(none)";
  }

  // The files of the store whose names end so.
  std::vector<std::string> files_ending(std::string_view ending) const {
    std::vector<std::string> out = files_->files("/store");
    std::erase_if(out, [&](const std::string& path) { return !path.ends_with(ending); });
    return out;
  }
  void flip_byte(const std::string& path, size_t at) {
    std::string content = files_->read_file(path);
    ASSERT_LT(at, content.size()) << path;
    content[at] = static_cast<char>(content[at] ^ 0x40);
    files_->replace_file(path, content);
  }

  FakeClock clock_{1'700'000'000'000};
  std::shared_ptr<PowerLossFileSystem> files_ = std::make_shared<PowerLossFileSystem>();
  std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(files_);
};

}  // namespace trellis
