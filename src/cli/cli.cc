#include "cli/cli.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "base/nearest_name.h"
#include "base/settings.h"
#include "cli/backup_command.h"
#include "cli/catalog_command.h"
#include "cli/client_command.h"
#include "cli/fs_command.h"
#include "cli/human.h"
#include "cli/key_command.h"
#include "cli/keyspace_command.h"
#include "cli/range_command.h"
#include "cli/raw_command.h"
#include "server/serve.h"

namespace trellis {
namespace {

constexpr int exit_done = 0;
constexpr int exit_failed = 1;
constexpr int exit_usage = 2;

int fail(int exit_code, std::string_view message) {
  fmt::print(std::cerr, "trellis: {}\n", message);
  return exit_code;
}

// The flags of `serve`, by the name of their setting. CLI11 keeps references into it.
using Flags = std::map<std::string, std::string>;

int run_serve(const CLI::App& command, const Flags& texts) {
  SettingInputs inputs;
  for (const SettingSpec& spec : setting_specs())
    if (command.get_option(flag_name(spec))->count() > 0)
      inputs.flags[std::string(spec.name)] = texts.at(std::string(spec.name));
  inputs.environment = process_environment();
  const auto settings = load_settings(inputs);
  if (!settings) return fail(exit_usage, settings.error().message);
  const Status status = serve(*settings, std::cout);
  return status ? exit_done : fail(exit_failed, status.error().message);
}

void add_serve(CLI::App& app, Flags& flags, int& exit_code) {
  CLI::App* command = app.add_subcommand("serve", "Run the server until Ctrl-C");
  for (const SettingSpec& spec : setting_specs()) {
    const std::string by_default =
        spec.default_text.empty() ? "" : fmt::format("; default {}", spec.default_text);
    command
        ->add_option(flag_name(spec), flags[std::string(spec.name)],
                     fmt::format("{} ({}{}; or {})", spec.help, allowed_values(spec), by_default,
                                 variable_name(spec)))
        ->type_name("");
  }
  command->footer(
      "A flag wins over the environment, which wins over trellis.toml, which wins over the "
      "default.");
  command->callback([&flags, &exit_code, command] { exit_code = run_serve(*command, flags); });
}

struct KeyArguments {
  std::vector<std::string> keys;
  std::string as_kind;
  std::string kind;
  std::vector<std::string> fields;
  bool json = false;
};

void add_key(CLI::App& app, KeyArguments& arguments, ClientCommands& commands, int& exit_code) {
  CLI::App* key = app.add_subcommand("key", "Explain and make keys of the map");
  key->require_subcommand(1);

  CLI::App* decode = key->add_subcommand("decode", "Explain a key byte by byte");
  decode->add_option("HEX", arguments.keys, "Keys in hex; - reads them from standard input")
      ->required();
  decode->add_option("--as", arguments.as_kind, "Read it as this kind (see `trellis map`)");
  decode->add_flag("--json", arguments.json, "One JSON object per key");
  decode->callback([&] {
    const KeyOutput output{std::cout, std::cerr, arguments.json};
    Result<const KeyKind*> kind = nullptr;
    if (!arguments.as_kind.empty()) kind = find_key_kind(arguments.as_kind);
    if (!kind)
      exit_code = fail(exit_usage, kind.error().message);
    else
      exit_code = decode_keys(arguments.keys, *kind, std::cin, output) ? exit_done : exit_failed;
  });

  CLI::App* encode = key->add_subcommand("encode", "Make a key from its fields");
  encode->add_option("KIND", arguments.kind, "Kind of key (see `trellis map`)")->required();
  encode->add_option("FIELDS", arguments.fields, "field=value, as `trellis key decode` shows them");
  encode->add_flag("--json", arguments.json, "A JSON object");
  encode->footer("Example: trellis key encode redis.metadata keyspace=513 namespace=0 key=cart");
  encode->callback([&] {
    const KeyOutput output{std::cout, std::cerr, arguments.json};
    exit_code =
        encode_key_command(arguments.kind, arguments.fields, output) ? exit_done : exit_usage;
  });
  add_key_explain(*key, commands);
}

struct MapArguments {
  bool json = false;
  bool markdown = false;
};

void add_map(CLI::App& app, MapArguments& arguments, int& exit_code) {
  CLI::App* map = app.add_subcommand("map", "Print every kind of key, in the order of the map");
  CLI::Option* json = map->add_flag("--json", arguments.json, "As JSON");
  map->add_flag("--markdown", arguments.markdown, "As tables for the documentation")
      ->excludes(json);
  map->callback([&] {
    print_map(arguments.json       ? MapFormat::json
              : arguments.markdown ? MapFormat::markdown
                                   : MapFormat::text,
              std::cout);
    exit_code = exit_done;
  });
}

// "NAME is not WHAT", and what was probably meant.
std::string not_known(std::string_view name, std::string_view what,
                      const std::vector<std::string>& names) {
  const std::string_view nearest = nearest_name(name, names);
  return fmt::format("{} is not {}: {}", terminal_line(name), what,
                     nearest.empty() ? "see --help" : fmt::format("did you mean {}?", nearest));
}

// About the first word that should name a command and does not; CLI11 would only say that one is
// missing. "" if there is none.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; i++) {
    std::vector<std::string> names;
    const CLI::App* named = nullptr;
    for (const CLI::App* command : at->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(command->get_name());
      if (command->check_name(argv[i])) named = command;
    }
    if (names.empty()) return "";  // what follows are arguments
    if (named == nullptr) return not_known(argv[i], "a command", names);
    at = named;
  }
  return "";
}

// About the first flag that the command does not have. "" if there is none.
std::string unknown_flag(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  std::vector<std::string> names;
  for (const CLI::Option* option : command->get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (const std::string& word : app.remaining(true)) {
    if (!word.starts_with('-')) continue;
    const std::string flag = word.substr(0, word.find('='));
    if (std::find(names.begin(), names.end(), flag) != names.end())
      return fmt::format("{} goes behind {}, the command that it is for", flag,
                         command->get_name());
    return not_known(flag, "a flag of " + command->get_name(), names);
  }
  return "";
}

}  // namespace

int run_cli(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  CLI::App app("Trellis: one ordered map, many data models", "trellis");
  app.set_version_flag("--version", std::string("trellis " TRELLIS_VERSION));
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done; 1 it did not work; 2 wrong use: an unknown command or flag, or a "
      "setting "
      "or argument that is not allowed. Nothing was done then.");

  int exit_code = exit_done;
  Flags flags;
  KeyArguments key_arguments;
  MapArguments map_arguments;
  ClientCommands client_commands(exit_code);
  add_serve(app, flags, exit_code);
  add_key(app, key_arguments, client_commands, exit_code);
  add_map(app, map_arguments, exit_code);
  add_keyspace_commands(app, client_commands);
  add_range_commands(app, client_commands);
  add_raw_commands(app, client_commands);
  add_fs_commands(app, client_commands);
  add_catalog_commands(app, client_commands);
  add_backup_commands(app, client_commands);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("trellis: {}: see --help\n", error.what());
  });
  if (const std::string unknown = unknown_command(app, argc, argv); !unknown.empty())
    return fail(exit_usage, unknown);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // 0 for --help and --version, which CLI11 also throws.
    const bool is_wrong = error.get_exit_code() != 0;
    if (const std::string unknown = is_wrong ? unknown_flag(app) : ""; !unknown.empty())
      return fail(exit_usage, unknown);
    app.exit(error);
    return is_wrong ? exit_usage : exit_done;
  }
  std::cout.flush();
  if (!std::cout) return fail(exit_failed, "standard output could not be written");
  return exit_code;
}

}  // namespace trellis
