// What a check of files says while it goes on, as lines of JSON: over HTTP, and to the command that
// checks without a server.
//
//   {"phase":"inodes","bytes_done":5,"bytes_total":9}
//   {"kind":"links_wrong","inode":7,"directory":0,"what":"...","repaired":true,"name":"..."}
//   {"done":true,"clean":false,"inodes":3, ...
//   ,"findings":{"links_wrong":{"found":1,"repaired":1}}}
//   {"error":"..."}
#pragma once

#include "base/bytes.h"
#include "base/job_control.h"
#include "fs/fsck.h"

namespace trellis {

Bytes fsck_progress_line(const JobControl::Progress& progress);
Bytes fsck_finding_line(const FsckFinding& finding);
Bytes fsck_end_line(const Result<FsckReport>& report);

}  // namespace trellis
