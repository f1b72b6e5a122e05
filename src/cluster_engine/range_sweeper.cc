#include "cluster_engine/range_sweeper.h"

#include "cluster_engine/range_patience.h"
#include "cluster_engine/range_steps.h"

namespace trellis {

Result<size_t> RangeSweeper::sweep() {
  std::vector<RangeId> ids;
  const int listed = store_.list("r.", [&](ByteView object) {
    if (const Result<RangeId> id = parse_range_object_name(object); id.has_value())
      ids.push_back(*id);
  });
  TRY(object_status(listed, "the list of range objects"));
  std::map<RangeId, Bytes> met;
  size_t settled = 0;
  Status first_failure;
  const auto failed = [&](const Error& error) {
    if (first_failure.has_value()) first_failure = error;
  };
  for (const RangeId id : ids) {
    const Result<RangeHeader> header = read_header(store_, "sweep.read", id);
    if (!header.has_value()) {
      if (header.error().code != Code::not_found) failed(header.error());
      continue;
    }
    if (header->state == RangeState::live) continue;
    Bytes progress = progress_of(store_, *header);
    const auto before = met_.find(id);
    if (before == met_.end() || before->second != progress) {
      met.emplace(id, std::move(progress));
      continue;
    }
    const Status done =
        header->state == RangeState::gone
            ? change_header(store_, "sweep.remove", *header, *header, {RemoveObject{}})
            : settle_seen(store_, *header);
    if (done.has_value())
      ++settled;
    else if (done.error().code != Code::conflict)
      failed(done.error());
  }
  met_ = std::move(met);
  TRY(first_failure);
  return settled;
}

}  // namespace trellis
