#include "fs/file_load.h"
#include "support/load_process.h"

int main(int count, char** words) { return trellis::run_load<trellis::FileLoad>(count, words); }
