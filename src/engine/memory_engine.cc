#include "engine/memory_engine.h"

#include <fmt/format.h>

#include <mutex>

#include "base/assert.h"
#include "codec/counter_value.h"
#include "engine/page_evidence.h"

namespace trellis {
namespace {

// Keeps the bytes of a found value alive for as long as the Value that holds it.
struct SharedPin {
  std::shared_ptr<const Bytes> bytes;
  const char* data() const { return bytes->data(); }
  size_t size() const { return bytes->size(); }
};

void set_value(Value& value, std::shared_ptr<const Bytes> stored) {
  SharedPin& pin = value.pin<SharedPin>();
  pin.bytes = std::move(stored);
  if (pin.bytes == nullptr) {
    value.set_absent();
  } else {
    value.set_found(*pin.bytes);
  }
}

}  // namespace

// ---------------------------------------------------------------------------------------------
// MemoryStore

Status MemoryStore::check_open(uint64_t generation) const {
  if (generation == generation_) return {};
  return Error{Code::unavailable, "the store crashed: open it again"};
}

MemoryStore::Entries::const_iterator MemoryStore::end_of(ByteView end) const {
  return end.empty() ? entries_.end() : entries_.lower_bound(end);
}

bool MemoryStore::holds(const Expectation& expectation) const {
  if (expectation.end.has_value()) {
    return interval_holds(expectation.begin, *expectation.end, *expectation.seen);
  }
  const auto found = entries_.find(expectation.begin);
  if (found == entries_.end()) return !expectation.seen.has_value();
  return expectation.seen.has_value() && *found->second == *expectation.seen;
}

bool MemoryStore::interval_holds(ByteView begin, ByteView end, ByteView seen) const {
  if (empty_interval(begin, end)) return seen.empty();
  const auto last = end_of(end);
  for (auto at = entries_.lower_bound(begin); at != last; ++at) {
    if (!take_evidence(seen, at->first, *at->second)) return false;
  }
  return seen.empty();
}

void MemoryStore::apply(const WriteSet& writes) {
  Undo undo{.sequence = ++sequence_, .entries = {}, .blocks = {}};
  for (const WriteSet::Write& write : writes) {
    switch (write.op) {
      case WriteOp::put:
        set_entry(write.key, std::make_shared<const Bytes>(write.value), undo);
        break;
      case WriteOp::remove: set_entry(write.key, nullptr, undo); break;
      case WriteOp::remove_range: remove_range(write.key, write.value, undo); break;
      case WriteOp::add: add(write.key, write.delta, undo); break;
    }
  }
  remember(std::move(undo));
}

void MemoryStore::set_entry(ByteView key, Stored value, Undo& undo) {
  const auto found = entries_.find(key);
  const bool present = found != entries_.end();
  if (crashable_) undo.entries.emplace_back(key, present ? found->second : nullptr);
  if (value == nullptr) {
    if (present) entries_.erase(found);
  } else if (present) {
    found->second = std::move(value);
  } else {
    entries_.emplace(key, std::move(value));
  }
}

void MemoryStore::remove_range(ByteView begin, ByteView end, Undo& undo) {
  const Entries::const_iterator first = entries_.lower_bound(begin);
  const Entries::const_iterator last = end_of(end);
  if (crashable_) undo.entries.insert(undo.entries.end(), first, last);
  entries_.erase(first, last);
}

void MemoryStore::add(ByteView key, int64_t delta, Undo& undo) {
  const auto found = entries_.find(key);
  int64_t before = 0;
  if (found != entries_.end()) {
    const std::optional<int64_t> stored = decode_counter_value(*found->second);
    ASSERT(stored.has_value());  // check_commit lets nothing else under a counter key
    before = *stored;
  }
  set_entry(key, std::make_shared<const Bytes>(encode_counter_value(add_wrapping(before, delta))),
            undo);
}

void MemoryStore::write_block(const BlockWrite& write) {
  Undo undo{.sequence = ++sequence_, .entries = {}, .blocks = {}};
  auto next = std::make_shared<Bytes>();
  if (write.offset.has_value()) {
    if (const auto found = blocks_.find(write.block); found != blocks_.end()) {
      *next = *found->second;
    }
    const size_t end = *write.offset + write.bytes.size();
    if (next->size() < end) next->resize(end, '\0');
    next->replace(*write.offset, write.bytes.size(), write.bytes);
  } else {
    *next = write.bytes;
  }
  set_block(write.block, std::move(next), undo);
  remember(std::move(undo));
}

void MemoryStore::set_block(const BlockId& block, Stored value, Undo& undo) {
  Stored& stored = blocks_[block];
  if (crashable_) undo.blocks.emplace_back(block, stored);
  stored = std::move(value);
}

void MemoryStore::remove_blocks(Blocks::iterator from, Blocks::iterator to) {
  Undo undo{.sequence = ++sequence_, .entries = {}, .blocks = {}};
  if (crashable_) undo.blocks.assign(from, to);
  blocks_.erase(from, to);
  remember(std::move(undo));
}

void MemoryStore::remember(Undo undo) {
  if (crashable_) undurable_.push_back(std::move(undo));
}

void MemoryStore::revert(Undo& undo) {
  for (auto at = undo.entries.rbegin(); at != undo.entries.rend(); ++at) {
    if (at->second == nullptr) {
      entries_.erase(at->first);
    } else {
      entries_[at->first] = std::move(at->second);
    }
  }
  for (auto at = undo.blocks.rbegin(); at != undo.blocks.rend(); ++at) {
    if (at->second == nullptr) {
      blocks_.erase(at->first);
    } else {
      blocks_[at->first] = std::move(at->second);
    }
  }
}

MemoryStore::CrashReport MemoryStore::crash(Random& random) {
  ASSERT(crashable_);
  std::unique_lock lock(mutex_);
  CrashReport report;
  report.kept = random.below(undurable_.size() + 1);
  report.dropped = undurable_.size() - report.kept;
  while (undurable_.size() > report.kept) {
    revert(undurable_.back());
    undurable_.pop_back();
  }
  undurable_.clear();  // what is left was on the disk when the machine came back
  generation_++;
  return report;
}

// ---------------------------------------------------------------------------------------------
// MemoryBlocks

Status MemoryBlocks::read(std::span<const BlockId> blocks, std::span<Value> values) {
  ASSERT(blocks.size() == values.size());
  for (const BlockId& block : blocks) TRY(check_block_keyspace(block.keyspace));
  std::shared_lock lock(store_.mutex_);
  TRY(store_.check_open(generation_));
  for (size_t i = 0; i < blocks.size(); i++) {
    const auto found = store_.blocks_.find(blocks[i]);
    set_value(values[i], found == store_.blocks_.end() ? nullptr : found->second);
  }
  return {};
}

Status MemoryBlocks::write(std::span<const BlockWrite> writes) {
  for (const BlockWrite& write : writes) TRY(check_block_write(write));
  std::unique_lock lock(store_.mutex_);
  TRY(store_.check_open(generation_));
  for (const BlockWrite& write : writes) store_.write_block(write);
  return {};
}

Status MemoryBlocks::remove(KeyspaceId keyspace, DataId data, uint64_t first, uint64_t end) {
  TRY(check_block_keyspace(keyspace));
  if (first >= end) return {};
  std::unique_lock lock(store_.mutex_);
  TRY(store_.check_open(generation_));
  const auto from = store_.blocks_.lower_bound(BlockId{keyspace, data, first});
  const auto to = store_.blocks_.lower_bound(BlockId{keyspace, data, end});
  store_.remove_blocks(from, to);
  return {};
}

Result<BlockPage> MemoryBlocks::list(const BlockId& first, const BlockId& end, size_t blocks_max) {
  ASSERT(blocks_max > 0);
  TRY(check_block_keyspace(first.keyspace));
  std::shared_lock lock(store_.mutex_);
  TRY(store_.check_open(generation_));
  BlockPage page;
  for (auto at = store_.blocks_.lower_bound(first); at != store_.blocks_.end(); ++at) {
    if (at->first >= end) break;
    if (page.blocks.size() == blocks_max) {
      page.resume = at->first;
      break;
    }
    page.blocks.push_back({at->first, at->second->size()});
  }
  return page;
}

Result<bool> MemoryBlocks::remove_all(KeyspaceId keyspace, size_t blocks_max) {
  ASSERT(blocks_max > 0);
  TRY(check_block_keyspace(keyspace));
  std::unique_lock lock(store_.mutex_);
  TRY(store_.check_open(generation_));
  const auto from = store_.blocks_.lower_bound(blocks_begin(keyspace));
  const auto end = store_.blocks_.lower_bound(blocks_end(keyspace));
  auto to = from;
  while (to != end && blocks_max-- > 0) ++to;
  const bool is_all = to == end;
  store_.remove_blocks(from, to);
  return is_all;
}

// ---------------------------------------------------------------------------------------------
// MemoryEngine

namespace {

uint64_t current_generation(std::shared_mutex& mutex, const uint64_t& generation) {
  std::shared_lock lock(mutex);
  return generation;
}

}  // namespace

MemoryEngine::MemoryEngine(std::shared_ptr<MemoryStore> store, Use use)
    : store_(std::move(store)),
      use_(use),
      generation_(current_generation(store_->mutex_, store_->generation_)),
      blocks_(*store_, generation_) {}

Status MemoryEngine::get(ByteView key, Value& value) { return multi_get({&key, 1}, {&value, 1}); }

Status MemoryEngine::multi_get(std::span<const ByteView> keys, std::span<Value> values) {
  ASSERT(keys.size() == values.size());
  std::shared_lock lock(store_->mutex_);
  TRY(store_->check_open(generation_));
  for (size_t i = 0; i < keys.size(); i++) {
    const auto found = store_->entries_.find(keys[i]);
    set_value(values[i], found == store_->entries_.end() ? nullptr : found->second);
  }
  return {};
}

// One instant of an interval, taken under the lock and visited after it: a visitor of one handle
// keeps no other from writing.
struct MemoryEngine::Page {
  std::vector<std::pair<Bytes, MemoryStore::Stored>> entries;
  bool complete = true;  // nothing of the interval is left behind the last entry
};

Status MemoryEngine::load_page(const ScanRequest& request, Page& page) const {
  std::shared_lock lock(store_->mutex_);
  TRY(store_->check_open(generation_));
  if (empty_interval(request.begin, request.end)) return {};
  const auto first = store_->entries_.lower_bound(request.begin);
  const auto last = store_->end_of(request.end);
  size_t bytes = 0;
  auto take = [&](const auto& entry) {  // false: the page is full
    const size_t size = entry.first.size() + entry.second->size();
    const bool full = page.entries.size() >= request.entries_max ||
                      (!page.entries.empty() && bytes + size > request.bytes_max);
    if (full) {
      page.complete = false;
      return false;
    }
    bytes += size;
    page.entries.push_back(entry);
    return true;
  };
  if (request.reverse) {
    for (auto at = last; at != first;) {
      if (!take(*--at)) break;
    }
  } else {
    for (auto at = first; at != last; ++at) {
      if (!take(*at)) break;
    }
  }
  return {};
}

Result<ScanPage> MemoryEngine::scan(const ScanRequest& request, ScanVisitor visit) {
  ASSERT(request.entries_max > 0);
  Page page;
  TRY(load_page(request, page));
  ScanPage answer;
  for (const auto& [key, value] : page.entries) {
    answer.entries++;
    if (visit(key, *value) == Visit::stop) break;
  }
  if (answer.entries < page.entries.size() || !page.complete) {
    const Bytes& last = page.entries[answer.entries - 1].first;
    answer.resume = request.reverse ? last : successor(last);
  }
  if (request.want_evidence) {
    for (size_t i = 0; i < answer.entries; i++) {  // always in the order of the map
      const auto& [key, value] = page.entries[request.reverse ? answer.entries - 1 - i : i];
      append_evidence(answer.evidence, key, *value);
    }
  }
  return answer;
}

std::optional<Bytes> MemoryEngine::evidence(const Value& value) const {
  if (!value.found()) return std::nullopt;
  return Bytes(value.bytes());
}

CommitTicket MemoryEngine::commit_many(std::span<const Commit* const> commits,
                                       std::span<Status> outcomes) {
  ASSERT(commits.size() == outcomes.size());
  for (size_t i = 0; i < commits.size(); i++) outcomes[i] = commit_one(*commits[i]);
  return last_ticket();
}

Status MemoryEngine::commit_one(const Commit& commit) {
  TRY(check_commit(commit));
  std::unique_lock lock(store_->mutex_);
  TRY(store_->check_open(generation_));
  for (const Expectation& expectation : commit.expectations) {
    if (!store_->holds(expectation)) {
      return Error{Code::conflict, "changed since it was read: " + quote(expectation.begin)};
    }
  }
  store_->apply(commit.writes);
  return {};
}

// One large commit.
class MemoryEngine::WholeLoad final : public Load {
 public:
  explicit WholeLoad(MemoryEngine& engine) : engine_(engine) {}
  void put(WriteSet puts) override {
    for (const WriteSet::Write& put : puts) {
      ASSERT(put.op == WriteOp::put && last_ < put.key);
      last_ = put.key;
    }
    puts_.append(puts);
  }
  Status commit(Commit with) override {
    TRY(check_commit(with));
    ASSERT(with.expectations.empty());
    puts_.append(with.writes);
    const std::unique_lock lock(engine_.store_->mutex_);
    TRY(engine_.store_->check_open(engine_.generation_));
    engine_.store_->apply(puts_);
    return {};
  }

 private:
  MemoryEngine& engine_;
  WriteSet puts_;
  Bytes last_;
};

std::unique_ptr<Load> MemoryEngine::begin_load() {
  if (shared()) return nullptr;
  return std::make_unique<WholeLoad>(*this);
}

Status MemoryEngine::wait_durable(CommitTicket ticket) {
  std::unique_lock lock(store_->mutex_);
  TRY(store_->check_open(generation_));
  std::deque<MemoryStore::Undo>& undurable = store_->undurable_;
  while (!undurable.empty() && undurable.front().sequence <= ticket.value) undurable.pop_front();
  return {};
}

CommitTicket MemoryEngine::last_ticket() const {
  std::shared_lock lock(store_->mutex_);
  return CommitTicket{store_->sequence_};
}

Status MemoryEngine::checkpoint(const std::filesystem::path&) {
  return Error{Code::unsupported, "the memory engine has no files to copy"};
}

}  // namespace trellis
