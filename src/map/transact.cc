#include "map/transact.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/assert.h"
#include "base/no_wait.h"
#include "codec/counter_value.h"
#include "codec/pretty_key.h"
#include "codec/redis_collection.h"
#include "map/latches.h"
#include "map/record_cache.h"
#include "map/scan_leaves.h"
#include "map/traffic.h"

namespace trellis {
namespace {

// A value that the transaction itself wrote: copied, so that it outlives the next write.
struct OwnedPin {
  Bytes bytes;
  const char* data() const { return bytes.data(); }
  size_t size() const { return bytes.size(); }
};

void set_own(Value& value, const std::optional<ByteView>& bytes) {
  if (!bytes) return value.set_absent();
  OwnedPin& pin = value.pin<OwnedPin>();
  pin.bytes = *bytes;
  value.set_found(pin.bytes);
}

// What nobody can find: whether it is there makes no difference.
Error not_seen(Error error) {
  if (error.code == Code::maybe) error.code = Code::unavailable;
  return error;
}

bool before_end(ByteView key, ByteView end) { return end.empty() || key < end; }

}  // namespace

// --- reads ---

Status View::violation(const char* what, ByteView key) const {
  return Error{Code::invalid,
               fmt::format("{} of {} lies outside the transaction's scope", what, pretty_key(key))};
}

void View::note_violation(const char* what, ByteView key) {
  if (violated_) violated_ = violation(what, key);
}

bool View::range_removed(ByteView key) const {
  auto range = ranges_.upper_bound(key);
  if (range == ranges_.begin()) return false;
  --range;
  return before_end(key, range->second);
}

bool View::read_own(ByteView key, Value& value) const {
  if (points_.empty() && ranges_.empty()) return false;
  if (const auto point = points_.find(key); point != points_.end()) {
    set_own(value, point->second.value);
    return true;
  }
  if (!range_removed(key)) return false;
  value.set_absent();
  return true;
}

Status View::expect(Expectation expectation) {
  if (is_ahead(expectation.begin)) return {};
  expected_bytes_ += expectation_bytes(expectation);
  if (expected_bytes_ > expectation_bytes_max)
    return Error{
        Code::too_large,
        fmt::format("a transaction that reads {} bytes is over expectation_bytes_max ({}): "
                    "read less, or in several transactions",
                    expected_bytes_, expectation_bytes_max)};
  expectations_.push_back(std::move(expectation));
  return {};
}

Status View::expect_value(ByteView key, const Value& value) {
  if (way_ != Way::expecting) return {};
  // What was seen first must still be so; seen again it proves nothing more.
  if (!expected_keys_.emplace(key).second) return {};
  return expect({.begin = Bytes(key), .end = std::nullopt, .seen = engine_.evidence(value)});
}

namespace {

Error added_to(ByteView key) {
  return {Code::invalid, fmt::format("{} was added to in this transaction and cannot be read in it",
                                     pretty_key(key))};
}

}  // namespace

Status View::check_read(ByteView key) const {
  if (check_scope_ && !scope_.allows_read(key)) return violation("read", key);
  if (!adds_.empty() && adds_.contains(key)) return added_to(key);
  return {};
}

Status View::check_scan(ByteView begin, ByteView end) const {
  if (sampled_reads_ != nullptr) sampled_reads_->emplace_back(begin);
  if (check_scope_ && !scope_.allows_scan(begin, end)) return violation("scan", begin);
  const auto add = adds_.lower_bound(begin);
  if (add != adds_.end() && before_end(add->first, end)) return added_to(add->first);
  return {};
}

Status View::get(ByteView key, Value& value) {
  TRY(check_read(key));
  if (is_loading(key)) TRY(finish_load());
  if (sampled_reads_ != nullptr) sampled_reads_->emplace_back(key);
  if (read_own(key, value)) return {};
  TRY(read_stored(key, value));
  return expect_value(key, value);
}

Status View::read_stored(ByteView key, Value& value) {
  const bool is_cached = caches_ != nullptr && RecordCache::holds(key);
  if (is_cached && caches_->records.get(key, value)) return {};
  TRY(engine_.get(key, value));
  if (is_cached) cache_read(key, value);
  return {};
}

void View::cache_read(ByteView key, const Value& value) {
  caches_->records.put_read(key, value);
  cached_absent_ = cached_absent_ || (!value.found() && !RecordCache::is_of_key(key));
}

Status View::read_stored(std::span<const ByteView> keys, std::span<Value> values) {
  if (keys.size() == 1) return read_stored(keys[0], values[0]);
  if (caches_ == nullptr) return engine_.multi_get(keys, values);
  const auto known = std::make_unique<bool[]>(keys.size());
  caches_->records.get_many(keys, values, {known.get(), keys.size()});
  std::vector<size_t> unknown;
  for (size_t i = 0; i < keys.size(); i++)
    if (!known[i]) unknown.push_back(i);
  if (unknown.empty()) return {};
  std::vector<ByteView> asked;
  for (const size_t i : unknown) asked.push_back(keys[i]);
  std::vector<Value> answers(asked.size());
  TRY(engine_.multi_get(asked, answers));
  for (size_t j = 0; j < unknown.size(); j++) {
    if (RecordCache::holds(asked[j])) cache_read(asked[j], answers[j]);
    values[unknown[j]] = std::move(answers[j]);
  }
  return {};
}

Status View::prefetch(std::span<const ByteView> keys) {
  if (caches_ == nullptr || keys.size() < 2) return {};
  for (const ByteView key : keys) TRY(check_read(key));
  TRY(finish_load_of(keys));
  std::vector<Value> values(keys.size());
  return read_stored(keys, values);
}

Status View::multi_get(std::span<const ByteView> keys, std::span<Value> values) {
  ASSERT(keys.size() == values.size());
  for (const ByteView key : keys) TRY(check_read(key));
  TRY(finish_load_of(keys));
  if (sampled_reads_ != nullptr)
    sampled_reads_->insert(sampled_reads_->end(), keys.begin(), keys.end());
  TRY(read_stored(keys, values));
  // Own writes are few: it costs less to read over them than to leave them out of the batch.
  for (size_t i = 0; i < keys.size(); i++)
    if (!read_own(keys[i], values[i])) TRY(expect_value(keys[i], values[i]));
  return {};
}

bool View::overlays(ByteView begin, ByteView end) const {
  const auto point = points_.lower_bound(begin);
  if (point != points_.end() && before_end(point->first, end)) return true;
  const auto range = ranges_.lower_bound(begin);
  if (range != ranges_.end() && before_end(range->first, end)) return true;
  return range_removed(begin);
}

Status View::expect_page(const ScanRequest& request, ScanPage& page) {
  if (way_ != Way::expecting) return {};
  if (!request.end.empty() && request.begin >= request.end) return {};  // nothing can lie in it
  Expectation expected{.begin = Bytes(request.begin), .end = Bytes(request.end), .seen = {}};
  if (page.resume && !request.reverse) expected.end = *page.resume;
  if (page.resume && request.reverse) expected.begin = *page.resume;
  expected.seen = std::move(page.evidence);
  return expect(std::move(expected));
}

// Merges pages of the engine with the transaction's own writes. Entries come in the scan's order
// through emit(), which counts and limits them.
class View::Merge {
 public:
  Merge(const View& view, const ScanRequest& request, ScanVisitor visit)
      : view_(view),
        request_(request),
        visit_(visit),
        forward_(view.points_.lower_bound(request.begin)) {
    reverse_ = request.end.empty() ? view.points_.end() : view.points_.lower_bound(request.end);
  }

  // One entry of the engine, behind all own entries that come before it.
  Visit engine_entry(ByteView key, ByteView value) {
    if (own_entries_before(key) == Visit::stop) return Visit::stop;
    if (own_left() && own().first == key) return emit_own();
    return view_.range_removed(key) ? Visit::go_on : emit(key, value);
  }

  // What is left of the own entries when the engine has no more.
  Visit rest() {
    while (own_left())
      if (emit_own() == Visit::stop) return Visit::stop;
    return Visit::go_on;
  }

  ScanPage page() && { return std::move(page_); }
  bool stopped() const { return stopped_; }

 private:
  bool own_left() const {
    if (request_.reverse)
      return reverse_ != view_.points_.begin() && std::prev(reverse_)->first >= request_.begin;
    return forward_ != view_.points_.end() && before_end(forward_->first, request_.end);
  }
  const Points::value_type& own() const {
    return request_.reverse ? *std::prev(reverse_) : *forward_;
  }

  Visit emit_own() {
    const Points::value_type& entry = own();
    if (request_.reverse)
      --reverse_;
    else
      ++forward_;
    return entry.second.value ? emit(entry.first, *entry.second.value) : Visit::go_on;
  }
  Visit own_entries_before(ByteView key) {
    while (own_left() && (request_.reverse ? own().first > key : own().first < key))
      if (emit_own() == Visit::stop) return Visit::stop;
    return Visit::go_on;
  }

  Visit emit(ByteView key, ByteView value) {
    const bool full =
        page_.entries > 0 && (page_.entries >= request_.entries_max ||
                              bytes_ + key.size() + value.size() > request_.bytes_max);
    if (full) return stop();
    page_.entries++;
    bytes_ += key.size() + value.size();
    last_ = key;
    if (visit_(key, value) == Visit::stop || page_.entries >= request_.entries_max) return stop();
    return Visit::go_on;
  }
  Visit stop() {
    stopped_ = true;
    page_.resume = request_.reverse ? last_ : successor(last_);
    return Visit::stop;
  }

  const View& view_;
  const ScanRequest& request_;
  ScanVisitor visit_;
  Points::const_iterator forward_;
  Points::const_iterator reverse_;
  ScanPage page_;
  size_t bytes_ = 0;
  Bytes last_;
  bool stopped_ = false;
};

Result<ScanPage> View::scan_stored(const ScanRequest& request, ScanVisitor visit) {
  return caches_ == nullptr ? engine_.scan(request, visit)
                            : caches_->leaves.scan(engine_, request, visit);
}

Result<ScanPage> View::scan(const ScanRequest& request, ScanVisitor visit) {
  TRY(check_scan(request.begin, request.end));
  if (is_loading(request.begin, request.end)) TRY(finish_load());
  ScanRequest asked = request;
  asked.want_evidence = way_ == Way::expecting;
  if (!overlays(request.begin, request.end)) {
    TRY_ASSIGN(ScanPage page, scan_stored(asked, visit));
    TRY(expect_page(asked, page));
    return page;
  }
  Merge merge(*this, request, visit);
  const auto merge_entry = [&](ByteView key, ByteView value) {
    return merge.engine_entry(key, value);
  };
  Bytes resume;
  for (;;) {
    TRY_ASSIGN(ScanPage page, scan_stored(asked, merge_entry));
    TRY(expect_page(asked, page));  // before `resume` changes, which asked may refer to
    if (merge.stopped()) break;
    if (!page.resume) {
      merge.rest();
      break;
    }
    resume = std::move(*page.resume);
    (request.reverse ? asked.end : asked.begin) = resume;
  }
  return std::move(merge).page();
}

Result<Engine*> View::stored(ByteView begin, ByteView end) {
  TRY(check_scan(begin, end));
  if (is_loading(begin, end)) TRY(finish_load());
  if (way_ != Way::latched || overlays(begin, end)) return nullptr;
  return &engine_;
}

// --- writes ---

// What is over the limit is not kept: the transaction has failed, and says so when it ends.
bool View::has_room(size_t bytes) {
  buffered_bytes_ += bytes;
  if (buffered_bytes_ <= commit_bytes_max) return true;
  if (violated_)
    violated_ = Error{Code::too_large,
                      fmt::format("a transaction that writes over commit_bytes_max ({}): write "
                                  "less, or stage it in several",
                                  commit_bytes_max),
                      commit_too_large};
  return false;
}

ByteView View::keep(ByteView bytes) {
  char* const kept = static_cast<char*>(memory_.allocate(bytes.size(), 1));
  std::copy(bytes.begin(), bytes.end(), kept);
  return {kept, bytes.size()};
}

// In its old place, if it is large enough. (`value` may be what is there.)
void View::set_value(Buffered& buffered, ByteView value) {
  if (!buffered.value || value.size() > buffered.room) {
    buffered.value = keep(value);
    buffered.room = value.size();
    return;
  }
  char* const place = const_cast<char*>(buffered.value->data());
  std::memmove(place, value.data(), value.size());
  buffered.value = ByteView(place, value.size());
}

void View::begin_write(const char* what, ByteView key) {
  if (check_scope_ && !scope_.allows_write(key)) note_violation(what, key);
  forget_add(key);
}

void View::put(ByteView key, ByteView value) {
  begin_write("put", key);
  if (continues_load(key)) return put_next(key, value);
  buffer_next(key);
  const auto point = points_.lower_bound(key);
  const bool known = point != points_.end() && point->first == key;
  // What has to move to a larger place leaves its old one to nobody: it counts on.
  const bool fits = known && point->second.value && value.size() <= point->second.room;
  if (!has_room(fits ? 0 : value.size() + (known ? 0 : key.size()))) return;
  set_value(known ? point->second : points_.emplace_hint(point, keep(key), Buffered{})->second,
            value);
}

void View::put_all(WriteSet puts) {
  if (puts.empty()) return;
  if (!continues_load(puts.front().key)) {
    for (const WriteSet::Write& one : puts) put(one.key, one.value);
    return;
  }
  ASSERT(puts.back().key.starts_with(loading_->prefix));
  if (check_scope_ || !adds_.empty())  // else there is no need to look at each
    for (const WriteSet::Write& one : puts) begin_write("put", one.key);
  put_next(std::move(puts));
}

void View::remove(ByteView key) {
  begin_write("remove", key);
  buffer_next(key);
  const auto point = points_.lower_bound(key);
  const bool known = point != points_.end() && point->first == key;
  if (known)
    point->second = {};
  else if (has_room(key.size()))
    points_.emplace_hint(point, keep(key), Buffered{});
}

void View::remove_range(ByteView begin, ByteView end) {
  remove_unread(begin, end);
  removed_read_ = true;
}

void View::remove_unread(ByteView begin, ByteView end) {
  if (check_scope_ && !scope_.allows_remove_range(begin, end))
    note_violation("remove_range", begin);
  if (!end.empty() && begin >= end) return;
  buffer_next();
  if (!has_room(begin.size() + end.size())) return;
  const auto first = points_.lower_bound(begin);
  const auto last = end.empty() ? points_.end() : points_.lower_bound(end);
  points_.erase(first, last);
  adds_.erase(adds_.lower_bound(begin), end.empty() ? adds_.end() : adds_.lower_bound(end));
  // Joined with every range that it touches, so that ranges stay disjoint.
  Bytes from(begin);
  Bytes to(end);
  auto range = ranges_.upper_bound(from);
  if (range != ranges_.begin()) {
    const Bytes& previous_end = std::prev(range)->second;
    if (previous_end.empty() || previous_end >= from) --range;
  }
  while (range != ranges_.end() && (to.empty() || range->first <= to)) {
    from = std::min(from, range->first);
    if (!to.empty() && (range->second.empty() || range->second > to)) to = range->second;
    range = ranges_.erase(range);
  }
  ranges_.emplace(std::move(from), std::move(to));
}

void View::add(ByteView key, int64_t delta) {
  if (check_scope_ && !scope_.allows_write(key)) note_violation("add", key);
  const auto known = adds_.find(key);
  if (known != adds_.end())
    known->second = add_wrapping(known->second, delta);
  else if (has_room(key.size() + sizeof delta))
    adds_.emplace(keep(key), delta);
}

void View::begins(ByteView collection) {
  if (caches_ != nullptr) begun_.emplace_back(collection);
}

// An add before a put or remove of the same key has no effect; one after it has.
void View::forget_add(ByteView key) {
  if (adds_.empty()) return;
  if (const auto add = adds_.find(key); add != adds_.end()) adds_.erase(add);
}

// Ranges first: a key that was put after its range was removed is in points_.
void View::build_commit(Commit& commit) {
  commit.writes.reserve(buffered_bytes_, points_.size() + ranges_.size() + adds_.size());
  for (const auto& [begin, end] : ranges_) commit.writes.remove_range(begin, end);
  for (const auto& [key, buffered] : points_) {
    if (buffered.value)
      commit.writes.put(key, *buffered.value);
    else
      commit.writes.remove(key);
  }
  for (const auto& [key, delta] : adds_) commit.writes.add(key, delta);
  commit.expectations = std::move(expectations_);
}

bool View::is_ahead(ByteView key) const {
  const auto behind = ahead_.upper_bound(key);
  return behind != ahead_.begin() && key.starts_with(std::prev(behind)->first);
}

std::optional<Bytes> View::find_run(std::span<const ByteView> prefixes) const {
  constexpr size_t run_bytes_min = 512 * 1024;
  constexpr size_t most_of = 8;  // all but one of so many parts
  if (way_ != Way::latched) return std::nullopt;
  for (const ByteView prefix : prefixes) {
    const bool is_loaded = loading_ && loading_->prefix == prefix;
    const bool has_next = is_loaded && !loading_->next.empty();
    size_t bytes = has_next ? loading_->next.bytes() : 0;
    const auto first = points_.lower_bound(prefix);
    auto point = first;
    for (; point != points_.end() && point->first.starts_with(prefix); ++point) {
      if (!point->second.value || has_next) return std::nullopt;
      bytes += point->first.size() + point->second.value->size();
    }
    if (bytes < run_bytes_min || bytes < buffered_bytes_ - buffered_bytes_ / most_of) continue;
    const bool is_behind = has_next || first->first > ahead_.find(prefix)->second;
    if (is_behind && (!loading_ || is_loaded)) return Bytes(prefix);
  }
  return std::nullopt;
}

void View::split_off(const std::optional<Bytes>& run_prefix, WriteSet& run, WriteSet& ahead) {
  std::vector<std::pair<Bytes, std::optional<Bytes>>> staying;
  std::vector<std::pair<Bytes, int64_t>> staying_adds;
  if (loading_) run = std::exchange(loading_->next, {});
  if (run.empty())
    (run_prefix ? run : ahead).reserve(buffered_bytes_, points_.size() + adds_.size());
  for (const auto& [key, buffered] : points_) {
    if (run_prefix && key.starts_with(*run_prefix))
      run.put(key, *buffered.value);
    else if (!is_ahead(key))
      staying.emplace_back(key, buffered.value);
    else if (buffered.value)
      ahead.put(key, *buffered.value);
    else
      ahead.remove(key);
  }
  for (const auto& [key, delta] : adds_) {
    if (is_ahead(key))
      ahead.add(key, delta);
    else
      staying_adds.emplace_back(key, delta);
  }
  points_.clear();
  adds_.clear();
  memory_.release();
  buffered_bytes_ = 0;
  for (const auto& [begin, end] : ranges_) buffered_bytes_ += begin.size() + end.size();
  for (const auto& [key, value] : staying) value ? put(key, *value) : remove(key);
  for (const auto& [key, delta] : staying_adds) add(key, delta);
}

Status View::commit_ahead(std::span<const ByteView> prefixes) {
  TRY(violated_);
  for (const ByteView prefix : prefixes) ahead_.emplace(prefix, Bytes());
  std::erase_if(expectations_, [&](const Expectation& expectation) {
    const bool is_own = is_ahead(expectation.begin);
    if (is_own) expected_bytes_ -= expectation_bytes(expectation);
    return is_own;
  });
  const std::optional<Bytes> run_prefix = find_run(prefixes);
  for (const ByteView prefix : prefixes) {
    const auto behind = points_.lower_bound(prefix_end(prefix));
    if (behind == points_.begin()) continue;
    const ByteView last = std::prev(behind)->first;
    Bytes& known = ahead_.find(prefix)->second;
    if (last.starts_with(prefix) && last > known) known = last;
  }
  if (!run_prefix) TRY(finish_load());
  Commit commit;
  WriteSet run;
  commit.durability = durability_;
  split_off(run_prefix, run, commit.writes);
  // It is much, and nobody has asked for it yet: caches are left to what is asked for.
  if (caches_ != nullptr) {
    // Nothing of a run was ever stored: all that can be cached is that it was not found.
    const bool may_be_cached =
        cached_absent_ ||
        (run_prefix && caches_->leaves.may_have(redis_collection_of(*run_prefix)));
    if (may_be_cached)
      for (const WriteSet::Write& write : run) forget_cached(write.key);
    for (const WriteSet::Write& write : commit.writes) forget_cached(write.key);
  }
  return run_prefix ? load_run(*run_prefix, std::move(run), commit.writes) : commit_now(commit);
}

// Nobody waits for it: what is durable with the transaction was written behind it.
Status View::commit_now(const Commit& commit) {
  if (commit.writes.empty()) return {};
  const Commit* const commits[] = {&commit};
  Status outcomes[1];
  engine_.commit_many(commits, outcomes);
  return std::move(outcomes[0]);
}

Status View::load_run(const Bytes& prefix, WriteSet run, const WriteSet& rest) {
  constexpr size_t rest_bytes_max = 4 * 1024 * 1024;
  constexpr size_t held_bytes_max = 12 * 1024 * 1024;
  TRY(check_writes(run));  // loads take what they are given
  if (!loading_) {
    Bytes& last = ahead_.find(prefix)->second;
    loading_.emplace(Loading{.prefix = prefix, .last = &last, .load = {}, .run = {}, .rest = {}});
  }
  loading_->rest.append(rest);
  if (loading_->load == nullptr &&
      loading_->run.bytes() + run.bytes() + loading_->rest.bytes() > held_bytes_max) {
    loading_->load = engine_.begin_load();
    if (loading_->load == nullptr) TRY(finish_load());  // commits are all there is
    if (loading_) loading_->load->put(std::exchange(loading_->run, {}));
  }
  if (!loading_) {
    Commit commit;
    commit.durability = durability_;
    commit.writes = std::move(run);
    return commit_now(commit);
  }
  if (loading_->load != nullptr)
    loading_->load->put(std::move(run));
  else
    loading_->run.append(run);
  return loading_->rest.bytes() < rest_bytes_max ? Status() : finish_load();
}

bool View::continues_load(ByteView key) const {
  if (!loading_ || loading_->load == nullptr) return false;
  if (!key.starts_with(loading_->prefix) || key <= *loading_->last) return false;
  const auto behind = points_.lower_bound(key);
  return behind == points_.end() || !behind->first.starts_with(loading_->prefix);
}

void View::put_next(ByteView key, ByteView value) {
  constexpr size_t usual_bytes = 1280 * 1024;  // of a part that is committed ahead
  if (!has_room(key.size() + value.size())) return;
  WriteSet& next = loading_->next;
  if (next.empty()) next.reserve(usual_bytes, 0);
  next.put(key, value);
  *loading_->last = key;
}

void View::put_next(WriteSet puts) {
  if (!has_room(puts.content_bytes())) return;
  *loading_->last = puts.back().key;
  WriteSet& next = loading_->next;
  if (next.empty())
    next = std::move(puts);
  else
    next.append(puts);
}

void View::buffer_next(ByteView key) {
  if (loading_ && key.starts_with(loading_->prefix)) buffer_next();
}

void View::buffer_next() {
  if (!loading_ || loading_->next.empty()) return;
  const WriteSet next = std::exchange(loading_->next, {});
  for (const WriteSet::Write& write : next) {
    const auto point = points_.emplace_hint(points_.end(), keep(write.key), Buffered{});
    set_value(point->second, write.value);
  }
}

Status View::finish_load() {
  if (!loading_) return {};
  buffer_next();
  Loading loading = std::move(*loading_);
  loading_.reset();
  Commit commit;
  commit.durability = durability_;
  commit.writes = std::move(loading.rest);
  commit.writes.append(loading.run);
  const Status done =
      loading.load == nullptr ? commit_now(commit) : loading.load->commit(std::move(commit));
  if (done) return {};
  // Also of who only wanted to read, and goes on without.
  if (violated_) violated_ = not_seen(done.error());
  return not_seen(done.error());
}

Status View::finish_load_of(std::span<const ByteView> keys) {
  if (!loading_) return {};
  const auto is_read = [&](ByteView key) { return is_ahead(key); };
  return std::ranges::any_of(keys, is_read) ? finish_load() : Status();
}

bool View::is_loading(ByteView key) const { return loading_ && is_ahead(key); }

bool View::is_loading(ByteView begin, ByteView end) const {
  if (!loading_) return false;
  const auto inside = ahead_.lower_bound(begin);
  return is_ahead(begin) || (inside != ahead_.end() && before_end(inside->first, end));
}

void View::forget_cached(ByteView key) const {
  const ByteView collection = redis_collection_of(key);
  if (!collection.empty() && caches_->leaves.may_have(collection))
    caches_->leaves.doubt(collection, key);
  if (RecordCache::holds(key)) caches_->records.forget(key);
}

void View::settle_caches(bool committed) const {
  if (caches_ == nullptr) return;
  for (const auto& [begin, end] : ranges_) {
    if (!removed_read_) break;
    caches_->records.forget_range(begin, end);
    caches_->leaves.forget_range(begin, end);
  }
  ByteView collection;
  bool has_leaves = false;
  for (const auto& [key, buffered] : points_) {
    if (!committed) {
      forget_cached(key);
      continue;
    }
    if (const ByteView next = redis_collection_of(key); next != collection) {
      collection = next;
      has_leaves = !collection.empty() && caches_->leaves.may_have(collection);
    }
    if (has_leaves) caches_->leaves.written(collection, key, buffered.value);
    if (RecordCache::holds(key)) caches_->records.put_written(key, buffered.value);
  }
  if (!committed) return;
  for (const Bytes& begun : begun_) {
    caches_->leaves.put_new(begun, [&](ScanVisitor visit) {
      for (auto point = points_.lower_bound(begun);
           point != points_.end() && point->first.starts_with(begun); ++point)
        if (point->second.value && visit(point->first, *point->second.value) == Visit::stop) return;
    });
  }
}

// --- transact ---

namespace {

// Where nothing was written nothing is half known: the reads could not be validated.
Status not_validated(const Status& outcome) { return not_seen(outcome.error()); }

// Whether the observer is shown this transaction.
bool is_sampled(unsigned one_in) {
  thread_local uint32_t state = 0x9e3779b9;
  thread_local uint32_t left = 1;
  if (--left != 0) return false;
  state ^= state << 13;  // xorshift: any gap, so that a client's rhythm is not met
  state ^= state >> 17;
  state ^= state << 5;
  left = 1 + state % (2 * one_in - 1);
  return true;
}

}  // namespace

Transactor::Transactor(Engine& engine, Clock& clock, TransactOptions options)
    : engine_(engine),
      clock_(clock),
      way_(options.way.value_or(engine.shared() ? Way::expecting : Way::latched)),
      check_scope_(options.check_scope),
      seed_(options.seed),
      observer_(options.observer),
      observed_one_in_(options.observed_one_in),
      latches_(way_ == Way::latched ? std::make_unique<LatchTable>() : nullptr) {
  if (way_ == Way::latched && options.record_cache_bytes != 0) {
    const size_t leaf_bytes = options.record_cache_bytes / 4;
    records_ = std::make_unique<RecordCache>(options.record_cache_bytes - leaf_bytes);
    leaves_ = std::make_unique<ScanLeaves>(leaf_bytes);
    caches_.emplace(View::Caches{*records_, *leaves_});
  }
  // Latches see nothing of what others write to a shared engine.
  ASSERT(way_ == Way::expecting || !engine.shared());
}

Transactor::~Transactor() = default;

Status Transactor::transact(const Scope& scope, FunctionRef<Status(View&)> fn,
                            Durability durability) {
  for (unsigned attempt_number = 1;; attempt_number++) {
    Attempt done = attempt(scope, fn, durability);
    if (!done.conflict || attempt_number == transact_attempts_max) return std::move(done.status);
    back_off(attempt_number);
  }
}

Transactor::Attempt Transactor::attempt(const Scope& scope, FunctionRef<Status(View&)> fn,
                                        Durability durability) {
  std::optional<LatchTable::Held> held;
  if (way_ == Way::latched) {
    using Patience = LatchTable::Held::Patience;
    held.emplace(*latches_, scope, NoWait::is_on() ? Patience::tries : Patience::waits);
    if (!held->has_all())
      return {Error{Code::busy, "others write what this reads or writes", would_wait_reason}};
  }

  View view(engine_, caches_ ? &*caches_ : nullptr, scope, way_, check_scope_, durability);
  std::vector<Bytes> sampled_reads;
  const bool sampled = observer_ != nullptr && is_sampled(observed_one_in_);
  if (sampled) view.sampled_reads_ = &sampled_reads;
  Status answer = fn(view);
  if (answer && view.violated_) answer = view.finish_load();
  if (!view.violated_) return {std::move(view.violated_)};

  Commit commit;
  commit.durability = durability;
  // A function that fails writes nothing; but what it failed on must have been true.
  if (answer)
    view.build_commit(commit);
  else
    commit.expectations = std::move(view.expectations_);
  const bool writes = !commit.writes.empty();

  // A reader waits for what it has read, a writer for what it has written.
  CommitTicket ticket = engine_.last_ticket();
  if (writes || !commit.expectations.empty()) {
    const Commit* const commits[] = {&commit};
    Status outcomes[1];
    ticket = engine_.commit_many(commits, outcomes);
    if (writes) view.settle_caches(outcomes[0].has_value());
    if (writes && outcomes[0] && held)
      for (const std::function<void()>& function : view.once_committed_) function();
    if (!outcomes[0]) {
      const bool conflict = outcomes[0].error().code == Code::conflict;
      return {writes ? std::move(outcomes[0]) : not_validated(outcomes[0]), conflict};
    }
  }
  held.reset();  // the order is fixed; the disk may take its time
  if (sampled) observer_->sampled(sampled_reads, commit.writes);
  // An error is an answer too: what it was based on must not be taken back.
  if (durability == Durability::always)
    if (const Status durable = engine_.wait_durable(ticket); !durable)
      return {Error{writes ? Code::maybe : Code::unavailable, durable.error().message}};
  return {std::move(answer)};
}

// Longer with every attempt, and unlike for any two threads.
void Transactor::back_off(unsigned attempt) {
  static std::atomic<uint64_t> calls{0};
  Random random(seed_ + calls.fetch_add(1, std::memory_order_relaxed));
  const uint64_t most_us = 20ull << std::min(attempt, 10u);
  clock_.pause_us(random.below(most_us));
}

}  // namespace trellis
