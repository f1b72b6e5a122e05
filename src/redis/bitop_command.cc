// BITOP: fragment by fragment, in the order in which they are stored, which is the same in all
// bitmaps. What is read and written at a time is some MiB, whatever they have, and however often a
// key is named.
#include "redis/bitop_command.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "codec/redis_keys.h"
#include "redis/bitmap.h"

namespace trellis {
namespace {

enum class BitOperation : uint8_t { bit_and, bit_or, bit_xor, bit_not };

Result<BitOperation> parse_operation(const Call& call) {
  constexpr struct {
    std::string_view name;
    BitOperation operation;
  } names[] = {{"and", BitOperation::bit_and},
               {"or", BitOperation::bit_or},
               {"xor", BitOperation::bit_xor},
               {"not", BitOperation::bit_not}};
  for (const auto& [name, operation] : names)
    if (call.is_word(1, name)) return operation;
  return syntax_error();
}

struct Fragment {
  char bytes[fragment_bytes];
};

void combine_bits(Fragment& with, ByteView other, BitOperation operation) {
  Fragment padded{};
  std::memcpy(padded.bytes, other.data(), other.size());
  for (size_t i = 0; i < fragment_bytes; i += sizeof(uint64_t)) {
    uint64_t a = 0, b = 0;
    std::memcpy(&a, with.bytes + i, sizeof(a));
    std::memcpy(&b, padded.bytes + i, sizeof(b));
    if (operation == BitOperation::bit_and)
      a &= b;
    else if (operation == BitOperation::bit_or)
      a |= b;
    else
      a ^= b;
    std::memcpy(with.bytes + i, &a, sizeof(a));
  }
}

// What all streams have of bitmaps in memory.
constexpr size_t pages_bytes_max = 32 * 1024 * 1024;

// The fragments of a string or of a bitmap, one after the other, in the order of their subs.
class FragmentStream {
 public:
  // What it reads is what the key is now. The key may change then if it is the target.
  FragmentStream(Keys& keys, const Key& key, bool is_target, size_t streams)
      : keys_(keys), page_bytes_max_(std::min(page_bytes_max, pages_bytes_max / streams)) {
    if (key.type() == RedisType::bitmap) {
      size_ = key.size();
      prefix_ = keys.subs_prefix(key);
      begin_ = prefix_;
      end_ = prefix_end(prefix_);
      return;
    }
    text_ = key.text();
    if (is_target) text_ = kept_text_ = text_;
    for (uint64_t at = 0; at < text_.size(); at += fragment_bytes)
      order_.push_back(encode(RedisBitmapSub{at}));
    std::sort(order_.begin(), order_.end());
  }

  Status next() {
    at_++;
    if (prefix_.empty()) return {};
    if (at_ >= entries_.size() && !is_read_) return read_page();
    return {};
  }
  bool is_done() const { return at_ >= (prefix_.empty() ? order_.size() : entries_.size()); }
  ByteView sub() const {
    if (prefix_.empty()) return order_[at_];
    return ByteView(page_).substr(entries_[at_].begin, entries_[at_].sub_bytes);
  }
  // Valid until the next call.
  Result<ByteView> stored() {
    TRY_ASSIGN(const uint64_t offset, decode_fragment_offset(sub()));
    if (prefix_.empty()) {
      const ByteView part = text_.substr(offset, fragment_bytes);
      std::memcpy(turned_.bytes, part.data(), part.size());
      turn_bits(turned_.bytes, part.size());
      return ByteView(turned_.bytes, part.size());
    }
    if (offset >= size_) return ByteView();
    const Entry& entry = entries_[at_];
    return ByteView(page_).substr(entry.begin + entry.sub_bytes,
                                  std::min({entry.bytes, fragment_bytes, size_ - offset}));
  }

 private:
  static constexpr size_t page_bytes_max = 2 * 1024 * 1024;
  struct Entry {
    size_t begin;  // of the sub, which the bytes follow
    size_t sub_bytes;
    uint64_t bytes;
  };

  Status read_page() {
    constexpr size_t page_entries_max = 1'024;
    do {
      page_.clear();
      entries_.clear();
      at_ = 0;
      const auto take = [&](ByteView key, ByteView value) {
        key.remove_prefix(prefix_.size());
        entries_.push_back({page_.size(), key.size(), value.size()});
        page_ += key;
        page_ += value;
        return Visit::go_on;
      };
      TRY_ASSIGN(ScanPage page, keys_.view().scan({.begin = begin_,
                                                   .end = end_,
                                                   .entries_max = page_entries_max,
                                                   .bytes_max = page_bytes_max_,
                                                   .reading = bitmap_reading(size_)},
                                                  take));
      is_read_ = !page.resume;
      if (page.resume) begin_ = std::move(*page.resume);
    } while (entries_.empty() && !is_read_);
    return {};
  }

  Keys& keys_;
  const size_t page_bytes_max_;
  size_t at_ = SIZE_MAX;  // before the first
  // Of a bitmap.
  Bytes prefix_, begin_, end_;
  uint64_t size_ = 0;
  Bytes page_;
  std::vector<Entry> entries_;
  bool is_read_ = false;
  // Of a string.
  Bytes kept_text_;
  ByteView text_;
  Fragment turned_{};
  std::vector<Bytes> order_;
};

using Streams = std::vector<std::unique_ptr<FragmentStream>>;

class ResultWriter {
 public:
  ResultWriter(Keys& keys, Key& key, uint64_t bytes) : keys_(keys), key_(key), bytes_(bytes) {}
  Status put(ByteView sub, const Fragment& fragment) {
    TRY_ASSIGN(const uint64_t offset, decode_fragment_offset(sub));
    const ByteView stored(fragment.bytes, std::min(fragment_bytes, bytes_ - offset));
    put_fragment(keys_, key_, offset, stored, Value());
    return keys_.check_written(written_bytes_ += stored.size() + sub.size());
  }

 private:
  Keys& keys_;
  Key& key_;
  const uint64_t bytes_;
  size_t written_bytes_ = 0;
};

Status combine_all(Streams& streams, BitOperation operation, size_t sources, ResultWriter& writer) {
  for (const auto& stream : streams) TRY(stream->next());
  for (;;) {
    const FragmentStream* lowest = nullptr;
    for (const auto& stream : streams)
      if (!stream->is_done() && (lowest == nullptr || stream->sub() < lowest->sub()))
        lowest = stream.get();
    if (lowest == nullptr) return {};
    const Bytes sub(lowest->sub());
    Fragment fragment{};
    size_t found = 0;
    for (const auto& stream : streams) {
      if (stream->is_done() || stream->sub() != sub) continue;
      TRY_ASSIGN(const ByteView stored, stream->stored());
      combine_bits(fragment, stored, found == 0 ? BitOperation::bit_or : operation);
      found++;
      TRY(stream->next());
    }
    if (operation != BitOperation::bit_and || found == sources) TRY(writer.put(sub, fragment));
  }
}

// What is not stored becomes ones.
Status invert(FragmentStream& stream, uint64_t bytes, ResultWriter& writer) {
  std::vector<bool> is_written((bytes + fragment_bytes - 1) / fragment_bytes, false);
  Fragment fragment{};
  for (;;) {
    TRY(stream.next());
    if (stream.is_done()) break;
    TRY_ASSIGN(const uint64_t offset, decode_fragment_offset(stream.sub()));
    if (offset >= bytes) continue;
    TRY_ASSIGN(const ByteView stored, stream.stored());
    std::memset(fragment.bytes, 0xff, fragment_bytes);
    combine_bits(fragment, stored, BitOperation::bit_xor);
    is_written[offset / fragment_bytes] = true;
    TRY(writer.put(stream.sub(), fragment));
  }
  std::memset(fragment.bytes, 0xff, fragment_bytes);
  for (size_t i = 0; i < is_written.size(); i++)
    if (!is_written[i]) TRY(writer.put(encode(RedisBitmapSub{i * fragment_bytes}), fragment));
  return {};
}

// What is small is a string, without fragments on the way.
Result<Bytes> combine_texts(Keys& keys, std::span<const Key* const> sources, uint64_t bytes,
                            BitOperation operation) {
  Bytes result;
  for (size_t i = 0; i < sources.size(); i++) {
    Bytes text;
    TRY(read_text(keys, *sources[i], 0, text_bytes(*sources[i]), text));
    text.resize(bytes, '\0');
    if (i == 0) result = text;
    for (size_t at = 0; at < bytes; at++) {
      if (operation == BitOperation::bit_not)
        result[at] = static_cast<char>(~text[at]);
      else if (operation == BitOperation::bit_and)
        result[at] = static_cast<char>(result[at] & text[at]);
      else if (operation == BitOperation::bit_or)
        result[at] = static_cast<char>(result[at] | text[at]);
      else if (i > 0)
        result[at] = static_cast<char>(result[at] ^ text[at]);
    }
  }
  return result;
}

// Each key once. What is named twice changes nothing, but for XOR, where two are none.
std::vector<const Key*> distinct_sources(std::vector<const Key*> sources, BitOperation operation) {
  std::sort(sources.begin(), sources.end());
  std::vector<const Key*> distinct;
  for (size_t i = 0; i < sources.size();) {
    size_t end = i + 1;
    while (end < sources.size() && sources[end] == sources[i]) end++;
    if (operation != BitOperation::bit_xor || (end - i) % 2 != 0) distinct.push_back(sources[i]);
    i = end;
  }
  return distinct;
}

}  // namespace

Status bitop(Call& call) {
  TRY_ASSIGN(const BitOperation operation, parse_operation(call));
  if (operation == BitOperation::bit_not && call.count() != 4)
    return reply_with("ERR BITOP NOT must be called with a single source key.");
  std::vector<const Key*> sources;
  uint64_t bytes = 0;
  for (size_t i = 3; i < call.count(); i++) {
    TRY_ASSIGN(const Key* const key, open_text(call, i));
    sources.push_back(key);
    bytes = std::max(bytes, text_bytes(*key));
  }
  TRY_ASSIGN(Key* const target, call.open(2));
  call.reply.integer(static_cast<int64_t>(bytes));
  if (bytes <= changed_string_bytes_max) {
    TRY_ASSIGN(Bytes result, combine_texts(call.keys, sources, bytes, operation));
    target->remove();
    if (bytes != 0) target->set_text(std::move(result));
    return {};
  }
  sources = distinct_sources(std::move(sources), operation);
  Streams streams;
  for (const Key* const source : sources)
    if (source->exists())
      streams.push_back(
          std::make_unique<FragmentStream>(call.keys, *source, source == target, sources.size()));
  target->create(RedisType::bitmap, call.keys.new_version());
  target->set_size(bytes);
  ResultWriter writer(call.keys, *target, bytes);
  if (operation == BitOperation::bit_not) return invert(*streams[0], bytes, writer);
  return combine_all(streams, operation, sources.size(), writer);
}

}  // namespace trellis
