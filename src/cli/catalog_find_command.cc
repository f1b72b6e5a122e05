// `trellis catalog search, log`: where something is, and what happened.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <limits>
#include <memory>

#include "cli/arguments.h"
#include "cli/catalog_command.h"
#include "cli/human.h"
#include "cli/table.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr uint64_t page_found = 1'000;
constexpr uint64_t changes_in_a_page = 1'000;
constexpr uint64_t follow_pause_us = 500'000;

// As other commands take it: the server leaves out the metalake, but of that itself.
std::string path_of(const std::string& metalake, const std::string& type,
                    const std::string& full_name) {
  return type == metalake_kind.name ? full_name : metalake + "." + full_name;
}

// --- search ---

struct CatalogSearchArguments {
  std::string metalake;
  std::string name;
  std::string column;
  std::string tag;
  std::string type;
  std::string limit;
};

Status search_catalog(ClientSession& session, const CatalogSearchArguments& arguments) {
  uint64_t left = std::numeric_limits<uint64_t>::max();
  if (!arguments.limit.empty()) {
    TRY_ASSIGN(left, parse_whole_number(arguments.limit, 1));
  }
  std::string query;
  const std::pair<std::string_view, const std::string*> given[] = {{"name", &arguments.name},
                                                                   {"column", &arguments.column},
                                                                   {"tag", &arguments.tag},
                                                                   {"type", &arguments.type}};
  for (const auto& [name, value] : given)
    if (!value->empty()) query += fmt::format("&{}={}", name, percent_encode(*value));
  if (query.empty()) return wrong_use("it needs a NAME, --column, --tag or --type");
  Table table({{"TYPE"}, {"PATH"}});
  std::string next;
  while (left > 0) {
    std::string target =
        fmt::format("/metalakes/{}/search?limit={}{}", percent_encode(arguments.metalake),
                    std::min(left, page_found), query);
    if (!next.empty()) target += "&pageToken=" + percent_encode(next);
    TRY_ASSIGN(const ApiAnswer answer,
               session.api.ask({.target = catalog_target(session, target)}));
    for (const json::value& value : array_at(answer.object, "metadataObjects")) {
      if (!value.is_object() || left == 0) continue;
      left--;
      const std::string type = text_at(value.get_object(), "type");
      const std::string path =
          path_of(arguments.metalake, type, text_at(value.get_object(), "fullName"));
      if (session.json)
        TRY(print_json(session, {{"path", path}, {"type", type}}));
      else
        table.add({terminal_text(type), terminal_text(path)});
    }
    if (!session.json) TRY(session.out.write(table.take()));
    TRY(session.out.flush());
    const std::string before = std::exchange(next, text_at(answer.object, "nextPageToken"));
    if (next.empty() || next == before) break;
  }
  return {};
}

void add_catalog_search(CLI::App& catalog, ClientCommands& commands) {
  auto arguments = std::make_shared<CatalogSearchArguments>();
  CLI::App* search = commands.add_catalog(
      catalog, "search", "Find what has a name, a column, a tag or a type, anywhere in a metalake",
      [arguments](ClientSession& session) { return search_catalog(session, *arguments); });
  add_argument(*search, "METALAKE", arguments->metalake, "Where to look")
      ->required()
      ->check(check_not_empty);
  add_argument(*search, "NAME", arguments->name,
               "What its name begins with; * is any text, and case does not matter");
  add_text(*search, "--column", arguments->column, "NAME",
           "Columns whose names begin so; with --type table the tables that have one");
  add_text(*search, "--tag", arguments->tag, "NAME", "What has this tag itself");
  add_catalog_type(*search, arguments->type, "Only of this type; alone, all of it", {"column"});
  add_text(*search, "--limit", arguments->limit, "N", "At most so many (default all)")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text, 1); }));
  search->footer(
      "With --json a line for each.\n"
      "Examples:\n"
      "  trellis catalog search lake ord\n"
      "  trellis catalog search lake '*_2026'\n"
      "  trellis catalog search lake --column customer_id --type table");
}

// --- log ---

struct CatalogLogArguments {
  std::string metalake;
  std::string since;
  std::string limit;
  bool follows = false;
};

Status print_change(ClientSession& session, const std::string& metalake, json::object change) {
  const std::string type = text_at(change, "type");
  const std::string path = path_of(metalake, type, text_at(change, "fullName"));
  if (session.json) {
    change["path"] = path;
    return print_json(session, change);
  }
  std::string what = terminal_text(path);
  if (change.contains("fullNameBefore"))
    what =
        terminal_text(path_of(metalake, type, text_at(change, "fullNameBefore"))) + " -> " + what;
  return print_line(
      session,
      fmt::format("{}  {}  {}  {} {} {}", number_at(change, "number").value_or(0),
                  terminal_text(text_at(change, "time")), terminal_text(text_at(change, "user")),
                  terminal_text(text_at(change, "action")), terminal_text(type), what));
}

Status print_log(ClientSession& session, const CatalogLogArguments& arguments) {
  std::string since = arguments.since;  // empty: from the oldest one on
  std::string id;                       // of the metalake, so that another of the name is noticed
  uint64_t left = std::numeric_limits<uint64_t>::max();
  if (!arguments.limit.empty()) {
    TRY_ASSIGN(left, parse_whole_number(arguments.limit, 1));
  }
  while (left > 0) {
    std::string target =
        fmt::format("/metalakes/{}/changes?limit={}", percent_encode(arguments.metalake),
                    std::min(left, changes_in_a_page));
    if (!since.empty()) target += "&since=" + since;
    if (!id.empty()) target += "&metalakeId=" + percent_encode(id);
    TRY_ASSIGN(const ApiAnswer answer,
               session.api.ask({.target = catalog_target(session, target)}));
    id = text_at(answer.object, "metalakeId");
    const json::array& changes = array_at(answer.object, "changes");
    for (const json::value& value : changes) {
      if (!value.is_object() || left == 0) continue;
      left--;
      TRY(print_change(session, arguments.metalake, value.get_object()));
    }
    TRY(session.out.flush());
    since = std::to_string(number_at(answer.object, "last").value_or(0));
    if (!changes.empty()) continue;
    if (!arguments.follows) break;
    session.clock.pause_us(follow_pause_us);
  }
  return {};
}

void add_catalog_log(CLI::App& catalog, ClientCommands& commands) {
  auto arguments = std::make_shared<CatalogLogArguments>();
  CLI::App* log = commands.add_catalog(
      catalog, "log", "Show what was changed in a metalake, by whom, oldest first",
      [arguments](ClientSession& session) { return print_log(session, *arguments); });
  add_argument(*log, "METALAKE", arguments->metalake, "Where")->required()->check(check_not_empty);
  add_text(*log, "--since", arguments->since, "N",
           "Those behind the change with this number (default all that are kept)")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text); }));
  add_text(*log, "--limit", arguments->limit, "N", "At most so many (default all)")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text, 1); }));
  log->add_flag("-f,--follow", arguments->follows, "Then wait for more, until Ctrl-C");
  log->footer(
      "A line for each: number, time, user, action, type and path; with --json an object. The "
      "changes of the last seven days are kept, the last 102,400 at most.\n"
      "Examples:\n"
      "  trellis catalog log lake\n"
      "  trellis catalog log lake --since 1200 --follow --json");
}

}  // namespace

void add_catalog_find_commands(CLI::App& catalog, ClientCommands& commands) {
  add_catalog_search(catalog, commands);
  add_catalog_log(catalog, commands);
}

}  // namespace trellis
