// Partitions of tables, by name: pt_ table _ name. Normal forms as in table_parts.h.
//
// Errors: no_such_partition, partition_exists, those of catalog.h; illegal_argument for a table
// that is not partitioned.
#pragma once

#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "catalog/change.h"
#include "catalog/request_fields.h"

namespace trellis {

// {"partitions":[exactly one]}: its normal form.
Result<json::value> read_partition(const json::value& request);

Status add_partition(const CatalogCall& call, const EntityPath& table,
                     const json::value& partition);
// The JSON that is answered.
Result<std::string> load_partition(const CatalogCall& call, const EntityPath& table,
                                   const std::string& name);
// In the order of their names (bytes). What is visited dies when the visitor returns.
using PartitionVisitor = FunctionRef<Visit(std::string_view name, std::string_view json)>;
Status list_partitions(const CatalogCall& call, const EntityPath& table, PartitionVisitor visit);
// False: it is not there. Its statistics stay, as Gravitino's do.
Result<bool> drop_partition(const CatalogCall& call, const EntityPath& table,
                            const std::string& name);

}  // namespace trellis
