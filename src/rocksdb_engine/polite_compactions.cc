#include "rocksdb_engine/polite_compactions.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace trellis {
namespace {

// The first version of the kernel's sched_attr, whose header and <sched.h> exclude each other.
struct SchedAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime_ns;
  uint64_t deadline_ns;
  uint64_t period_ns;
};
static_assert(sizeof(SchedAttributes) == 48);

// On Linux both are of this thread alone.
void make_thread_polite() {
  constexpr int32_t niceness = 10;
  constexpr uint64_t slice_ns = 100'000;
  constexpr uint64_t keeps_policy = 0x08;  // SCHED_FLAG_KEEP_POLICY
  // One that has less already keeps it.
  const int32_t nice = std::max(niceness, ::getpriority(PRIO_PROCESS, 0));
  SchedAttributes attributes{};
  attributes.size = sizeof(attributes);
  attributes.flags = keeps_policy;
  attributes.nice = nice;
  // How long it runs before others are let in that have become ready, since Linux 6.12; others
  // ignore it. The usual 3 ms are long for who answers in a tenth of one.
  attributes.runtime_ns = slice_ns;
  // Containers may not let it.
  if (::syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) ::setpriority(PRIO_PROCESS, 0, nice);
}

class PoliteCompactions final : public rocksdb::EventListener {
 public:
  void OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override {
    thread_local bool is_polite = false;
    if (!std::exchange(is_polite, true)) make_thread_polite();
  }
};

}  // namespace

std::shared_ptr<rocksdb::EventListener> make_polite_compactions() {
  return std::make_shared<PoliteCompactions>();
}

}  // namespace trellis
