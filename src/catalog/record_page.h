// Lists of what belongs to one entity, a page at a time, so that nobody holds all of it in memory.
//
//   PageStart from;
//   do {
//     TRY_ASSIGN(from, list_partitions(call, table, {from}, visit));
//   } while (from);
#pragma once

#include <optional>
#include <string>

#include "base/function_ref.h"
#include "catalog/catalog_error.h"
#include "tenant/tenant.h"

namespace trellis {

// Where a page begins, as the page before it said. Absent: at the start; behind the last page: that
// was all.
using PageStart = std::optional<Bytes>;
using RecordVisitor = FunctionRef<Status(ByteView key, ByteView value)>;

inline constexpr size_t record_page_entries = 1'000;
inline constexpr size_t record_page_bytes = 1024 * 1024;  // more if the first one has

struct PageRequest {
  PageStart from = {};
  std::string prefix = {};  // of names, where a list is in the order of names
  size_t entries_max = record_page_entries;
};

// A page of the records in [begin, end). A start that is not in there is of another list, perhaps
// of something else that had the same name: illegal_argument.
inline Result<PageStart> read_record_page(Tenant& tenant, ByteView begin, ByteView end,
                                          const PageRequest& page, RecordVisitor visit) {
  const PageStart& from = page.from;
  if (from && *from == end) return PageStart();
  if (from && (*from < begin || *from > end))
    return illegal_argument("the page token is none that this list gave");
  Status bad;
  const ScanRequest request{.begin = from ? ByteView(*from) : begin,
                            .end = end,
                            .entries_max = page.entries_max,
                            .bytes_max = record_page_bytes};
  TRY_ASSIGN(ScanPage read, tenant.map().engine.scan(request, [&](ByteView key, ByteView value) {
    bad = visit(key, value);
    return bad ? Visit::go_on : Visit::stop;
  }));
  TRY(bad);
  return std::move(read.resume);
}

}  // namespace trellis
