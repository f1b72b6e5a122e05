// bench_fs-model: what files cost, beside RocksDB doing the same gets and puts.
#include "benchmark.h"
#include "cases.h"

namespace trellis {
namespace {

constexpr std::string_view usage = R"(Usage: bench_fs-model [--quick] [group...]

A file system on the RocksDB engine, in this process. Groups, all of them by default:

  operations     creates, lookups, renames, writes and reads, beside RocksDB doing the same gets,
                 seeks and puts, which are written down as they are made
  amplification  what random overwrites of 4 KiB make the disk write
  trees          du and removal of trees of up to a million files, and a directory of a million
  threads        creates of 8 threads in one directory, beside 8 directories

  --quick        less of everything; no times are judged
  --help         this text

Exit code: 0 if all targets are met, 1 if one is missed, 2 if the benchmark could not run.
)";

int run(int argc, char** argv) {
  FsScale scale;
  return run_benchmark(
      {.usage = usage,
       .groups = {{"operations", [&](Report& report) { operation_cases(scale, report); }},
                  {"amplification", [&](Report& report) { amplification_case(scale, report); }},
                  {"trees", [&](Report& report) { tree_cases(scale, report); }},
                  {"threads", [&](Report& report) { thread_case(scale, report); }}},
       .quick =
           [&] {
             scale.operations = {.builds = 1, .rounds = 2, .turns = 4};
             scale.file_bytes /= 8;
             scale.tree_files_max /= 100;
             scale.created_per_thread /= 10;
           }},
      argc, argv);
}

}  // namespace
}  // namespace trellis

int main(int argc, char** argv) { return trellis::run(argc, argv); }
