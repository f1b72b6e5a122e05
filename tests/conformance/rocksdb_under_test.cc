#include <rocksdb/env.h>

#include <stdexcept>

#include "base/clock.h"
#include "base/log.h"
#include "conformance/engine_fixture.h"
#include "rocksdb_engine/rocksdb_engine.h"
#include "support/power_loss_file_system.h"

namespace trellis {
namespace {

class RocksdbUnderTest final : public EngineUnderTest {
 public:
  RocksdbUnderTest() {
    setup_log(LogLevel::error, LogFormat::text);  // RocksDB warns of every crash
    open();
  }
  Engine& engine() override { return *engine_; }
  void reopen() override {
    engine_.reset();
    open();
  }
  void crash(Random& random) override {
    files_->cut_power(random);
    engine_.reset();
    files_->restore_power();
    open();
  }

 private:
  void open() {
    auto opened = open_rocksdb_engine(
        {.path = "/store", .clock = clock_, .cache_bytes = size_t{8} << 20, .env = env_.get()});
    // Ends the test, and only it: nothing can go on without an engine.
    if (!opened.has_value()) throw std::runtime_error(to_string(opened.error()));
    engine_ = std::move(*opened);
  }

  SystemClock clock_;
  const std::shared_ptr<PowerLossFileSystem> files_ = std::make_shared<PowerLossFileSystem>();
  const std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(files_);
  std::unique_ptr<RocksdbEngine> engine_;
};

}  // namespace

std::unique_ptr<EngineUnderTest> open_rocksdb_under_test() {
  return std::make_unique<RocksdbUnderTest>();
}

}  // namespace trellis
