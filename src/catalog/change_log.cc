// What happened in a metalake, in the order in which it did.
#include "catalog/catalog.h"
#include "catalog/counter.h"
#include "codec/stored_message.h"

namespace trellis {
namespace {

constexpr size_t changes_bytes_max = 1024 * 1024;

}  // namespace

Result<std::vector<Catalog::NumberedChange>> Catalog::changes(const CatalogCall& call,
                                                              const std::string& metalake,
                                                              uint64_t since, size_t limit) {
  if (limit == 0 || limit > catalog_list_entries_max)
    return illegal_argument(fmt::format("a limit is 1 to {}", catalog_list_entries_max));
  TRY(call.tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(call.tenant, {CatalogType::metalake, {metalake}}));
  TRY(require(way, IfDisabled::itself_is_fine));
  std::vector<NumberedChange> all;
  if (since == UINT64_MAX) return all;
  const Uuid& id = way.ref().id;
  Status bad;
  const auto take = [&](ByteView key, ByteView value) {
    const auto decoded = decode<CatalogChangeKey>(key);
    NumberedChange& change = all.emplace_back();
    if (decoded) change.number = decoded->number;
    bad = decoded ? decode_message(value, change.change, "change of the catalog")
                  : Status(decoded.error());
    return bad ? Visit::go_on : Visit::stop;
  };
  const Bytes begin = encode(CatalogChangeKey{call.tenant.id(), id, since + 1});
  const Bytes end = prefix_end(encode(CatalogLogKey{call.tenant.id(), id}));
  TRY(call.tenant.map().engine.scan(
      {.begin = begin, .end = end, .entries_max = limit, .bytes_max = changes_bytes_max}, take));
  TRY(bad);
  return all;
}

Result<uint64_t> Catalog::last_change(const CatalogCall& call, const std::string& metalake) {
  TRY(call.tenant.admit(call.caller, Access::read));
  TRY_ASSIGN(const EntityWay way, find_way(call.tenant, {CatalogType::metalake, {metalake}}));
  TRY(require(way, IfDisabled::itself_is_fine));
  Value value;
  TRY(call.tenant.map().engine.get(encode(CatalogLogKey{call.tenant.id(), way.ref().id}), value));
  if (!value.found()) return 0;
  return decode_counter(value.bytes(), "number of the last change");
}

}  // namespace trellis
