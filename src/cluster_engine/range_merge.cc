#include <algorithm>

#include "base/assert.h"
#include "cluster_engine/range_lookup.h"
#include "cluster_engine/range_steps.h"

namespace trellis {
namespace {

RangeHeader in_state(RangeHeader header, RangeState state, RangeId other) {
  header.state = state;
  header.other = other;
  return header;
}

RangeHeader raised(RangeHeader header) {
  ++header.generation;
  return header;
}

Status merge_marked(ObjectStore& store, const RangeHeader& merging, const RangeHeader& right,
                    const RangeChangeOptions& options) {
  const RangeHeader frozen = in_state(raised(right), RangeState::frozen, merging.id);
  TRY(change_header(store, "merge.freeze", right, frozen));
  TRY(copy_entries(store,
                   {.source = frozen,
                    .target = merging,
                    .begin = right.start,
                    .end = right.end,
                    .read_point = "merge.read",
                    .write_point = "merge.copy"},
                   options));
  RangeHeader merged = in_state(merging, RangeState::merged, right.id);
  merged.generation = std::max(merging.generation, frozen.generation) + 1;
  merged.end = right.end;
  merged.right = right.right;
  // A new value, as whoever saw one of the old ones cannot tell what happened on the other side.
  const OmapSet structure{entry_key(EntryKind::structure, {}),
                          encode_range_writer('m', merging.id, merged.generation)};
  TRY(change_header(store, "merge.commit", merging, merged, {structure}));
  return finish_merge(store, merged);
}

}  // namespace

Status merge_ranges(ObjectStore& store, const RangeHeader& left, const RangeHeader& right,
                    RangeChangeOptions options) {
  ASSERT(left.state == RangeState::live && right.state == RangeState::live);
  ASSERT(left.end == right.start && left.right == right.id);
  const RangeHeader merging = in_state(raised(left), RangeState::merge, right.id);
  Status done = change_header(store, "merge.mark", left, merging);
  if (!done.has_value() && done.error().code == Code::conflict) return done;
  if (done.has_value()) done = merge_marked(store, merging, right, options);
  if (done.has_value()) return done;
  return end_change(store, merging, done, [&](const RangeHeader& now) {
    return now.end == right.end && now.generation > right.generation;
  });
}

Status undo_merge(ObjectStore& store, RangeHeader range) {
  if (range.state == RangeState::merge) {
    // First of all: from now on whoever began it can neither copy nor commit.
    const RangeHeader fenced = in_state(raised(range), RangeState::unmerge, range.other);
    TRY(change_header(store, "unmerge.raise", range, fenced));
    range = fenced;
  }
  const Result<RangeHeader> right = read_header(store, "unmerge.read", range.other);
  if (!right.has_value() && right.error().code != Code::not_found) return Error(right.error());
  if (right.has_value() && right->state == RangeState::frozen && right->other == range.id) {
    // If this one is still the same after that was read, no other merge has frozen it anew.
    TRY_ASSIGN(const RangeHeader now, read_header(store, "unmerge.read", range.id));
    if (now != range) return Error{Code::conflict, to_string(now) + " goes on without us"};
    TRY(change_header(store, "unmerge.thaw", *right,
                      in_state(raised(*right), RangeState::live, {})));
  }
  return change_header(store, "unmerge.clean", range, in_state(range, RangeState::live, {}),
                       remove_entries_from(range.end));
}

Status finish_merge(ObjectStore& store, const RangeHeader& range) {
  const Result<RangeHeader> right = read_header(store, "merge.read", range.other);
  if (!right.has_value() && right.error().code != Code::not_found) return Error(right.error());
  if (right.has_value() && right->state == RangeState::frozen) {
    std::vector<ObjectChange> empty = remove_entries_from({});
    empty.emplace_back(OmapRemove{entry_key(EntryKind::structure, {})});
    TRY(change_header(store, "merge.empty", *right,
                      in_state(raised(*right), RangeState::gone, range.id), std::move(empty)));
  }
  TRY(record_range(store, "merge.directory", range));
  if (right.has_value()) {
    RangeDescriptor before = to_descriptor(range);
    before.end = right->start;
    TRY(forget_range(store, "merge.directory", before, to_descriptor(range)));
  }
  return change_header(store, "merge.done", range, in_state(range, RangeState::live, {}));
}

}  // namespace trellis
