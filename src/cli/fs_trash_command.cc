// `trellis fs trash ...`: what was removed and can still be had back.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "base/duration.h"
#include "cli/bytes_json.h"
#include "cli/fs_command.h"
#include "cli/human.h"
#include "cli/remote_files.h"
#include "cli/table.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr uint64_t trash_page_entries = 1'000;

std::string keep_text(uint64_t keep_ms) {
  return keep_ms == 0 ? "there is no trash: what is removed is gone"
                      : fmt::format("what is removed is kept for {}", human_duration(keep_ms));
}

// "2026111606": "2026-11-16 06h"
std::string hour_text(const std::string& hour) {
  if (hour.size() != 10) return terminal_text(hour);
  return terminal_text(fmt::format("{}-{}-{} {}h", hour.substr(0, 4), hour.substr(4, 2),
                                   hour.substr(6, 2), hour.substr(8)));
}

Status list_trash(ClientSession& session) {
  Table table({{"REMOVED (UTC)"}, {"TYPE"}, {"NAME"}, {"ITEM"}});
  std::optional<Bytes> resume;
  do {
    std::string target = fs_target(session, fmt::format("/trash?limit={}", trash_page_entries));
    if (resume) target += "&start_after=" + percent_encode(*resume);
    TRY_ASSIGN(const ApiAnswer page, session.api.ask({.target = target}));
    for (const json::value& value : array_at(page.object, "entries")) {
      if (!value.is_object()) continue;
      const json::object& entry = value.get_object();
      if (session.json) {
        TRY(print_json(session, entry));
        continue;
      }
      TRY_ASSIGN(const Bytes item, bytes_of(entry, "item"));
      TRY_ASSIGN(const Bytes name, bytes_of(entry, "name"));
      table.add({hour_text(text_at(entry, "hour")), terminal_text(text_at(entry, "type")),
                 terminal_text(name), terminal_text(item)});
    }
    if (!session.json) TRY(session.out.write(table.take()));
    std::optional<Bytes> next;
    if (page.object.contains("resume") || page.object.contains("resume_base64")) {
      TRY_ASSIGN(next, bytes_of(page.object, "resume"));
    }
    if (!next && !session.json)
      TRY(print_line(session, keep_text(number_at(page.object, "keep_ms").value_or(0))));
    if (next == resume) break;  // a server that does not move on
    resume = std::move(next);
  } while (resume);
  return {};
}

struct RestoreArguments {
  std::string item;
  std::string to;
};

Status restore_item(ClientSession& session, const RestoreArguments& arguments) {
  json::object body;
  TRY_ASSIGN(const Bytes item, parse_bytes(arguments.item, true));
  add_bytes(body, "item", item);
  if (!arguments.to.empty()) {
    TRY_ASSIGN(const Bytes to, parse_remote_path(arguments.to));
    add_bytes(body, "to", to);
  }
  TRY_ASSIGN(
      const ApiAnswer answer,
      session.api.ask(json_call(HttpMethod::post, fs_target(session, "/trash/restore"), body)));
  return session.json ? print_line(session, answer.text) : Status();
}

Status empty_the_trash(ClientSession& session) {
  TRY_ASSIGN(
      const ApiAnswer answer,
      session.api.ask({.method = HttpMethod::post, .target = fs_target(session, "/trash/empty")}));
  if (session.json) return print_line(session, answer.text);
  return print_line(session, "the trash is empty; its space is freed in the background");
}

Status keep_for(ClientSession& session, const std::string& duration) {
  TRY_ASSIGN(const uint64_t keep_ms, parse_duration_ms(duration));
  TRY(session.api.call(
      json_call(HttpMethod::put, fs_target(session, "/trash"), {{"keep_ms", keep_ms}})));
  if (session.json) return print_json(session, {{"keep_ms", keep_ms}});
  return print_line(session, keep_text(keep_ms));
}

}  // namespace

void add_fs_trash_commands(CLI::App& fs, ClientCommands& commands) {
  CLI::App* trash = fs.add_subcommand("trash", "What was removed and can still be had back");
  trash->require_subcommand(1);
  CLI::App* list = commands.add_raw(*trash, "list", "List what is in it, the oldest first",
                                    [](ClientSession& session) { return list_trash(session); });
  list->footer("Example: trellis fs trash list");

  auto restored = std::make_shared<RestoreArguments>();
  CLI::App* restore = commands.add_raw(
      *trash, "restore", "Have something back",
      [restored](ClientSession& session) { return restore_item(session, *restored); });
  add_argument(*restore, "ITEM", restored->item, "As `fs trash list` prints it")->required();
  add_text(*restore, "--to", restored->to, "PATH", "There (default where it was, under its name)");
  restore->footer("Example: trellis fs trash restore 2026111606/1-17-plan.txt --to plan-again.txt");

  CLI::App* empty =
      commands.add_raw(*trash, "empty", "Remove all that is in it, for good",
                       [](ClientSession& session) { return empty_the_trash(session); });
  empty->footer("Example: trellis fs trash empty");

  auto duration = std::make_shared<std::string>();
  CLI::App* keep =
      commands.add_raw(*trash, "keep", "Say for how long things stay in it",
                       [duration](ClientSession& session) { return keep_for(session, *duration); });
  add_argument(*keep, "DURATION", *duration, "Such as 7d; 0s is no trash")
      ->required()
      ->check(checked_by(parse_duration_ms));
  keep->footer("Example: trellis fs trash keep 7d");
}

}  // namespace trellis
