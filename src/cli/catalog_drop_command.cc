// `trellis catalog drop, undelete`.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/catalog_command.h"
#include "cli/human.h"
#include "cli/remote_files.h"

namespace trellis {
namespace {

struct CatalogDropArguments {
  PathArguments paths;
  std::string type;
  bool force = false;
};

Status drop_one(ClientSession& session, const CatalogDropArguments& arguments,
                const std::string& text) {
  TRY_ASSIGN(CatalogPath path, parse_catalog_path(text, arguments.type));
  if (arguments.type.empty() && path.kind == leaf_kinds) {
    // Which kind it is; if it is none, the server says what that means.
    if (const auto found = ask_entity(session, text, ""); found) path = found->path;
  }
  std::string target = catalog_target(session, entity_rest(path));
  if (arguments.force) target += path.kind == &schema_kind ? "?cascade=true" : "?force=true";
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask({.method = HttpMethod::del, .target = std::move(target)}));
  const auto* dropped = answer.object.if_contains("dropped");
  const bool is_dropped = dropped != nullptr && *dropped == boost::json::value(true);
  if (session.json) return print_json(session, {{"path", text}, {"dropped", is_dropped}});
  return is_dropped ? Status()
                    : print_line(session, fmt::format("{} was not there", terminal_text(text)));
}

void add_catalog_drop(CLI::App& catalog, ClientCommands& commands) {
  auto arguments = std::make_shared<CatalogDropArguments>();
  CLI::App* drop = commands.add_catalog(catalog, "drop",
                                        "Drop something; what is not there is as good as dropped",
                                        [arguments](ClientSession& session) -> Status {
                                          for (const std::string& path : arguments->paths.get())
                                            TRY(drop_one(session, *arguments, path));
                                          return {};
                                        });
  arguments->paths.add(*drop, "PATH", "What to drop");
  add_catalog_type(*drop, arguments->type, "What it is (default whatever has that path)");
  drop->add_flag("--force", arguments->force,
                 "A metalake, catalog or schema with all that is in it, at once however much that "
                 "is, and also one that is in use");
  drop->footer(std::string(catalog_path_help) +
               "Without --force a metalake or catalog must be disabled and empty, a schema empty. "
               "What was dropped can be brought back for a while: `trellis catalog undelete`.\n"
               "Examples:\n"
               "  trellis catalog drop lake.hive.sales.orders\n"
               "  trellis catalog drop lake --force");
}

struct UndeleteArguments {
  PathArguments paths;
  std::string type;
};

Status undelete_entities(ClientSession& session, const UndeleteArguments& arguments) {
  for (const std::string& text : arguments.paths.get()) {
    TRY_ASSIGN(const CatalogFound found,
               ask_entity(session, text, arguments.type, HttpMethod::post, "/undelete"));
    if (session.json)
      TRY(print_json(session,
                     {{"path", text}, {"type", found.path.kind->name}, {"entity", found.entity}}));
  }
  return {};
}

void add_catalog_undelete(CLI::App& catalog, ClientCommands& commands) {
  auto arguments = std::make_shared<UndeleteArguments>();
  CLI::App* undelete = commands.add_catalog(
      catalog, "undelete", "Bring back what was dropped last under a path, with all that was in it",
      [arguments](ClientSession& session) { return undelete_entities(session, *arguments); });
  arguments->paths.add(*undelete, "PATH", "What to bring back; `trellis catalog ls --dropped`");
  add_catalog_type(*undelete, arguments->type, "What it was (default whatever had that path)");
  undelete->footer(std::string(catalog_path_help) +
                   "It works until the garbage collector has come: see `trellis keyspace gc`.\n"
                   "Example: trellis catalog undelete lake.hive.sales.orders");
}

}  // namespace

void add_catalog_drop_commands(CLI::App& catalog, ClientCommands& commands) {
  add_catalog_drop(catalog, commands);
  add_catalog_undelete(catalog, commands);
}

}  // namespace trellis
