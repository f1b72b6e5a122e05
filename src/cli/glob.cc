#include "cli/glob.h"

#include <algorithm>
#include <optional>

#include "base/utf8.h"

namespace trellis {
namespace {

constexpr ByteView glob_characters = "*?[";
constexpr ByteView escapable_characters = "*?[]\\";

ByteView first_character(ByteView text) {
  return text.substr(0, std::max<size_t>(1, utf8_length(text)));
}

bool begins_with_escape(ByteView pattern) {
  return pattern.size() >= 2 && pattern[0] == '\\' &&
         escapable_characters.find(pattern[1]) != ByteView::npos;
}

// One character of a pattern that stands for itself, and how much of the pattern it takes.
struct PatternCharacter {
  ByteView character;
  size_t size;
};
PatternCharacter read_character(ByteView pattern) {
  const size_t escape = begins_with_escape(pattern) ? 1 : 0;
  const ByteView character = first_character(pattern.substr(escape));
  return {character, escape + character.size()};
}

struct SetMatch {
  bool matches;
  size_t size;  // of the set in the pattern
};
// "[...]" against one character. Absent: nothing closes it.
std::optional<SetMatch> match_set(ByteView pattern, ByteView character) {
  size_t at = 1;
  const bool is_negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (is_negated) at++;
  bool found = false;
  // A ']' in front is one of the set.
  for (bool is_first = true; at < pattern.size(); is_first = false) {
    if (pattern[at] == ']' && !is_first) return SetMatch{found != is_negated, at + 1};
    const PatternCharacter low = read_character(pattern.substr(at));
    at += low.size;
    PatternCharacter high = low;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') {
      high = read_character(pattern.substr(at + 1));
      at += 1 + high.size;
    }
    // The order of UTF-8's bytes is that of its characters.
    if (low.character <= character && character <= high.character) found = true;
  }
  return std::nullopt;
}

// How much of the pattern the first character of the name takes; 0: it does not match.
size_t match_one(ByteView pattern, ByteView character) {
  if (pattern.empty()) return 0;
  if (pattern[0] == '?') return 1;
  if (pattern[0] == '[')
    if (const auto set = match_set(pattern, character)) return set->matches ? set->size : 0;
  const PatternCharacter wanted = read_character(pattern);
  return wanted.character == character ? wanted.size : 0;
}

}  // namespace

bool is_glob(ByteView text) {
  for (size_t at = 0; at < text.size(); at++) {
    if (begins_with_escape(text.substr(at)))
      at++;
    else if (glob_characters.find(text[at]) != ByteView::npos)
      return true;
  }
  return false;
}

Bytes without_escapes(ByteView text) {
  Bytes plain;
  while (!text.empty()) {
    const PatternCharacter next = read_character(text);
    plain += next.character;
    text.remove_prefix(next.size);
  }
  return plain;
}

Bytes path_glob_prefix(ByteView pattern) {
  Bytes prefix;
  while (!pattern.empty() && glob_characters.find(pattern[0]) == ByteView::npos) {
    const PatternCharacter next = read_character(pattern);
    prefix += next.character;
    pattern.remove_prefix(next.size);
  }
  return prefix;
}

bool matches_path_glob(ByteView pattern, ByteView name) {
  // Where to go back to: the last '*', which then takes one character more. Those before it have
  // taken as little as they can, and that is enough.
  std::optional<ByteView> pattern_behind_star;
  ByteView name_behind_star;
  while (!name.empty()) {
    const ByteView character = first_character(name);
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      pattern_behind_star = pattern;
      name_behind_star = name;
    } else if (const size_t size = match_one(pattern, character); size > 0) {
      pattern.remove_prefix(size);
      name.remove_prefix(character.size());
    } else if (pattern_behind_star) {
      pattern = *pattern_behind_star;
      name_behind_star.remove_prefix(first_character(name_behind_star).size());
      name = name_behind_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*') == ByteView::npos;
}

bool matches_path_glob(std::span<const Bytes> patterns, std::span<const ByteView> names) {
  // As above, with names in place of characters.
  std::optional<std::span<const Bytes>> patterns_behind_star;
  std::span<const ByteView> names_behind_star;
  while (!names.empty()) {
    if (!patterns.empty() && patterns.front() == "**") {
      patterns = patterns.subspan(1);
      patterns_behind_star = patterns;
      names_behind_star = names;
    } else if (!patterns.empty() && matches_path_glob(patterns.front(), names.front())) {
      patterns = patterns.subspan(1);
      names = names.subspan(1);
    } else if (patterns_behind_star) {
      patterns = *patterns_behind_star;
      names_behind_star = names_behind_star.subspan(1);
      names = names_behind_star;
    } else {
      return false;
    }
  }
  return std::all_of(patterns.begin(), patterns.end(),
                     [](const Bytes& pattern) { return pattern == "**"; });
}

}  // namespace trellis
