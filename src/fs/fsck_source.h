// What a check reads from: the map as it is now, or a transaction on it.
#pragma once

#include <utility>
#include <vector>

#include "engine/engine.h"

namespace trellis {

class FsckSource {
 public:
  virtual ~FsckSource() = default;
  virtual Status get(ByteView key, Value& value) = 0;
  virtual Status multi_get(std::span<const ByteView> keys, std::span<Value> values) = 0;
  virtual Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) = 0;
};

// Of an Engine or a CountedView.
template <class Map>
class FsckSourceOf final : public FsckSource {
 public:
  explicit FsckSourceOf(Map& map) : map_(map) {}
  Status get(ByteView key, Value& value) override { return map_.get(key, value); }
  Status multi_get(std::span<const ByteView> keys, std::span<Value> values) override {
    return map_.multi_get(keys, values);
  }
  Result<ScanPage> scan(const ScanRequest& request, ScanVisitor visit) override {
    return map_.scan(request, visit);
  }

 private:
  Map& map_;
};

// Records of an interval one after the other; between two of them everything may be called.
class RecordCursor {
 public:
  RecordCursor(FsckSource& source, Bytes begin, Bytes end)
      : source_(source), from_(std::move(begin)), end_(std::move(end)) {}
  static RecordCursor of_prefix(FsckSource& source, ByteView prefix) {
    return {source, Bytes(prefix), prefix_end(prefix)};
  }

  // False: there are no more. The views are valid until the next call.
  Result<bool> next() {
    while (++at_ >= page_.size()) {
      if (done_) return false;
      TRY(load());
    }
    return true;
  }
  ByteView key() const { return page_[at_].first; }
  ByteView value() const { return page_[at_].second; }

 private:
  static constexpr size_t page_entries = 512;
  static constexpr size_t page_bytes = 1024 * 1024;

  Status load() {
    page_.clear();
    at_ = static_cast<size_t>(-1);
    TRY_ASSIGN(
        ScanPage page,
        source_.scan(
            {.begin = from_, .end = end_, .entries_max = page_entries, .bytes_max = page_bytes},
            [&](ByteView key, ByteView value) {
              page_.emplace_back(key, value);
              return Visit::go_on;
            }));
    done_ = !page.resume;
    if (page.resume) from_ = std::move(*page.resume);
    return {};
  }

  FsckSource& source_;
  Bytes from_;
  const Bytes end_;
  bool done_ = false;
  std::vector<std::pair<Bytes, Bytes>> page_;
  size_t at_ = 0;
};

}  // namespace trellis
