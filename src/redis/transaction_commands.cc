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
    Bytes key = watched_key(session.tenant->id(), session.database, call.arg(i));
    const size_t bytes = 2 * key.size() + watched_bytes_more;
    if (session.watched.contains(key)) continue;
    if (session.watched_bytes + bytes > call.server.options().command_bytes_max)
      return reply_with("ERR too many keys are watched (client-query-buffer-limit)");
    session.watched_bytes += bytes;
    call.server.watches().add(key, session.watch_flag);
    added.push_back(&session.watched[std::move(key)]);
    *added.back() = {session.database, Bytes(call.arg(i))};
  }
  RedisTransaction look(call.server, session);
  for (const Session::Watched* watched : added)
    look.name_key(watched->database, watched->name, Access::read);
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

// What works on keys, or decides how that is done, is one transaction. What does not (CLIENT,
// CONFIG, INFO) has its effect once, when that is done.
bool is_transacted(const QueuedCommand& queued) {
  return queued.command->handler.run != nullptr || queued.command->has(joins_exec);
}

Status run_transacted(AloneCall& call, RedisTransaction& transaction) {
  Session& session = call.session;
  const uint32_t database = session.database;
  const int protocol = session.protocol;
  const auto undo = [&] {
    session.database = database;
    session.protocol = protocol;
  };
  for (const auto& [key, watched] : session.watched)
    transaction.name_key(watched.database, watched.name, Access::read);
  Status status = transaction.run([&](Keys& keys) -> Status {
    undo();  // what a run before this one did
    if (is_broken(session, keys.now_ms())) return Error{Code::refused, "watched", reason_broken};
    return {};
  });
  if (!status) undo();
  return status;
}

Status run_queue(AloneCall& call) {
  Session& session = call.session;
  const std::vector<QueuedCommand> queue = std::move(session.queue);
  std::vector<std::vector<ByteView>> args;
  for (const QueuedCommand& queued : queue)
    args.emplace_back(queued.args.begin(), queued.args.end());
  const int protocol_before = session.protocol;
  RedisTransaction transaction(call.server, session);
  for (size_t i = 0; i < queue.size(); i++)
    if (is_transacted(queue[i])) transaction.add_always({&session, queue[i].command, args[i]});
  const Status status = run_transacted(call, transaction);
  if (!status && status.error().reason == reason_broken) {
    call.reply.null_array();
    return {};
  }
  TRY(status);
  session.in_multi = false;
  call.reply.array(queue.size());
  // What comes behind the transaction is answered in the protocol that was chosen before it.
  const int protocol_behind = session.protocol;
  session.protocol = protocol_before;
  Executor executor(call.server, true);
  for (size_t i = 0, transacted = 0; i < queue.size(); i++) {
    Bytes reply;
    if (is_transacted(queue[i])) {
      reply = transaction.reply(transacted++);
      const bool chooses = queue[i].command->name == "hello" && args[i].size() > 1;
      if (chooses && !reply.starts_with('-')) session.protocol = args[i][1] == "3" ? 3 : 2;
    } else {
      Request request{&session, args[i], &reply};
      executor.run({&request, 1});
    }
    call.reply.raw(reply);
  }
  session.protocol = protocol_behind;
  return {};
}

Status exec(AloneCall& call) {
  Session& session = call.session;
  if (!session.in_multi) return reply_with("ERR EXEC without MULTI");
  Status status;
  if (session.multi_failed)
    status = reply_with("EXECABORT Transaction discarded because of previous errors.");
  else
    status = run_queue(call);
  call.server.leave_multi(call.session);
  return status;
}

namespace transaction_table {

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

}  // namespace transaction_table

}  // namespace

std::span<const Command> transaction_commands() { return transaction_table::table; }

}  // namespace trellis
