#include "redis/rdb_reader.h"

#include <bit>
#include <cmath>
#include <limits>

#include "redis/number_text.h"

namespace trellis {
namespace {

// The bytes of the length behind an entry, by which it could be read backwards.
size_t back_length_bytes(size_t entry_bytes) {
  if (entry_bytes <= 127) return 1;
  if (entry_bytes < 16'383) return 2;
  if (entry_bytes < 2'097'151) return 3;
  return entry_bytes < 268'435'455 ? 4 : 5;
}

}  // namespace

void append_le(Bytes& out, uint64_t number, size_t width) {
  for (size_t i = 0; i < width; i++) out.push_back(static_cast<char>(number >> 8 * i));
}

uint64_t load_le(ByteView bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i > 0; i--)
    number = number << 8 | static_cast<uint8_t>(bytes[i - 1]);
  return number;
}

int64_t load_signed_le(ByteView bytes) {
  if (bytes.empty()) return 0;  // of a reader that has failed
  const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes.size());
  return static_cast<int64_t>(load_le(bytes) << unused) >> unused;
}

void append_length(Bytes& out, uint64_t length) {
  if (length < 1U << 6) {
    out.push_back(static_cast<char>(length));
  } else if (length < 1U << 14) {
    append_be16(out, static_cast<uint16_t>(0x4000 | length));
  } else if (length <= UINT32_MAX) {
    out.push_back('\x80');
    append_be32(out, static_cast<uint32_t>(length));
  } else {
    out.push_back('\x81');
    append_be64(out, length);
  }
}

void append_string(Bytes& out, ByteView text) {
  append_length(out, text.size());
  out += text;
}

// --- writing ---

// | 0 number: 7 bits |, | 110 number: 13 bits |, or f1, f3 or f4 and a number of 2, 4 or 8 bytes.
void ListpackWriter::add(int64_t number) {
  const size_t begin = entries_.size();
  if (number >= 0 && number < 128) {
    entries_.push_back(static_cast<char>(number));
  } else if (number >= -4096 && number < 4096) {
    append_be16(entries_, static_cast<uint16_t>(0xc000 | (number & 0x1fff)));
  } else if (number == static_cast<int16_t>(number)) {
    entries_.push_back('\xf1');
    append_le(entries_, static_cast<uint64_t>(number), 2);
  } else if (number == static_cast<int32_t>(number)) {
    entries_.push_back('\xf3');
    append_le(entries_, static_cast<uint64_t>(number), 4);
  } else {
    entries_.push_back('\xf4');
    append_le(entries_, static_cast<uint64_t>(number), 8);
  }
  end_entry(begin);
}

// | 10 length: 6 bits |, | 1110 length: 12 bits | or f0 and a length of 4 bytes, and the text.
void ListpackWriter::add(ByteView text) {
  const size_t begin = entries_.size();
  if (text.size() < 64) {
    entries_.push_back(static_cast<char>(0x80 | text.size()));
  } else if (text.size() < 4096) {
    append_be16(entries_, static_cast<uint16_t>(0xe000 | text.size()));
  } else {
    entries_.push_back('\xf0');
    append_le(entries_, text.size(), 4);
  }
  entries_ += text;
  end_entry(begin);
}

// Behind each entry stands how long it is, in 7 bits a byte, the lowest last; all but the first of
// these bytes have the highest bit.
void ListpackWriter::end_entry(size_t begin) {
  const size_t bytes = entries_.size() - begin;
  const size_t width = back_length_bytes(bytes);
  for (size_t i = width; i > 0; i--)
    entries_.push_back(static_cast<char>((bytes >> 7 * (i - 1) & 0x7f) | (i == width ? 0 : 0x80)));
  count_++;
}

void ListpackWriter::add(const ListpackWriter& other) {
  entries_ += other.entries_;
  count_ += other.count_;
}

Bytes ListpackWriter::finish() const {
  constexpr size_t unknown_count = 0xffff;
  Bytes pack;
  append_le(pack, entries_.size() + 7, 4);
  append_le(pack, std::min(count_, unknown_count), 2);
  return pack + entries_ + '\xff';
}

// --- reading ---

uint64_t RdbReader::length_behind(uint8_t first) {
  switch (first >> 6) {
    case 0: return first;
    case 1: return static_cast<uint64_t>(first & 0x3f) << 8 | byte();
    default: break;
  }
  if (first == 0x80) return be(4);
  if (first == 0x81) return be(8);
  fail();
  return 0;
}

// LZF: | 000 length - 1 | literals, or | length - 2 (7: a byte more) | distance - 1: 13 bits |.
Bytes RdbReader::decompressed() {
  const uint64_t packed_bytes = length();
  const uint64_t bytes = length();
  RdbReader packed(take(packed_bytes));
  constexpr uint64_t ratio_max = 88;  // three bytes stand for 264 at the most
  if (bytes > packed.left() * ratio_max) fail();
  Bytes out;
  if (failed_ || !spend(bytes)) return out;
  while (!packed.at_end() && !failed_) {
    const uint8_t control = packed.byte();
    if (control < 32) {
      out += packed.take(control + 1U);
    } else {
      size_t length = control >> 5;
      if (length == 7) length += packed.byte();
      const size_t distance = ((control & 0x1fU) << 8 | packed.byte()) + 1;
      if (distance > out.size()) packed.fail();
      for (size_t i = 0; i < length + 2 && !packed.failed(); i++)
        out.push_back(out[out.size() - distance]);
    }
    if (out.size() > bytes) break;
  }
  if (packed.failed() || out.size() != bytes) fail();
  return out;
}

Bytes RdbReader::string() {
  const uint8_t first = byte();
  switch (first) {
    case 0xc0: return std::to_string(load_signed_le(take(1)));
    case 0xc1: return std::to_string(load_signed_le(take(2)));
    case 0xc2: return std::to_string(load_signed_le(take(4)));
    case 0xc3: return decompressed();
    default: return Bytes(take(length_behind(first)));
  }
}

double RdbReader::score() {
  const double score = std::bit_cast<double>(load_le(take(sizeof(double))));
  if (std::isnan(score)) fail();
  return score;
}

double RdbReader::score_text() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const uint8_t length = byte();
  if (length == 254) return infinity;
  if (length == 255) return -infinity;
  const auto score = parse_double(take(length));
  if (!score) fail();
  return score.value_or(0);
}

// --- listpacks ---

namespace {

// An entry of a listpack; absent: none can begin like this.
std::optional<Bytes> read_entry(RdbReader& reader, uint8_t first) {
  if (first < 0x80) return std::to_string(first);
  if (first < 0xc0) return Bytes(reader.take(first & 0x3f));
  if (first < 0xe0) {
    const int number = (first & 0x1f) << 8 | reader.byte();
    return std::to_string(number >= 1 << 12 ? number - (1 << 13) : number);
  }
  if (first < 0xf0)
    return Bytes(reader.take(static_cast<size_t>(first & 0x0f) << 8 | reader.byte()));
  switch (first) {
    case 0xf0: return Bytes(reader.take(load_le(reader.take(4))));
    case 0xf1: return std::to_string(load_signed_le(reader.take(2)));
    case 0xf2: return std::to_string(load_signed_le(reader.take(3)));
    case 0xf3: return std::to_string(load_signed_le(reader.take(4)));
    case 0xf4: return std::to_string(load_signed_le(reader.take(8)));
    default: return std::nullopt;
  }
}

}  // namespace

// | bytes u32le | entries u16le, ffff if more | entries, each with its length behind it | ff |
Items read_listpack(RdbReader& budget, ByteView pack) {
  constexpr size_t header_bytes = 6;
  constexpr uint64_t unknown_count = 0xffff;
  if (pack.size() < header_bytes + 1 || load_le(pack.substr(0, 4)) != pack.size())
    return std::nullopt;
  const uint64_t count = load_le(pack.substr(4, 2));
  std::vector<Bytes> items;
  size_t at = header_bytes;
  while (at < pack.size() && static_cast<uint8_t>(pack[at]) != 0xff) {
    const ByteView rest = pack.substr(at);
    RdbReader reader(rest);
    auto item = read_entry(reader, reader.byte());
    if (!item || reader.failed()) return std::nullopt;
    const size_t entry_bytes = rest.size() - reader.left();
    at += entry_bytes + back_length_bytes(entry_bytes);
    if (!budget.spend(item_bytes_min)) return std::nullopt;
    items.push_back(std::move(*item));
  }
  if (at + 1 != pack.size() || (count != unknown_count && count != items.size()))
    return std::nullopt;
  return items;
}

}  // namespace trellis
