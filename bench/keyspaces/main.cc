// bench_keyspaces: what tenants cost, and what they feel of each other.
#include "benchmark.h"
#include "cases.h"

namespace trellis {
namespace {

constexpr std::string_view usage = R"(Usage: bench_keyspaces [--quick] [--small-cache] [group...]

Keyspaces on the RocksDB engine, in this process. Groups, all of them by default:

  many      100,000 keyspaces: creating, loading, listing them, and what they cost when idle
  burial    a keyspace of a million keys is removed while a neighbour reads at a steady pace
  write     a counted write beside a bare one

  --quick        a tenth of the keyspaces and keys; no times are judged
  --small-cache  burial with a block cache that the removed keyspace does not fit: 32 MiB
  --help         this text

Exit code: 0 if all targets are met, 1 if one is missed, 2 if the benchmark could not run.
)";

int run(int argc, char** argv) {
  KeyspaceScale scale;
  return run_benchmark(
      {.usage = usage,
       .groups = {{"many", [&](Report& report) { many_cases(scale, report); }},
                  {"burial", [&](Report& report) { burial_case(scale, report); }},
                  {"write", [&](Report& report) { write_case(scale, report); }}},
       .quick =
           [&] {
             scale.keyspaces /= 10;
             scale.buried_keys /= 10;
             scale.neighbour_keys /= 10;
             scale.windows = 4;
             scale.writes = {.builds = 1, .rounds = 2, .turns = 4};
           },
       .flags = {{"--small-cache", [&] { scale.cache_bytes = size_t{32} << 20; }}}},
      argc, argv);
}

}  // namespace
}  // namespace trellis

int main(int argc, char** argv) { return trellis::run(argc, argv); }
