#include "redis/hyperloglog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "redis/call.h"

namespace trellis {
namespace {

constexpr size_t header_bytes = 16;
constexpr size_t encoding_at = 4;
constexpr size_t cardinality_at = 8;
constexpr ByteView magic = "HYLL";
constexpr char dense_encoding = 0;
constexpr char sparse_encoding = 1;

constexpr unsigned index_bits = 14;
constexpr unsigned rest_bits = 64 - index_bits;
constexpr unsigned register_bits = 6;
constexpr size_t dense_bytes = header_bytes + hll_registers * register_bits / 8;

constexpr size_t zeros_max = 64;  // of a run of one byte
constexpr size_t value_run_max = 4;
constexpr uint8_t sparse_value_max = 32;

Error corrupted() { return reply_with("INVALIDOBJ Corrupted HLL object detected"); }

uint64_t load_little(const char* bytes, size_t count) {
  uint64_t number = 0;
  for (size_t i = 0; i < count; i++) number |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return number;
}

// Murmur 64A by Austin Appleby, with Redis's seed: registers must be those that Redis would have.
uint64_t hash_of(ByteView text) {
  constexpr uint64_t seed = 0xadc8'3b19;
  constexpr uint64_t factor = 0xc6a4'a793'5bd1'e995;
  constexpr unsigned shift = 47;
  uint64_t hash = seed ^ (text.size() * factor);
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t part = load_little(text.data(), 8) * factor;
    part ^= part >> shift;
    hash = (hash ^ (part * factor)) * factor;
  }
  if (!text.empty()) hash = (hash ^ load_little(text.data(), text.size())) * factor;
  hash = (hash ^ (hash >> shift)) * factor;
  return hash ^ (hash >> shift);
}

// --- dense ---

// A register may begin in one byte and end in the next; behind the last byte there is none.
struct RegisterPlace {
  size_t byte;
  unsigned shift;
  explicit RegisterPlace(size_t index)
      : byte(header_bytes + index * register_bits / 8), shift(index * register_bits % 8) {}
  bool is_split() const { return shift + register_bits > 8; }
};
constexpr unsigned register_mask = (1U << register_bits) - 1;

uint8_t dense_register(ByteView hll, size_t index) {
  const RegisterPlace place(index);
  unsigned bits = static_cast<uint8_t>(hll[place.byte]);
  if (place.is_split()) bits |= unsigned{static_cast<uint8_t>(hll[place.byte + 1])} << 8;
  return static_cast<uint8_t>(bits >> place.shift & register_mask);
}

void set_dense_register(Bytes& hll, size_t index, uint8_t value) {
  const RegisterPlace place(index);
  const auto put = [&](size_t at, unsigned mask, unsigned bits) {
    hll[at] = static_cast<char>((static_cast<uint8_t>(hll[at]) & ~mask) | bits);
  };
  put(place.byte, register_mask << place.shift & 0xff, unsigned{value} << place.shift & 0xff);
  if (place.is_split())
    put(place.byte + 1, register_mask >> (8 - place.shift), unsigned{value} >> (8 - place.shift));
}

// --- sparse ---

struct Run {
  size_t bytes;
  size_t registers;
  uint8_t value;
};

Run run_at(ByteView hll, size_t at) {
  const auto first = static_cast<uint8_t>(hll[at]);
  if ((first & 0x80) != 0)
    return {1, (first & 0x03U) + 1, static_cast<uint8_t>((first >> 2 & 0x1f) + 1)};
  if ((first & 0x40) == 0) return {1, (first & 0x3fU) + 1, 0};
  const size_t low = at + 1 < hll.size() ? static_cast<uint8_t>(hll[at + 1]) : 0;
  return {2, ((first & 0x3fU) << 8 | low) + 1, 0};
}

void append_zeros(Bytes& out, size_t registers) {
  if (registers > zeros_max) out += static_cast<char>(0x40 | (registers - 1) >> 8);
  out += static_cast<char>((registers - 1) & 0xff);
}
void append_values(Bytes& out, size_t registers, uint8_t value) {
  out += static_cast<char>(0x80U | unsigned{value - 1U} << 2 | (registers - 1));
}
void append_run(Bytes& out, size_t registers, uint8_t value) {
  if (registers == 0) return;
  value == 0 ? append_zeros(out, registers) : append_values(out, registers, value);
}

// Joins runs of one value around a place that changed: of those that Redis looks at, so that its
// bytes are the same.
void join_runs(Bytes& hll, size_t at) {
  for (int looked_at = 0; looked_at < 5 && at < hll.size(); looked_at++) {
    const Run run = run_at(hll, at);
    const bool has_next = run.value != 0 && at + 1 < hll.size();
    const Run next = has_next ? run_at(hll, at + 1) : Run{};
    if (has_next && next.value == run.value && run.registers + next.registers <= value_run_max) {
      Bytes joined;
      append_values(joined, run.registers + next.registers, run.value);
      hll.replace(at, 2, joined);
    } else {
      at += run.bytes;
    }
  }
}

Result<bool> raise_dense(Bytes& hll, size_t index, uint8_t value) {
  if (dense_register(hll, index) >= value) return false;
  set_dense_register(hll, index, value);
  return true;
}

Result<bool> promote_and_raise(Bytes& hll, size_t index, uint8_t value) {
  TRY(hll_make_dense(hll));
  return raise_dense(hll, index, value);
}

Result<bool> raise_sparse(Bytes& hll, size_t index, uint8_t value, size_t sparse_bytes_max) {
  if (value > sparse_value_max) return promote_and_raise(hll, index, value);
  size_t at = header_bytes;
  size_t before = at;  // where the run before it begins, or itself if it is the first
  size_t first = 0;    // its first register
  Run run{};
  for (; at < hll.size(); first += run.registers, before = at, at += run.bytes) {
    run = run_at(hll, at);
    if (index < first + run.registers) break;
  }
  if (at >= hll.size()) return corrupted();
  if (run.value >= value) return false;
  Bytes changed;
  append_run(changed, index - first, run.value);
  append_values(changed, 1, value);
  append_run(changed, first + run.registers - 1 - index, run.value);
  // The second byte of a run may be missing at the end.
  const size_t old_bytes = std::min(run.bytes, hll.size() - at);
  if (changed.size() > run.bytes && hll.size() + changed.size() - run.bytes > sparse_bytes_max)
    return promote_and_raise(hll, index, value);
  hll.replace(at, old_bytes, changed);
  join_runs(hll, before);
  hll_forget_counted(hll);
  return true;
}

// The registers of all runs, which must be all that there are.
template <class Visitor>
Status visit_runs(ByteView hll, Visitor visit) {
  size_t index = 0;
  for (size_t at = header_bytes; at < hll.size();) {
    const Run run = run_at(hll, at);
    if (index + run.registers > hll_registers) return corrupted();
    if (run.value != 0)
      for (size_t i = 0; i < run.registers; i++) visit(index + i, run.value);
    index += run.registers;
    at += run.bytes;
  }
  if (index != hll_registers) return corrupted();
  return {};
}

// --- the estimator of Otmar Ertl: "New cardinality estimation algorithms for HyperLogLog
// sketches", 2017 ---

double sigma(double x) {
  if (x == 1) return std::numeric_limits<double>::infinity();
  double y = 1, sum = x, before = 0;
  do {
    x *= x;
    before = sum;
    sum += x * y;
    y += y;
  } while (before != sum);
  return sum;
}

double tau(double x) {
  if (x == 0 || x == 1) return 0;
  double y = 1, sum = 1 - x, before = 0;
  do {
    x = std::sqrt(x);
    before = sum;
    y *= 0.5;
    sum -= std::pow(1 - x, 2) * y;
  } while (before != sum);
  return sum / 3;
}

}  // namespace

bool is_hyperloglog(ByteView text) {
  if (text.size() < header_bytes || !text.starts_with(magic)) return false;
  const char encoding = text[encoding_at];
  return encoding == sparse_encoding || (encoding == dense_encoding && text.size() == dense_bytes);
}

Bytes empty_hyperloglog() {
  Bytes hll(magic);
  hll.resize(header_bytes, '\0');
  hll[encoding_at] = sparse_encoding;
  append_zeros(hll, hll_registers);
  return hll;
}

bool hll_is_dense(ByteView hll) { return hll[encoding_at] == dense_encoding; }

std::optional<uint64_t> hll_counted(ByteView hll) {
  if ((static_cast<uint8_t>(hll[header_bytes - 1]) & 0x80) != 0) return std::nullopt;
  return load_little(hll.data() + cardinality_at, 8);
}

void hll_set_counted(Bytes& hll, uint64_t cardinality) {
  for (size_t i = 0; i < 8; i++)
    hll[cardinality_at + i] = static_cast<char>(cardinality >> (8 * i) & 0xff);
}

void hll_forget_counted(Bytes& hll) {
  char& last = hll[header_bytes - 1];
  last = static_cast<char>(static_cast<uint8_t>(last) | 0x80);
}

Result<bool> hll_add(Bytes& hll, ByteView element, size_t sparse_bytes_max) {
  const uint64_t hash = hash_of(element);
  const uint64_t rest = hash >> index_bits | uint64_t{1} << rest_bits;
  const auto value = static_cast<uint8_t>(__builtin_ctzll(rest) + 1);
  return hll_raise(hll, hash % hll_registers, value, sparse_bytes_max);
}

Result<bool> hll_raise(Bytes& hll, size_t index, uint8_t value, size_t sparse_bytes_max) {
  return hll_is_dense(hll) ? raise_dense(hll, index, value)
                           : raise_sparse(hll, index, value, sparse_bytes_max);
}

Status hll_make_dense(Bytes& hll) {
  if (hll_is_dense(hll)) return {};
  Bytes dense = hll.substr(0, header_bytes);
  dense[encoding_at] = dense_encoding;
  dense.resize(dense_bytes, '\0');
  TRY(visit_runs(hll, [&](size_t i, uint8_t value) { set_dense_register(dense, i, value); }));
  hll = std::move(dense);
  return {};
}

Status hll_merge(ByteView hll, HllRegisters& registers) {
  const auto raise = [&](size_t i, uint8_t value) { registers[i] = std::max(registers[i], value); };
  if (!hll_is_dense(hll)) return visit_runs(hll, raise);
  for (size_t i = 0; i < hll_registers; i++) raise(i, dense_register(hll, i));
  return {};
}

std::string hll_runs_text(ByteView hll) {
  std::string text;
  for (size_t at = header_bytes; at < hll.size();) {
    const Run run = run_at(hll, at);
    if (!text.empty()) text += ' ';
    if (run.value != 0)
      text += fmt::format("v:{},{}", run.value, run.registers);
    else
      text += fmt::format("{}:{}", run.bytes == 1 ? 'z' : 'Z', run.registers);
    at += run.bytes;
  }
  return text;
}

uint64_t hll_cardinality(const HllRegisters& registers) {
  constexpr double alpha = 0.721347520444481703680;  // 0.5 / ln 2
  constexpr double count = hll_registers;
  std::array<int, register_mask + 1> with_value{};
  for (const uint8_t value : registers) with_value[value]++;
  double sum = count * tau((count - with_value[rest_bits + 1]) / count);
  for (unsigned value = rest_bits; value >= 1; value--) sum = (sum + with_value[value]) * 0.5;
  sum += count * sigma(with_value[0] / count);
  return static_cast<uint64_t>(llroundl(alpha * count * count / sum));
}

}  // namespace trellis
