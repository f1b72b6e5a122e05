// INFO: what tools read about a server, of the caller's keyspace only.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "codec/counter_value.h"
#include "redis/call.h"
#include "redis/server.h"

namespace trellis {
namespace {

using namespace command_flag;

Result<std::string> server_section(AloneCall& call) {
  const uint64_t up_s = call.server.uptime_ms() / 1'000;
  return fmt::format(
      "# Server\r\nredis_version:{}\r\nredis_mode:standalone\r\narch_bits:64\r\n"
      "multiplexing_api:epoll\r\nprocess_id:{}\r\nuptime_in_seconds:{}\r\nuptime_in_days:{}\r\n"
      "hz:10\r\n",
      redis_version, ::getpid(), up_s, up_s / 86'400);
}

Result<std::string> clients_section(AloneCall&) {
  return "# Clients\r\nmaxclients:10000\r\nblocked_clients:0\r\n";
}

Result<std::string> memory_section(AloneCall& call) {
  TRY_ASSIGN(const Figures figures, call.session.tenant->figures());
  return fmt::format("# Memory\r\nused_memory:{}\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n",
                     figures.bytes);
}

Result<std::string> persistence_section(AloneCall&) {
  return "# Persistence\r\nloading:0\r\nrdb_bgsave_in_progress:0\r\naof_enabled:1\r\n"
         "aof_rewrite_in_progress:0\r\naof_last_write_status:ok\r\n";
}

Result<std::string> stats_section(AloneCall& call) {
  const Tenant::Load load = call.session.tenant->load();
  return fmt::format("# Stats\r\ntotal_commands_processed:{}\r\ninstantaneous_ops_per_sec:{}\r\n",
                     load.reads + load.writes,
                     static_cast<uint64_t>(load.reads_per_second + load.writes_per_second));
}

Result<std::string> replication_section(AloneCall&) {
  return "# Replication\r\nrole:master\r\nconnected_slaves:0\r\nmaster_repl_offset:0\r\n";
}

Result<std::string> cluster_section(AloneCall&) { return "# Cluster\r\ncluster_enabled:0\r\n"; }

Result<std::string> keyspace_section(AloneCall& call) {
  std::string text = "# Keyspace\r\n";
  for (uint16_t database = 0; database < databases_max; database++) {
    Value value;
    const Bytes key =
        encode(CounterKey{call.session.tenant->id(), Model::redis, CounterName::keys, database});
    TRY(call.server.map().engine.get(key, value));
    if (!value.found()) continue;
    const auto keys = decode_counter_value(value.bytes());
    if (keys && *keys > 0)
      text += fmt::format("db{}:keys={},expires=0,avg_ttl=0\r\n", database, *keys);
  }
  return text;
}

struct Section {
  std::string_view name;
  Result<std::string> (*text)(AloneCall&);
};
constexpr Section sections[] = {
    {"server", server_section},   {"clients", clients_section},
    {"memory", memory_section},   {"persistence", persistence_section},
    {"stats", stats_section},     {"replication", replication_section},
    {"cluster", cluster_section}, {"keyspace", keyspace_section},
};

Status info(AloneCall& call) {
  TRY(call.session.tenant->admit(call.session.caller, Access::read));
  const auto wanted = [&](std::string_view name) {
    if (call.count() == 1) return true;
    for (size_t i = 1; i < call.count(); i++)
      if (call.is_word(i, name) || call.is_word(i, "all") || call.is_word(i, "default") ||
          call.is_word(i, "everything"))
        return true;
    return false;
  };
  std::string text;
  for (const Section& section : sections) {
    if (!wanted(section.name)) continue;
    TRY_ASSIGN(const std::string more, section.text(call));
    if (!text.empty()) text += "\r\n";
    text += more;
  }
  call.reply.verbatim(text);
  return {};
}

const Command table[] = {
    {"info", -1, loading | stale, {}, info, "1.0.0", "Facts about the server and the keyspace."},
};

}  // namespace

std::span<const Command> info_commands() { return table; }

}  // namespace trellis
