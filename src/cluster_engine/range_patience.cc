#include "cluster_engine/range_patience.h"

#include <fmt/format.h>

#include <algorithm>

#include "cluster_engine/range_steps.h"

namespace trellis {
namespace {

constexpr unsigned waits_without_pause = 20;  // most are over by the next look
constexpr unsigned waits_of_one_pause = 8;    // then it doubles
constexpr uint64_t pause_first_us = 50;
constexpr uint64_t pause_most_us = 5'000;
// So many looks at least are taken before something is said not to move: an observer that was
// stopped itself has not looked for that long.
constexpr uint64_t looks_min = 4;

std::string step_of(const RangeHeader& range) {
  return fmt::format("{} {} {} {}", range.id.value, range.generation, to_string(range.state),
                     range.step);
}

}  // namespace

bool Patience::wait(const Bytes& what, const Bytes& progress) {
  const uint64_t now_us = clock_.monotonic_us();
  Watch& watch = watches_.try_emplace(what, Watch{progress, now_us}).first->second;
  if (watch.progress != progress) watch = {progress, now_us};
  watch.unmoved_us += std::min(now_us - watch.looked_us, patience_us_ / looks_min + 1);
  watch.looked_us = now_us;
  if (watch.unmoved_us >= patience_us_) return false;
  if (++waits_ <= waits_without_pause) return true;
  const unsigned doublings = std::min((waits_ - waits_without_pause) / waits_of_one_pause, 16u);
  const uint64_t most_us = std::clamp(patience_us_ / 16, pause_first_us, pause_most_us);
  clock_.pause_us(std::min(pause_first_us << doublings, most_us));
  return true;
}

Bytes progress_of(ObjectStore& store, const RangeHeader& range) {
  Bytes progress = step_of(range);
  // A tombstone is one whatever becomes of the range that it points to.
  if (range.state == RangeState::live || range.state == RangeState::gone) return progress;
  const Result<RangeHeader> other = read_header(store, "wait.read", range.other);
  return progress + ", " + (other.has_value() ? step_of(*other) : to_string(other.error()));
}

Status wait_or_settle(ObjectStore& store, const RangeHeader& range, Patience& patience) {
  if (patience.wait(std::to_string(range.id.value), progress_of(store, range))) return {};
  const Status settled = settle_seen(store, range);
  // Whoever else was at it has changed something: that is what was waited for.
  const bool is_changed = settled.has_value() || settled.error().code == Code::conflict ||
                          settled.error().code == Code::not_found;
  return is_changed ? Status() : settled;
}

}  // namespace trellis
