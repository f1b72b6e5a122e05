#include "cluster_engine/intent.h"

#include <fmt/format.h>

#include <charconv>

namespace trellis {
namespace {

constexpr char intent_format = '\x01';
constexpr size_t intent_head_bytes = 1 + 16 + 1;
constexpr char put_mark = 'p';
constexpr char remove_mark = 'r';
constexpr char commit_mark = 'C';
constexpr char abort_mark = 'A';

}  // namespace

Bytes encode_intent(const Intent& intent) {
  Bytes bytes(1, intent_format);
  bytes.append(encode_writer(intent.txn));
  bytes.push_back(intent.value ? put_mark : remove_mark);
  if (intent.value) bytes.append(*intent.value);
  return bytes;
}

Result<Intent> decode_intent(ByteView bytes) {
  const Error corrupt{Code::corrupt,
                      "a stored intent makes no sense: " + quote(bytes.substr(0, 32))};
  if (bytes.size() < intent_head_bytes || bytes[0] != intent_format) return corrupt;
  Intent intent{.txn = {load_be(bytes.data() + 1, 8), load_be(bytes.data() + 9, 8)}, .value = {}};
  const char mark = bytes[intent_head_bytes - 1];
  const ByteView value = bytes.substr(intent_head_bytes);
  if (mark == put_mark) {
    intent.value = value;
  } else if (mark != remove_mark || !value.empty()) {
    return corrupt;
  }
  return intent;
}

Bytes encode_decision(const Decision& decision) {
  Bytes bytes(1, decision.committed ? commit_mark : abort_mark);
  for (const auto& [first, last] : decision.written) {
    append_sized(bytes, first);
    append_sized(bytes, last);
  }
  return bytes;
}

Result<Decision> decode_decision(ByteView bytes) {
  const Error corrupt{Code::corrupt, "a stored decision makes no sense: " + quote(bytes)};
  if (bytes.empty()) return corrupt;
  if (bytes == ByteView(&abort_mark, 1)) return Decision{};
  if (bytes[0] != commit_mark) return corrupt;
  Decision decision{.committed = true, .written = {}};
  bytes.remove_prefix(1);
  while (!bytes.empty()) {
    ByteView first;
    ByteView last;
    if (!take_sized(bytes, first) || !take_sized(bytes, last)) return corrupt;
    decision.written.emplace_back(first, last);
  }
  return decision;
}

Bytes log_object_name(uint64_t incarnation) {
  return fmt::format("{}{}", log_object_name_prefix, incarnation);
}

std::optional<uint64_t> parse_log_object_name(ByteView object) {
  if (!object.starts_with(log_object_name_prefix)) return std::nullopt;
  uint64_t incarnation = 0;
  std::from_chars(object.data() + log_object_name_prefix.size(), object.data() + object.size(),
                  incarnation);
  if (log_object_name(incarnation) != object) return std::nullopt;
  return incarnation;
}

void append_sized(Bytes& out, ByteView bytes) {
  append_be32(out, static_cast<uint32_t>(bytes.size()));
  out.append(bytes);
}

bool take_sized(ByteView& in, ByteView& out) {
  if (in.size() < 4) return false;
  const size_t size = load_be(in.data(), 4);
  if (in.size() - 4 < size) return false;
  out = in.substr(4, size);
  in.remove_prefix(4 + size);
  return true;
}

}  // namespace trellis
