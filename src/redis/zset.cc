#include "redis/zset.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "codec/redis_keys.h"

namespace trellis {
namespace {

constexpr double highest_score = std::numeric_limits<double>::infinity();
constexpr Keys::ScoreRange everything{.begin_score = -highest_score, .end_score = highest_score};

// Sets that are emptied up to here leave no work for the collector.
constexpr size_t removed_at_once_max = 64;

}  // namespace

// --- records ---

Result<double> decode_score(ByteView value) {
  Reader reader(value, nullptr);
  double score = 0;
  if (!OrderedScore::read(reader, score) || !reader.rest().empty())
    return Error{Code::corrupt, "the stored score of a member does not make sense"};
  return score;
}

Result<Score> zset_score(Keys& keys, const Key& key, ByteView member) {
  Value value;
  if (key.exists()) TRY(keys.get_sub(key, member, value));
  if (!value.found()) return Score();
  TRY_ASSIGN(const double score, decode_score(value.bytes()));
  return Score(score);
}

Result<std::vector<Score>> zset_scores(Keys& keys, const Key& key, Args members) {
  std::vector<Score> scores(members.size());
  if (!key.exists()) return scores;
  std::vector<Value> values(members.size());
  TRY(keys.get_subs(key, members, values));
  for (size_t i = 0; i < members.size(); i++) {
    if (!values[i].found()) continue;
    TRY_ASSIGN(scores[i], decode_score(values[i].bytes()));
  }
  return scores;
}

void zset_put(Keys& keys, Key& key, ByteView member, double score, Score old) {
  if (!key.exists()) key.create(RedisType::zset, keys.new_version());
  Bytes value, old_value;
  Value was;
  OrderedScore::append(value, without_sign_of_zero(score));
  if (old) {
    OrderedScore::append(old_value, *old);
    was.set_borrowed(old_value);
    keys.remove_score(key, *old, member);
  }
  keys.put_sub(key, member, value, was);
  keys.put_score(key, score, member);
  key.set_size(key.size() + (old ? 0 : 1));
}

void zset_remove(Keys& keys, Key& key, ByteView member, double score) {
  Bytes value;
  Value was;
  OrderedScore::append(value, score);
  was.set_borrowed(value);
  keys.remove_sub(key, member, was);
  keys.remove_score(key, score, member);
  key.set_size(key.size() - 1);
}

void zset_remove(Keys& keys, Key& key, std::span<const ScoredMember> members) {
  if (members.size() > removed_at_once_max && members.size() == key.size()) return key.remove();
  for (const auto& [member, score] : members) zset_remove(keys, key, member, score);
}

void zset_replace(Keys& keys, Key& key, std::span<const ScoredMember> members) {
  key.remove();
  for (const auto& [member, score] : members) zset_put(keys, key, member, score, {});
}

// --- bounds ---

namespace {

// What strtod takes, which is more than for scores: blanks in front, nothing at all, too large
// ones.
std::optional<ScoreBound> parse_score_bound(ByteView text) {
  ScoreBound bound{.exclusive = text.starts_with('(')};
  const Bytes number(text.substr(bound.exclusive ? 1 : 0));
  char* end = nullptr;
  bound.score = strtod(number.c_str(), &end);
  if (*end != '\0' || std::isnan(bound.score)) return std::nullopt;
  return bound;
}

std::optional<LexBound> parse_lex_bound(ByteView text) {
  if (text == "-") return LexBound{.kind = LexBound::Kind::lowest};
  if (text == "+") return LexBound{.kind = LexBound::Kind::highest};
  if (!text.starts_with('[') && !text.starts_with('(')) return std::nullopt;
  return LexBound{
      .kind = LexBound::Kind::member, .member = text.substr(1), .exclusive = text.starts_with('(')};
}

bool reaches(const LexBound& min, ByteView member) {
  if (min.kind != LexBound::Kind::member) return min.kind == LexBound::Kind::lowest;
  return min.exclusive ? member > min.member : member >= min.member;
}
bool is_within(const LexBound& max, ByteView member) {
  if (max.kind != LexBound::Kind::member) return max.kind == LexBound::Kind::highest;
  return max.exclusive ? member < max.member : member <= max.member;
}

bool is_empty(const LexBound& min, const LexBound& max) {
  if (min.kind != LexBound::Kind::member || max.kind != LexBound::Kind::member)
    return min.kind == LexBound::Kind::highest || max.kind == LexBound::Kind::lowest;
  return min.member > max.member || (min.member == max.member && (min.exclusive || max.exclusive));
}

}  // namespace

Result<ZsetRange> parse_range(const Call& call, ZsetRange::By by, size_t min_at, size_t max_at) {
  ZsetRange range{.by = by};
  if (by == ZsetRange::By::index) {
    TRY_ASSIGN(range.first, call.integer(min_at));
    TRY_ASSIGN(range.last, call.integer(max_at));
  } else if (by == ZsetRange::By::score) {
    const auto min = parse_score_bound(call.arg(min_at));
    const auto max = parse_score_bound(call.arg(max_at));
    if (!min || !max) return reply_with("ERR min or max is not a float");
    range.score_min = *min;
    range.score_max = *max;
  } else {
    const auto min = parse_lex_bound(call.arg(min_at));
    const auto max = parse_lex_bound(call.arg(max_at));
    if (!min || !max) return reply_with("ERR min or max not valid string range item");
    range.lex_min = *min;
    range.lex_max = *max;
  }
  return range;
}

// --- scans ---

namespace {

// From whichever end is nearer.
Status scan_by_index(Keys& keys, const Key& key, const ZsetRange& range, Keys::ScoreVisitor visit) {
  const auto size = static_cast<int64_t>(key.size());
  const int64_t first = std::max<int64_t>(range.first < 0 ? size + range.first : range.first, 0);
  const int64_t last = std::min(range.last < 0 ? size + range.last : range.last, size - 1);
  if (first > last) return {};
  const bool turned = size - 1 - last < first;
  int64_t skipped = turned ? size - 1 - last : first;
  int64_t left = last - first + 1;
  std::vector<ScoredMember> collected;  // if turned
  Keys::ScoreRange all = everything;
  all.reverse = range.reverse != turned;
  const auto one = [&](double score, ByteView member) {
    if (skipped > 0) {
      skipped--;
      return Visit::go_on;
    }
    left--;
    Visit next = Visit::go_on;
    if (turned)
      collected.push_back({Bytes(member), score});
    else
      next = visit(score, member);
    return left == 0 ? Visit::stop : next;
  };
  TRY(keys.scan_scores(key, all, one));
  for (size_t i = collected.size(); i-- > 0;)
    if (visit(collected[i].score, collected[i].member) == Visit::stop) break;
  return {};
}

Status scan_by_score(Keys& keys, const Key& key, const ZsetRange& range, Keys::ScoreVisitor visit) {
  const ScoreBound& min = range.score_min;
  const ScoreBound& max = range.score_max;
  const bool nothing = min.score > max.score || (min.exclusive && min.score == highest_score) ||
                       (min.score == max.score && (min.exclusive || max.exclusive));
  if (nothing) return {};
  return keys.scan_scores(
      key,
      {.begin_score = min.exclusive ? std::nextafter(min.score, highest_score) : min.score,
       .end_score = max.score,
       .end_is_inclusive = !max.exclusive,
       .reverse = range.reverse},
      visit);
}

Result<ScoredMember> edge_of(Keys& keys, const Key& key, bool reverse) {
  Keys::ScoreRange all = everything;
  all.reverse = reverse;
  ScoredMember edge{};
  const auto one = [&](double score, ByteView member) {
    edge = {Bytes(member), score};
    return Visit::stop;
  };
  TRY(keys.scan_scores(key, all, one));
  return edge;
}

Status scan_by_lex(Keys& keys, const Key& key, const ZsetRange& range, Keys::ScoreVisitor visit) {
  const LexBound& min = range.lex_min;
  const LexBound& max = range.lex_max;
  if (is_empty(min, max)) return {};
  TRY_ASSIGN(const ScoredMember lowest, edge_of(keys, key, false));
  TRY_ASSIGN(const ScoredMember highest, edge_of(keys, key, true));
  if (!is_within(max, lowest.member) || !reaches(min, highest.member)) return {};
  Keys::ScoreRange part = everything;
  part.reverse = range.reverse;
  const Bytes behind = Bytes(max.member) + '\0';
  if (lowest.score == highest.score) {  // as they should be: then the range is one of the order
    part.begin_score = part.end_score = lowest.score;
    part.begin_member = min.member;
    part.end_is_inclusive = max.kind != LexBound::Kind::member;
    if (!part.end_is_inclusive) part.end_member = behind;
  }
  bool begun = false;
  return keys.scan_scores(key, part, [&](double score, ByteView member) {
    begun = begun || (range.reverse ? is_within(max, member) : reaches(min, member));
    if (!begun) return Visit::go_on;
    if (!(range.reverse ? reaches(min, member) : is_within(max, member))) return Visit::stop;
    return visit(score, member);
  });
}

}  // namespace

Status scan_range(Keys& keys, const Key& key, const ZsetRange& range, Keys::ScoreVisitor visit) {
  if (!key.exists() || range.offset < 0 || range.count == 0) return {};
  if (range.by == ZsetRange::By::index) return scan_by_index(keys, key, range, visit);
  int64_t skipped = range.offset;
  int64_t left = range.count;
  const auto limited = [&](double score, ByteView member) {
    if (skipped > 0) {
      skipped--;
      return Visit::go_on;
    }
    const Visit next = visit(score, member);
    return left > 0 && --left == 0 ? Visit::stop : next;
  };
  return range.by == ZsetRange::By::score ? scan_by_score(keys, key, range, limited)
                                          : scan_by_lex(keys, key, range, limited);
}

Result<std::vector<ScoredMember>> collect_range(Keys& keys, const Key& key,
                                                const ZsetRange& range) {
  std::vector<ScoredMember> members;
  const auto add = [&](double score, ByteView member) {
    members.push_back({Bytes(member), score});
    return Visit::go_on;
  };
  TRY(scan_range(keys, key, range, add));
  return members;
}

Result<int64_t> count_range(Keys& keys, const Key& key, const ZsetRange& range) {
  int64_t count = 0;
  const auto one = [&](double, ByteView) {
    count++;
    return Visit::go_on;
  };
  TRY(scan_range(keys, key, range, one));
  return count;
}

// --- replies ---

void MembersReply::add(ByteView member, double score) {
  if (with_scores_ && reply_.protocol() != 2) reply_.array(2);
  reply_.bulk(member);
  if (with_scores_) reply_.number(score);
  members_++;
}

void MembersReply::finish() {
  reply_.insert_array(mark_, with_scores_ && reply_.protocol() == 2 ? 2 * members_ : members_);
}

}  // namespace trellis
