#include <fmt/format.h>

#include <array>

#include "base/random.h"
#include "bench_store.h"
#include "cases.h"
#include "codec/keyspace_keys.h"

namespace trellis {

namespace {

constexpr size_t keys = 20'000;
constexpr size_t operations = 200;
constexpr size_t value_bytes = 100;

enum Contestant : size_t {
  bare_overwrite,
  put_same_size,
  put_other_size,
  put_under_quota,
  bare_insert,
  put_insert,
  contestants,
};

// What Raw::put cannot do without: the old value, and the commit.
class BareWriter {
 public:
  explicit BareWriter(Engine& engine) : engine_(engine) {}

  void put(KeyspaceId keyspace, ByteView user_key, ByteView value) {
    const Bytes key = encode(RawKey{keyspace, user_key});
    must(engine_.get(key, old_));
    commit_.writes.clear();
    commit_.writes.put(key, value);
    const Commit* const commits[] = {&commit_};
    Status outcomes[1];
    engine_.commit_many(commits, outcomes);
    must(outcomes[0]);
  }

 private:
  Engine& engine_;
  Commit commit_;
  Value old_;
};

void run_writes(const Scale& scale, size_t build, std::span<Costs> costs) {
  BenchStore store;
  const auto bare_tenant = store.make_tenant("bare", keys, value_bytes);
  const auto tenant = store.make_tenant("counted", keys, value_bytes);
  const auto limited = store.make_tenant("limited", keys, value_bytes);
  const QuotaPatch quota{
      .bytes = 1ull << 40, .keys = 1ull << 40, .operations_per_second = 100'000'000};
  must(store.keyspaces().set_quota("limited", quota, bench_caller));
  Random random(build);
  const Bytes noise = random.bytes(value_bytes + operations);
  BareWriter writer(store.engine());

  const auto each = [&](size_t shorter_max, auto&& put) {
    for (size_t i = 0; i < operations; i++)
      put(raw_key(random.below(keys)),
          ByteView(noise).substr(i, value_bytes - random.below(shorter_max + 1)));
  };
  const auto raw_put = [&](Tenant& of) {
    return
        [&](ByteView key, ByteView value) { must(store.raw().put(of, bench_caller, key, value)); };
  };
  const auto bare_put = [&](ByteView key, ByteView value) {
    writer.put(bare_tenant->id(), key, value);
  };
  // Between the keys that are there, so that it costs the same to find their places.
  size_t inserted = 0;
  const auto fresh = [&](auto&& put) {
    return [&](ByteView key, ByteView value) { put(fmt::format("{}+{}", key, inserted++), value); };
  };

  const auto run_bare = [&](size_t) { each(0, bare_put); };
  const auto run_same = [&](size_t) { each(0, raw_put(*tenant)); };
  const auto run_other = [&](size_t) { each(9, raw_put(*tenant)); };
  const auto run_quota = [&](size_t) { each(9, raw_put(*limited)); };
  const auto run_bare_insert = [&](size_t) { each(0, fresh(bare_put)); };
  const auto run_insert = [&](size_t) { each(0, fresh(raw_put(*tenant))); };
  const Contender contenders[] = {{operations, run_bare},        {operations, run_same},
                                  {operations, run_other},       {operations, run_quota},
                                  {operations, run_bare_insert}, {operations, run_insert}};
  alternate(scale, contenders, costs);
}

void print(std::string_view name, const Costs& costs, const Costs& bare) {
  std::vector<double> ratios;
  for (size_t i = 0; i < costs.size(); i++)
    ratios.push_back(costs[i].thread_ns / bare[i].thread_ns);
  const Cost cost = median(costs);
  fmt::print("{:<34} {:>8.2f} {:>8.2f} {:>8.2f} {:>8.1f}\n", name, cost.thread_ns / 1e3,
             cost.process_ns / 1e3, spread(std::move(ratios)).median, cost.allocations);
}

}  // namespace

void write_case(const KeyspaceScale& scale, Report&) {
  std::array<Costs, contestants> costs;
  for (size_t build = 0; build < scale.writes.builds; build++)
    run_writes(scale.writes, build, costs);
  fmt::print("\n{:<34} {:>8} {:>8} {:>8} {:>8}\n", "Writes of 100 B, CPU us", "thread", "process",
             "ratio", "allocs");
  print("overwrite: get and commit", costs[bare_overwrite], costs[bare_overwrite]);
  print("Raw::put, same size", costs[put_same_size], costs[bare_overwrite]);
  print("Raw::put, other size", costs[put_other_size], costs[bare_overwrite]);
  print("Raw::put, other size, under quotas", costs[put_under_quota], costs[bare_overwrite]);
  print("insert: get and commit", costs[bare_insert], costs[bare_insert]);
  print("Raw::put, new key", costs[put_insert], costs[bare_insert]);
}

}  // namespace trellis
