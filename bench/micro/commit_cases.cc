#include <fmt/format.h>

#include "cases.h"
#include "store_pair.h"

namespace trellis {

namespace {

// The memtables grow with every turn, alike on both sides: both write the same.
void compare_commits(const Scale& scale, Report& report, std::string_view name, StorePair& stores,
                     const Dataset& data, size_t puts, size_t commits, const Target& target) {
  const auto pick = [&](size_t round, size_t commit, size_t i) {
    return data.pick((round * commits + commit) * puts + i);
  };
  Commit commit;
  const Commit* const span[] = {&commit};
  Status outcomes[1];
  const auto ours = [&](size_t round) {
    for (size_t number = 0; number < commits; number++) {
      commit.writes.clear();
      for (size_t i = 0; i < puts; i++) {
        const size_t index = pick(round, number, i);
        commit.writes.put(data.key(index), data.value(index));
      }
      stores.ours().commit_many(span, outcomes);
      must(outcomes[0]);
    }
  };
  rocksdb::WriteBatch batch;
  const rocksdb::WriteOptions options;
  const auto raw = [&](size_t round) {
    for (size_t number = 0; number < commits; number++) {
      batch.Clear();
      for (size_t i = 0; i < puts; i++) {
        const size_t index = pick(round, number, i);
        must(batch.Put(stores.raw_family(), slice(data.key(index)), slice(data.value(index))));
      }
      must(stores.raw().Write(options, &batch));
    }
  };
  const Contender contenders[] = {{commits, ours}, {commits, raw}};
  const auto costs = alternate(scale.rounds, contenders);
  report.compare(name, costs[0], costs[1], target);
  fmt::print("{:<34} {:>10.0f} {:>10.0f}\n", "  CPU of all threads", median(costs[0]).process_ns,
             median(costs[1]).process_ns);
}

}  // namespace

void commit_cases(const Scale& scale, Report& report) {
  const Dataset data(20'000, 100);
  StorePair stores(data);
  compare_commits(scale, report, "commit of 100 puts", stores, data, 100, 60, {.ratio_max = 1.10});
  compare_commits(scale, report, "commit of 1 put", stores, data, 1, 2'000, {});
}

}  // namespace trellis
