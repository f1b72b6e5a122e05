#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstring>

#include "codec/local_keys.h"
#include "codec/meta_keys.h"
#include "codec/pretty_key.h"
#include "codec/system_keys.h"
#include "codec/table_keys.h"

namespace trellis {
namespace {

constexpr char meta1_byte = '\x02';
constexpr char meta2_byte = '\x03';

Bytes with_prefix(char prefix, ByteView rest) {
  Bytes key(1, prefix);
  key.append(rest);
  return key;
}

// A meta key that may be looked up from: empty, or 02.., or 03.., none beyond its level's max.
Status check_meta_key(ByteView key) {
  if (key.empty()) return {};
  if (key == meta2_key_max)
    return Error{Code::invalid, "Meta2KeyMax can't be used as the key of scan"};
  if (key[0] != meta1_byte && key[0] != meta2_byte)
    return Error{Code::invalid, pretty_key(key) + " is not a meta key"};
  const ByteView max = key[0] == meta1_byte ? meta1_key_max : meta2_key_max;
  if (key > max) return Error{Code::invalid, pretty_key(key) + " is beyond the last meta key"};
  return {};
}

bool is_range_local(ByteView key) { return key.size() >= 2 && key[0] == '\x01' && key[1] == 'k'; }
bool is_local(ByteView key) { return !key.empty() && key[0] == '\x01'; }

}  // namespace

void AddressedKey::append_pretty(std::string& out, ByteView key) {
  const std::string inner = pretty_key(key);
  if (!inner.starts_with('/')) out += '/';
  out += inner;
}

void EndKey::append_pretty(std::string& out, ByteView key) {
  if (key.empty())
    out += "/\"\"";
  else
    AddressedKey::append_pretty(out, key);
}

void EscapedUuid::append(Bytes& out, const Uuid& uuid) {
  EscapedBytes::append(out, {reinterpret_cast<const char*>(uuid.data()), uuid.size()});
}

bool EscapedUuid::read(Reader& reader, Uuid& uuid) {
  const size_t start = reader.offset();
  ByteView raw;
  if (!EscapedBytes::read(reader, raw)) return false;
  if (raw.size() != uuid.size()) return reader.fail("a uuid has 16 bytes", start);
  std::memcpy(uuid.data(), raw.data(), uuid.size());
  return true;
}

Result<Bytes> range_meta_key(ByteView key) {
  if (is_local(key)) {
    TRY_ASSIGN(const Bytes address, address_of_local(key));
    return range_meta_key(address);
  }
  if (key.empty() || key[0] == meta1_byte) return Bytes();
  if (key[0] == meta2_byte) return with_prefix(meta1_byte, key.substr(1));
  return with_prefix(meta2_byte, key);
}

Result<std::pair<Bytes, Bytes>> meta_scan_bounds(ByteView meta_key) {
  TRY(check_meta_key(meta_key));
  if (meta_key.empty()) return std::pair(Bytes(1, meta1_byte), Bytes(1, meta2_byte));
  // The last record of meta1 is itself wanted: nothing lies after it.
  if (meta_key == meta1_key_max) return std::pair(Bytes(meta1_key_max), Bytes(1, meta2_byte));
  return std::pair(successor(meta_key), Bytes(1, static_cast<char>(meta_key[0] + 1)));
}

Result<std::pair<Bytes, Bytes>> meta_reverse_scan_bounds(ByteView meta_key) {
  TRY(check_meta_key(meta_key));
  if (meta_key.empty() || meta_key == ByteView(&meta1_byte, 1))
    return Error{Code::invalid, pretty_key(meta_key) + " can't be the key of a reverse scan"};
  // For exactly 03 the record is the last of meta1.
  const char level = meta_key == ByteView(&meta2_byte, 1) ? meta1_byte : meta_key[0];
  return std::pair(Bytes(1, level), successor(meta_key));
}

Result<Bytes> address_of_local(ByteView key) {
  Bytes current(key);
  while (is_local(current)) {
    if (!is_range_local(current))
      return Error{Code::invalid, pretty_key(current) + " is not addressable"};
    Bytes scratch;
    Reader reader(ByteView(current).substr(2), &scratch);
    ByteView inner;
    if (!EscapedBytes::read(reader, inner)) {
      reader.failure().offset += 2;
      return to_error(reader.failure());
    }
    Bytes next(inner);
    current = std::move(next);
  }
  return current;
}

Result<Bytes> address_upper_bound(ByteView key) {
  TRY_ASSIGN(const Bytes address, address_of_local(key));
  if (!is_range_local(key)) return address;
  // A bare 01 'k' EB(key) is the start of everything local to that key.
  Bytes bare("\x01k");
  EscapedBytes::append(bare, address);
  return bare == key ? address : successor(address);
}

std::string TimeSeriesKey::pretty(const TimeSeriesKey& key) {
  struct Resolution {
    int64_t number;
    std::string_view name;
    int64_t slot_seconds;
  };
  static constexpr Resolution resolutions[] = {{1, "10s", 3600}, {2, "30m", 86400}};
  for (const Resolution& resolution : resolutions) {
    const int64_t last = 253402300799 / resolution.slot_seconds;  // in the year 9999
    if (resolution.number != key.resolution || key.slot < 0 || key.slot > last) continue;
    const auto time = fmt::gmtime(static_cast<std::time_t>(key.slot * resolution.slot_seconds));
    return fmt::format("/System/tsd/{}/{}/{}/{:%Y-%m-%dT%H:%M:%SZ}", key.name, key.source,
                       resolution.name, time);
  }
  return fmt::format("/System/tsd/{}/{}/{}/{}", key.name, key.source, key.resolution, key.slot);
}

void TableValues::append_pretty(std::string& out, ByteView values) {
  Bytes scratch;
  Reader reader(values, &scratch);
  while (!reader.at_end()) {
    const auto lead = static_cast<unsigned char>(reader.rest()[0]);
    int64_t number = 0;
    ByteView bytes;
    if (lead == 0x00 || lead == 0x01) {
      out += lead == 0x00 ? "/NULL" : "/!NULL";
      reader.skip(1);
    } else if (lead >= 0x80 && lead <= 0xfd && OrderedVarint::read(reader, number)) {
      out += '/' + std::to_string(number);
    } else if (lead == 0x12 && EscapedBytes::read(reader, bytes)) {
      out += '/' + quote(bytes);
    } else {
      out += "/0x" + to_hex(reader.rest());
      return;
    }
  }
}

}  // namespace trellis
