// Runs commands: all that is ready on a loop together, in as few transactions as may be.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "redis/call.h"
#include "redis/server.h"

namespace trellis {

// One command of a session, parsed. Its views stay valid while it runs.
struct Request {
  Session* session;
  Args args;   // at least the name
  Bytes* out;  // where its reply goes
  // Not empty: it could not be taken, which is its reply; there are no arguments then.
  std::string_view refusal = {};
  bool is_done = false;  // told by Executor::run
};

// Commands of one tenant and role as one transaction.
class RedisTransaction {
 public:
  struct Element {
    Session* session;
    const Command* command;
    Args args;
  };
  // Of the tenant and role that the session has.
  RedisTransaction(RedisServer& server, const Session& session)
      : server_(server),
        tenant_(*session.tenant),
        caller_(session.caller),
        databases_(*session.databases) {}

  // Names what `element` may touch. Says no, and does nothing, if the transaction is full: then it
  // belongs into the next one. What runs alone takes the keyspace for the whole transaction.
  bool add(const Element& element);
  // The same, full or not: of what must be one.
  void add_always(const Element& element);
  // A key that is looked at, or changed, by what run() is given to run first.
  void name_key(uint32_t database, ByteView name, Access access);
  void take_keyspace(Access access);
  size_t size() const { return elements_.size(); }

  // Runs all, or, if it fails, none of them; one command, or what must be one, in parts if it is
  // too large for a commit (staging.h). `check` runs first, under the latches; what it answers ends
  // the transaction. The replies are valid until the next run. What follows a reply with which they
  // have more than `stop_bytes` is left out: see ran().
  Status run(FunctionRef<Status(Keys&)> check, size_t stop_bytes = SIZE_MAX);
  size_t ran() const { return ends_.size(); }
  ByteView reply(size_t element) const;
  ByteView replies() const { return replies_; }  // of all, one after the other

 private:
  void record();
  Status prefetch_subs(Keys& keys);
  bool add(const Element& element, bool always);
  // What it writes, if anything, is for itself.
  bool may_only_read() const;
  // `counted`: as so many operations.
  Status run_once(FunctionRef<Status(Keys&)> check, size_t stop_bytes, size_t counted);
  Status run_staged(FunctionRef<Status(Keys&)> check, size_t stop_bytes);
  // What was staged and is not used: the collector may have it now.
  void give_up(const Staging::Note& note);
  Status run_in(CountedView& view, FunctionRef<Status(Keys&)> check, size_t stop_bytes);
  Status run_elements(Keys& keys, size_t stop_bytes);
  Scope scope() const;

  RedisServer& server_;
  Tenant& tenant_;
  const Caller& caller_;
  Databases& databases_;
  DatabaseSlots slots_;  // as its scope has them
  std::vector<Element> elements_;
  std::vector<Keys::Name> names_;
  std::vector<bool> exclusive_;  // of names_
  size_t argument_bytes_ = 0;
  bool writes_ = false;
  bool takes_keyspace_ = false;
  bool must_be_one_ = false;
  Staging* staging_ = nullptr;  // of the run, if it has any
  size_t notes_kept_ = 0;       // of its notes, by runs before this one
  Bytes replies_;
  std::vector<size_t> ends_;
  // Of the last run, for its records. A command's time is its own and its share of what they all
  // needed.
  Lookups lookups_;
  std::vector<uint64_t> ended_us_;
  std::vector<std::pair<size_t, std::string>> errors_;  // by element
  uint64_t began_us_ = 0;
  uint64_t handlers_began_us_ = 0;
};

// What replies may take before the rest of the requests is left for another run.
struct ReplyRoom {
  size_t each_bytes = SIZE_MAX;  // of one session
  size_t all_bytes = SIZE_MAX;   // of the run
};

// One per loop; one thread.
class Executor {
 public:
  // within_exec: what it is given is part of a command that has begun: all of it is run, whatever
  // the session's pause, end or silence, and answered.
  explicit Executor(RedisServer& server, bool within_exec = false)
      : server_(server), within_exec_(within_exec) {}

  // Those of one session, which stand together, in their order; sessions in any. Replies are
  // appended when what they say is committed. What a pause of the tenant holds, and what there was
  // no room for, is not done (Request::is_done); if there is no pause at least one is. What is held
  // is to be given again when Session::go_on is called. Behind one that closes its session none is
  // run.
  void run(std::span<Request> requests, const ReplyRoom& room = {});

 private:
  struct Planned {
    Request* request;
    const Command* command;
    bool is_muted;  // nobody is to hear its reply
  };
  struct Queue {
    std::span<Request> requests;  // of one session
    size_t next = 0;
    bool is_held = false;
  };
  void run_ready(Queue& queue, std::vector<Planned>& together);
  // Answers at once what needs no data: errors, and what is queued for EXEC. `is_waiting`: commands
  // of the session wait to be run, and this one joins them.
  const Command* plan(const Request& request, bool is_waiting);
  bool is_held(const Request& request) const;
  // Nobody is to hear what it is answered. Of EXEC that holds for the whole.
  bool is_muted(const Session& session) const {
    return !within_exec_ && (session.no_reply || session.skips_this);
  }
  bool joins(const Request& request) const;
  void run_alone(const Request& request, const Command& command);
  void run_together(std::span<const Planned> planned);
  // Gives how many of them it is done with.
  size_t commit(RedisTransaction& transaction, std::span<const Planned> planned);
  // Once true it stays so during a run, for all that follows of the same session.
  bool is_full(const Request& request) const {
    return request.out->size() > room_.each_bytes || replied_bytes_ > room_.all_bytes;
  }

  RedisServer& server_;
  const bool within_exec_;
  ReplyRoom room_;
  size_t replied_bytes_ = 0;  // in this run, by what reads and writes keys
};

// The reply of an error that is none of Redis's own: of a quota, a state, the disk.
std::string error_reply(const Error& error);

}  // namespace trellis
