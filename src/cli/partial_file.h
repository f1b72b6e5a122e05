// A local file that is being written under another name until it is whole.
//
//   TRY_ASSIGN(PartialFile partial, PartialFile::open("folder/.name.partial", true));
//   TRY(partial.write(bytes));
//   TRY(partial.rename_to("folder/name"));
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

// Errors are of code invalid: they are of this file alone.
class PartialFile {
 public:
  // With what is there already if it `goes_on`. Code conflict: another command writes it.
  static Result<PartialFile> open(std::string path, bool goes_on);
  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  Status write(ByteView bytes);
  uint64_t size() const { return size_; }
  // What is there is written over, and the rest of it cut off at the end.
  void clear() { size_ = 0; }
  void remove();
  // In place of what has that name.
  Status rename_to(const std::string& path);

 private:
  PartialFile(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  int descriptor_;
  std::string path_;
  uint64_t size_ = 0;
};

}  // namespace trellis
