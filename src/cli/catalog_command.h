// `trellis catalog ...`: metalakes, catalogs, schemas, tables and what else stands in schemas.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/client_command.h"

namespace trellis {

void add_catalog_commands(CLI::App& app, ClientCommands& commands);

// Parts of it, in their own files.
void add_catalog_look_commands(CLI::App& catalog, ClientCommands& commands);    // ls, show
void add_catalog_find_commands(CLI::App& catalog, ClientCommands& commands);    // search, log
void add_catalog_change_commands(CLI::App& catalog, ClientCommands& commands);  // create, alter
void add_catalog_drop_commands(CLI::App& catalog, ClientCommands& commands);    // drop, undelete
void add_catalog_export_command(CLI::App& catalog, ClientCommands& commands);
void add_catalog_import_command(CLI::App& catalog, ClientCommands& commands);

struct CatalogKind {
  std::string_view name;     // "table"
  std::string_view plural;   // "tables", as paths and answers have it
  std::string_view no_such;  // what errors call one that is not there
  size_t depth;              // names in its path
};
inline constexpr CatalogKind metalake_kind{"metalake", "metalakes", "NoSuchMetalakeException", 1};
inline constexpr CatalogKind catalog_kind{"catalog", "catalogs", "NoSuchCatalogException", 2};
inline constexpr CatalogKind schema_kind{"schema", "schemas", "NoSuchSchemaException", 3};
// What stands in a schema, the usual first.
inline constexpr CatalogKind leaf_kinds[] = {
    {"table", "tables", "NoSuchTableException", 4},
    {"fileset", "filesets", "NoSuchFilesetException", 4},
    {"topic", "topics", "NoSuchTopicException", 4},
    {"model", "models", "NoSuchModelException", 4},
    {"view", "views", "NoSuchViewException", 4},
    {"function", "functions", "NoSuchFunctionException", 4},
};
// What stands in a metalake beside catalogs.
inline constexpr CatalogKind label_kinds[] = {
    {"tag", "tags", "NoSuchTagException", 2},
    {"policy", "policies", "NoSuchPolicyException", 2},
};

const CatalogKind* find_catalog_kind(std::string_view name);
// --type, one of the names above, or of others that have no paths of their own.
CLI::Option* add_catalog_type(CLI::App& command, std::string& type, const std::string& help,
                              std::vector<std::string> others = {});

struct CatalogPath {
  const CatalogKind* kind = nullptr;
  std::vector<std::string> names;

  std::string text() const;  // joined by dots
};
// "lake.hive.sales.orders": by its depth a metalake, catalog, schema or table, or what `type` says.
Result<CatalogPath> parse_catalog_path(const std::string& text, const std::string& type);

// "/api" + rest, in the keyspace of the session.
std::string catalog_target(const ClientSession& session, std::string_view rest);
// "/metalakes/lake/catalogs/hive", below that.
std::string entity_rest(const CatalogPath& path);
// Where all of a kind stand that have these names above them: "/metalakes/lake/catalogs".
std::string entities_rest(const CatalogKind& kind, std::span<const std::string> above);

// One that is there: {"name":...}.
struct CatalogFound {
  CatalogPath path;
  boost::json::object entity;
};
// Asks for what a path names, or for something of it: "/undelete". Without a type, four names are
// those of the first kind in leaf_kinds that has them.
Result<CatalogFound> ask_entity(ClientSession& session, const std::string& text,
                                const std::string& type, HttpMethod method = HttpMethod::get,
                                std::string_view below = {});

inline constexpr std::string_view catalog_path_help =
    "A path is metalake.catalog.schema.table; what else stands in a schema has its --type, and so "
    "have tags and policies, which are metalake.tag.\n";

}  // namespace trellis
