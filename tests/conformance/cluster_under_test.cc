#include <stdexcept>

#include "conformance/engine_fixture.h"
#include "support/cluster_world.h"

namespace trellis {
namespace {

class ClusterUnderTest final : public EngineUnderTest {
 public:
  explicit ClusterUnderTest(RangesChange change) {
    for (const Bytes& at : {raw("b"), raw("c"), raw("list 1"), raw("list 2"), raw("second"),
                            counter(""), counter("p"), Bytes("\xff")})
      world_.split_at(at);
    open_handles();
    if (change == RangesChange::all_the_time) world_.start_changes(1);
  }
  ~ClusterUnderTest() override {
    world_.stop_changes();
    for (const std::string& problem : world_.problems()) ADD_FAILURE() << problem;
  }

  Engine& engine() override { return *clients_[0].engine; }
  Engine& other() override { return *clients_[1].engine; }
  void reopen() override {
    for (ClusterWorld::Client& client : clients_) client.engine.reset();
    open_handles();
  }
  // Both clients die; what they were answered is there.
  void crash(Random&) override {
    for (ClusterWorld::Client& client : clients_) client.store->kill();
    reopen();
  }

 private:
  void open_handles() {
    for (ClusterWorld::Client& client : clients_) client = world_.open_client();
    const Status swept = clients_[0].engine->sweep([&](uint64_t incarnation) {
      return incarnation != clients_[0].engine->incarnation() &&
             incarnation != clients_[1].engine->incarnation();
    });
    if (!swept.has_value()) throw std::runtime_error(to_string(swept.error()));
  }

  ClusterWorld world_;
  ClusterWorld::Client clients_[2];
};

}  // namespace

std::unique_ptr<EngineUnderTest> open_cluster_under_test(RangesChange change) {
  return std::make_unique<ClusterUnderTest>(change);
}

}  // namespace trellis
