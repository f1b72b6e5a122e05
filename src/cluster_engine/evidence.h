// What a page saw, for a commit that relies on it.
//
//   | 01 | parts u32 | { begin | end | structure } ... | { address | version } ... |
//
// all of them length-prefixed. A part is an interval of addresses that was read, with the structure
// counter of the range that it was in: unchanged, nothing appeared or disappeared there.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

struct EvidencePart {
  Bytes begin;
  Bytes end;
  Bytes structure;
};

struct EvidenceEntry {
  Bytes address;
  Bytes version;
  bool operator==(const EvidenceEntry&) const = default;
};

struct PageEvidence {
  std::vector<EvidencePart> parts;
  std::vector<EvidenceEntry> entries;  // in the order of keys
};

Bytes encode_page_evidence(const PageEvidence& evidence);
// Code::invalid if the bytes are no evidence of this engine.
Result<PageEvidence> decode_page_evidence(ByteView bytes);

}  // namespace trellis
