#include "cli/client_command.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <memory>

#include "base/duration.h"
#include "cli/human.h"
#include "json/json_text.h"
#include "net/url.h"

namespace trellis {
namespace {

constexpr std::string_view default_server = "http://127.0.0.1:7380";
constexpr size_t token_bytes_max = 1024;
constexpr uint64_t progress_pause_us = 200'000;

// As given on the command line.
struct ClientOptions {
  std::string server;
  std::string keyspace;
  std::string token;
  bool has_user = false;  // whether it can be given
  std::string user;
  std::string ca_file;
  std::string timeout = "30s";
  bool json = false;
};

// A flag wins over a variable; an empty variable is none.
std::string flag_or_variable(const std::string& flag, const char* variable) {
  if (!flag.empty()) return flag;
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

// It becomes a part of a header, and must not become more than that.
Status check_token(std::string_view token) {
  const auto is_plain = [](char c) { return c > ' ' && c < 0x7f; };
  if (!std::all_of(token.begin(), token.end(), is_plain))
    return wrong_use("the token has spaces or other characters that no token has");
  return {};
}

Result<std::string> find_token(const ClientOptions& options, StandardInput& in) {
  std::string token = flag_or_variable(options.token, "TRELLIS_TOKEN");
  if (options.token == "-") {
    TRY_ASSIGN(auto line, in.read_secret_line(std::cerr, "Token: ", token_bytes_max));
    token = line.value_or("");
    if (token.ends_with('\r')) token.pop_back();
    if (token.empty()) return wrong_use("there is no token on standard input");
  }
  TRY(check_token(token));
  return token;
}

// It becomes a part of a header, in which a colon ends it.
Result<std::string> find_user(const ClientOptions& options) {
  if (!options.has_user) return std::string();
  std::string user = flag_or_variable(options.user, "TRELLIS_USER");
  if (user.find(':') == std::string::npos) return user;
  return wrong_use(fmt::format("{} is no user: a name has no colon", quote(user)));
}

Status run_session(const ClientOptions& options, const ClientCommands::Run& run) {
  StandardInput in(STDIN_FILENO, "standard input");
  StandardOutput out(STDOUT_FILENO, "standard output");
  SystemClock clock;
  TRY_ASSIGN(const uint64_t timeout_ms, parse_duration_ms(options.timeout));
  TRY_ASSIGN(std::string token, find_token(options, in));
  TRY_ASSIGN(std::string user, find_user(options));
  std::string server = flag_or_variable(options.server, "TRELLIS_SERVER");
  if (server.empty()) server = default_server;
  if (const auto url = parse_base_url(server); !url) return wrong_use(url.error().message);
  constexpr uint64_t timeout_ms_max = std::numeric_limits<int32_t>::max();
  ApiClient api({.server = std::move(server),
                 .token = std::move(token),
                 .user = std::move(user),
                 .ca_file = flag_or_variable(options.ca_file, "TRELLIS_CA"),
                 .timeout_ms = static_cast<uint32_t>(std::min(timeout_ms, timeout_ms_max))});
  ClientSession session{.api = api,
                        .in = in,
                        .out = out,
                        .err = std::cerr,
                        .err_is_terminal = ::isatty(STDERR_FILENO) == 1,
                        .clock = clock,
                        .json = options.json,
                        .keyspace = flag_or_variable(options.keyspace, "TRELLIS_KEYSPACE")};
  const Status done = run(session);
  // What was got before an error is shown too.
  const Status flushed = out.flush();
  return done ? flushed : done;
}

// As run_cli() has them.
int exit_code_of(const Status& status) {
  if (status || status.error().reason == reason_reader_left) return 0;
  fmt::print(std::cerr, "trellis: {}\n", terminal_line(status.error().message));
  return status.error().reason == reason_wrong_use ? 2 : 1;
}

Result<uint64_t> parse_timeout(const std::string& text) {
  TRY_ASSIGN(const uint64_t ms, parse_duration_ms(text));
  if (ms == 0) return Error{Code::invalid, "0 is no time to wait; use for example 30s"};
  return ms;
}

void add_connection(CLI::App& command, ClientOptions& options, bool takes_keyspace,
                    bool takes_user) {
  const std::string group = "Server";
  add_text(command, "--server", options.server, "URL",
           fmt::format("Where it listens (default {}; or TRELLIS_SERVER)", default_server))
      ->group(group);
  if (takes_keyspace)
    add_text(command, "--keyspace", options.keyspace, "NAME",
             "Whose data (default the token's, else DEFAULT; or TRELLIS_KEYSPACE)")
        ->group(group);
  add_text(command, "--token", options.token, "TOKEN",
           "Who asks. Other users of the machine can see arguments: prefer TRELLIS_TOKEN, or - "
           "and the token on standard input")
      ->group(group);
  options.has_user = takes_user;
  if (takes_user)
    add_text(command, "--user", options.user, "NAME",
             "As which user of the catalog (default whom the token's label names, else anonymous; "
             "or TRELLIS_USER)")
        ->group(group);
  add_text(command, "--ca", options.ca_file, "FILE",
           "Certificate in PEM form that an https server is checked with (or TRELLIS_CA)")
      ->group(group);
  add_text(command, "--timeout", options.timeout, "DURATION",
           "How long to wait for a server that does nothing (default 30s)")
      ->group(group)
      ->check(checked_by(parse_timeout));
  command.add_flag("--json", options.json, "Print JSON, for programs");
}

}  // namespace

Status print_line(ClientSession& session, std::string_view line) {
  TRY(session.out.write(line));
  return session.out.write("\n");
}

Status print_json(ClientSession& session, const boost::json::object& object) {
  Bytes line;
  append_json(line, object, JsonReals::as_java);
  return print_line(session, line);
}

CLI::App* ClientCommands::add(CLI::App& group, const std::string& name, const std::string& help,
                              Run run) {
  return add(group, name, help, std::move(run), Takes::nothing);
}

CLI::App* ClientCommands::add_raw(CLI::App& group, const std::string& name, const std::string& help,
                                  Run run) {
  return add(group, name, help, std::move(run), Takes::keyspace);
}

CLI::App* ClientCommands::add_catalog(CLI::App& group, const std::string& name,
                                      const std::string& help, Run run) {
  return add(group, name, help, std::move(run), Takes::keyspace_and_user);
}

CLI::App* ClientCommands::add(CLI::App& group, const std::string& name, const std::string& help,
                              Run run, Takes takes) {
  CLI::App* command = group.add_subcommand(name, help);
  const auto options = std::make_shared<ClientOptions>();
  add_connection(*command, *options, takes != Takes::nothing, takes == Takes::keyspace_and_user);
  command->callback([options, run = std::move(run), &exit_code = exit_code_] {
    // A server or a reader that leaves is an error that can be told of.
    std::signal(SIGPIPE, SIG_IGN);
    exit_code = exit_code_of(run_session(*options, run));
  });
  return command;
}

CLI::Option* add_argument(CLI::App& command, const std::string& name, std::string& value,
                          const std::string& help) {
  return command.add_option(name, value, help)->type_name("");
}

CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& value,
                      const std::string& value_name, const std::string& help) {
  return command.add_option(name, value, help)->type_name(value_name);
}

CLI::Option* add_repeated(CLI::App& command, const std::string& name,
                          std::vector<std::string>& values, const std::string& value_name,
                          const std::string& help) {
  // One value each, so that the words that follow are what they look like.
  return command.add_option(name, values, help)->type_name(value_name)->allow_extra_args(false);
}

std::string check_not_empty(const std::string& text) {
  return text.empty() ? "it must not be empty" : "";
}

bool ProgressLine::is_due() {
  return is_terminal_ && (!is_shown_ || clock_.monotonic_us() - shown_us_ >= progress_pause_us);
}

void ProgressLine::show(std::string_view line) {
  if (!is_terminal_) return;
  // Without wrapping: of a line that became two only the second would be written over.
  fmt::print(err_, "\r\x1b[K\x1b[?7l{}\x1b[?7h", line);
  err_.flush();
  is_shown_ = true;
  shown_us_ = clock_.monotonic_us();
}

void ProgressLine::clear() {
  if (!is_shown_) return;
  fmt::print(err_, "\r\x1b[K");
  err_.flush();
  is_shown_ = false;
}

}  // namespace trellis
