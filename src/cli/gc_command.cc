// `trellis keyspace gc ...`: when garbage may go, and who holds it.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <limits>
#include <memory>

#include "base/bytes.h"
#include "base/duration.h"
#include "cli/arguments.h"
#include "cli/human.h"
#include "cli/keyspace_command.h"
#include "cli/table.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

struct GcArguments {
  std::string keyspace;
  std::string service;
  std::string at = "now";
  std::string ttl = "1h";
  std::string to = "now";
  bool wait = false;
};

struct PaceArguments {
  std::string speed;
  unsigned threads = 0;  // 0: as it is
};

constexpr uint64_t gc_poll_us = 250'000;

constexpr uint64_t ttl_forever_s = std::numeric_limits<int64_t>::max();

// PD's ttl is in seconds, and the largest of all means until it is released.
Result<uint64_t> parse_hold_seconds(const std::string& text) {
  if (text == "never") return ttl_forever_s;
  TRY_ASSIGN(const uint64_t ms, parse_duration_ms(text));
  if (ms == 0 || ms % 1000 != 0)
    return Error{Code::invalid, "a hold lasts for whole seconds, at least 1s"};
  return ms / 1000;
}

// PD's paths of GC want ids. A keyspace that is being removed has no name any more, only that.
Result<std::string> keyspace_id(ClientSession& session, const std::string& name) {
  if (names_an_id(name)) return name.substr(3);
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = pd_path(name)}));
  const auto id = number_at(answer.object, "id");
  if (!id) return Error{Code::invalid, "the server gave a keyspace without an id"};
  return std::to_string(*id);
}

std::string gc_path(const std::string& keyspace) {
  return names_an_id(keyspace) ? "/v1/keyspace-ids/" + keyspace.substr(3) + "/gc"
                               : v1_path(keyspace, "/gc");
}

bool is_true(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::string point_text(uint64_t now_ms, uint64_t point) {
  return point == 0 ? "never moved" : time_and_age(now_ms, ms_of_point(point));
}

Status explain_gc(ClientSession& session, const GcArguments& arguments) {
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = gc_path(arguments.keyspace)}));
  if (session.json) return print_line(session, answer.text);
  const json::object& gc = answer.object;
  const uint64_t now_ms = session.clock.unix_ms();
  std::vector<std::pair<std::string, std::string>> lines = {
      {"gc safe point", point_text(now_ms, number_at(gc, "gc_safe_point").value_or(0))},
      {"txn safe point", point_text(now_ms, number_at(gc, "txn_safe_point").value_or(0))},
      {"waiting", fmt::format("{}{} in {} notes", is_true(gc, "more") ? "more than " : "",
                              human_bytes(number_at(gc, "waiting_bytes").value_or(0)),
                              number_at(gc, "waiting_notes").value_or(0))},
  };
  if (const auto oldest_ms = number_at(gc, "oldest_due_ms"))
    lines.emplace_back("oldest", time_and_age(now_ms, *oldest_ms));
  if (const json::object& holder = object_at(gc, "held_by"); !holder.empty())
    lines.emplace_back(
        "held by", fmt::format("{0}; `trellis keyspace gc release {1} {0}` lets go",
                               terminal_text(text_at(holder, "service_id")), arguments.keyspace));
  if (const json::object& collecting = object_at(gc, "collecting"); !collecting.empty())
    lines.emplace_back("collected",
                       fmt::format("{} in {} notes so far",
                                   human_bytes(number_at(collecting, "bytes").value_or(0)),
                                   number_at(collecting, "notes").value_or(0)));
  if (is_true(gc, "paused"))
    lines.emplace_back("paused", "nothing is collected; `trellis keyspace gc resume` goes on");
  TRY(print_line(session, terminal_line(text_at(gc, "explanation"))));
  return session.out.write(name_value_lines(lines));
}

std::string hold_end(uint64_t now_ms, const json::object& hold) {
  const uint64_t expires_s = number_at(hold, "expired_at").value_or(0);
  constexpr uint64_t longest_s = std::numeric_limits<uint64_t>::max() / 1000;
  return expires_s > longest_s ? "never" : time_and_age(now_ms, expires_s * 1000);
}

Status show_gc_state(ClientSession& session, const GcArguments& arguments) {
  TRY_ASSIGN(const std::string id, keyspace_id(session, arguments.keyspace));
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = "/pd/api/v2/gc/state/" + id}));
  if (session.json) return print_line(session, answer.text);
  const uint64_t now_ms = session.clock.unix_ms();
  Table table({{"POINT"}, {"AT"}, {"TIMESTAMP", Align::right}, {"EXPIRES"}});
  for (const auto& [name, member] : {std::pair("gc", "gc_safe_point"), {"txn", "txn_safe_point"}}) {
    const uint64_t point = number_at(answer.object, member).value_or(0);
    table.add({name, point_text(now_ms, point), std::to_string(point), ""});
  }
  for (const json::value& value : array_at(answer.object, "service_safe_points")) {
    if (!value.is_object()) continue;
    const json::object& hold = value.get_object();
    const uint64_t point = number_at(hold, "safe_point").value_or(0);
    table.add({"hold " + terminal_text(text_at(hold, "service_id")), point_text(now_ms, point),
               std::to_string(point), hold_end(now_ms, hold)});
  }
  return session.out.write(table.take());
}

std::string hold_target(const std::string& id, const std::string& service) {
  return fmt::format("/pd/api/v2/gc/service_safepoint/{}/{}", id, percent_encode(service));
}

Status hold_gc(ClientSession& session, const GcArguments& arguments) {
  const uint64_t now_ms = session.clock.unix_ms();
  TRY_ASSIGN(const uint64_t point, parse_point(arguments.at, now_ms));
  TRY_ASSIGN(const uint64_t ttl_s, parse_hold_seconds(arguments.ttl));
  TRY_ASSIGN(const std::string id, keyspace_id(session, arguments.keyspace));
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask(json_call(HttpMethod::put, hold_target(id, arguments.service),
                                       {{"safe_point", point}, {"ttl", ttl_s}})));
  if (session.json) return print_line(session, answer.text);
  return session.out.write(
      fmt::format("{} holds what is garbage since {}; that expires: {}\n",
                  terminal_text(text_at(answer.object, "service_id")),
                  point_text(now_ms, number_at(answer.object, "safe_point").value_or(0)),
                  hold_end(now_ms, answer.object)));
}

Status release_gc(ClientSession& session, const GcArguments& arguments) {
  TRY_ASSIGN(const std::string id, keyspace_id(session, arguments.keyspace));
  TRY_ASSIGN(
      const ApiAnswer answer,
      session.api.ask({.method = HttpMethod::del, .target = hold_target(id, arguments.service)}));
  if (session.json) return print_line(session, answer.text);
  return session.out.write(
      fmt::format("{} holds nothing any more\n", terminal_text(arguments.service)));
}

// Until nothing is left that is older than the safe point. Held garbage is not: the point stays
// behind a hold.
Status wait_for_gc(ClientSession& session, const std::string& keyspace) {
  ProgressLine line(session.err, session.err_is_terminal && !session.json, session.clock);
  uint64_t total = 0;
  for (;;) {
    TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = gc_path(keyspace)}));
    const json::object& gc = answer.object;
    const auto oldest_ms = number_at(gc, "oldest_due_ms");
    if (!oldest_ms || *oldest_ms >= ms_of_point(number_at(gc, "gc_safe_point").value_or(0))) break;
    const uint64_t left = number_at(gc, "waiting_bytes").value_or(0);
    const uint64_t done = number_at(object_at(gc, "collecting"), "bytes").value_or(0);
    total = std::max(total, done + left);
    line.show(fmt::format("collecting {} {} left in {}{} notes{}",
                          progress_bar(total - std::min(left, total), total), human_bytes(left),
                          is_true(gc, "more") ? "more than " : "",
                          number_at(gc, "waiting_notes").value_or(0),
                          is_true(gc, "paused") ? "; paused: `trellis keyspace gc resume`" : ""));
    session.clock.pause_us(gc_poll_us);
  }
  return {};
}

// First the point before which nobody reads, then the one before which garbage goes: the second
// may never pass the first.
Status advance_gc(ClientSession& session, const GcArguments& arguments) {
  const uint64_t now_ms = session.clock.unix_ms();
  TRY_ASSIGN(const uint64_t target, parse_point(arguments.to, now_ms));
  TRY_ASSIGN(const std::string id, keyspace_id(session, arguments.keyspace));
  TRY_ASSIGN(const ApiAnswer txn,
             session.api.ask(json_call(HttpMethod::put, "/pd/api/v2/gc/txn_safepoint/" + id,
                                       {{"safe_point", target}})));
  const uint64_t reached = number_at(txn.object, "safe_point").value_or(0);
  TRY_ASSIGN(const ApiAnswer gc,
             session.api.ask(json_call(HttpMethod::put, "/pd/api/v2/gc/safepoint/" + id,
                                       {{"safe_point", reached}})));
  const uint64_t gc_point = number_at(gc.object, "safe_point").value_or(0);
  const std::string blocker = text_at(txn.object, "blocker_description");
  if (arguments.wait) TRY(wait_for_gc(session, arguments.keyspace));
  if (session.json)
    return print_json(session, {{"keyspace_id", number_at(txn.object, "keyspace_id").value_or(0)},
                                {"txn_safe_point", reached},
                                {"gc_safe_point", gc_point},
                                {"blocker_description", blocker}});
  std::vector<std::pair<std::string, std::string>> lines = {
      {"txn safe point", point_text(now_ms, reached)},
      {"gc safe point", point_text(now_ms, gc_point)},
  };
  if (!blocker.empty()) lines.emplace_back("held by", terminal_line(blocker));
  return session.out.write(name_value_lines(lines));
}

constexpr auto check_point = [](const std::string& text) { return parse_point(text, 0); };

void add_name_or_id(CLI::App& command, GcArguments& arguments) {
  add_argument(command, "NAME", arguments.keyspace,
               "Name of the keyspace, or id:N of one that has no name any more")
      ->required()
      ->check(check_not_empty);
}

void add_service(CLI::App& command, GcArguments& arguments) {
  add_argument(command, "SERVICE", arguments.service, "Who holds it: backup-7")
      ->required()
      ->check(check_not_empty);
}

void add_reading(CLI::App& gc, ClientCommands& commands,
                 const std::shared_ptr<GcArguments>& arguments) {
  CLI::App* explain =
      commands.add(gc, "explain", "Why garbage is still there",
                   [arguments](ClientSession& session) { return explain_gc(session, *arguments); });
  add_name_or_id(*explain, *arguments);
  explain->footer("Example: trellis keyspace gc explain shop");

  CLI::App* state = commands.add(
      gc, "state", "The safe points of a keyspace and all holds on them",
      [arguments](ClientSession& session) { return show_gc_state(session, *arguments); });
  add_name_or_id(*state, *arguments);
  state->footer("Example: trellis keyspace gc state shop");
}

void add_changing(CLI::App& gc, ClientCommands& commands,
                  const std::shared_ptr<GcArguments>& arguments) {
  CLI::App* hold =
      commands.add(gc, "hold", "Keep what is garbage since a point of time, or hold it for longer",
                   [arguments](ClientSession& session) { return hold_gc(session, *arguments); });
  add_name_or_id(*hold, *arguments);
  add_service(*hold, *arguments);
  add_text(*hold, "--at", arguments->at, "TIME", "From then on (default now)")
      ->check(checked_by(check_point));
  add_text(*hold, "--ttl", arguments->ttl, "DURATION|never", "Expires after that (default 1h)")
      ->check(checked_by(parse_hold_seconds));
  hold->footer(
      "TIME is now, a time such as 2026-11-15T04:00:00Z, or a timestamp as `gc state` prints it.\n"
      "Example: trellis keyspace gc hold shop backup-7 --ttl 6h");

  CLI::App* release =
      commands.add(gc, "release", "End a hold",
                   [arguments](ClientSession& session) { return release_gc(session, *arguments); });
  add_name_or_id(*release, *arguments);
  add_service(*release, *arguments);
  release->footer("Example: trellis keyspace gc release shop backup-7");

  CLI::App* advance = commands.add(
      gc, "advance", "Let garbage go that is older than a point of time, as far as holds allow",
      [arguments](ClientSession& session) { return advance_gc(session, *arguments); });
  add_name_or_id(*advance, *arguments);
  add_text(*advance, "--to", arguments->to, "TIME", "Up to then (default now)")
      ->check(checked_by(check_point));
  advance->add_flag("--wait", arguments->wait, "Wait until it is gone, and show how far that is");
  advance->footer(
      "TIME is now, a time such as 2026-11-15T04:00:00Z, or a timestamp as `gc state` prints it.\n"
      "Example: trellis keyspace gc advance shop --to 2026-11-15T04:00:00Z");
}

Status show_pace(ClientSession& session, const ApiCall& call) {
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask(call));
  if (session.json) return print_line(session, answer.text);
  const uint64_t limit = number_at(answer.object, "bytes_per_second").value_or(0);
  return session.out.write(name_value_lines(
      {{"collecting", is_true(answer.object, "paused") ? "paused" : "as it comes"},
       {"speed", limit == 0 ? "no limit" : human_bytes(limit) + "/s"},
       {"threads", std::to_string(number_at(answer.object, "threads").value_or(0))}}));
}

Status set_pace(ClientSession& session, const PaceArguments& arguments) {
  json::object change;
  if (!arguments.speed.empty()) {
    TRY_ASSIGN(const uint64_t speed, parse_size_bytes(arguments.speed));
    change["bytes_per_second"] = speed;
  }
  if (arguments.threads != 0) change["threads"] = arguments.threads;
  return show_pace(session, change.empty() ? ApiCall{.target = "/v1/collector"}
                                           : json_call(HttpMethod::post, "/v1/collector", change));
}

// Of all keyspaces together.
void add_pace(CLI::App& gc, ClientCommands& commands) {
  for (const bool paused : {true, false})
    commands.add(
        gc, paused ? "pause" : "resume",
        paused ? "Collect nothing, of all keyspaces, also after a restart" : "Collect again",
        [paused](ClientSession& session) {
          return show_pace(session,
                           json_call(HttpMethod::post, "/v1/collector", {{"paused", paused}}));
        });
  const auto arguments = std::make_shared<PaceArguments>();
  CLI::App* pace =
      commands.add(gc, "pace", "How fast garbage of all keyspaces is collected",
                   [arguments](ClientSession& session) { return set_pace(session, *arguments); });
  add_text(*pace, "--speed", arguments->speed, "SIZE",
           "Bytes per second at most, such as 10MiB; 0: no limit")
      ->check(checked_by(parse_size_bytes));
  pace->add_option("--threads", arguments->threads, "That work on a keyspace at a time")
      ->type_name("N")
      ->check(CLI::Range(1, 16));
  pace->footer("It stays so after a restart. Example: trellis keyspace gc pace --speed 10MiB");
}

}  // namespace

void add_gc_commands(CLI::App& keyspace, ClientCommands& commands) {
  CLI::App* gc = keyspace.add_subcommand("gc", "Garbage: when it goes, and who holds it");
  gc->require_subcommand(1);
  const auto arguments = std::make_shared<GcArguments>();
  add_reading(*gc, commands, arguments);
  add_changing(*gc, commands, arguments);
  add_pace(*gc, commands);
}

}  // namespace trellis
