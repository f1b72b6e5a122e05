#include "fs/paths.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "fs/file_headers.h"
#include "support/expect_ok.h"
#include "support/test_seed.h"

namespace trellis {
namespace {

std::string normal(ByteView text) {
  const auto path = parse_path(text);
  return path ? path->text() : std::string(path.error().reason);
}

TEST(Paths, are_normalised) {
  EXPECT_EQ(normal(""), "/");
  EXPECT_EQ(normal("/"), "/");
  EXPECT_EQ(normal("///"), "/");
  EXPECT_EQ(normal("a"), "a");
  EXPECT_EQ(normal("/a"), "a");
  EXPECT_EQ(normal("a/"), "a/");
  EXPECT_EQ(normal("//a//b///c//"), "a/b/c/");
  EXPECT_EQ(normal("a/b"), "a/b");
}

TEST(Paths, have_no_dots) {
  EXPECT_EQ(normal("."), "/");
  EXPECT_EQ(normal(".."), "/");
  EXPECT_EQ(normal("./a"), "a");
  EXPECT_EQ(normal("a/."), "a/");
  EXPECT_EQ(normal("a/./b"), "a/b");
  EXPECT_EQ(normal("a/.."), "/");
  EXPECT_EQ(normal("a/b/.."), "a/");
  EXPECT_EQ(normal("a/b/../c"), "a/c");
  EXPECT_EQ(normal("../../a"), "a");
  EXPECT_EQ(normal("a/../../b"), "b");
  EXPECT_EQ(normal("a/...b/..c/.d"), "a/...b/..c/.d");
}

TEST(Paths, are_bytes_and_not_trimmed) {
  EXPECT_EQ(normal(" a /\tb\n"), " a /\tb\n");
  EXPECT_EQ(normal(" "), " ");
  EXPECT_EQ(normal("\xff\x01/\x80"), "\xff\x01/\x80");
  EXPECT_EQ(normal(ByteView("a\0b", 3)), "illegal_name");
}

TEST(Paths, have_limits) {
  EXPECT_EQ(normal(Bytes(255, 'x')), Bytes(255, 'x'));
  EXPECT_EQ(normal(Bytes(256, 'x')), "name_too_long");
  EXPECT_EQ(normal("a/" + Bytes(256, 'x') + "/b"), "name_too_long");
  Bytes longest;
  while (longest.size() < 4'096) longest += Bytes(127, 'x') + "/";
  EXPECT_EQ(normal(longest), longest);
  EXPECT_EQ(normal(longest + "/"), "path_too_long");
}

TEST(FileHeaders, survive_and_refuse_any_other_bytes) {
  const FileHeaders headers{.content_type = "text/plain",
                            .content_disposition = "inline",
                            .cache_control = "no-cache",
                            .user = {{"", "nameless"}, {"a", ""}, {"b", Bytes(300, '\0')}}};
  const auto stored = encode_headers(headers);
  ASSERT_OK(stored);
  const auto loaded = decode_headers(*stored);
  ASSERT_OK(loaded);
  EXPECT_EQ(*loaded, headers);
  EXPECT_CODE(decode_headers(""), Code::corrupt);
  for (size_t length = 1; length < stored->size(); length++) {
    const auto cut = decode_headers(stored->substr(0, length));
    EXPECT_FALSE(cut && *cut == headers);
  }
  Random random(test_seed(1));
  for (uint64_t round = 0; round < test_rounds(10'000); round++) {
    Bytes changed = *stored;
    changed[random.below(changed.size())] = static_cast<char>(random.below(256));
    if (const auto read = decode_headers(changed); !read) EXPECT_CODE(read, Code::corrupt);
  }
  EXPECT_REASON(encode_headers({.content_type = Bytes(70'000, 'x')}), Code::too_large,
                "headers_too_large");
  EXPECT_REASON(encode_headers({.user = {{Bytes(70'000, 'x'), ""}}}), Code::too_large,
                "headers_too_large");
}

}  // namespace
}  // namespace trellis
