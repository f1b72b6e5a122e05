// CockroachDB's own table data. Not part of our map; range-local and meta keys made by CockroachDB
// carry such keys inside, and `trellis key decode` explains them.
//
//   | table uvarint | index and column values |     /Table/42/1/"a"
//   | fe | tenant uvarint | table key |              /Tenant/5/Table/42
#pragma once

#include "codec/field_codecs.h"

namespace trellis {

// Ordered SQL values. Integers, bytes and NULL are shown, anything after another type in hex.
struct TableValues : Remaining {
  static constexpr std::string_view form = "ordered values";
  static void append_pretty(std::string& out, ByteView values);
};

// | table uvarint | values |
struct CrdbTableKey {
  uint64_t table;
  ByteView values;
  static constexpr std::string_view kind = "crdb.table";
  static constexpr auto layout() {
    return record(field<OrderedUvarint>("table", &CrdbTableKey::table, "table id", "/Table"),
                  field<TableValues>("values", &CrdbTableKey::values,
                                     "index id and column values, ordered encoding"));
  }
};

// | fe | tenant uvarint |
struct CrdbTenantPrefix {
  uint64_t tenant;
  static constexpr std::string_view kind = "crdb.tenant";
  static constexpr auto layout() {
    return record(literal("area", "\xfe", "tenants of CockroachDB", "/Tenant"),
                  field<OrderedUvarint>("tenant", &CrdbTenantPrefix::tenant, "tenant id"));
  }
};

// | fe | tenant uvarint | table uvarint | values |
struct CrdbTenantTableKey {
  CrdbTenantPrefix prefix;
  CrdbTableKey table;
  static constexpr std::string_view kind = "crdb.tenant_table";
  static constexpr auto layout() {
    return record(nested(&CrdbTenantTableKey::prefix), nested(&CrdbTenantTableKey::table));
  }
};

}  // namespace trellis
