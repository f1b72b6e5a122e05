#include "cli/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace trellis {
namespace {

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~Pipe() {
    close_reader();
    close_writer();
  }
  int reader() const { return ends_[0]; }
  int writer() const { return ends_[1]; }
  void close_reader() { close_end(ends_[0]); }
  void close_writer() { close_end(ends_[1]); }
  void fill(std::string_view text) {
    ASSERT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

 private:
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

TEST(StandardStreams, LinesThenTheRest) {
  Pipe pipe;
  pipe.fill("token\n\nvalue\nend");
  StandardInput in(pipe.reader(), "standard input");
  EXPECT_EQ(in.read_line(100).value(), "token");
  EXPECT_EQ(in.read_line(100).value(), "");
  EXPECT_EQ(in.read_some().value(), "value\nend");
  pipe.close_writer();
  EXPECT_EQ(in.read_some().value(), "");
  EXPECT_FALSE(in.read_line(100).value().has_value());
  EXPECT_EQ(in.read_all(100).value(), "");
}

TEST(StandardStreams, LastLineNeedsNoNewline) {
  Pipe pipe;
  pipe.fill("a\nb");
  pipe.close_writer();
  StandardInput in(pipe.reader(), "standard input");
  EXPECT_EQ(in.read_line(100).value(), "a");
  EXPECT_EQ(in.read_line(100).value(), "b");
  EXPECT_FALSE(in.read_line(100).value().has_value());
}

TEST(StandardStreams, WhatIsTooLongIsRefused) {
  Pipe pipe;
  pipe.fill("1234567\n89");
  pipe.close_writer();
  StandardInput in(pipe.reader(), "standard input");
  EXPECT_EQ(in.read_line(6).error().message, "standard input has a line of more than 6 bytes");
  EXPECT_EQ(in.read_all(9).error().message, "standard input has more than 9 bytes");
  EXPECT_EQ(in.read_all(10).value(), "1234567\n89");
}

TEST(StandardStreams, OutputIsGathered) {
  Pipe pipe;
  StandardOutput out(pipe.writer(), "standard output");
  ASSERT_TRUE(out.write("a"));
  ASSERT_TRUE(out.write("b"));
  ASSERT_TRUE(out.flush());
  StandardInput in(pipe.reader(), "pipe");
  EXPECT_EQ(in.read_some().value(), "ab");
}

TEST(StandardStreams, AReaderThatLeftIsKnown) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.close_reader();
  StandardOutput out(pipe.writer(), "standard output");
  ASSERT_TRUE(out.write("a"));
  EXPECT_EQ(out.flush().error().reason, reason_reader_left);
  const int full = ::open("/dev/full", O_WRONLY);
  StandardOutput disk(full, "standard output");
  ASSERT_TRUE(disk.write("a"));
  const Status status = disk.flush();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().reason, "");
  EXPECT_EQ(status.error().message,
            "standard output could not be written: No space left on device");
  ::close(full);
}

TEST(StandardStreams, FilesThatAreNotThere) {
  EXPECT_EQ(StreamFile::open_to_read("/no/such/file").error().message,
            "/no/such/file: No such file or directory");
  const auto null = StreamFile::open_to_write("/dev/null");
  ASSERT_TRUE(null.has_value());
  EXPECT_FALSE(null->size().has_value());
}

}  // namespace
}  // namespace trellis
