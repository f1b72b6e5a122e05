#include <fmt/format.h>

#include "cases.h"
#include "store_pair.h"

namespace trellis {

namespace {

// The memtables grow with every turn, alike on both sides: both write the same.
void run_commits(const Scale& scale, Duel& duel, StorePair& stores, const Dataset& data,
                 size_t puts, size_t commits) {
  const auto pick = [&](size_t turn, size_t commit, size_t i) {
    return data.pick((turn * commits + commit) * puts + i);
  };
  Commit commit;
  const Commit* const span[] = {&commit};
  Status outcomes[1];
  const auto ours = [&](size_t turn) {
    for (size_t number = 0; number < commits; number++) {
      commit.writes.clear();
      for (size_t i = 0; i < puts; i++) {
        const size_t index = pick(turn, number, i);
        commit.writes.put(data.key(index), data.value(index));
      }
      stores.ours().commit_many(span, outcomes);
      must(outcomes[0]);
    }
  };
  rocksdb::WriteBatch batch;
  const rocksdb::WriteOptions options;
  const auto raw = [&](size_t turn) {
    for (size_t number = 0; number < commits; number++) {
      batch.Clear();
      for (size_t i = 0; i < puts; i++) {
        const size_t index = pick(turn, number, i);
        must(batch.Put(stores.raw_family(), slice(data.key(index)), slice(data.value(index))));
      }
      must(stores.raw().Write(options, &batch));
    }
  };
  const Contender contenders[] = {{commits, ours}, {commits, raw}};
  alternate(scale, contenders, duel);
}

void compare(Report& report, std::string_view name, const Duel& duel, const Target& target) {
  report.compare(name, duel, target);
  fmt::print("{:<34} {:>10.0f} {:>10.0f}\n", "  CPU of all threads", median(duel[0]).process_ns,
             median(duel[1]).process_ns);
}

}  // namespace

void commit_cases(const Scale& scale, Report& report) {
  const Dataset data(20'000, 100);
  Duel puts_100, put_1;
  for (size_t build = 0; build < scale.builds; build++) {
    StorePair stores(data, build);
    run_commits(scale, puts_100, stores, data, 100, 5);
    run_commits(scale, put_1, stores, data, 1, 200);
  }
  compare(report, "commit of 100 puts", puts_100, {.ratio_max = 1.10, .extra_allocations_max = {}});
  compare(report, "commit of 1 put", put_1, {});
}

}  // namespace trellis
