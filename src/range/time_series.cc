#include "range/time_series.h"

#include <algorithm>
#include <map>

#include "codec/system_keys.h"

namespace trellis {
namespace {

struct Resolution {
  int64_t number;  // in the key
  uint64_t sample_ms;
  uint64_t slot_ms;
};
constexpr Resolution fine{1, 10'000, 3'600'000};
constexpr Resolution coarse{2, 1'800'000, 86'400'000};

constexpr char samples_format = 0x01;
constexpr size_t sample_bytes = 10;

using Samples = std::map<uint16_t, uint64_t>;

Result<Samples> decode_samples(ByteView bytes) {
  Samples samples;
  if (bytes.empty()) return samples;
  if (bytes[0] != samples_format || bytes.size() % sample_bytes != 1)
    return Error{Code::corrupt, "a stored time series does not make sense"};
  for (size_t at = 1; at < bytes.size(); at += sample_bytes)
    samples[static_cast<uint16_t>(load_be(bytes.data() + at, 2))] =
        load_be(bytes.data() + at + 2, 8);
  return samples;
}

Bytes encode_samples(const Samples& samples) {
  Bytes out(1, samples_format);
  for (const auto& [index, value] : samples) {
    append_be16(out, index);
    append_be64(out, value);
  }
  return out;
}

Bytes slot_key(ByteView name, const Resolution& resolution, uint64_t time_ms, ByteView source) {
  return encode(TimeSeriesKey{name, resolution.number,
                              static_cast<int64_t>(time_ms / resolution.slot_ms), source});
}

uint16_t sample_index(const Resolution& resolution, uint64_t time_ms) {
  return static_cast<uint16_t>(time_ms % resolution.slot_ms / resolution.sample_ms);
}

Status add_samples(Engine& engine, Commit& commit, ByteView key, const Samples& more) {
  Value value;
  TRY(engine.get(key, value));
  auto samples = decode_samples(value.found() ? value.bytes() : ByteView());
  if (!samples) samples = Samples();  // figures, not data: what is damaged is begun again
  for (const auto& [index, number] : more) (*samples)[index] = number;
  commit.writes.put(key, encode_samples(*samples));
  return {};
}

}  // namespace

Status TimeSeries::append(uint64_t now_ms, std::span<const Sample> samples) {
  Commit commit;
  commit.durability = options_.durability;
  const uint16_t index = sample_index(fine, now_ms);
  for (const Sample& sample : samples) {
    const Bytes key = slot_key(sample.name, fine, now_ms, sample.source);
    TRY(add_samples(engine_, commit, key, {{index, sample.value}}));
    constexpr size_t piece_bytes = 1 << 20;
    if (commit.writes.bytes() < piece_bytes) continue;
    TRY(trellis::commit(engine_, commit));
    commit.writes.clear();
  }
  return commit.writes.empty() ? Status() : trellis::commit(engine_, commit);
}

Result<std::vector<TimeSeries::Point>> TimeSeries::read(ByteView name, ByteView source,
                                                        uint64_t from_ms, uint64_t to_ms) const {
  std::vector<Point> points;
  for (const Resolution& resolution : {coarse, fine}) {
    const uint64_t first_ms = from_ms / resolution.slot_ms * resolution.slot_ms;
    for (uint64_t slot_ms = first_ms; slot_ms < to_ms; slot_ms += resolution.slot_ms) {
      Value value;
      TRY(engine_.get(slot_key(name, resolution, slot_ms, source), value));
      if (!value.found()) continue;
      TRY_ASSIGN(const Samples samples, decode_samples(value.bytes()));
      for (const auto& [index, number] : samples) {
        const uint64_t time_ms = slot_ms + index * resolution.sample_ms;
        if (time_ms >= from_ms && time_ms < to_ms) points.push_back({time_ms, number});
      }
    }
  }
  return points;
}

Result<size_t> TimeSeries::roll_up(ByteView name, uint64_t now_ms, size_t slots_max) {
  const auto oldest = [&](uint64_t kept_ms) { return now_ms < kept_ms ? 0 : now_ms - kept_ms; };
  std::vector<std::pair<Bytes, Bytes>> old;
  const auto collect = [&](ByteView key, ByteView value) {
    old.emplace_back(key, value);
    return Visit::go_on;
  };
  Commit commit;
  commit.durability = options_.durability;
  const Bytes fine_begin = encode(TimeSeriesKey{name, fine.number, 0, {}});
  const Bytes fine_end = slot_key(name, fine, oldest(options_.samples_kept_ms), {});
  TRY(engine_.scan({.begin = fine_begin, .end = fine_end, .entries_max = slots_max}, collect));
  // One day's averages may come of several hours: gathered, so that none is lost.
  std::map<Bytes, Samples> averages;
  Bytes scratch;
  for (const auto& [key, value] : old) {
    commit.writes.remove(key);
    const auto slot = decode<TimeSeriesKey>(key, scratch);
    const auto samples = decode_samples(value);
    if (!slot || !samples || slot->slot < 0) continue;
    std::map<uint64_t, std::pair<uint64_t, uint64_t>> sums;  // by time: sum and count
    for (const auto& [index, number] : *samples) {
      const uint64_t time_ms =
          static_cast<uint64_t>(slot->slot) * fine.slot_ms + index * fine.sample_ms;
      auto& [sum, count] = sums[time_ms / coarse.sample_ms * coarse.sample_ms];
      sum += number;
      count++;
    }
    for (const auto& [time_ms, sum] : sums)
      averages[slot_key(name, coarse, time_ms, slot->source)][sample_index(coarse, time_ms)] =
          sum.first / sum.second;
  }
  for (const auto& [key, samples] : averages) TRY(add_samples(engine_, commit, key, samples));
  size_t done = old.size();
  old.clear();
  const Bytes coarse_begin = encode(TimeSeriesKey{name, coarse.number, 0, {}});
  const Bytes coarse_end = slot_key(name, coarse, oldest(options_.averages_kept_ms), {});
  TRY(engine_.scan({.begin = coarse_begin, .end = coarse_end, .entries_max = slots_max}, collect));
  for (const auto& [key, value] : old) commit.writes.remove(key);
  done += old.size();
  if (!commit.writes.empty()) TRY(trellis::commit(engine_, commit));
  return done;
}

}  // namespace trellis
