#include <fmt/format.h>

#include <deque>
#include <fstream>

#include "base/random.h"
#include "cases.h"
#include "raw_peer.h"

namespace trellis {
namespace {

constexpr size_t cache_bytes = size_t{512} << 20;
constexpr size_t mib = size_t{1} << 20;
constexpr size_t overwrite_bytes = 4096;

// Ours, and RocksDB that does the same a turn later: what it shall do is written down in our turn.
void run_duel(const FsScale& scale, Duel& duel, FsStore& store, RawPeer& peer, size_t operations,
              FunctionRef<void(size_t turn)> run) {
  std::deque<Trace> traces;
  const auto ours = [&](size_t turn) {
    store.engine().set_tracing(true);
    run(turn);
    store.engine().set_tracing(false);
    traces.push_back(store.engine().take_trace());
  };
  const auto raw = [&](size_t) {
    peer.run(traces.front());
    traces.pop_front();
  };
  ours(SIZE_MAX / 2);  // so that there always is one
  const Contender contenders[] = {{operations, ours}, {operations, raw}};
  alternate(scale.operations, contenders, duel);
}

std::string name_of(size_t turn, size_t i) { return fmt::format("file-{}-{}", turn, i); }

struct Duels {
  Duel create, lookup, rename, overwrite, write, read;
};

void run_names(const FsScale& scale, Duels& duels, FsStore& store, RawPeer& peer,
               ByteView content) {
  constexpr size_t per_turn = 50;
  FileSystem& fs = store.fs();
  const InodeId outer = store.make_directory(root_inode, "projects");
  const InodeId inner = store.make_directory(outer, "notes");
  const auto create = [&](size_t turn) {
    for (size_t i = 0; i < per_turn; i++)
      must(fs.make(bench_caller, inner, name_of(turn, i),
                   {.content = content.substr(i, inline_bytes_max)}));
  };
  run_duel(scale, duels.create, store, peer, per_turn, create);
  const auto lookup = [&](size_t turn) {
    for (size_t i = 0; i < per_turn; i++)
      must(fs.lookup(bench_caller, inner, name_of(turn % 20, i)));
  };
  run_duel(scale, duels.lookup, store, peer, per_turn, lookup);
  std::string current = name_of(1, 0);
  size_t renamed = 0;
  const auto rename = [&](size_t) {
    for (size_t i = 0; i < per_turn; i++) {
      std::string next = fmt::format("renamed-{}", renamed++);
      must(fs.rename(bench_caller, inner, current, inner, next));
      current = std::move(next);
    }
  };
  run_duel(scale, duels.rename, store, peer, per_turn, rename);
}

void run_content(const FsScale& scale, Duels& duels, FsStore& store, RawPeer& peer,
                 ByteView content) {
  FileSystem& fs = store.fs();
  const InodeId file = must(fs.make(bench_caller, root_inode, "large", {})).inode;
  uint64_t written = 0;
  const auto write = [&](size_t) {
    for (size_t i = 0; i < 2; i++, written += mib)
      must(fs.write(bench_caller, file, written, content.substr(0, mib)));
  };
  run_duel(scale, duels.write, store, peer, 2, write);
  Random random(7);
  const auto overwrite = [&](size_t) {
    for (size_t i = 0; i < 50; i++)
      must(fs.write(bench_caller, file, random.below(written / overwrite_bytes) * overwrite_bytes,
                    content.substr(random.below(mib), overwrite_bytes)));
  };
  run_duel(scale, duels.overwrite, store, peer, 50, overwrite);
  const InodeId plain = must(fs.make(bench_caller, root_inode, "plain", {})).inode;
  for (uint64_t at = 0; at < 32 * mib; at += mib)
    must(fs.write(bench_caller, plain, at, content.substr(0, mib)));
  std::vector<char> buffer(mib);
  uint64_t offset = 0;
  const auto read = [&](size_t) {
    for (size_t i = 0; i < 2; i++, offset = (offset + mib) % (32 * mib))
      must(fs.read(bench_caller, plain, offset, buffer));
  };
  // The peer has these blocks only if it is told to write them as well.
  store.engine().set_tracing(true);
  for (uint64_t at = 0; at < 32 * mib; at += mib)
    must(fs.write(bench_caller, plain, at, content.substr(0, mib)));
  store.engine().set_tracing(false);
  peer.run(store.engine().take_trace());
  run_duel(scale, duels.read, store, peer, 2, read);
}

uint64_t written_by_process() {
  std::ifstream figures("/proc/self/io");
  std::string name;
  for (uint64_t number = 0; figures >> name >> number;)
    if (name == "wchar:") return number;
  give_up("/proc/self/io does not say what was written");
}

}  // namespace

void operation_cases(const FsScale& scale, Report& report) {
  const Bytes content = Random(3).bytes(2 * mib);
  Duels duels;
  for (size_t build = 0; build < scale.operations.builds; build++) {
    FsStore store(cache_bytes);
    RawPeer peer(store.path() / "raw", store.clock(), cache_bytes);
    run_names(scale, duels, store, peer, content);
    run_content(scale, duels, store, peer, content);
  }
  const Target target{.ratio_max = 1.5, .extra_allocations_max = {}};
  report.compare("create with 4 KiB", duels.create, target);
  report.compare("lookup", duels.lookup, target);
  report.compare("rename", duels.rename, target);
  report.compare("overwrite 4 KiB, random", duels.overwrite, target);
  report.compare("write 1 MiB, sequential", duels.write, target);
  report.compare("read 1 MiB, sequential", duels.read, target);
}

void amplification_case(const FsScale& scale, Report& report) {
  constexpr size_t overwrites = 20'000;
  const Bytes content = Random(4).bytes(2 * mib);
  FsStore store(cache_bytes);
  FileSystem& fs = store.fs();
  const InodeId file = must(fs.make(bench_caller, root_inode, "large", {})).inode;
  for (uint64_t at = 0; at < scale.file_bytes; at += mib)
    must(fs.write(bench_caller, file, at, content.substr(0, mib)));
  must(store.rocksdb().compact());
  const uint64_t before = written_by_process();
  Random random(8);
  for (size_t i = 0; i < overwrites; i++)
    must(fs.write(bench_caller, file, random.below(scale.file_bytes / 4096) * 4096,
                  content.substr(random.below(mib), overwrite_bytes)));
  const uint64_t logged = written_by_process() - before;
  const double amplification =
      static_cast<double>(logged) / static_cast<double>(overwrites * overwrite_bytes);
  report.expect("amplification of 4 KiB overwrites", amplification < 3,
                fmt::format("{:.2f} bytes are written for each, tables that were full included "
                            "(target: under 3)",
                            amplification));
}

}  // namespace trellis
