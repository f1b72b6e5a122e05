#include "redis/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "codec/redis_keys.h"

namespace trellis {
namespace {

using namespace command_flag;

// More would be a good part of all latches that there are. (The thread sanitizer follows no more
// than 64 locks of a thread.)
constexpr size_t names_max = 48;
// What a transaction may hold before the rest goes into the next one: well below commit_bytes_max.
constexpr size_t argument_bytes_max = 1024 * 1024;
constexpr size_t elements_max = 1'024;

bool is_queued_in_multi(const Command& command) {
  for (const std::string_view name : {"exec", "discard", "multi", "watch", "quit", "reset"})
    if (command.name == name) return false;
  return true;
}

std::string unknown_command(Args args) {
  constexpr size_t shown_max = 128;
  std::string first;
  for (size_t i = 1; i < args.size() && first.size() < shown_max; i++)
    first += fmt::format("'{}' ", shown(args[i], shown_max - first.size()));
  return fmt::format("ERR unknown command '{}', with args beginning with: {}",
                     shown(args[0], shown_max), first);
}

const Command* subcommand_of(const Command& container, Args args) {
  if (args.size() < 2) return nullptr;
  for (const Command& command : container.subcommands)
    if (equals_word(args[1], command.name)) return &command;
  return nullptr;
}

}  // namespace

std::string error_reply(const Error& error) {
  if (error.reason == reply_error) return error.message;
  if (error.reason == "quota_exceeded") return "OOM " + error.message;
  if (error.reason == "rate_exceeded") return "THROTTLED " + error.message;
  if (error.code == Code::denied) return "NOPERM " + error.message;
  if (error.code == Code::no_space) return "MISCONF " + error.message;
  if (error.code == Code::maybe) return "UNKNOWN it may or may not have happened: " + error.message;
  return "ERR " + error.message;
}

// --- a transaction ---

bool RedisTransaction::add(const Element& element) { return add(element, false); }
void RedisTransaction::add_always(const Element& element) { add(element, true); }

bool RedisTransaction::add(const Element& element, bool always) {
  std::vector<size_t> positions;
  // What has no keys that can be found is refused when it runs.
  if (!key_positions(*element.command, element.args, positions)) positions.clear();
  size_t bytes = 0;
  for (const ByteView arg : element.args) bytes += arg.size();
  const bool full = !elements_.empty() && (names_.size() + positions.size() > names_max ||
                                           argument_bytes_ + bytes > argument_bytes_max ||
                                           elements_.size() == elements_max);
  if (full && !always) return false;
  const bool is_write = element.command->has(write);
  for (const size_t position : positions) {
    names_.push_back({element.session->database, element.args[position]});
    exclusive_.push_back(is_write);
  }
  argument_bytes_ += bytes;
  writes_ = writes_ || is_write;
  elements_.push_back(element);
  return true;
}

void RedisTransaction::read_too(uint32_t database, ByteView name) {
  names_.push_back({database, name});
  exclusive_.push_back(false);
}

Status RedisTransaction::run_elements(CountedView& view, FunctionRef<Status(Keys&)> check) {
  replies_.clear();
  ends_.clear();
  Keys keys(view, tenant_.id(), server_.versions(), server_.map().clock.unix_ms());
  TRY(keys.prefetch(names_));
  TRY(check(keys));
  for (const Element& element : elements_) {
    Reply reply(replies_, element.session->protocol);
    Call call{*element.command, element.args, reply, keys, *element.session, server_};
    const size_t mark = reply.mark();
    if (Status status = element.command->handler.run(call); !status) {
      if (status.error().reason != reply_error) return status;
      reply.rewind(mark);
      reply.error(status.error().message);
    }
    ends_.push_back(replies_.size());
  }
  return keys.finish([&](const Key& key) { server_.watches().touch(key.stored_key()); });
}

Status RedisTransaction::run(FunctionRef<Status(Keys&)> check) {
  if (writes_) TRY(server_.versions().prepare());  // reads go on where nothing can be written
  const KeyspaceId keyspace = tenant_.id();
  // So many latches would be in everybody's way: one for all of it is not worse.
  Scope scope = names_.size() > names_max ? Scope::all_of(keyspace) : Scope::in(keyspace);
  if (names_.size() <= names_max)
    for (size_t i = 0; i < names_.size(); i++) {
      const Bytes key = redis_metadata_key(keyspace, names_[i].database, names_[i].name);
      exclusive_[i] ? scope.exclusive(key) : scope.shared(key);
    }
  const auto operations = static_cast<uint32_t>(elements_.size());
  const auto run_all = [&](CountedView& view) { return run_elements(view, check); };
  return writes_ ? tenant_.write(caller_, Model::redis, scope, run_all, operations)
                 : tenant_.read(caller_, Model::redis, scope, run_all, operations);
}

ByteView RedisTransaction::reply(size_t element) const {
  const size_t begin = element == 0 ? 0 : ends_[element - 1];
  return ByteView(replies_).substr(begin, ends_[element] - begin);
}

// --- the executor ---

const Command* Executor::plan(const Request& request, bool is_waiting) {
  Session& session = *request.session;
  Reply reply(*request.out, session.protocol);
  const Command* command = find_command(request.args[0]);
  const auto refuse = [&](const std::string& text) {
    if (command != nullptr && command->name == "exec") {  // then it is the transaction that is over
      server_.leave_multi(session);
      reply.error("EXECABORT Transaction discarded because of: " + text.substr(text.find(' ') + 1));
      return nullptr;
    }
    session.multi_failed = session.multi_failed || session.in_multi;
    reply.error(text);
    return nullptr;
  };
  if (command == nullptr) return refuse(unknown_command(request.args));
  if (!command->subcommands.empty()) {
    const Command* sub = subcommand_of(*command, request.args);
    if (sub == nullptr && request.args.size() >= 2)
      return refuse(fmt::format("ERR unknown subcommand '{}'. Try {} HELP.",
                                shown(request.args[1], 128), upper(command->name)));
    if (sub != nullptr) command = sub;
  }
  if (!arity_fits(*command, request.args.size()))
    return refuse(wrong_arity(full_name(*command)).message);
  // Once for all that runs together: a refusal must not overtake what waits.
  if (!is_waiting && !command->has(no_auth) && !server_.is_welcome(session))
    return refuse("NOAUTH Authentication required.");
  if (session.in_multi && is_queued_in_multi(*command)) {
    if (command->has(no_multi)) return refuse("ERR Command not allowed inside a transaction");
    QueuedCommand queued{command, {}};
    for (const ByteView arg : request.args) queued.args.emplace_back(arg);
    session.queue.push_back(std::move(queued));
    reply.simple("QUEUED");
    return nullptr;
  }
  return command;
}

void Executor::run_alone(const Request& request, const Command& command) {
  Session& session = *request.session;
  const size_t before = request.out->size();
  Reply reply(*request.out, session.protocol);
  AloneCall call{command, request.args, reply, session, server_, server_.map().clock.unix_ms()};
  if (const Status status = command.handler.run_alone(call); !status) {
    request.out->resize(before);
    reply.error(error_reply(status.error()));
  }
}

// Each on its own if together they are refused, which may be the fault of only one of them.
void Executor::commit(RedisTransaction& transaction, std::span<const Planned> planned) {
  const auto no_check = [](Keys&) { return Status(); };
  const Status status = transaction.run(no_check);
  if (status) {
    for (size_t i = 0; i < planned.size(); i++)
      planned[i].request->out->append(transaction.reply(i));
    return;
  }
  const Code code = status.error().code;
  const bool may_repeat = planned.size() > 1 && code != Code::maybe && code != Code::unavailable;
  for (const Planned& one : planned) {
    Session& session = *one.request->session;
    Status outcome = status;
    RedisTransaction alone(server_, *session.tenant, session.caller);
    if (may_repeat) {
      alone.add({&session, one.command, one.request->args});
      outcome = alone.run(no_check);
    }
    if (outcome)
      one.request->out->append(alone.reply(0));
    else
      Reply(*one.request->out, session.protocol).error(error_reply(outcome.error()));
  }
}

void Executor::run_together(std::span<const Planned> planned) {
  size_t first = 0;
  while (first < planned.size()) {
    Session& session = *planned[first].request->session;
    RedisTransaction transaction(server_, *session.tenant, session.caller);
    size_t end = first;
    while (end < planned.size()) {
      const Planned& next = planned[end];
      const Session& other = *next.request->session;
      if (other.tenant != session.tenant || other.caller.role != session.caller.role) break;
      if (!transaction.add({next.request->session, next.command, next.request->args})) break;
      end++;
    }
    commit(transaction, planned.subspan(first, end - first));
    first = end;
  }
}

void Executor::run(std::span<const Request> requests) {
  // What is left of each session, in the order in which they came.
  std::vector<std::vector<const Request*>> sessions;
  std::unordered_map<const Session*, size_t> index;
  for (const Request& request : requests) {
    const auto [at, is_new] = index.emplace(request.session, sessions.size());
    if (is_new) sessions.emplace_back();
    sessions[at->second].push_back(&request);
  }
  std::vector<size_t> next(sessions.size(), 0);
  for (;;) {
    std::vector<Planned> together;
    for (size_t i = 0; i < sessions.size(); i++) {
      bool is_waiting = false;  // has commands in `together`: what follows must not overtake them
      for (; next[i] < sessions[i].size(); next[i]++) {
        const Request& request = *sessions[i][next[i]];
        if (is_waiting && !joins(request)) break;
        const Command* command = plan(request, is_waiting);
        if (command == nullptr) continue;
        if (command->handler.run_alone != nullptr) {
          run_alone(request, *command);
          continue;
        }
        together.push_back({&request, command});
        is_waiting = true;
      }
    }
    if (together.empty()) return;
    std::stable_sort(together.begin(), together.end(), [](const Planned& a, const Planned& b) {
      const Session& x = *a.request->session;
      const Session& y = *b.request->session;
      return std::tie(x.tenant, x.caller.role) < std::tie(y.tenant, y.caller.role);
    });
    run_together(together);
  }
}

// Whether planning it now changes and answers nothing, so that it may join what waits.
bool Executor::joins(const Request& request) const {
  const Session& session = *request.session;
  if (session.in_multi) return false;
  const Command* command = find_command(request.args[0]);
  return command != nullptr && command->handler.run != nullptr &&
         arity_fits(*command, request.args.size());
}

}  // namespace trellis
