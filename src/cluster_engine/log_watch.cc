#include "cluster_engine/log_watch.h"

namespace trellis {

Status LogWatch::look(std::vector<uint64_t>& dead) {
  std::vector<uint64_t> incarnations;
  const int listed = store_.list(log_object_name_prefix, [&](ByteView object) {
    if (const std::optional<uint64_t> incarnation = parse_log_object_name(object))
      incarnations.push_back(*incarnation);
  });
  TRY(object_status(listed, "the list of logs"));
  Status first_failure;
  std::map<uint64_t, Seen> seen;
  for (const uint64_t incarnation : incarnations) {
    Result<Bytes> beat = read_heartbeat(store_, incarnation);
    if (!beat.has_value()) {
      // Not seen is not unchanged: it is counted from anew.
      if (beat.error().code != Code::not_found && first_failure.has_value())
        first_failure = without_doubt(beat.error());
      continue;
    }
    const auto before = seen_.find(incarnation);
    const bool is_same = before != seen_.end() && before->second.beat == *beat;
    const unsigned unchanged = is_same ? before->second.unchanged + 1 : 0;
    if (unchanged >= looks_max_) dead.push_back(incarnation);
    seen.emplace(incarnation, Seen{std::move(*beat), unchanged});
  }
  seen_ = std::move(seen);
  return first_failure;
}

}  // namespace trellis
