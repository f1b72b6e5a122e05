#include "cases.h"
#include "store_pair.h"

namespace trellis {

namespace {

constexpr Target get_target{.ratio_max = 1.10, .extra_allocations_max = 0};
// The filters of two stores let different absent keys through, and looking for one of these in a
// table allocates.
constexpr Target filtered_target{.ratio_max = 1.10, .extra_allocations_max = 0.1};
constexpr Target read_target{.ratio_max = 1.10, .extra_allocations_max = {}};
constexpr size_t scan_entries = 20'000;
// Few enough for the processor's own caches: what is to be seen is what we add.
constexpr size_t get_entries = 2'000;
constexpr size_t small_value_bytes = 100;

enum class Keys : bool { present, absent };

void run_gets(const Scale& scale, Duel& duel, StorePair& stores, const Dataset& data, Keys keys) {
  constexpr size_t gets = 1'000;
  const bool present = keys == Keys::present;
  const auto key = [&](size_t turn, size_t i) {
    const size_t index = data.pick(turn * gets + i);
    return present ? data.key(index) : data.absent_key(index);
  };
  Value value;
  const auto ours = [&](size_t turn) {
    for (size_t i = 0; i < gets; i++) {
      const Status status = stores.ours().get(key(turn, i), value);
      if (!status.has_value() || value.found() != present) give_up("ours: wrong answer to a get");
      keep(value.bytes().data());
    }
  };
  const rocksdb::ReadOptions options;
  rocksdb::PinnableSlice raw_value;
  const auto raw = [&](size_t turn) {
    for (size_t i = 0; i < gets; i++) {
      raw_value.Reset();
      const rocksdb::Status status =
          stores.raw().Get(options, stores.raw_family(), slice(key(turn, i)), &raw_value);
      if (present ? !status.ok() : !status.IsNotFound()) give_up("raw: wrong answer to a get");
      keep(raw_value.data());
    }
  };
  const Contender contenders[] = {{gets, ours}, {gets, raw}};
  alternate(scale, contenders, duel);
}

// Two reads of a pinned value are at one address, in the cache; two copies would be at two.
bool pinned(StorePair& stores, const Dataset& data) {
  for (size_t i = 0; i < data.entries(); i++) {
    Value first;
    Value second;
    must(stores.ours().get(data.key(i), first));
    must(stores.ours().get(data.key(i), second));
    if (first.bytes().data() != second.bytes().data()) return false;
  }
  return true;
}

void run_multi_gets(const Scale& scale, Duel& duel, StorePair& stores, const Dataset& data,
                    size_t batch) {
  const size_t calls = 1'600 / batch;
  std::vector<ByteView> keys(batch);
  std::vector<Value> values(batch);
  const auto ours = [&](size_t turn) {
    for (size_t call = 0; call < calls; call++) {
      for (size_t i = 0; i < batch; i++)
        keys[i] = data.key(data.pick((turn * calls + call) * batch + i));
      must(stores.ours().multi_get(keys, values));
      for (const Value& value : values) {
        if (!value.found()) give_up("ours: multi_get lacks a value");
        keep(value.bytes().data());
      }
    }
  };
  std::vector<rocksdb::Slice> raw_keys(batch);
  std::vector<rocksdb::PinnableSlice> raw_values(batch);
  std::vector<rocksdb::Status> statuses(batch);
  const rocksdb::ReadOptions options;
  const auto raw = [&](size_t turn) {
    for (size_t call = 0; call < calls; call++) {
      for (size_t i = 0; i < batch; i++)
        raw_keys[i] = slice(data.key(data.pick((turn * calls + call) * batch + i)));
      for (rocksdb::PinnableSlice& value : raw_values) value.Reset();
      stores.raw().MultiGet(options, stores.raw_family(), batch, raw_keys.data(), raw_values.data(),
                            statuses.data(), /*sorted_input=*/false);
      for (size_t i = 0; i < batch; i++) {
        if (!statuses[i].ok()) give_up("raw: MultiGet lacks a value");
        keep(raw_values[i].data());
      }
    }
  };
  const Contender contenders[] = {{calls, ours}, {calls, raw}};
  alternate(scale, contenders, duel);
}

constexpr size_t scanned = 10'000;

// What a caller does with entries: it looks at both ends of both.
class Touched {
 public:
  void touch(ByteView key, ByteView value) {
    sum_ += static_cast<unsigned char>(key.back()) + static_cast<unsigned char>(value.front()) +
            static_cast<unsigned char>(value.back());
    entries_++;
  }
  void check() const {
    keep(&sum_);
    if (entries_ != scanned) give_up("a scan does not have all entries");
  }

 private:
  uint64_t sum_ = 0;
  size_t entries_ = 0;
};

void our_scan(StorePair& stores, ByteView begin, ByteView end, bool reverse) {
  Touched touched;
  const auto page = stores.ours().scan({.begin = begin, .end = end, .reverse = reverse},
                                       [&](ByteView key, ByteView value) {
                                         touched.touch(key, value);
                                         return Visit::go_on;
                                       });
  if (!page.has_value()) give_up(to_string(page.error()));
  touched.check();
}

void raw_scan(StorePair& stores, ByteView begin, ByteView end, bool reverse) {
  const rocksdb::Slice lower = slice(begin);
  const rocksdb::Slice upper = slice(end);
  rocksdb::ReadOptions options;
  options.iterate_lower_bound = &lower;
  options.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> at(
      stores.raw().NewIterator(options, stores.raw_family()));
  Touched touched;
  if (reverse) {
    for (at->SeekToLast(); at->Valid(); at->Prev())
      touched.touch(at->key().ToStringView(), at->value().ToStringView());
  } else {
    for (at->Seek(lower); at->Valid(); at->Next())
      touched.touch(at->key().ToStringView(), at->value().ToStringView());
  }
  must(at->status());
  touched.check();
}

void run_scans(const Scale& scale, Duel& duel, StorePair& stores, const Dataset& data,
               bool reverse) {
  const auto run = [&](auto&& scan, size_t turn) {
    const size_t first = data.pick(turn) % (data.entries() - scanned);
    scan(stores, data.key(first), data.key(first + scanned), reverse);
  };
  const auto ours = [&](size_t turn) { run(our_scan, turn); };
  const auto raw = [&](size_t turn) { run(raw_scan, turn); };
  const Contender contenders[] = {{1, ours}, {1, raw}};
  alternate(scale, contenders, duel);
}

}  // namespace

void get_cases(const Scale& scale, Report& report) {
  const Dataset data(get_entries, small_value_bytes);
  const Dataset large(500, 4096);
  Duel memtable, memtable_absent, cache, cache_absent, cache_large;
  bool all_pinned = true;
  for (size_t build = 0; build < scale.builds; build++) {
    StorePair stores(data, build);
    run_gets(scale, memtable, stores, data, Keys::present);
    run_gets(scale, memtable_absent, stores, data, Keys::absent);
    stores.settle(data);
    run_gets(scale, cache, stores, data, Keys::present);
    run_gets(scale, cache_absent, stores, data, Keys::absent);
    StorePair large_stores(large, build);
    large_stores.settle(large);
    run_gets(scale, cache_large, large_stores, large, Keys::present);
    all_pinned = all_pinned && pinned(stores, data) && pinned(large_stores, large);
  }
  report.compare("get 100 B, memtable", memtable, get_target);
  report.compare("get absent, memtable", memtable_absent, get_target);
  report.compare("get 100 B, block cache", cache, get_target);
  report.compare("get 4 KiB, block cache", cache_large, get_target);
  report.compare("get absent, block cache", cache_absent, filtered_target);
  report.expect("values are pinned", all_pinned,
                all_pinned ? "two gets of a key point to the same bytes in the block cache"
                           : "two gets of a key point to two copies");
}

void multi_get_cases(const Scale& scale, Report& report) {
  const Dataset data(get_entries, small_value_bytes);
  Duel memtable_16, memtable_100, cache_16, cache_100;
  for (size_t build = 0; build < scale.builds; build++) {
    StorePair stores(data, build);
    run_multi_gets(scale, memtable_16, stores, data, 16);
    run_multi_gets(scale, memtable_100, stores, data, 100);
    stores.settle(data);
    run_multi_gets(scale, cache_16, stores, data, 16);
    run_multi_gets(scale, cache_100, stores, data, 100);
  }
  report.compare("multi_get of 16, memtable", memtable_16, read_target);
  report.compare("multi_get of 100, memtable", memtable_100, read_target);
  report.compare("multi_get of 16, block cache", cache_16, read_target);
  report.compare("multi_get of 100, block cache", cache_100, read_target);
}

void scan_cases(const Scale& scale, Report& report) {
  const Dataset data(scan_entries, small_value_bytes);
  Duel memtable, memtable_reverse, cache, cache_reverse;
  for (size_t build = 0; build < scale.builds; build++) {
    StorePair stores(data, build);
    run_scans(scale, memtable, stores, data, false);
    run_scans(scale, memtable_reverse, stores, data, true);
    stores.settle(data);
    run_scans(scale, cache, stores, data, false);
    run_scans(scale, cache_reverse, stores, data, true);
  }
  report.compare("scan of 10,000, memtable", memtable, read_target);
  report.compare("reverse scan, memtable", memtable_reverse, read_target);
  report.compare("scan of 10,000, block cache", cache, read_target);
  report.compare("reverse scan, block cache", cache_reverse, read_target);
}

}  // namespace trellis
