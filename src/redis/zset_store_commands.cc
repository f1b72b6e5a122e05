// Sorted sets, and sets, with each other: unions, intersections and differences.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "redis/zset.h"

namespace trellis {
namespace {

using namespace command_flag;

// Those of a larger set are read and looked for elsewhere so many at a time.
constexpr size_t page_members = 256;

enum class Operation : uint8_t { unite, intersect, subtract };
enum class Aggregate : uint8_t { sum, min, max };

struct Source {
  const Key* key;  // may not exist
  double weight = 1;
  uint64_t size() const { return key->exists() ? key->size() : 0; }
};

struct Combination {
  std::vector<Source> sources;
  Aggregate aggregate = Aggregate::sum;
  bool with_scores = false;
  uint64_t limit = 0;  // of ZINTERCARD; 0: none
};

// --- arguments ---

struct Form {
  Operation operation;
  size_t count_at;  // the argument that says how many keys follow
  bool stores = false;
  bool only_counts = false;
};

Result<std::vector<Source>> open_sources(Call& call, const Form& form) {
  TRY_ASSIGN(const int64_t count, call.integer(form.count_at));
  if (count < 1)
    return reply_with(
        fmt::format("ERR at least 1 input key is needed for '{}' command", call.command.name));
  if (static_cast<uint64_t>(count) >= call.count() - form.count_at) return syntax_error();
  std::vector<Source> sources;
  for (size_t i = 1; i <= static_cast<size_t>(count); i++) {
    TRY_ASSIGN(const Key* const key, call.open(form.count_at + i));
    if (key->exists() && key->type() != RedisType::zset && key->type() != RedisType::set)
      return wrong_type();
    sources.push_back({.key = key});
  }
  return sources;
}

Result<Aggregate> parse_aggregate(const Call& call, size_t i) {
  if (call.is_word(i, "sum")) return Aggregate::sum;
  if (call.is_word(i, "min")) return Aggregate::min;
  if (call.is_word(i, "max")) return Aggregate::max;
  return syntax_error();
}

Status parse_weights(const Call& call, size_t first, std::vector<Source>& sources) {
  for (size_t i = 0; i < sources.size(); i++) {
    const Result<double> weight = call.number(first + i);
    if (!weight) return reply_with("ERR weight value is not a float");
    sources[i].weight = *weight;
  }
  return {};
}

Result<Combination> parse_combination(Call& call, const Form& form) {
  Combination wanted;
  TRY_ASSIGN(wanted.sources, open_sources(call, form));
  const size_t sources = wanted.sources.size();
  const bool combines = form.operation != Operation::subtract && !form.only_counts;
  for (size_t i = form.count_at + 1 + sources; i < call.count(); i++) {
    const size_t left = call.count() - i - 1;
    if (combines && left >= sources && call.is_word(i, "weights")) {
      TRY(parse_weights(call, i + 1, wanted.sources));
      i += sources;
    } else if (combines && left >= 1 && call.is_word(i, "aggregate")) {
      TRY_ASSIGN(wanted.aggregate, parse_aggregate(call, ++i));
    } else if (!form.stores && !form.only_counts && call.is_word(i, "withscores")) {
      wanted.with_scores = true;
    } else if (form.only_counts && left >= 1 && call.is_word(i, "limit")) {
      const Result<int64_t> limit = call.integer(++i);
      if (!limit || *limit < 0) return reply_with("ERR LIMIT can't be negative");
      wanted.limit = static_cast<uint64_t>(*limit);
    } else {
      return syntax_error();
    }
  }
  // Scores are added in this order, as in Redis: sums of doubles depend on it.
  if (form.operation != Operation::subtract)
    std::stable_sort(wanted.sources.begin(), wanted.sources.end(),
                     [](const Source& a, const Source& b) { return a.size() < b.size(); });
  return wanted;
}

// --- combining ---

void combine(double& score, double other, Aggregate aggregate) {
  if (aggregate == Aggregate::sum) {
    score += other;
    if (std::isnan(score)) score = 0;  // of inf and -inf
  } else if (aggregate == Aggregate::min ? other < score : other > score) {
    score = other;
  }
}

Result<double> score_in(const Source& source, ByteView value) {
  if (source.key->type() == RedisType::set) return 1.0;
  return decode_score(value);
}

// All members with their weighted scores, page by page, until the visitor stops.
using Page = std::vector<ScoredMember>;
Status for_each_page(Keys& keys, const Source& source, FunctionRef<Result<Visit>(Page&)> visit) {
  if (!source.key->exists()) return {};
  Bytes begin;
  for (;;) {
    Page page;
    Status bad;
    const auto add = [&](ByteView member, ByteView value) {
      const Result<double> stored = score_in(source, value);
      if (!stored) {
        bad = stored.error();
        return Visit::stop;
      }
      const double score = *stored * source.weight;
      page.push_back({Bytes(member), std::isnan(score) ? 0 : score});
      return page.size() == page_members ? Visit::stop : Visit::go_on;
    };
    TRY(keys.scan_subs(*source.key, {.begin = begin}, add));
    TRY(std::move(bad));
    const bool is_last = page.size() < page_members;
    if (!is_last) begin = page.back().member + '\0';
    TRY_ASSIGN(const Visit next, visit(page));
    if (is_last || next == Visit::stop) return {};
  }
}

// Keeps those that `source` has, with both scores combined; or those that it has not.
Status sift(Keys& keys, const Source& source, bool keep_common, Aggregate aggregate, Page& page) {
  std::vector<Value> values(page.size());
  if (source.key->exists()) {
    const std::vector<ByteView> members = [&] {
      std::vector<ByteView> views;
      for (const ScoredMember& one : page) views.push_back(one.member);
      return views;
    }();
    TRY(keys.get_subs(*source.key, members, values));
  }
  size_t kept = 0;
  for (size_t i = 0; i < page.size(); i++) {
    if (values[i].found() != keep_common) continue;
    if (keep_common) {
      TRY_ASSIGN(const double score, score_in(source, values[i].bytes()));
      combine(page[i].score, score * source.weight, aggregate);
    }
    if (kept != i) page[kept] = std::move(page[i]);
    kept++;
  }
  page.resize(kept);
  return {};
}

// Of the first source what all others have too, or what none of them has.
Status sift_first(Keys& keys, const Combination& wanted, bool keep_common,
                  FunctionRef<Visit(Page&)> visit) {
  return for_each_page(keys, wanted.sources[0], [&](Page& page) -> Result<Visit> {
    for (size_t i = 1; i < wanted.sources.size() && !page.empty(); i++)
      TRY(sift(keys, wanted.sources[i], keep_common, wanted.aggregate, page));
    return visit(page);
  });
}

Result<Page> unite(Keys& keys, const Combination& wanted) {
  std::unordered_map<Bytes, double> united;
  for (const Source& source : wanted.sources)
    TRY(for_each_page(keys, source, [&](Page& page) -> Result<Visit> {
      for (ScoredMember& one : page) {
        const auto [at, is_new] = united.try_emplace(std::move(one.member), one.score);
        if (!is_new) combine(at->second, one.score, wanted.aggregate);
      }
      return Visit::go_on;
    }));
  Page all;
  all.reserve(united.size());
  while (!united.empty()) {
    auto node = united.extract(united.begin());
    all.push_back({std::move(node.key()), node.mapped()});
  }
  return all;
}

Result<Page> combined(Keys& keys, const Combination& wanted, Operation operation) {
  if (operation == Operation::unite) return unite(keys, wanted);
  Page all;
  TRY(sift_first(keys, wanted, operation == Operation::intersect, [&](Page& page) {
    std::move(page.begin(), page.end(), std::back_inserter(all));
    return Visit::go_on;
  }));
  return all;
}

// --- commands ---

Status reply_combined(Call& call, Operation operation) {
  TRY_ASSIGN(const Combination wanted,
             parse_combination(call, {.operation = operation, .count_at = 1}));
  TRY_ASSIGN(Page members, combined(call.keys, wanted, operation));
  std::sort(members.begin(), members.end(), [](const ScoredMember& a, const ScoredMember& b) {
    return a.score != b.score ? a.score < b.score : a.member < b.member;
  });
  MembersReply reply(call.reply, wanted.with_scores);
  for (const auto& [member, score] : members) reply.add(member, score);
  reply.finish();
  return {};
}

Status store_combined(Call& call, Operation operation) {
  TRY_ASSIGN(const Combination wanted,
             parse_combination(call, {.operation = operation, .count_at = 2, .stores = true}));
  TRY_ASSIGN(const Page members, combined(call.keys, wanted, operation));
  TRY_ASSIGN(Key* const target, call.open(1));
  zset_replace(call.keys, *target, members);
  call.reply.integer(static_cast<int64_t>(members.size()));
  return {};
}

Status zunion(Call& call) { return reply_combined(call, Operation::unite); }
Status zinter(Call& call) { return reply_combined(call, Operation::intersect); }
Status zdiff(Call& call) { return reply_combined(call, Operation::subtract); }
Status zunionstore(Call& call) { return store_combined(call, Operation::unite); }
Status zinterstore(Call& call) { return store_combined(call, Operation::intersect); }
Status zdiffstore(Call& call) { return store_combined(call, Operation::subtract); }

Status zintercard(Call& call) {
  TRY_ASSIGN(const Combination wanted,
             parse_combination(
                 call, {.operation = Operation::intersect, .count_at = 1, .only_counts = true}));
  uint64_t common = 0;
  TRY(sift_first(call.keys, wanted, true, [&](const Page& page) {
    common += page.size();
    return wanted.limit != 0 && common >= wanted.limit ? Visit::stop : Visit::go_on;
  }));
  if (wanted.limit != 0) common = std::min(common, wanted.limit);
  call.reply.integer(static_cast<int64_t>(common));
  return {};
}

// The key to store in, and those that are counted.
Status store_keys(Args args, std::vector<size_t>& positions) {
  positions.push_back(1);
  return append_counted_keys(args, 2, positions);
}

namespace zset_store_table {

constexpr uint32_t look = readonly | movablekeys;
constexpr uint32_t store = write | denyoom | movablekeys;

const Command table[] = {
    {"zdiff",
     -3,
     look,
     {},
     zdiff,
     "6.2.0",
     "The members that only the first set has.",
     {},
     counted_keys<1>},
    {"zdiffstore",
     -4,
     store,
     {1, 1, 1},
     zdiffstore,
     "6.2.0",
     "Stores the members that only the first set has.",
     {},
     store_keys},
    {"zinter",
     -3,
     look,
     {},
     zinter,
     "6.2.0",
     "The members that all sets have.",
     {},
     counted_keys<1>},
    {"zintercard",
     -3,
     look,
     {},
     zintercard,
     "7.0.0",
     "How many members all sets have.",
     {},
     counted_keys<1>},
    {"zinterstore",
     -4,
     store,
     {1, 1, 1},
     zinterstore,
     "2.0.0",
     "Stores the members that all sets have.",
     {},
     store_keys},
    {"zunion", -3, look, {}, zunion, "6.2.0", "The members that any set has.", {}, counted_keys<1>},
    {"zunionstore",
     -4,
     store,
     {1, 1, 1},
     zunionstore,
     "2.0.0",
     "Stores the members that any set has.",
     {},
     store_keys},
};

}  // namespace zset_store_table

}  // namespace

std::span<const Command> zset_store_commands() { return zset_store_table::table; }

}  // namespace trellis
