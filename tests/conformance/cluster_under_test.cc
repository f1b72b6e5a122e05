#include <stdexcept>
#include <thread>

#include "cluster_engine/cluster_engine.h"
#include "cluster_engine/range_audit.h"
#include "cluster_engine/range_change.h"
#include "cluster_engine/range_lookup.h"
#include "conformance/engine_fixture.h"
#include "object_store/fake_object_store.h"
#include "object_store/faulty_object_store.h"

namespace trellis {
namespace {

// Splits and merges at random, until it is told to stop.
class RangeChanger {
 public:
  explicit RangeChanger(ObjectStore& store) : store_(store) {}

  // Where keys of the suite are on both sides.
  void split_at(ByteView at) {
    const Result<RangeHeader> range = find_range(store_, at);
    if (!range.has_value() || range->state != RangeState::live || range->start == at) return;
    discard(split_range(store_, *range, at, RangeId{++last_id_}));
  }
  void change(Random& random) {
    if (random.one_in(2)) return split_at(random_place(random));
    std::vector<RangeHeader> ranges;
    discard(for_each_range(store_, [&](const RangeHeader& range) {
      ranges.push_back(range);
      return Visit::go_on;
    }));
    if (ranges.size() < 2) return;
    const size_t left = random.below(ranges.size() - 1);
    if (ranges[left].end == ranges[left + 1].start)
      discard(merge_ranges(store_, ranges[left], ranges[left + 1]));
  }

 private:
  static Bytes random_place(Random& random) {
    switch (random.below(4)) {
      case 0: return raw("list " + std::to_string(random.below(3)));
      case 1: return counter(Bytes(1, "anz"[random.below(3)]));
      case 2: return Bytes(1, static_cast<char>(4 + random.below(250)));
      default: break;
    }
    Bytes name;
    for (uint64_t i = 1 + random.below(2); i > 0; i--)
      name.push_back("abcdez\xff"[random.below(7)]);
    return raw(name);
  }

  ObjectStore& store_;
  uint64_t last_id_ = first_range_id.value;
};

class ClusterUnderTest final : public EngineUnderTest {
 public:
  explicit ClusterUnderTest(RangesChange change) {
    if (!bootstrap_ranges(store_).has_value()) throw std::runtime_error("no first range");
    for (const Bytes& at : {raw("b"), raw("c"), raw("list 1"), raw("list 2"), raw("second"),
                            counter(""), counter("p"), Bytes("\xff")})
      changer_.split_at(at);
    open_handles();
    if (change == RangesChange::never) return;
    thread_ = std::thread([this] {
      Random random(1);
      while (!enough_) {
        const uint64_t start_us = clock_.monotonic_us();
        changer_.change(random);
        clock_.pause_us(clock_.monotonic_us() - start_us + random.below(500));  // half of the time
      }
    });
  }
  ~ClusterUnderTest() override {
    enough_ = true;
    if (thread_.joinable()) thread_.join();
    one_.reset();
    two_.reset();
    const Result<RangeAudit> audit = audit_ranges(store_);
    EXPECT_OK(audit);
    if (!audit.has_value()) return;
    for (const std::string& problem : audit->problems) ADD_FAILURE() << problem;
  }

  Engine& engine() override { return *one_; }
  Engine& other() override { return *two_; }
  void reopen() override {
    one_.reset();
    two_.reset();
    open_handles();
  }
  // Both clients die; what they were answered is there.
  void crash(Random&) override {
    clients_[0]->kill();
    clients_[1]->kill();
    reopen();
  }

 private:
  std::unique_ptr<ClusterEngine> open(std::unique_ptr<FaultyObjectStore>& client) {
    client = std::make_unique<FaultyObjectStore>(store_);
    auto opened = ClusterEngine::open(*client, clock_, {.patience_us = 2'000});
    if (!opened.has_value()) throw std::runtime_error(to_string(opened.error()));
    return std::move(*opened);
  }
  void open_handles() {
    one_ = open(clients_[0]);
    two_ = open(clients_[1]);
    const Status swept = one_->sweep([&](uint64_t incarnation) {
      return incarnation != one_->incarnation() && incarnation != two_->incarnation();
    });
    if (!swept.has_value()) throw std::runtime_error(to_string(swept.error()));
  }

  FakeObjectStore store_;
  SystemClock clock_;
  RangeChanger changer_{store_};
  std::unique_ptr<FaultyObjectStore> clients_[2];
  std::unique_ptr<ClusterEngine> one_;
  std::unique_ptr<ClusterEngine> two_;
  std::atomic<bool> enough_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<EngineUnderTest> open_cluster_under_test(RangesChange change) {
  return std::make_unique<ClusterUnderTest>(change);
}

}  // namespace trellis
