#include "stamped_commits.h"

#include <fmt/format.h>

#include "codec/counter_value.h"

namespace trellis {

namespace {

constexpr size_t stamped_keys = 4;
constexpr uint64_t log_kept = 20;
constexpr uint64_t blocks_per_lane = 8;
constexpr size_t patch_bytes = 4096;
constexpr KeyspaceId keyspace{7};

Error wrong(std::string what) { return {Code::corrupt, std::move(what)}; }

Bytes stamped_key(size_t lane, size_t i) { return fmt::format("lane{}/key{}", lane, i); }
Bytes log_key(size_t lane, uint64_t n) { return fmt::format("lane{}/log/{:012}", lane, n); }
Bytes seen_key(size_t lane) { return fmt::format("lane{}/seen", lane); }
Bytes counter_key(size_t lane) {
  Bytes key{'x', 0, 0, 7, 'k'};
  key.push_back(static_cast<char>(lane));
  return key;
}

Bytes stamp(uint64_t n, size_t size) {
  Bytes out;
  while (out.size() < size) append_be64(out, n);
  return out;
}

Result<uint64_t> read_stamp(ByteView bytes) {
  if (bytes.size() < 8) return wrong("a stamp is cut short");
  const uint64_t n = load_be(bytes.data(), 8);
  if (bytes != stamp(n, bytes.size())) return wrong(fmt::format("stamp {} is mixed", n));
  return n;
}

BlockId block_of(size_t lane, uint64_t n) { return {keyspace, DataId{lane}, n % blocks_per_lane}; }

Result<std::optional<Bytes>> get(Engine& engine, const Bytes& key) {
  Value value;
  TRY(engine.get(key, value));
  if (!value.found()) return std::optional<Bytes>();
  return std::optional<Bytes>(value.bytes());
}

Result<uint64_t> check_stamps(Engine& engine, size_t lane) {
  uint64_t n = 0;
  for (size_t i = 0; i < stamped_keys; i++) {
    TRY_ASSIGN(const std::optional<Bytes> value, get(engine, stamped_key(lane, i)));
    uint64_t seen = 0;
    if (value.has_value()) {
      TRY_ASSIGN(seen, read_stamp(*value));
    }
    if (i == 0) n = seen;
    if (seen != n) return wrong(fmt::format("half a commit: key 0 has {}, key {} {}", n, i, seen));
  }
  TRY_ASSIGN(const std::optional<Bytes> counter, get(engine, counter_key(lane)));
  const int64_t adds = counter.has_value() ? decode_counter_value(*counter).value_or(-1) : 0;
  if (adds != static_cast<int64_t>(n)) {
    return wrong(fmt::format("commit {} is there, but {} adds", n, adds));
  }
  return n;
}

Status check_log(Engine& engine, size_t lane, uint64_t n) {
  const uint64_t first = n > log_kept ? n - log_kept : 1;
  uint64_t next = first;
  bool good = true;
  const Bytes begin = log_key(lane, 0);
  const Bytes end = prefix_end(ByteView(begin).substr(0, begin.size() - 12));
  TRY(engine.scan({.begin = begin, .end = end}, [&](ByteView key, ByteView) {
    good = good && key == log_key(lane, next);
    next++;
    return Visit::go_on;
  }));
  if (good && next == n + 1) return {};
  return wrong(fmt::format("the log of commit {} does not hold {} to {}", n, first, n));
}

Status check_blocks(Engine& engine, size_t lane, uint64_t n) {
  for (uint64_t owner = n > blocks_per_lane ? n - blocks_per_lane + 1 : 1; owner <= n; owner++) {
    const BlockId block = block_of(lane, owner);
    Value value;
    TRY(engine.blocks().read({&block, 1}, {&value, 1}));
    if (!value.found()) return wrong(fmt::format("commit {} is there without its block", owner));
    TRY_ASSIGN(const uint64_t seen, read_stamp(value.bytes().substr(0, patch_bytes)));
    // A later block may be there without its commit, which came after it.
    if (seen < owner || seen % blocks_per_lane != owner % blocks_per_lane) {
      return wrong(fmt::format("commit {} is there, its block is of {}", owner, seen));
    }
  }
  return {};
}

}  // namespace

StampedCommits::StampedCommits(const LanePositions& found) {
  for (size_t lane = 0; lane < lanes; lane++) {
    begun_[lane] = found[lane];
    ordered_[lane] = found[lane];
    acknowledged_[lane] = found[lane];
  }
}

Commit StampedCommits::next_commit(size_t lane, uint64_t n) const {
  Commit commit;
  Bytes seen;
  for (size_t other = 0; other < lanes; other++) append_be64(seen, ordered_[other].load());
  commit.writes.put(seen_key(lane), seen);
  for (size_t i = 0; i < stamped_keys; i++) {
    commit.writes.put(stamped_key(lane, i), stamp(n, 8 << (n % 8)));
  }
  if (n > log_kept) commit.writes.remove_range(log_key(lane, 0), log_key(lane, n - log_kept));
  commit.writes.put(log_key(lane, n), {});
  commit.writes.add(counter_key(lane), 1);
  return commit;
}

Status StampedCommits::step(Engine& engine, size_t lane, Durability durability, Random& random) {
  const uint64_t n = ordered_[lane] + 1;
  begun_[lane] = n;
  const bool patch = random.one_in(2);
  const Bytes data = stamp(n, patch ? patch_bytes : 2 * patch_bytes << random.below(4));
  const BlockWrite block{block_of(lane, n), patch ? std::optional<uint32_t>(0) : std::nullopt,
                         data};
  TRY(engine.blocks().write({&block, 1}));

  Commit commit = next_commit(lane, n);
  commit.durability = durability;
  if (random.one_in(4)) {  // the way that checks before it writes
    Value value;
    TRY(engine.get(stamped_key(lane, 0), value));
    commit.expectations.push_back({stamped_key(lane, 0), std::nullopt, engine.evidence(value)});
  }
  const Commit* const commits[] = {&commit};
  Status outcomes[1];
  const CommitTicket ticket = engine.commit_many(commits, outcomes);
  TRY(std::move(outcomes[0]));
  ordered_[lane] = n;
  if (durability == Durability::always) TRY(engine.wait_durable(ticket));
  acknowledged_[lane] = n;
  return {};
}

Result<LanePositions> find_positions(Engine& engine) {
  LanePositions found{};
  for (size_t lane = 0; lane < lanes; lane++) {
    TRY_ASSIGN(found[lane], check_stamps(engine, lane));
    TRY(check_log(engine, lane, found[lane]));
    TRY(check_blocks(engine, lane, found[lane]));
  }
  for (size_t lane = 0; lane < lanes; lane++) {
    TRY_ASSIGN(const std::optional<Bytes> seen, get(engine, seen_key(lane)));
    for (size_t other = 0; seen.has_value() && other < lanes; other++) {
      const uint64_t before = load_be(seen->data() + 8 * other, 8);
      if (found[other] < before) {
        return wrong(
            fmt::format("no prefix: commit {} of lane {} is there, {} of lane {} before it "
                        "is not ({} is)",
                        found[lane], lane, before, other, found[other]));
      }
    }
  }
  return found;
}

}  // namespace trellis
