#include "catalog/log_trim.h"

#include <algorithm>
#include <vector>

namespace trellis {
namespace {

constexpr ByteView trim_letters = "lg";
constexpr size_t trim_bytes = 2 + 16 + 8;
// In one transaction, for which the metalake's writers wait.
constexpr size_t trimmed_at_once = 256;
constexpr uint64_t change_bytes = 150;  // about so many each

}  // namespace

Bytes encode_log_trim(const LogTrim& trim) {
  Bytes out(trim_letters);
  out.append(reinterpret_cast<const char*>(trim.metalake.data()), trim.metalake.size());
  append_be64(out, trim.number);
  return out;
}

std::optional<LogTrim> decode_log_trim(ByteView target) {
  if (target.size() != trim_bytes || !target.starts_with(trim_letters)) return std::nullopt;
  LogTrim trim;
  std::copy_n(target.begin() + trim_letters.size(), trim.metalake.size(), trim.metalake.begin());
  trim.number = load_be(target.data() + trim_bytes - 8, 8);
  return trim;
}

void leave_log_trims(CountedView& view, const LogTrim& last, uint64_t now_ms) {
  if (last.number % log_step != 0) return;
  const uint64_t bytes = log_step * change_bytes;
  view.leave_garbage(now_ms + log_age_ms, encode_log_trim(last), bytes);
  if (last.number <= log_changes_max) return;
  const LogTrim too_many{last.metalake, last.number - log_changes_max};
  view.leave_garbage(now_ms, encode_log_trim(too_many), bytes);
}

Result<bool> trim_log(Tenant& tenant, const Garbage& note, const LogTrim& trim) {
  const KeyspaceId keyspace = tenant.id();
  const Bytes note_key = encode(GarbageKey{keyspace, note.due_ms, Model::catalog, note.target});
  const uint64_t first = trim.number - std::min(trim.number, log_step - 1);
  const Bytes begin = encode(CatalogChangeKey{keyspace, trim.metalake, first});
  const Bytes end = encode(CatalogChangeKey{keyspace, trim.metalake, trim.number + 1});
  bool gone = false;
  const auto remove_page = [&](CountedView& view) -> Status {
    gone = true;
    Value noted;
    TRY(view.get(note_key, noted));
    if (!noted.found()) return {};
    std::vector<std::pair<Bytes, size_t>> found;
    TRY(view.scan({.begin = begin, .end = end, .entries_max = trimmed_at_once},
                  [&](ByteView key, ByteView value) {
                    found.emplace_back(key, value.size());
                    return Visit::go_on;
                  }));
    for (const auto& [key, value_bytes] : found) view.remove_found(key, value_bytes);
    gone = found.size() < trimmed_at_once;
    if (gone) view.forget_garbage(note.due_ms, note.target);
    return {};
  };
  const Bytes log = encode(CatalogLogKey{keyspace, trim.metalake});
  TRY(tenant.collect(Model::catalog, Scope::in(keyspace).exclusive(log).exclusive(note_key),
                     remove_page));
  return gone;
}

}  // namespace trellis
