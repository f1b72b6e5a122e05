#include "cli/catalog_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <iterator>
#include <span>

#include "cli/arguments.h"
#include "cli/human.h"
#include "net/url.h"

namespace trellis {
namespace {

constexpr unsigned no_such_status = 404;

std::vector<const CatalogKind*> all_kinds() {
  std::vector<const CatalogKind*> kinds = {&metalake_kind, &catalog_kind, &schema_kind};
  for (const CatalogKind& kind : leaf_kinds) kinds.push_back(&kind);
  for (const CatalogKind& kind : label_kinds) kinds.push_back(&kind);
  return kinds;
}

const CatalogKind* kind_at(size_t depth) {
  switch (depth) {
    case 1: return &metalake_kind;
    case 2: return &catalog_kind;
    case 3: return &schema_kind;
    case 4: return &leaf_kinds[0];
    default: return nullptr;
  }
}

// The last of `count` has all that is left: names of tags may have dots.
std::vector<std::string> split_names(std::string_view text, size_t count) {
  std::vector<std::string> names;
  while (names.size() + 1 < count) {
    const size_t dot = text.find('.');
    if (dot == std::string_view::npos) break;
    names.emplace_back(text.substr(0, dot));
    text.remove_prefix(dot + 1);
  }
  names.emplace_back(text);
  return names;
}

void add_catalog_whoami(CLI::App& catalog, ClientCommands& commands) {
  CLI::App* whoami = commands.add_catalog(
      catalog, "whoami", "Say as which user the server takes you", [](ClientSession& session) {
        const auto answer = session.api.ask({.target = catalog_target(session, "/authn/me")});
        if (!answer) return Status(answer.error());
        if (session.json) return print_line(session, answer->text);
        return print_line(session, terminal_text(text_at(answer->object, "principal")));
      });
  whoami->footer("Example: trellis catalog whoami --user ann");
}

}  // namespace

const CatalogKind* find_catalog_kind(std::string_view name) {
  for (const CatalogKind* kind : all_kinds())
    if (kind->name == name) return kind;
  return nullptr;
}

CLI::Option* add_catalog_type(CLI::App& command, std::string& type, const std::string& help,
                              std::vector<std::string> others) {
  std::vector<std::string> names;
  for (const CatalogKind* kind : all_kinds()) names.emplace_back(kind->name);
  std::ranges::move(others, std::back_inserter(names));
  return add_text(command, "--type", type, "TYPE",
                  fmt::format("{}: {}", help, fmt::join(names, ", ")))
      ->check([names](const std::string& text) -> std::string {
        if (std::ranges::find(names, text) != names.end()) return "";
        return fmt::format("it is one of {}", fmt::join(names, ", "));
      });
}

std::string CatalogPath::text() const { return fmt::format("{}", fmt::join(names, ".")); }

Result<CatalogPath> parse_catalog_path(const std::string& text, const std::string& type) {
  const CatalogKind* kind = type.empty() ? nullptr : find_catalog_kind(type);
  CatalogPath path{kind, split_names(text, kind == nullptr ? SIZE_MAX : kind->depth)};
  if (kind == nullptr) path.kind = kind_at(path.names.size());
  const auto is_empty = [](const std::string& name) { return name.empty(); };
  if (path.kind == nullptr || std::ranges::any_of(path.names, is_empty))
    return wrong_use(
        fmt::format("{} is no path: it is one to four names joined by dots, such as "
                    "lake.hive.sales.orders",
                    quote(text)));
  const bool is_leaf = path.kind->depth == schema_kind.depth + 1;
  if (path.names.size() != path.kind->depth ||
      (is_leaf && path.names.back().find('.') != std::string::npos))
    return wrong_use(fmt::format("{} is no {}: that has {} names joined by dots", quote(text),
                                 path.kind->name, path.kind->depth));
  return path;
}

std::string catalog_target(const ClientSession& session, std::string_view rest) {
  if (session.keyspace.empty()) return fmt::format("/api{}", rest);
  return fmt::format("/k/{}/api{}", percent_encode(session.keyspace), rest);
}

std::string entities_rest(const CatalogKind& kind, std::span<const std::string> above) {
  constexpr std::string_view words[] = {"metalakes", "catalogs", "schemas"};
  std::string rest;
  for (size_t i = 0; i < above.size(); i++)
    rest += fmt::format("/{}/{}", words[i], percent_encode(above[i]));
  return fmt::format("{}/{}", rest, kind.plural);
}

std::string entity_rest(const CatalogPath& path) {
  const std::span above(path.names.data(), path.names.size() - 1);
  return fmt::format("{}/{}", entities_rest(*path.kind, above), percent_encode(path.names.back()));
}

Result<CatalogFound> ask_entity(ClientSession& session, const std::string& text,
                                const std::string& type, HttpMethod method,
                                std::string_view below) {
  TRY_ASSIGN(CatalogPath path, parse_catalog_path(text, type));
  std::span<const CatalogKind> kinds(path.kind, 1);
  if (type.empty() && path.kind == leaf_kinds) kinds = leaf_kinds;
  for (const CatalogKind& kind : kinds) {
    path.kind = &kind;
    ApiCall call{.method = method,
                 .target = catalog_target(session, entity_rest(path) + std::string(below))};
    if (kinds.size() > 1) call.expected_status = no_such_status;
    TRY_ASSIGN(ApiAnswer answer, session.api.ask(call));
    if (answer.status != no_such_status)
      return CatalogFound{std::move(path), object_at(answer.object, kind.name)};
    if (text_at(answer.object, "type") != kind.no_such)
      return Error{Code::not_found, text_at(answer.object, "message")};
  }
  return Error{Code::not_found,
               fmt::format("there is no table {}, nor anything else of that path", quote(text))};
}

void add_catalog_commands(CLI::App& app, ClientCommands& commands) {
  CLI::App* catalog =
      app.add_subcommand("catalog", "Metalakes, catalogs, schemas, tables, as Gravitino has them");
  catalog->require_subcommand(1);
  add_catalog_look_commands(*catalog, commands);
  add_catalog_change_commands(*catalog, commands);
  add_catalog_drop_commands(*catalog, commands);
  add_catalog_find_commands(*catalog, commands);
  add_catalog_export_command(*catalog, commands);
  add_catalog_import_command(*catalog, commands);
  add_catalog_whoami(*catalog, commands);
  catalog->footer(
      std::string(catalog_path_help) +
      "Examples:\n"
      "  trellis catalog create lake\n"
      "  trellis catalog create lake.hive --provider hive\n"
      "  trellis catalog create lake.hive.sales\n"
      "  trellis catalog create lake.hive.sales.orders --column id:long --column city:string\n"
      "  trellis catalog ls lake.hive.sales\n"
      "  trellis catalog search lake ord");
}

}  // namespace trellis
