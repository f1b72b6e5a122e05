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

// To skip so few costs less than to find where they end.
constexpr int64_t skipped_few = 64;

Status scan_by_index(Keys& keys, const Key& key, const ZsetRange& range, Keys::ScoreVisitor visit) {
  const auto size = static_cast<int64_t>(key.size());
  const int64_t first = std::max<int64_t>(range.first < 0 ? size + range.first : range.first, 0);
  const int64_t last = std::min(range.last < 0 ? size + range.last : range.last, size - 1);
  if (first > last) return {};
  int64_t skipped = first;
  int64_t left = last - first + 1;
  Keys::ScoreRange all = everything;
  all.reverse = range.reverse;
  Bytes from;
  if (first > skipped_few) {
    const int64_t index = range.reverse ? size - 1 - first : first;
    TRY_ASSIGN(from, keys.nth_place(key, static_cast<uint64_t>(index)));
    all.from = from;
    skipped = 0;
  }
  return keys.scan_scores(key, all, [&](double score, ByteView member) {
    if (skipped-- > 0) return Visit::go_on;
    const Visit next = visit(score, member);
    return --left == 0 ? Visit::stop : next;
  });
}

// What a range by score or by member is in the order.
struct OrderPart {
  enum class Holds : uint8_t { nothing, all_of_it, also_others } holds = Holds::all_of_it;
  Keys::ScoreRange range = everything;
  Bytes begin_member = {};  // what `range` points to
  Bytes end_member = {};
};

void set_scores(OrderPart& part, const ScoreBound& min, const ScoreBound& max) {
  if (min.score > max.score || (min.exclusive && min.score == highest_score) ||
      (min.score == max.score && (min.exclusive || max.exclusive))) {
    part.holds = OrderPart::Holds::nothing;
    return;
  }
  part.range.begin_score = min.exclusive ? std::nextafter(min.score, highest_score) : min.score;
  part.range.end_score = max.score;
  part.range.end_is_inclusive = !max.exclusive;
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

Status set_members(Keys& keys, const Key& key, OrderPart& part, const LexBound& min,
                   const LexBound& max) {
  part.holds = OrderPart::Holds::nothing;
  if (is_empty(min, max)) return {};
  TRY_ASSIGN(const ScoredMember lowest, edge_of(keys, key, false));
  TRY_ASSIGN(const ScoredMember highest, edge_of(keys, key, true));
  if (!is_within(max, lowest.member) || !reaches(min, highest.member)) return {};
  part.holds = OrderPart::Holds::also_others;
  if (lowest.score != highest.score) return {};
  // As they should be: then the range is one of the order.
  part.holds = OrderPart::Holds::all_of_it;
  part.range.begin_score = part.range.end_score = lowest.score;
  part.begin_member = min.exclusive ? successor(min.member) : Bytes(min.member);
  part.range.begin_member = part.begin_member;
  if (max.kind != LexBound::Kind::member) return {};
  part.range.end_is_inclusive = false;
  part.end_member = max.exclusive ? Bytes(max.member) : successor(max.member);
  part.range.end_member = part.end_member;
  return {};
}

Status set_part(Keys& keys, const Key& key, const ZsetRange& range, OrderPart& part) {
  part.range.reverse = range.reverse;
  if (range.by == ZsetRange::By::lex)
    return set_members(keys, key, part, range.lex_min, range.lex_max);
  set_scores(part, range.score_min, range.score_max);
  return {};
}

struct OrderIndices {
  uint64_t begin;
  uint64_t end;
};
Result<OrderIndices> indices_of(Keys& keys, const Key& key, const Keys::ScoreRange& range) {
  const Bytes begin = scored_place(range.begin_score, range.begin_member);
  const Bytes end = range.end_is_inclusive ? prefix_end(scored_place(range.end_score, {}))
                                           : scored_place(range.end_score, range.end_member);
  TRY_ASSIGN(const uint64_t before, keys.count_before(key, begin));
  TRY_ASSIGN(const uint64_t before_end, keys.count_before(key, end));
  return OrderIndices{before, std::max(before, before_end)};
}

}  // namespace

Status scan_range(Keys& keys, const Key& key, const ZsetRange& range, Keys::ScoreVisitor visit) {
  if (!key.exists() || range.offset < 0 || range.count == 0) return {};
  if (range.by == ZsetRange::By::index) return scan_by_index(keys, key, range, visit);
  OrderPart part;
  TRY(set_part(keys, key, range, part));
  if (part.holds == OrderPart::Holds::nothing) return {};
  const bool is_exact = part.holds == OrderPart::Holds::all_of_it;
  int64_t skipped = range.offset;
  int64_t left = range.count;
  Bytes from;
  if (is_exact && skipped > skipped_few && key.has_fences()) {
    TRY_ASSIGN(const OrderIndices indices, indices_of(keys, key, part.range));
    const auto offset = static_cast<uint64_t>(skipped);
    if (offset >= indices.end - indices.begin) return {};
    TRY_ASSIGN(from, keys.nth_place(
                         key, range.reverse ? indices.end - 1 - offset : indices.begin + offset));
    part.range.from = from;
    skipped = 0;
  }
  bool begun = is_exact;
  return keys.scan_scores(key, part.range, [&](double score, ByteView member) {
    begun = begun ||
            (range.reverse ? is_within(range.lex_max, member) : reaches(range.lex_min, member));
    if (!begun) return Visit::go_on;
    const bool is_in = is_exact || (range.reverse ? reaches(range.lex_min, member)
                                                  : is_within(range.lex_max, member));
    if (!is_in) return Visit::stop;
    if (skipped-- > 0) return Visit::go_on;
    const Visit next = visit(score, member);
    return left > 0 && --left == 0 ? Visit::stop : next;
  });
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
  if (key.exists() && key.has_fences() && range.by != ZsetRange::By::index) {
    OrderPart part;
    TRY(set_part(keys, key, range, part));
    if (part.holds == OrderPart::Holds::nothing) return 0;
    if (part.holds == OrderPart::Holds::all_of_it) {
      TRY_ASSIGN(const OrderIndices indices, indices_of(keys, key, part.range));
      return static_cast<int64_t>(indices.end - indices.begin);
    }
  }
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
