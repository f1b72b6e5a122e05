#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cases.h"
#include "process_figures.h"

namespace trellis {
namespace {

constexpr size_t files_per_directory = 1'000;

// `files` empty ones in directories of a thousand.
void make_tree(FsStore& store, const std::string& name, size_t files) {
  const InodeId tree = store.make_directory(root_inode, name);
  InodeId directory = tree;
  for (size_t i = 0; i < files; i++) {
    if (i % files_per_directory == 0)
      directory = store.make_directory(tree, fmt::format("d{}", i / files_per_directory));
    must(store.fs().make(bench_caller, directory, fmt::format("f{}", i), {.content = "x"}));
  }
}

template <class Run>
double took_us(Run run) {
  const double start_us = now_us();
  run();
  return now_us() - start_us;
}

void one_directory(const FsScale& scale, Report& report, FsStore& store) {
  const InodeId wide = store.make_directory(root_inode, "wide");
  for (size_t i = 0; i < scale.tree_files_max; i++)
    must(store.fs().make(bench_caller, wide, fmt::format("{:09}", i), {}));
  reset_peak_resident();
  const uint64_t before = resident_bytes();
  size_t listed = 0;
  std::optional<Bytes> after = Bytes();
  const double us = took_us([&] {
    while (after)
      after = must(store.fs().list(bench_caller, wide, *after, 1'000, [&](const DirectoryEntry&) {
                listed++;
                return Visit::go_on;
              })).resume;
  });
  const uint64_t grown = std::max(peak_resident_bytes(), before) - before;
  report.expect("list of one directory",
                listed == scale.tree_files_max && grown < (uint64_t{64} << 20),
                fmt::format("{} entries in {:.0f} ms, {:.1f} MiB more resident (target: bounded)",
                            listed, us / 1e3, static_cast<double>(grown) / (1 << 20)));
}

}  // namespace

FsStore::FsStore(size_t cache_bytes)
    : rocksdb_(must(open_rocksdb_engine(
          {.path = folder_.path() / "store", .clock = clock_, .cache_bytes = cache_bytes}))),
      engine_(*rocksdb_),
      transactor_(engine_, clock_),
      map_{engine_, transactor_, clock_},
      keyspaces_(must(Keyspaces::open(map_))),
      systems_(*keyspaces_),
      fs_(must(systems_.of(must(keyspaces_->tenant("DEFAULT"))))) {}

void tree_cases(const FsScale& scale, Report& report) {
  FsStore store;
  double small_du_us = 0, small_removal_us = 0;
  for (size_t files = 1'000; files <= scale.tree_files_max; files *= 10) {
    const std::string name = fmt::format("tree-{}", files);
    make_tree(store, name, files);
    const InodeId tree = must(store.fs().lookup(bench_caller, root_inode, name)).inode;
    uint64_t inodes = 0;
    const double du_us =
        took_us([&] { inodes = must(store.fs().tree_figures(bench_caller, tree)).inodes; });
    const double removal_us =
        took_us([&] { must(store.fs().remove_tree(bench_caller, root_inode, name)); });
    if (files == 1'000) {
      small_du_us = du_us;
      small_removal_us = removal_us;
    }
    report.expect(fmt::format("du of {} files", files),
                  inodes == files + (files + files_per_directory - 1) / files_per_directory,
                  fmt::format("{:.0f} us", du_us));
    report.expect_time(fmt::format("du and removal of {} files", files),
                       du_us < 5'000 && removal_us < 5'000 && du_us < 10 * small_du_us + 1'000 &&
                           removal_us < 10 * small_removal_us + 1'000,
                       fmt::format("du {:.0f} us, removal {:.0f} us (target: milliseconds, flat)",
                                   du_us, removal_us));
  }
  one_directory(scale, report, store);
}

void thread_case(const FsScale& scale, Report& report) {
  constexpr size_t threads = 8;
  std::vector<double> ratios;
  for (size_t round = 0; round < 5; round++) {
    double us[2];
    FsStore store;
    for (const bool apart : {round % 2 == 0, round % 2 != 0}) {
      std::vector<InodeId> directories;
      for (size_t i = 0; i < threads; i++)
        directories.push_back(
            i == 0 || apart
                ? store.make_directory(root_inode, fmt::format("{}-{}", apart ? "apart" : "one", i))
                : directories[0]);
      us[apart ? 1 : 0] = took_us([&] {
        std::vector<std::thread> running;
        for (size_t t = 0; t < threads; t++)
          running.emplace_back([&, t] {
            for (size_t i = 0; i < scale.created_per_thread; i++)
              must(store.fs().make(bench_caller, directories[t], fmt::format("{}-{}", t, i),
                                   {.content = "x"}));
          });
        for (std::thread& thread : running) thread.join();
      });
    }
    ratios.push_back(us[1] / us[0]);
  }
  const Spread ratio = spread(std::move(ratios));
  report.expect_time("creates of 8 threads in one directory", ratio.median >= 0.8,
                     fmt::format("{:.2f} of those in 8 directories, {:.2f}..{:.2f} (target 0.8)",
                                 ratio.median, ratio.min, ratio.max));
}

}  // namespace trellis
