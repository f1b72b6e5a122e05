#include <fcntl.h>
#include <unistd.h>

#include "cli/cli.h"

namespace {

// If standard input, output or error is closed, the next file to be opened takes its number, and
// what is printed would go into the store.
void fill_standard_descriptors() {
  int opened = 0;
  do {
    opened = open("/dev/null", O_RDWR);
  } while (opened >= 0 && opened <= STDERR_FILENO);
  if (opened > STDERR_FILENO) close(opened);
}

}  // namespace

int main(int argc, char** argv) {
  fill_standard_descriptors();
  return trellis::run_cli(argc, argv);
}
