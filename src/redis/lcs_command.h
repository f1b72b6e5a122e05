// LCS: the longest common subsequence of two strings.
#pragma once

#include "redis/call.h"

namespace trellis {

Status lcs(Call& call);

}  // namespace trellis
