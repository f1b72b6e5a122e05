// What providers of catalogs make of the names of schemas, tables and columns in them, as Gravitino
// has it. Names of other things are the same everywhere.
//
//   jdbc-mysql, jdbc-postgresql   may have '$' and letters of any script
//   hive                          in lower case
//   glue                          schemas and tables in lower case
#pragma once

#include <string>
#include <string_view>

#include "catalog/entity.h"
#include "catalog/request_fields.h"

namespace trellis {

struct ProviderRules {
  NamePattern pattern = NamePattern::plain;
  bool lowers = false;
  bool lowers_columns = false;
};
ProviderRules provider_rules(std::string_view provider);

// Whether a provider may make another name of it, or allow it where others do not. Few names are
// so: for all others nobody has to look what the provider is.
bool is_odd_name(std::string_view name);
// The same of all names in a path, or in a request that makes or alters something, that rules are
// about.
bool has_odd_names(const EntityPath& path);
bool has_odd_names(CatalogType type, json::value& request);  // which stays as it is

// In lower case where the rules say so.
void apply_rules(const ProviderRules& rules, EntityPath& path);
void apply_rules(const ProviderRules& rules, CatalogType type, json::value& request);

}  // namespace trellis
