// Sorted sets: their records, and the ranges of them that commands name.
//
//   's' member        -> its score, 8 bytes that sort as it does
//   'z' score member  -> nothing
//
// Both are written and removed together, here and nowhere else, and the key's size with them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "redis/call.h"

namespace trellis {

struct ScoredMember {
  Bytes member;
  double score;
};
using Score = std::optional<double>;  // absent: of what is no member

Result<double> decode_score(ByteView value);  // of an 's' record

// All of these take a key that does not exist for an empty set.
Result<Score> zset_score(Keys& keys, const Key& key, ByteView member);
Result<std::vector<Score>> zset_scores(Keys& keys, const Key& key, Args members);
// `old` is the score that it has.
void zset_put(Keys& keys, Key& key, ByteView member, double score, Score old);
void zset_remove(Keys& keys, Key& key, ByteView member, double score);
void zset_remove(Keys& keys, Key& key, std::span<const ScoredMember> members);
// The key becomes these, whatever it was; without any it goes. REQUIRES: all are different.
void zset_replace(Keys& keys, Key& key, std::span<const ScoredMember> members);

// --- ranges ---

struct ScoreBound {
  double score = 0;
  bool exclusive = false;
};
struct LexBound {
  enum class Kind : uint8_t { lowest, member, highest };
  Kind kind = Kind::lowest;
  ByteView member = {};
  bool exclusive = false;
};

struct ZsetRange {
  enum class By : uint8_t { index, score, lex };
  By by = By::index;
  bool reverse = false;
  // By index, of the order that `reverse` gives; negative ones count from its end.
  int64_t first = 0;
  int64_t last = -1;
  // By score or member.
  ScoreBound score_min = {};
  ScoreBound score_max = {};
  LexBound lex_min = {};
  LexBound lex_max = {};
  int64_t offset = 0;  // negative: nothing at all
  int64_t count = -1;  // negative: no limit
};

// The bounds that two arguments name.
Result<ZsetRange> parse_range(const Call& call, ZsetRange::By by, size_t min_at, size_t max_at);

// By member in sets of several scores, where Redis promises nothing: from the first one in the
// range to the last before one that is not.
Status scan_range(Keys& keys, const Key& key, const ZsetRange& range, Keys::ScoreVisitor visit);
Result<std::vector<ScoredMember>> collect_range(Keys& keys, const Key& key, const ZsetRange& range);
Result<int64_t> count_range(Keys& keys, const Key& key, const ZsetRange& range);

// An array of members, with scores perhaps: in pairs that are flat in RESP2, nested in RESP3.
class MembersReply {
 public:
  MembersReply(Reply& reply, bool with_scores)
      : reply_(reply), with_scores_(with_scores), mark_(reply.mark()) {}
  void add(ByteView member, double score);
  // REQUIRES: nothing else was written since it began.
  void finish();

 private:
  Reply& reply_;
  const bool with_scores_;
  const size_t mark_;
  size_t members_ = 0;
};

}  // namespace trellis
