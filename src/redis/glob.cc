#include "redis/glob.h"

#include <algorithm>

namespace trellis {
namespace {

// One element of a pattern against one byte; moves `at` behind the element.
bool class_matches(ByteView pattern, size_t& at, char c) {
  at++;  // '['
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) at++;
  bool found = false;
  for (;;) {
    if (at >= pattern.size()) break;  // never closed: as if it were
    if (pattern[at] == '\\' && at + 1 < pattern.size()) {
      at++;
      found = found || pattern[at] == c;
    } else if (pattern[at] == ']') {
      at++;
      break;
    } else if (at + 2 < pattern.size() && pattern[at + 1] == '-') {
      // As a list: of two temporaries minmax would give references.
      const auto [low, high] = std::minmax(
          {static_cast<unsigned char>(pattern[at]), static_cast<unsigned char>(pattern[at + 2])});
      at += 2;
      const auto byte = static_cast<unsigned char>(c);
      found = found || (byte >= low && byte <= high);
    } else {
      found = found || pattern[at] == c;
    }
    at++;
  }
  return found != negated;
}

bool one_matches(ByteView pattern, size_t& at, char c) {
  if (pattern[at] == '[') return class_matches(pattern, at, c);
  if (pattern[at] == '?') {
    at++;
    return true;
  }
  if (pattern[at] == '\\' && at + 1 < pattern.size()) at++;
  return pattern[at++] == c;
}

}  // namespace

bool glob_matches(ByteView pattern, ByteView text) {
  // Of patterns Redis matches none but these with nothing, "**" neither.
  if (text.empty()) return pattern.empty() || pattern == "*";
  size_t at = 0;
  size_t in = 0;
  // Where to go on if what follows the last star does not match: with one more byte under it.
  size_t star = ByteView::npos;
  size_t star_in = 0;
  for (;;) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      star_in = in;
      continue;
    }
    if (in == text.size()) {
      if (at == pattern.size()) return true;
    } else if (at < pattern.size()) {
      size_t next = at;
      if (one_matches(pattern, next, text[in])) {
        at = next;
        in++;
        continue;
      }
    }
    if (star == ByteView::npos || star_in >= text.size()) return false;
    at = star;
    in = ++star_in;
  }
}

Bytes glob_prefix(ByteView pattern) {
  Bytes prefix;
  for (size_t at = 0; at < pattern.size(); at++) {
    const char c = pattern[at];
    if (c == '*' || c == '?' || c == '[') break;
    if (c == '\\') {
      if (at + 1 < pattern.size()) at++;
    }
    prefix.push_back(pattern[at]);
  }
  return prefix;
}

}  // namespace trellis
