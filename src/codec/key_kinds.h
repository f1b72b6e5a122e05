// Every kind of key that there is, in the order of the map: what `trellis key` and `trellis map`
// work from, and the documentation is generated from.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "codec/all_keys.h"
#include "codec/layout.h"

namespace trellis {

struct KeyKind {
  std::string_view area;
  std::string_view kind;
  std::string_view summary;
  Place place;
  Description description;
  bool (*explain)(ByteView key, Explanation& out, DecodeFailure& failure);
  Result<Bytes> (*encode)(const TextFields& fields);
};

std::span<const KeyKind> key_kinds();

struct ExplainedKey {
  std::string_view area;
  Explanation explanation;
  // Other kinds that the bytes could be, seen without their context.
  std::vector<std::string_view> also;
};

struct UnexplainedKey {
  size_t offset;
  std::string why;
};

// Any bytes: what they are, or at which offset and why they are nothing. The failure is that of the
// kind that got furthest.
tl::expected<ExplainedKey, UnexplainedKey> explain_key(ByteView key);
// As the named kind only. Code::invalid if there is no such kind.
Result<const KeyKind*> find_key_kind(std::string_view kind);
tl::expected<ExplainedKey, UnexplainedKey> explain_key_as(const KeyKind& kind, ByteView key);

// The inverse: from the fields as explain shows them, in any order.
Result<Bytes> encode_key(const KeyKind& kind, const TextFields& fields);

// "field=value field=value ..." with values quoted where they hold blanks, as in the vectors.
Result<TextFields> parse_text_fields(std::string_view text);

}  // namespace trellis
