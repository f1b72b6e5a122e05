// What an operator of a single Redis server knows: saving, replication, shutting down. Here data is
// always on disk and a server has no replicas, and the answers say so in Redis's words.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "redis/call.h"
#include "redis/number_text.h"
#include "redis/server.h"

namespace trellis {
namespace {

using namespace command_flag;

Status save(AloneCall& call) {
  call.reply.ok();
  return {};
}

Status bgsave(AloneCall& call) {
  if (call.count() > 2 || (call.count() == 2 && !call.is_word(1, "schedule")))
    return syntax_error();
  call.reply.simple("Background saving started");
  return {};
}

Status bgrewriteaof(AloneCall& call) {
  call.reply.simple("Background append only file rewriting started");
  return {};
}

// All that was written until now is on disk, as far as the durability goes.
Status lastsave(AloneCall& call) {
  call.reply.integer(static_cast<int64_t>(call.now_ms / 1'000));
  return {};
}

Status role(AloneCall& call) {
  call.reply.array(3);
  call.reply.bulk("master");
  call.reply.integer(0);
  call.reply.array(0);
  return {};
}

Status no_cluster(AloneCall&) {
  return reply_with("ERR This instance has cluster support disabled");
}

Status replicaof(AloneCall& call) {
  if (call.is_word(1, "no") && call.is_word(2, "one")) {
    call.reply.ok();
    return {};
  }
  const auto port = parse_integer(call.arg(2));
  if (!port || *port < 0 || *port > 65'535) return reply_with("ERR Invalid master port");
  return reply_with("ERR REPLICAOF is not supported: this server is no replica of another");
}

Status failover(AloneCall& call) {
  if (call.count() == 2 && call.is_word(1, "abort"))
    return reply_with("ERR No failover in progress.");
  if (call.count() > 1 && !call.is_word(1, "to") && !call.is_word(1, "timeout"))
    return syntax_error();
  return reply_with("ERR FAILOVER requires connected replicas.");
}

Status lolwut(AloneCall& call) {
  if (call.count() > 2 && call.is_word(1, "version")) TRY(call.integer(2));
  call.reply.verbatim(fmt::format("Redis ver. {}\n", redis_version));
  return {};
}

// NOSAVE, SAVE, NOW and FORCE make no difference: the stop is graceful, and all is on disk.
Status shutdown(AloneCall& call) {
  const std::string_view words[] = {"save", "nosave", "abort", "now", "force"};
  std::array<bool, std::size(words)> has{};
  for (size_t i = 1; i < call.count(); i++) {
    const auto word = std::find_if(std::begin(words), std::end(words),
                                   [&](std::string_view one) { return call.is_word(i, one); });
    if (word == std::end(words)) return syntax_error();
    has[static_cast<size_t>(word - words)] = true;
  }
  const bool abort = has[2];
  if ((has[0] && has[1]) || (abort && call.count() > 2)) return syntax_error();
  if (abort) return reply_with("ERR No shutdown in progress.");
  if (!call.server.options().stop_process)
    return reply_with("ERR SHUTDOWN is not supported here: stop the process that serves");
  call.server.options().stop_process();
  call.session.closing = true;  // without an answer, as by Redis
  return {};
}

namespace operator_table {

constexpr uint32_t control = admin | noscript;
const Command table[] = {
    {"bgrewriteaof",
     1,
     control | no_async_loading,
     {},
     bgrewriteaof,
     "1.0.0",
     "Rewrites the log, which is always done here."},
    {"bgsave",
     -1,
     control | no_async_loading,
     {},
     bgsave,
     "1.0.0",
     "Saves the data, which is always done here."},
    {"failover",
     -1,
     control | stale,
     {},
     failover,
     "6.2.0",
     "Hands over to a replica: there are none."},
    {"lastsave", 1, loading | stale | fast, {}, lastsave, "1.0.0", "When the data was saved last."},
    {"lolwut", -1, readonly | fast, {}, lolwut, "5.0.0", "The version, without art."},
    {"replicaof",
     3,
     control | stale | no_async_loading,
     {},
     replicaof,
     "5.0.0",
     "Follows another server, which is not supported; NO ONE is."},
    {"role",
     1,
     noscript | loading | stale | fast,
     {},
     role,
     "2.8.12",
     "The role in replication: a master without replicas."},
    {"save",
     1,
     control | no_async_loading | no_multi,
     {},
     save,
     "1.0.0",
     "Saves the data, which is always done here."},
    {"shutdown",
     -1,
     control | loading | stale | no_multi | allow_busy | for_server_admin,
     {},
     shutdown,
     "1.0.0",
     "Stops the whole server gracefully."},
    {"slaveof",
     3,
     control | stale | no_async_loading,
     {},
     replicaof,
     "1.0.0",
     "An old name of REPLICAOF."},
};

}  // namespace operator_table

const Command cluster_table[] = {
    {"asking", 1, fast, {}, no_cluster, "3.0.0", "Of clusters, which this server is no part of."},
    {"readonly",
     1,
     loading | stale | fast,
     {},
     no_cluster,
     "3.0.0",
     "Of clusters, which this server is no part of."},
    {"readwrite",
     1,
     loading | stale | fast,
     {},
     no_cluster,
     "3.0.0",
     "Of clusters, which this server is no part of."},
};

}  // namespace

std::span<const Command> cluster_commands() { return cluster_table; }
std::span<const Command> operator_commands() { return operator_table::table; }

}  // namespace trellis
