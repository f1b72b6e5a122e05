// BITOP: part by part, in the order in which fragments are stored, which is the same in all
// bitmaps. What is read and written at a time is some MiB, whatever they have, and however often a
// key is named.
#include "redis/bitop_command.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "codec/redis_keys.h"
#include "redis/bitmap.h"
#include "redis/fragment_scan.h"

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

// `is_first`: nothing was there before.
void combine_bits(Fragment& with, ByteView other, BitOperation operation, bool is_first) {
  if (is_first) {
    std::memcpy(with.bytes, other.data(), other.size());
    std::memset(with.bytes + other.size(), 0, fragment_bytes - other.size());
    return;
  }
  Fragment padded;
  const char* theirs = other.data();
  if (other.size() != fragment_bytes) {
    std::memcpy(padded.bytes, other.data(), other.size());
    std::memset(padded.bytes + other.size(), 0, fragment_bytes - other.size());
    theirs = padded.bytes;
  }
  for (size_t i = 0; i < fragment_bytes; i += sizeof(uint64_t)) {
    uint64_t a = 0, b = 0;
    std::memcpy(&a, with.bytes + i, sizeof(a));
    std::memcpy(&b, theirs + i, sizeof(b));
    if (operation == BitOperation::bit_and)
      a &= b;
    else if (operation == BitOperation::bit_or)
      a |= b;
    else
      a ^= b;
    std::memcpy(with.bytes + i, &a, sizeof(a));
  }
}

// A string or a bitmap that is there. What is read is what the key is now; it may change then.
class BitSource {
 public:
  static Result<BitSource> open(Keys& keys, const Key& key) {
    BitSource source;
    if (key.type() == RedisType::bitmap) {
      TRY_ASSIGN(source.scan_, FragmentScan::open(keys, key));
    } else {
      source.text_ = key.text();
    }
    return source;
  }

  bool is_for_threads() const { return !scan_ || scan_->is_for_threads(); }
  Status visit(std::span<const uint64_t> part, FragmentVisitor visit) const {
    if (scan_) return scan_->visit(part, visit);
    Fragment turned;
    for (const uint64_t offset : part) {
      if (offset >= text_.size()) continue;
      const ByteView bytes = ByteView(text_).substr(offset, fragment_bytes);
      std::memcpy(turned.bytes, bytes.data(), bytes.size());
      turn_bits(turned.bytes, bytes.size());
      visit(offset, {turned.bytes, bytes.size()});
    }
    return {};
  }

 private:
  std::optional<FragmentScan> scan_;
  Bytes text_;
};

// What stays in a processor's own cache while one source after the other is combined, and is
// committed ahead at once.
constexpr size_t part_fragments = staged_part_bytes / fragment_bytes;

// What the sources have at some offsets, combined.
class Part {
 public:
  Status combine(std::span<const uint64_t> offsets, std::span<const BitSource> sources,
                 BitOperation operation) {
    offsets_ = offsets;
    found_.assign(offsets.size(), 0);
    if (fragments_ == nullptr) fragments_.reset(new Fragment[part_fragments]);
    for (const BitSource& source : sources) {
      size_t i = 0;
      TRY(source.visit(offsets, [&](uint64_t offset, ByteView stored) {
        while (i < offsets.size() && offsets[i] != offset) i++;
        if (i < offsets.size()) combine_bits(fragments_[i], stored, operation, found_[i]++ == 0);
      }));
      if (i == offsets.size())
        return Error{Code::corrupt, "the stored offset of a fragment does not make sense"};
    }
    if (operation == BitOperation::bit_not) invert();
    return {};
  }

  // What is to be stored, of a bitmap with so many bytes: where at least so many sources have
  // something. REQUIRES: the offsets are still there.
  WriteSet writes(ByteView prefix, uint64_t bytes, size_t found_min) const {
    constexpr size_t offset_digits_max = 10;
    WriteSet writes;
    const auto kept =
        std::ranges::count_if(found_, [&](size_t found) { return found >= found_min; });
    const auto count = static_cast<size_t>(kept);
    writes.reserve(count * (prefix.size() + offset_digits_max + fragment_bytes), count);
    Bytes key;
    for (size_t i = 0; i < offsets_.size(); i++) {
      if (found_[i] < found_min) continue;
      const ByteView stored = without_zeros_behind(
          {fragments_[i].bytes, std::min(fragment_bytes, bytes - offsets_[i])});
      if (stored.empty()) continue;
      key = prefix;
      key += encode(RedisBitmapSub{offsets_[i]});
      writes.put(key, stored);
    }
    return writes;
  }

 private:
  // What is not stored becomes ones.
  void invert() {
    for (size_t i = 0; i < offsets_.size(); i++) {
      if (found_[i]++ == 0) std::memset(fragments_[i].bytes, 0, fragment_bytes);
      for (char& byte : fragments_[i].bytes) byte = static_cast<char>(~byte);
    }
  }

  std::span<const uint64_t> offsets_;
  std::vector<size_t> found_;
  std::unique_ptr<Fragment[]> fragments_;
};

Status write_combined(Keys& keys, Key& target, uint64_t bytes, std::span<const BitSource> sources,
                      BitOperation operation, size_t found_min) {
  Part parts[PartWork::makers];
  WriteSet made[PartWork::slots];
  size_t written_bytes = 0;
  const Bytes prefix = keys.subs_prefix(target);
  const auto combine = [&](PartWork::Maker maker, PartWork::Slot slot,
                           std::span<const uint64_t> offsets) -> Status {
    TRY(parts[maker].combine(offsets, sources, operation));
    made[slot] = parts[maker].writes(prefix, bytes, found_min);
    return {};
  };
  const auto write = [&](PartWork::Slot slot) {
    written_bytes += made[slot].content_bytes();
    keys.put_new(target, std::move(made[slot]));
    return keys.check_written(written_bytes);
  };
  return work_in_parts(StoredOrder(bytes, part_fragments),
                       std::ranges::all_of(sources, &BitSource::is_for_threads), {combine, write});
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
  // What is that much may be staged from the start, however little there is to write.
  TRY(call.keys.check_written(bytes));
  std::vector<BitSource> opened;
  const std::vector<const Key*> distinct = distinct_sources(std::move(sources), operation);
  for (const Key* const source : distinct) {
    if (!source->exists()) continue;
    TRY_ASSIGN(BitSource one, BitSource::open(call.keys, *source));
    opened.push_back(std::move(one));
  }
  target->create(RedisType::bitmap, call.keys.new_version());
  target->set_size(bytes);
  const size_t found_min = operation == BitOperation::bit_and ? distinct.size() : 1;
  return write_combined(call.keys, *target, bytes, opened, operation, found_min);
}

}  // namespace trellis
