#include <fmt/format.h>

#include "cases.h"
#include "codec/all_keys.h"
#include "support/sample_record.h"

namespace trellis {

namespace {

constexpr size_t records = 64;
constexpr size_t passes = 32;
constexpr size_t operations = records * passes;

template <class T>
void decode_or_give_up(ByteView bytes, Bytes& scratch) {
  const auto check = [](const Result<T>& record) {
    if (!record.has_value()) give_up(to_string(record.error()));
    keep(&*record);
  };
  if constexpr (needs_scratch<T>)
    check(decode<T>(bytes, scratch));
  else
    check(decode<T>(bytes));
}

template <class T>
void codec_case(const Scale& scale, Report& report) {
  Random random(3);
  TextArena arena;
  std::vector<T> sample;
  std::vector<Bytes> encoded;
  size_t bytes = 0;
  for (size_t i = 0; i < records; i++) {
    sample.push_back(sample_record<T>(random, arena));
    encoded.push_back(encode(sample.back()));
    bytes += encoded.back().size();
  }
  Bytes buffer;
  const auto encode_all = [&](size_t) {
    for (size_t pass = 0; pass < passes; pass++) {
      for (const T& record : sample) {
        buffer.clear();
        append(buffer, record);
        keep(buffer.data());
      }
    }
  };
  Bytes scratch;
  const auto decode_all = [&](size_t) {
    for (size_t pass = 0; pass < passes; pass++)
      for (const Bytes& key : encoded) decode_or_give_up<T>(key, scratch);
  };
  const Contender contenders[] = {{operations, encode_all}, {operations, decode_all}};
  Costs costs[2];
  alternate(scale, contenders, costs);
  const Cost encoding = median(costs[0]);
  const Cost decoding = median(costs[1]);
  fmt::print("{:<34} {:>10.1f} {:>10.1f} {:>10.1f} {:>7.2f} {:>7.2f}\n", T::kind,
             static_cast<double>(bytes) / records, encoding.thread_ns, decoding.thread_ns,
             encoding.allocations, decoding.allocations);
  report.expect_no_allocations(T::kind, encoding.allocations + decoding.allocations);
}

}  // namespace

void codec_cases(const Scale& scale, Report& report) {
  fmt::print("\n{:<34} {:>10} {:>10} {:>10} {:>7} {:>7}\n", "Keys", "bytes", "encode ns",
             "decode ns", "allocs", "allocs");
  std::apply([&]<class... T>(const KeyEntry<T>&...) { (codec_case<T>(scale, report), ...); },
             all_keys);
}

}  // namespace trellis
