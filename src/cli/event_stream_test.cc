#include "cli/event_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace trellis {
namespace {

std::vector<std::string> events_of(std::string_view text, size_t piece_bytes) {
  std::vector<std::string> seen;
  EventStream stream([&](const ServerEvent& event) {
    seen.push_back(stream.last_id() + "|" + event.type + "|" + event.data);
    return Status();
  });
  for (size_t at = 0; at < text.size(); at += piece_bytes)
    EXPECT_TRUE(stream.feed(text.substr(at, piece_bytes)));
  return seen;
}

TEST(EventStream, PiecesOfAnySize) {
  const std::string_view text =
      ": hello\n\n"
      "id: 7\nevent: upsert\ndata: {\"a\":1}\n\n"
      "id:8\r\ndata:x\r\ndata: y: z\r\n\r\n"
      "data\r\r"
      "event: none\nid: 9\n\n"
      "retry: 5\ndata: last\n\n"
      "data: cut off";
  const std::vector<std::string> expected = {"7|upsert|{\"a\":1}", "8||x\ny: z", "8||", "9||last"};
  for (size_t piece_bytes = 1; piece_bytes < text.size(); piece_bytes++)
    EXPECT_EQ(events_of(text, piece_bytes), expected) << piece_bytes;
}

TEST(EventStream, AnErrorEndsIt) {
  EventStream stream([](const ServerEvent&) { return Status(Error{Code::unavailable, "closed"}); });
  EXPECT_TRUE(stream.feed("data: x\n"));
  EXPECT_FALSE(stream.feed("\n"));
}

TEST(EventStream, NoEndOfALineIsNoTrouble) {
  EventStream stream([](const ServerEvent&) { return Status(); });
  const std::string piece(1 << 20, 'x');
  Status status;
  for (int i = 0; i < 32 && status; i++) status = stream.feed(piece);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::too_large);
}

}  // namespace
}  // namespace trellis
