// Standard input and output, and files in their place, for commands that stream.
//
// Not iostreams: those say neither why a write failed nor what is there to be read now.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// The reason of a StandardOutput's error when whoever read the pipe has left, as `| head` does: it
// has all that it wanted, and the command ends without a word.
inline constexpr std::string_view reason_reader_left = "reader_left";

// One thread at a time. Does not close its descriptor.
class StandardOutput {
 public:
  // `name` is for errors: "standard output".
  StandardOutput(int descriptor, std::string name)
      : descriptor_(descriptor), name_(std::move(name)) {}
  StandardOutput(const StandardOutput&) = delete;
  StandardOutput& operator=(const StandardOutput&) = delete;

  Status write(ByteView bytes);  // gathers; see flush
  Status flush();
  bool is_terminal() const;

 private:
  int descriptor_;
  std::string name_;
  Bytes gathered_;
};

class StandardInput {
 public:
  StandardInput(int descriptor, std::string name)
      : descriptor_(descriptor), name_(std::move(name)) {}
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

  // What is there, at least a byte; empty at the end. Waits only if nothing is there.
  Result<Bytes> read_some();
  // Without its newline; absent at the end. Code too_large if there is none within `bytes_max`.
  Result<std::optional<std::string>> read_line(size_t bytes_max);
  // Likewise. At a terminal it asks with `prompt`, and what is typed is not shown.
  Result<std::optional<std::string>> read_secret_line(std::ostream& err, std::string_view prompt,
                                                      size_t bytes_max);
  // To the end; code too_large if that is further than `bytes_max`.
  Result<Bytes> read_all(size_t bytes_max);
  bool is_terminal() const;

 private:
  Status fill();  // appends to read_; at_end_ if there is no more

  int descriptor_;
  std::string name_;
  Bytes read_;
  bool at_end_ = false;
};

// An open file. Closes it.
class StreamFile {
 public:
  static Result<StreamFile> open_to_read(const std::string& path);
  // Made, and without all but its first bytes.
  static Result<StreamFile> open_to_write(const std::string& path, uint64_t bytes_kept = 0);
  // To be written and read, gone when it is closed.
  static Result<StreamFile> open_unnamed(const std::string& folder);
  StreamFile(StreamFile&& other) noexcept;
  StreamFile& operator=(StreamFile&& other) = delete;
  ~StreamFile();

  int descriptor() const { return descriptor_; }
  // Absent for what is no regular file.
  std::optional<uint64_t> size() const;
  Status sync() const;

 private:
  StreamFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_;
  std::string path_;
};

}  // namespace trellis
