// Statistics of tables and their partitions: st_ metalake _ ref _ partition* name. Values are any
// JSON without null; names begin with "custom-".
//
// Errors: illegal_argument, illegal_statistic_name, those of catalog.h.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "catalog/change.h"
#include "catalog/record_page.h"
#include "catalog/request_fields.h"

namespace trellis {

// Of the table itself (an empty partition), or of a partition, which need not be there.
struct StatisticValues {
  std::string partition = {};
  std::map<std::string, std::string> values;  // JSON by name
};
struct StatisticNames {
  std::string partition = {};
  std::vector<std::string> names;
};

// {"updates":{name:value}}, {"names":[...]}
Result<StatisticValues> read_statistics(const json::value& request);
Result<StatisticNames> read_statistic_names(const json::value& request);
// {"updates":[{"partitionName","statistics":{name:value}}]},
// {"drops":[{"partitionName","statisticNames":[...]}]}
Result<std::vector<StatisticValues>> read_partition_statistics(const json::value& request);
Result<std::vector<StatisticNames>> read_partition_statistic_names(const json::value& request);

// All of them, or none. One that is there keeps who made it.
Status update_statistics(const CatalogCall& call, const EntityPath& table,
                         const std::vector<StatisticValues>& statistics);
// Whether one of them was there.
Result<bool> drop_statistics(const CatalogCall& call, const EntityPath& table,
                             const std::vector<StatisticNames>& names);

// A page.
using StatisticVisitor = FunctionRef<void(std::string_view partition, std::string_view name,
                                          const stored::CatalogStatistic& statistic)>;
Result<PageStart> list_statistics(const CatalogCall& call, const EntityPath& table,
                                  const PageRequest& page, StatisticVisitor visit);
// Of partitions in an interval of names; empty: without that end.
struct PartitionInterval {
  std::string from = {};
  bool with_from = true;
  std::string to = {};
  bool with_to = false;
};
Result<PageStart> list_partition_statistics(const CatalogCall& call, const EntityPath& table,
                                            const PartitionInterval& interval,
                                            const PageStart& from, StatisticVisitor visit);

}  // namespace trellis
