#include "cli/keyspace_command.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <boost/json.hpp>
#include <limits>
#include <memory>
#include <random>

#include "base/bytes.h"
#include "cli/arguments.h"
#include "cli/human.h"
#include "cli/table.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr uint64_t page_keyspaces = 500;

// --- create ---

struct CreateArguments {
  std::string name;
  std::string id;
  std::vector<std::string> config;
};

// Not for secrets, but never the same twice.
std::string random_request_id() {
  std::random_device device;
  std::string id = "cli-";
  for (int i = 0; i < 4; i++) id += fmt::format("{:08x}", static_cast<uint32_t>(device()));
  return id;
}

Result<json::object> config_of(const std::vector<std::string>& words) {
  json::object config;
  for (const std::string& word : words) {
    TRY_ASSIGN(const auto assignment, parse_assignment(word));
    if (!config.emplace(assignment.first, assignment.second).second)
      return wrong_use(fmt::format("{} is given twice", quote(assignment.first)));
  }
  return config;
}

Status create_keyspace(ClientSession& session, const CreateArguments& arguments) {
  json::object body{{"name", arguments.name}};
  TRY_ASSIGN(json::object config, config_of(arguments.config));
  if (!config.empty()) body["config"] = std::move(config);
  if (!arguments.id.empty()) {
    TRY_ASSIGN(body["id"], parse_whole_number(arguments.id));
  }
  ApiCall call =
      json_call(HttpMethod::post,
                arguments.id.empty() ? "/pd/api/v2/keyspaces" : "/pd/api/v2/keyspaces/id", body);
  call.headers.push_back({"Idempotency-Key", random_request_id()});
  auto answer = session.api.ask(call);
  // It may have been made and only the answer lost; with the same request id that is no matter.
  if (!answer && answer.error().code == Code::maybe) answer = session.api.ask(call);
  if (!answer) return answer.error();
  if (session.json) return print_line(session, answer->text);
  return session.out.write(fmt::format("keyspace {} has id {}\n",
                                       terminal_text(text_at(answer->object, "name")),
                                       number_at(answer->object, "id").value_or(0)));
}

void add_create(CLI::App& keyspace, ClientCommands& commands) {
  auto arguments = std::make_shared<CreateArguments>();
  CLI::App* create = commands.add(
      keyspace, "create", "Make a keyspace",
      [arguments](ClientSession& session) { return create_keyspace(session, *arguments); });
  add_keyspace_name(*create, arguments->name)->required();
  add_text(*create, "--id", arguments->id, "N", "Its id (default the next one that is free)")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text); }));
  add_repeated(*create, "--config", arguments->config, "KEY=VALUE", "Put that into its config")
      ->check(checked_by(parse_assignment));
  create->footer(
      "Examples:\n"
      "  trellis keyspace create shop\n"
      "  trellis keyspace create shop --id 7 --config owner=ann --config tier=gold");
}

// --- list ---

struct ListArguments {
  std::string limit;
  std::string state;
};

// One page of the list; how many of the limit are left, and where the next page begins.
struct ListState {
  uint64_t left = std::numeric_limits<uint64_t>::max();
  std::string next;
};

Status print_page(ClientSession& session, const ApiAnswer& page, const std::string& wanted_state,
                  Table& table, ListState& list) {
  const uint64_t now_ms = session.clock.unix_ms();
  for (const json::value& value : array_at(page.object, "keyspaces")) {
    if (!value.is_object()) continue;
    const json::object& keyspace = value.get_object();
    const std::string state = text_at(keyspace, "state");
    if (!wanted_state.empty() && CLI::detail::to_lower(state) != wanted_state) continue;
    if (list.left == 0) break;
    list.left--;
    if (session.json) {
      TRY(print_json(session, keyspace));
      continue;
    }
    const uint64_t created_ms = number_at(keyspace, "created_at").value_or(0) * 1000;
    table.add({std::to_string(number_at(keyspace, "id").value_or(0)),
               terminal_text(text_at(keyspace, "name")), state, iso_time(created_ms),
               human_age(now_ms, created_ms)});
  }
  return session.json ? session.out.flush() : session.out.write(table.take());
}

Status list_keyspaces(ClientSession& session, const ListArguments& arguments) {
  ListState list;
  if (!arguments.limit.empty()) {
    TRY_ASSIGN(list.left, parse_whole_number(arguments.limit, 1));
  }
  Table table({{"ID", Align::right}, {"NAME"}, {"STATE"}, {"CREATED"}, {"AGE"}});
  do {
    // With a filter, who knows how many it takes.
    const uint64_t limit =
        arguments.state.empty() ? std::min(list.left, page_keyspaces) : page_keyspaces;
    std::string target = fmt::format("/pd/api/v2/keyspaces?limit={}", limit);
    if (!list.next.empty()) target += "&page_token=" + percent_encode(list.next);
    TRY_ASSIGN(const ApiAnswer page, session.api.ask({.target = target}));
    TRY(print_page(session, page, arguments.state, table, list));
    TRY(session.out.flush());
    std::string next = text_at(page.object, "next_page_token");
    if (next == list.next) break;  // a server that does not move on
    list.next = std::move(next);
  } while (!list.next.empty() && list.left > 0);
  return {};
}

void add_list(CLI::App& keyspace, ClientCommands& commands) {
  auto arguments = std::make_shared<ListArguments>();
  CLI::App* list = commands.add(
      keyspace, "list", "List keyspaces in the order of their ids",
      [arguments](ClientSession& session) { return list_keyspaces(session, *arguments); });
  add_text(*list, "--limit", arguments->limit, "N", "At most so many (default all)")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text, 1); }));
  add_text(*list, "--state", arguments->state, "STATE",
           "Only those: enabled, disabled, archived or tombstone")
      ->check(CLI::IsMember({"enabled", "disabled", "archived", "tombstone"}));
  list->footer(
      "With --json a line for each keyspace.\n"
      "Examples:\n"
      "  trellis keyspace list\n"
      "  trellis keyspace list --state archived --limit 10\n"
      "  trellis keyspace list --json | jq -r .name");
}

// --- show ---

struct ShowArguments {
  std::string name;
  std::string id;
};

std::string of_quota(uint64_t quota, const std::string& text) {
  return quota == 0 ? "" : fmt::format(" of {}", text);
}

using Lines = std::vector<std::pair<std::string, std::string>>;

void add_figures(Lines& lines, const json::object& answer) {
  const json::object& figures = object_at(answer, "figures");
  const json::object& quota = object_at(answer, "quota");
  const json::object& load = object_at(answer, "load");
  const uint64_t bytes_quota = number_at(quota, "bytes").value_or(0);
  const uint64_t keys_quota = number_at(quota, "keys").value_or(0);
  const uint64_t rate_quota = number_at(quota, "operations_per_second").value_or(0);
  lines.emplace_back("bytes",
                     fmt::format("{}{} ({} live, {} wait for gc)",
                                 human_bytes(number_at(figures, "bytes").value_or(0)),
                                 of_quota(bytes_quota, human_bytes(bytes_quota)),
                                 human_bytes(number_at(figures, "live_bytes").value_or(0)),
                                 human_bytes(number_at(figures, "waiting_bytes").value_or(0))));
  lines.emplace_back("keys", fmt::format("{}{}", number_at(figures, "keys").value_or(0),
                                         of_quota(keys_quota, std::to_string(keys_quota))));
  lines.emplace_back(
      "load", fmt::format("{:.1f} reads/s, {:.1f} writes/s{}", real_at(load, "reads_per_second"),
                          real_at(load, "writes_per_second"),
                          of_quota(rate_quota, fmt::format("{} operations/s", rate_quota))));
}

void add_purge(Lines& lines, const json::object& answer) {
  if (const auto purged_at = number_at(answer, "purged_at"))
    lines.emplace_back("purged", iso_time(*purged_at * 1000));
  const json::object& purge = object_at(answer, "purge");
  if (purge.empty()) return;
  std::string text = fmt::format("{}: {} of {}, {} entries removed", text_at(purge, "state"),
                                 human_bytes(number_at(purge, "bytes_done").value_or(0)),
                                 human_bytes(number_at(purge, "bytes_total").value_or(0)),
                                 number_at(purge, "entries_done").value_or(0));
  if (const std::string holder = text_at(purge, "held_by"); !holder.empty())
    text += fmt::format("; held by {}", terminal_text(holder));
  lines.emplace_back("purge", std::move(text));
}

std::string show_text(const json::object& answer, uint64_t now_ms) {
  const json::object& keyspace = object_at(answer, "keyspace");
  const auto seconds = [&](std::string_view name) {
    return number_at(keyspace, name).value_or(0) * 1000;
  };
  Lines lines = {
      {"name", terminal_text(text_at(keyspace, "name"))},
      {"id", std::to_string(number_at(keyspace, "id").value_or(0))},
      {"state", fmt::format("{} since {}", text_at(keyspace, "state"),
                            time_and_age(now_ms, seconds("state_changed_at")))},
      {"created", time_and_age(now_ms, seconds("created_at"))},
      {"revision", std::to_string(number_at(answer, "revision").value_or(0))},
  };
  if (const auto retire_at_ms = number_at(answer, "retire_at_ms"))
    lines.emplace_back("removed", time_and_age(now_ms, *retire_at_ms));
  add_figures(lines, answer);
  lines.emplace_back("gc", terminal_line(text_at(answer, "gc")));
  add_purge(lines, answer);
  for (const auto& member : object_at(keyspace, "config"))
    lines.emplace_back("config", fmt::format("{} = {}", terminal_text(member.key()),
                                             member.value().is_string()
                                                 ? terminal_text(member.value().get_string())
                                                 : json::serialize(member.value())));
  return name_value_lines(lines);
}

Status show_keyspace(ClientSession& session, const ShowArguments& arguments) {
  if (arguments.name.empty() == arguments.id.empty())
    return wrong_use("give the NAME of a keyspace, or --id N: see --help");
  const std::string target =
      arguments.id.empty() ? v1_path(arguments.name) : "/v1/keyspace-ids/" + arguments.id;
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = target}));
  if (session.json) return print_line(session, answer.text);
  return session.out.write(show_text(answer.object, session.clock.unix_ms()));
}

void add_show(CLI::App& keyspace, ClientCommands& commands) {
  auto arguments = std::make_shared<ShowArguments>();
  CLI::App* show = commands.add(
      keyspace, "show", "All that is known of a keyspace",
      [arguments](ClientSession& session) { return show_keyspace(session, *arguments); });
  add_keyspace_name(*show, arguments->name);
  add_text(*show, "--id", arguments->id, "N", "The one with that id; also one that is gone")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text); }));
  show->footer(
      "Examples:\n"
      "  trellis keyspace show shop\n"
      "  trellis keyspace show --id 7 --json | jq .figures.bytes");
}

// --- state ---

struct StateArguments {
  std::string name;
  std::string to;
};

// What somebody who archives a keyspace should know.
std::string archived_text(ClientSession& session, const std::string& name) {
  std::string text = fmt::format("`trellis keyspace state {} undo` takes that back", name);
  const auto answer = session.api.ask({.target = v1_path(name)});
  if (!answer) return text;
  if (const auto retire_at_ms = number_at(answer->object, "retire_at_ms"))
    text = fmt::format("its data will be removed on {}; until then {}",
                       time_and_age(session.clock.unix_ms(), *retire_at_ms), text);
  return text;
}

Status change_state(ClientSession& session, const StateArguments& arguments) {
  const bool undo = arguments.to == "undo";
  const std::string state = arguments.to + "d";  // PD says what it is then: enabled
  const ApiCall call =
      undo ? ApiCall{.method = HttpMethod::post, .target = v1_path(arguments.name, "/undo")}
           : json_call(HttpMethod::put, pd_path(arguments.name, "/state"), {{"state", state}});
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask(call));
  const json::object& keyspace = undo ? object_at(answer.object, "keyspace") : answer.object;
  if (session.json) return print_json(session, keyspace);
  TRY(session.out.write(fmt::format("{} is {}\n", arguments.name, text_at(keyspace, "state"))));
  if (arguments.to != "archive") return {};
  return print_line(session, archived_text(session, arguments.name));
}

void add_state(CLI::App& keyspace, ClientCommands& commands) {
  auto arguments = std::make_shared<StateArguments>();
  CLI::App* state = commands.add(
      keyspace, "state", "Enable, disable or archive a keyspace",
      [arguments](ClientSession& session) { return change_state(session, *arguments); });
  add_keyspace_name(*state, arguments->name)->required();
  add_argument(*state, "CHANGE", arguments->to,
               "enable: serves everybody; disable: admins only; archive: admins may read until it "
               "is removed; undo: archived back to disabled")
      ->required()
      ->check(CLI::IsMember({"enable", "disable", "archive", "undo"}));
  state->footer(
      "Only a disabled keyspace can be archived.\n"
      "Examples:\n"
      "  trellis keyspace state shop disable\n"
      "  trellis keyspace state shop undo");
}

// --- config ---

struct ConfigArguments {
  std::string name;
  std::vector<std::string> set;
  std::vector<std::string> unset;
  std::vector<std::string> conditions;
  std::vector<std::string> absent;
};

// Values to have and, as null, keys to have not.
Result<json::object> values_and_nulls(const std::vector<std::string>& assignments,
                                      const std::vector<std::string>& keys) {
  TRY_ASSIGN(json::object members, config_of(assignments));
  for (const std::string& key : keys)
    if (!members.emplace(key, nullptr).second)
      return wrong_use(fmt::format("{} is given twice", quote(key)));
  return members;
}

std::string config_text(const json::object& keyspace) {
  Table table({{"KEY"}, {"VALUE"}});
  for (const auto& member : object_at(keyspace, "config"))
    table.add({terminal_text(member.key()), member.value().is_string()
                                                ? terminal_text(member.value().get_string())
                                                : json::serialize(member.value())});
  return table.take();
}

Status configure(ClientSession& session, const ConfigArguments& arguments) {
  TRY_ASSIGN(json::object patch, values_and_nulls(arguments.set, arguments.unset));
  TRY_ASSIGN(json::object conditions, values_and_nulls(arguments.conditions, arguments.absent));
  if (patch.empty() && !conditions.empty())
    return wrong_use("--if and --if-absent need something to change: KEY=VALUE or --unset KEY");
  ApiCall call{.target = pd_path(arguments.name)};
  if (!patch.empty()) {
    json::object body{{"config", std::move(patch)}};
    if (!conditions.empty()) body["preconditions"] = std::move(conditions);
    call = json_call(HttpMethod::patch, pd_path(arguments.name, "/config"), body);
  }
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask(call));
  if (session.json) return print_line(session, answer.text);
  return session.out.write(config_text(answer.object));
}

void add_config(CLI::App& keyspace, ClientCommands& commands) {
  auto arguments = std::make_shared<ConfigArguments>();
  CLI::App* config =
      commands.add(keyspace, "config", "Print or change the config of a keyspace",
                   [arguments](ClientSession& session) { return configure(session, *arguments); });
  add_keyspace_name(*config, arguments->name)->required();
  config->add_option("KEY=VALUE", arguments->set, "Set that")
      ->type_name("")
      ->check(checked_by(parse_assignment));
  add_repeated(*config, "--unset", arguments->unset, "KEY", "Remove that");
  add_repeated(*config, "--if", arguments->conditions, "KEY=VALUE", "Only if it has that value")
      ->check(checked_by(parse_assignment));
  add_repeated(*config, "--if-absent", arguments->absent, "KEY", "Only if there is none");
  config->footer(
      "All of it is changed at once, or nothing. Prints the config as it is then.\n"
      "Examples:\n"
      "  trellis keyspace config shop\n"
      "  trellis keyspace config shop tier=gold --unset trial\n"
      "  trellis keyspace config shop leader=b --if leader=a");
}

// --- rename ---

struct RenameArguments {
  std::string from;
  std::string to;
};

Status rename_keyspace(ClientSession& session, const RenameArguments& arguments) {
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask(json_call(HttpMethod::post, v1_path(arguments.from, "/rename"),
                                       {{"name", arguments.to}})));
  const json::object& keyspace = object_at(answer.object, "keyspace");
  if (session.json) return print_json(session, keyspace);
  return session.out.write(fmt::format("{} is now called {}\n", arguments.from,
                                       terminal_text(text_at(keyspace, "name"))));
}

void add_rename(CLI::App& keyspace, ClientCommands& commands) {
  auto arguments = std::make_shared<RenameArguments>();
  CLI::App* rename = commands.add(
      keyspace, "rename", "Give a keyspace another name",
      [arguments](ClientSession& session) { return rename_keyspace(session, *arguments); });
  add_argument(*rename, "OLD", arguments->from, "Its name")->required()->check(check_not_empty);
  add_argument(*rename, "NEW", arguments->to, "The name that it gets")->required();
  rename->footer(
      "Its id, data and tokens stay.\n"
      "Example: trellis keyspace rename shop market");
}

// --- quota ---

struct QuotaArguments {
  std::string name;
  std::string bytes;
  std::string keys;
  std::string operations;
};

std::string limit_text(uint64_t limit, const std::string& text) {
  return limit == 0 ? "none" : text;
}

std::string quota_text(const json::object& answer) {
  const json::object& quota = object_at(answer, "quota");
  const json::object& figures = object_at(answer, "figures");
  const json::object& load = object_at(answer, "load");
  const uint64_t bytes = number_at(quota, "bytes").value_or(0);
  const uint64_t keys = number_at(quota, "keys").value_or(0);
  const uint64_t rate = number_at(quota, "operations_per_second").value_or(0);
  Table table({{"OF"}, {"QUOTA", Align::right}, {"USED", Align::right}});
  table.add({"bytes", limit_text(bytes, human_bytes(bytes)),
             human_bytes(number_at(figures, "bytes").value_or(0))});
  table.add({"keys", limit_text(keys, std::to_string(keys)),
             std::to_string(number_at(figures, "keys").value_or(0))});
  table.add({"operations", limit_text(rate, fmt::format("{}/s", rate)),
             fmt::format("{:.1f}/s",
                         real_at(load, "reads_per_second") + real_at(load, "writes_per_second"))});
  return table.take();
}

Status show_quota(ClientSession& session, const std::string& name) {
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = v1_path(name)}));
  if (!session.json) return session.out.write(quota_text(answer.object));
  return print_json(session, {{"quota", object_at(answer.object, "quota")},
                              {"figures", object_at(answer.object, "figures")}});
}

Status change_quota(ClientSession& session, const QuotaArguments& arguments) {
  json::object body;
  if (!arguments.bytes.empty()) {
    TRY_ASSIGN(body["bytes"], parse_limit_of_bytes(arguments.bytes));
  }
  if (!arguments.keys.empty()) {
    TRY_ASSIGN(body["keys"], parse_limit(arguments.keys));
  }
  if (!arguments.operations.empty()) {
    TRY_ASSIGN(body["operations_per_second"], parse_limit(arguments.operations));
  }
  if (body.empty()) return show_quota(session, arguments.name);
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask(json_call(HttpMethod::put, v1_path(arguments.name, "/quota"), body)));
  if (session.json) return print_line(session, answer.text);
  return show_quota(session, arguments.name);
}

void add_quota(CLI::App& keyspace, ClientCommands& commands) {
  auto arguments = std::make_shared<QuotaArguments>();
  CLI::App* quota = commands.add(
      keyspace, "quota", "Print or change what a keyspace may use",
      [arguments](ClientSession& session) { return change_quota(session, *arguments); });
  add_keyspace_name(*quota, arguments->name)->required();
  add_text(*quota, "--bytes", arguments->bytes, "SIZE|none", "Stored bytes, keys and values")
      ->check(checked_by(parse_limit_of_bytes));
  add_text(*quota, "--keys", arguments->keys, "N|none", "Keys")->check(checked_by(parse_limit));
  add_text(*quota, "--ops", arguments->operations, "N|none", "Operations per second")
      ->check(checked_by(parse_limit));
  quota->footer(
      "Without one of these it changes nothing. Prints the quota and what is used of it.\n"
      "Examples:\n"
      "  trellis keyspace quota shop\n"
      "  trellis keyspace quota shop --bytes 10GiB --ops none");
}

}  // namespace

std::string v1_path(std::string_view keyspace, std::string_view rest) {
  return fmt::format("/v1/keyspaces/{}{}", percent_encode(keyspace), rest);
}

std::string pd_path(std::string_view keyspace, std::string_view rest) {
  return fmt::format("/pd/api/v2/keyspaces/{}{}", percent_encode(keyspace), rest);
}

CLI::Option* add_keyspace_name(CLI::App& command, std::string& name) {
  return add_argument(command, "NAME", name, "Name of the keyspace")->check(check_not_empty);
}

void add_keyspace_commands(CLI::App& app, ClientCommands& commands) {
  CLI::App* keyspace = app.add_subcommand("keyspace", "Keyspaces, the tenants of a server");
  keyspace->require_subcommand(1);
  add_create(*keyspace, commands);
  add_list(*keyspace, commands);
  add_show(*keyspace, commands);
  add_state(*keyspace, commands);
  add_config(*keyspace, commands);
  add_rename(*keyspace, commands);
  add_token_commands(*keyspace, commands);
  add_quota(*keyspace, commands);
  add_gc_commands(*keyspace, commands);
  add_activity_commands(*keyspace, commands);
  add_purge_command(*keyspace, commands);
  keyspace->footer(
      "Every command talks to a running server: see `trellis keyspace list --help` for how it is "
      "found.\n"
      "The life of a keyspace: ENABLED <-> DISABLED <-> ARCHIVED -> TOMBSTONE.");
}

}  // namespace trellis
