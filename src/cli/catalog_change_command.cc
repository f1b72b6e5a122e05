// `trellis catalog create, alter`.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/arguments.h"
#include "cli/catalog_command.h"
#include "cli/column_text.h"
#include "cli/human.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr size_t definition_bytes_max = 32 * 1024 * 1024;

// The JSON in a file, or on standard input.
Result<json::value> read_definition(ClientSession& session, const std::string& path) {
  Bytes text;
  if (path == "-") {
    TRY_ASSIGN(text, session.in.read_all(definition_bytes_max));
  } else {
    TRY_ASSIGN(const StreamFile file, StreamFile::open_to_read(path));
    StandardInput in(file.descriptor(), path);
    TRY_ASSIGN(text, in.read_all(definition_bytes_max));
  }
  boost::system::error_code failed;
  json::value value = json::parse(text, failed);
  if (failed) return wrong_use(fmt::format("{} is no JSON: {}", quote(path), failed.message()));
  return value;
}

// --- create ---

struct CatalogCreateArguments {
  std::string path;
  std::string type;
  std::string comment;
  CLI::Option* comment_option = nullptr;
  std::vector<std::string> properties;
  std::string provider;
  std::string kind;
  std::string location;
  std::vector<std::string> columns;
  std::string definition;
};

Result<json::object> create_body(ClientSession& session, const CatalogCreateArguments& arguments,
                                 const CatalogPath& path) {
  json::object body;
  if (!arguments.definition.empty()) {
    TRY_ASSIGN(const json::value given, read_definition(session, arguments.definition));
    if (!given.is_object()) return wrong_use("the definition is no JSON object");
    body = given.get_object();
  }
  body["name"] = path.names.back();
  if (arguments.comment_option->count() > 0) body["comment"] = arguments.comment;
  if (!arguments.properties.empty()) {
    json::object properties = object_at(body, "properties");
    for (const std::string& word : arguments.properties) {
      TRY_ASSIGN(const auto assignment, parse_assignment(word));
      properties[assignment.first] = assignment.second;
    }
    body["properties"] = std::move(properties);
  }
  if (!arguments.provider.empty()) body["provider"] = arguments.provider;
  if (!arguments.kind.empty()) body["type"] = arguments.kind;
  if (path.kind == &catalog_kind && !body.contains("type")) body["type"] = "relational";
  if (!arguments.location.empty()) body["storageLocation"] = arguments.location;
  if (!arguments.columns.empty()) {
    json::array columns = array_at(body, "columns");
    for (const std::string& word : arguments.columns) {
      TRY_ASSIGN(const ColumnText column, parse_column(word));
      json::object made{{"name", column.name}, {"type", column.type}};
      if (!column.comment.empty()) made["comment"] = column.comment;
      columns.push_back(std::move(made));
    }
    body["columns"] = std::move(columns);
  }
  return body;
}

// What was made or changed, for programs; people see nothing.
Status print_changed(ClientSession& session, const CatalogPath& path, const json::object& answer) {
  if (!session.json) return {};
  return print_json(session, {{"path", path.text()},
                              {"type", path.kind->name},
                              {"entity", object_at(answer, path.kind->name)}});
}

Status create_entity(ClientSession& session, const CatalogCreateArguments& arguments) {
  TRY_ASSIGN(const CatalogPath path, parse_catalog_path(arguments.path, arguments.type));
  TRY_ASSIGN(const json::object body, create_body(session, arguments, path));
  const std::span above(path.names.data(), path.names.size() - 1);
  TRY_ASSIGN(
      const ApiAnswer answer,
      session.api.ask(json_call(HttpMethod::post,
                                catalog_target(session, entities_rest(*path.kind, above)), body)));
  return print_changed(session, path, answer.object);
}

void add_catalog_create(CLI::App& catalog, ClientCommands& commands) {
  auto arguments = std::make_shared<CatalogCreateArguments>();
  CLI::App* create = commands.add_catalog(
      catalog, "create", "Make a metalake, a catalog, a schema, a table or something else",
      [arguments](ClientSession& session) { return create_entity(session, *arguments); });
  add_argument(*create, "PATH", arguments->path, "What to make; all above it must be there")
      ->required();
  add_catalog_type(*create, arguments->type, "What it is (default by the number of names)");
  arguments->comment_option =
      add_text(*create, "--comment", arguments->comment, "TEXT", "What it is for");
  add_repeated(*create, "--property", arguments->properties, "KEY=VALUE", "Put that into it")
      ->check(checked_by(parse_assignment));
  add_text(*create, "--provider", arguments->provider, "NAME",
           "Of a catalog: hive, lakehouse-iceberg and so on; kept as it is");
  add_text(*create, "--kind", arguments->kind, "KIND",
           "Of a catalog: relational (the default), fileset, messaging or model; of a fileset: "
           "managed (the default) or external");
  add_text(*create, "--location", arguments->location, "URI", "Of a fileset: where its files are");
  add_repeated(*create, "--column", arguments->columns, "NAME:TYPE[:COMMENT]",
               "Of a table: a column, in this order; a type may be struct<NAME:TYPE,...>, "
               "list<TYPE> or map<TYPE,TYPE>, others need --definition")
      ->check(checked_by(parse_column));
  add_text(*create, "--definition", arguments->definition, "FILE",
           "JSON as POST has it, - for standard input; the name is PATH's, and other flags are "
           "put over it");
  create->footer(std::string(catalog_path_help) +
                 "Examples:\n"
                 "  trellis catalog create lake --comment 'all our data'\n"
                 "  trellis catalog create lake.files --kind fileset\n"
                 "  trellis catalog create lake.hive.sales.orders --column id:long --column "
                 "'price:decimal(10,2):with tax'\n"
                 "  trellis catalog create lake.hive.sales.orders --definition orders.json");
}

// --- alter ---

struct CatalogAlterArguments {
  std::string path;
  std::string type;
  std::string new_name;
  std::string new_schema;
  std::string comment;
  CLI::Option* comment_option = nullptr;
  std::vector<std::string> set;
  std::vector<std::string> unset;
  std::vector<std::string> added;
  std::vector<std::string> dropped;
  std::string updates;
  bool enable = false;
  bool disable = false;
};

Status add_column_updates(const CatalogAlterArguments& arguments, json::array& updates) {
  for (const std::string& word : arguments.added) {
    TRY_ASSIGN(const ColumnText column, parse_column(word));
    json::object update{{"@type", "addColumn"},
                        {"fieldName", json::array{column.name}},
                        {"type", column.type},
                        {"nullable", true}};
    if (!column.comment.empty()) update["comment"] = column.comment;
    updates.push_back(std::move(update));
  }
  for (const std::string& name : arguments.dropped)
    updates.push_back(
        {{"@type", "deleteColumn"}, {"fieldName", json::array{name}}, {"ifExists", false}});
  return {};
}

Result<json::array> updates_of(ClientSession& session, const CatalogAlterArguments& arguments) {
  json::array updates;
  if (arguments.comment_option->count() > 0)
    updates.push_back({{"@type", "updateComment"}, {"newComment", arguments.comment}});
  for (const std::string& word : arguments.set) {
    TRY_ASSIGN(const auto assignment, parse_assignment(word));
    updates.push_back(
        {{"@type", "setProperty"}, {"property", assignment.first}, {"value", assignment.second}});
  }
  for (const std::string& name : arguments.unset)
    updates.push_back({{"@type", "removeProperty"}, {"property", name}});
  TRY(add_column_updates(arguments, updates));
  if (!arguments.updates.empty()) {
    TRY_ASSIGN(const json::value given, read_definition(session, arguments.updates));
    if (!given.is_array()) return wrong_use("the updates are no JSON array");
    for (const json::value& update : given.get_array()) updates.push_back(update);
  }
  return updates;
}

Status set_enabled(ClientSession& session, const CatalogAlterArguments& arguments) {
  TRY_ASSIGN(const CatalogPath path, parse_catalog_path(arguments.path, arguments.type));
  TRY_ASSIGN(
      const ApiAnswer answer,
      session.api.ask(json_call(HttpMethod::patch, catalog_target(session, entity_rest(path)),
                                {{"inUse", arguments.enable}})));
  return session.json ? print_line(session, answer.text) : Status();
}

Status alter_entity(ClientSession& session, const CatalogAlterArguments& arguments) {
  TRY_ASSIGN(json::array updates, updates_of(session, arguments));
  if (arguments.enable || arguments.disable) {
    if (!updates.empty() || !arguments.new_name.empty() || !arguments.new_schema.empty())
      return wrong_use("--enable and --disable stand alone");
    return set_enabled(session, arguments);
  }
  TRY_ASSIGN(const CatalogFound found, ask_entity(session, arguments.path, arguments.type));
  CatalogPath path = found.path;
  if (path.kind == &schema_kind && arguments.comment_option->count() > 0)
    return wrong_use(
        "a schema keeps the comment that it was made with, as in Gravitino: of a schema there are "
        "--rename, --set and --unset");
  const std::string target = catalog_target(session, entity_rest(path));
  if (!arguments.new_name.empty()) path.names.back() = arguments.new_name;
  if (!arguments.new_schema.empty()) {
    if (path.names.size() < 4) return wrong_use("only what stands in a schema moves to another");
    path.names[2] = arguments.new_schema;
  }
  if (!arguments.new_name.empty() || !arguments.new_schema.empty()) {
    json::object rename{{"@type", "rename"}, {"newName", path.names.back()}};
    if (!arguments.new_schema.empty()) rename["newSchemaName"] = arguments.new_schema;
    updates.push_back(std::move(rename));
  }
  if (updates.empty()) return wrong_use("nothing to alter: see --help");
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask(json_call(HttpMethod::put, target, {{"updates", updates}})));
  return print_changed(session, path, answer.object);
}

void add_catalog_alter(CLI::App& catalog, ClientCommands& commands) {
  auto arguments = std::make_shared<CatalogAlterArguments>();
  CLI::App* alter = commands.add_catalog(
      catalog, "alter", "Rename, move or change something: all that is asked for, or nothing",
      [arguments](ClientSession& session) { return alter_entity(session, *arguments); });
  add_argument(*alter, "PATH", arguments->path, "What to alter")->required();
  add_catalog_type(*alter, arguments->type, "What it is (default whatever has that path)");
  add_text(*alter, "--rename", arguments->new_name, "NAME", "Its new name, without what is above")
      ->check(check_not_empty);
  add_text(*alter, "--schema", arguments->new_schema, "NAME",
           "Of a table: the schema of the same catalog that it moves to")
      ->check(check_not_empty);
  arguments->comment_option =
      add_text(*alter, "--comment", arguments->comment, "TEXT", "Its comment; not of a schema");
  add_repeated(*alter, "--set", arguments->set, "KEY=VALUE", "Put that into its properties")
      ->check(checked_by(parse_assignment));
  add_repeated(*alter, "--unset", arguments->unset, "KEY", "Take that from its properties");
  add_repeated(*alter, "--add-column", arguments->added, "NAME:TYPE[:COMMENT]",
               "Of a table: a column behind the others")
      ->check(checked_by(parse_column));
  add_repeated(*alter, "--drop-column", arguments->dropped, "NAME", "Of a table: without this");
  add_text(
      *alter, "--updates", arguments->updates, "FILE",
      "JSON array of updates as PUT has them, - for standard input; they come before a rename");
  CLI::Option* enable =
      alter->add_flag("--enable", arguments->enable, "A metalake or catalog: it can be used again");
  alter->add_flag("--disable", arguments->disable, "Likewise: nothing in it can be used")
      ->excludes(enable);
  alter->footer(
      std::string(catalog_path_help) +
      "Examples:\n"
      "  trellis catalog alter lake.hive.sales.orders --rename orders_2025 --comment old\n"
      "  trellis catalog alter lake.hive.sales.orders --add-column vat:double\n"
      "  trellis catalog alter lake.hive --disable");
}

}  // namespace

void add_catalog_change_commands(CLI::App& catalog, ClientCommands& commands) {
  add_catalog_create(catalog, commands);
  add_catalog_alter(catalog, commands);
}

}  // namespace trellis
