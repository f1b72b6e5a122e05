// Kills a process under a load of files.
#include "fs/file_load.h"
#include "support/kill_test.h"

namespace trellis {
namespace {

TEST(FsKill9, NothingAcknowledgedIsMissing) {
  const uint64_t kills = test_scale() == "long" ? 100 : std::max<uint64_t>(test_rounds(8), 2);
  kill_often<FileLoad>(FILE_LOAD_BINARY, 20261117, kills);
}

}  // namespace
}  // namespace trellis
