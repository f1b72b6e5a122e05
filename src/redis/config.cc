#include "redis/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "redis/call.h"
#include "redis/command_facts.h"
#include "redis/glob.h"
#include "redis/number_text.h"

namespace trellis {
namespace {

enum class Kind : uint8_t {
  text,
  yes_no,
  number,     // from min to max
  hz,         // likewise, and then brought into 1 to 500
  bytes,      // 100, 1k (1000), 1kb (1024), 2mb, 3gb: up to 2^63 - 1
  any_bytes,  // the same, up to 2^64 - 1
  word,       // one of words
  flags,      // some of words
  save,       // pairs of seconds and changes
  events,     // letters
  percentiles,
  fixed,      // no client may change it
  of_server,  // nor this, which a setting of ours decides: words names its flag
};

struct Setting {
  std::string_view name;
  std::string_view default_value = {};
  Kind kind = Kind::text;
  std::string_view words = {};
  int64_t min = 0;
  int64_t max = INT32_MAX;
  std::string_view alias_of = {};
  bool is_hidden = false;  // told to who asks for its very name
};

// Sorted. Redis's settings, that no client, tool or test need fear to ask for or set one.
constexpr Setting settings[] = {
    {"acl-pubsub-default", "resetchannels", Kind::word, "allchannels, resetchannels"},
    {"aclfile", "", Kind::fixed},
    {"acllog-max-len", "128", Kind::number, {}, 0, INT64_MAX},
    {"active-defrag-cycle-max", "25", Kind::number, {}, 1, 99},
    {"active-defrag-cycle-min", "1", Kind::number, {}, 1, 99},
    {"active-defrag-ignore-bytes", "104857600", Kind::bytes, {}, 1},
    {"active-defrag-max-scan-fields", "1000", Kind::number, {}, 1, INT64_MAX},
    {"active-defrag-threshold-lower", "10", Kind::number},
    {"active-defrag-threshold-upper", "100", Kind::number, {}, 0, 1000},
    {"active-expire-effort", "1", Kind::number, {}, 1, 10},
    {"activedefrag", "no", Kind::yes_no},
    {"activerehashing", "yes", Kind::yes_no},
    {"always-show-logo", "no", Kind::fixed},
    {"aof-disable-auto-gc", "no", Kind::yes_no},
    {"aof-load-truncated", "yes", Kind::yes_no},
    {"aof-rewrite-incremental-fsync", "yes", Kind::yes_no},
    {"aof-timestamp-enabled", "no", Kind::yes_no},
    {"aof-use-rdb-preamble", "yes", Kind::yes_no},
    {"aof_rewrite_cpulist", "", Kind::fixed},
    {"appenddirname", "appendonlydir", Kind::fixed},
    {"appendfilename", "appendonly.aof", Kind::fixed},
    {"appendfsync", "everysec", Kind::of_server, "--durability"},
    {"appendonly", "yes", Kind::yes_no},
    {"auto-aof-rewrite-min-size", "67108864", Kind::bytes},
    {"auto-aof-rewrite-percentage", "100", Kind::number},
    {"bgsave_cpulist", "", Kind::fixed},
    {"bind", "", Kind::of_server, "--resp"},
    {"bind-source-addr", "", Kind::text},
    {"bio_cpulist", "", Kind::fixed},
    {"busy-reply-threshold", "5000", Kind::number},
    {"client-output-buffer-limit", "", Kind::of_server},
    {"client-query-buffer-limit", "0", Kind::of_server, "--resp-command-bytes"},
    {"cluster-allow-pubsubshard-when-down", "yes", Kind::yes_no},
    {"cluster-allow-reads-when-down", "no", Kind::yes_no},
    {"cluster-allow-replica-migration", "yes", Kind::yes_no},
    {"cluster-announce-bus-port", "0", Kind::number, {}, 0, 65535},
    {"cluster-announce-hostname", "", Kind::text},
    {"cluster-announce-ip", "", Kind::text},
    {"cluster-announce-port", "0", Kind::number, {}, 0, 65535},
    {"cluster-announce-tls-port", "0", Kind::number, {}, 0, 65535},
    {"cluster-config-file", "nodes.conf", Kind::fixed},
    {"cluster-enabled", "no", Kind::fixed},
    {"cluster-link-sendbuf-limit", "0", Kind::any_bytes},
    {"cluster-migration-barrier", "1", Kind::number},
    {"cluster-node-timeout", "15000", Kind::number, {}, 0, INT64_MAX},
    {"cluster-port", "0", Kind::fixed},
    {"cluster-preferred-endpoint-type", "ip", Kind::word, "ip, hostname, unknown-endpoint"},
    {"cluster-replica-no-failover", "no", Kind::yes_no},
    {"cluster-replica-validity-factor", "10", Kind::number},
    {"cluster-require-full-coverage", "yes", Kind::yes_no},
    {.name = "cluster-slave-no-failover", .alias_of = "cluster-replica-no-failover"},
    {.name = "cluster-slave-validity-factor", .alias_of = "cluster-replica-validity-factor"},
    {"crash-log-enabled", "yes", Kind::yes_no},
    {"crash-memcheck-enabled", "yes", Kind::yes_no},
    {"daemonize", "no", Kind::fixed},
    {"databases", "16", Kind::fixed},
    {"dbfilename", "dump.rdb", Kind::text},
    {"dir", "", Kind::fixed},
    {"disable-thp", "yes", Kind::fixed},
    {"dynamic-hz", "yes", Kind::yes_no},
    {"enable-debug-command", "local", Kind::fixed},
    {"enable-module-command", "no", Kind::fixed},
    {"enable-protected-configs", "no", Kind::fixed},
    {"hash-max-listpack-entries", "512", Kind::number, {}, 0, INT64_MAX},
    {"hash-max-listpack-value", "64", Kind::bytes},
    {.name = "hash-max-ziplist-entries", .alias_of = "hash-max-listpack-entries"},
    {.name = "hash-max-ziplist-value", .alias_of = "hash-max-listpack-value"},
    {"hll-sparse-max-bytes", "3000", Kind::bytes},
    {"hz", "10", Kind::hz},
    {"ignore-warnings", "", Kind::text},
    {"io-threads", "1", Kind::fixed},
    {"io-threads-do-reads", "no", Kind::fixed},
    {"jemalloc-bg-thread", "yes", Kind::yes_no},
    {.name = "key-load-delay",
     .default_value = "0",
     .kind = Kind::number,
     .min = INT32_MIN,
     .is_hidden = true},
    {"latency-monitor-threshold", "0", Kind::number, {}, 0, INT64_MAX},
    {"latency-tracking", "yes", Kind::yes_no},
    {"latency-tracking-info-percentiles", "50 99 99.9", Kind::percentiles},
    {"lazyfree-lazy-eviction", "no", Kind::yes_no},
    {"lazyfree-lazy-expire", "no", Kind::yes_no},
    {"lazyfree-lazy-server-del", "no", Kind::yes_no},
    {"lazyfree-lazy-user-del", "no", Kind::yes_no},
    {"lazyfree-lazy-user-flush", "no", Kind::yes_no},
    {"lfu-decay-time", "1", Kind::number},
    {"lfu-log-factor", "10", Kind::number, {}, 0, INT32_MAX},
    {"list-compress-depth", "0", Kind::number},
    {"list-max-listpack-size", "-2", Kind::number, {}, INT32_MIN, INT32_MAX},
    {.name = "list-max-ziplist-size", .alias_of = "list-max-listpack-size"},
    {"locale-collate", "", Kind::text},
    {"logfile", "", Kind::fixed},
    {"loglevel", "notice", Kind::word, "debug, verbose, notice, warning"},
    {.name = "lua-time-limit", .alias_of = "busy-reply-threshold"},
    {"masterauth", "", Kind::of_server},
    {"masteruser", "", Kind::of_server},
    {"maxclients", "10000", Kind::of_server, "--resp-clients-max"},
    {"maxmemory", "0", Kind::any_bytes},
    {"maxmemory-clients", "0", Kind::of_server, "--resp-memory-bytes"},
    {"maxmemory-eviction-tenacity", "10", Kind::number, {}, 0, 100},
    {"maxmemory-policy", "noeviction", Kind::word,
     "volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, "
     "allkeys-random, noeviction"},
    {"maxmemory-samples", "5", Kind::number, {}, 1, 64},
    {"min-replicas-max-lag", "10", Kind::number},
    {"min-replicas-to-write", "0", Kind::number},
    {.name = "min-slaves-max-lag", .alias_of = "min-replicas-max-lag"},
    {.name = "min-slaves-to-write", .alias_of = "min-replicas-to-write"},
    {"no-appendfsync-on-rewrite", "no", Kind::yes_no},
    {"notify-keyspace-events", "", Kind::events},
    {"oom-score-adj", "no", Kind::word, "no, yes, relative, absolute"},
    {"oom-score-adj-values", "0 200 800", Kind::text},
    {"pidfile", "", Kind::fixed},
    {"port", "0", Kind::of_server, "--resp"},
    {"proc-title-template", "{title} {listen-addr} {server-mode}", Kind::text},
    {"propagation-error-behavior", "ignore", Kind::word, "ignore, panic, panic-on-replicas"},
    {"protected-mode", "yes", Kind::yes_no},
    {"proto-max-bulk-len", "0", Kind::of_server},
    {"rdb-del-sync-files", "no", Kind::yes_no},
    {.name = "rdb-key-save-delay",
     .default_value = "0",
     .kind = Kind::number,
     .min = INT32_MIN,
     .is_hidden = true},
    {"rdb-save-incremental-fsync", "yes", Kind::yes_no},
    {"rdbchecksum", "yes", Kind::yes_no},
    {"rdbcompression", "yes", Kind::yes_no},
    {"repl-backlog-size", "1048576", Kind::bytes, {}, 1},
    {"repl-backlog-ttl", "3600", Kind::number, {}, 0, INT64_MAX},
    {"repl-disable-tcp-nodelay", "no", Kind::yes_no},
    {"repl-diskless-load", "disabled", Kind::word, "disabled, on-empty-db, swapdb"},
    {"repl-diskless-sync", "yes", Kind::yes_no},
    {"repl-diskless-sync-delay", "5", Kind::number},
    {"repl-diskless-sync-max-replicas", "0", Kind::number},
    {"repl-ping-replica-period", "10", Kind::number, {}, 1, INT32_MAX},
    {.name = "repl-ping-slave-period", .alias_of = "repl-ping-replica-period"},
    {"repl-timeout", "60", Kind::number, {}, 1, INT32_MAX},
    {"replica-announce-ip", "", Kind::text},
    {"replica-announce-port", "0", Kind::number, {}, 0, 65535},
    {"replica-announced", "yes", Kind::yes_no},
    {"replica-ignore-disk-write-errors", "no", Kind::yes_no},
    {"replica-ignore-maxmemory", "yes", Kind::yes_no},
    {"replica-lazy-flush", "no", Kind::yes_no},
    {"replica-priority", "100", Kind::number},
    {"replica-read-only", "yes", Kind::yes_no},
    {"replica-serve-stale-data", "yes", Kind::yes_no},
    {"replicaof", "", Kind::fixed},
    {"requirepass", "", Kind::of_server, "--auth, and the tokens of keyspaces"},
    {"sanitize-dump-payload", "no", Kind::word, "no, yes, clients"},
    {"save", "", Kind::save},
    {"server_cpulist", "", Kind::fixed},
    {"set-max-intset-entries", "512", Kind::number, {}, 0, INT64_MAX},
    {"set-max-listpack-entries", "128", Kind::number, {}, 0, INT64_MAX},
    {"set-max-listpack-value", "64", Kind::bytes},
    {"set-proc-title", "yes", Kind::fixed},
    {"shutdown-on-sigint", "default", Kind::flags, "default, save, nosave, now, force"},
    {"shutdown-on-sigterm", "default", Kind::flags, "default, save, nosave, now, force"},
    {"shutdown-timeout", "10", Kind::number},
    {.name = "slave-announce-ip", .alias_of = "replica-announce-ip"},
    {.name = "slave-announce-port", .alias_of = "replica-announce-port"},
    {.name = "slave-ignore-maxmemory", .alias_of = "replica-ignore-maxmemory"},
    {.name = "slave-lazy-flush", .alias_of = "replica-lazy-flush"},
    {.name = "slave-priority", .alias_of = "replica-priority"},
    {.name = "slave-read-only", .alias_of = "replica-read-only"},
    {.name = "slave-serve-stale-data", .alias_of = "replica-serve-stale-data"},
    {.name = "slaveof", .alias_of = "replicaof"},
    {"slowlog-log-slower-than", "10000", Kind::number, {}, -1, INT64_MAX},
    {"slowlog-max-len", "128", Kind::number, {}, 0, INT64_MAX},
    {"socket-mark-id", "0", Kind::fixed},
    {"stop-writes-on-bgsave-error", "yes", Kind::yes_no},
    {"stream-node-max-bytes", "4096", Kind::bytes},
    {"stream-node-max-entries", "100", Kind::number, {}, 0, INT64_MAX},
    {"supervised", "no", Kind::fixed},
    {"syslog-enabled", "no", Kind::fixed},
    {"syslog-facility", "local0", Kind::fixed},
    {"syslog-ident", "redis", Kind::fixed},
    {"tcp-backlog", "511", Kind::fixed},
    {"tcp-keepalive", "300", Kind::of_server},
    {"timeout", "0", Kind::of_server, "--resp-idle-timeout"},
    {"tls-auth-clients", "yes", Kind::of_server, "--tls-cert and --tls-key"},
    {"tls-ca-cert-dir", "", Kind::of_server, "--tls-cert and --tls-key"},
    {"tls-ca-cert-file", "", Kind::of_server, "--tls-cert and --tls-key"},
    {"tls-cert-file", "", Kind::of_server, "--tls-cert and --tls-key"},
    {"tls-ciphers", "", Kind::of_server, "--tls-cert and --tls-key"},
    {"tls-ciphersuites", "", Kind::of_server, "--tls-cert and --tls-key"},
    {"tls-cluster", "no", Kind::yes_no},
    {"tls-key-file", "", Kind::of_server, "--tls-cert and --tls-key"},
    {"tls-port", "0", Kind::of_server, "--resp-tls"},
    {"tls-protocols", "", Kind::of_server, "--tls-cert and --tls-key"},
    {"tls-replication", "no", Kind::yes_no},
    {"tracking-table-max-keys", "1000000", Kind::number, {}, 0, INT64_MAX},
    {"unixsocket", "", Kind::of_server, "--resp-unix"},
    {"unixsocketperm", "0", Kind::fixed},
    {"zset-max-listpack-entries", "128", Kind::number, {}, 0, INT64_MAX},
    {"zset-max-listpack-value", "64", Kind::bytes},
    {.name = "zset-max-ziplist-entries", .alias_of = "zset-max-listpack-entries"},
    {.name = "zset-max-ziplist-value", .alias_of = "zset-max-listpack-value"},
};
static_assert(std::ranges::is_sorted(settings, {}, &Setting::name));

std::string small(ByteView text) {
  std::string letters(text);
  for (char& c : letters)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return letters;
}

// The setting itself, where the name is an old one.
const Setting* find_setting(std::string_view name) {
  const auto* found =
      std::ranges::lower_bound(settings, std::string_view(name), {}, &Setting::name);
  if (found == std::end(settings) || found->name != name) return nullptr;
  return found->alias_of.empty() ? found : find_setting(found->alias_of);
}

// As Redis reads them: too many digits are the largest number, and what a unit makes of it may
// wrap.
std::optional<uint64_t> parse_bytes(ByteView text) {
  struct Unit {
    std::string_view name;
    uint64_t bytes;
  };
  constexpr Unit units[] = {
      {"", 1},          {"b", 1},        {"k", 1'000},         {"kb", 1 << 10},
      {"m", 1'000'000}, {"mb", 1 << 20}, {"g", 1'000'000'000}, {"gb", 1 << 30},
  };
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  uint64_t number = 0;  // as in Redis that of no digits
  const auto end = std::from_chars(text.data(), text.data() + digits, number);
  if (end.ec == std::errc::result_out_of_range) number = UINT64_MAX;
  for (const Unit& unit : units)
    if (equals_word(text.substr(digits), unit.name)) return number * unit.bytes;
  return std::nullopt;
}

bool is_save(ByteView text) {
  size_t numbers = 0;
  for (const ByteView word : words_of(text)) {
    if (word.empty()) continue;
    const auto number = parse_integer(word);
    if (!number || *number < 0) return false;
    numbers++;
  }
  return numbers % 2 == 0;
}

bool is_one_of(std::string_view words, ByteView text) {
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(", ", at), words.size());
    if (equals_word(text, words.substr(at, end - at))) return true;
    at = end + 2;
  }
  return false;
}

bool are_some_of(std::string_view words, ByteView text) {
  return !text.empty() &&
         std::ranges::all_of(words_of(text), [&](ByteView word) { return is_one_of(words, word); });
}

Error wrong_change(std::string_view name, std::string_view what) {
  return reply_with(fmt::format("ERR CONFIG SET failed (possibly related to argument '{}') - {}",
                                shown(name), what));
}

// With up to six digits behind the point, and none that is not needed.
Result<std::string> checked_percentiles(std::string_view name, ByteView text) {
  std::string all;
  for (const ByteView word : words_of(text)) {
    const auto number = parse_double(word);
    if (!number) return wrong_change(name, fmt::format("Invalid {} parameters", name));
    if (*number < 0 || *number > 100)
      return wrong_change(name, fmt::format("{} parameters should sit between [0.0,100.0]", name));
    std::string digits = fmt::format("{:.6f}", *number);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.pop_back();
    all += (all.empty() ? "" : " ") + digits;
  }
  return all;
}

// Each letter once, in Redis's order; A stands for all of its first ten, and then for n too.
Result<std::string> checked_events(std::string_view name, ByteView text) {
  constexpr std::string_view all = "g$lshzxetd";
  constexpr std::string_view others = "KEm";
  const auto has = [&](char letter) { return text.find(letter) != text.npos; };
  const auto is_known = [&](char c) {
    return c == 'A' || c == 'n' || all.find(c) != all.npos || others.find(c) != others.npos;
  };
  if (!std::ranges::all_of(text, is_known))
    return wrong_change(name, "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
  std::string letters;
  if (has('A') || std::ranges::all_of(all, has))
    letters = "A";
  else
    std::ranges::copy_if(std::string(all) + "n", std::back_inserter(letters), has);
  std::ranges::copy_if(others, std::back_inserter(letters), has);
  return letters;
}

// As it is stored; or what is wrong with it. `name` may be an old one.
Result<std::string> checked(const Setting& setting, std::string_view name, ByteView text) {
  constexpr size_t value_bytes_max = 4'096;
  const auto wrong = [&](std::string_view what) { return wrong_change(name, what); };
  if (text.size() > value_bytes_max) return wrong("argument is too long");
  switch (setting.kind) {
    case Kind::yes_no:
      if (!equals_word(text, "yes") && !equals_word(text, "no"))
        return wrong("argument must be 'yes' or 'no'");
      return small(text);
    case Kind::number:
    case Kind::hz: {
      const auto number = parse_integer(text);
      if (!number) return wrong("argument couldn't be parsed into an integer");
      if (*number < setting.min || *number > setting.max)
        return wrong(
            fmt::format("argument must be between {} and {} inclusive", setting.min, setting.max));
      if (setting.kind == Kind::hz) return std::to_string(std::clamp<int64_t>(*number, 1, 500));
      return std::string(text);
    }
    case Kind::bytes:
    case Kind::any_bytes: {
      const auto bytes = parse_bytes(text);
      if (!bytes) return wrong("argument must be a memory value");
      if (setting.kind == Kind::bytes &&
          (*bytes < static_cast<uint64_t>(setting.min) || *bytes > INT64_MAX))
        return wrong(
            fmt::format("argument must be between {} and {} inclusive", setting.min, INT64_MAX));
      return std::to_string(*bytes);
    }
    case Kind::word:
    case Kind::flags:
      if (!(setting.kind == Kind::word ? is_one_of : are_some_of)(setting.words, text))
        return wrong(fmt::format("argument(s) must be one of the following: {}", setting.words));
      return small(text);
    case Kind::save:
      if (!is_save(text)) return wrong("Invalid save parameters");
      return std::string(text);
    case Kind::events: return checked_events(name, text);
    case Kind::percentiles: return checked_percentiles(name, text);
    case Kind::fixed: return wrong("can't set immutable config");
    case Kind::of_server:
      return wrong(
          setting.words.empty()
              ? "it is the whole server's, and fixed"
              : fmt::format("it is the whole server's: see trellis serve {}", setting.words));
    case Kind::text: break;
  }
  return std::string(text);
}

}  // namespace

std::string RedisConfig::value_of(KeyspaceId keyspace, std::string_view name,
                                  std::string_view default_value) const {
  if (const auto fact = facts_.find(name); fact != facts_.end()) return fact->second;
  if (const auto found = values_.find(keyspace); found != values_.end())
    if (const auto changed = found->second.find(name); changed != found->second.end())
      return changed->second;
  return std::string(default_value);
}

std::string RedisConfig::value(KeyspaceId keyspace, std::string_view name) const {
  const Setting* setting = find_setting(name);
  const std::lock_guard lock(mutex_);
  return value_of(keyspace, name, setting == nullptr ? "" : setting->default_value);
}

int64_t RedisConfig::number(KeyspaceId keyspace, std::string_view name) const {
  return parse_integer(value(keyspace, name)).value_or(0);
}

void RedisConfig::set_fact(std::string_view name, std::string value) {
  const std::lock_guard lock(mutex_);
  facts_.insert_or_assign(std::string(name), std::move(value));
}

void RedisConfig::get(
    KeyspaceId keyspace, ByteView pattern,
    FunctionRef<void(std::string_view name, std::string_view value)> visit) const {
  const std::string wanted = small(pattern);
  const bool is_name = pattern.find_first_of("*?[") == ByteView::npos;  // which is told as it came
  const std::lock_guard lock(mutex_);
  for (const Setting& setting : settings) {
    if (!glob_matches(wanted, setting.name) || (setting.is_hidden && !is_name)) continue;
    const Setting& real = *find_setting(setting.name);
    visit(is_name ? pattern : setting.name, value_of(keyspace, real.name, real.default_value));
  }
}

Status RedisConfig::set(KeyspaceId keyspace, std::span<const Change> changes) {
  Values next;
  std::set<std::string> names;
  for (const auto& [given, text] : changes) {
    const std::string name = small(given);
    const Setting* setting = find_setting(name);
    if (setting == nullptr)
      return reply_with(fmt::format(
          "ERR Unknown option or number of arguments for CONFIG SET - '{}'", shown(given)));
    if (!names.insert(name).second) return wrong_change(given, "duplicate parameter");
  }
  for (const auto& [given, text] : changes) {
    const std::string name = small(given);
    const Setting* setting = find_setting(name);
    // Who sets what is so is not refused.
    if (setting->kind == Kind::of_server && text == value(keyspace, setting->name)) continue;
    Result<std::string> checked_text = checked(*setting, name, text);
    if (!checked_text) return std::move(checked_text).error();
    next.insert_or_assign(std::string(setting->name), std::move(*checked_text));
  }
  const std::lock_guard lock(mutex_);
  Values& values = values_[keyspace];
  for (auto& [name, text] : next) values.insert_or_assign(name, std::move(text));
  return {};
}

}  // namespace trellis
