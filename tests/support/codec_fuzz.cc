#include "support/codec_fuzz.h"

#include "base/assert.h"
#include "codec/address.h"
#include "codec/key_kinds.h"
#include "codec/meta_keys.h"
#include "codec/pretty_key.h"
#include "codec/redis_keys.h"
#include "codec/redis_metadata.h"
#include "codec/redis_stream.h"
#include "support/key_probes.h"

namespace trellis {
namespace {

template <class T>
void check_record(ByteView input) {
  Bytes scratch;
  const auto record = decode<T>(input, scratch);
  if (record) ASSERT(encode(*record) == input);
}

}  // namespace

void fuzz_key(ByteView input) {
  for (const KeyProbe& probe : key_probes())
    if (const auto back = probe.reencode(input)) ASSERT(*back == input);
  const auto explained = explain_key(input);
  if (!explained) {
    ASSERT(explained.error().offset <= input.size());
    ASSERT(!explained.error().why.empty());
    return;
  }
  size_t offset = 0;
  TextFields fields;
  for (const ExplainedField& field : explained->explanation.fields) {
    ASSERT(field.offset == offset);
    offset += field.length;
    fields.emplace_back(field.name, field.value);
  }
  ASSERT(offset == input.size());
  const auto kind = find_key_kind(explained->explanation.kind);
  ASSERT(kind.has_value());
  const auto back = encode_key(**kind, fields);
  ASSERT(back.has_value() && *back == input);
}

void fuzz_address(ByteView input) {
  Bytes address;
  Bytes key;
  if (append_address(address, input)) {
    ASSERT(append_key_at(key, address).has_value());
    ASSERT(key == input);
  }
  address.clear();
  key.clear();
  if (append_key_at(key, input)) {
    ASSERT(append_address(address, key).has_value());
    ASSERT(address == input);
  }
  Bytes granule;
  discard(append_granule(granule, input));
  ASSERT(granule.size() <= input.size() * 2 + 2);
  discard(range_meta_key(input));
  discard(meta_scan_bounds(input));
  discard(meta_reverse_scan_bounds(input));
  discard(address_upper_bound(input));
  ASSERT(!pretty_key(input).empty());
}

void fuzz_redis_metadata(ByteView input) {
  const auto metadata = decode_redis_metadata(input);
  if (!metadata) return;
  Bytes back;
  append_redis_metadata(back, *metadata);
  // The number of groups may be missing when read and is always written.
  ASSERT(back == input || (metadata->type == RedisType::stream &&
                           ByteView(back).substr(0, back.size() - 8) == input));
}

void fuzz_redis_stream(ByteView input) {
  std::vector<ByteView> strings;
  if (visit_stream_entry(input, [&](ByteView string) { strings.push_back(string); })) {
    Bytes back;
    append_stream_entry(back, strings);
    ASSERT(back == input);
  }
  check_record<StreamGroupValue>(input);
  check_record<StreamGroupAheadValue>(input);
  check_record<StreamConsumerValue>(input);
  check_record<StreamPendingValue>(input);
  check_record<RedisListSub>(input);
  check_record<RedisBitmapSub>(input);
  check_record<RedisSortedintSub>(input);
}

void fuzz_text(ByteView input) {
  if (const auto bytes = from_hex(input)) ASSERT(bytes->size() * 2 == input.size());
  const auto quoted = unquote(quote(input));
  ASSERT(quoted.has_value() && *quoted == input);
  discard(unquote(input));
  discard(parse_uuid(input));
  const auto fields = parse_text_fields(input);
  if (!fields) return;
  for (const KeyKind& kind : key_kinds()) discard(encode_key(kind, *fields));
}

}  // namespace trellis
