#include "cluster_engine/cluster_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>

#include "base/assert.h"
#include "base/log.h"
#include "codec/address.h"
#include "codec/meta_keys.h"

namespace trellis {
namespace {

// Up to so many blocks are removed by their names; more are looked for.
constexpr uint64_t named_blocks_max = 1'024;

void set_record(Value& value, VersionedRecord record) {
  VersionedPin& pin = value.pin<VersionedPin>();
  if (!record.found) {
    pin.record = nullptr;
    return value.set_absent();
  }
  pin.record = std::make_shared<const VersionedRecord>(std::move(record));
  value.set_found(pin.record->value);
}

Bytes block_prefix(KeyspaceId keyspace, DataId data) {
  return fmt::format("b.{}.{}.", keyspace.value, data.value);
}
Bytes block_name(const BlockId& block) {
  return block_prefix(block.keyspace, block.data) + std::to_string(block.index);
}
// Absent: it is not the name of a block.
std::optional<BlockId> block_named(ByteView name) {
  if (!name.starts_with("b.")) return std::nullopt;
  const char* at = name.data() + 2;
  const char* const end = name.data() + name.size();
  uint64_t numbers[3];
  for (size_t i = 0; i < 3; i++) {
    if (i > 0 && (at == end || *at++ != '.')) return std::nullopt;
    const auto [next, failed] = std::from_chars(at, end, numbers[i]);
    if (failed != std::errc()) return std::nullopt;
    at = next;
  }
  if (at != end || numbers[0] > keyspace_id_max) return std::nullopt;
  return BlockId{KeyspaceId{static_cast<uint32_t>(numbers[0])}, DataId{numbers[1]}, numbers[2]};
}
// That the names of all blocks in [first, end) begin with.
Bytes common_prefix(const BlockId& first, const BlockId& end) {
  if (end <= BlockId{first.keyspace, first.data, UINT64_MAX})
    return block_prefix(first.keyspace, first.data);
  if (end <= blocks_end(first.keyspace)) return fmt::format("b.{}.", first.keyspace.value);
  return "b.";
}

}  // namespace

// --- blocks ---

Status ClusterBlocks::read(std::span<const BlockId> blocks, std::span<Value> values) {
  ASSERT(blocks.size() == values.size());
  for (const BlockId& block : blocks) TRY(check_block_keyspace(block.keyspace));
  for (size_t i = 0; i < blocks.size(); i++) {
    const Bytes object = block_name(blocks[i]);
    ReadAnswer answer;
    const int status = store_.read("block.read", object,
                                   {.guards = {},
                                    .omap_keys = {},
                                    .omap_pages = {},
                                    .bytes = BytesRequest{0, block_bytes_max}},
                                   answer);
    if (status != -ENOENT) {
      if (const Status done = object_status(status, object); !done.has_value())
        return without_doubt(done.error());
    }
    set_record(values[i],
               {.found = status != -ENOENT, .value = std::move(answer.bytes), .version = {}});
  }
  return {};
}

Status ClusterBlocks::write(std::span<const BlockWrite> writes) {
  for (const BlockWrite& write : writes) TRY(check_block_write(write));
  for (const BlockWrite& write : writes) {  // one by one: the same block may come twice
    WriteOperation operation;
    if (write.offset)
      operation.changes.emplace_back(WriteBytes{*write.offset, Bytes(write.bytes)});
    else
      operation.changes.emplace_back(WriteWhole{Bytes(write.bytes)});
    const Bytes object = block_name(write.block);
    const Status done = object_status(store_.write("block.write", object, operation), object);
    if (!done.has_value()) return without_doubt(done.error());
  }
  return {};
}

Status ClusterBlocks::remove(KeyspaceId keyspace, DataId data, uint64_t first, uint64_t end) {
  TRY(check_block_keyspace(keyspace));
  std::vector<Bytes> objects;
  if (first >= end) return {};
  if (end - first <= named_blocks_max) {
    for (uint64_t index = first; index < end; index++)
      objects.push_back(block_name({keyspace, data, index}));
  } else {
    const Bytes prefix = block_prefix(keyspace, data);
    const int listed = store_.list(prefix, [&](ByteView object) {
      uint64_t index = 0;
      std::from_chars(object.data() + prefix.size(), object.data() + object.size(), index);
      if (first <= index && index < end) objects.emplace_back(object);
    });
    TRY(object_status(listed, prefix));
  }
  for (const Bytes& object : objects) TRY(remove_object(object));
  return {};
}

// In order, though the store has none: the first so many of each look at all of them.
Result<std::vector<BlockId>> ClusterBlocks::first_blocks(const BlockId& first, const BlockId& end,
                                                         size_t blocks_max) {
  std::set<BlockId> found;
  const Bytes prefix = common_prefix(first, end);
  const int listed = store_.list(prefix, [&](ByteView object) {
    const std::optional<BlockId> block = block_named(object);
    if (!block || *block < first || *block >= end) return;
    found.insert(*block);
    if (found.size() > blocks_max) found.erase(std::prev(found.end()));
  });
  if (const Status done = object_status(listed, prefix); !done.has_value())
    return without_doubt(done.error());
  return std::vector<BlockId>(found.begin(), found.end());
}

Result<BlockPage> ClusterBlocks::list(const BlockId& first, const BlockId& end, size_t blocks_max) {
  ASSERT(blocks_max > 0);
  TRY(check_block_keyspace(first.keyspace));
  BlockPage page;
  if (first >= end) return page;
  TRY_ASSIGN(std::vector<BlockId> found, first_blocks(first, end, blocks_max + 1));
  if (found.size() > blocks_max) {
    page.resume = found.back();
    found.pop_back();
  }
  for (const BlockId& block : found) {
    Value value;
    TRY(read({&block, 1}, {&value, 1}));
    if (value.found()) page.blocks.push_back({block, value.bytes().size()});
  }
  return page;
}

Result<bool> ClusterBlocks::remove_all(KeyspaceId keyspace, size_t blocks_max) {
  ASSERT(blocks_max > 0);
  TRY(check_block_keyspace(keyspace));
  TRY_ASSIGN(const std::vector<BlockId> found,
             first_blocks(blocks_begin(keyspace), blocks_end(keyspace), blocks_max + 1));
  for (size_t i = 0; i < std::min(found.size(), blocks_max); i++)
    TRY(remove_object(block_name(found[i])));
  return found.size() <= blocks_max;
}

Status ClusterBlocks::remove_object(ByteView object) {
  const int answer =
      store_.write("block.remove", object, {.guards = {}, .changes = {RemoveObject{}}});
  if (answer == -ENOENT) return {};
  if (const Status done = object_status(answer, object); !done.has_value())
    return without_doubt(done.error());
  return {};
}

// --- the engine ---

Result<std::unique_ptr<ClusterEngine>> ClusterEngine::open(ObjectStore& store, Clock& clock,
                                                           ClusterEngineOptions options) {
  TRY(bootstrap_ranges(store));
  auto router =
      std::make_unique<RangeRouter>(store, clock, options.patience_us, options.range_cache_bytes);
  TRY_ASSIGN(std::unique_ptr<TransactionLog> log, TransactionLog::open(store, *router));
  return std::unique_ptr<ClusterEngine>(
      new ClusterEngine(store, options, std::move(router), std::move(log)));
}

ClusterEngine::ClusterEngine(ObjectStore& store, const ClusterEngineOptions& options,
                             std::unique_ptr<RangeRouter> router,
                             std::unique_ptr<TransactionLog> log)
    : store_(store),
      router_(std::move(router)),
      log_(std::move(log)),
      reader_(store_, *router_, *log_),
      committer_(store_, *router_, *log_, reader_),
      blocks_(store_),
      watch_(store_, options.unchanged_beats_max),
      pool_(options.commit_threads) {
  if (options.beat_interval_us == 0) return;
  for (const auto task : {&ClusterEngine::beat, &ClusterEngine::watch})
    repeating_.emplace_back(
        [this, task, interval_us = options.beat_interval_us] { repeat(interval_us, task); });
}

ClusterEngine::~ClusterEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  for (std::thread& thread : repeating_) thread.join();
  discard(log_->sweep(log_->incarnation()));
}

void ClusterEngine::repeat(uint64_t interval_us, Status (ClusterEngine::*task)()) {
  bool was_well = true;
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, std::chrono::microseconds(interval_us), [&] { return stopping_; })) {
    lock.unlock();
    const Status done = (this->*task)();
    if (!done.has_value() && was_well)
      log_warn("the clients of the cluster do not hear of each other for now",
               {{"error", to_string(done.error())}});
    was_well = done.has_value();
    lock.lock();
  }
}

Status ClusterEngine::beat() {
  const Status done = log_->beat();
  if (log_->check_not_fenced().has_value()) return done;
  TRY(log_->restart());
  log_warn("this client was taken for dead by others and has started again",
           {{"incarnation", log_->incarnation()}});
  return {};
}

Status ClusterEngine::watch() {
  std::vector<uint64_t> dead;
  const Status looked = watch_.look(dead);
  std::erase(dead, log_->incarnation());  // who looks lives
  const Status swept = sweep_logs(dead);
  TRY(looked);
  return swept;
}

Status ClusterEngine::sweep_logs(std::span<const uint64_t> incarnations) {
  size_t failed = 0;
  std::optional<Error> first;
  for (const uint64_t incarnation : incarnations) {
    const Status swept = log_->sweep(incarnation);
    if (swept.has_value()) continue;
    failed++;
    if (!first) first = swept.error();
  }
  if (!first) return {};
  return Error{first->code,
               fmt::format("{} of {} logs of dead clients are not swept, and stay; the "
                           "first one: {}",
                           failed, incarnations.size(), first->message)};
}

Status ClusterEngine::sweep(FunctionRef<bool(uint64_t incarnation)> is_dead) {
  std::vector<uint64_t> dead;
  const int listed = store_.list(log_object_name_prefix, [&](ByteView object) {
    const std::optional<uint64_t> incarnation = parse_log_object_name(object);
    if (incarnation && is_dead(*incarnation)) dead.push_back(*incarnation);
  });
  TRY(object_status(listed, "logs"));
  return sweep_logs(dead);
}

Status ClusterEngine::get(ByteView key, Value& value) { return multi_get({&key, 1}, {&value, 1}); }

Status ClusterEngine::multi_get(std::span<const ByteView> keys, std::span<Value> values) {
  ASSERT(keys.size() == values.size());
  std::vector<Bytes> addresses(keys.size());
  for (size_t i = 0; i < keys.size(); i++)
    if (!append_address(addresses[i], keys[i]).has_value()) addresses[i] = map_key_max;
  std::vector<VersionedRecord> records(keys.size());
  TRY(reader_.read(addresses, records, ClusterReader::Instant::one));
  for (size_t i = 0; i < keys.size(); i++) set_record(values[i], std::move(records[i]));
  return {};
}

Result<ScanPage> ClusterEngine::scan(const ScanRequest& request, ScanVisitor visit) {
  ASSERT(request.entries_max > 0);
  TRY_ASSIGN(ClusterReader::Page page, reader_.scan(request));
  ScanPage answer;
  for (const auto& [key, entry] : page.entries) {
    answer.entries++;
    if (visit(key, entry.value) == Visit::stop) break;
  }
  if (answer.entries < page.entries.size() || !page.complete) {
    const Bytes& last = page.entries[answer.entries - 1].first;
    answer.resume = request.reverse ? last : successor(last);
  }
  if (!request.want_evidence) return answer;
  page.entries.resize(answer.entries);
  if (request.reverse) std::reverse(page.entries.begin(), page.entries.end());
  for (auto& [key, entry] : page.entries)
    page.evidence.entries.push_back({std::move(entry.address), std::move(entry.version)});
  answer.evidence = encode_page_evidence(page.evidence);
  return answer;
}

std::optional<Bytes> ClusterEngine::evidence(const Value& value) const {
  if (!value.found()) return std::nullopt;
  const VersionedPin* const pin = value.find_pin<VersionedPin>();
  ASSERT(pin != nullptr);  // only what was read from this engine has evidence
  return pin->record->version;
}

CommitTicket ClusterEngine::commit_many(std::span<const Commit* const> commits,
                                        std::span<Status> outcomes) {
  ASSERT(commits.size() == outcomes.size());
  const auto commit = [&](size_t i) { outcomes[i] = committer_.commit(*commits[i]); };
  if (commits.size() == 1) {
    commit(0);
  } else {
    const std::vector<std::vector<size_t>> chains = commit_chains(commits);
    pool_.run(chains.size(), [&](size_t chain) { std::ranges::for_each(chains[chain], commit); });
  }
  return {++last_ticket_};
}

Status ClusterEngine::checkpoint(const std::filesystem::path&) {
  return Error{Code::unsupported, "the cluster has no files to copy: make a backup"};
}

}  // namespace trellis
