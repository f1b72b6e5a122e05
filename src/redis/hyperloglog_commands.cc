#include "redis/hyperloglog.h"

#include <fmt/format.h>

#include <cmath>

#include "redis/call.h"
#include "redis/server.h"

namespace trellis {
namespace {

using namespace command_flag;

Result<Key*> open_hll(Call& call, size_t i) {
  TRY_ASSIGN(Key* const key, call.open(i, RedisType::string));
  if (key->exists() && !is_hyperloglog(key->text()))
    return reply_with("WRONGTYPE Key is not a valid HyperLogLog string value.");
  return key;
}

size_t sparse_bytes_max(const Call& call) {
  return static_cast<size_t>(
      call.server.config().number(call.session.tenant->id(), "hll-sparse-max-bytes"));
}

Status pfadd(Call& call) {
  TRY_ASSIGN(Key* const key, open_hll(call, 1));
  Bytes hll = key->exists() ? Bytes(key->text()) : empty_hyperloglog();
  bool changed = !key->exists();
  for (size_t i = 2; i < call.count(); i++) {
    TRY_ASSIGN(const bool raised, hll_add(hll, call.arg(i), sparse_bytes_max(call)));
    changed = changed || raised;
  }
  if (changed) {
    hll_forget_counted(hll);
    key->set_text(std::move(hll));
  }
  call.reply.integer(changed ? 1 : 0);
  return {};
}

// Registers of all that exist among the arguments from `first` on, as if they were one.
struct Merged {
  HllRegisters registers{};
  bool has_dense = false;
};
Status merge_args(Call& call, size_t first, Merged& merged) {
  for (size_t i = first; i < call.count(); i++) {
    TRY_ASSIGN(const Key* const key, open_hll(call, i));
    if (!key->exists()) continue;
    merged.has_dense = merged.has_dense || hll_is_dense(key->text());
    TRY(hll_merge(key->text(), merged.registers));
  }
  return {};
}

// Of one key it keeps what it counted, in the key: as Redis does, it writes.
Status pfcount(Call& call) {
  Key* key = nullptr;
  if (call.count() == 2) {
    TRY_ASSIGN(key, open_hll(call, 1));
    const auto known = key->exists() ? hll_counted(key->text()) : 0;
    if (known) {
      call.reply.integer(static_cast<int64_t>(*known));
      return {};
    }
  }
  Merged merged;
  TRY(merge_args(call, 1, merged));
  const uint64_t cardinality = hll_cardinality(merged.registers);
  if (key != nullptr && call.keys.may_write()) {
    Bytes hll(key->text());
    hll_set_counted(hll, cardinality);
    key->set_text(std::move(hll));
  }
  call.reply.integer(static_cast<int64_t>(cardinality));
  return {};
}

Status pfmerge(Call& call) {
  Merged merged;
  TRY(merge_args(call, 1, merged));
  TRY_ASSIGN(Key* const key, open_hll(call, 1));
  Bytes hll = key->exists() ? Bytes(key->text()) : empty_hyperloglog();
  if (merged.has_dense) TRY(hll_make_dense(hll));
  for (size_t i = 0; i < hll_registers; i++)
    if (merged.registers[i] != 0)
      TRY(hll_raise(hll, i, merged.registers[i], sparse_bytes_max(call)));
  hll_forget_counted(hll);
  key->set_text(std::move(hll));
  call.reply.ok();
  return {};
}

Status pfdebug(Call& call) {
  TRY_ASSIGN(Key* const key, open_hll(call, 2));
  if (!key->exists()) return reply_with("ERR The specified key does not exist");
  const bool is_dense = hll_is_dense(key->text());
  const bool shows_registers = call.is_word(1, "getreg");
  const bool makes_dense = call.is_word(1, "todense");
  Bytes hll(key->text());
  if (shows_registers || makes_dense) {
    TRY(hll_make_dense(hll));
    if (!is_dense) key->set_text(hll);
  }
  if (shows_registers) {
    HllRegisters registers{};
    TRY(hll_merge(hll, registers));
    call.reply.array(hll_registers);
    for (const uint8_t value : registers) call.reply.integer(value);
  } else if (makes_dense) {
    call.reply.integer(is_dense ? 0 : 1);
  } else if (call.is_word(1, "encoding")) {
    call.reply.simple(is_dense ? "dense" : "sparse");
  } else if (call.is_word(1, "decode")) {
    if (is_dense) return reply_with("ERR HLL encoding is not sparse");
    call.reply.bulk(hll_runs_text(hll));
  } else {
    return reply_with(fmt::format("ERR Unknown PFDEBUG subcommand '{}'", shown(call.arg(1))));
  }
  return {};
}

// Whether estimates are as good as 16,384 registers allow: Redis's own test, of fewer elements.
Status pfselftest(AloneCall& call) {
  constexpr uint64_t elements = 20'000;
  constexpr double error_max = 4 * 1.04 / 128;  // four standard errors, 1.04 / sqrt(registers)
  Bytes dense = empty_hyperloglog();
  Bytes sparse = dense;
  TRY(hll_make_dense(dense));
  for (uint64_t i = 0; i < elements; i++) {
    const std::string element = std::to_string(i);
    TRY(hll_add(dense, element, 0));
    TRY(hll_add(sparse, element, SIZE_MAX));
  }
  HllRegisters of_dense{}, of_sparse{};
  TRY(hll_merge(dense, of_dense));
  TRY(hll_merge(sparse, of_sparse));
  if (of_dense != of_sparse) return reply_with("ERR TESTFAILED dense and sparse registers differ");
  const double counted = static_cast<double>(hll_cardinality(of_dense));
  if (std::abs(counted - elements) > elements * error_max)
    return reply_with(fmt::format("ERR TESTFAILED {} of {} elements", counted, elements));
  call.reply.ok();
  return {};
}

namespace hyperloglog_table {

constexpr KeyPositions one{1, 1, 1};
constexpr KeyPositions all{1, -1, 1};

const Command table[] = {
    {"pfadd", -2, write | denyoom | fast, one, pfadd, "2.8.9", "Adds elements to a HyperLogLog."},
    {"pfcount", -2, readonly | keeps_result, all, pfcount, "2.8.9",
     "About how many elements HyperLogLogs have."},
    {"pfdebug",
     3,
     write | denyoom | admin,
     {2, 2, 1},
     pfdebug,
     "2.8.9",
     "Shows the registers of a HyperLogLog."},
    {"pfmerge", -2, write | denyoom, all, pfmerge, "2.8.9", "Adds HyperLogLogs to another one."},
    {"pfselftest", 1, admin, {}, pfselftest, "2.8.9", "Tests HyperLogLogs."},
};

}  // namespace hyperloglog_table

}  // namespace

std::span<const Command> hyperloglog_commands() { return hyperloglog_table::table; }

}  // namespace trellis
