// Updates that only tables have (updates.h).
#pragma once

#include <optional>
#include <string_view>

#include "catalog/updates.h"

namespace trellis {

struct TableStep {
  CatalogUpdates::Step step;
  bool of_columns = false;
};
// Nothing: it is no such update.
Result<std::optional<TableStep>> read_table_update(std::string_view kind, RequestFields& fields);

}  // namespace trellis
