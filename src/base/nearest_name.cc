#include "base/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace trellis {
namespace {

char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Letters added, left out or replaced, and neighbours exchanged.
size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  const auto same = [&](size_t i, size_t j) { return lowered(a[i]) == lowered(b[j]); };
  for (size_t i = 0; i < a.size(); i++) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); j++) {
      row[j + 1] = std::min({last[j] + (same(i, j) ? 0 : 1), last[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j))
        row[j + 1] = std::min(row[j + 1], before_last[j - 1] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest_name(std::string_view given, std::span<const std::string> names) {
  std::string_view nearest;
  // With a third of it wrong one still sees what was meant.
  size_t edits_min = std::max<size_t>(1, given.size() / 3) + 1;
  for (const std::string& name : names) {
    // At least as many edits as they differ in length: whatever was given, the work is bounded.
    const auto [shorter, longer] = std::minmax({name.size(), given.size()});
    if (longer - shorter >= edits_min) continue;
    if (const size_t edits = edits_between(given, name); edits < edits_min)
      nearest = name, edits_min = edits;
  }
  return nearest;
}

}  // namespace trellis
