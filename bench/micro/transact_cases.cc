#include <fmt/format.h>

#include "cases.h"
#include "map/transact.h"
#include "store_pair.h"

namespace trellis {

namespace {

constexpr size_t operations = 200;

void read(Engine& engine, ByteView key, Value& value) {
  must(engine.get(key, value));
  keep(value.bytes().data());
}

void print(std::string_view name, const Costs& costs) {
  const Cost cost = median(costs);
  fmt::print("{:<34} {:>10.0f} {:>35.2f}\n", name, cost.thread_ns, cost.allocations);
}

// What transact adds to its parts, in gets of the same round.
Spread added_gets(const Costs& transact, const Costs& parts, const Costs& get) {
  std::vector<double> added;
  for (size_t i = 0; i < get.size(); i++)
    added.push_back((transact[i].thread_ns - parts[i].thread_ns) / get[i].thread_ns);
  return spread(std::move(added));
}

// Keys are in the memtable, where a get costs least: the strictest state. The scope is part of
// what a transaction costs, so each makes its own.
void run_transactions(const Scale& scale, size_t build, std::span<Costs> costs) {
  const Dataset data(20'000, 100);
  StorePair stores(data, build);
  Engine& engine = stores.ours();
  Transactor transactor(engine, stores.clock(), {.way = Way::latched});
  Value value;
  const auto each = [&](size_t turn, auto&& run) {
    for (size_t i = 0; i < operations; i++) run(data.pick(turn * operations + i));
  };

  const auto get = [&](size_t turn) {
    each(turn, [&](size_t index) { read(engine, data.key(index), value); });
  };
  Commit commit;
  const Commit* const commits[] = {&commit};
  Status outcomes[1];
  const auto parts = [&](size_t turn) {
    each(turn, [&](size_t index) {
      read(engine, data.key(index), value);
      commit.writes.clear();
      commit.writes.put(data.key(index), data.value(index));
      engine.commit_many(commits, outcomes);
      must(outcomes[0]);
    });
  };
  const auto get_put = [&](size_t turn) {
    each(turn, [&](size_t index) {
      const ByteView key = data.key(index);
      must(transactor.transact(Scope::in(bench_keyspace).exclusive(key), [&](View& view) -> Status {
        TRY(view.get(key, value));
        view.put(key, data.value(index));
        return {};
      }));
    });
  };
  const auto get_only = [&](size_t turn) {
    each(turn, [&](size_t index) {
      const ByteView key = data.key(index);
      must(transactor.transact(Scope::in(bench_keyspace).shared(key),
                               [&](View& view) { return view.get(key, value); }));
    });
  };

  const Contender contenders[] = {
      {operations, get}, {operations, parts}, {operations, get_put}, {operations, get_only}};
  alternate(scale, contenders, costs);
}

}  // namespace

void transact_cases(const Scale& scale, Report& report) {
  std::array<Costs, 4> costs;
  for (size_t build = 0; build < scale.builds; build++) run_transactions(scale, build, costs);
  const auto& [get, parts, get_put, get_only] = costs;
  fmt::print("\n{:<34} {:>10} {:>35}\n", "Transactions, latched", "ns", "allocs");
  print("get", get);
  print("get, then commit of 1 put", parts);
  print("transact of get and put", get_put);
  print("transact of get", get_only);
  const Spread added = added_gets(get_put, parts, get);
  report.expect_time("transact over its parts", added.median < 1,
                     fmt::format("adds {:.2f} gets ({:.2f}..{:.2f}), target < 1", added.median,
                                 added.min, added.max));
}

}  // namespace trellis
