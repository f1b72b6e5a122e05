#include "range/embedded_ranges.h"

#include <algorithm>

#include "codec/meta_keys.h"
#include "codec/system_keys.h"

namespace trellis {
namespace {

// Of the directory and of a range, until they agree.
constexpr unsigned looks_max = 1'000;
constexpr unsigned looks_at_rest_max = 3;  // a look may be one that another thread began earlier

// The one node of this store: the one that told of itself before, or a new one.
Result<NodeId> own_node(Engine& engine) {
  std::optional<NodeId> known;
  const Bytes begin = encode(NodeStatusKey{{}});
  const auto visit = [&](ByteView key, ByteView) {
    if (const auto status = decode<NodeStatusKey>(key)) known = status->node;
    return Visit::stop;
  };
  TRY(engine.scan({.begin = begin, .end = encode(NodeStatusKey{{~0u}}), .entries_max = 1}, visit));
  if (known) return *known;
  IdGenerator ids(engine, SystemKey::node_id_generator);
  const auto id = ids.next();
  if (!id && id.error().code == Code::no_space) return NodeId{};  // nothing of it is stored then
  if (!id) return id.error();
  return NodeId{static_cast<uint32_t>(*id)};
}

}  // namespace

Result<std::unique_ptr<EmbeddedRanges>> EmbeddedRanges::open(Engine& engine, Clock& clock,
                                                             RangeAccounting& accounting,
                                                             Options options) {
  std::unique_ptr<EmbeddedRanges> ranges(new EmbeddedRanges(engine));
  ranges->cache_ = std::make_unique<RangeCache>(ranges->directory_, options.cache_bytes_max);
  TRY_ASSIGN(ranges->home_,
             EmbeddedHome::open(engine, clock,
                                {.next_id = [ids = &ranges->range_ids_]() -> Result<RangeId> {
                                   TRY_ASSIGN(const uint64_t id, ids->next());
                                   return RangeId{id};
                                 },
                                 .durability = options.durability}));
  RangeCache* const cache = ranges->cache_.get();
  TRY_ASSIGN(options.keeper.node, own_node(engine));
  options.keeper.changed = [cache](const RangeDescriptor& range) { cache->insert(range); };
  ranges->keeper_ = std::make_unique<RangeKeeper>(engine, clock, *ranges->home_, accounting,
                                                  std::move(options.keeper));
  TRY(ranges->keeper_->load());
  RangeKeeper* const keeper = ranges->keeper_.get();
  ranges->jobs_ = std::make_unique<RangeJobs>(
      *ranges->home_, clock,
      RangeJobs::Hooks{.counted =
                           [keeper](const RangeDescriptor& range, const RangeSum& sum) {
                             keeper->set_counted({range, sum.bytes, sum.entries});
                           },
                       .bytes_total = [&accounting] { return accounting.totals().bytes; }});
  return ranges;
}

void EmbeddedRanges::stop() {
  jobs_->stop();
  keeper_->stop();
}

Result<EmbeddedRanges::Rebuilt> EmbeddedRanges::rebuild() {
  uint64_t generation_seen = 0;
  for (const RangeFigures& known : keeper_->accounting().figures({}, ~size_t{0}))
    generation_seen = std::max(generation_seen, known.range.generation);
  Rebuilt rebuilt;
  TRY_ASSIGN(rebuilt.ranges, home_->repair(generation_seen));
  TRY_ASSIGN(rebuilt.directory, rebuild_directory(*home_, engine_));
  TRY(keeper_->reload());
  TRY(home_->for_each([&](const RangeDescriptor& range) {
    if (const RangeRef cached = cache_->get(range.start); cached && cached.descriptor() != range)
      discard(cache_->evict(cached, {&range, 1}));  // as it is now is what was asked for
    return Visit::go_on;
  }));
  return rebuilt;
}

Result<LookupStep> EmbeddedRanges::step(std::string_view level, Bytes record, ByteView address) {
  LookupStep step{.level = level, .record = std::move(record), .range = {}};
  const RangeRef cached = cache_->get(address);
  step.from_cache = static_cast<bool>(cached);
  // A range may be split or merged between the two looks: only one that stands still shows damage.
  unsigned looks_at_rest = 0;
  RangeDescriptor before;
  for (unsigned look = 0; look < looks_max; look++) {
    TRY_ASSIGN(const RangeRef found, cache_->find(address));
    step.range = found.descriptor();
    TRY_ASSIGN(RangeDescriptor now, home_->find(address));
    if (now == step.range) return step;
    if (step.from_cache) {
      step.was_stale = true;
      TRY(cache_->evict(found, {&now, 1}));
      step.range = std::move(now);
      return step;
    }
    looks_at_rest = now == before ? looks_at_rest + 1 : 0;
    if (looks_at_rest == looks_at_rest_max)
      return Error{Code::corrupt, "the directory says " + to_string(step.range) + ", but it is " +
                                      to_string(now) + ": run trellis range rebuild"};
    TRY(cache_->evict(found));
    before = std::move(now);
  }
  return Error{Code::conflict, to_string(step.range) + " changes all the time: try again"};
}

Result<std::vector<LookupStep>> EmbeddedRanges::lookup(ByteView address) {
  std::vector<LookupStep> steps;
  if (address >= map_key_max)
    return Error{Code::invalid, "the map ends at ffff: no range holds what lies behind it"};
  if (address < ByteView("\x03")) {  // meta1 and what is before it are in the first range, always
    TRY_ASSIGN(const RangeDescriptor first, home_->find(address));
    steps.push_back({.level = "first", .record = {}, .range = first});
    return steps;
  }
  TRY_ASSIGN(const Bytes record, range_meta_key(address));
  const bool is_plain = record.starts_with('\x03');
  if (is_plain) {
    TRY_ASSIGN(Bytes meta1_record, range_meta_key(record));
    TRY_ASSIGN(LookupStep meta1, step("meta1", std::move(meta1_record), record));
    steps.push_back(std::move(meta1));
  }
  TRY_ASSIGN(LookupStep last, step(is_plain ? "meta2" : "meta1", record, address));
  steps.push_back(std::move(last));
  return steps;
}

}  // namespace trellis
