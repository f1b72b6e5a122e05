#include "cluster_engine/range_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cluster_engine/range_lookup.h"
#include "codec/meta_keys.h"

namespace trellis {
namespace {

constexpr ByteView records_begin{"\x02", 1};
constexpr ByteView records_end{"\x04", 1};

class Auditor {
 public:
  explicit Auditor(ObjectStore& store) : store_(store) {}

  Result<RangeAudit> run() {
    TRY(read_headers());
    check_chain();
    check_unreached();
    for (const auto& [id, header] : headers_) TRY(check_entries(header));
    check_directory();
    return std::move(audit_);
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    audit_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void leftover(fmt::format_string<Args...> format, Args&&... args) {
    audit_.leftovers.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  Status read_headers() {
    std::vector<RangeId> ids;
    const int listed = store_.list("r.", [&](ByteView object) {
      if (const Result<RangeId> id = parse_range_object_name(object); id.has_value())
        ids.push_back(*id);
    });
    TRY(object_status(listed, "the list of range objects"));
    for (const RangeId id : ids) {
      Result<RangeHeader> header = read_header(store_, "audit.read", id);
      if (header.has_value())
        headers_.emplace(id, std::move(*header));
      else if (header.error().code == Code::corrupt)
        problem("{}", header.error().message);
      else if (header.error().code != Code::not_found)
        return Error(header.error());
    }
    return {};
  }

  const RangeHeader* find(RangeId id) const {
    const auto found = headers_.find(id);
    return found == headers_.end() ? nullptr : &found->second;
  }

  void check_chain() {
    Bytes at;
    for (RangeId id = first_range_id;;) {
      const RangeHeader* header = find(id);
      if (header == nullptr) return problem("range {} at {} is missing", id.value, to_hex(at));
      if (header->start != at)
        return problem("{} does not begin where the one before ends, {}", to_string(*header),
                       to_hex(at));
      if (header->state == RangeState::gone || header->state == RangeState::building)
        return problem("{} is a part of the map", to_string(*header));
      if (header->state != RangeState::live) leftover("{}", to_string(*header));
      chain_.push_back(header);
      ++audit_.ranges;
      at = header->end;
      if (at == map_key_max) break;
      id = header->right;
    }
    if (chain_.back()->right.value != 0) problem("{} has a neighbour", to_string(*chain_.back()));
  }

  void check_unreached() {
    for (const auto& [id, header] : headers_) {
      if (std::ranges::find(chain_, &header) != chain_.end()) continue;
      if (header.state == RangeState::gone || header.state == RangeState::building) {
        leftover("{}", to_string(header));
        continue;
      }
      // The copy of a split before it is committed, the source of a merge after it is.
      const bool awaited = std::ranges::any_of(chain_, [&](const RangeHeader* reached) {
        return reached->state != RangeState::live && reached->other == id;
      });
      if (awaited)
        leftover("{}", to_string(header));
      else
        problem("{} is not reached from the first range", to_string(header));
    }
  }

  Status check_entries(const RangeHeader& header) {
    size_t outside = 0;
    const Bytes object = range_object_name(header.id);
    for (const EntryKind kind : {EntryKind::payload, EntryKind::version, EntryKind::intent}) {
      OmapPageRequest request{.prefix = entry_key(kind, {})};
      for (bool more = true; more;) {
        ReadAnswer answer;
        TRY(object_status(store_.read("audit.read", object, {.omap_pages = {request}}, answer),
                          object));
        for (auto& [key, value] : answer.pages[0].entries) {
          const ByteView address = ByteView(key).substr(1);
          if (!header.holds(address)) ++outside;
          if (kind == EntryKind::payload && header.holds(address) && header.may_read() &&
              records_begin <= address && address < records_end && is_reached(header))
            records_.emplace(address, value);
        }
        more = answer.pages[0].more;
        if (more) request.start_after = answer.pages[0].entries.back().first;
      }
    }
    const bool allowed = header.state == RangeState::halved || header.state == RangeState::merge ||
                         header.state == RangeState::unmerge;
    if (outside != 0 && allowed) leftover("{} holds {} more entries", to_string(header), outside);
    if (outside != 0 && !allowed)
      problem("{} holds {} entries of other ranges", to_string(header), outside);
    return {};
  }

  bool is_reached(const RangeHeader& header) const {
    return std::ranges::find(chain_, &header) != chain_.end();
  }

  void check_directory() {
    for (const auto& [key, stored] : records_) {
      const Result<ByteView> value = decode_payload(stored);
      const Result<RangeDescriptor> range =
          value.has_value() ? decode_descriptor(*value) : Result<RangeDescriptor>(value.error());
      if (!range.has_value()) {
        problem("the record {} of the directory: {}", to_hex(key), range.error().message);
        continue;
      }
      const RangeHeader* header = find(range->id);
      if (header != nullptr && range->generation > header->generation)
        problem("the record {} of the directory is of {}, and the object is {}", to_hex(key),
                to_string(*range), to_string(*header));
    }
    std::set<Bytes> expected;
    for (const RangeHeader* header : chain_) {
      const Result<std::vector<Bytes>> keys = directory_keys(to_descriptor(*header));
      if (!keys.has_value()) {
        problem("{}", keys.error().message);
        continue;
      }
      for (const Bytes& key : *keys) {
        expected.insert(key);
        check_record(key, *header);
      }
    }
    for (const auto& [key, stored] : records_)
      if (!expected.contains(key))
        leftover("the directory has a record {} of no range", to_hex(key));
  }

  void check_record(const Bytes& key, const RangeHeader& header) {
    const auto found = records_.find(key);
    if (found == records_.end())
      return leftover("the directory does not have {}", to_string(header));
    const Result<ByteView> value = decode_payload(found->second);
    const Result<RangeDescriptor> range =
        value.has_value() ? decode_descriptor(*value) : Result<RangeDescriptor>(value.error());
    if (range.has_value() && (range->id != header.id || range->start != header.start))
      leftover("the directory has {} for {}", to_string(*range), to_string(header));
  }

  ObjectStore& store_;
  RangeAudit audit_;
  std::map<RangeId, RangeHeader> headers_;
  std::vector<const RangeHeader*> chain_;
  std::map<Bytes, Bytes> records_;
};

}  // namespace

Result<RangeAudit> audit_ranges(ObjectStore& store) { return Auditor(store).run(); }

}  // namespace trellis
