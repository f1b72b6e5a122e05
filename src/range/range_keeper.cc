#include "range/range_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/log.h"
#include "codec/keyspace_keys.h"
#include "codec/local_keys.h"
#include "codec/meta_keys.h"
#include "codec/stored_message.h"
#include "codec/system_keys.h"
#include "range.pb.h"
#include "range/size_split.h"
#include "range/split_place.h"

namespace trellis {
namespace {

constexpr uint64_t s_in_us = 1'000'000;
constexpr uint64_t figures_every_us = 10 * s_in_us;
constexpr uint64_t busy_us = 10 * s_in_us;
constexpr uint64_t dead_count_ms = 600'000;
constexpr uint64_t rest_us = 60 * s_in_us;  // between two decisions on the same range
// What one round looks at and does, so that 10^5 keyspaces are served piece by piece.
constexpr size_t ranges_per_round = 10'000;
constexpr size_t splits_per_round = 2'000;
constexpr size_t merges_per_round = 100;
constexpr size_t counts_per_round = 200;

// Of those by hand, when somebody else was quicker.
constexpr unsigned attempts_max = 10;

constexpr char stat_format = 0x01;
constexpr unsigned char stat_word = 8;
static_assert(RangeReplicatedKey::whats[stat_word].bytes == "stat");

Bytes stat_key(RangeId range) { return encode(RangeReplicatedKey{range, stat_word}); }

std::string size_text(uint64_t bytes) {
  return bytes < 1 << 20 ? fmt::format("{} bytes", bytes)
                         : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// Where the data of a keyspace begins, in one of its modes.
Bytes border(char mode, KeyspaceId keyspace) {
  Bytes out(1, mode);
  append_be24(out, keyspace.value);
  return out;
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
  std::vector<KeyspaceId> living;
  uint64_t now_us;
  uint64_t now_ms;

  bool is_border(ByteView address) const {
    if (address.size() != 4 || (address[0] != 'r' && address[0] != 'x')) return false;
    const KeyspaceId keyspace{static_cast<uint32_t>(load_be(address.data() + 1, 3))};
    return std::binary_search(living.begin(), living.end(), keyspace);
  }
  // It begins in the data of a keyspace that lives no more.
  bool is_dead(const RangeDescriptor& range) const {
    const ByteView start = range.start;
    return start.size() >= 4 && (start[0] == 'r' || start[0] == 'x') &&
           !is_border(start.substr(0, 4));
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
      pace_(clock, options_.walk_bytes_per_s),
      started_ms_(clock.unix_ms()),
      figures_us_(clock.monotonic_us()) {}

Status RangeKeeper::load() {
  const uint64_t now_us = clock_.monotonic_us();
  const Status listed = home_.for_each([&](const RangeDescriptor& range) {
    accounting_.replace({}, {&range, 1}, 0);
    return Visit::go_on;
  });
  // What is damaged must not keep the rest from being served.
  if (!listed) log_error("not all ranges are known", {{"error", to_string(listed.error())}});
  std::vector<RangeFigures> all = accounting_.figures({}, ~size_t{0});
  for (const RangeFigures& figures : all) {
    Value value;
    TRY(engine_.get(stat_key(figures.range.id), value));
    if (!value.found()) continue;
    const ByteView bytes = value.bytes();
    if (bytes.size() != 25 || bytes[0] != stat_format) continue;  // it is counted again
    accounting_.set_size(figures.range, load_be(bytes.data() + 1, 8), load_be(bytes.data() + 9, 8),
                         load_be(bytes.data() + 17, 8), false);
  }
  accounting_.take_news();
  accounting_.tick(now_us, static_cast<double>(options_.range_load_max));
  return {};
}

Status RangeKeeper::reload() {
  const std::lock_guard lock(changing_);
  std::map<Bytes, RangeDescriptor> made;
  TRY(home_.for_each([&](const RangeDescriptor& range) {
    made.emplace(range.start, range);
    return Visit::go_on;
  }));
  std::vector<RangeDescriptor> before;
  for (const RangeFigures& known : accounting_.figures({}, ~size_t{0})) {
    const auto now = made.find(known.range.start);
    if (now != made.end() && now->second == known.range)
      made.erase(now);
    else
      before.push_back(known.range);
  }
  std::vector<RangeDescriptor> after;
  for (auto& [start, range] : made) after.push_back(std::move(range));
  accounting_.replace(before, after, clock_.monotonic_us());
  for (const RangeDescriptor& range : after) options_.changed(range);
  return {};
}

// --- deciding ---

Result<RangeKeeper::Window> RangeKeeper::look(ByteView from, size_t limit) const {
  Window window{accounting_.figures(from, limit), {}, clock_.monotonic_us(), clock_.unix_ms()};
  if (options_.living) {
    TRY_ASSIGN(window.living, options_.living());
  }
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

void RangeKeeper::plan_sizes(const Window& window, std::vector<RangeAction>& actions) const {
  size_t counts = 0;
  for (const RangeFigures& figures : window.ranges) {
    if (counts == counts_per_round) return;
    const bool over = figures.bytes > options_.range_bytes_max;
    const bool tried =
        figures.uncuttable_us != 0 && window.now_us - figures.uncuttable_us < rest_us;
    const bool is_new = figures.counted_ms == 0 && is_at_rest(figures, window.now_us);
    const bool drifted = figures.drift_bytes > options_.range_bytes_max;
    const bool is_dead = figures.bytes > 0 && window.is_dead(figures.range) &&
                         window.now_ms - figures.counted_ms >= dead_count_ms;
    if (!is_new && !drifted && !is_dead && (!over || tried)) continue;
    counts++;
    actions.push_back(
        {RangeAction::Kind::count,
         figures.range,
         {},
         {},
         over      ? fmt::format("size: about {} in {} keys, over {}", size_text(figures.bytes),
                                 figures.keys, size_text(options_.range_bytes_max))
         : is_new  ? std::string("size: it was never counted")
         : is_dead ? std::string("size: its keyspace is gone")
                   : fmt::format("size: {} were written and removed since it was counted",
                                 size_text(figures.drift_bytes))});
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
    const double load = load_of(left) + load_of(right);
    if (!at_rest(left) || !at_rest(right) || left.range.end != right.range.start ||
        bytes >= options_.range_bytes_max / 4 ||
        load >= static_cast<double>(options_.range_load_max) / 2 ||
        right.range.sticky_until_ms > window.now_ms || window.is_border(right.range.start))
      continue;
    actions.push_back(
        {RangeAction::Kind::merge,
         left.range,
         {},
         right.range,
         fmt::format("small: {} together, {:.0f} operations per second", size_text(bytes), load)});
    merges++;
    i++;  // each range once
  }
}

Result<std::vector<RangeAction>> RangeKeeper::plan() {
  TRY_ASSIGN(const Window window, look({}, ~size_t{0}));
  std::vector<RangeAction> actions;
  plan_borders(window, actions);
  plan_sizes(window, actions);
  plan_loads(window, actions);
  plan_merges(window, actions);
  return actions;
}

// --- doing ---

Result<std::pair<RangeDescriptor, RangeDescriptor>> RangeKeeper::split(ByteView at,
                                                                       uint64_t sticky_until_ms,
                                                                       std::string_view reason) {
  const std::lock_guard lock(changing_);
  for (unsigned attempt = 1;; attempt++) {
    TRY_ASSIGN(const RangeDescriptor range, home_.find(at));
    auto parts = home_.split(
        {.range = range, .at = at, .sticky_until_ms = sticky_until_ms, .reason = reason});
    if (!parts && parts.error().code == Code::conflict && attempt < attempts_max) continue;
    if (!parts) return std::move(parts).error();
    const RangeDescriptor after[] = {parts->first, parts->second};
    accounting_.replace({&range, 1}, after, clock_.monotonic_us());
    for (const RangeDescriptor& part : after) options_.changed(part);
    log_debug("range split", {{"range", range.id.value}, {"at", to_hex(at)}, {"reason", reason}});
    return std::move(*parts);
  }
}

Result<RangeDescriptor> RangeKeeper::merge_ranges(const RangeDescriptor& left,
                                                  const RangeDescriptor& right,
                                                  std::string_view reason) {
  const std::lock_guard lock(changing_);
  TRY_ASSIGN(RangeDescriptor whole, home_.merge(left, right, reason));
  const RangeDescriptor before[] = {left, right};
  accounting_.replace(before, {&whole, 1}, clock_.monotonic_us());
  options_.changed(whole);
  Commit forget;
  forget.writes.remove(stat_key(right.id));
  forget.durability = options_.series.durability;
  discard(commit(engine_, forget));  // a range that is gone is read by nobody
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

Status RangeKeeper::count_and_cut(const RangeAction& action) {
  const RangeDescriptor& range = action.range;
  SizeSplit split(std::max<uint64_t>(options_.range_bytes_max / 256, 1));
  const auto visit = [&](ByteView key, ByteView value) {
    split.add(key, value);
    return Visit::go_on;
  };
  uint64_t paid_bytes = 0;
  const auto between = [&] {
    pace_.passed(split.bytes() - paid_bytes, [&] { return stopping_.load(); });
    paid_bytes = split.bytes();
    // A large range takes hours, and rates are of seconds. What fails is told by the next tick.
    if (clock_.monotonic_us() - kept_us_ >= options_.tick_ms * 1'000) discard(keep_up());
    return stopping_ ? Visit::stop : Visit::go_on;
  };
  TRY(home_.walk(range, visit, between));
  if (stopping_) return {};
  set_counted({range, split.bytes(), split.keys()});
  if (split.bytes() <= options_.range_bytes_max) return {};
  const std::vector<Bytes> cuts = split.cuts(range, options_.range_bytes_max / 2);
  if (cuts.empty()) accounting_.set_uncuttable(range.id, clock_.monotonic_us());
  const std::string reason =
      fmt::format("size: {} in {} keys, over {}: {} parts", size_text(split.bytes()), split.keys(),
                  size_text(options_.range_bytes_max), cuts.size() + 1);
  for (const Bytes& at : cuts) TRY(this->split(at, 0, reason));
  // The parts are alike, as the places were chosen by bytes; what they are exactly the next count
  // says.
  for (size_t part = 0; part <= cuts.size() && !cuts.empty(); part++) {
    const auto figures = accounting_.find(part == 0 ? range.start : cuts[part - 1]);
    if (figures)
      set_counted(
          {figures->range, split.bytes() / (cuts.size() + 1), split.keys() / (cuts.size() + 1)});
  }
  return {};
}

Status RangeKeeper::carry_out(const RangeAction& action) {
  switch (action.kind) {
    case RangeAction::Kind::split: TRY(split(action.at, 0, action.reason)); return {};
    case RangeAction::Kind::merge:
      TRY(merge_ranges(action.range, *action.right, action.reason));
      return {};
    case RangeAction::Kind::count: return count_and_cut(action);
  }
  return {};
}

// What is due by the clock, whatever else is under way.
Status RangeKeeper::keep_up() {
  kept_us_ = clock_.monotonic_us();
  accounting_.tick(kept_us_, static_cast<double>(options_.range_load_max));
  TRY(engine_.room());  // on a full disk nothing of this is worth a byte
  if (kept_us_ - figures_us_ >= figures_every_us) TRY(keep_figures());
  return {};
}

Status RangeKeeper::tick() {
  TRY(keep_up());
  if (paused_) return {};
  TRY_ASSIGN(const Window window, look(cursor_, ranges_per_round));
  const bool at_end = window.ranges.size() < ranges_per_round;
  cursor_ = at_end ? Bytes() : window.ranges.back().range.start;
  std::vector<RangeAction> actions;
  plan_borders(window, actions);
  if (actions.size() == splits_per_round) cursor_ = actions.back().at;  // there is more, from there
  // What is about to be cut is not looked at further; the next round sees its parts.
  if (actions.empty()) {
    plan_loads(window, actions);
    plan_merges(window, actions);
    plan_sizes(window, actions);
  }
  for (const RangeAction& action : actions) {
    if (stopping_) return {};
    const Status done = carry_out(action);
    // Somebody else was first, or there is no such place any more: the next round looks again.
    if (!done && done.error().code != Code::conflict && done.error().code != Code::invalid)
      return done;
  }
  return {};
}

// --- figures ---

Status RangeKeeper::keep_figures() {
  figures_us_ = clock_.monotonic_us();
  const std::vector<RangeFigures> news = accounting_.take_news();
  std::vector<std::string> sources;
  sources.reserve(news.size());
  std::vector<TimeSeries::Sample> samples;
  Commit sizes;
  sizes.durability = options_.series.durability;
  for (const RangeFigures& figures : news) {
    Bytes stat(1, stat_format);
    append_be64(stat, figures.bytes);
    append_be64(stat, figures.keys);
    append_be64(stat, figures.counted_ms);
    sizes.writes.put(stat_key(figures.range.id), stat);
    constexpr size_t piece_bytes = 1 << 20;
    if (sizes.writes.bytes() >= piece_bytes) {
      TRY(commit(engine_, sizes));
      sizes.writes.clear();
    }
    if (!figures.was_used) continue;
    const std::string& source = sources.emplace_back(std::to_string(figures.range.id.value));
    samples.push_back({"range.reads", source, static_cast<uint64_t>(figures.reads_per_s)});
    samples.push_back({"range.writes", source, static_cast<uint64_t>(figures.writes_per_s)});
    samples.push_back({"range.bytes", source, figures.bytes});
    samples.push_back({"range.keys", source, figures.keys});
  }
  const uint64_t now_ms = clock_.unix_ms();
  TRY(series_.append(now_ms, samples));
  if (!sizes.writes.empty()) TRY(commit(engine_, sizes));
  for (const ByteView name : {"range.reads", "range.writes", "range.bytes", "range.keys"})
    TRY(series_.roll_up(name, now_ms));
  return store_status();
}

Status RangeKeeper::store_status() {
  stored::NodeStatus status;
  for (const RangeFigures& figures : accounting_.figures({}, ~size_t{0})) {
    status.set_bytes(status.bytes() + figures.bytes);
    status.set_keys(status.keys() + figures.keys);
    status.set_reads_per_s(status.reads_per_s() + figures.reads_per_s);
    status.set_writes_per_s(status.writes_per_s() + figures.writes_per_s);
  }
  status.set_node(options_.node.value);
  status.set_version(options_.version);
  status.set_started_ms(started_ms_);
  status.set_time_ms(clock_.unix_ms());
  status.set_ranges(accounting_.ranges());
  Commit one;
  one.writes.put(encode(NodeStatusKey{options_.node}), encode_message(status));
  one.durability = options_.series.durability;
  return commit(engine_, one);
}

// --- the thread ---

void RangeKeeper::start() {
  thread_ = std::thread([this] { run(); });
}

void RangeKeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void RangeKeeper::run() {
  bool was_well = true;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const Status done = tick();
    if (!done && was_well)
      log_warn("ranges are not kept for now", {{"error", to_string(done.error())}});
    was_well = done.has_value();
    lock.lock();
    wake_.wait_for(lock, std::chrono::milliseconds(options_.tick_ms),
                   [&] { return stopping_.load(); });
  }
}

}  // namespace trellis
