// The server: opens the store, runs what listens on it, and closes it when told to stop.
#pragma once

#include <ostream>

#include "base/result.h"
#include "base/settings.h"

namespace trellis {

// Runs until SIGINT, SIGTERM or SIGHUP. Says on `out` what it serves and where; errors say what to
// do.
// REQUIRES: called once, from the only thread of the process.
Status serve(const Settings& settings, std::ostream& out);

}  // namespace trellis
