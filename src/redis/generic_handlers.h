// Handlers of the table of generic commands that lie in files of their own.
#pragma once

#include "redis/call.h"
#include "redis/rdb_payload.h"

namespace trellis {

// copy_commands.cc
Status rename_key(Call& call);
Status rename_key_if_new(Call& call);
Status copy_key(AloneCall& call);
Status move_key(AloneCall& call);

// keyspace_commands.cc
Status random_key(AloneCall& call);
Status scan_keys(AloneCall& call);

// migrate_command.cc
Status migrate(AloneCall& call);
Status find_migrated_keys(Args args, std::vector<size_t>& positions);

// sort_command.cc
Status sort(AloneCall& call);
Status sort_read_only(AloneCall& call);
Status find_sort_keys(Args args, std::vector<size_t>& positions);

// dump_commands.cc
Result<RdbValue> read_value(Call& call, const Key& key);
Status dump(Call& call);
Status restore(Call& call);

// object_commands.cc: the subcommands of OBJECT, and what OBJECT ENCODING gives
std::span<const Command> object_commands();
Result<std::string_view> encoding_of(Call& call, const Key& key);

// The name that TYPE gives.
std::string_view type_name(RedisType type);

}  // namespace trellis
