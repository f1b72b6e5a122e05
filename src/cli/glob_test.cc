#include "cli/glob.h"

#include <gtest/gtest.h>

#include <vector>

namespace trellis {
namespace {

bool path_matches(const std::vector<Bytes>& patterns, const std::vector<ByteView>& names) {
  return matches_path_glob(patterns, names);
}

TEST(Glob, StarsAndMarks) {
  EXPECT_TRUE(matches_path_glob("*", "anything"));
  EXPECT_TRUE(matches_path_glob("*", ".hidden"));
  EXPECT_TRUE(matches_path_glob("*.txt", ".txt"));
  EXPECT_TRUE(matches_path_glob("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(matches_path_glob("a*b*c", "a-b-b-d"));
  EXPECT_TRUE(matches_path_glob("a?c", "abc"));
  EXPECT_FALSE(matches_path_glob("a?c", "ac"));
  EXPECT_TRUE(matches_path_glob("stra?e", "straße"));
  EXPECT_TRUE(matches_path_glob("?", "\xff"));
  EXPECT_FALSE(matches_path_glob("a", ""));
  EXPECT_TRUE(matches_path_glob("**", "a"));
  EXPECT_FALSE(matches_path_glob("", "a"));
}

TEST(Glob, Sets) {
  EXPECT_TRUE(matches_path_glob("[a-c]1", "b1"));
  EXPECT_FALSE(matches_path_glob("[a-c]1", "d1"));
  EXPECT_TRUE(matches_path_glob("[!a-c]1", "d1"));
  EXPECT_FALSE(matches_path_glob("[^a-c]1", "a1"));
  EXPECT_TRUE(matches_path_glob("[]x]", "]"));
  EXPECT_TRUE(matches_path_glob("[a-]", "-"));
  EXPECT_TRUE(matches_path_glob("[ä-ü]", "ö"));
  EXPECT_TRUE(matches_path_glob("[\\]]", "]"));
  EXPECT_TRUE(matches_path_glob("[ab", "[ab")) << "nothing closes it";
  EXPECT_FALSE(matches_path_glob("[ab", "a"));
}

TEST(Glob, Escapes) {
  EXPECT_TRUE(matches_path_glob("\\*", "*"));
  EXPECT_FALSE(matches_path_glob("\\*", "a"));
  EXPECT_TRUE(matches_path_glob("a\\b*", "a\\bc")) << "a backslash in front of a letter is one";
  EXPECT_FALSE(is_glob("a\\*b\\?\\["));
  EXPECT_TRUE(is_glob("a\\\\*"));
  EXPECT_FALSE(is_glob("a\\b"));
  EXPECT_EQ(without_escapes("a\\*\\\\b\\c"), "a*\\b\\c");
  EXPECT_EQ(path_glob_prefix("lo\\*g-*.txt"), "lo*g-");
  EXPECT_EQ(path_glob_prefix("*"), "");
  EXPECT_EQ(path_glob_prefix("straß?"), "straß");
}

TEST(Glob, Paths) {
  EXPECT_TRUE(path_matches({"**", "*.txt"}, {"a.txt"}));
  EXPECT_TRUE(path_matches({"**", "*.txt"}, {"x", "y", "a.txt"}));
  EXPECT_FALSE(path_matches({"**", "*.txt"}, {"x", "y", "a.bin"}));
  EXPECT_TRUE(path_matches({"a", "**"}, {"a", "b", "c"}));
  EXPECT_TRUE(path_matches({"**", "b", "**", "d"}, {"a", "b", "b", "c", "d"}));
  EXPECT_FALSE(path_matches({"*"}, {"a", "b"}));
  EXPECT_FALSE(path_matches({"a", "b"}, {"a"}));
}

TEST(Glob, ManyStarsTakeNoTime) {
  Bytes pattern;
  for (int i = 0; i < 50; i++) pattern += "*a";
  EXPECT_FALSE(matches_path_glob(pattern + "b", Bytes(250, 'a')));
  const std::vector<Bytes> stars(40, "**");
  std::vector<Bytes> patterns = stars;
  for (int i = 0; i < 40; i++) patterns.insert(patterns.end(), {"**", "a"});
  patterns.push_back("b");
  EXPECT_FALSE(matches_path_glob(patterns, std::vector<ByteView>(1'000, "a")));
}

}  // namespace
}  // namespace trellis
