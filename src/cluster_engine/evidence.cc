#include "cluster_engine/evidence.h"

#include "cluster_engine/intent.h"

namespace trellis {
namespace {

constexpr char evidence_format = '\x01';

}  // namespace

Bytes encode_page_evidence(const PageEvidence& evidence) {
  Bytes bytes(1, evidence_format);
  append_be32(bytes, static_cast<uint32_t>(evidence.parts.size()));
  for (const EvidencePart& part : evidence.parts) {
    append_sized(bytes, part.begin);
    append_sized(bytes, part.end);
    append_sized(bytes, part.structure);
  }
  for (const EvidenceEntry& entry : evidence.entries) {
    append_sized(bytes, entry.address);
    append_sized(bytes, entry.version);
  }
  return bytes;
}

Result<PageEvidence> decode_page_evidence(ByteView bytes) {
  const Error invalid{Code::invalid, "evidence that this engine did not give"};
  if (bytes.size() < 5 || bytes[0] != evidence_format) return invalid;
  const size_t parts = load_be(bytes.data() + 1, 4);
  bytes.remove_prefix(5);
  PageEvidence evidence;
  for (size_t i = 0; i < parts; i++) {
    ByteView begin;
    ByteView end;
    ByteView structure;
    if (!take_sized(bytes, begin) || !take_sized(bytes, end) || !take_sized(bytes, structure))
      return invalid;
    evidence.parts.push_back({Bytes(begin), Bytes(end), Bytes(structure)});
  }
  while (!bytes.empty()) {
    ByteView address;
    ByteView version;
    if (!take_sized(bytes, address) || !take_sized(bytes, version) || version.empty())
      return invalid;
    evidence.entries.push_back({Bytes(address), Bytes(version)});
  }
  return evidence;
}

}  // namespace trellis
