// Sorted sets by range: of indices, scores or members.
#include "redis/zset.h"

namespace trellis {
namespace {

using namespace command_flag;
using By = ZsetRange::By;

// --- ZRANGE and its kin ---

// What a command's name says; what it does not say may be said by its options.
struct RangeForm {
  std::optional<By> by = {};
  std::optional<bool> reverse = {};
  size_t key_at = 1;
  bool stores = false;
};

struct RangeRequest {
  ZsetRange range;
  bool with_scores = false;
};

// Fills in of `form` what was left open.
Status take_options(const Call& call, RangeForm& form, RangeRequest& request) {
  for (size_t i = form.key_at + 3; i < call.count(); i++) {
    if (!form.stores && call.is_word(i, "withscores")) {
      request.with_scores = true;
    } else if (call.is_word(i, "limit") && i + 2 < call.count()) {
      TRY_ASSIGN(request.range.offset, call.integer(i + 1));
      TRY_ASSIGN(request.range.count, call.integer(i + 2));
      i += 2;
    } else if (!form.reverse && call.is_word(i, "rev")) {
      form.reverse = true;
    } else if (!form.by && call.is_word(i, "bylex")) {
      form.by = By::lex;
    } else if (!form.by && call.is_word(i, "byscore")) {
      form.by = By::score;
    } else {
      return syntax_error();
    }
  }
  return {};
}

Result<RangeRequest> parse_request(const Call& call, RangeForm form) {
  RangeRequest request;
  TRY(take_options(call, form, request));
  const By by = form.by.value_or(By::index);
  const bool reverse = form.reverse.value_or(false);
  const int64_t offset = request.range.offset;
  const int64_t count = request.range.count;
  if (count != -1 && by == By::index)
    return reply_with(
        "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
  if (request.with_scores && by == By::lex)
    return reply_with("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
  const bool max_first = reverse && by != By::index;
  const size_t first = form.key_at + 1;
  TRY_ASSIGN(request.range,
             parse_range(call, by, first + (max_first ? 1 : 0), first + (max_first ? 0 : 1)));
  request.range.reverse = reverse;
  if (by != By::index) {
    request.range.offset = offset;
    request.range.count = count;
  }
  return request;
}

Status reply_range(Call& call, const RangeForm& form) {
  TRY_ASSIGN(const RangeRequest request, parse_request(call, form));
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::zset));
  MembersReply members(call.reply, request.with_scores);
  const auto add = [&](double score, ByteView member) {
    members.add(member, score);
    return Visit::go_on;
  };
  TRY(scan_range(call.keys, *key, request.range, add));
  members.finish();
  return {};
}

Status zrange(Call& call) { return reply_range(call, {}); }
Status zrevrange(Call& call) { return reply_range(call, {By::index, true}); }
Status zrangebyscore(Call& call) { return reply_range(call, {By::score, false}); }
Status zrevrangebyscore(Call& call) { return reply_range(call, {By::score, true}); }
Status zrangebylex(Call& call) { return reply_range(call, {By::lex, false}); }
Status zrevrangebylex(Call& call) { return reply_range(call, {By::lex, true}); }

Status zrangestore(Call& call) {
  TRY_ASSIGN(const RangeRequest request, parse_request(call, {.key_at = 2, .stores = true}));
  TRY_ASSIGN(const Key* const source, call.open(2, RedisType::zset));
  TRY_ASSIGN(const std::vector<ScoredMember> members,
             collect_range(call.keys, *source, request.range));
  TRY_ASSIGN(Key* const target, call.open(1));
  zset_replace(call.keys, *target, members);
  call.reply.integer(static_cast<int64_t>(members.size()));
  return {};
}

// --- counting and removing ---

Status count(Call& call, By by) {
  TRY_ASSIGN(const ZsetRange range, parse_range(call, by, 2, 3));
  TRY_ASSIGN(const Key* const key, call.open(1, RedisType::zset));
  TRY_ASSIGN(const int64_t members, count_range(call.keys, *key, range));
  call.reply.integer(members);
  return {};
}

Status zcount(Call& call) { return count(call, By::score); }
Status zlexcount(Call& call) { return count(call, By::lex); }

Status remove_range(Call& call, By by) {
  TRY_ASSIGN(const ZsetRange range, parse_range(call, by, 2, 3));
  TRY_ASSIGN(Key* const key, call.open(1, RedisType::zset));
  std::vector<ScoredMember> members;
  size_t count = 0;
  size_t bytes = 0;
  const auto add = [&](double score, ByteView member) {
    count++;
    bytes += member.size() + sizeof(ScoredMember);
    // What is too much to be removed one by one is not kept: it may still be all of the set.
    if (bytes <= rewritten_bytes_max) members.push_back({Bytes(member), score});
    return Visit::go_on;
  };
  TRY(scan_range(call.keys, *key, range, add));
  if (count == members.size())
    zset_remove(call.keys, *key, members);
  else if (count == key->size())
    key->remove();
  else
    return Error{Code::too_large, "so many members cannot be removed at once", commit_too_large};
  call.reply.integer(static_cast<int64_t>(count));
  return {};
}

Status zremrangebyrank(Call& call) { return remove_range(call, By::index); }
Status zremrangebyscore(Call& call) { return remove_range(call, By::score); }
Status zremrangebylex(Call& call) { return remove_range(call, By::lex); }

namespace zset_range_table {

constexpr KeyPositions one{1, 1, 1};

const Command table[] = {
    {"zcount", 4, readonly | fast, one, zcount, "2.0.0", "How many members have such scores."},
    {"zlexcount", 4, readonly | fast, one, zlexcount, "2.8.9",
     "How many members lie between two texts."},
    {"zrange", -4, readonly, one, zrange, "1.2.0", "Members by index, score or text."},
    {"zrangebylex", -4, readonly, one, zrangebylex, "2.8.9", "Members between two texts."},
    {"zrangebyscore", -4, readonly, one, zrangebyscore, "1.0.5", "Members with such scores."},
    {"zrangestore",
     -5,
     write | denyoom,
     {1, 2, 1},
     zrangestore,
     "6.2.0",
     "Stores members by index, score or text in another key."},
    {"zremrangebylex", 4, write, one, zremrangebylex, "2.8.9",
     "Removes the members between two texts."},
    {"zremrangebyrank", 4, write, one, zremrangebyrank, "2.0.0", "Removes members by index."},
    {"zremrangebyscore", 4, write, one, zremrangebyscore, "1.2.0",
     "Removes the members with such scores."},
    {"zrevrange", -4, readonly, one, zrevrange, "1.2.0", "Members by index, highest scores first."},
    {"zrevrangebylex", -4, readonly, one, zrevrangebylex, "2.8.9",
     "Members between two texts, the last first."},
    {"zrevrangebyscore", -4, readonly, one, zrevrangebyscore, "2.2.0",
     "Members with such scores, highest first."},
};

}  // namespace zset_range_table

}  // namespace

std::span<const Command> zset_range_commands() { return zset_range_table::table; }

}  // namespace trellis
