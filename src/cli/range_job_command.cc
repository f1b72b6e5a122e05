// `trellis range recount|check|jobs`: long jobs over all ranges.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "cli/human.h"
#include "cli/range_command.h"
#include "cli/table.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr uint64_t range_job_poll_us = 200'000;

struct JobArguments {
  unsigned threads = 2;
  std::string speed;  // empty: not said
  bool background = false;
  std::string id;
  std::string action;
  bool checksums = false;
};

// Bytes where they are known, else ranges: small stores have few bytes and many ranges.
double done_part(const json::object& job) {
  const auto part = [&](std::string_view done, std::string_view total) {
    const uint64_t all = number_at(job, total).value_or(0);
    return all == 0 ? 1.0
                    : std::min(1.0, static_cast<double>(number_at(job, done).value_or(0)) /
                                        static_cast<double>(all));
  };
  return std::min(part("bytes_done", "bytes_total"), part("ranges_done", "ranges_total"));
}

std::string job_text(const json::object& job) {
  return fmt::format("{} {}, {} of {} ranges, {}, {}", text_at(job, "kind"),
                     progress_bar(done_part(job)), number_at(job, "ranges_done").value_or(0),
                     number_at(job, "ranges_total").value_or(0),
                     human_bytes(number_at(job, "bytes_done").value_or(0)), text_at(job, "state"));
}

Status print_result(ClientSession& session, const json::object& job) {
  return session.out.write(
      name_value_lines({{"state", text_at(job, "state")},
                        {"ranges", std::to_string(number_at(job, "ranges_done").value_or(0))},
                        {"keys", std::to_string(number_at(job, "keys").value_or(0))},
                        {"bytes", human_bytes(number_at(job, "bytes_done").value_or(0))},
                        {"checksum", text_at(job, "checksum")}}));
}

Status finish_job(ClientSession& session, const ApiAnswer& answer) {
  const json::object& job = answer.object;
  if (session.json) TRY(print_line(session, answer.text));
  for (const json::value& value : array_at(job, "findings"))
    if (value.is_object() && !session.json)
      TRY(print_line(
          session, fmt::format("range {}: {}",
                               number_at(object_at(value.get_object(), "range"), "id").value_or(0),
                               terminal_line(text_at(value.get_object(), "what")))));
  if (const std::string error = text_at(job, "error"); !error.empty())
    return Error{Code::unavailable, "the job failed: " + error};
  if (text_at(job, "state") == "canceled")
    return Error{Code::refused,
                 fmt::format("the job {} was canceled", number_at(job, "id").value_or(0))};
  const size_t found = array_at(job, "findings").size();
  if (!session.json) TRY(print_result(session, job));
  if (found == 0) return {};
  return Error{Code::corrupt,
               fmt::format("{} ranges did not read the same: they are being written to, or the "
                           "disk fails; run `trellis range check` again when they rest",
                           found)};
}

Status run_job(ClientSession& session, const JobArguments& arguments, std::string_view kind) {
  TRY_ASSIGN(const uint64_t speed,
             arguments.speed.empty() ? Result<uint64_t>(0) : parse_size_bytes(arguments.speed));
  TRY_ASSIGN(ApiAnswer answer,
             session.api.ask(json_call(
                 HttpMethod::post, "/v1/ranges/jobs",
                 {{"kind", kind}, {"threads", arguments.threads}, {"bytes_per_second", speed}})));
  if (arguments.background) {
    if (session.json) return print_line(session, answer.text);
    return print_line(session, fmt::format("job {}: `trellis range jobs` says how far it is",
                                           number_at(answer.object, "id").value_or(0)));
  }
  ProgressLine line(session.err, session.err_is_terminal && !session.json, session.clock);
  const std::string target =
      fmt::format("/v1/ranges/jobs/{}", number_at(answer.object, "id").value_or(0));
  while (number_at(answer.object, "finished_at_ms").value_or(0) == 0) {
    line.show(job_text(answer.object));
    session.clock.pause_us(range_job_poll_us);
    TRY_ASSIGN(answer, session.api.ask({.target = target}));
  }
  line.clear();
  return finish_job(session, answer);
}

Status show_checksums(ClientSession& session, const std::string& id) {
  if (id.empty()) return wrong_use("--checksums is of one job: trellis range jobs ID --checksums");
  std::string from;
  while (true) {
    TRY_ASSIGN(const ApiAnswer answer,
               session.api.ask({.target = fmt::format(
                                    "/v1/ranges/jobs/{}/checksums?limit=1000&from={}", id, from)}));
    for (const json::value& value : array_at(answer.object, "ranges")) {
      if (!value.is_object()) continue;
      const json::object& checked = value.get_object();
      TRY(print_line(session,
                     session.json
                         ? json::serialize(checked)
                         : fmt::format("{}  {:>12} keys  range {}", text_at(checked, "checksum"),
                                       number_at(checked, "keys").value_or(0),
                                       number_at(object_at(checked, "range"), "id").value_or(0))));
    }
    from = text_at(answer.object, "next");
    if (from.empty()) return {};
  }
}

Status show_jobs(ClientSession& session, const JobArguments& arguments) {
  if (arguments.checksums) return show_checksums(session, arguments.id);
  if (!arguments.id.empty()) {
    json::object change;
    if (!arguments.action.empty()) change["action"] = arguments.action;
    if (!arguments.speed.empty()) {
      TRY_ASSIGN(const uint64_t speed, parse_size_bytes(arguments.speed));
      change["bytes_per_second"] = speed;
    }
    ApiCall call = change.empty()
                       ? ApiCall{.target = "/v1/ranges/jobs/" + arguments.id}
                       : json_call(HttpMethod::post, "/v1/ranges/jobs/" + arguments.id, change);
    TRY_ASSIGN(const ApiAnswer answer, session.api.ask(call));
    return session.json ? print_line(session, answer.text)
                        : print_line(session, job_text(answer.object));
  }
  if (!arguments.action.empty() || !arguments.speed.empty())
    return wrong_use("which job? `trellis range jobs` lists them");
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.target = "/v1/ranges/jobs"}));
  if (session.json) return print_line(session, answer.text);
  Table table({{"JOB", Align::right}, {"STARTED"}, {"PROGRESS"}});
  for (const json::value& value : array_at(answer.object, "jobs")) {
    if (!value.is_object()) continue;
    const json::object& job = value.get_object();
    table.add({std::to_string(number_at(job, "id").value_or(0)),
               iso_time(number_at(job, "started_at_ms").value_or(0)), job_text(job)});
  }
  return session.out.write(table.take());
}

CLI::Option* add_speed(CLI::App& command, JobArguments& arguments) {
  return add_text(command, "--speed", arguments.speed, "SIZE",
                  "Bytes per second at most, such as 10MiB (default 0, no limit)")
      ->check(checked_by(parse_size_bytes));
}

}  // namespace

void add_range_job_commands(CLI::App& range, ClientCommands& commands) {
  struct Job {
    const char* name;
    const char* help;
  };
  for (const Job& job : {Job{"recount", "Count bytes and keys of all ranges"},
                         Job{"check", "Read all ranges twice and compare what was read"}}) {
    const auto arguments = std::make_shared<JobArguments>();
    CLI::App* command = commands.add(range, job.name, job.help,
                                     [arguments, name = job.name](ClientSession& session) {
                                       return run_job(session, *arguments, name);
                                     });
    command->add_option("--threads", arguments->threads, "Ranges at a time (default 2)")
        ->type_name("N")
        ->check(CLI::Range(1, 16));
    add_speed(*command, *arguments);
    command->add_flag("--background", arguments->background, "Do not wait for its end");
    command->footer("Exits with 1 if the job fails or finds something.");
  }
  const auto arguments = std::make_shared<JobArguments>();
  CLI::App* jobs =
      commands.add(range, "jobs", "Jobs over all ranges: how far they are; pause or end one",
                   [arguments](ClientSession& session) { return show_jobs(session, *arguments); });
  add_argument(*jobs, "ID", arguments->id, "One job")
      ->check(checked_by([](const std::string& text) { return parse_whole_number(text); }));
  for (const char* const action : {"pause", "resume", "cancel"})
    jobs->add_flag_callback(
        fmt::format("--{}", action), [arguments, action] { arguments->action = action; },
        fmt::format("{} the job", action));
  add_speed(*jobs, *arguments);
  jobs->add_flag("--checksums", arguments->checksums,
                 "What it found in each range, one a line, to compare with another store");
  jobs->footer("Example: trellis range jobs 3 --pause");
}

}  // namespace trellis
