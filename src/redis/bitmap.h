// Strings that are kept in fragments: bitmaps.
//
//   's' offset of the first byte, in decimal: 0, 1024, ...  ->  up to 1,024 bytes
//
// The bits of a stored byte are turned round, the least significant one first, as Kvrocks has them.
// What is not stored is zeros: fragments that have nothing else, and the end of others.
//
// To clients a bitmap is a string, whatever they do with it: SETBIT of a key that is not there
// makes one, and a string of which a bit or a part is changed becomes one if it is large; a command
// that sets all of it makes it a string. Two keys with the same bytes are alike, however they are
// kept.
#pragma once

#include "codec/redis_keys.h"
#include "redis/call.h"

namespace trellis {

constexpr uint64_t fragment_bytes = redis_bitmap_fragment_bytes;
// A string that has at most so many bytes stays one when bits of it are changed.
constexpr uint64_t changed_string_bytes_max = 4 * 1024;
// What SETBIT reaches with an offset below 2^32, and what proto-max-bulk-len is.
constexpr uint64_t bitmap_bytes_max = 512 * 1024 * 1024;

// What is small may be read again soon.
constexpr ScanRequest::Reading bitmap_reading(uint64_t bitmap_bytes) {
  constexpr uint64_t much_bytes_min = 16 * 1024 * 1024;
  return bitmap_bytes < much_bytes_min ? ScanRequest::Reading::often
                                       : ScanRequest::Reading::much_once;
}

// Turns the bits of each byte round.
void turn_bits(char* bytes, size_t count);

// A string or a bitmap, of which nothing is read yet, or none.
Result<Key*> open_text(Call& call, size_t i);
uint64_t text_bytes(const Key& key);  // 0 if it does not exist
// Bytes of it, as clients see them, appended. REQUIRES: begin <= end <= text_bytes.
Status read_text(Keys& keys, const Key& key, uint64_t begin, uint64_t end, Bytes& out);
// Lets Key::text give all of a bitmap, until it changes or another one is loaded. Does nothing with
// other types.
Status load_text(Keys& keys, Key& key);
Error part_too_long();  // of what is asked for at once

// It gets zeros behind its end, up to so many bytes; a new key, or a large string, becomes a
// bitmap. REQUIRES: open_text gave it.
Status grow_text(Keys& keys, Key& key, uint64_t bytes);
// REQUIRES: it has these bytes.
Status write_text(Keys& keys, Key& key, uint64_t offset, ByteView bytes);
// The key becomes that, in one piece or in fragments, without expiry.
Status set_large_text(Keys& keys, Key& key, ByteView text);

// --- fragments of bitmaps ---

// Those that are stored and have bytes from `begin` on, to before `end`, in any order, cut to the
// bitmap's size; bits are as they are stored.
using FragmentVisitor = FunctionRef<void(uint64_t offset, ByteView stored)>;
Status visit_fragments(Keys& keys, const Key& key, uint64_t begin, uint64_t end,
                       FragmentVisitor visit);
// Whether it looks for each that may be there: they are few beside all. Else it scans all.
bool is_looked_for(const Key& key, uint64_t begin, uint64_t end);
// One of them, the offset of which is a multiple of what one has.
Status get_fragment(Keys& keys, const Key& key, uint64_t offset, Value& stored);
// What is stored of one; nothing of one that is all zeros.
ByteView without_zeros_behind(ByteView fragment);
// One that is all zeros is removed, or not written. `old` is what is stored.
void put_fragment(Keys& keys, const Key& key, uint64_t offset, ByteView stored, const Value& old);

Result<uint64_t> decode_fragment_offset(ByteView sub);

}  // namespace trellis
