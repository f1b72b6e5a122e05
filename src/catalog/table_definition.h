// A table as a whole: what it says of its columns fits them.
//
// A field of partitioning, sort orders, distribution and indexes names a column, whatever the case
// of its letters; a nested one (["a","b"]) by its first name. Errors: illegal_argument, which names
// the column and what names it.
#pragma once

#include <span>

#include "base/result.h"
#include "catalog.pb.h"
#include "json/json_body.h"

namespace trellis {

// Of a new table, and of one after all updates of an alter: no column is there twice, one at most
// is auto-incremented, none is non-nullable and null by default, every field is a column, and no
// two indexes have one name.
Status check_table(const stored::CatalogTable& table);
// What of that is about one column by itself. Views have columns, too.
Status check_column(const stored::CatalogColumn& column);

// `table` is what updates made of `before`. Fields follow a column that was renamed; one that is
// gone is an error, whatever has its name by now. What partitions carry stays as it is: in identity
// partitioning the names of columns, in identity, list and range partitioning the types, a change
// of which is an error.
Status follow_columns(const stored::CatalogTable& before, stored::CatalogTable& table);

// Whether partitions (their normal forms) may be those of this table: of a kind that it is
// partitioned by, with a value of the column's type for each field. Lengths and precisions of types
// do not matter, null is of every type, and the values of an identity partition may all be texts
// (or null).
Status check_partitions(const stored::CatalogTable& table, std::span<const json::value> partitions);

}  // namespace trellis
