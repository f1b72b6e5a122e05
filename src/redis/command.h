// The commands, as a table: one entry feeds dispatch, arity, key extraction, flags and COMMAND.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace trellis {

struct Call;
struct AloneCall;
using Args = std::span<const ByteView>;  // the command's name first

// Redis's own names for what a command is like.
namespace command_flag {
inline constexpr uint32_t write = 1U << 0;
inline constexpr uint32_t readonly = 1U << 1;
inline constexpr uint32_t denyoom = 1U << 2;
inline constexpr uint32_t admin = 1U << 3;
inline constexpr uint32_t noscript = 1U << 4;
inline constexpr uint32_t fast = 1U << 5;
inline constexpr uint32_t loading = 1U << 6;
inline constexpr uint32_t stale = 1U << 7;
inline constexpr uint32_t no_auth = 1U << 8;
inline constexpr uint32_t no_multi = 1U << 9;
inline constexpr uint32_t movablekeys = 1U << 10;
inline constexpr uint32_t skip_slowlog = 1U << 11;
inline constexpr uint32_t allow_busy = 1U << 12;
inline constexpr uint32_t no_async_loading = 1U << 13;
inline constexpr uint32_t asking = 1U << 14;
inline constexpr uint32_t blocking = 1U << 15;
// Ours, which COMMAND does not tell. Whoever lacks the role is refused: admins of the keyspace have
// all that Redis calls admin and that is not for everyone, the server's admin has the rest.
// Reads, and writes down what it found, to know it the next time: where nothing may be written it
// does not.
inline constexpr uint32_t keeps_result = 1U << 28;
// Works on keys that it cannot name, and runs alone for that: EXEC takes the keyspace for itself to
// run it inside of its transaction. Other commands that run alone EXEC runs behind it.
inline constexpr uint32_t joins_exec = 1U << 29;
inline constexpr uint32_t for_everyone = 1U << 30;
inline constexpr uint32_t for_server_admin = 1U << 31;
}  // namespace command_flag

// Where the keys are among the arguments: every `step`-th from `first` to `last`, which counts from
// the end if it is negative. first 0: there are none.
struct KeyPositions {
  int first = 0;
  int last = 0;
  int step = 0;
};

// Which records of its key (argument 1) a command is going to look for: by the arguments from
// `first` on, every `step`-th (0: only that one), as members or as ids that are pending in the
// group that argument 2 names, or the next one at an end of a list. Only a hint, so that a batch
// can read them together.
struct SubPositions {
  enum class Of : uint8_t { members, pending, head, tail };
  size_t first = 0;  // of the first two; 0: none
  size_t step = 0;
  Of of = Of::members;
};

// What a command does. Either kind looks first and changes then: an error that it returns has
// changed nothing. An Error with the reason `reply_error` is its reply.
struct Handler {
  // Works on keys that it names: runs together with others in one transaction, which any other
  // error ends.
  Status (*run)(Call&) = nullptr;
  // Cannot name its keys, or changes more than keys: runs in no transaction but those that it
  // makes.
  Status (*run_alone)(AloneCall&) = nullptr;

  constexpr Handler() = default;
  constexpr Handler(Status (*function)(Call&)) : run(function) {}
  constexpr Handler(Status (*function)(AloneCall&)) : run_alone(function) {}
};

// Where that depends on the arguments: appends the positions of the keys.
using FindKeys = Status (*)(Args args, std::vector<size_t>& positions);

// Where argument `count_at` says how many keys follow it.
Status append_counted_keys(Args args, size_t count_at, std::vector<size_t>& positions);
template <size_t count_at>
Status counted_keys(Args args, std::vector<size_t>& positions) {
  return append_counted_keys(args, count_at, positions);
}

struct Command {
  std::string_view name;  // in small letters; of a subcommand only its own
  int arity = 0;          // with the name; negative: at least so many
  uint32_t flags = 0;
  KeyPositions keys = {};
  Handler handler = {};
  std::string_view since = {};
  std::string_view summary = {};
  SubPositions subs = {};
  FindKeys find_keys = nullptr;  // in place of `keys`
  std::span<const Command> subcommands = {};
  std::string_view container = {};  // of a subcommand
  std::string_view syntax = {};     // what HELP shows behind the name of a subcommand

  bool has(uint32_t flag) const { return (flags & flag) != 0; }
};

// In any case. Null: there is none.
const Command* find_command(ByteView name);
// Those of one table, sorted by name, containers with their subcommands.
std::span<const Command* const> all_commands();

std::string upper(std::string_view name);
// "string", "generic": what COMMAND DOCS calls it.
std::string_view group_of(const Command& command);
// With its container's: "client|list".
std::string full_name(const Command& command);

// Whether the number of arguments fits.
bool arity_fits(const Command& command, size_t args);
// The positions of its keys among the arguments. REQUIRES: arity_fits.
Status key_positions(const Command& command, Args args, std::vector<size_t>& positions);

// The tables of the groups, each in the file of that name. The group's name is what COMMAND DOCS
// calls it.
std::span<const Command> string_commands();
std::span<const Command> hash_commands();
std::span<const Command> hash_expiry_commands();
std::span<const Command> set_commands();
std::span<const Command> list_commands();
std::span<const Command> generic_commands();
std::span<const Command> connection_commands();
std::span<const Command> server_commands();
std::span<const Command> transaction_commands();
std::span<const Command> command_commands();
std::span<const Command> debug_commands();
std::span<const Command> memory_commands();
std::span<const Command> keys_commands();  // in the file of server_commands
std::span<const Command> operator_commands();
std::span<const Command> cluster_commands();  // in the file of operator_commands
std::span<const Command> usage_commands();
std::span<const Command> config_commands();
std::span<const Command> info_commands();
std::span<const Command> zset_commands();
std::span<const Command> zset_range_commands();
std::span<const Command> zset_store_commands();
std::span<const Command> stream_commands();
std::span<const Command> hyperloglog_commands();
std::span<const Command> geo_commands();
std::span<const Command> bitmap_commands();
std::span<const Command> sortedint_commands();

}  // namespace trellis
