#include <gtest/gtest.h>

#include "codec/fs_keys.h"
#include "fs/files_backend.h"
#include "support/cluster_world.h"

namespace trellis {
namespace {

class ClusterFiles final : public FilesBackend {
 public:
  ClusterFiles() {
    for (const Bytes& at : {encode(FsInodeKey{files_keyspace, InodeId{2}}),
                            encode(FsInodeKey{files_keyspace, InodeId{20}}),
                            encode(FsEntryKey{files_keyspace, InodeId{1}, {}}),
                            encode(FsEntryKey{files_keyspace, InodeId{1}, "m"}),
                            encode(FsEntryKey{files_keyspace, InodeId{18}, "f"})})
      world_.split_at(at);
    for (ClusterWorld::Client& client : clients_) client = world_.open_client();
  }
  ~ClusterFiles() override {
    for (const std::string& problem : world_.problems()) ADD_FAILURE() << problem;
  }
  std::vector<Engine*> handles() override {
    return {clients_[0].engine.get(), clients_[1].engine.get()};
  }

 private:
  ClusterWorld world_;
  ClusterWorld::Client clients_[2];
};

}  // namespace

std::unique_ptr<FilesBackend> open_cluster_files() { return std::make_unique<ClusterFiles>(); }

}  // namespace trellis
