#include "cluster_engine/cluster_home.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>

#include "cluster_engine/range_lookup.h"
#include "cluster_engine/range_patience.h"
#include "codec/address.h"

namespace trellis {
namespace {

constexpr std::string_view id_object = "ids.range";
constexpr std::string_view id_key = "n";  // the last id that was given, decimal
constexpr unsigned settle_waits_max = 10'000;

}  // namespace

Result<RangeId> RangeIdCounter::next() {
  while (true) {
    ReadAnswer answer;
    const int read = store_.read("id.read", id_object, {.omap_keys = {Bytes(id_key)}}, answer);
    if (read == -ENOENT) {
      const int made =
          store_.write("id.create", id_object,
                       {.create_exclusively = true,
                        .changes = {OmapSet{Bytes(id_key), std::to_string(first_range_id.value)}}});
      if (made < 0 && made != -EEXIST) return object_status(made, id_object).error();
      continue;
    }
    if (read < 0) return object_status(read, id_object).error();
    const Bytes last = answer.omap[Bytes(id_key)];
    RangeId id;
    const auto [end, bad] = std::from_chars(last.data(), last.data() + last.size(), id.value);
    if (bad != std::errc() || end != last.data() + last.size())
      return Error{Code::corrupt, fmt::format("object {}: {} is no id; set it to one above that of "
                                              "every range object",
                                              id_object, quote(last))};
    ++id.value;
    const int written =
        store_.write("id.next", id_object,
                     {.guards = {OmapIs{Bytes(id_key), Compare::equal, last}},
                      .changes = {OmapSet{Bytes(id_key), std::to_string(id.value)}}});
    if (written >= 0) return id;
    if (written != -ECANCELED) return object_status(written, id_object).error();
  }
}

Result<RangeDescriptor> ClusterHome::find(ByteView address) {
  TRY_ASSIGN(const RangeHeader header, find_range(store_, address));
  return to_descriptor(header);
}

Status ClusterHome::for_each(FunctionRef<Visit(const RangeDescriptor&)> visit) {
  return for_each_range(store_,
                        [&](const RangeHeader& range) { return visit(to_descriptor(range)); });
}

Result<RangeHeader> ClusterHome::settled(const RangeDescriptor& known) {
  Patience patience(clock_, options_.patience_us);
  for (unsigned waits = 0; waits < settle_waits_max; ++waits) {
    TRY_ASSIGN(RangeHeader header, read_header(store_, "home.read", known.id));
    if (header.start != known.start || header.end != known.end || header.state == RangeState::gone)
      return Error{Code::conflict,
                   fmt::format("{} is {} now: find it again", to_string(known), to_string(header))};
    if (header.state == RangeState::live) return header;
    TRY(wait_or_settle(store_, header, patience));
  }
  return Error{Code::conflict, to_string(known) + " keeps changing: try again later"};
}

Result<std::pair<RangeDescriptor, RangeDescriptor>> ClusterHome::split(
    const SplitRequest& request) {
  TRY_ASSIGN(const RangeHeader range, settled(request.range));
  RangeDescriptor right = to_descriptor(range);
  right.start = request.at;
  if (request.at <= range.start || request.at >= range.end)
    return Error{Code::invalid, fmt::format("{} does not hold {} inside: nothing to split",
                                            to_string(request.range), to_hex(request.at))};
  TRY(directory_keys(right));  // says where no range may begin
  TRY_ASSIGN(const RangeId id, new_id_());
  TRY(split_range(store_, range, request.at, id, request.sticky_until_ms, options_));
  TRY_ASSIGN(const RangeDescriptor low, find(range.start));
  TRY_ASSIGN(const RangeDescriptor high, find(request.at));
  if (changed_)
    changed_(
        {.action = "split", .reason = std::string(request.reason), .left = low, .right = high});
  return std::pair(low, high);
}

Result<RangeDescriptor> ClusterHome::merge(const RangeDescriptor& left,
                                           const RangeDescriptor& right, std::string_view reason) {
  TRY_ASSIGN(const RangeHeader low, settled(left));
  TRY_ASSIGN(const RangeHeader high, settled(right));
  if (low.end != high.start || low.right != high.id)
    return Error{Code::conflict, fmt::format("{} and {} are not neighbours: find them again",
                                             to_string(left), to_string(right))};
  TRY(merge_ranges(store_, low, high, options_));
  TRY_ASSIGN(RangeDescriptor merged, find(low.start));
  if (changed_)
    changed_({.action = "merge", .reason = std::string(reason), .left = merged, .right = right});
  return merged;
}

Status ClusterHome::walk(const RangeDescriptor& range, ScanVisitor visit,
                         FunctionRef<Visit()> between) {
  Patience patience(clock_, options_.patience_us);
  Bytes at = range.start;
  bool first = true;  // `at` itself is still to be visited
  while (at < range.end) {
    if (between() == Visit::stop) return {};
    TRY_ASSIGN(const RangeHeader holder, find_range(store_, at));
    if (!holder.may_read()) {
      TRY(wait_or_settle(store_, holder, patience));
      continue;
    }
    const Bytes from = entry_key(EntryKind::payload, at);
    ReadOperation operation{.guards = {generation_is(holder)},
                            .omap_pages = {{.start_after = from,
                                            .prefix = entry_key(EntryKind::payload, {}),
                                            .entries_max = options_.page_entries}}};
    if (first) operation.omap_keys.push_back(from);
    ReadAnswer answer;
    const int read = store_.read("home.walk", range_object_name(holder.id), operation, answer);
    if (read == -ECANCELED || read == -ENOENT) continue;
    TRY(object_status(read, range_object_name(holder.id)));
    std::vector<std::pair<Bytes, Bytes>> entries(answer.omap.begin(), answer.omap.end());
    for (auto& entry : answer.pages[0].entries) entries.push_back(std::move(entry));
    const ByteView end = std::min<ByteView>(holder.end, range.end);
    first = !answer.pages[0].more;
    at = first ? Bytes(end) : entries.back().first.substr(1);
    for (const auto& [key, stored] : entries) {
      const ByteView address = ByteView(key).substr(1);
      if (address >= end) break;
      Bytes plain;
      TRY(append_key_at(plain, address));
      TRY_ASSIGN(const ByteView value, decode_payload(stored));
      if (visit(plain, value) == Visit::stop) return {};
    }
    if (at >= end) {
      at = end;
      first = true;
    }
  }
  return {};
}

}  // namespace trellis
