// Sorted sets by member: adding, looking up, removing, popping, ZSCAN.
#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "redis/collection.h"
#include "redis/number_text.h"
#include "redis/zset.h"

namespace trellis {
namespace {

using namespace command_flag;

void reply_score(Call& call, Score score) {
  if (score)
    call.reply.number(*score);
  else
    call.reply.null();
}

// --- ZADD ---

struct AddOptions {
  bool nx = false;
  bool xx = false;
  bool gt = false;
  bool lt = false;
  bool ch = false;
  bool incr = false;
};

// Takes words up to the first that is none; `at` moves behind them.
AddOptions take_add_options(const Call& call, size_t& at) {
  AddOptions options;
  const struct {
    std::string_view word;
    bool& flag;
  } words[] = {{"nx", options.nx}, {"xx", options.xx}, {"gt", options.gt},
               {"lt", options.lt}, {"ch", options.ch}, {"incr", options.incr}};
  for (; at < call.count(); at++) {
    const auto* const found = std::find_if(std::begin(words), std::end(words),
                                           [&](const auto& w) { return call.is_word(at, w.word); });
    if (found == std::end(words)) break;
    found->flag = true;
  }
  return options;
}

Status check_add_options(const AddOptions& options, size_t pairs) {
  if (options.nx && options.xx)
    return reply_with("ERR XX and NX options at the same time are not compatible");
  if (options.nx + options.gt + options.lt > 1)
    return reply_with("ERR GT, LT, and/or NX options at the same time are not compatible");
  if (options.incr && pairs > 1)
    return reply_with("ERR INCR option supports a single increment-element pair");
  return {};
}

// What the member's score becomes; absent: the options say no.
Result<Score> added_score(const AddOptions& options, double score, Score old) {
  if (old ? options.nx : options.xx) return Score();
  if (!old) return Score(score);
  if (options.incr) score += *old;
  if (std::isnan(score)) return reply_with("ERR resulting score is not a number (NaN)");
  if ((options.lt && score >= *old) || (options.gt && score <= *old)) return Score();
  return Score(score);
}

Status add(Call& call, bool is_increment) {
  size_t at = 2;
  AddOptions options = take_add_options(call, at);
  options.incr = options.incr || is_increment;
  const size_t pairs = (call.count() - at) / 2;
  if ((call.count() - at) % 2 != 0 || pairs == 0) return syntax_error();
  TRY(check_add_options(options, pairs));
  std::vector<double> scores(pairs);
  std::vector<ByteView> members(pairs);
  for (size_t i = 0; i < pairs; i++) {
    TRY_ASSIGN(scores[i], call.number(at + 2 * i));
    members[i] = call.arg(at + 2 * i + 1);
  }
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::zset));
  TRY_ASSIGN(std::vector<Score> stored, zset_scores(call.keys, *key, members));
  std::unordered_map<ByteView, Score*> by_member;  // one may be named twice
  int64_t added = 0, updated = 0;
  Score result;
  for (size_t i = 0; i < pairs; i++) {
    Score& old = pairs == 1 ? stored[0] : *by_member.emplace(members[i], &stored[i]).first->second;
    TRY_ASSIGN(result, added_score(options, scores[i], old));
    if (!result || old == result) continue;
    zset_put(call.keys, *key, members[i], *result, old);
    (old ? updated : added)++;
    old = result;
  }
  if (options.incr)
    reply_score(call, result);
  else
    call.reply.integer(options.ch ? added + updated : added);
  return {};
}

Status zadd(Call& call) { return add(call, false); }
Status zincrby(Call& call) { return add(call, true); }

// --- by member ---

Status zrem(Call& call) {
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::zset));
  int64_t removed = 0;
  for (size_t i = 2; i < call.count(); i++) {
    TRY_ASSIGN(const Score score, zset_score(call.keys, *key, call.arg(i)));
    if (!score) continue;
    zset_remove(call.keys, *key, call.arg(i), *score);
    removed++;
  }
  call.reply.integer(removed);
  return {};
}

Status zcard(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::zset));
  call.reply.integer(key->exists() ? static_cast<int64_t>(key->size()) : 0);
  return {};
}

Status zscore(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::zset));
  TRY_ASSIGN(const Score score, zset_score(call.keys, *key, call.arg(2)));
  reply_score(call, score);
  return {};
}

Status zmscore(Call& call) {
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::zset));
  TRY_ASSIGN(const std::vector<Score> scores, zset_scores(call.keys, *key, call.args.subspan(2)));
  call.reply.array(scores.size());
  for (const Score score : scores) reply_score(call, score);
  return {};
}

Status rank(Call& call, bool reverse) {
  if (call.count() > 4) return wrong_arity(call.command.name);
  const bool with_score = call.count() == 4;
  if (with_score && !call.is_word(3, "withscore")) return syntax_error();
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::zset));
  const ByteView member = call.arg(2);
  TRY_ASSIGN(const Score score, zset_score(call.keys, *key, member));
  if (!score) {
    with_score ? call.reply.null_array() : call.reply.null();
    return {};
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Keys::ScoreRange before{.begin_score = -infinity,
                          .end_score = *score,
                          .end_member = member,
                          .end_is_inclusive = false};
  const Bytes behind = Bytes(member) + '\0';
  if (reverse) before = {.begin_score = *score, .begin_member = behind, .end_score = infinity};
  int64_t rank = 0;
  const auto one = [&](double, ByteView) {
    rank++;
    return Visit::go_on;
  };
  TRY(call.keys.scan_scores(*key, before, one));
  if (with_score) call.reply.array(2);
  call.reply.integer(rank);
  if (with_score) call.reply.number(*score);
  return {};
}

Status zrank(Call& call) { return rank(call, false); }
Status zrevrank(Call& call) { return rank(call, true); }

// --- popping ---

Result<std::vector<ScoredMember>> pop(Call& call, Key& key, bool max, int64_t count) {
  TRY_ASSIGN(std::vector<ScoredMember> popped,
             collect_range(call.keys, key, {.reverse = max, .last = count - 1}));
  zset_remove(call.keys, key, popped);
  return popped;
}

Status pop_one_key(Call& call, bool max) {
  if (call.count() > 3) return syntax_error();
  int64_t count = 1;
  const bool is_counted = call.count() == 3;
  if (is_counted) {
    const auto given = parse_integer(call.arg(2));
    if (!given || *given < 0) return reply_with("ERR value is out of range, must be positive");
    count = *given;
  }
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::zset));
  if (count == 0 || !key->exists()) {
    call.reply.array(0);
    return {};
  }
  TRY_ASSIGN(const std::vector<ScoredMember> popped, pop(call, *key, max, count));
  if (!is_counted) {  // one pair, never nested
    call.reply.array(2);
    call.reply.bulk(popped.at(0).member);
    call.reply.number(popped[0].score);
    return {};
  }
  MembersReply members(call.reply, true);
  for (const auto& [member, score] : popped) members.add(member, score);
  members.finish();
  return {};
}

Status zpopmin(Call& call) { return pop_one_key(call, false); }
Status zpopmax(Call& call) { return pop_one_key(call, true); }

Status zmpop(Call& call) {
  const auto number_of_keys = parse_integer(call.arg(1));
  if (!number_of_keys || *number_of_keys < 1)
    return reply_with("ERR numkeys should be greater than 0");
  if (static_cast<uint64_t>(*number_of_keys) >= call.count() - 2) return syntax_error();
  const size_t where_at = 2 + static_cast<size_t>(*number_of_keys);
  const bool max = call.is_word(where_at, "max");
  if (!max && !call.is_word(where_at, "min")) return syntax_error();
  int64_t count = 1;
  if (call.count() > where_at + 1) {
    if (!call.is_word(where_at + 1, "count") || call.count() == where_at + 2) return syntax_error();
    const auto given = parse_integer(call.arg(where_at + 2));
    if (!given || *given < 1) return reply_with("ERR count should be greater than 0");
    if (call.count() > where_at + 3) return syntax_error();
    count = *given;
  }
  for (size_t i = 2; i < where_at; i++) {
    TRY_ASSIGN(Key* const key, call.open(i, RedisType::zset));
    if (!key->exists()) continue;
    TRY_ASSIGN(const std::vector<ScoredMember> popped, pop(call, *key, max, count));
    call.reply.array(2);
    call.reply.bulk(call.arg(i));
    call.reply.array(popped.size());
    for (const auto& [member, score] : popped) {
      call.reply.array(2);
      call.reply.bulk(member);
      call.reply.number(score);
    }
    return {};
  }
  call.reply.null_array();
  return {};
}

// --- all members ---

Status zrandmember(Call& call) {
  const bool counted = call.count() > 2;
  RandomPick pick;
  if (counted) {
    TRY_ASSIGN(pick, random_pick(call));
    pick.with_values = call.count() == 4 && call.is_word(3, "withscores");
    if (call.count() > 3 && !pick.with_values) return syntax_error();
    constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / 2);
    if (pick.with_values && pick.count > most) return reply_with("ERR value is out of range");
  }
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::zset));
  if (!key->exists() && !counted) {
    call.reply.null();
    return {};
  }
  MembersReply members(call.reply, pick.with_values);
  Status bad;
  TRY(visit_random(call, *key, pick, [&](ByteView member, ByteView value) {
    const Result<double> score = pick.with_values ? decode_score(value) : 0.0;
    if (!score) bad = score.error();
    members.add(member, score ? *score : 0);
  }));
  if (counted) members.finish();
  return bad;
}

Status zscan(Call& call) {
  Status bad;
  TRY(reply_scan(call, RedisType::zset, 2, [&](ByteView member, ByteView value) {
    const Result<double> score = decode_score(value);
    if (!score) bad = score.error();
    call.reply.bulk(member);
    call.reply.bulk(double_text(score ? *score : 0));  // not a number in RESP3 either
  }));
  return bad;
}

namespace zset_table {

constexpr KeyPositions one{1, 1, 1};
constexpr uint32_t change = write | denyoom;

const Command table[] = {
    {"zadd",
     -4,
     change | fast,
     one,
     zadd,
     "1.2.0",
     "Adds members, or changes their scores.",
     {3, 2}},
    {"zcard", 2, readonly | fast, one, zcard, "1.2.0", "The number of members."},
    {"zincrby", 4, change | fast, one, zincrby, "1.2.0", "Adds to the score of a member.", {3}},
    {"zmpop",
     -4,
     write | movablekeys,
     {},
     zmpop,
     "7.0.0",
     "Removes members from the ends of the first sorted set that has any.",
     {},
     counted_keys<1>},
    {"zmscore",
     -3,
     readonly | fast,
     one,
     zmscore,
     "6.2.0",
     "The scores of several members.",
     {2, 1}},
    {"zpopmax", -2, write | fast, one, zpopmax, "5.0.0", "Removes those with the highest scores."},
    {"zpopmin", -2, write | fast, one, zpopmin, "5.0.0", "Removes those with the lowest scores."},
    {"zrandmember", -2, readonly, one, zrandmember, "6.2.0", "Members chosen at random."},
    {"zrank", -3, readonly | fast, one, zrank, "2.0.0",
     "How many members come before one, lowest scores first."},
    {"zrem", -3, write | fast, one, zrem, "1.2.0", "Removes members.", {2, 1}},
    {"zrevrank", -3, readonly | fast, one, zrevrank, "2.0.0",
     "How many members come before one, highest scores first."},
    {"zscan", -3, readonly, one, zscan, "2.8.0", "Members and scores, a page at a time."},
    {"zscore", 3, readonly | fast, one, zscore, "1.2.0", "The score of a member.", {2}},
};

}  // namespace zset_table

}  // namespace

std::span<const Command> zset_commands() { return zset_table::table; }

}  // namespace trellis
