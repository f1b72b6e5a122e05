#include "base/assert.h"
#include "cluster_engine/range_lookup.h"
#include "cluster_engine/range_steps.h"

namespace trellis {
namespace {

// What was seen of the structure before the split is compared with it on either side after it.
Status copy_structure(ObjectStore& store, const RangeHeader& from, const RangeHeader& to) {
  const ReadOperation read{.guards = {generation_is(from)},
                           .omap_keys = {entry_key(EntryKind::structure, {})}};
  ReadAnswer answer;
  const Bytes source = range_object_name(from.id);
  TRY(object_status(store.read("split.read", source, read, answer), source));
  WriteOperation write{.guards = {generation_is(to)}, .changes = {SetAttribute{"step", "1"}}};
  for (const auto& [key, value] : answer.omap) write.changes.emplace_back(OmapSet{key, value});
  const Bytes target = range_object_name(to.id);
  return object_status(store.write("split.copy", target, write), target);
}

Status split_frozen(ObjectStore& store, const RangeHeader& frozen, const RangeHeader& made,
                    const RangeChangeOptions& options) {
  const Bytes new_object = range_object_name(made.id);
  TRY(object_status(store.write("split.create", new_object,
                                {.create_exclusively = true, .changes = header_changes(made)}),
                    new_object));
  TRY(copy_structure(store, frozen, made));
  TRY(copy_entries(store,
                   {.source = frozen,
                    .target = made,
                    .begin = made.start,
                    .end = made.end,
                    .read_point = "split.read",
                    .write_point = "split.copy",
                    .step = 1},
                   options));
  RangeHeader live = made;
  ++live.generation;
  live.state = RangeState::live;
  live.other = {};
  TRY(change_header(store, "split.live", made, live));

  RangeHeader halved = frozen;
  ++halved.generation;
  halved.end = made.start;
  halved.right = made.id;
  halved.state = RangeState::halved;
  halved.split_at.clear();
  TRY(change_header(store, "split.commit", frozen, halved));
  return finish_split(store, halved);
}

}  // namespace

Status split_range(ObjectStore& store, const RangeHeader& range, ByteView at, RangeId new_id,
                   uint64_t sticky_until_ms, RangeChangeOptions options) {
  ASSERT(range.state == RangeState::live && range.start < at && at < range.end);
  const RangeHeader made{.id = new_id,
                         .generation = range.generation + 1,
                         .start = Bytes(at),
                         .end = range.end,
                         .right = range.right,
                         .state = RangeState::building,
                         .other = range.id,
                         .split_at = {},
                         .sticky_until_ms = sticky_until_ms};
  // Before anything is begun, as giving it up removes the object of that name.
  const Result<RangeHeader> used = read_header(store, "split.look", new_id);
  if (used.has_value() || used.error().code == Code::corrupt)
    return Error{Code::exists, range_object_name(new_id) + " is there already: ids of ranges are " +
                                   "given once, see the object ids.range"};
  if (used.error().code != Code::not_found) return Error(used.error());
  RangeHeader frozen = range;
  ++frozen.generation;
  frozen.state = RangeState::split;
  frozen.other = made.id;
  frozen.split_at = made.start;
  Status done = change_header(store, "split.freeze", range, frozen);
  if (!done.has_value() && done.error().code == Code::conflict) return done;
  if (done.has_value()) done = split_frozen(store, frozen, made, options);
  if (done.has_value()) return done;
  return end_change(store, frozen, done,
                    [&](const RangeHeader& now) { return now.end == at && now.right == new_id; });
}

Status undo_split(ObjectStore& store, RangeHeader range) {
  if (range.state == RangeState::split) {
    // First of all: from now on whoever began it cannot commit it.
    RangeHeader raised = range;
    ++raised.generation;
    raised.state = RangeState::unsplit;
    raised.split_at.clear();
    TRY(change_header(store, "unsplit.raise", range, raised));
    range = raised;
  }
  const Bytes copy = range_object_name(range.other);
  const Status removed =
      object_status(store.write("unsplit.remove", copy, {.changes = {RemoveObject{}}}), copy);
  if (!removed.has_value() && removed.error().code != Code::not_found) return removed;
  RangeHeader live = range;
  live.state = RangeState::live;
  live.other = {};
  return change_header(store, "unsplit.live", range, live);
}

Status finish_split(ObjectStore& store, const RangeHeader& range) {
  TRY(change_header(store, "split.clean", range, range, remove_entries_from(range.end)));
  TRY(record_range(store, "split.directory", range));
  const Result<RangeHeader> right = read_header(store, "split.read", range.other);
  // If it is something else by now, whoever made it so records it.
  if (right.has_value() && right->may_read())
    TRY(record_range(store, "split.directory", *right));
  else if (!right.has_value() && right.error().code != Code::not_found)
    return Error(right.error());
  RangeHeader live = range;
  live.state = RangeState::live;
  live.other = {};
  return change_header(store, "split.done", range, live);
}

}  // namespace trellis
