// `trellis raw scan`: keys and values in order.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <limits>
#include <memory>

#include "cli/arguments.h"
#include "cli/bytes_json.h"
#include "cli/human.h"
#include "cli/raw_command.h"
#include "cli/table.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr uint64_t page_entries = 500;
constexpr size_t value_columns_max = 60;

struct ScanArguments {
  std::string prefix;
  std::string begin;
  std::string end;
  std::string limit;
  bool reverse = false;
  bool keys_only = false;
  bool escaped = false;
};

// All of the query but the limit and the cursor.
Result<std::string> scan_query(const ScanArguments& arguments) {
  std::string query;
  for (const auto& [name, text] : {std::pair("prefix", &arguments.prefix),
                                   {"begin", &arguments.begin},
                                   {"end", &arguments.end}}) {
    if (text->empty()) continue;
    TRY_ASSIGN(const Bytes bytes, parse_bytes(*text, arguments.escaped));
    query += fmt::format("&{}={}", name, percent_encode(bytes));
  }
  if (arguments.reverse) query += "&reverse=true";
  if (arguments.keys_only) query += "&keys_only=true";
  return query;
}

Status add_row(const json::object& entry, bool keys_only, uint64_t now_ms, Table& table) {
  TRY_ASSIGN(const Bytes key, bytes_of(entry, "key"));
  if (keys_only) {
    table.add({terminal_text(key)});
    return {};
  }
  TRY_ASSIGN(const Bytes value, bytes_of(entry, "value"));
  const auto expires_at_ms = number_at(entry, "expires_at_ms");
  table.add({terminal_text(key), shortened_text(terminal_text(value), value_columns_max),
             human_bytes(value.size()), expires_at_ms ? time_and_age(now_ms, *expires_at_ms) : ""});
  return {};
}

Status print_entries(ClientSession& session, const json::array& entries, bool keys_only,
                     Table& table) {
  const uint64_t now_ms = session.clock.unix_ms();
  for (const json::value& value : entries) {
    if (!value.is_object()) continue;
    if (session.json)
      TRY(print_json(session, value.get_object()));
    else
      TRY(add_row(value.get_object(), keys_only, now_ms, table));
  }
  if (!session.json) TRY(session.out.write(table.take()));
  return session.out.flush();
}

Status scan(ClientSession& session, const ScanArguments& arguments) {
  uint64_t left = std::numeric_limits<uint64_t>::max();
  if (!arguments.limit.empty()) {
    TRY_ASSIGN(left, parse_whole_number(arguments.limit, 1));
  }
  TRY_ASSIGN(const std::string query, scan_query(arguments));
  std::vector<TableColumn> columns = {{"KEY"}};
  if (!arguments.keys_only)
    columns.insert(columns.end(), {{"VALUE"}, {"SIZE", Align::right}, {"EXPIRES"}});
  Table table(std::move(columns));
  std::string cursor;
  do {
    std::string target =
        raw_path(session, fmt::format("/keys?limit={}{}", std::min(left, page_entries), query));
    if (!cursor.empty()) target += "&cursor=" + percent_encode(cursor);
    TRY_ASSIGN(const ApiAnswer page, session.api.ask({.target = target}));
    const json::array& entries = array_at(page.object, "entries");
    TRY(print_entries(session, entries, arguments.keys_only, table));
    left -= std::min<uint64_t>(left, entries.size());
    std::string next = text_at(page.object, "next");
    if (next == cursor) break;  // a server that does not move on
    cursor = std::move(next);
  } while (!cursor.empty() && left > 0);
  return {};
}

}  // namespace

void add_scan_command(CLI::App& raw, ClientCommands& commands) {
  auto arguments = std::make_shared<ScanArguments>();
  CLI::App* command =
      commands.add_raw(raw, "scan", "List keys and values in order",
                       [arguments](ClientSession& session) { return scan(session, *arguments); });
  add_text(*command, "--prefix", arguments->prefix, "KEY", "Only keys that begin so");
  add_text(*command, "--begin", arguments->begin, "KEY", "From this key on");
  add_text(*command, "--end", arguments->end, "KEY", "Before this key");
  command->add_flag("--reverse", arguments->reverse, "The last key first");
  add_text(*command, "--limit", arguments->limit, "N", "At most so many (default all)")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text, 1); }));
  command->add_flag("--keys-only", arguments->keys_only, "Without the values");
  add_escaped(*command, arguments->escaped);
  command->footer(
      "Keys are printed as --escaped takes them. Long values are cut; with --json, a line for each "
      "entry, they are whole.\n"
      "Examples:\n"
      "  trellis raw scan --prefix user/ --limit 10\n"
      "  trellis raw scan --begin a --end b --reverse --keys-only");
}

}  // namespace trellis
