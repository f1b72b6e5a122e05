// The cases of bench_micro, by group.
#pragma once

#include "measure.h"

namespace trellis {

void get_cases(const Scale& scale, Report& report);
void multi_get_cases(const Scale& scale, Report& report);
void scan_cases(const Scale& scale, Report& report);
void commit_cases(const Scale& scale, Report& report);
void transact_cases(const Scale& scale, Report& report);
void codec_cases(const Scale& scale, Report& report);

}  // namespace trellis
