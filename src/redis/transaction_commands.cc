// MULTI, EXEC, DISCARD, WATCH and UNWATCH.
#include <algorithm>

#include "redis/executor.h"

namespace trellis {
namespace {

using namespace command_flag;

Status multi(AloneCall& call) {
  if (call.session.in_multi) return reply_with("ERR MULTI calls can not be nested");
  call.session.in_multi = true;
  call.reply.ok();
  return {};
}

Status discard(AloneCall& call) {
  if (!call.session.in_multi) return reply_with("ERR DISCARD without MULTI");
  call.server.leave_multi(call.session);
  call.reply.ok();
  return {};
}

Status unwatch(AloneCall& call) {
  call.server.forget_watches(call.session);
  call.reply.ok();
  return {};
}

constexpr size_t watched_bytes_more = 256;  // than its names, of a key in both tables

Status watch(AloneCall& call) {
  Session& session = call.session;
  if (session.in_multi) return reply_with("ERR WATCH inside MULTI is not allowed");
  if (session.watch_flag == nullptr) session.watch_flag = std::make_shared<std::atomic<bool>>();
  // First in the table, then read: what changes in between is noticed.
  std::vector<Session::Watched*> added;
  for (size_t i = 1; i < call.count(); i++) {
    Bytes stored_key = redis_metadata_key(session.tenant->id(), session.database, call.arg(i));
    const size_t bytes = 2 * stored_key.size() + watched_bytes_more;
    if (session.watched.contains(stored_key)) continue;
    if (session.watched_bytes + bytes > call.server.options().command_bytes_max)
      return reply_with("ERR too many keys are watched (client-query-buffer-limit)");
    session.watched_bytes += bytes;
    call.server.watches().add(stored_key, session.watch_flag);
    added.push_back(&session.watched[std::move(stored_key)]);
    *added.back() = {session.database, Bytes(call.arg(i))};
  }
  RedisTransaction look(call.server, *session.tenant, session.caller);
  for (const Session::Watched* watched : added) look.read_too(watched->database, watched->name);
  TRY(look.run([&](Keys& keys) -> Status {
    for (Session::Watched* watched : added) {
      TRY_ASSIGN(const Key* const key, keys.open(watched->database, watched->name));
      watched->expire_ms = key->exists() ? key->expire_ms() : 0;
    }
    return {};
  }));
  call.reply.ok();
  return {};
}

// A watched key changed: told by the table, or by the clock.
bool is_broken(const Session& session, uint64_t now_ms) {
  if (session.watch_flag != nullptr && *session.watch_flag) return true;
  return std::any_of(session.watched.begin(), session.watched.end(), [&](const auto& entry) {
    return entry.second.expire_ms != 0 && entry.second.expire_ms <= now_ms;
  });
}

constexpr std::string_view reason_broken = "watch_broken";

// What cannot name its keys is run one by one, behind the transaction's check.
bool runs_together(const std::vector<QueuedCommand>& queue) {
  return std::all_of(queue.begin(), queue.end(), [](const QueuedCommand& queued) {
    return queued.command->handler.run != nullptr;
  });
}

Status exec_together(AloneCall& call) {
  Session& session = call.session;
  RedisTransaction transaction(call.server, *session.tenant, session.caller);
  std::vector<std::vector<ByteView>> args;
  for (const QueuedCommand& queued : session.queue)
    args.emplace_back(queued.args.begin(), queued.args.end());
  for (size_t i = 0; i < session.queue.size(); i++)
    transaction.add_always({&session, session.queue[i].command, args[i]});
  for (const auto& [stored_key, watched] : session.watched)
    transaction.read_too(watched.database, watched.name);
  const Status status = transaction.run([&](Keys& keys) -> Status {
    if (is_broken(session, keys.now_ms())) return Error{Code::refused, "watched", reason_broken};
    return {};
  });
  if (!status && status.error().reason == reason_broken) {
    call.reply.null_array();
    return {};
  }
  TRY(status);
  call.reply.array(session.queue.size());
  call.reply.raw(transaction.replies());
  return {};
}

Status exec_one_by_one(AloneCall& call) {
  Session& session = call.session;
  if (is_broken(session, call.now_ms)) {
    call.reply.null_array();
    return {};
  }
  std::vector<QueuedCommand> queue = std::move(session.queue);
  session.queue.clear();
  session.in_multi = false;
  Bytes replies;
  Executor executor(call.server, true);
  for (const QueuedCommand& queued : queue) {
    const std::vector<ByteView> args(queued.args.begin(), queued.args.end());
    Request request{&session, args, &replies};
    executor.run({&request, 1});
  }
  call.reply.array(queue.size());
  call.reply.raw(replies);
  return {};
}

Status exec(AloneCall& call) {
  Session& session = call.session;
  if (!session.in_multi) return reply_with("ERR EXEC without MULTI");
  Status status;
  if (session.multi_failed)
    status = reply_with("EXECABORT Transaction discarded because of previous errors.");
  else if (runs_together(session.queue))
    status = exec_together(call);
  else
    status = exec_one_by_one(call);
  call.server.leave_multi(call.session);
  return status;
}

constexpr uint32_t plain = noscript | loading | stale | fast | allow_busy;
const Command table[] = {
    {"discard", 1, plain, {}, discard, "2.0.0", "Forgets what MULTI has queued."},
    {"exec",
     1,
     noscript | loading | stale | skip_slowlog,
     {},
     exec,
     "1.2.0",
     "Runs what MULTI has queued."},
    {"multi", 1, plain, {}, multi, "1.2.0", "Queues the commands that follow, for EXEC."},
    {"unwatch", 1, plain, {}, unwatch, "2.2.0", "Forgets what is watched."},
    {"watch",
     -2,
     plain,
     {1, -1, 1},
     watch,
     "2.2.0",
     "Lets EXEC refuse if one of the keys changes."},
};

}  // namespace

std::span<const Command> transaction_commands() { return table; }

}  // namespace trellis
