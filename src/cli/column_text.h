// Columns of tables in short: NAME:TYPE[:COMMENT].
//
//   id:long
//   price:decimal(10,2):with tax
//   home:struct<city:string,zips:list<int>>:where
#pragma once

#include <boost/json/value.hpp>
#include <string>

#include "base/result.h"

namespace trellis {

struct ColumnText {
  std::string name;
  boost::json::value type;  // as the API has it
  std::string comment;
};

// A type that the catalog does not know is refused, though the API takes any: here it is a typo.
Result<ColumnText> parse_column(const std::string& text);

}  // namespace trellis
