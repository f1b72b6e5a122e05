#include "catalog/catalog_load.h"
#include "support/load_process.h"

int main(int count, char** words) { return trellis::run_load<trellis::CatalogLoad>(count, words); }
