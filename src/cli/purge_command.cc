// `trellis keyspace purge`: removes all data of an archived keyspace.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/human.h"
#include "cli/keyspace_command.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr uint64_t poll_us = 250'000;
constexpr size_t answer_bytes_max = 4096;

struct PurgeArguments {
  std::string name;
  bool wait = false;
  bool yes = false;
};

// Nobody types a whole name by accident.
Status confirm(ClientSession& session, const std::string& name) {
  fmt::print(session.err,
             "All data of {0} will be removed for good. Type {0} to go on: ", terminal_text(name));
  session.err.flush();
  TRY_ASSIGN(const auto typed, session.in.read_line(answer_bytes_max));
  if (typed != name) return Error{Code::refused, "that is not its name: nothing was done"};
  return {};
}

// With a bar while it is under way, for a terminal.
std::string progress_text(const std::string& name, uint64_t id, const json::object& purge,
                          bool with_bar) {
  const uint64_t total = number_at(purge, "bytes_total").value_or(0);
  const uint64_t done = number_at(purge, "bytes_done").value_or(0);
  std::string text = fmt::format("{}: {}", terminal_text(name), text_at(purge, "state"));
  // What was counted at the start may be a little less than what there was.
  if (with_bar)
    text += " " + progress_bar(done, total);
  else if (total > 0)
    text += fmt::format(", {}%", std::min<uint64_t>(100, done * 100 / total));
  text += fmt::format(", {} of {}, {} entries removed", human_bytes(done), human_bytes(total),
                      number_at(purge, "entries_done").value_or(0));
  if (const std::string holder = text_at(purge, "held_by"); !holder.empty())
    text += fmt::format("; held by {0}: see `trellis keyspace gc state id:{1}`",
                        terminal_line(holder), id);
  if (text_at(purge, "state") == "paused") text += "; `trellis keyspace gc resume` goes on";
  return text;
}

// Progress is polled: the server tells nobody of it.
Status wait_for_purge(ClientSession& session, const std::string& name, uint64_t id) {
  const std::string target = fmt::format("/v1/keyspace-ids/{}/purge", id);
  ProgressLine line(session.err, session.err_is_terminal && !session.json, session.clock);
  std::string shown;
  for (;;) {
    TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = target}));
    const bool is_done = text_at(answer.object, "state") == "done";
    const bool is_bar = line.is_terminal() && !is_done;
    const std::string text = progress_text(name, id, answer.object, is_bar);
    if (is_bar) {
      line.show(text);
    } else if (text != shown) {
      line.clear();
      TRY(print_line(session, session.json ? answer.text : text));
      TRY(session.out.flush());
    }
    shown = text;
    if (is_done) return {};
    session.clock.pause_us(poll_us);
  }
}

Status purge_keyspace(ClientSession& session, const PurgeArguments& arguments) {
  if (!arguments.yes) {
    if (!session.in.is_terminal())
      return Error{Code::invalid,
                   "a purge cannot be undone, and nobody is there to ask: add --yes"};
    TRY(confirm(session, arguments.name));
  }
  TRY_ASSIGN(
      const ApiAnswer answer,
      session.api.ask({.method = HttpMethod::post, .target = v1_path(arguments.name, "/purge")}));
  const json::object& keyspace = object_at(answer.object, "keyspace");
  const uint64_t id = number_at(keyspace, "id").value_or(0);
  if (arguments.wait) return wait_for_purge(session, arguments.name, id);
  if (session.json) return print_json(session, keyspace);
  return session.out.write(fmt::format(
      "{} is {}: its data is being removed; `trellis keyspace show --id {}` says how far that is\n",
      terminal_text(arguments.name), text_at(keyspace, "state"), id));
}

}  // namespace

void add_purge_command(CLI::App& keyspace, ClientCommands& commands) {
  auto arguments = std::make_shared<PurgeArguments>();
  CLI::App* purge = commands.add(
      keyspace, "purge", "Remove all data of an archived keyspace now, for good",
      [arguments](ClientSession& session) { return purge_keyspace(session, *arguments); });
  add_keyspace_name(*purge, arguments->name)->required();
  purge->add_flag("--wait", arguments->wait, "Wait until all of it is gone, and say how far it is");
  purge->add_flag("--yes", arguments->yes, "Do not ask; needed where nobody could answer");
  purge->footer(
      "On a terminal it asks for the name once more.\n"
      "Examples:\n"
      "  trellis keyspace purge shop\n"
      "  trellis keyspace purge shop --yes --wait");
}

}  // namespace trellis
