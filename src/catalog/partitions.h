// Partitions of tables, by name: pt_ table _ name. Normal forms as in table_parts.h.
//
// Errors: no_such_partition, partition_exists, those of catalog.h; illegal_argument for a table
// that is not partitioned so (table_definition.h).
#pragma once

#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "catalog/catalog.h"
#include "catalog/record_page.h"
#include "catalog/request_fields.h"

namespace trellis {

// {"partitions":[exactly one]}: its normal form.
Result<json::value> read_partition(const json::value& request);

Status add_partition(const CatalogCall& call, const EntityPath& table,
                     const json::value& partition);
// The "assignments" of a new table's partitioning are its first partitions: they are taken out of
// `table`, and made in the transaction that makes it.
Result<CatalogExtra> with_assignments(stored::CatalogTable& table, CatalogExtra extra);
// The JSON that is answered.
Result<std::string> load_partition(const CatalogCall& call, const EntityPath& table,
                                   const std::string& name);
// A page, in the order of their names (bytes). What is visited dies when the visitor returns.
using PartitionVisitor = FunctionRef<void(std::string_view name, std::string_view json)>;
Result<PageStart> list_partitions(const CatalogCall& call, const EntityPath& table,
                                  const PageRequest& page, PartitionVisitor visit);
// False: it is not there. Its statistics stay, as Gravitino's do.
Result<bool> drop_partition(const CatalogCall& call, const EntityPath& table,
                            const std::string& name);

}  // namespace trellis
