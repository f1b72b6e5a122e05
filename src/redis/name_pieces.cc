#include "redis/name_pieces.h"

#include <algorithm>

namespace trellis {

size_t NamePieces::names_max(uint64_t names) {
  constexpr size_t least = 24;
  constexpr uint64_t pieces = 131'072;  // about as many are held in memory
  return std::max<size_t>(least, names / pieces * 4 / 3);
}

std::optional<Bytes> NamePieces::walked_to() const {
  const std::lock_guard lock(mutex_);
  return walked_to_;
}

void NamePieces::walked(const Bytes& from, std::vector<Bytes> borders, std::optional<Bytes> end) {
  const std::lock_guard lock(mutex_);
  if (walked_to_ != from) return;
  for (Bytes& border : borders) borders_.push_back(std::move(border));
  walked_to_ = std::move(end);
}

NamePieces::Piece NamePieces::pick(Random& random) const {
  const std::lock_guard lock(mutex_);
  const size_t at = random.below(borders_.size());
  Piece piece{borders_[at], std::nullopt};
  if (at + 1 < borders_.size()) piece.end = borders_[at + 1];
  return piece;
}

void NamePieces::cut(const Bytes& at) {
  const std::lock_guard lock(mutex_);
  const auto place = std::lower_bound(borders_.begin(), borders_.end(), at);
  if (place == borders_.end() || *place != at) borders_.insert(place, at);
}

void NamePieces::join_next(const Piece& piece) {
  if (!piece.end) return;
  const std::lock_guard lock(mutex_);
  const auto place = std::lower_bound(borders_.begin(), borders_.end(), *piece.end);
  if (place != borders_.end() && *place == *piece.end) borders_.erase(place);
}

std::shared_ptr<NamePieces> NamePiecesTable::of(uint32_t keyspace, uint16_t slot) {
  constexpr size_t databases_max = 64;
  const std::lock_guard lock(mutex_);
  const std::pair key(keyspace, slot);
  auto found = pieces_.find(key);
  if (found == pieces_.end()) {
    if (pieces_.size() >= databases_max) pieces_.clear();
    found = pieces_.emplace(key, std::make_shared<NamePieces>()).first;
  }
  return found->second;
}

}  // namespace trellis
