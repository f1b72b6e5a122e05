// COMMAND: the table of commands, for clients.
#include <fmt/format.h>

#include <algorithm>

#include "redis/call.h"
#include "redis/glob.h"

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
    {fast, "fast"},
    {loading, "loading"},
    {stale, "stale"},
    {no_auth, "no_auth"},
    {no_multi, "no_multi"},
    {movablekeys, "movablekeys"},
    {skip_slowlog, "skip_slowlog"},
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

void reply_categories(Reply& reply, const Command& command) {
  const size_t mark = reply.mark();
  size_t count = 0;
  const auto add = [&](const std::string& name) {
    reply.simple("@" + name);
    count++;
  };
  if (command.has(write)) add("write");
  if (command.has(readonly)) add("read");
  add(std::string(group_of(command)));
  if (command.has(admin)) {
    add("admin");
    add("dangerous");
  }
  add(command.has(fast) ? "fast" : "slow");
  reply.insert_set(mark, count);
}

// Where the keys are, as Redis 7 describes it. What must be searched for is not described.
void reply_key_specs(Reply& reply, const Command& command) {
  const KeyPositions& keys = command.keys;
  if (keys.first == 0) return reply.array(0);
  reply.array(1);
  reply.map(3);
  reply.bulk("flags");
  reply.set(1);
  reply.simple(command.has(write) ? "RW" : "RO");
  reply.bulk("begin_search");
  reply.map(2);
  reply.bulk("type");
  reply.bulk("index");
  reply.bulk("spec");
  reply.map(1);
  reply.bulk("index");
  reply.integer(keys.first);
  reply.bulk("find_keys");
  reply.map(2);
  reply.bulk("type");
  reply.bulk("range");
  reply.bulk("spec");
  reply.map(3);
  reply.bulk("lastkey");
  reply.integer(keys.last < 0 ? keys.last : keys.last - keys.first);
  reply.bulk("keystep");
  reply.integer(keys.step);
  reply.bulk("limit");
  reply.integer(0);
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
  reply.array(0);
  reply_key_specs(reply, command);
  reply.array(command.subcommands.size());
  for (const Command& sub : command.subcommands) reply_info(reply, sub);
}

void reply_docs(Reply& reply, const Command& command) {
  reply.bulk(full_name(command));
  reply.map(command.subcommands.empty() ? 3 : 4);
  reply.bulk("summary");
  reply.bulk(command.summary);
  reply.bulk("since");
  reply.bulk(command.since);
  reply.bulk("group");
  reply.bulk(group_of(command));
  if (command.subcommands.empty()) return;
  reply.bulk("subcommands");
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
      call.reply.null_array();
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
  for (const Command* command : all_commands()) {
    if (by_module) continue;  // there are none
    if (by_pattern && !glob_matches(call.arg(4), command->name)) continue;
    if (filters && !by_pattern && call.arg(4) != group_of(*command)) continue;
    call.reply.bulk(command->name);
    count++;
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
    call.reply.set(1);
    call.reply.simple(command->has(write) ? "RW" : "RO");
  }
  return {};
}

constexpr uint32_t plain = loading | stale;
const Command subcommands[] = {
    {.name = "count",
     .arity = 2,
     .flags = plain,
     .handler = command_count,
     .since = "2.8.13",
     .summary = "How many commands there are.",
     .container = "command"},
    {.name = "docs",
     .arity = -2,
     .flags = plain,
     .handler = command_docs,
     .since = "7.0.0",
     .summary = "What commands do.",
     .container = "command"},
    {.name = "getkeys",
     .arity = -3,
     .flags = plain,
     .handler = command_getkeys,
     .since = "2.8.13",
     .summary = "The keys of a command.",
     .container = "command"},
    {.name = "getkeysandflags",
     .arity = -3,
     .flags = plain,
     .handler = command_getkeysandflags,
     .since = "7.0.0",
     .summary = "The keys of a command, and what it does with them.",
     .container = "command"},
    {.name = "info",
     .arity = -2,
     .flags = plain,
     .handler = command_info,
     .since = "2.8.13",
     .summary = "Arity, flags and keys of commands.",
     .container = "command"},
    {.name = "list",
     .arity = -2,
     .flags = plain,
     .handler = command_list,
     .since = "7.0.0",
     .summary = "The names of commands.",
     .container = "command"},
};

const Command table[] = {
    {.name = "command",
     .arity = -1,
     .flags = plain,
     .handler = command_all,
     .since = "2.8.13",
     .summary = "All commands.",
     .subcommands = subcommands},
};

}  // namespace

std::span<const Command> command_commands() { return table; }

}  // namespace trellis
