#include "redis/command.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "redis/call.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

using Table = std::unordered_map<std::string_view, const Command*>;

struct Group {
  std::string_view name;
  std::span<const Command> (*commands)();
};
constexpr Group groups[] = {
    {"string", string_commands},
    {"list", list_commands},
    {"hash", hash_commands},
    {"hash", hash_expiry_commands},
    {"set", set_commands},
    {"sorted-set", zset_commands},
    {"sorted-set", zset_range_commands},
    {"sorted-set", zset_store_commands},
    {"stream", stream_commands},
    {"hyperloglog", hyperloglog_commands},
    {"geo", geo_commands},
    {"bitmap", bitmap_commands},
    {"sortedint", sortedint_commands},
    {"generic", generic_commands},
    {"generic", keys_commands},
    {"connection", connection_commands},
    {"server", server_commands},
    {"server", command_commands},
    {"server", config_commands},
    {"server", debug_commands},
    {"server", memory_commands},
    {"server", operator_commands},
    {"cluster", cluster_commands},
    {"server", usage_commands},
    {"server", info_commands},
    {"transactions", transaction_commands},
};

const Table& table() {
  static const Table all = [] {
    Table made;
    for (const Group& group : groups)
      for (const Command& command : group.commands()) made.emplace(command.name, &command);
    return made;
  }();
  return all;
}

}  // namespace

const Command* find_command(ByteView name) {
  constexpr size_t name_bytes_max = 32;
  if (name.size() > name_bytes_max) return nullptr;
  char small[name_bytes_max];
  std::transform(name.begin(), name.end(), small, lower);
  const auto found = table().find(std::string_view(small, name.size()));
  return found == table().end() ? nullptr : found->second;
}

std::span<const Command* const> all_commands() {
  static const std::vector<const Command*> sorted = [] {
    std::vector<const Command*> made;
    for (const auto& [name, command] : table()) made.push_back(command);
    std::sort(made.begin(), made.end(),
              [](const Command* a, const Command* b) { return a->name < b->name; });
    return made;
  }();
  return sorted;
}

std::string upper(std::string_view name) {
  std::string text(name);
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - ('a' - 'A'));
  return text;
}

std::string_view group_of(const Command& command) {
  const std::string_view name = command.container.empty() ? command.name : command.container;
  for (const Group& group : groups)
    for (const Command& other : group.commands())
      if (other.name == name) return group.name;
  return "generic";
}

std::string full_name(const Command& command) {
  if (command.container.empty()) return std::string(command.name);
  return std::string(command.container) + "|" + std::string(command.name);
}

bool arity_fits(const Command& command, size_t args) {
  return command.arity >= 0 ? args == static_cast<size_t>(command.arity)
                            : args >= static_cast<size_t>(-command.arity);
}

Status append_counted_keys(Args args, size_t count_at, std::vector<size_t>& positions) {
  const auto count = count_at < args.size() ? parse_integer(args[count_at]) : std::nullopt;
  if (!count || *count < 1 || static_cast<uint64_t>(*count) >= args.size() - count_at)
    return reply_with("ERR Invalid arguments specified for command");
  for (size_t i = 1; i <= static_cast<size_t>(*count); i++) positions.push_back(count_at + i);
  return {};
}

Status key_positions(const Command& command, Args args, std::vector<size_t>& positions) {
  if (command.find_keys != nullptr) return command.find_keys(args, positions);
  const KeyPositions& keys = command.keys;
  if (keys.first == 0) return {};
  const int count = static_cast<int>(args.size());
  const int last = keys.last >= 0 ? keys.last : count + keys.last;
  for (int at = keys.first; at <= last && at < count; at += keys.step)
    positions.push_back(static_cast<size_t>(at));
  return {};
}

}  // namespace trellis
