#include "cli/backup_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <memory>

#include "cli/human.h"
#include "cli/table.h"
#include "net/url.h"
#include "server/offline_restore.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr uint64_t job_poll_us = 100'000;
constexpr uint64_t restore_threads_max = 32;

struct BackupArguments {
  std::string folder;  // "-": a stream
  std::string backup;
  std::string keyspace;
  std::string name;
  std::string limit;
  std::string threads;
  std::string data;
  std::string job;
  bool detach = false;
};

// The server's machine is this one, if paths are to mean the same.
Result<std::string> absolute_folder(const std::string& folder) {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::absolute(folder, failed);
  if (failed) return Error{Code::invalid, fmt::format("{}: {}", folder, failed.message())};
  return path.lexically_normal().string();
}

Result<uint64_t> limit_of(const BackupArguments& arguments) {
  return arguments.limit.empty() ? Result<uint64_t>(0) : parse_limit_of_bytes(arguments.limit);
}

Result<json::object> job_body(const BackupArguments& arguments) {
  TRY_ASSIGN(const std::string folder, absolute_folder(arguments.folder));
  json::object body{{"repository", folder}};
  if (!arguments.backup.empty()) body["backup"] = arguments.backup;
  if (!arguments.keyspace.empty()) body["keyspace"] = arguments.keyspace;
  if (!arguments.name.empty()) body["name"] = arguments.name;
  TRY_ASSIGN(const uint64_t limit, limit_of(arguments));
  if (limit != 0) body["bytes_per_second"] = limit;
  if (!arguments.threads.empty()) {
    TRY_ASSIGN(const uint64_t threads, parse_whole_number(arguments.threads, 1));
    body["threads"] = threads;
  }
  return body;
}

std::string progress_line(std::string_view id, std::string_view state, std::string_view phase,
                          uint64_t done, uint64_t total) {
  std::string text = fmt::format("{}: {}", id, state == "running" ? phase : state);
  if (total > 0)
    text += fmt::format(" {}, {} of {}", progress_bar(done, total), human_bytes(done),
                        human_bytes(total));
  return text;
}

std::string progress_line(const json::object& job) {
  return progress_line(terminal_text(text_at(job, "id")), text_at(job, "state"),
                       text_at(job, "phase"), number_at(job, "bytes_done").value_or(0),
                       number_at(job, "bytes_total").value_or(0));
}

std::string result_line(const json::object& job) {
  const std::string kind = text_at(job, "kind");
  const std::string backup = terminal_text(text_at(job, "backup"));
  const std::string bytes = human_bytes(number_at(job, "bytes").value_or(0));
  const uint64_t entries = number_at(job, "entries").value_or(0);
  if (kind == "create")
    return fmt::format("backup {}: {} entries, {}, of which {} are new", backup, entries, bytes,
                       human_bytes(number_at(job, "added_bytes").value_or(0)));
  if (kind == "restore")
    return fmt::format("keyspace {} is restored from {}: {} keys, {}",
                       terminal_text(text_at(job, "keyspace")), backup, entries, bytes);
  return fmt::format("{} entries and {} of chunks are whole", entries, bytes);
}

// Until the job is over. Ctrl-C leaves it running.
Status wait_for_job(ClientSession& session, json::object job) {
  const std::string target = "/v1/backups/jobs/" + percent_encode(text_at(job, "id"));
  ProgressLine line(session.err, session.err_is_terminal && !session.json, session.clock);
  for (;;) {
    const std::string state = text_at(job, "state");
    if (state != "running" && state != "paused") break;
    line.show(progress_line(job));
    session.clock.pause_us(job_poll_us);
    TRY_ASSIGN(ApiAnswer answer, session.api.ask({.target = target}));
    job = std::move(answer.object);
  }
  line.clear();
  if (session.json) TRY(print_json(session, job));
  if (!session.json)
    for (const json::value& warning : array_at(job, "warnings"))
      if (warning.is_string())
        session.err << "trellis: " << terminal_line(warning.as_string()) << '\n';
  if (text_at(job, "state") == "done")
    return session.json ? Status() : print_line(session, result_line(job));
  if (!session.json)
    for (const json::value& damage : array_at(job, "damage"))
      if (damage.is_string()) TRY(print_line(session, terminal_line(damage.as_string())));
  const json::object& error = object_at(job, "error");
  return Error{Code::refused, error.empty()
                                  ? fmt::format("the job {} was canceled", text_at(job, "id"))
                                  : text_at(error, "message")};
}

Status begin_job(ClientSession& session, const BackupArguments& arguments,
                 const std::string& target) {
  TRY_ASSIGN(const json::object body, job_body(arguments));
  TRY_ASSIGN(ApiAnswer answer, session.api.ask(json_call(HttpMethod::post, target, body)));
  if (!arguments.detach) return wait_for_job(session, std::move(answer.object));
  if (session.json) return print_json(session, answer.object);
  return print_line(session, fmt::format("job {} has begun; `trellis backup jobs` shows it",
                                         terminal_text(text_at(answer.object, "id"))));
}

// --- streams ---

Result<std::string> stream_target(const BackupArguments& arguments) {
  TRY_ASSIGN(const uint64_t limit, limit_of(arguments));
  const std::pair<std::string_view, std::string> parts[] = {
      {"keyspace", arguments.keyspace},
      {"name", arguments.name},
      {"bytes_per_second", limit == 0 ? "" : std::to_string(limit)}};
  std::string target = "/v1/backups/stream";
  char separator = '?';
  for (const auto& [name, value] : parts) {
    if (value.empty()) continue;
    target += fmt::format("{}{}={}", separator, name, percent_encode(value));
    separator = '&';
  }
  return target;
}

Status create_stream(ClientSession& session, const BackupArguments& arguments) {
  if (session.out.is_terminal())
    return wrong_use("a backup is no text for a terminal: send it to a file or a pipe");
  if (arguments.detach || !arguments.threads.empty())
    return wrong_use("--threads and --detach are for folders: a stream is read in order");
  TRY_ASSIGN(const std::string target, stream_target(arguments));
  uint64_t bytes = 0;
  ProgressLine line(session.err, session.err_is_terminal, session.clock);
  TRY(session.api.call({.target = target, .receive = [&](const HttpAnswer&, ByteView piece) {
                          bytes += piece.size();
                          if (line.is_due())
                            line.show(fmt::format("streaming: {}", human_bytes(bytes)));
                          return session.out.write(piece);
                        }}));
  return session.out.flush();
}

Status restore_stream(ClientSession& session, const BackupArguments& arguments) {
  if (!arguments.backup.empty() || arguments.detach || !arguments.threads.empty())
    return wrong_use("BACKUP, --threads and --detach are for folders: a stream is one backup");
  TRY_ASSIGN(const std::string target, stream_target(arguments));
  uint64_t bytes = 0;
  ProgressLine line(session.err, session.err_is_terminal, session.clock);
  ApiCall call{.method = HttpMethod::post,
               .target = target,
               .content_type = "application/octet-stream",
               .send = [&]() -> Result<std::optional<Bytes>> {
                 TRY_ASSIGN(Bytes piece, session.in.read_some());
                 if (piece.empty()) return std::optional<Bytes>();
                 bytes += piece.size();
                 if (line.is_due()) line.show(fmt::format("sending: {}", human_bytes(bytes)));
                 return std::optional(std::move(piece));
               }};
  TRY_ASSIGN(ApiAnswer answer, session.api.ask(call));
  line.clear();
  return wait_for_job(session, std::move(answer.object));
}

Status restore_whole(ClientSession& session, const BackupArguments& arguments) {
  if (!arguments.keyspace.empty() || !arguments.name.empty())
    return wrong_use("--data restores everything: it goes without --keyspace and --as");
  if (arguments.detach) return wrong_use("--data needs no server: there is nothing to detach from");
  TRY_ASSIGN(const uint64_t limit, limit_of(arguments));
  OfflineRestore asked{.data = arguments.data,
                       .repository = {},
                       .backup = arguments.backup,
                       .bytes_per_second = limit};
  if (!arguments.threads.empty()) {
    TRY_ASSIGN(const uint64_t threads, parse_whole_number(arguments.threads, 1));
    asked.threads = static_cast<unsigned>(std::min<uint64_t>(threads, restore_threads_max));
  }
  if (arguments.folder == "-") {
    asked.read = [&] { return session.in.read_some(); };
  } else {
    TRY_ASSIGN(asked.repository, absolute_folder(arguments.folder));
  }
  ProgressLine line(session.err, session.err_is_terminal && !session.json, session.clock);
  asked.on_progress = [&](std::string_view phase, uint64_t done, uint64_t total) {
    line.show(progress_line("restore", "running", phase, done, total));
  };
  TRY_ASSIGN(const OfflineRestored restored, restore_offline(asked));
  line.clear();
  if (session.json)
    return print_json(
        session,
        {{"backup", restored.backup}, {"entries", restored.entries}, {"bytes", restored.bytes}});
  return print_line(session, fmt::format("backup {} is restored: {} entries, {}; `trellis serve "
                                         "--data {}` serves them",
                                         restored.backup, restored.entries,
                                         human_bytes(restored.bytes), arguments.data));
}

Status create_backup(ClientSession& session, const BackupArguments& arguments) {
  if (arguments.folder == "-") return create_stream(session, arguments);
  return begin_job(session, arguments, "/v1/backups");
}

Status restore_backup(ClientSession& session, const BackupArguments& arguments) {
  if (!arguments.data.empty()) return restore_whole(session, arguments);
  if (arguments.folder == "-") return restore_stream(session, arguments);
  return begin_job(session, arguments, "/v1/backups/restores");
}

// --- lists ---

// What failed, keeps room on the disk, and what to do about it.
Status tell_kept_copies(ClientSession& session) {
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = "/v1/backups/jobs"}));
  for (const json::value& value : array_at(answer.object, "jobs")) {
    if (!value.is_object()) continue;
    const json::object& job = value.get_object();
    const uint64_t bytes = number_at(job, "copy_bytes").value_or(0);
    if (bytes == 0) continue;
    const std::string id = terminal_text(text_at(job, "id"));
    TRY(print_line(session,
                   fmt::format("{} failed ({}) and keeps a copy of the store, {}: `trellis backup "
                               "resume {}` goes on, `trellis backup cancel {}` gives it up",
                               id, terminal_line(text_at(object_at(job, "error"), "message")),
                               human_bytes(bytes), id, id)));
  }
  return {};
}

Status list_backups(ClientSession& session, const BackupArguments& arguments) {
  TRY_ASSIGN(const std::string folder, absolute_folder(arguments.folder));
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask({.target = "/v1/backups?repository=" + percent_encode(folder)}));
  if (session.json) return print_line(session, answer.text);
  Table table({{"BACKUP"},
               {"MADE"},
               {"OF"},
               {"ENTRIES", Align::right},
               {"BYTES", Align::right},
               {"NEW", Align::right}});
  for (const json::value& value : array_at(answer.object, "backups")) {
    if (!value.is_object()) continue;
    const json::object& backup = value.get_object();
    if (backup.contains("damage")) {
      table.add({terminal_text(text_at(backup, "id")), "damaged", "", "", "", ""});
      continue;
    }
    const json::array& keyspaces = array_at(backup, "keyspaces");
    const json::value* whole = backup.if_contains("whole");
    const bool is_whole = whole != nullptr && whole->is_bool() && whole->get_bool();
    table.add({terminal_text(text_at(backup, "id")),
               iso_time(number_at(backup, "created_ms").value_or(0)),
               is_whole || keyspaces.empty() || !keyspaces[0].is_string()
                   ? "all"
                   : terminal_text(keyspaces[0].get_string()),
               std::to_string(number_at(backup, "entries").value_or(0)),
               human_bytes(number_at(backup, "bytes").value_or(0)),
               human_bytes(number_at(backup, "added_bytes").value_or(0))});
  }
  TRY(session.out.write(table.take()));
  return tell_kept_copies(session);
}

Status list_jobs(ClientSession& session) {
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = "/v1/backups/jobs"}));
  if (session.json) return print_line(session, answer.text);
  for (const json::value& job : array_at(answer.object, "jobs"))
    if (job.is_object()) TRY(print_line(session, progress_line(job.get_object())));
  return tell_kept_copies(session);
}

Status change_job(ClientSession& session, const BackupArguments& arguments,
                  const std::string& change) {
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask({.method = HttpMethod::post,
                              .target = fmt::format("/v1/backups/jobs/{}/{}",
                                                    percent_encode(arguments.job), change)}));
  if (session.json) return print_line(session, answer.text);
  return print_line(session, progress_line(answer.object));
}

Status delete_backup(ClientSession& session, const BackupArguments& arguments) {
  TRY_ASSIGN(const std::string folder, absolute_folder(arguments.folder));
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask({.method = HttpMethod::del,
                              .target = fmt::format("/v1/backups/{}?repository={}",
                                                    percent_encode(arguments.backup),
                                                    percent_encode(folder))}));
  if (session.json) return print_line(session, answer.text);
  return print_line(session,
                    fmt::format("backup {} is deleted: {} are free", arguments.backup,
                                human_bytes(number_at(answer.object, "freed_bytes").value_or(0))));
}

// --- the commands ---

using Arguments = std::shared_ptr<BackupArguments>;

void add_folder(CLI::App& command, const Arguments& arguments, const std::string& name,
                const std::string& help) {
  add_text(command, name, arguments->folder, "FOLDER", help)->required()->check(check_not_empty);
}

void add_pace(CLI::App& command, const Arguments& arguments) {
  add_text(command, "--limit", arguments->limit, "SIZE", "At most so much a second: 50MiB")
      ->check(checked_by(parse_limit_of_bytes));
  add_text(command, "--threads", arguments->threads, "N", "How many read at a time (default 2)")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text, 1); }));
  command.add_flag("--detach", arguments->detach, "Do not wait: `trellis backup jobs` shows it");
}

void add_create_command(CLI::App& backup, ClientCommands& commands) {
  const auto arguments = std::make_shared<BackupArguments>();
  CLI::App* create = commands.add(
      backup, "create", "Make a backup, of one instant, while the server goes on",
      [arguments](ClientSession& session) { return create_backup(session, *arguments); });
  add_folder(*create, arguments, "--to",
             "Where the backups are, on the server's machine; - is standard output");
  add_text(*create, "--keyspace", arguments->keyspace, "NAME", "Only that (default everything)")
      ->check(check_not_empty);
  add_pace(*create, arguments);
  create->footer(
      "What is in the folder already is not written again: a second backup is incremental by "
      "itself. Ctrl-C leaves the job running.\n"
      "Examples:\n"
      "  trellis backup create --to /backups/trellis\n"
      "  trellis backup create --keyspace shop --to - | ssh other trellis backup restore --from -");
}

void add_restore_command(CLI::App& backup, ClientCommands& commands) {
  const auto arguments = std::make_shared<BackupArguments>();
  CLI::App* restore = commands.add(
      backup, "restore", "Make a keyspace, or a whole new data folder, of a backup",
      [arguments](ClientSession& session) { return restore_backup(session, *arguments); });
  add_argument(*restore, "BACKUP", arguments->backup,
               "Which (default the latest of what is asked for)");
  add_folder(*restore, arguments, "--from", "Where the backups are; - is standard input");
  add_text(*restore, "--keyspace", arguments->keyspace, "NAME",
           "Which of its keyspaces (default its only one)")
      ->check(check_not_empty);
  add_text(*restore, "--as", arguments->name, "NAME", "What to call it (default its old name)")
      ->check(check_not_empty);
  add_text(*restore, "--data", arguments->data, "NEW",
           "Everything, into this new data folder, without a server")
      ->check(check_not_empty);
  add_pace(*restore, arguments);
  restore->footer(
      "All of the backup is checked before anything is written. Nobody can use the keyspace "
      "before it is whole.\n"
      "Examples:\n"
      "  trellis backup restore --from /backups/trellis --keyspace shop --as shop-yesterday\n"
      "  trellis backup restore --from /backups/trellis --data /var/lib/trellis-new");
}

void add_job_commands(CLI::App& backup, ClientCommands& commands) {
  commands.add(backup, "jobs", "Show the jobs of the server",
               [](ClientSession& session) { return list_jobs(session); });
  const std::pair<const char*, const char*> changes[] = {
      {"pause", "Let a job wait"},
      {"resume", "Let a job go on, also one that failed"},
      {"cancel", "Give a job up, and remove what it made"}};
  for (const auto& [name, help] : changes) {
    const auto arguments = std::make_shared<BackupArguments>();
    CLI::App* command = commands.add(
        backup, name, help, [arguments, change = std::string(name)](ClientSession& session) {
          return change_job(session, *arguments, change);
        });
    add_argument(*command, "JOB", arguments->job, "As `trellis backup jobs` shows it")
        ->required()
        ->check(check_not_empty);
  }
}

}  // namespace

void add_backup_commands(CLI::App& app, ClientCommands& commands) {
  CLI::App* backup = app.add_subcommand("backup", "Make, check and restore backups");
  backup->require_subcommand(1);
  add_create_command(*backup, commands);

  const auto listed = std::make_shared<BackupArguments>();
  CLI::App* list =
      commands.add(*backup, "list", "List the backups of a folder",
                   [listed](ClientSession& session) { return list_backups(session, *listed); });
  add_folder(*list, listed, "--from", "Where the backups are");

  add_restore_command(*backup, commands);

  const auto verified = std::make_shared<BackupArguments>();
  CLI::App* verify =
      commands.add(*backup, "verify", "Read backups to their end, and say what is damaged",
                   [verified](ClientSession& session) {
                     return begin_job(session, *verified, "/v1/backups/verifications");
                   });
  add_argument(*verify, "BACKUP", verified->backup, "Which (default all)");
  add_folder(*verify, verified, "--from", "Where the backups are");
  add_pace(*verify, verified);

  const auto deleted = std::make_shared<BackupArguments>();
  CLI::App* remove =
      commands.add(*backup, "delete", "Delete a backup, and what no other needs",
                   [deleted](ClientSession& session) { return delete_backup(session, *deleted); });
  add_argument(*remove, "BACKUP", deleted->backup, "Which")->required()->check(check_not_empty);
  add_folder(*remove, deleted, "--from", "Where the backups are");

  add_job_commands(*backup, commands);
}

}  // namespace trellis
