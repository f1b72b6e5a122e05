// The command line: `trellis serve` is the server, everything else a tool.
#pragma once

namespace trellis {

// Exit codes: 0 done, 1 it did not work (said on standard error), 2 wrong use.
int run_cli(int argc, char** argv);

}  // namespace trellis
