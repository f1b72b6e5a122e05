// What happened in a metalake, in the order in which it did.
#include <algorithm>

#include "catalog/catalog.h"
#include "catalog/counter.h"
#include "catalog/log_trim.h"
#include "catalog/record_page.h"
#include "codec/stored_message.h"

namespace trellis {
namespace {

Result<Catalog::LastChange> read_log(const CatalogCall& call, const std::string& metalake) {
  TRY(call.tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(call.tenant, {CatalogType::metalake, {metalake}}));
  TRY(require(way, IfDisabled::itself_is_fine));
  Catalog::LastChange log{way.ref().id};
  Value value;
  TRY(call.tenant.map().engine.get(encode(CatalogLogKey{call.tenant.id(), log.metalake}), value));
  if (!value.found()) return log;
  TRY_ASSIGN(log.number, decode_counter(value.bytes(), "number of the last change"));
  return log;
}

}  // namespace

Result<std::vector<Catalog::NumberedChange>> Catalog::changes(const CatalogCall& call,
                                                              const std::string& metalake,
                                                              std::optional<uint64_t> since,
                                                              size_t limit) {
  if (limit == 0 || limit > catalog_list_entries_max)
    return illegal_argument(fmt::format("a limit is 1 to {}", catalog_list_entries_max));
  // Before they are read, so that it is none that came later.
  TRY_ASSIGN(const LastChange log, read_log(call, metalake));
  if (since && *since > log.number)
    return Error{Code::not_found,
                 fmt::format("There were only {} changes: {} is another metalake than the one that "
                             "you know, or was restored. Load what you need anew, then go on with "
                             "since={}",
                             log.number, metalake, log.number),
                 "compacted"};
  std::vector<NumberedChange> all;
  // What goes by number is not looked for: its records may still be in the way.
  const uint64_t kept_max = log_changes_max + log_step;
  const uint64_t passed = std::max(since.value_or(0), log.number - std::min(log.number, kept_max));
  const auto take = [&](ByteView key, ByteView value) -> Status {
    TRY_ASSIGN(const auto decoded, decode<CatalogChangeKey>(key));
    // Numbers have no gaps: what is missing was removed, and what is before it is about to be.
    if (!all.empty() && decoded.number != all.back().number + 1) all.clear();
    NumberedChange& change = all.emplace_back();
    change.number = decoded.number;
    return decode_message(value, change.change, "change of the catalog");
  };
  const Bytes begin = encode(CatalogChangeKey{call.tenant.id(), log.metalake, passed + 1});
  const Bytes end = prefix_end(encode(CatalogLogKey{call.tenant.id(), log.metalake}));
  TRY(read_record_page(call.tenant, begin, end, {.entries_max = limit}, take));
  const uint64_t oldest = all.empty() ? log.number + 1 : all.front().number;
  if (since && *since + 1 < oldest)
    return Error{Code::not_found,
                 fmt::format("Changes up to {} are not kept any more: load what you need anew, "
                             "then go on with since={}",
                             oldest - 1, log.number),
                 "compacted"};
  return all;
}

Result<Catalog::LastChange> Catalog::last_change(const CatalogCall& call,
                                                 const std::string& metalake) {
  return read_log(call, metalake);
}

}  // namespace trellis
