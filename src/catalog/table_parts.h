// What a table is made of beside its columns, each with one normal form that is stored and
// answered: expressions, partitioning, partitions, distribution, sort orders, indexes.
//
//   expression       {"type":"literal","dataType","value"}        value: text or null
//                    {"type":"field","fieldName":["a","b"]}
//                    {"type":"function","funcName","funcArgs":[...]}
//                    {"type":"unparsed","unparsedExpression"}
//   partitioning     {"strategy":"identity|year|month|day|hour","fieldName"}
//                    {"strategy":"bucket","numBuckets","fieldNames":[[..]]}
//                    {"strategy":"truncate","width","fieldName"}
//                    {"strategy":"list","fieldNames","assignments"}, range with "fieldName"
//                    {"strategy":"function","funcName","funcArgs"}
//   partition        {"type":"identity","name","fieldNames","values","properties"}
//                    {"type":"list","name","lists":[[..]],"properties"}
//                    {"type":"range","name","upper","lower","properties"}
//   distribution     {"strategy":"none|hash|range|even","number","funcArgs"}     -1: automatic
//   sort order       {"sortTerm","direction":"asc|desc","nullOrdering":"nulls_first|nulls_last"}
//   index            {"indexType":"PRIMARY_KEY",...,"name"?,"fieldNames":[[..]],"properties"}
//
// Errors: illegal_argument. Members that are none of these are left out, as Gravitino does.
#pragma once

#include <string_view>

#include "base/result.h"
#include "json/json_body.h"

namespace trellis {

Result<json::value> normal_expression(const json::value& expression);
Result<json::value> normal_partitioning(const json::value& partitioning);
// An identity partition without a name gets that of its values: "day=1/hour=2".
Result<json::value> normal_partition(const json::value& partition);
Result<json::value> normal_distribution(const json::value& distribution);
Result<json::value> normal_sort_order(const json::value& order);
Result<json::value> normal_index(const json::value& index);

// The answer for a table without one.
inline constexpr std::string_view no_distribution_json =
    R"({"strategy":"none","number":0,"funcArgs":[]})";

}  // namespace trellis
