// COMMAND: the table of commands, for clients.
#include <fmt/format.h>

#include <algorithm>

#include "redis/call.h"
#include "redis/command_facts.h"
#include "redis/command_syntax.h"
#include "redis/glob.h"
#include "redis/help.h"

namespace trellis {
namespace {

using namespace command_flag;

struct FlagName {
  uint32_t flag;
  std::string_view name;
};
constexpr FlagName flag_names[] = {
    {write, "write"},
    {readonly, "readonly"},
    {denyoom, "denyoom"},
    {admin, "admin"},
    {noscript, "noscript"},
    {loading, "loading"},
    {stale, "stale"},
    {skip_slowlog, "skip_slowlog"},
    {fast, "fast"},
    {no_auth, "no_auth"},
    {no_async_loading, "no_async_loading"},
    {no_multi, "no_multi"},
    {movablekeys, "movablekeys"},
    {allow_busy, "allow_busy"},
};

void reply_flags(Reply& reply, const Command& command) {
  const size_t mark = reply.mark();
  size_t count = 0;
  for (const FlagName& flag : flag_names) {
    if (!command.has(flag.flag)) continue;
    reply.simple(flag.name);
    count++;
  }
  reply.insert_set(mark, count);
}

void reply_names(Reply& reply, std::span<const std::string_view> names) {
  reply.set(names.size());
  for (const std::string_view name : names) reply.simple(name);
}

void reply_categories(Reply& reply, const Command& command) {
  const std::vector<std::string_view> names = acl_categories(command);
  reply.set(names.size());
  for (const std::string_view name : names) reply.simple("@" + std::string(name));
}

using Numbers = std::initializer_list<std::pair<std::string_view, int>>;
void reply_spec(Reply& reply, std::string_view type, Numbers numbers) {
  reply.map(2);
  reply.bulk("type");
  reply.bulk(type);
  reply.bulk("spec");
  reply.map(numbers.size());
  for (const auto& [name, number] : numbers) {
    reply.bulk(name);
    reply.integer(number);
  }
}

void reply_keyword(Reply& reply, std::string_view word, int from) {
  reply.map(2);
  reply.bulk("type");
  reply.bulk("keyword");
  reply.bulk("spec");
  reply.map(2);
  reply.bulk("keyword");
  reply.bulk(word);
  reply.bulk("startfrom");
  reply.integer(from);
}

void reply_key_specs(Reply& reply, const Command& command) {
  const std::vector<KeySpec> specs = key_specs(command);
  reply.set(specs.size());
  for (const KeySpec& spec : specs) {
    const bool is_unknown = spec.find == KeySpec::Find::unknown;
    reply.map(3);
    reply.bulk("flags");
    reply_names(reply, words_of(spec.flags));
    reply.bulk("begin_search");
    if (is_unknown)
      reply_spec(reply, "unknown", {});
    else if (spec.find == KeySpec::Find::after_word)
      reply_keyword(reply, spec.word, spec.first);
    else
      reply_spec(reply, "index", {{"index", spec.first}});
    reply.bulk("find_keys");
    if (is_unknown)
      reply_spec(reply, "unknown", {});
    else if (spec.find == KeySpec::Find::counted)
      reply_spec(reply, "keynum", {{"keynumidx", 0}, {"firstkey", 1}, {"keystep", 1}});
    else
      reply_spec(reply, "range", {{"lastkey", spec.last}, {"keystep", spec.step}, {"limit", 0}});
  }
}

void reply_info(Reply& reply, const Command& command) {
  reply.array(10);
  reply.bulk(full_name(command));
  reply.integer(command.arity);
  reply_flags(reply, command);
  reply.integer(command.keys.first);
  reply.integer(command.keys.last);
  reply.integer(command.keys.step);
  reply_categories(reply, command);
  const std::vector<std::string_view> told = tips(command);
  reply.set(told.size());
  for (const std::string_view tip : told) reply.bulk(tip);
  reply_key_specs(reply, command);
  reply.set(command.subcommands.size());
  for (const Command& sub : command.subcommands) reply_info(reply, sub);
}

// Which of the command's key specs an argument is of, if it is of one.
std::optional<size_t> spec_of(const Argument& argument, size_t specs, size_t& keys_before) {
  if (argument.token == "STORE" && argument.name == "key") return 1;  // of GEORADIUS: two to choose
  if (argument.type == "key" && specs > 0)
    return argument.token.empty() ? std::min(keys_before++, specs - 1) : specs - 1;
  if (argument.type == "pattern" && specs > 1) return 1;
  return std::nullopt;
}

void reply_arguments(Reply& reply, const std::vector<Argument>& arguments, size_t specs,
                     size_t& keys_before) {
  const auto add_text = [&](std::string_view name, std::string_view value) {
    reply.bulk(name);
    reply.bulk(value);
    return 1;
  };
  reply.array(arguments.size());
  for (const Argument& argument : arguments) {
    const size_t mark = reply.mark();
    int pairs = add_text("name", argument.name) + add_text("type", argument.type);
    if (const auto spec = spec_of(argument, specs, keys_before)) {
      reply.bulk("key_spec_index");
      reply.integer(static_cast<int64_t>(*spec));
      pairs++;
    }
    if (!argument.token.empty() || argument.type == "pure-token")
      pairs += add_text("token", argument.token);
    std::vector<std::string_view> flags;
    if (argument.is_optional) flags.push_back("optional");
    if (argument.is_multiple) flags.push_back("multiple");
    if (argument.repeats_token) flags.push_back("multiple_token");
    if (!flags.empty()) {
      reply.bulk("flags");
      reply_names(reply, flags);
      pairs++;
    }
    if (!argument.arguments.empty()) {
      reply.bulk("arguments");
      reply_arguments(reply, argument.arguments, specs, keys_before);
      pairs++;
    }
    reply.insert_map(mark, static_cast<size_t>(pairs));
  }
}

void reply_docs(Reply& reply, const Command& command) {
  reply.bulk(full_name(command));
  const std::vector<Argument> arguments = parse_syntax(syntax_of(command));
  reply.map(3 + (arguments.empty() ? 0 : 1) + (command.subcommands.empty() ? 0 : 1));
  reply.bulk("summary");
  reply.bulk(command.summary);
  reply.bulk("since");
  reply.bulk(command.since);
  reply.bulk("group");
  reply.bulk(group_of(command));
  if (!arguments.empty()) {
    size_t keys_before = 0;
    reply.bulk("arguments");
    reply_arguments(reply, arguments, key_specs(command).size(), keys_before);
  }
  if (command.subcommands.empty()) return;
  reply.bulk("command_subcommands");
  reply.map(command.subcommands.size());
  for (const Command& sub : command.subcommands) reply_docs(reply, sub);
}

// "config|get" too.
const Command* find_full(ByteView name) {
  const size_t bar = name.find('|');
  const Command* command = find_command(name.substr(0, bar));
  if (command == nullptr || bar == ByteView::npos) return command;
  for (const Command& sub : command->subcommands)
    if (equals_word(name.substr(bar + 1), sub.name)) return &sub;
  return nullptr;
}

Status command_all(AloneCall& call) {
  call.reply.array(all_commands().size());
  for (const Command* command : all_commands()) reply_info(call.reply, *command);
  return {};
}

Status command_count(AloneCall& call) {
  call.reply.integer(static_cast<int64_t>(all_commands().size()));
  return {};
}

Status command_info(AloneCall& call) {
  if (call.count() == 2) return command_all(call);
  call.reply.array(call.count() - 2);
  for (size_t i = 2; i < call.count(); i++) {
    const Command* command = find_full(call.arg(i));
    if (command != nullptr)
      reply_info(call.reply, *command);
    else
      call.reply.null();
  }
  return {};
}

Status command_docs(AloneCall& call) {
  std::vector<const Command*> wanted;
  if (call.count() == 2) wanted.assign(all_commands().begin(), all_commands().end());
  for (size_t i = 2; i < call.count(); i++)
    if (const Command* command = find_full(call.arg(i)); command != nullptr)
      wanted.push_back(command);
  call.reply.map(wanted.size());
  for (const Command* command : wanted) reply_docs(call.reply, *command);
  return {};
}

Status command_list(AloneCall& call) {
  const bool filters = call.count() == 5 && call.is_word(2, "filterby");
  if (call.count() != 2 && !filters) return syntax_error();
  const bool by_pattern = filters && call.is_word(3, "pattern");
  const bool by_module = filters && call.is_word(3, "module");
  if (filters && !by_pattern && !by_module && !call.is_word(3, "aclcat")) return syntax_error();
  const size_t mark = call.reply.mark();
  size_t count = 0;
  const auto take = [&](const Command& command) {
    const std::string name = full_name(command);
    if (by_module) return;  // there are none
    if (by_pattern && !glob_matches(call.arg(4), name)) return;
    if (filters && !by_pattern) {
      const std::vector<std::string_view> names = acl_categories(command);
      if (std::none_of(names.begin(), names.end(),
                       [&](std::string_view one) { return call.is_word(4, one); }))
        return;
    }
    call.reply.bulk(name);
    count++;
  };
  for (const Command* command : all_commands()) {
    take(*command);
    for (const Command& sub : command->subcommands) take(sub);
  }
  call.reply.insert_array(mark, count);
  return {};
}

// The command whose keys are asked for, with its own arguments.
Result<std::vector<size_t>> keys_of(AloneCall& call, const Command*& command) {
  const Args args = call.args.subspan(2);
  command = find_command(args[0]);
  if (command != nullptr && !command->subcommands.empty() && args.size() > 1) {
    const Command* container = command;
    for (const Command& sub : container->subcommands)
      if (equals_word(args[1], sub.name)) command = &sub;
  }
  if (command == nullptr) return reply_with("ERR Invalid command specified");
  if (command->keys.first == 0 && command->find_keys == nullptr)
    return reply_with("ERR The command has no key arguments");
  if (!arity_fits(*command, args.size()))
    return reply_with("ERR Invalid number of arguments specified for command");
  std::vector<size_t> positions;
  if (!key_positions(*command, args, positions))
    return reply_with("ERR Invalid arguments specified for command");
  if (positions.empty()) return reply_with("ERR The command has no key arguments");
  return positions;
}

Status command_getkeys(AloneCall& call) {
  const Command* command = nullptr;
  TRY_ASSIGN(const std::vector<size_t> positions, keys_of(call, command));
  call.reply.array(positions.size());
  for (const size_t at : positions) call.reply.bulk(call.arg(2 + at));
  return {};
}

Status command_getkeysandflags(AloneCall& call) {
  const Command* command = nullptr;
  TRY_ASSIGN(const std::vector<size_t> positions, keys_of(call, command));
  call.reply.array(positions.size());
  for (const size_t at : positions) {
    call.reply.array(2);
    call.reply.bulk(call.arg(2 + at));
    reply_names(call.reply, words_of(key_flags(*command, call.args.subspan(2), at)));
  }
  return {};
}

constexpr uint32_t plain = loading | stale;
constexpr Command command_entry(std::string_view name, int arity, Status (*handler)(AloneCall&),
                                std::string_view since, std::string_view syntax,
                                std::string_view summary) {
  return {.name = name,
          .arity = arity,
          .flags = plain,
          .handler = handler,
          .since = since,
          .summary = summary,
          .container = "command",
          .syntax = syntax};
}

const Command command_subcommands[] = {
    command_entry("count", 2, command_count, "2.8.13", "", "How many commands there are."),
    command_entry("docs", -2, command_docs, "7.0.0", "[<command> ...]", "What commands do."),
    command_entry("getkeys", -3, command_getkeys, "2.8.13", "<command> [<arg> ...]",
                  "The keys of a command."),
    command_entry("getkeysandflags", -3, command_getkeysandflags, "7.0.0", "<command> [<arg> ...]",
                  "The keys of a command, and what it does with them."),
    help_entry("command", "5.0.0"),
    command_entry("info", -2, command_info, "2.8.13", "[<command> ...]",
                  "Arity, flags and keys of commands."),
    command_entry("list", -2, command_list, "7.0.0", "[FILTERBY MODULE|ACLCAT|PATTERN <text>]",
                  "The names of commands."),
};

namespace command_table {

const Command table[] = {
    {.name = "command",
     .arity = -1,
     .flags = plain,
     .handler = command_all,
     .since = "2.8.13",
     .summary = "All commands.",
     .subcommands = command_subcommands},
};

}  // namespace command_table

}  // namespace

std::span<const Command> command_commands() { return command_table::table; }

}  // namespace trellis
