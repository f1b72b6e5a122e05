#include "redis/lcs_command.h"

#include <algorithm>

#include "redis/bitmap.h"

namespace trellis {
namespace {

constexpr uint64_t table_bytes_max = 512 * 1024 * 1024;  // Redis's proto-max-bulk-len

struct LcsOptions {
  bool length = false;
  bool matches = false;
  bool match_lengths = false;
  int64_t match_length_min = 0;
};

Result<LcsOptions> parse_options(const Call& call) {
  LcsOptions options;
  for (size_t i = 3; i < call.count(); i++) {
    if (call.is_word(i, "len")) {
      options.length = true;
    } else if (call.is_word(i, "idx")) {
      options.matches = true;
    } else if (call.is_word(i, "withmatchlen")) {
      options.match_lengths = true;
    } else if (call.is_word(i, "minmatchlen") && i + 1 < call.count()) {
      TRY_ASSIGN(options.match_length_min, call.integer(++i));
    } else {
      return syntax_error();
    }
  }
  if (options.matches && options.length)
    return reply_with("ERR If you want both the length and indexes, please just use IDX.");
  return options;
}

// The lengths for all pairs of beginnings of the two texts.
class Lengths {
 public:
  Lengths(ByteView a, ByteView b) : width_(b.size() + 1), lengths_((a.size() + 1) * width_) {
    for (size_t i = 1; i <= a.size(); i++)
      for (size_t j = 1; j <= b.size(); j++)
        lengths_[i * width_ + j] =
            a[i - 1] == b[j - 1] ? of(i - 1, j - 1) + 1 : std::max(of(i - 1, j), of(i, j - 1));
  }
  uint32_t of(size_t i, size_t j) const { return lengths_[i * width_ + j]; }

 private:
  const size_t width_;
  std::vector<uint32_t> lengths_;
};

struct Match {
  size_t a;
  size_t b;
  size_t length;
};

// From the end to the beginning.
std::vector<Match> matches_of(ByteView a, ByteView b, const Lengths& lengths) {
  std::vector<Match> matches;
  size_t i = a.size();
  size_t j = b.size();
  bool goes_on = false;
  while (i > 0 && j > 0) {
    if (a[i - 1] != b[j - 1]) {
      (lengths.of(i - 1, j) > lengths.of(i, j - 1) ? i : j)--;
      goes_on = false;
      continue;
    }
    i--;
    j--;
    if (goes_on)
      matches.back() = {i, j, matches.back().length + 1};
    else
      matches.push_back({i, j, 1});
    goes_on = true;
  }
  return matches;
}

void reply_matches(Call& call, const LcsOptions& options, std::vector<Match> matches,
                   uint32_t length) {
  std::erase_if(matches, [&](const Match& match) {
    return static_cast<int64_t>(match.length) < options.match_length_min;
  });
  const auto range = [&](size_t begin, size_t size) {
    call.reply.array(2);
    call.reply.integer(static_cast<int64_t>(begin));
    call.reply.integer(static_cast<int64_t>(begin + size - 1));
  };
  call.reply.map(2);
  call.reply.bulk("matches");
  call.reply.array(matches.size());
  for (const Match& match : matches) {
    call.reply.array(options.match_lengths ? 3 : 2);
    range(match.a, match.length);
    range(match.b, match.length);
    if (options.match_lengths) call.reply.integer(static_cast<int64_t>(match.length));
  }
  call.reply.bulk("len");
  call.reply.integer(length);
}

}  // namespace

Status lcs(Call& call) {
  const Key* keys[2];
  uint64_t table_bytes = sizeof(uint32_t);
  for (size_t i = 0; i < 2; i++) {
    TRY_ASSIGN(keys[i], call.open(i + 1));
    if (keys[i]->exists() && !is_text(keys[i]->type()))
      return reply_with("ERR The specified keys must contain string values");
    table_bytes *= text_bytes(*keys[i]) + 1;
  }
  TRY_ASSIGN(const LcsOptions options, parse_options(call));
  if (table_bytes > table_bytes_max)
    return reply_with(
        "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
  Bytes a, b;
  TRY(read_text(call.keys, *keys[0], 0, text_bytes(*keys[0]), a));
  TRY(read_text(call.keys, *keys[1], 0, text_bytes(*keys[1]), b));
  const Lengths lengths(a, b);
  const uint32_t length = lengths.of(a.size(), b.size());
  if (options.length) {
    call.reply.integer(length);
    return {};
  }
  const std::vector<Match> matches = matches_of(a, b, lengths);
  if (options.matches) {
    reply_matches(call, options, matches, length);
    return {};
  }
  Bytes common;
  for (auto match = matches.rbegin(); match != matches.rend(); ++match)
    common += ByteView(a).substr(match->a, match->length);
  call.reply.bulk(common);
  return {};
}

}  // namespace trellis
