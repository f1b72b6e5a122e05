// `trellis keyspace top|audit|watch`: what keyspaces do, and what is done to them.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <limits>
#include <memory>

#include "base/duration.h"
#include "cli/arguments.h"
#include "cli/event_stream.h"
#include "cli/human.h"
#include "cli/keyspace_command.h"
#include "cli/table.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

// --- top ---

struct TopArguments {
  std::string by = "bytes";
  std::string limit = "20";
  std::string every = "2s";
  bool watch = false;
};

std::string top_text(const json::object& answer) {
  Table table({{"ID", Align::right},
               {"NAME"},
               {"BYTES", Align::right},
               {"KEYS", Align::right},
               {"READS/S", Align::right},
               {"WRITES/S", Align::right}});
  for (const json::value& value : array_at(answer, "keyspaces")) {
    if (!value.is_object()) continue;
    const json::object& keyspace = value.get_object();
    table.add({std::to_string(number_at(keyspace, "id").value_or(0)),
               terminal_text(text_at(keyspace, "name")),
               human_bytes(number_at(keyspace, "bytes").value_or(0)),
               std::to_string(number_at(keyspace, "keys").value_or(0)),
               fmt::format("{:.1f}", real_at(keyspace, "reads_per_second")),
               fmt::format("{:.1f}", real_at(keyspace, "writes_per_second"))});
  }
  return table.take();
}

Status show_top(ClientSession& session, const TopArguments& arguments) {
  TRY_ASSIGN(const uint64_t every_ms, parse_duration_ms(arguments.every));
  const std::string target = fmt::format("/v1/top?by={}&limit={}", arguments.by, arguments.limit);
  const bool redraws = arguments.watch && !session.json && session.out.is_terminal();
  for (bool is_first = true;; is_first = false) {
    TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = target}));
    if (session.json) {
      TRY(print_line(session, answer.text));
    } else {
      if (redraws)
        TRY(session.out.write("\x1b[H\x1b[2J"));
      else if (!is_first)
        TRY(session.out.write("\n"));
      TRY(session.out.write(top_text(answer.object)));
    }
    TRY(session.out.flush());
    if (!arguments.watch) return {};
    session.clock.pause_us(every_ms * 1000);
  }
}

Result<uint64_t> parse_pause(const std::string& text) {
  TRY_ASSIGN(const uint64_t ms, parse_duration_ms(text));
  if (ms < 100 || ms > 24ull * 3600 * 1000) return Error{Code::invalid, "use 100ms to 24h"};
  return ms;
}

void add_top(CLI::App& keyspace, ClientCommands& commands) {
  auto arguments = std::make_shared<TopArguments>();
  CLI::App* top =
      commands.add(keyspace, "top", "The keyspaces that use the most",
                   [arguments](ClientSession& session) { return show_top(session, *arguments); });
  add_text(*top, "--by", arguments->by, "WHAT", "bytes (default), keys or operations")
      ->check(CLI::IsMember({"bytes", "keys", "operations"}));
  add_text(*top, "--limit", arguments->limit, "N", "At most so many (default 20)")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text, 1); }));
  top->add_flag("--watch", arguments->watch, "Again and again, until Ctrl-C");
  add_text(*top, "--every", arguments->every, "DURATION", "How often --watch asks (default 2s)")
      ->check(checked_by(parse_pause));
  top->footer(
      "Examples:\n"
      "  trellis keyspace top\n"
      "  trellis keyspace top --by operations --watch");
}

// --- audit ---

struct AuditArguments {
  std::string since;
  std::string keyspace;
  std::string limit;
};

constexpr uint64_t page_changes = 500;

Status print_changes(ClientSession& session, const json::array& changes, Table& table,
                     uint64_t& left) {
  for (const json::value& value : changes) {
    if (!value.is_object() || left == 0) continue;
    left--;
    const json::object& change = value.get_object();
    if (session.json) {
      TRY(print_json(session, change));
      continue;
    }
    const auto id = number_at(change, "keyspace_id");
    table.add({std::to_string(number_at(change, "revision").value_or(0)),
               iso_time(number_at(change, "time_ms").value_or(0)),
               terminal_text(text_at(change, "actor")), terminal_text(text_at(change, "action")),
               id ? std::to_string(*id) : "", terminal_text(text_at(change, "name")),
               terminal_line(text_at(change, "detail"))});
  }
  if (!session.json) TRY(session.out.write(table.take()));
  return session.out.flush();
}

Status show_audit(ClientSession& session, const AuditArguments& arguments) {
  uint64_t left = std::numeric_limits<uint64_t>::max();
  if (!arguments.limit.empty()) {
    TRY_ASSIGN(left, parse_whole_number(arguments.limit, 1));
  }
  Table table({{"REVISION", Align::right},
               {"TIME"},
               {"ACTOR"},
               {"ACTION"},
               {"ID", Align::right},
               {"KEYSPACE"},
               {"DETAIL"}});
  std::string since = arguments.since;
  while (left > 0) {
    std::string target = fmt::format("/v1/audit?limit={}", std::min(left, page_changes));
    if (!since.empty()) target += "&since=" + since;
    if (!arguments.keyspace.empty()) target += "&keyspace=" + percent_encode(arguments.keyspace);
    TRY_ASSIGN(const ApiAnswer page, session.api.ask({.target = target}));
    TRY(print_changes(session, array_at(page.object, "changes"), table, left));
    // The last that was looked at, though it may be no change of that keyspace.
    const std::string last = std::to_string(number_at(page.object, "last_revision").value_or(0));
    if (last == since) break;
    since = last;
  }
  return {};
}

void add_audit(CLI::App& keyspace, ClientCommands& commands) {
  auto arguments = std::make_shared<AuditArguments>();
  CLI::App* audit =
      commands.add(keyspace, "audit", "Who did what to which keyspace, oldest first",
                   [arguments](ClientSession& session) { return show_audit(session, *arguments); });
  add_text(*audit, "--since", arguments->since, "REVISION",
           "Only what came after that (default all that is kept)")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text); }));
  add_text(*audit, "--keyspace", arguments->keyspace, "NAME", "Only of that keyspace");
  add_text(*audit, "--limit", arguments->limit, "N", "At most so many (default all)")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text, 1); }));
  audit->footer(
      "With --json a line for each action.\n"
      "Examples:\n"
      "  trellis keyspace audit --keyspace shop\n"
      "  trellis keyspace audit --since 120 --json");
}

// --- watch ---

struct WatchArguments {
  std::string since;
};

// The server sends a comment every 15 s; after three of them that did not come it is gone.
constexpr uint32_t silence_ms_max = 45'000;

Status print_event(ClientSession& session, const ServerEvent& event, Table& table) {
  if (session.json) {
    TRY(print_line(session, event.data));
    return session.out.flush();
  }
  boost::system::error_code failed;
  const json::value value = json::parse(event.data, failed);
  if (failed || !value.is_object())
    return Error{Code::invalid, "the server sent an event that is no JSON object"};
  const json::object& change = value.get_object();
  const json::object& keyspace = object_at(change, "keyspace");
  table.add({std::to_string(number_at(change, "revision").value_or(0)),
             terminal_text(text_at(change, "type")),
             std::to_string(number_at(keyspace, "id").value_or(0)), text_at(keyspace, "state"),
             terminal_text(text_at(keyspace, "name"))});
  TRY(session.out.write(table.take()));
  return session.out.flush();
}

Status watch_keyspaces(ClientSession& session, const WatchArguments& arguments) {
  session.api.wait_at_least_ms(silence_ms_max);
  Table table(
      {{"REVISION", Align::right}, {"EVENT "}, {"ID", Align::right}, {"STATE    "}, {"NAME"}});
  EventStream events([&](const ServerEvent& event) { return print_event(session, event, table); });
  std::string target = "/v1/watch/keyspaces";
  if (!arguments.since.empty()) target += "?since=" + arguments.since;
  const auto answer = session.api.call(
      {.target = target,
       .headers = {{"Accept", "text/event-stream"}},
       .receive = [&](const HttpAnswer&, ByteView piece) { return events.feed(piece); }});
  Error ended = answer ? Error{Code::unavailable, "the server ended the watch"} : answer.error();
  if (ended.reason.empty() && !events.last_id().empty())
    ended.message +=
        fmt::format("; go on with `trellis keyspace watch --since {}`", events.last_id());
  return ended;
}

void add_watch(CLI::App& keyspace, ClientCommands& commands) {
  auto arguments = std::make_shared<WatchArguments>();
  CLI::App* watch = commands.add(
      keyspace, "watch", "Print every change of a keyspace when it happens, until Ctrl-C",
      [arguments](ClientSession& session) { return watch_keyspaces(session, *arguments); });
  add_text(*watch, "--since", arguments->since, "REVISION",
           "What came after that (default: first all that there are)")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text); }));
  watch->footer(
      "With --json a line for each event.\n"
      "Examples:\n"
      "  trellis keyspace watch\n"
      "  trellis keyspace watch --since 120 --json");
}

}  // namespace

void add_activity_commands(CLI::App& keyspace, ClientCommands& commands) {
  add_top(keyspace, commands);
  add_audit(keyspace, commands);
  add_watch(keyspace, commands);
}

}  // namespace trellis
