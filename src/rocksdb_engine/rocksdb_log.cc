#include "rocksdb_engine/rocksdb_log.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/log.h"

namespace trellis {

namespace {

class RocksdbLogger final : public rocksdb::Logger {
 public:
  RocksdbLogger() : rocksdb::Logger(rocksdb::InfoLogLevel::ERROR_LEVEL) {}
  using rocksdb::Logger::Logv;
  // Only what passes the level comes here. What matters of it reaches a caller as an error too.
  void Logv(const char* format, va_list arguments) override {
    char line[512];
    const int size = std::vsnprintf(line, sizeof line, format, arguments);
    if (size < 0) return;
    const size_t kept = std::min(static_cast<size_t>(size), sizeof line - 1);
    log_warn("rocksdb", {{"says", std::string_view(line, kept)}});
  }
  // Start-up headers go round the level.
  void LogHeader(const char*, va_list) override {}
};

}  // namespace

std::shared_ptr<rocksdb::Logger> make_rocksdb_logger() { return std::make_shared<RocksdbLogger>(); }

}  // namespace trellis
