#include "cli/cli.h"

int main(int argc, char** argv) { return trellis::run_cli(argc, argv); }
