// Types of columns, as clients write them: "integer", "decimal(10,2)", {"type":"list",...}.
//
// A type has one normal form, which is stored and answered:
//
//   text             boolean byte short integer long (each also "... unsigned") float double
//                    decimal(p,s) date time time(p) timestamp timestamp(p) timestamp_tz
//                    timestamp_tz(p) string char(n) varchar(n) fixed(n) binary uuid
//                    interval_year interval_day null
//   struct           {"type","fields":[{"name","type","nullable","comment"?}]}
//   list, map        {"type","containsNull","elementType"},
//                    {"type","valueContainsNull","keyType","valueType"}
//   union            {"type","types":[...]}
//   external         {"type","catalogString"}
//   anything else    {"type":"unparsed","unparsedType":"..."}: whatever it was, as text
#pragma once

#include <string>

#include "base/result.h"
#include "json/json_body.h"

namespace trellis {

// illegal_argument: numbers beyond their limits, parts of structs, lists, ... that are missing.
Result<json::value> normal_type(const json::value& type);

// Those of the first four lines, for people: "boolean, byte, ..., decimal(n,n), ...".
std::string known_types();

// In one line, for what is compared by types: "list<integer, NOT NULL>". REQUIRES: a normal form.
std::string simple_type(const json::value& type);

// Whether it or a part of it is unparsed. REQUIRES: a normal form.
bool has_unparsed(const json::value& type);

}  // namespace trellis
