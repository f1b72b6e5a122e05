// Many files by one command: how far it is, and what did not work. One file that cannot be had does
// not keep the others from being moved.
//
//   Transfer transfer(session, "put");
//   transfer.expect(bytes);
//   TRY(transfer.take(path, upload(...)));
//   return transfer.finish();
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cli/client_command.h"

namespace trellis {

class Transfer {
 public:
  // `done`: what was done to files, as in "3 files put". If nothing is `going_on` after an error,
  // the first error is that of the command.
  Transfer(ClientSession& session, std::string_view done, bool goes_on);

  // So many in all: from then on there is a bar.
  void expect(uint64_t bytes) { total_bytes_ = total_bytes_.value_or(0) + bytes; }
  // Of the file that is being moved.
  void add_bytes(uint64_t bytes);
  // Takes bytes back: they are moved again.
  void take_back(uint64_t bytes) { bytes_ -= bytes; }

  // One file is done, or not. What says that no other file would be better off is handed back.
  Status take(std::string_view path, const Status& done);
  // It is not even tried.
  void skip(std::string_view path, std::string_view why);
  // An error if something was not done.
  Status outcome();
  // Says what was done, too.
  Status finish();

 private:
  void tell(std::string_view path, std::string_view what);

  ClientSession& session_;
  ProgressLine line_;
  const std::string_view done_;
  const bool goes_on_;
  const uint64_t begin_us_;
  std::optional<uint64_t> total_bytes_;
  uint64_t bytes_ = 0;
  uint64_t files_ = 0;
  uint64_t skipped_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace trellis
