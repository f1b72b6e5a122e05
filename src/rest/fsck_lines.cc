#include "rest/fsck_lines.h"

#include <utility>

#include "json/json_text.h"
#include "rest/file_routes.h"

namespace trellis {
namespace {

Bytes line_of(const json::object& object) {
  Bytes line;
  append_json(line, object);
  return line + '\n';
}

}  // namespace

Bytes fsck_progress_line(const JobControl::Progress& progress) {
  return line_of({{"phase", progress.phase},
                  {"bytes_done", progress.bytes_done},
                  {"bytes_total", progress.bytes_total}});
}

Bytes fsck_finding_line(const FsckFinding& finding) {
  json::object line{{"kind", to_string(finding.kind)},
                    {"inode", finding.inode.value},
                    {"directory", finding.directory.value},
                    {"what", finding.what},
                    {"repaired", finding.repaired}};
  if (!finding.name.empty()) add_text_or_base64(line, "name", finding.name);
  return line_of(line);
}

Bytes fsck_end_line(const Result<FsckReport>& report) {
  if (!report) return line_of({{"error", to_string(report.error())}});
  json::object kinds;
  for (size_t i = 0; i < fsck_kinds; i++)
    if (report->found[i] != 0)
      kinds[to_string(static_cast<FsckKind>(i))] =
          json::object{{"found", report->found[i]}, {"repaired", report->repaired[i]}};
  return line_of({{"done", true},
                  {"clean", report->clean()},
                  {"inodes", report->inodes},
                  {"directories", report->directories},
                  {"entries", report->entries},
                  {"blocks", report->blocks},
                  {"findings", std::move(kinds)}});
}

}  // namespace trellis
