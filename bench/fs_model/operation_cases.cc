#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "base/random.h"
#include "cases.h"
#include "raw_peer.h"

namespace trellis {
namespace {

constexpr size_t cache_bytes = size_t{512} << 20;
constexpr size_t mib = size_t{1} << 20;
constexpr size_t overwrite_bytes = 4096;

// What is measured, as it is done to one store: the same in every store that it is done to.
class Course {
 public:
  explicit Course(ByteView content) : content_(content) {}

  FsStore& store() { return store_; }

  void make_directories() {
    directory_ = store_.make_directory(store_.make_directory(root_inode, "projects"), "notes");
  }
  static constexpr size_t names = 50;  // of one turn
  void create(size_t turn) {
    for (size_t i = 0; i < names; i++)
      must(fs_.make(bench_caller, directory_, name_of(turn, i),
                    {.content = content_.substr(i, inline_bytes_max)}));
  }
  void look_up(size_t turn) {
    for (size_t i = 0; i < names; i++)
      must(fs_.lookup(bench_caller, directory_, name_of(turn % 5, i)));
  }
  void rename(size_t turn) {
    for (size_t i = 0; i < names; i++) {
      std::string next = fmt::format("renamed-{}-{}", turn, i);
      must(fs_.rename(bench_caller, directory_, current_, directory_, next));
      current_ = std::move(next);
    }
  }

  void make_file() {
    file_ = must(fs_.make(bench_caller, root_inode, "large", {})).inode;
    size_ = 0;
  }
  static constexpr size_t mibs = 2;  // of one turn
  void write(size_t) {
    for (size_t i = 0; i < mibs; i++, size_ += mib)
      must(fs_.write(bench_caller, file_, size_, content_.substr(0, mib)));
  }
  static constexpr size_t overwrites = 50;  // of one turn
  void overwrite(size_t) {
    for (size_t i = 0; i < overwrites; i++)
      must(fs_.write(bench_caller, file_, random_.below(size_ / overwrite_bytes) * overwrite_bytes,
                     content_.substr(random_.below(mib), overwrite_bytes)));
  }
  static constexpr uint64_t read_bytes = 8 * mib;  // again and again
  void write_again() {
    for (uint64_t at = 0; at < read_bytes; at += mib)
      must(fs_.write(bench_caller, file_, at, content_.substr(0, mib)));
  }
  void read(size_t) {
    for (size_t i = 0; i < mibs; i++, offset_ = (offset_ + mib) % read_bytes)
      must(fs_.read(bench_caller, file_, offset_, buffer_));
  }

 private:
  static std::string name_of(size_t turn, size_t i) { return fmt::format("file-{}-{}", turn, i); }

  const ByteView content_;
  FsStore store_{cache_bytes};
  FileSystem& fs_ = store_.fs();
  InodeId directory_{};
  std::string current_ = name_of(1, 0);
  InodeId file_{};
  uint64_t size_ = 0;
  uint64_t offset_ = 0;
  Random random_{7};
  std::vector<char> buffer_ = std::vector<char>(mib);
};

// Ours, and RocksDB that makes the same gets and puts. Which these are is written down by a second
// store of ours, so that this costs the first one nothing.
class Race {
 public:
  explicit Race(ByteView content) : ours_(content), scribe_(content) {}

  void prepare(void (Course::*step)()) {
    (ours_.*step)();
    peer_.run(traced([&] { (scribe_.*step)(); }));
  }
  void run(const Scale& scale, Duel& duel, size_t operations, void (Course::*turn)(size_t)) {
    Trace trace;
    size_t written_down = SIZE_MAX;
    // Before whoever is first, so that either finds as much of the processor's caches in use.
    const auto write_down = [&](size_t number) {
      if (std::exchange(written_down, number) == number) return;
      trace = traced([&] { (scribe_.*turn)(number); });
    };
    const auto ours = [&](size_t number) { (ours_.*turn)(number); };
    const auto raw = [&](size_t) { peer_.run(trace); };
    const Contender contenders[] = {{operations, ours, write_down}, {operations, raw, write_down}};
    alternate(scale, contenders, duel);
  }
  // All that was written lies in tables then.
  void compact() {
    must(ours_.store().rocksdb().compact());
    peer_.compact();
  }

 private:
  Trace traced(FunctionRef<void()> run) {
    TracedEngine& engine = scribe_.store().engine();
    engine.set_tracing(true);
    run();
    engine.set_tracing(false);
    return engine.take_trace();
  }

  Course ours_;
  Course scribe_;
  RawPeer peer_{ours_.store().path() / "raw", ours_.store().clock(), cache_bytes};
};

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
  Duel create, lookup, rename, overwrite, write, read_new, read;
  for (size_t build = 0; build < scale.operations.builds; build++) {
    Race race(content);
    race.prepare(&Course::make_directories);
    race.run(scale.operations, create, Course::names, &Course::create);
    race.run(scale.operations, lookup, Course::names, &Course::look_up);
    race.run(scale.operations, rename, Course::names, &Course::rename);
    race.prepare(&Course::make_file);
    race.run(scale.operations, write, Course::mibs, &Course::write);
    race.run(scale.operations, overwrite, Course::overwrites, &Course::overwrite);
    race.compact();
    race.prepare(&Course::write_again);  // no patches are left: to fold them is our operator's
    race.run(scale.operations, read_new, Course::mibs, &Course::read);
    race.compact();
    race.run(scale.operations, read, Course::mibs, &Course::read);
  }
  const Target target{.ratio_max = 1.5, .extra_allocations_max = {}};
  report.compare("create with 4 KiB", create, target);
  report.compare("lookup", lookup, target);
  report.compare("rename", rename, target);
  report.compare("overwrite 4 KiB, random", overwrite, target);
  report.compare("write 1 MiB, sequential", write, target);
  report.compare("read 1 MiB, sequential, memtable", read_new, target);
  report.compare("read 1 MiB, sequential, block cache", read, target);
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
