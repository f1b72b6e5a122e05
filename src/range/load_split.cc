#include "range/load_split.h"

#include <algorithm>

namespace trellis {

void LoadSplit::record(ByteView address) {
  const size_t known = std::min<uint64_t>(seen_, candidates_max);
  for (size_t i = 0; i < known; i++)
    (address < candidates_[i].address ? candidates_[i].left : candidates_[i].right)++;
  seen_++;
  if (seen_ <= candidates_max) {
    candidates_[seen_ - 1] = {Bytes(address)};
  } else if (const uint64_t place = random_.below(seen_); place < candidates_max) {
    candidates_[place] = {Bytes(address)};
  }
}

std::optional<Bytes> LoadSplit::best() const {
  std::optional<Bytes> best;
  double best_share = 0.75;
  for (size_t i = 0; i < std::min<uint64_t>(seen_, candidates_max); i++) {
    const Candidate& candidate = candidates_[i];
    const uint64_t all = candidate.left + candidate.right;
    if (all < counts_min) continue;
    const double share =
        static_cast<double>(std::max(candidate.left, candidate.right)) / static_cast<double>(all);
    if (share > best_share) continue;
    best_share = share;
    best = candidate.address;
  }
  return best;
}

}  // namespace trellis
