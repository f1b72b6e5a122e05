#include "redis/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "redis/call.h"
#include "redis/glob.h"

namespace trellis {
namespace {

struct Setting {
  std::string_view name;
  std::string_view default_value;
};

// Sorted. Of Redis's settings those that clients, tools and tests ask for or set.
constexpr Setting settings[] = {
    {"activedefrag", "no"},
    {"appendfsync", "everysec"},
    {"appendonly", "yes"},
    {"bind", "127.0.0.1"},
    {"client-output-buffer-limit",
     "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"},
    {"client-query-buffer-limit", "1073741824"},
    {"databases", "16"},
    {"hash-max-listpack-entries", "512"},
    {"hash-max-listpack-value", "64"},
    {"hash-max-ziplist-entries", "512"},
    {"hash-max-ziplist-value", "64"},
    {"hz", "10"},
    {"latency-monitor-threshold", "0"},
    {"lazyfree-lazy-expire", "no"},
    {"lazyfree-lazy-server-del", "no"},
    {"lazyfree-lazy-user-del", "no"},
    {"lfu-decay-time", "1"},
    {"lfu-log-factor", "10"},
    {"list-compress-depth", "0"},
    {"list-max-listpack-size", "-2"},
    {"list-max-ziplist-size", "-2"},
    {"maxclients", "10000"},
    {"maxmemory", "0"},
    {"maxmemory-clients", "0"},
    {"maxmemory-policy", "noeviction"},
    {"maxmemory-samples", "5"},
    {"notify-keyspace-events", ""},
    {"port", "7379"},
    {"proto-max-bulk-len", "536870912"},
    {"save", ""},
    {"set-max-intset-entries", "512"},
    {"set-max-listpack-entries", "128"},
    {"set-max-listpack-value", "64"},
    {"slowlog-log-slower-than", "10000"},
    {"slowlog-max-len", "128"},
    {"stream-node-max-bytes", "4096"},
    {"stream-node-max-entries", "100"},
    {"tcp-keepalive", "300"},
    {"timeout", "0"},
    {"unixsocket", ""},
    {"zset-max-listpack-entries", "128"},
    {"zset-max-listpack-value", "64"},
    {"zset-max-ziplist-entries", "128"},
    {"zset-max-ziplist-value", "64"},
};

std::string lower(ByteView text) {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return small;
}

}  // namespace

bool RedisConfig::is_known(std::string_view name) {
  return std::ranges::binary_search(settings, std::string_view(lower(name)), {}, &Setting::name);
}

void RedisConfig::get(
    KeyspaceId keyspace, ByteView pattern,
    FunctionRef<void(std::string_view name, std::string_view value)> visit) const {
  const std::string wanted = lower(pattern);
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(keyspace);
  for (const Setting& setting : settings) {
    if (!glob_matches(wanted, setting.name)) continue;
    std::string_view value = setting.default_value;
    if (const auto fixed = fixed_.find(setting.name); fixed != fixed_.end())
      value = fixed->second;
    else if (found != values_.end())
      if (const auto changed = found->second.find(setting.name); changed != found->second.end())
        value = changed->second;
    visit(setting.name, value);
  }
}

Status RedisConfig::set(KeyspaceId keyspace, std::string_view name, ByteView value) {
  constexpr size_t value_bytes_max = 4'096;
  const auto refuse = [&](std::string_view why) {
    return reply_with(fmt::format("ERR CONFIG SET failed (possibly related to argument '{}') - {}",
                                  shown(name), why));
  };
  if (value.size() > value_bytes_max) return refuse("argument is too long");
  if (const auto fixed = fixed_.find(lower(name)); fixed != fixed_.end()) {
    if (fixed->second != value) return refuse("can't set immutable config");
    return {};
  }
  const std::lock_guard lock(mutex_);
  values_[keyspace][lower(name)] = value;
  return {};
}

}  // namespace trellis
