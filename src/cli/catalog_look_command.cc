// `trellis catalog ls, show`: what there is.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <limits>
#include <memory>
#include <span>

#include "cli/arguments.h"
#include "cli/catalog_command.h"
#include "cli/human.h"
#include "cli/remote_files.h"
#include "cli/table.h"
#include "json/json_text.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr uint64_t page_names = 10'000;
constexpr uint64_t page_entities = 250;

// --- ls ---

struct CatalogLsArguments {
  std::string path;
  std::string type;
  std::string prefix;
  std::string limit;
  bool is_long = false;
  bool is_dropped = false;
};

// Of a member that is text, as a terminal shows it.
std::string shown_at(const json::object& object, std::string_view name) {
  return terminal_text(text_at(object, name));
}

// Lists all of one kind in one place, page by page.
class CatalogListing {
 public:
  CatalogListing(ClientSession& session, const CatalogLsArguments& arguments)
      : session_(session),
        arguments_(arguments),
        table_(arguments.is_dropped
                   ? Table({{"DROPPED"}, {"BY"}, {"TYPE"}, {"NAME"}})
                   : Table({{"TYPE"}, {"MODIFIED (UTC)"}, {"BY"}, {"NAME"}, {"COMMENT"}})) {}

  Status begin() {
    if (arguments_.limit.empty()) return {};
    TRY_ASSIGN(left_, parse_whole_number(arguments_.limit, 1));
    return {};
  }

  Status list(const CatalogKind& kind, std::span<const std::string> above) {
    above_ = fmt::format("{}{}", fmt::join(above, "."), above.empty() ? "" : ".");
    const std::string rest = entities_rest(kind, above);
    if (arguments_.is_dropped) return list_dropped(kind, rest);
    std::string next;
    while (left_ > 0) {
      std::string target = fmt::format("{}?limit={}{}", rest, std::min(left_, page()),
                                       arguments_.is_long ? "&details=true" : "");
      if (!arguments_.prefix.empty()) target += "&prefix=" + percent_encode(arguments_.prefix);
      if (!next.empty()) target += "&pageToken=" + percent_encode(next);
      TRY_ASSIGN(const ApiAnswer answer,
                 session_.api.ask({.target = catalog_target(session_, target)}));
      // Metalakes are always listed in full.
      const json::array& entities = array_at(answer.object, kind.plural);
      for (const json::value& value :
           entities.empty() ? array_at(answer.object, "identifiers") : entities)
        if (value.is_object()) TRY(add(kind, value.get_object()));
      for (const json::value& name : array_at(answer.object, "names"))  // of tags and policies
        TRY(add(kind, {{"name", name}}));
      TRY(flush());
      const std::string before = std::exchange(next, text_at(answer.object, "nextPageToken"));
      if (next.empty() || next == before) break;
    }
    return {};
  }

  Status finish() {
    const bool has_table = !session_.json && (arguments_.is_long || arguments_.is_dropped);
    return has_table ? session_.out.write(table_.take()) : Status();
  }

 private:
  uint64_t page() const { return arguments_.is_long ? page_entities : page_names; }

  Status add(const CatalogKind& kind, const json::object& entity) {
    if (left_ == 0) return {};
    left_--;
    const std::string name = text_at(entity, "name");
    if (session_.json) {
      json::object line{{"path", above_ + name}, {"type", kind.name}};
      if (arguments_.is_long) line["entity"] = entity;
      return print_json(session_, line);
    }
    if (!arguments_.is_long) return print_line(session_, terminal_text(name));
    const json::object& audit = object_at(entity, "audit");
    const bool is_modified = audit.contains("lastModifiedTime");
    std::string time = text_at(audit, is_modified ? "lastModifiedTime" : "createTime");
    table_.add({std::string(kind.name), terminal_text(time.substr(0, 19)),
                shown_at(audit, is_modified ? "lastModifier" : "creator"), terminal_text(name),
                terminal_text(text_at(entity, "comment"))});
    return {};
  }

  Status list_dropped(const CatalogKind& kind, const std::string& rest) {
    TRY_ASSIGN(const ApiAnswer answer,
               session_.api.ask({.target = catalog_target(session_, rest + "?dropped=true")}));
    for (const json::value& value : array_at(answer.object, "dropped")) {
      if (!value.is_object() || left_ == 0) continue;
      const json::object& entity = value.get_object();
      const std::string name = text_at(entity, "name");
      if (!name.starts_with(arguments_.prefix)) continue;
      left_--;
      if (session_.json) {
        json::object line{{"path", above_ + name}, {"type", kind.name}};
        line["dropTime"] = text_at(entity, "dropTime");
        line["dropper"] = text_at(entity, "dropper");
        TRY(print_json(session_, line));
        continue;
      }
      table_.add({shown_at(entity, "dropTime"), shown_at(entity, "dropper"), std::string(kind.name),
                  terminal_text(name)});
    }
    return {};
  }

  Status flush() {
    if (!session_.json && arguments_.is_long) TRY(session_.out.write(table_.take()));
    return session_.out.flush();
  }

  ClientSession& session_;
  const CatalogLsArguments& arguments_;
  Table table_;
  std::string above_;
  uint64_t left_ = std::numeric_limits<uint64_t>::max();
};

Status list_catalog(ClientSession& session, const CatalogLsArguments& arguments) {
  CatalogListing listing(session, arguments);
  TRY(listing.begin());
  std::vector<std::string> above;
  if (!arguments.path.empty()) {
    TRY_ASSIGN(CatalogPath path, parse_catalog_path(arguments.path, ""));
    above = std::move(path.names);
  }
  if (above.size() > schema_kind.depth)
    return wrong_use(
        fmt::format("{} has nothing in it: see `trellis catalog show`", quote(arguments.path)));
  if (!arguments.type.empty()) {
    const CatalogKind& kind = *find_catalog_kind(arguments.type);
    if (kind.depth != above.size() + 1)
      return wrong_use(fmt::format("there is no {} right in {}", kind.name,
                                   above.empty() ? "the server" : quote(arguments.path)));
    TRY(listing.list(kind, above));
  } else if (above.size() == schema_kind.depth) {
    for (const CatalogKind& kind : leaf_kinds) TRY(listing.list(kind, above));
  } else {
    const CatalogKind* const kinds[] = {&metalake_kind, &catalog_kind, &schema_kind};
    TRY(listing.list(*kinds[above.size()], above));
  }
  return listing.finish();
}

void add_catalog_ls(CLI::App& catalog, ClientCommands& commands) {
  auto arguments = std::make_shared<CatalogLsArguments>();
  CLI::App* ls = commands.add_catalog(
      catalog, "ls", "List metalakes, or what stands in one, in a catalog or in a schema",
      [arguments](ClientSession& session) { return list_catalog(session, *arguments); });
  add_argument(*ls, "PATH", arguments->path, "In there (default the metalakes)");
  add_catalog_type(*ls, arguments->type, "Only of this type (default all that stand in a schema)");
  add_text(*ls, "--prefix", arguments->prefix, "NAME", "Only names that begin so");
  add_text(*ls, "--limit", arguments->limit, "N", "At most so many (default all)")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text, 1); }));
  ls->add_flag("-l,--long", arguments->is_long, "With type, time, user and comment");
  ls->add_flag("--dropped", arguments->is_dropped,
               "What was dropped and can be brought back: see `trellis catalog undelete`");
  ls->footer(std::string(catalog_path_help) +
             "With --json a line for each: its path and type, with -l all that is known of it.\n"
             "Examples:\n"
             "  trellis catalog ls\n"
             "  trellis catalog ls -l lake.hive.sales --prefix ord\n"
             "  trellis catalog ls lake --type tag");
}

// --- show ---

struct CatalogShowArguments {
  PathArguments paths;
  std::string type;
};

using EntityLines = std::vector<std::pair<std::string, std::string>>;

// A text as it is, all else as JSON.
std::string shown_value(const json::value& value) {
  if (value.is_string()) return terminal_text(value.get_string());
  Bytes text;
  append_json(text, value, JsonReals::as_java);
  return terminal_text(text);
}

std::string columns_table(const json::array& columns) {
  Table table({{"COLUMN"}, {"TYPE"}, {"NULL"}, {"COMMENT"}});
  for (const json::value& value : columns) {
    if (!value.is_object()) continue;
    const json::object& column = value.get_object();
    const json::value* type = column.if_contains("type");
    const json::value* nullable = column.if_contains("nullable");
    table.add({shown_at(column, "name"), type == nullptr ? "" : shown_value(*type),
               nullable != nullptr && *nullable == json::value(false) ? "no" : "yes",
               shown_at(column, "comment")});
  }
  return table.take();
}

Status print_entity(ClientSession& session, const CatalogFound& found) {
  if (session.json) {
    return print_json(
        session,
        {{"path", found.path.text()}, {"type", found.path.kind->name}, {"entity", found.entity}});
  }
  EntityLines lines = {{"path", terminal_text(found.path.text())},
                       {"type", std::string(found.path.kind->name)}};
  for (const auto& [name, value] : found.entity) {
    if (name == "name" || name == "columns" || name == "properties" || name == "audit") continue;
    if (value.is_array() && value.get_array().empty()) continue;
    const std::string_view shown = name == "type" ? "kind" : std::string_view(name);
    lines.emplace_back(terminal_text(shown), shown_value(value));
  }
  for (const auto& [name, value] : object_at(found.entity, "properties"))
    lines.emplace_back("property " + terminal_text(name), shown_value(value));
  const json::object& audit = object_at(found.entity, "audit");
  lines.emplace_back("created", fmt::format("{} by {}", shown_at(audit, "createTime"),
                                            shown_at(audit, "creator")));
  if (audit.contains("lastModifiedTime"))
    lines.emplace_back("modified", fmt::format("{} by {}", shown_at(audit, "lastModifiedTime"),
                                               shown_at(audit, "lastModifier")));
  TRY(session.out.write(name_value_lines(lines)));
  const json::array& columns = array_at(found.entity, "columns");
  return columns.empty() ? Status() : session.out.write("\n" + columns_table(columns));
}

Status show_entities(ClientSession& session, const CatalogShowArguments& arguments) {
  bool is_first = true;
  for (const std::string& path : arguments.paths.get()) {
    TRY_ASSIGN(const CatalogFound found, ask_entity(session, path, arguments.type));
    if (!std::exchange(is_first, false) && !session.json) TRY(print_line(session, ""));
    TRY(print_entity(session, found));
  }
  return {};
}

void add_catalog_show(CLI::App& catalog, ClientCommands& commands) {
  auto arguments = std::make_shared<CatalogShowArguments>();
  CLI::App* show = commands.add_catalog(
      catalog, "show", "Show what is known of metalakes, catalogs, schemas, tables and others",
      [arguments](ClientSession& session) { return show_entities(session, *arguments); });
  arguments->paths.add(*show, "PATH", "What to show");
  add_catalog_type(*show, arguments->type, "What it is (default whatever has that path)");
  show->footer(std::string(catalog_path_help) +
               "Examples:\n"
               "  trellis catalog show lake.hive.sales.orders\n"
               "  trellis catalog show lake.secret --type tag --json");
}

}  // namespace

void add_catalog_look_commands(CLI::App& catalog, ClientCommands& commands) {
  add_catalog_ls(catalog, commands);
  add_catalog_show(catalog, commands);
}

}  // namespace trellis
