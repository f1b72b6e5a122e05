#include "range/range_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/log.h"
#include "codec/keyspace_keys.h"
#include "codec/local_keys.h"
#include "codec/meta_keys.h"
#include "codec/stored_message.h"
#include "codec/system_keys.h"
#include "range.pb.h"
#include "range/split_place.h"
#include "range/stored_size.h"

namespace trellis {
namespace {

constexpr uint64_t s_in_us = 1'000'000;
constexpr uint64_t figures_every_us = 10 * s_in_us;
constexpr uint64_t busy_us = 10 * s_in_us;
constexpr uint64_t dead_count_ms = 600'000;
constexpr uint64_t rest_us = 60 * s_in_us;            // between two decisions on the same range
constexpr uint64_t left_alone_us_min = 10 * s_in_us;  // twice as long each time
constexpr uint64_t left_alone_us_max = 640 * s_in_us;
// What one round looks at and does, so that 10^5 keyspaces are served piece by piece.
constexpr size_t ranges_per_round = 10'000;
constexpr size_t splits_per_round = 2'000;
constexpr size_t merges_per_round = 100;
constexpr size_t counts_waiting_max = 200;
constexpr size_t bad_per_round = 10;        // then it is not the ranges
constexpr uint64_t round_us = 5 * s_in_us;  // changes that copy take their time

// Of those by hand, when somebody else was quicker.
constexpr unsigned attempts_max = 10;

std::string size_text(uint64_t bytes) {
  return bytes < 1 << 20 ? fmt::format("{} bytes", bytes)
                         : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// How much there is, by what is over its limit, if anything is.
std::string over_text(const SizeLimits& limits, uint64_t bytes, uint64_t keys) {
  if (bytes <= limits.bytes && keys > limits.keys)
    return fmt::format("{} keys in {}, over {} keys", keys, size_text(bytes), limits.keys);
  return fmt::format("{} in {} keys, over {}", size_text(bytes), keys, size_text(limits.bytes));
}
std::string_view over_what(const SizeLimits& limits, uint64_t bytes, uint64_t keys) {
  return bytes <= limits.bytes && keys > limits.keys ? "keys" : "size";
}

// Where the data of a keyspace begins, in one of its modes.
Bytes border(char mode, KeyspaceId keyspace) {
  Bytes out(1, mode);
  append_be24(out, keyspace.value);
  return out;
}
bool is_keyspace_start(ByteView address) {
  return address.size() == 4 && (address[0] == 'r' || address[0] == 'x');
}

// What was cut a moment ago is left alone: it may be put together, or cut, in the next.
bool is_at_rest(const RangeFigures& figures, uint64_t now_us) {
  return figures.changed_us == 0 || now_us - figures.changed_us >= rest_us;
}

double load_of(const RangeFigures& figures) { return figures.reads_per_s + figures.writes_per_s; }

}  // namespace

std::string_view to_string(RangeAction::Kind kind) {
  switch (kind) {
    case RangeAction::Kind::split: return "split";
    case RangeAction::Kind::merge: return "merge";
    case RangeAction::Kind::count: return "count";
  }
  return "";
}

struct RangeKeeper::Window {
  std::vector<RangeFigures> ranges;
  const std::vector<KeyspaceId>& living;
  uint64_t now_us;
  uint64_t now_ms;
  std::optional<Bytes> next;        // where the next one begins, with the last range of this one
  std::set<RangeId> unmerged = {};  // left alone by merges with what is to their right

  bool is_border(ByteView address) const {
    if (!is_keyspace_start(address)) return false;
    const KeyspaceId keyspace{static_cast<uint32_t>(load_be(address.data() + 1, 3))};
    return std::binary_search(living.begin(), living.end(), keyspace);
  }
  // It begins in the data of a keyspace that lives no more.
  bool is_dead(const RangeDescriptor& range) const {
    const ByteView start = ByteView(range.start).substr(0, 4);
    return is_keyspace_start(start) && !is_border(start);
  }
};

RangeKeeper::RangeKeeper(Engine& engine, Clock& clock, RangeHome& home, RangeAccounting& accounting,
                         KeeperOptions options)
    : engine_(engine),
      clock_(clock),
      home_(home),
      accounting_(accounting),
      options_(std::move(options)),
      series_(engine, options_.series),
      walks_(clock),
      started_ms_(clock.unix_ms()),
      figures_us_(clock.monotonic_us()),
      listed_us_(clock.monotonic_us()) {
  walks_.set_bytes_per_second(options_.walk_bytes_per_s);
}

Status RangeKeeper::load() {
  std::vector<RangeDescriptor> ranges;
  const Status listed = home_.for_each([&](const RangeDescriptor& range) {
    accounting_.replace({&range, 1}, 0);
    if (!engine_.shared()) ranges.push_back(range);
    return Visit::go_on;
  });
  // What is damaged must not keep the rest from being served.
  if (!listed) log_error("not all ranges are known", {{"error", to_string(listed.error())}});
  for (const RangeDescriptor& range : ranges) {
    TRY_ASSIGN(const auto size, load_stored_size(engine_, range));
    if (!size) continue;  // it is counted again
    accounting_.set_size(range, size->bytes, size->keys, size->counted_ms, false);
  }
  discard(accounting_.take_news([](std::span<const RangeFigures>) { return Status(); }));
  accounting_.tick(clock_.monotonic_us(), static_cast<double>(options_.range_load_max));
  return {};
}

Status RangeKeeper::reload() {
  const std::lock_guard lock(changing_);
  std::map<Bytes, RangeDescriptor> known;
  for (RangeFigures& figures : accounting_.figures({}, ~size_t{0}))
    known.emplace(figures.range.start, std::move(figures.range));
  std::vector<RangeDescriptor> run;  // neighbours that are new
  const auto replace = [&] {
    if (!run.empty())
      accounting_.replace(run, clock_.monotonic_us(), RangeAccounting::Known::may_be_wrong);
    for (const RangeDescriptor& range : run) options_.changed(range);
    run.clear();
  };
  TRY(home_.for_each([&](const RangeDescriptor& range) {
    const auto before = known.find(range.start);
    const bool is_new = before == known.end() || before->second != range;
    if (!is_new || (!run.empty() && run.back().end != range.start)) replace();
    if (is_new) run.push_back(range);
    return Visit::go_on;
  }));
  replace();
  return {};
}

// --- deciding ---

Result<std::vector<KeyspaceId>> RangeKeeper::living() const {
  if (!options_.living) return std::vector<KeyspaceId>();
  return options_.living();
}

RangeKeeper::Window RangeKeeper::look(ByteView from, const std::vector<KeyspaceId>& living) {
  Window window{accounting_.figures(from, ranges_per_round),
                living,
                clock_.monotonic_us(),
                clock_.unix_ms(),
                {}};
  if (window.ranges.size() == ranges_per_round) window.next = window.ranges.back().range.start;
  const std::lock_guard lock(waiting_mutex_);
  std::erase_if(failures_, [&](const auto& failure) {
    return failure.second.until_us + left_alone_us_max < window.now_us;
  });
  std::set<RangeId> left_alone;
  for (const auto& [attempt, failure] : failures_)
    if (failure.until_us > window.now_us)
      (attempt.is_merge ? window.unmerged : left_alone).insert(attempt.range);
  std::erase_if(window.ranges,
                [&](const RangeFigures& figures) { return left_alone.contains(figures.range.id); });
  return window;
}

void RangeKeeper::plan_borders(const Window& window, std::vector<RangeAction>& actions) const {
  for (const RangeFigures& figures : window.ranges) {
    const RangeDescriptor& range = figures.range;
    for (const char mode : {'r', 'x'}) {
      auto next = std::partition_point(
          window.living.begin(), window.living.end(),
          [&](KeyspaceId keyspace) { return border(mode, keyspace) <= range.start; });
      for (; next != window.living.end() && actions.size() < splits_per_round; ++next) {
        Bytes at = border(mode, *next);
        if (at >= range.end) break;
        actions.push_back({RangeAction::Kind::split,
                           range,
                           std::move(at),
                           {},
                           fmt::format("border: keyspace {} begins there", next->value)});
      }
    }
  }
}

// Empty: there is none.
std::string RangeKeeper::count_reason(const Window& window, const RangeFigures& figures) const {
  const bool tried = figures.uncuttable_us != 0 && window.now_us - figures.uncuttable_us < rest_us;
  const auto counted_before = [&](uint64_t ms) { return window.now_ms - figures.counted_ms >= ms; };
  if (limits_.are_exceeded(figures.bytes, figures.keys) && !tried)
    return fmt::format("{}: about {}", over_what(limits_, figures.bytes, figures.keys),
                       over_text(limits_, figures.bytes, figures.keys));
  if (figures.counted_ms == 0)
    return is_at_rest(figures, window.now_us) ? "size: it was never counted" : "";
  if (limits_.are_exceeded(figures.drift_bytes, figures.drift_keys))
    return fmt::format("size: {} in {} keys were written and removed since it was counted",
                       size_text(figures.drift_bytes), figures.drift_keys);
  if (figures.bytes > 0 && window.is_dead(figures.range) && counted_before(dead_count_ms))
    return "size: its keyspace is gone";
  if (options_.recount_ms != 0 && counted_before(options_.recount_ms))
    return "size: others may have written to it since it was counted";
  return {};
}

void RangeKeeper::plan_counts(const Window& window, std::vector<RangeAction>& actions) const {
  size_t counts = 0;
  for (const RangeFigures& figures : window.ranges) {
    if (counts == counts_waiting_max) return;
    std::string reason = count_reason(window, figures);
    if (reason.empty()) continue;
    counts++;
    actions.push_back({RangeAction::Kind::count, figures.range, {}, {}, std::move(reason)});
  }
}

void RangeKeeper::plan_loads(const Window& window, std::vector<RangeAction>& actions) const {
  for (const RangeFigures& figures : window.ranges) {
    const RangeDescriptor& range = figures.range;
    if (figures.busy_since_us == 0 || window.now_us - figures.busy_since_us < busy_us ||
        !is_at_rest(figures, window.now_us))
      continue;
    const std::optional<Bytes> key = accounting_.load_split_at(range.id);
    if (!key) continue;
    Bytes at = granule_start(*key);
    if (at <= range.start) at = *key;
    if (at <= range.start || at >= range.end || !check_range_start(at)) continue;
    actions.push_back(
        {RangeAction::Kind::split,
         range,
         std::move(at),
         {},
         fmt::format("load: {:.0f} operations per second for {} s, over {}", load_of(figures),
                     (window.now_us - figures.busy_since_us) / s_in_us, options_.range_load_max)});
  }
}

void RangeKeeper::plan_merges(const Window& window, std::vector<RangeAction>& actions) const {
  const auto at_rest = [&](const RangeFigures& figures) {
    return figures.counted_ms != 0 && is_at_rest(figures, window.now_us);
  };
  size_t merges = 0;
  for (size_t i = 0; i + 1 < window.ranges.size() && merges < merges_per_round; i++) {
    const RangeFigures& left = window.ranges[i];
    const RangeFigures& right = window.ranges[i + 1];
    const uint64_t bytes = left.bytes + right.bytes;
    const uint64_t keys = left.keys + right.keys;
    const double load = load_of(left) + load_of(right);
    if (!at_rest(left) || !at_rest(right) || left.range.end != right.range.start ||
        window.unmerged.contains(left.range.id) || bytes >= limits_.bytes / 4 ||
        keys >= limits_.keys / 4 || load >= static_cast<double>(options_.range_load_max) / 2 ||
        right.range.sticky_until_ms > window.now_ms || window.is_border(right.range.start))
      continue;
    actions.push_back({RangeAction::Kind::merge,
                       left.range,
                       {},
                       right.range,
                       fmt::format("small: {} in {} keys together, {:.0f} operations per second",
                                   size_text(bytes), keys, load)});
    merges++;
    i++;  // each range once
  }
}

Result<RangePlan> RangeKeeper::plan(size_t actions_max) {
  TRY_ASSIGN(const std::vector<KeyspaceId> alive, living());
  RangePlan plan;
  Bytes from;
  while (true) {
    const Window window = look(from, alive);
    std::vector<RangeAction> actions;
    plan_borders(window, actions);
    plan_counts(window, actions);
    plan_loads(window, actions);
    plan_merges(window, actions);
    from = window.next.value_or(Bytes(map_key_max));
    plan.total += actions.size();
    for (RangeAction& action : actions) {
      if (action.right && action.right->start == from) from = action.right->end;  // each once
      if (plan.actions.size() < actions_max) plan.actions.push_back(std::move(action));
    }
    if (from >= map_key_max) return plan;
  }
}

// --- doing ---

Result<std::pair<RangeDescriptor, RangeDescriptor>> RangeKeeper::split_range(
    const SplitRequest& request) {
  const std::lock_guard lock(changing_);
  TRY_ASSIGN(auto parts, home_.split(request));
  const RangeDescriptor after[] = {parts.first, parts.second};
  accounting_.replace(after, clock_.monotonic_us());
  for (const RangeDescriptor& part : after) options_.changed(part);
  log_debug(
      "range split",
      {{"range", request.range.id.value}, {"at", to_hex(request.at)}, {"reason", request.reason}});
  return parts;
}

Result<std::pair<RangeDescriptor, RangeDescriptor>> RangeKeeper::split(ByteView at,
                                                                       uint64_t sticky_until_ms,
                                                                       std::string_view reason) {
  for (unsigned attempt = 1;; attempt++) {
    TRY_ASSIGN(const RangeDescriptor range, home_.find(at));
    auto parts = split_range(
        {.range = range, .at = at, .sticky_until_ms = sticky_until_ms, .reason = reason});
    if (parts || parts.error().code != Code::conflict || attempt == attempts_max) return parts;
  }
}

Result<RangeDescriptor> RangeKeeper::merge_ranges(const RangeDescriptor& left,
                                                  const RangeDescriptor& right,
                                                  std::string_view reason) {
  const std::lock_guard lock(changing_);
  TRY_ASSIGN(RangeDescriptor whole, home_.merge(left, right, reason));
  accounting_.replace({&whole, 1}, clock_.monotonic_us());
  options_.changed(whole);
  if (!engine_.shared()) {
    Commit forget;
    forget.writes.remove(stored_size_key(right.id));
    forget.durability = options_.series.durability;
    discard(commit(engine_, forget));  // a range that is gone is read by nobody
  }
  log_debug("ranges merged",
            {{"left", left.id.value}, {"right", right.id.value}, {"reason", reason}});
  return whole;
}

Result<RangeDescriptor> RangeKeeper::merge(ByteView address, std::string_view reason) {
  for (unsigned attempt = 1;; attempt++) {
    TRY_ASSIGN(const RangeDescriptor left, home_.find(address));
    if (left.end == map_key_max)
      return Error{Code::invalid, fmt::format("{} is the last one: it has nothing to its right to "
                                              "be merged with",
                                              to_string(left))};
    TRY_ASSIGN(const RangeDescriptor right, home_.find(left.end));
    auto whole = merge_ranges(left, right, reason);
    const Code code = whole ? Code::invalid : whole.error().code;
    if (code != Code::conflict || attempt == attempts_max) return whole;
  }
}

void RangeKeeper::set_counted(const RangeCount& count) {
  accounting_.set_size(count.range, count.bytes, count.keys, clock_.unix_ms());
}

void RangeKeeper::copied(uint64_t bytes) {
  if (options_.changes_copy) discard(walks_.pass(bytes));  // the end is seen by who asks for it
}

Status RangeKeeper::count_and_cut(const RangeDescriptor& range) {
  SizeSplit counted(limits_);
  const auto visit = [&](ByteView key, ByteView value) {
    counted.add(key, value);
    return Visit::go_on;
  };
  uint64_t paid_bytes = 0;
  const auto between = [&] {
    const Status passed = walks_.pass(counted.bytes() - paid_bytes);
    paid_bytes = counted.bytes();
    return passed ? Visit::go_on : Visit::stop;
  };
  TRY(home_.walk(range, visit, between));
  if (between() == Visit::stop) return {};
  set_counted({range, counted.bytes(), counted.keys()});
  if (!limits_.are_exceeded(counted.bytes(), counted.keys())) return {};
  const std::vector<SizeSplit::Part> parts = counted.parts(range);
  if (parts.size() == 1) accounting_.set_uncuttable(range.id, clock_.monotonic_us());
  return cut(range, counted, parts);
}

// From the right, so that nothing moves twice. Code::conflict if somebody changes it meanwhile.
Status RangeKeeper::cut(const RangeDescriptor& range, const SizeSplit& counted,
                        std::span<const SizeSplit::Part> parts) {
  const std::string reason =
      fmt::format("{}: {}: {} parts", over_what(limits_, counted.bytes(), counted.keys()),
                  over_text(limits_, counted.bytes(), counted.keys()), parts.size());
  RangeCount left{range, counted.bytes(), counted.keys()};
  for (size_t i = parts.size(); --i > 0 && !stopping_ && !paused_;) {
    const SizeSplit::Part& part = parts[i];
    TRY_ASSIGN(auto both, split_range({.range = left.range, .at = part.start, .reason = reason}));
    left = {both.first, left.bytes - part.bytes, left.keys - part.keys};
    set_counted(left);
    set_counted({both.second, part.bytes, part.keys});
    copied(part.bytes);
  }
  return {};
}

bool RangeKeeper::count_next() {
  const uint64_t now_us = clock_.monotonic_us();
  if (options_.relist_ms != 0 && now_us - listed_us_ >= options_.relist_ms * 1'000) {
    listed_us_ = now_us;
    if (const Status listed = relist(); !listed)
      log_warn("not all ranges could be listed", {{"error", to_string(listed.error())}});
    return true;
  }
  RangeDescriptor range;
  {
    const std::lock_guard lock(waiting_mutex_);
    if (counts_.empty() || paused_ || !engine_.room()) return false;
    range = counts_.front().range;
  }
  const auto figures = accounting_.find(range.id);
  if (figures && figures->range == range) settle(range, false, count_and_cut(range));
  const std::lock_guard lock(waiting_mutex_);
  counts_.pop_front();
  return true;
}

// What others made of the ranges.
Status RangeKeeper::relist() {
  std::vector<RangeDescriptor> changed;
  const auto take = [&] {
    if (changed.empty()) return;
    const std::lock_guard lock(changing_);
    accounting_.replace(changed, clock_.monotonic_us());
    changed.clear();
  };
  TRY(home_.for_each([&](const RangeDescriptor& range) {
    const auto known = accounting_.find(ByteView(range.start));
    const bool is_known = known && known->range == range;
    // It may begin anywhere, if somebody merges meanwhile.
    if (is_known || (!changed.empty() && changed.back().end != range.start)) take();
    if (!is_known) changed.push_back(range);
    return stopping_ ? Visit::stop : Visit::go_on;
  }));
  if (!stopping_) take();
  return {};
}

void RangeKeeper::let_wait(std::vector<RangeAction> counts) {
  const std::lock_guard lock(waiting_mutex_);
  for (RangeAction& count : counts) {
    if (counts_.size() >= counts_waiting_max) return;
    const auto same = [&](const RangeAction& other) { return other.range.id == count.range.id; };
    if (std::none_of(counts_.begin(), counts_.end(), same)) counts_.push_back(std::move(count));
  }
}

bool RangeKeeper::settle(const RangeDescriptor& range, bool is_merge, const Status& done) {
  const std::lock_guard lock(waiting_mutex_);
  const Attempt attempt{range.id, is_merge};
  if (done) {
    failures_.erase(attempt);
    return true;
  }
  Failure& failure = failures_[attempt];
  const uint64_t pause_us = std::min(left_alone_us_min << failure.times, left_alone_us_max);
  failure.until_us = clock_.monotonic_us() + pause_us;
  // Somebody else was first, or there is no such place any more.
  const Code code = done.error().code;
  if (code == Code::conflict || code == Code::invalid) return true;
  if (pause_us < left_alone_us_max) failure.times++;
  log_warn("a range is left alone for a while", {{"range", to_string(range)},
                                                 {"for_s", pause_us / s_in_us},
                                                 {"error", to_string(done.error())}});
  return false;
}

Status RangeKeeper::carry_out(const RangeAction& action) {
  if (action.kind == RangeAction::Kind::merge) {
    const auto moved = accounting_.find(action.right->id);
    TRY(merge_ranges(action.range, *action.right, action.reason));
    if (moved) copied(moved->bytes);
    return {};
  }
  // A border is one, whatever became of the range; where load divides only the range itself is cut.
  const SplitRequest request{.range = action.range, .at = action.at, .reason = action.reason};
  auto parts =
      is_keyspace_start(action.at) ? split(action.at, 0, action.reason) : split_range(request);
  if (!parts) return std::move(parts).error();
  if (const auto moved = accounting_.find(parts->second.id)) copied(moved->bytes);
  return {};
}

Status RangeKeeper::decide() {
  TRY_ASSIGN(const std::vector<KeyspaceId> alive, living());
  const Window window = look(cursor_, alive);
  cursor_ = window.next.value_or(Bytes());
  std::vector<RangeAction> actions;
  plan_borders(window, actions);
  if (actions.size() == splits_per_round) cursor_ = actions.back().at;  // there is more, from there
  // What is about to be cut is not looked at further; the next round sees its parts.
  if (actions.empty()) {
    std::vector<RangeAction> counts;
    plan_counts(window, counts);
    let_wait(std::move(counts));
    plan_loads(window, actions);
    plan_merges(window, actions);
  }
  std::set<RangeId> bad;
  for (const RangeAction& action : actions) {
    if (stopping_ || paused_ || clock_.monotonic_us() - window.now_us >= round_us) return {};
    if (bad.contains(action.range.id)) continue;
    Status done = carry_out(action);
    if (settle(action.range, action.kind == RangeAction::Kind::merge, done)) continue;
    bad.insert(action.range.id);
    if (bad.size() == bad_per_round) return done;
  }
  return {};
}

Status RangeKeeper::tick() {
  const uint64_t now_us = clock_.monotonic_us();
  accounting_.tick(now_us, static_cast<double>(options_.range_load_max));
  TRY(engine_.room());  // on a full disk nothing of this is worth a byte
  Status kept;
  if (now_us - figures_us_ >= figures_every_us) kept = keep_figures();
  Status decided;
  if (!paused_) decided = decide();
  return kept ? decided : kept;
}

// --- figures ---

Status RangeKeeper::keep_figures() {
  figures_us_ = clock_.monotonic_us();
  TRY(accounting_.take_news(
      [&](std::span<const RangeFigures> news) { return store_figures(news); }));
  for (const ByteView name : {"range.reads", "range.writes", "range.bytes", "range.keys"})
    TRY(series_.roll_up(name, clock_.unix_ms()));
  return store_status();
}

Status RangeKeeper::store_figures(std::span<const RangeFigures> news) {
  std::vector<std::string> sources;
  sources.reserve(news.size());
  std::vector<TimeSeries::Sample> samples;
  Commit sizes;
  sizes.durability = options_.series.durability;
  for (const RangeFigures& figures : news) {
    if (!engine_.shared())
      sizes.writes.put(stored_size_key(figures.range.id),
                       encode_stored_size({figures.range.generation, figures.bytes, figures.keys,
                                           figures.counted_ms}));
    if (!figures.was_used) continue;
    const std::string& source = sources.emplace_back(std::to_string(figures.range.id.value));
    samples.push_back({"range.reads", source, static_cast<uint64_t>(figures.reads_per_s)});
    samples.push_back({"range.writes", source, static_cast<uint64_t>(figures.writes_per_s)});
    samples.push_back({"range.bytes", source, figures.bytes});
    samples.push_back({"range.keys", source, figures.keys});
  }
  TRY(series_.append(clock_.unix_ms(), samples));
  return sizes.writes.empty() ? Status() : commit(engine_, sizes);
}

Status RangeKeeper::store_status() {
  stored::NodeStatus status;
  const RangeTotals totals = accounting_.totals();
  status.set_bytes(totals.bytes);
  status.set_keys(totals.keys);
  status.set_reads_per_s(totals.reads_per_s);
  status.set_writes_per_s(totals.writes_per_s);
  status.set_node(options_.node.value);
  status.set_version(options_.version);
  status.set_started_ms(started_ms_);
  status.set_time_ms(clock_.unix_ms());
  status.set_ranges(totals.ranges);
  Commit one;
  one.writes.put(encode(NodeStatusKey{options_.node}), encode_message(status));
  one.durability = options_.series.durability;
  return commit(engine_, one);
}

// --- the thread ---

template <class Work>
void RangeKeeper::run(Work work) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    work();
    lock.lock();
    wake_.wait_for(lock, std::chrono::milliseconds(options_.tick_ms),
                   [&] { return stopping_.load(); });
  }
}

void RangeKeeper::start() {
  ticking_ = std::thread([this] {
    run([this, was_well = true]() mutable {
      const Status done = tick();
      if (!done && was_well)
        log_warn("ranges are not kept for now", {{"error", to_string(done.error())}});
      was_well = done.has_value();
    });
  });
  counting_ = std::thread([this] {
    run([this] {
      while (!stopping_ && count_next()) continue;
    });
  });
}

void RangeKeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  walks_.stop();
  wake_.notify_all();
  if (ticking_.joinable()) ticking_.join();
  if (counting_.joinable()) counting_.join();
}

}  // namespace trellis
