#include <fmt/format.h>

#include "cases.h"
#include "store_pair.h"

namespace trellis {

namespace {

constexpr Target get_target{.ratio_max = 1.10, .no_extra_allocations = true};
constexpr Target read_target{.ratio_max = 1.10};
constexpr size_t entries = 20'000;
constexpr size_t small_value_bytes = 100;

enum class Keys : bool { present, absent };

void compare_gets(const Scale& scale, Report& report, std::string_view name, StorePair& stores,
                  const Dataset& data, Keys keys) {
  constexpr size_t gets = 15'000;
  const bool present = keys == Keys::present;
  const auto key = [&](size_t round, size_t i) {
    const size_t index = data.pick(round * gets + i);
    return present ? data.key(index) : data.absent_key(index);
  };
  Value value;
  const auto ours = [&](size_t round) {
    for (size_t i = 0; i < gets; i++) {
      const Status status = stores.ours().get(key(round, i), value);
      if (!status.has_value() || value.found() != present) give_up("ours: wrong answer to a get");
      keep(value.bytes().data());
    }
  };
  const rocksdb::ReadOptions options;
  rocksdb::PinnableSlice raw_value;
  const auto raw = [&](size_t round) {
    for (size_t i = 0; i < gets; i++) {
      raw_value.Reset();
      const rocksdb::Status status =
          stores.raw().Get(options, stores.raw_family(), slice(key(round, i)), &raw_value);
      if (present ? !status.ok() : !status.IsNotFound()) give_up("raw: wrong answer to a get");
      keep(raw_value.data());
    }
  };
  const Contender contenders[] = {{gets, ours}, {gets, raw}};
  const auto costs = alternate(scale.rounds, contenders);
  report.compare(name, costs[0], costs[1], get_target);
}

// Two reads of a pinned value are at one address, in the cache; two copies would be at two.
void expect_pinned(Report& report, StorePair& stores, const Dataset& data) {
  bool pinned = true;
  for (size_t i = 0; i < 1000; i++) {
    Value first;
    Value second;
    must(stores.ours().get(data.key(data.pick(i)), first));
    must(stores.ours().get(data.key(data.pick(i)), second));
    pinned = pinned && first.bytes().data() == second.bytes().data();
  }
  report.expect(fmt::format("  {} B values are pinned", data.value(0).size()), pinned,
                pinned ? "two gets of a key point to the same bytes"
                       : "two gets of a key point to two copies");
}

void compare_multi_gets(const Scale& scale, Report& report, std::string_view name,
                        StorePair& stores, const Dataset& data, size_t batch) {
  const size_t calls = 12'000 / batch;
  std::vector<ByteView> keys(batch);
  std::vector<Value> values(batch);
  const auto ours = [&](size_t round) {
    for (size_t call = 0; call < calls; call++) {
      for (size_t i = 0; i < batch; i++)
        keys[i] = data.key(data.pick((round * calls + call) * batch + i));
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
  const auto raw = [&](size_t round) {
    for (size_t call = 0; call < calls; call++) {
      for (size_t i = 0; i < batch; i++)
        raw_keys[i] = slice(data.key(data.pick((round * calls + call) * batch + i)));
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
  const auto costs = alternate(scale.rounds, contenders);
  report.compare(name, costs[0], costs[1], read_target);
}

// What a caller does with an entry: it looks at both ends of both.
struct Touched {
  uint64_t sum = 0;
  size_t entries = 0;
  void touch(const char* key, size_t key_bytes, const char* value, size_t value_bytes) {
    sum += static_cast<unsigned char>(key[key_bytes - 1]) + static_cast<unsigned char>(value[0]) +
           static_cast<unsigned char>(value[value_bytes - 1]);
    entries++;
  }
};

void raw_scan(StorePair& stores, const rocksdb::Slice& begin, const rocksdb::Slice& end,
              bool reverse, Touched& touched) {
  rocksdb::ReadOptions options;
  options.iterate_lower_bound = &begin;
  options.iterate_upper_bound = &end;
  const std::unique_ptr<rocksdb::Iterator> at(
      stores.raw().NewIterator(options, stores.raw_family()));
  const auto touch = [&] {
    touched.touch(at->key().data(), at->key().size(), at->value().data(), at->value().size());
  };
  if (reverse) {
    for (at->SeekToLast(); at->Valid(); at->Prev()) touch();
  } else {
    for (at->Seek(begin); at->Valid(); at->Next()) touch();
  }
  must(at->status());
}

void compare_scans(const Scale& scale, Report& report, std::string_view name, StorePair& stores,
                   const Dataset& data, bool reverse) {
  constexpr size_t scans = 8;
  constexpr size_t scanned = 10'000;
  const auto begin = [&](size_t round, size_t scan) {
    return data.pick(round * scans + scan) % (data.entries() - scanned);
  };
  const auto check = [](const Touched& touched) {
    if (touched.entries != scans * scanned) give_up("a scan has not all entries");
    keep(&touched);
  };
  const auto ours = [&](size_t round) {
    Touched touched;
    for (size_t scan = 0; scan < scans; scan++) {
      const size_t first = begin(round, scan);
      const ScanRequest request{
          .begin = data.key(first), .end = data.key(first + scanned), .reverse = reverse};
      const auto page = stores.ours().scan(request, [&](ByteView key, ByteView value) {
        touched.touch(key.data(), key.size(), value.data(), value.size());
        return Visit::go_on;
      });
      if (!page.has_value()) give_up(to_string(page.error()));
    }
    check(touched);
  };
  const auto raw = [&](size_t round) {
    Touched touched;
    for (size_t scan = 0; scan < scans; scan++) {
      const size_t first = begin(round, scan);
      raw_scan(stores, slice(data.key(first)), slice(data.key(first + scanned)), reverse, touched);
    }
    check(touched);
  };
  const Contender contenders[] = {{scans, ours}, {scans, raw}};
  const auto costs = alternate(scale.rounds, contenders);
  report.compare(name, costs[0], costs[1], read_target);
}

}  // namespace

void get_cases(const Scale& scale, Report& report) {
  const Dataset data(entries, small_value_bytes);
  {
    StorePair stores(data);
    compare_gets(scale, report, "get 100 B, memtable", stores, data, Keys::present);
    compare_gets(scale, report, "get absent, memtable", stores, data, Keys::absent);
    stores.settle(data);
    compare_gets(scale, report, "get 100 B, block cache", stores, data, Keys::present);
    expect_pinned(report, stores, data);
    compare_gets(scale, report, "get absent, block cache", stores, data, Keys::absent);
  }
  const Dataset large(4'000, 4096);
  StorePair stores(large);
  stores.settle(large);
  compare_gets(scale, report, "get 4 KiB, block cache", stores, large, Keys::present);
  expect_pinned(report, stores, large);
}

void multi_get_cases(const Scale& scale, Report& report) {
  const Dataset data(entries, small_value_bytes);
  StorePair stores(data);
  compare_multi_gets(scale, report, "multi_get of 16, memtable", stores, data, 16);
  compare_multi_gets(scale, report, "multi_get of 100, memtable", stores, data, 100);
  stores.settle(data);
  compare_multi_gets(scale, report, "multi_get of 16, block cache", stores, data, 16);
  compare_multi_gets(scale, report, "multi_get of 100, block cache", stores, data, 100);
}

void scan_cases(const Scale& scale, Report& report) {
  const Dataset data(entries, small_value_bytes);
  StorePair stores(data);
  compare_scans(scale, report, "scan of 10,000, memtable", stores, data, false);
  compare_scans(scale, report, "reverse scan of 10,000, memtable", stores, data, true);
  stores.settle(data);
  compare_scans(scale, report, "scan of 10,000, block cache", stores, data, false);
  compare_scans(scale, report, "reverse scan, block cache", stores, data, true);
}

}  // namespace trellis
