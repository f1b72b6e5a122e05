#include "cli/range_command.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "base/bytes.h"
#include "base/duration.h"
#include "cli/human.h"
#include "cli/table.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr size_t bound_columns_max = 48;

struct RangeArguments {
  std::string id;
  std::string key;
  std::string from;
  std::string sticky = "1h";
  uint64_t limit = 0;
};

std::string bound_at(const json::object& range, std::string_view name) {
  return shortened_text(terminal_line(text_at(range, name)), bound_columns_max);
}

std::string rate_text(double per_second) { return fmt::format("{:.0f}", per_second); }

Table figures_table() {
  return Table({{"RANGE", Align::right},
                {"START"},
                {"END"},
                {"GEN", Align::right},
                {"BYTES", Align::right},
                {"KEYS", Align::right},
                {"READS/S", Align::right},
                {"WRITES/S", Align::right}});
}

// Before figures that are estimates.
std::string_view about_mark(const json::object& range) {
  const json::value* const exact = range.if_contains("exact");
  return exact != nullptr && exact->is_bool() && exact->get_bool() ? "" : "~";
}

void add_range_row(Table& table, const json::object& range) {
  const std::string about(about_mark(range));
  table.add({std::to_string(number_at(range, "id").value_or(0)), bound_at(range, "start_pretty"),
             bound_at(range, "end_pretty"),
             std::to_string(number_at(range, "generation").value_or(0)),
             about + human_bytes(number_at(range, "bytes").value_or(0)),
             about + std::to_string(number_at(range, "keys").value_or(0)),
             rate_text(real_at(range, "reads_per_second")),
             rate_text(real_at(range, "writes_per_second"))});
}

Status list_ranges(ClientSession& session, const RangeArguments& arguments) {
  Table table = figures_table();
  std::string from = arguments.from;
  uint64_t left = arguments.limit == 0 ? ~0ull : arguments.limit;
  while (left > 0) {
    const uint64_t page = std::min<uint64_t>(left, 1'000);
    TRY_ASSIGN(const ApiAnswer answer,
               session.api.ask({.target = fmt::format("/v1/ranges?from={}&limit={}", from, page)}));
    const json::array& ranges = array_at(answer.object, "ranges");
    for (const json::value& range : ranges) {
      if (!range.is_object()) continue;
      if (session.json)
        TRY(print_json(session, range.get_object()));
      else
        add_range_row(table, range.get_object());
    }
    if (!session.json) TRY(session.out.write(table.take()));
    from = text_at(answer.object, "next");
    left -= std::min<uint64_t>(left, ranges.size());
    if (from.empty()) break;
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> range_lines(const json::object& range,
                                                             uint64_t now_ms) {
  std::vector<std::pair<std::string, std::string>> lines = {
      {"range", std::to_string(number_at(range, "id").value_or(0))},
      {"start", fmt::format("{}  {}", text_at(range, "start"),
                            terminal_line(text_at(range, "start_pretty")))},
      {"end",
       fmt::format("{}  {}", text_at(range, "end"), terminal_line(text_at(range, "end_pretty")))},
      {"generation", std::to_string(number_at(range, "generation").value_or(0))},
  };
  if (const uint64_t sticky_ms = number_at(range, "sticky_until_ms").value_or(0);
      sticky_ms > now_ms)
    lines.emplace_back("sticky until", time_and_age(now_ms, sticky_ms));
  if (!range.contains("bytes")) return lines;
  const uint64_t counted_ms = number_at(range, "counted_at_ms").value_or(0);
  const std::string about(about_mark(range));
  lines.emplace_back("bytes", about + human_bytes(number_at(range, "bytes").value_or(0)));
  lines.emplace_back("keys", about + std::to_string(number_at(range, "keys").value_or(0)));
  lines.emplace_back("counted", counted_ms == 0 ? "never" : time_and_age(now_ms, counted_ms));
  lines.emplace_back("reads/s", rate_text(real_at(range, "reads_per_second")));
  lines.emplace_back("writes/s", rate_text(real_at(range, "writes_per_second")));
  return lines;
}

Status show_range(ClientSession& session, const RangeArguments& arguments) {
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = "/v1/ranges/" + arguments.id}));
  if (session.json) return print_line(session, answer.text);
  const json::object& series = object_at(answer.object, "series");
  auto lines = range_lines(answer.object, session.clock.unix_ms());
  for (const std::string_view name : {"reads", "writes", "bytes", "keys"}) {
    uint64_t most = 0;
    const json::array& points = array_at(series, name);
    for (const json::value& point : points)
      if (point.is_array() && point.get_array().size() == 2)
        most = std::max(most, point.get_array()[1].to_number<uint64_t>());
    if (!points.empty())
      lines.emplace_back(fmt::format("last hour, {}", name),
                         fmt::format("{} samples, at most {}", points.size(), most));
  }
  return session.out.write(name_value_lines(lines));
}

std::string step_source(const json::object& step) {
  const auto flag = [&](std::string_view name) {
    const json::value* const value = step.if_contains(name);
    return value != nullptr && value->is_bool() && value->get_bool();
  };
  if (flag("was_stale")) return "cache, stale";
  return flag("from_cache") ? "cache" : "directory";
}

// The way of a lookup, one line a step.
Status print_path(ClientSession& session, const json::object& answer) {
  Table table({{"STEP"},
               {"RECORD"},
               {"RANGE", Align::right},
               {"GEN", Align::right},
               {"START"},
               {"END"},
               {"FROM"}});
  for (const json::value& value : array_at(answer, "path")) {
    if (!value.is_object()) continue;
    const json::object& step = value.get_object();
    const json::object& range = object_at(step, "range");
    table.add({text_at(step, "level"), shortened_text(text_at(step, "record"), bound_columns_max),
               std::to_string(number_at(range, "id").value_or(0)),
               std::to_string(number_at(range, "generation").value_or(0)),
               bound_at(range, "start_pretty"), bound_at(range, "end_pretty"), step_source(step)});
  }
  return session.out.write(table.take());
}

Status lookup_key(ClientSession& session, const RangeArguments& arguments) {
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask({.target = "/v1/ranges/lookup?key=" + arguments.key}));
  if (session.json) return print_line(session, answer.text);
  return session.out.write(
      name_value_lines(range_lines(object_at(answer.object, "range"), session.clock.unix_ms())));
}

Status explain_key_in_map(ClientSession& session, const RangeArguments& arguments) {
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask({.target = "/v1/ranges/lookup?key=" + arguments.key}));
  if (session.json) return print_line(session, answer.text);
  TRY(session.out.write(
      name_value_lines({{"key", text_at(answer.object, "key")},
                        {"pretty", terminal_line(text_at(answer.object, "pretty"))},
                        {"address", text_at(answer.object, "address")}})));
  TRY(session.out.write("\n"));
  return print_path(session, answer.object);
}

Status split_at_key(ClientSession& session, const RangeArguments& arguments) {
  TRY_ASSIGN(const uint64_t sticky_ms, parse_duration_ms(arguments.sticky));
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask(json_call(HttpMethod::post, "/v1/ranges/split",
                                       {{"key", arguments.key}, {"sticky_s", sticky_ms / 1000}})));
  if (session.json) return print_line(session, answer.text);
  const json::object& left = object_at(answer.object, "left");
  const json::object& right = object_at(answer.object, "right");
  return session.out.write(fmt::format(
      "range {} ends there now; range {} begins at {}\n", number_at(left, "id").value_or(0),
      number_at(right, "id").value_or(0), text_at(right, "start")));
}

Status merge_at_key(ClientSession& session, const RangeArguments& arguments) {
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask(json_call(HttpMethod::post, "/v1/ranges/merge",
                                                               {{"key", arguments.key}})));
  if (session.json) return print_line(session, answer.text);
  return session.out.write(name_value_lines(range_lines(answer.object, session.clock.unix_ms())));
}

Status show_hot(ClientSession& session, const RangeArguments& arguments) {
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask({.target = fmt::format("/v1/ranges/hot?limit={}",
                                                    arguments.limit == 0 ? 20 : arguments.limit)}));
  if (session.json) return print_line(session, answer.text);
  Table table = figures_table();
  for (const json::value& range : array_at(answer.object, "ranges"))
    if (range.is_object()) add_range_row(table, range.get_object());
  return session.out.write(table.take());
}

Status show_history(ClientSession& session, const RangeArguments& arguments) {
  TRY_ASSIGN(
      const ApiAnswer answer,
      session.api.ask({.target = fmt::format("/v1/ranges/history?limit={}",
                                             arguments.limit == 0 ? 100 : arguments.limit)}));
  if (session.json) return print_line(session, answer.text);
  Table table({{"TIME"}, {"ACTION"}, {"RANGES"}, {"AT"}, {"REASON"}});
  for (const json::value& value : array_at(answer.object, "events")) {
    if (!value.is_object()) continue;
    const json::object& event = value.get_object();
    const json::object& left = object_at(event, "left");
    const json::object& right = object_at(event, "right");
    std::string ranges = std::to_string(number_at(left, "id").value_or(0));
    if (!right.empty()) ranges += fmt::format(" {}", number_at(right, "id").value_or(0));
    table.add({iso_time(number_at(event, "time_ms").value_or(0)), text_at(event, "action"), ranges,
               right.empty() ? "" : bound_at(right, "start_pretty"),
               terminal_line(text_at(event, "reason"))});
  }
  return session.out.write(table.take());
}

Status show_plan(ClientSession& session, const RangeArguments&) {
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = "/v1/ranges/plan"}));
  if (session.json) return print_line(session, answer.text);
  const json::array& actions = array_at(answer.object, "actions");
  if (actions.empty()) return print_line(session, "Nothing is to be done.");
  Table table({{"ACTION"}, {"RANGE", Align::right}, {"AT"}, {"REASON"}});
  for (const json::value& value : actions) {
    if (!value.is_object()) continue;
    const json::object& action = value.get_object();
    table.add({text_at(action, "action"),
               std::to_string(number_at(object_at(action, "range"), "id").value_or(0)),
               shortened_text(text_at(action, "at"), bound_columns_max),
               terminal_line(text_at(action, "reason"))});
  }
  return session.out.write(table.take());
}

Status set_keeper(ClientSession& session, bool paused) {
  TRY_ASSIGN(
      const ApiAnswer answer,
      session.api.ask(json_call(HttpMethod::post, "/v1/ranges/keeper", {{"paused", paused}})));
  if (session.json) return print_line(session, answer.text);
  return print_line(session, paused ? "Ranges stay as they are; splits and merges by hand are made."
                                    : "Ranges are split and merged as they need it.");
}

Status verify_ranges(ClientSession& session) {
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask({.method = HttpMethod::post, .target = "/v1/ranges/verify"}));
  if (session.json) TRY(print_line(session, answer.text));
  size_t found = 0;
  for (const std::string_view of : {"of_ranges", "of_directory"}) {
    for (const json::value& value : array_at(answer.object, of)) {
      if (!value.is_object()) continue;
      found++;
      if (session.json) continue;
      TRY(print_line(session, fmt::format("{}: {}", text_at(value.get_object(), "kind"),
                                          terminal_line(text_at(value.get_object(), "text")))));
    }
  }
  const std::string counted =
      fmt::format("{} ranges, {} records", number_at(answer.object, "ranges").value_or(0),
                  number_at(answer.object, "records").value_or(0));
  if (found == 0)
    return session.json ? Status() : print_line(session, counted + ": all is as it should be");
  return Error{Code::corrupt,
               counted + (array_at(answer.object, "of_ranges").empty()
                              ? ": `trellis range rebuild` repairs the directory"
                              : ": the ranges themselves are damaged; `trellis range rebuild` puts "
                                "them together again, and touches no data")};
}

Status rebuild_ranges(ClientSession& session) {
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask({.method = HttpMethod::post, .target = "/v1/ranges/rebuild"}));
  if (session.json) return print_line(session, answer.text);
  const auto number = [&](std::string_view name) {
    return number_at(answer.object, name).value_or(0);
  };
  if (number("ranges_restored") + number("ranges_made") + number("ranges_removed") > 0)
    TRY(print_line(session, fmt::format("ranges: {} restored from the directory, {} made where "
                                        "nothing was known, {} damaged records removed",
                                        number("ranges_restored"), number("ranges_made"),
                                        number("ranges_removed"))));
  return print_line(
      session, fmt::format("{} records written, {} removed", number("written"), number("removed")));
}

std::string check_hex(const std::string& text) {
  const auto bytes = from_hex(text);
  return bytes ? "" : "it is not hex: " + bytes.error().message;
}

CLI::Option* add_key_argument(CLI::App& command, RangeArguments& arguments) {
  return add_argument(command, "KEY", arguments.key, "A stored key, in hex")
      ->required()
      ->check(check_hex);
}

CLI::Option* add_limit(CLI::App& command, RangeArguments& arguments, const std::string& help,
                       int limit_max = 10'000) {  // of one answer of the server
  return command.add_option("--limit", arguments.limit, help)
      ->type_name("N")
      ->check(CLI::Range(1, limit_max));
}

using Handler = Status (*)(ClientSession&, const RangeArguments&);

CLI::App* add_one(CLI::App& group, ClientCommands& commands,
                  const std::shared_ptr<RangeArguments>& arguments, const std::string& name,
                  const std::string& help, Handler run) {
  return commands.add(group, name, help, [arguments, run](ClientSession& session) {
    return run(session, *arguments);
  });
}

void add_range_looks(CLI::App& range, ClientCommands& commands,
                     const std::shared_ptr<RangeArguments>& arguments) {
  CLI::App* list = add_one(range, commands, arguments, "list",
                           "All ranges with their size and load, in order", list_ranges);
  add_text(*list, "--from", arguments->from, "HEX", "Begin with the range that holds this address")
      ->check(check_hex);
  add_limit(*list, *arguments, "At most so many (default all)", 1'000'000);
  list->footer("~ stands before estimates; `trellis range recount` counts.");
  CLI::App* show = add_one(range, commands, arguments, "show", "One range, by its id", show_range);
  add_argument(*show, "ID", arguments->id, "Id of the range")
      ->required()
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text); }));
  add_key_argument(
      *add_one(range, commands, arguments, "lookup", "The range that holds a key", lookup_key),
      *arguments);
  add_limit(*add_one(range, commands, arguments, "hot", "The busiest ranges", show_hot), *arguments,
            "At most so many (default 20)");
  add_limit(*add_one(range, commands, arguments, "history",
                     "Splits and merges with their reasons, newest first", show_history),
            *arguments, "At most so many (default 100)");
  add_one(range, commands, arguments, "plan", "What would be split or merged now, and why",
          show_plan);
}

void add_range_changes(CLI::App& range, ClientCommands& commands,
                       const std::shared_ptr<RangeArguments>& arguments) {
  CLI::App* split = add_one(range, commands, arguments, "split",
                            "Split the range that holds a key, there", split_at_key);
  add_key_argument(*split, *arguments);
  add_text(*split, "--sticky", arguments->sticky, "DURATION",
           "Not merged again before (default 1h)")
      ->check(checked_by(parse_duration_ms));
  split->footer("Example: trellis range split $(trellis key encode raw keyspace=5 key=m)");
  add_key_argument(
      *add_one(range, commands, arguments, "merge",
               "Merge the range that holds a key with the one to its right", merge_at_key),
      *arguments);
  commands.add(range, "pause", "Split and merge nothing by itself",
               [](ClientSession& session) { return set_keeper(session, true); });
  commands.add(range, "resume", "Split and merge again as needed",
               [](ClientSession& session) { return set_keeper(session, false); });
  commands.add(range, "verify", "Compare the directory with the ranges themselves", verify_ranges)
      ->footer("Exits with 1 if something is wrong; `trellis range rebuild` repairs it.");
  commands.add(range, "rebuild", "Repair ranges, and write their directory again", rebuild_ranges)
      ->footer(
          "Ranges that are damaged are taken from the directory; where nothing says which one\n"
          "was there, a new range is made. Data is not touched.");
}

}  // namespace

void add_range_commands(CLI::App& app, ClientCommands& commands) {
  CLI::App* range = app.add_subcommand("range", "Where keys live: the ranges of the map");
  range->require_subcommand(1);
  const auto arguments = std::make_shared<RangeArguments>();
  add_range_looks(*range, commands, arguments);
  add_range_changes(*range, commands, arguments);
  add_range_job_commands(*range, commands);
}

void add_key_explain(CLI::App& key, ClientCommands& commands) {
  const auto arguments = std::make_shared<RangeArguments>();
  CLI::App* explain = add_one(key, commands, arguments, "explain",
                              "Where a key lives, and how that is found", explain_key_in_map);
  add_key_argument(*explain, *arguments);
  explain->footer("`trellis key decode` explains the bytes of a key without a server.");
}

}  // namespace trellis
