// INFO: what tools read about a server. What is the caller's keyspace's is told of that one only:
// keys, clients, commands, errors. What is the process's is told as it is.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/machine_memory.h"
#include "codec/counter_value.h"
#include "redis/call.h"
#include "redis/command_facts.h"
#include "redis/number_text.h"
#include "redis/process_facts.h"
#include "redis/server.h"
#include "tenant/sha256.h"

namespace trellis {
namespace {

using namespace command_flag;

// The lines of a section.
class Lines {
 public:
  explicit Lines(std::string_view title) : text_(fmt::format("# {}\r\n", title)) {}
  template <class Value>
  Lines& add(std::string_view name, const Value& value) {
    text_ += fmt::format("{}:{}\r\n", name, value);
    return *this;
  }
  // With a second line for people.
  Lines& add_bytes(std::string_view name, uint64_t bytes) {
    return add(name, bytes).add(fmt::format("{}_human", name), human(bytes));
  }
  // Of what there is none here.
  Lines& add_zeros(std::string_view names) {
    for (const std::string_view name : words_of(names)) add(name, 0);
    return *this;
  }
  std::string text() const { return text_; }

 private:
  static std::string human(uint64_t bytes) {
    if (bytes < 1024) return fmt::format("{}B", bytes);
    auto value = static_cast<double>(bytes);
    std::string_view units = "KMGTP";
    for (value /= 1024; value >= 1024 && units.size() > 1; value /= 1024) units.remove_prefix(1);
    return fmt::format("{:.2f}{}", value, units[0]);
  }
  std::string text_;
};

std::string run_id(const RedisServer& server) {
  const uint64_t started_ms = server.map().clock.unix_ms() - server.uptime_ms();
  return to_hex(sha256(fmt::format("{} {}", ::getpid(), started_ms))).substr(0, 40);
}

Result<std::string> server_section(AloneCall& call) {
  const uint64_t up_s = call.server.uptime_ms() / 1'000;
  utsname system{};
  ::uname(&system);
  const RedisConfig& config = call.server.config();
  const KeyspaceId keyspace = call.session.tenant->id();
  return Lines("Server")
      .add("redis_version", redis_version)
      .add("redis_git_sha1", "00000000")
      .add_zeros("redis_git_dirty redis_build_id")
      .add("redis_mode", "standalone")
      .add("os", fmt::format("{} {} {}", system.sysname, system.release, system.machine))
      .add("arch_bits", 64)
      .add("monotonic_clock", "POSIX clock_gettime")
      .add("multiplexing_api", "epoll")
      .add("gcc_version", __VERSION__)
      .add("process_id", ::getpid())
      .add("process_supervised", "no")
      .add("run_id", run_id(call.server))
      .add("tcp_port", config.value(keyspace, "port"))
      .add("server_time_usec", call.now_ms * 1'000)
      .add("uptime_in_seconds", up_s)
      .add("uptime_in_days", up_s / 86'400)
      .add("hz", config.value(keyspace, "hz"))
      .add("configured_hz", config.value(keyspace, "hz"))
      .add("executable", "")
      .add("config_file", "")
      .add("io_threads_active", 0)
      .text();
}

Result<std::string> clients_section(AloneCall& call) {
  size_t clients = 0;
  size_t held = 0;
  size_t input_bytes = 0;
  size_t output_bytes = 0;
  call.server.clients().for_each(call.session.tenant->id(), [&](const Session& session) {
    clients++;
    held += session.is_held ? 1 : 0;
    input_bytes = std::max<size_t>(input_bytes, session.input_bytes);
    output_bytes = std::max<size_t>(output_bytes, session.output_bytes);
  });
  return Lines("Clients")
      .add("connected_clients", clients)
      .add("cluster_connections", 0)
      .add("maxclients", call.server.options().clients_max)
      .add("client_recent_max_input_buffer", input_bytes)
      .add("client_recent_max_output_buffer", output_bytes)
      .add("blocked_clients", held)
      .add_zeros("tracking_clients clients_in_timeout_table")
      .text();
}

Result<std::string> memory_section(AloneCall& call) {
  TRY_ASSIGN(const Figures figures, call.session.tenant->figures());
  TRY_ASSIGN(const Keyspace keyspace, call.session.tenant->keyspace());
  const auto bytes = static_cast<uint64_t>(std::max<int64_t>(figures.bytes, 0));
  return Lines("Memory")
      .add_bytes("used_memory", bytes)  // on disk: memory is a cache of all keyspaces
      .add_bytes("used_memory_rss", process_rss_bytes())
      .add_bytes("used_memory_peak", bytes)
      .add("used_memory_peak_perc", "100.00%")
      .add_zeros("used_memory_overhead used_memory_startup")
      .add("used_memory_dataset", bytes)
      .add("used_memory_dataset_perc", "100.00%")
      .add_bytes("total_system_memory", machine_memory_bytes())
      .add_bytes("used_memory_lua", 0)
      .add_bytes("used_memory_scripts", 0)
      .add_bytes("used_memory_vm_total", 0)
      .add_zeros("number_of_cached_scripts number_of_functions number_of_libraries")
      .add_bytes("maxmemory", keyspace.quota.bytes)
      .add("maxmemory_policy", call.server.config().value(keyspace.id, "maxmemory-policy"))
      .add("mem_fragmentation_ratio", "1.00")
      .add_zeros(
          "mem_fragmentation_bytes mem_not_counted_for_evict mem_replication_backlog "
          "mem_clients_slaves mem_clients_normal mem_aof_buffer")
      .add("mem_allocator", "libc")
      .add_zeros(
          "mem_cluster_links mem_total_replication_buffers used_memory_functions "
          "used_memory_scripts_eval used_memory_vm_eval used_memory_vm_functions")
      .add_zeros("active_defrag_running lazyfree_pending_objects lazyfreed_objects")
      .text();
}

Result<std::string> persistence_section(AloneCall& call) {
  return Lines("Persistence")
      .add_zeros("loading async_loading rdb_changes_since_last_save rdb_bgsave_in_progress")
      .add("rdb_last_save_time", call.now_ms / 1'000)
      .add("rdb_last_bgsave_status", "ok")
      .add("rdb_last_bgsave_time_sec", 0)
      .add("rdb_current_bgsave_time_sec", -1)
      .add("rdb_saves", 0)
      .add("aof_enabled", 1)
      .add_zeros("aof_rewrite_in_progress aof_rewrite_scheduled")
      .add("aof_last_rewrite_time_sec", -1)
      .add("aof_current_rewrite_time_sec", -1)
      .add("aof_last_bgrewrite_status", "ok")
      .add("aof_last_write_status", "ok")
      .add("current_fork_perc", "0.00")
      .add_zeros(
          "aof_last_cow_size aof_rewrites aof_rewrites_consecutive_failures current_cow_peak "
          "current_cow_size current_cow_size_age current_save_keys_processed "
          "current_save_keys_total module_fork_in_progress module_fork_last_cow_size "
          "rdb_last_cow_size rdb_last_load_keys_expired rdb_last_load_keys_loaded")
      .text();
}

Result<std::string> stats_section(AloneCall& call) {
  const Tenant::Load load = call.session.tenant->load();
  const UsageFigures figures = call.session.usage->figures();
  uint64_t errors = 0;
  for (const auto& [kind, count] : figures.errors) errors += count;
  uint64_t calls = 0;
  for (const auto& [command, of] : figures.commands) calls += of.calls;
  return Lines("Stats")
      .add("total_connections_received", figures.connections)
      .add("total_commands_processed", calls)
      .add("instantaneous_ops_per_sec",
           static_cast<uint64_t>(load.reads_per_second + load.writes_per_second))
      .add("total_net_input_bytes", figures.received_bytes)
      .add("total_net_output_bytes", figures.sent_bytes)
      .add("instantaneous_input_kbps", "0.00")
      .add("instantaneous_output_kbps", "0.00")
      .add("instantaneous_input_repl_kbps", "0.00")
      .add("instantaneous_output_repl_kbps", "0.00")
      .add_zeros("rejected_connections sync_full sync_partial_ok sync_partial_err")
      .add("expired_keys", figures.expired)
      .add("expired_stale_perc", "0.00")
      .add_zeros("expired_time_cap_reached_count evicted_keys evicted_clients")
      .add("keyspace_hits", figures.hits)
      .add("keyspace_misses", figures.misses)
      .add_zeros(
          "pubsub_channels pubsub_patterns latest_fork_usec total_forks migrate_cached_sockets "
          "unexpected_error_replies")
      .add("total_error_replies", errors)
      .add_zeros(
          "active_defrag_hits active_defrag_key_hits active_defrag_key_misses "
          "active_defrag_misses current_active_defrag_time current_eviction_exceeded_time "
          "io_threaded_reads_processed io_threaded_writes_processed pubsubshard_channels "
          "slave_expires_tracked_keys total_active_defrag_time total_eviction_exceeded_time "
          "total_net_repl_input_bytes total_net_repl_output_bytes tracking_total_items "
          "tracking_total_keys tracking_total_prefixes")
      .text();
}

Result<std::string> replication_section(AloneCall& call) {
  return Lines("Replication")
      .add("role", "master")
      .add("connected_slaves", 0)
      .add("master_failover_state", "no-failover")
      .add("master_replid", run_id(call.server))
      .add("master_replid2", std::string(40, '0'))
      .add("master_repl_offset", 0)
      .add("second_repl_offset", -1)
      .add_zeros(
          "repl_backlog_active repl_backlog_size repl_backlog_first_byte_offset "
          "repl_backlog_histlen")
      .text();
}

Result<std::string> cpu_section(AloneCall&) {
  const CpuSeconds cpu = process_cpu();
  return Lines("CPU")
      .add("used_cpu_sys", fmt::format("{:.6f}", cpu.system))
      .add("used_cpu_user", fmt::format("{:.6f}", cpu.user))
      .add("used_cpu_sys_children", "0.000000")
      .add("used_cpu_user_children", "0.000000")
      .text();
}

Result<std::string> modules_section(AloneCall&) { return Lines("Modules").text(); }

using NamedFigures = std::map<std::string, CommandFigures>;
NamedFigures by_name(AloneCall& call) {
  NamedFigures named;
  for (const auto& [command, figures] : call.session.usage->figures().commands)
    named.emplace(full_name(*command), figures);
  return named;
}

Result<std::string> commandstats_section(AloneCall& call) {
  Lines lines("Commandstats");
  for (const auto& [name, of] : by_name(call)) {
    const double us_per_call =
        of.calls == 0 ? 0 : static_cast<double>(of.us) / static_cast<double>(of.calls);
    lines.add("cmdstat_" + name,
              fmt::format("calls={},usec={},usec_per_call={:.2f},rejected_calls={},failed_calls={}",
                          of.calls, of.us, us_per_call, of.rejected, of.failed));
  }
  return lines.text();
}

Result<std::string> errorstats_section(AloneCall& call) {
  Lines lines("Errorstats");
  for (const auto& [kind, count] : call.session.usage->figures().errors)
    lines.add("errorstat_" + kind, fmt::format("count={}", count));
  return lines.text();
}

// The end of the bucket in which so many per cent are reached.
double percentile_us(const CommandFigures& figures, double percent) {
  const double wanted = static_cast<double>(figures.calls) * percent / 100;
  uint64_t sum = 0;
  for (size_t i = 0; i < duration_buckets; i++) {
    sum += figures.durations[i];
    if (static_cast<double>(sum) >= wanted && sum > 0)
      return static_cast<double>(bucket_end_ns(i)) / 1'000;
  }
  return 0;
}

Result<std::string> latencystats_section(AloneCall& call) {
  Lines lines("Latencystats");
  const RedisConfig& config = call.server.config();
  const KeyspaceId keyspace = call.session.tenant->id();
  if (config.value(keyspace, "latency-tracking") == "no") return lines.text();
  const std::string wanted = config.value(keyspace, "latency-tracking-info-percentiles");
  for (const auto& [name, of] : by_name(call)) {
    if (of.calls == 0) continue;
    std::string text;
    for (size_t at = 0; at < wanted.size();) {
      const size_t end = std::min(wanted.find(' ', at), wanted.size());
      const std::string percent = wanted.substr(at, end - at);
      at = end + 1;
      const auto number = parse_double(percent);
      if (!number) continue;
      text +=
          fmt::format("{}p{}={:.3f}", text.empty() ? "" : ",", percent, percentile_us(of, *number));
    }
    lines.add("latency_percentiles_usec_" + name, text);
  }
  return lines.text();
}

Result<std::string> cluster_section(AloneCall&) {
  return Lines("Cluster").add("cluster_enabled", 0).text();
}

struct Expiring {
  int64_t due = 0;  // but not removed yet
  int64_t later = 0;
  double ttl_ms = 0;  // of those, summed
};

// By the notes of their expiry. Of so many that looking at them all would take long some are left
// out.
Result<std::array<Expiring, databases_max>> count_expiring(AloneCall& call,
                                                           const DatabaseSlots& slots) {
  constexpr size_t notes_max = 200'000;
  std::array<Expiring, databases_max> found{};
  const KeyspaceId keyspace = call.session.tenant->id();
  std::optional<Bytes> begin = encode(GarbageKey{keyspace, 0, Model::catalog, {}});
  const Bytes end = encode(GarbageKey{keyspace, UINT64_MAX, Model::catalog, {}});
  for (size_t seen = 0; begin && seen < notes_max;) {
    TRY_ASSIGN(
        ScanPage page,
        call.server.map().engine.scan(
            {.begin = *begin, .end = end, .entries_max = 4'096}, [&](ByteView key, ByteView) {
              seen++;
              const auto note = decode<GarbageKey>(key);
              if (!note || note->model != Model::redis) return Visit::go_on;
              const auto garbage = decode_redis_garbage(note->target);
              if (!garbage || garbage->kind != RedisGarbage::Kind::expiry) return Visit::go_on;
              const auto database = slots.database_of(garbage->slot);
              if (!database) return Visit::go_on;
              Expiring& expiring = found[*database];
              if (note->due_ms <= call.now_ms) {
                expiring.due++;
              } else {
                expiring.later++;
                expiring.ttl_ms += static_cast<double>(note->due_ms - call.now_ms);
              }
              return Visit::go_on;
            }));
    begin = std::move(page.resume);
  }
  return found;
}

Result<std::string> keyspace_section(AloneCall& call) {
  Lines lines("Keyspace");
  TRY_ASSIGN(const DatabaseSlots slots, call.slots());
  // In this order: what is removed in between would otherwise be left out twice.
  std::array<int64_t, databases_max> keys_of{};
  for (uint32_t database = 0; database < databases_max; database++) {
    TRY_ASSIGN(keys_of[database], call.count_keys(slots, database));
  }
  TRY_ASSIGN(const auto expiring, count_expiring(call, slots));
  for (uint32_t database = 0; database < databases_max; database++) {
    const Expiring& of = expiring[database];
    const int64_t keys = std::max<int64_t>(keys_of[database] - of.due, of.later);
    if (keys <= 0) continue;
    const double ttl_ms = of.later == 0 ? 0 : of.ttl_ms / static_cast<double>(of.later);
    lines.add(fmt::format("db{}", database), fmt::format("keys={},expires={},avg_ttl={}", keys,
                                                         of.later, static_cast<uint64_t>(ttl_ms)));
  }
  return lines.text();
}

struct Section {
  std::string_view name;
  Result<std::string> (*text)(AloneCall&);
  bool by_default = true;
};
constexpr Section sections[] = {
    {"server", server_section},
    {"clients", clients_section},
    {"memory", memory_section},
    {"persistence", persistence_section},
    {"stats", stats_section},
    {"replication", replication_section},
    {"cpu", cpu_section},
    {"modules", modules_section},
    {"commandstats", commandstats_section, false},
    {"errorstats", errorstats_section},
    {"latencystats", latencystats_section, false},
    {"cluster", cluster_section},
    {"keyspace", keyspace_section},
};

bool is_wanted(const AloneCall& call, const Section& section) {
  if (call.count() == 1) return section.by_default;
  for (size_t i = 1; i < call.count(); i++)
    if (call.is_word(i, section.name) || call.is_word(i, "everything") ||
        (call.is_word(i, "all") && section.name != "modules") ||
        (call.is_word(i, "default") && section.by_default))
      return true;
  return false;
}

Status info(AloneCall& call) {
  TRY(call.session.tenant->admit(call.session.caller, Access::read));
  std::string text;
  for (const Section& section : sections) {
    if (!is_wanted(call, section)) continue;
    TRY_ASSIGN(const std::string more, section.text(call));
    if (!text.empty()) text += "\r\n";
    text += more;
  }
  call.reply.verbatim(text);
  return {};
}

namespace info_table {

const Command table[] = {
    {"info", -1, loading | stale, {}, info, "1.0.0", "Facts about the server and the keyspace."},
};

}  // namespace info_table

}  // namespace

std::span<const Command> info_commands() { return info_table::table; }

}  // namespace trellis
