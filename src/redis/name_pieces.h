// Where RANDOMKEY looks: pieces of the order of a database's names, with some dozen names each.
//
// It takes a piece by chance, reads it, and keeps it with the probability (names in it / most names
// of a piece); else it tries another. So each name is as likely as any other, whatever the borders
// are and whoever writes meanwhile: where they are only decides how often it tries. A piece that
// has too many is cut when it is met, one that has few is joined with the next.
//
// Borders are known in memory only. They are found by walking over all names once, some with each
// call. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace trellis {

class NamePieces {
 public:
  struct Piece {
    Bytes begin;
    std::optional<Bytes> end;  // absent: none follows
  };
  // How many names one has at most, of so many.
  static size_t names_max(uint64_t names);

  // Where the walk goes on; absent: it is over.
  std::optional<Bytes> walked_to() const;
  // From there on a page was found, which is to be cut at the borders. No end: it was the last one.
  // Nothing happens if another call was faster.
  void walked(const Bytes& from, std::vector<Bytes> borders, std::optional<Bytes> end);

  // REQUIRES: the walk is over.
  Piece pick(Random& random) const;
  void cut(const Bytes& at);
  void join_next(const Piece& piece);

 private:
  mutable std::mutex mutex_;
  std::vector<Bytes> borders_{Bytes()};  // in order: where pieces begin
  std::optional<Bytes> walked_to_{Bytes()};
};

// Of the databases that were asked for lately, by keyspace and slot.
class NamePiecesTable {
 public:
  std::shared_ptr<NamePieces> of(uint32_t keyspace, uint16_t slot);

 private:
  std::mutex mutex_;
  std::map<std::pair<uint32_t, uint16_t>, std::shared_ptr<NamePieces>> pieces_;
};

}  // namespace trellis
