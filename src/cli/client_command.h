// What the commands that talk to a running server have in common: options, output, errors.
//
//   auto arguments = std::make_shared<RenameArguments>();
//   CLI::App* rename = commands.add(keyspace, "rename", "Give a keyspace another name",
//                                   [arguments](ClientSession& session) { ... });
//   rename->add_option("OLD", arguments->old_name, "Its name")->required();
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "cli/api_client.h"
#include "cli/arguments.h"
#include "cli/standard_streams.h"

namespace trellis {

// One run of one command.
struct ClientSession {
  ApiClient& api;
  StandardInput& in;
  StandardOutput& out;  // flushed when the command ends
  std::ostream& err;
  bool err_is_terminal;
  Clock& clock;
  bool json;             // print what the server says, not what people like to read
  std::string keyspace;  // of raw data; "": the token's, else DEFAULT
};

Status print_line(ClientSession& session, std::string_view line);
// On one line, too.
Status print_json(ClientSession& session, const boost::json::object& object);

class ClientCommands {
 public:
  // What a command exits with is put there.
  explicit ClientCommands(int& exit_code) : exit_code_(exit_code) {}

  using Run = std::function<Status(ClientSession&)>;
  CLI::App* add(CLI::App& group, const std::string& name, const std::string& help, Run run);
  // Likewise, for commands on the data of a keyspace: with --keyspace.
  CLI::App* add_raw(CLI::App& group, const std::string& name, const std::string& help, Run run);
  // Likewise, on the catalog: with --user too.
  CLI::App* add_catalog(CLI::App& group, const std::string& name, const std::string& help, Run run);

 private:
  enum class Takes : uint8_t { nothing, keyspace, keyspace_and_user };
  CLI::App* add(CLI::App& group, const std::string& name, const std::string& help, Run run,
                Takes takes);

  int& exit_code_;
};

// Options of commands. Each returns the option, so that more can be asked of it.
CLI::Option* add_argument(CLI::App& command, const std::string& name, std::string& value,
                          const std::string& help);
CLI::Option* add_text(CLI::App& command, const std::string& name, std::string& value,
                      const std::string& value_name, const std::string& help);
// Once for each value.
CLI::Option* add_repeated(CLI::App& command, const std::string& name,
                          std::vector<std::string>& values, const std::string& value_name,
                          const std::string& help);

// Makes a function that gives a Result into a check of an option: what it refuses is wrong use.
template <class Parse>
std::function<std::string(const std::string&)> checked_by(Parse parse) {
  return [parse](const std::string& text) -> std::string {
    const auto parsed = parse(text);
    return parsed ? std::string() : parsed.error().message;
  };
}

// The empty text would make another path of a path.
std::string check_not_empty(const std::string& text);

// A line on a terminal that is written over again and again; nothing where there is no terminal.
class ProgressLine {
 public:
  ProgressLine(std::ostream& err, bool is_terminal, Clock& clock)
      : err_(err), is_terminal_(is_terminal), clock_(clock) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether a new line would be shown now: not more often than people can read.
  bool is_due();
  void show(std::string_view line);
  void clear();
  bool is_terminal() const { return is_terminal_; }

 private:
  std::ostream& err_;
  bool is_terminal_;
  Clock& clock_;
  uint64_t shown_us_ = 0;
  bool is_shown_ = false;
};

}  // namespace trellis
