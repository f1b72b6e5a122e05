#include "redis/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "codec/redis_keys.h"
#include "redis/stream_group.h"

namespace trellis {
namespace {

using namespace command_flag;

// More would be a good part of all latches that there are. (The thread sanitizer follows no more
// than 64 locks of a thread.)
constexpr size_t names_max = 50;
// What a transaction may hold before the rest goes into the next one: well below commit_bytes_max.
constexpr size_t argument_bytes_max = 1024 * 1024;
constexpr size_t elements_max = 1'024;
// The same for replies: what follows is read again in the next one, so it is not too little.
constexpr size_t batch_reply_bytes_max = 16 * 1024 * 1024;

bool is_queued_in_multi(const Command& command) {
  for (const std::string_view name : {"exec", "discard", "multi", "watch", "quit", "reset"})
    if (command.container.empty() && command.name == name) return false;
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

bool writes(const Session& session, const Command& command) {
  if (command.has(write | keeps_result)) return true;
  if (command.name != "exec") return false;
  return std::any_of(session.queue.begin(), session.queue.end(), [](const QueuedCommand& queued) {
    return queued.command->has(write | keeps_result);
  });
}

bool has_role_for(const Session& session, const Command& command) {
  if (command.has(for_server_admin)) return session.caller.role >= Role::server_admin;
  return !command.has(admin) || command.has(for_everyone) || session.caller.role >= Role::admin;
}

void record_alone(const Session& session, const Command& command, Args args, uint64_t us,
                  uint64_t unix_ms, std::string_view error) {
  if (session.usage == nullptr) return;
  session.usage->count([&](UsageFigures& figures) {
    figures.commands[&command].ran(us, !error.empty());
    if (!error.empty()) figures.error(error);
  });
  if (session.usage->is_notable(us))
    session.usage->note(session, command, args, us, unix_ms / 1'000);
}

Status check_size(ByteView replies) {
  if (replies.size() <= reply_bytes_max) return {};
  return Error{
      Code::too_large,
      fmt::format("the reply has more than {} bytes: ask for less at once", reply_bytes_max)};
}

}  // namespace

std::string error_reply(const Error& error) {
  if (error.reason == reply_error) return error.message;
  if (error.reason == "quota_exceeded") return "OOM " + error.message;
  if (error.reason == "rate_exceeded") return "THROTTLED " + error.message;
  if (error.reason == commit_too_large) return std::string(too_much_at_once);
  if (error.code == Code::denied) return "NOPERM " + error.message;
  if (error.code == Code::no_space) return "MISCONF " + error.message;
  if (error.code == Code::maybe) return "UNKNOWN it may or may not have happened: " + error.message;
  return "ERR " + error.message;
}

// --- a transaction ---

bool RedisTransaction::add(const Element& element) { return add(element, false); }
void RedisTransaction::add_always(const Element& element) {
  must_be_one_ = true;
  add(element, true);
}

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
  const Access access = element.command->has(write | keeps_result) ? Access::write : Access::read;
  if (element.command->handler.run_alone != nullptr) take_keyspace(access);
  for (const size_t position : positions)
    name_key(element.session->database, element.args[position], access);
  argument_bytes_ += bytes;
  writes_ = writes_ || access == Access::write;
  elements_.push_back(element);
  return true;
}

void RedisTransaction::name_key(uint32_t database, ByteView name, Access access) {
  names_.push_back({database, name});
  exclusive_.push_back(access == Access::write);
  writes_ = writes_ || access == Access::write;
}

void RedisTransaction::take_keyspace(Access access) {
  takes_keyspace_ = true;
  writes_ = writes_ || access == Access::write;
}

// As far as can be told before anything has run.
Status RedisTransaction::prefetch_subs(Keys& keys) {
  if (elements_.size() < 2) return {};
  std::vector<Keys::Sub> wanted;
  std::unordered_map<const Key*, std::pair<uint64_t, uint64_t>> popped;  // from head and tail
  for (const Element& element : elements_) {
    const SubPositions& subs = element.command->subs;
    if (subs.first == 0 && subs.of == SubPositions::Of::members) continue;
    TRY_ASSIGN(const Key* const key,
               keys.open_by_field(element.session->database, element.args[1]));
    if (!key->exists() || key->type() == RedisType::string) continue;
    const size_t step = subs.step == 0 ? element.args.size() : subs.step;
    if (subs.of == SubPositions::Of::members) {
      for (size_t i = subs.first; i < element.args.size(); i += step)
        wanted.push_back({key, Bytes(element.args[i])});
    } else if (subs.of == SubPositions::Of::pending) {
      if (key->type() != RedisType::stream || key->stream().groups == 0) continue;
      for (size_t i = subs.first; i < element.args.size(); i += step)
        if (const auto id = parse_id(element.args[i]))
          wanted.push_back({key, pending_sub(element.args[2], *id)});
    } else if (key->type() == RedisType::list) {
      auto& [from_head, from_tail] = popped[key];
      if (from_head + from_tail >= key->size()) continue;
      const uint64_t index =
          subs.of == SubPositions::Of::head ? key->head() + from_head++ : key->tail() - ++from_tail;
      wanted.push_back({key, encode(RedisListSub{index})});
    }
  }
  return keys.prefetch_subs(wanted);
}

Status RedisTransaction::run_in(CountedView& view, FunctionRef<Status(Keys&)> check,
                                size_t stop_bytes) {
  replies_.clear();
  ends_.clear();
  ended_us_.clear();
  errors_.clear();
  lookups_ = {};
  TRY(databases_.check(tenant_, view, slots_));
  const Clock& clock = server_.map().clock;
  Keys keys(view, tenant_.id(), server_.versions(), server_.watches(), server_.fence_books(),
            slots_, clock.unix_ms(), staging_,
            must_be_one_ ? elements_[0].session->watch_flag : nullptr);
  if (!writes_) keys.forbid_writes();
  notes_kept_ = staging_ == nullptr ? 0 : staging_->notes.size();
  TRY(keys.prefetch(names_));
  TRY(prefetch_subs(keys));
  const Status checked = check(keys);
  TRY(keys.staged());
  TRY(checked);
  TRY(run_elements(keys, stop_bytes));
  TRY(keys.finish());
  if (staging_ != nullptr && staging_->notes.size() != notes_kept_ &&
      clock.unix_ms() > keys.now_ms() + staging_ms_max)
    return Error{Code::unavailable, "to write so much took over an hour: do it in parts"};
  if (keys.has_new_slots()) databases_.doubt();
  return {};
}

Status RedisTransaction::run_elements(Keys& keys, size_t stop_bytes) {
  Clock& clock = server_.map().clock;
  handlers_began_us_ = clock.monotonic_us();
  for (const Element& element : elements_) {
    const Handler& handler = element.command->handler;
    Reply reply(replies_, element.session->protocol);
    const size_t mark = reply.mark();
    Status status;
    if (handler.run != nullptr) {
      Call call{*element.command, element.args, reply, keys, *element.session, server_, lookups_};
      status = handler.run(call);
    } else {
      AloneCall call{*element.command, element.args,  reply, *element.session,
                     server_,          keys.now_ms(), &keys};
      status = handler.run_alone(call);
    }
    TRY(keys.staged());
    if (!status) {
      if (status.error().reason != reply_error) return status;
      reply.rewind(mark);
      reply.error(status.error().message);
      errors_.emplace_back(ends_.size(), std::move(status).error().message);
    }
    TRY(check_size(replies_));
    ends_.push_back(replies_.size());
    ended_us_.push_back(clock.monotonic_us());
    if (replies_.size() > stop_bytes) break;
  }
  return {};
}

void RedisTransaction::record() {
  const size_t ran_count = ran();
  if (ran_count == 0) return;
  const uint64_t now_us = server_.map().clock.monotonic_us();
  const uint64_t all_us = now_us - began_us_;
  const uint64_t handlers_us = ended_us_.back() - handlers_began_us_;
  const uint64_t share_us = (all_us - std::min(all_us, handlers_us)) / ran_count;
  const auto us_of = [&](size_t i) {
    return ended_us_[i] - (i == 0 ? handlers_began_us_ : ended_us_[i - 1]) + share_us;
  };
  Usage& usage = *elements_[0].session->usage;
  usage.count([&](UsageFigures& figures) {
    figures.hits += lookups_.hits;
    figures.misses += lookups_.misses;
    auto error = errors_.begin();
    CommandFigures* of_command = nullptr;
    for (size_t i = 0; i < ran_count; i++) {
      const bool failed = error != errors_.end() && error->first == i;
      // Most batches are of one command.
      if (i == 0 || elements_[i].command != elements_[i - 1].command)
        of_command = &figures.commands[elements_[i].command];
      of_command->ran(us_of(i), failed);
      if (failed) figures.error((error++)->second);
    }
  });
  for (size_t i = 0; i < ran_count; i++) {
    const Element& element = elements_[i];
    if (usage.is_notable(us_of(i)))
      usage.note(*element.session, *element.command, element.args, us_of(i),
                 server_.map().clock.unix_ms() / 1'000);
  }
}

Scope RedisTransaction::scope() const {
  const KeyspaceId keyspace = tenant_.id();
  // So many latches would be in everybody's way: one for all of it is not worse.
  if (takes_keyspace_ || names_.size() > names_max) return Scope::all_of(keyspace);
  Scope scope = Scope::in(keyspace);
  MetadataKeys keys(keyspace);
  for (size_t i = 0; i < names_.size(); i++) {
    const ByteView key = keys.of(slots_.of(names_[i].database), names_[i].name);
    exclusive_[i] ? scope.exclusive(key) : scope.shared(key);
  }
  if (!tenant_.map().latched()) scope.shared(encode(RedisDatabasesKey{keyspace}));
  return scope;
}

Status RedisTransaction::run_once(FunctionRef<Status(Keys&)> check, size_t stop_bytes,
                                  size_t counted) {
  const auto operations = static_cast<uint32_t>(counted);
  const auto run_all = [&](CountedView& view) { return run_in(view, check, stop_bytes); };
  Status status;
  do {
    slots_ = databases_.last();
    status = writes_ ? tenant_.write(caller_, Model::redis, scope(), run_all, operations)
                     : tenant_.read(caller_, Model::redis, scope(), run_all, operations);
  } while (!status && status.error().reason == slots_changed);
  if (status && staging_ != nullptr) staging_->notes.resize(notes_kept_);
  return status;
}

namespace {

bool is_too_large(const Status& status) {
  return !status && status.error().reason == commit_too_large;
}

// To who may read.
bool is_refused_write(const Status& status) {
  return !status && (status.error().code == Code::denied || status.error().code == Code::no_space ||
                     status.error().reason == "quota_exceeded");
}

}  // namespace

Status RedisTransaction::run_staged(FunctionRef<Status(Keys&)> check, size_t stop_bytes) {
  Staging staging;
  staging.is_validated = !tenant_.map().latched();
  staging_ = &staging;
  Status status;
  for (size_t least = renewed_bytes_first;;) {
    status = run_once(check, stop_bytes, 0);
    const size_t renewed = staging.renewed.size();
    for (; least >= renewed_bytes_last && staging.renewed.size() == renewed; least /= 8)
      for (const auto& [key, bytes] : staging.written_bytes)
        if (bytes >= least) staging.renewed.insert(key);
    if (!is_too_large(status) || staging.renewed.size() == renewed) break;
    staging.written_bytes.clear();
  }
  staging_ = nullptr;
  for (const Staging::Note& note : staging.notes) give_up(note);
  return status;
}

void RedisTransaction::give_up(const Staging::Note& note) {
  const Bytes note_key = encode(GarbageKey{tenant_.id(), note.due_ms, Model::redis, note.target});
  Scope scope = Scope::in(tenant_.id());
  scope.exclusive(note_key);
  // If that fails the note is due later.
  static_cast<void>(tenant_.collect(Model::redis, scope, [&](CountedView& view) -> Status {
    Value noted;
    TRY(view.get(note_key, noted));
    if (!noted.found()) return {};
    view.forget_garbage(note.due_ms, note.target);
    view.leave_garbage(server_.map().clock.unix_ms(), note.target, staged_part_bytes,
                       CountedView::When::at_once);
    return {};
  }));
}

bool RedisTransaction::may_only_read() const {
  return !elements_.empty() && std::ranges::none_of(elements_, [](const Element& element) {
    return element.command->has(write);
  });
}

Status RedisTransaction::run(FunctionRef<Status(Keys&)> check, size_t stop_bytes) {
  began_us_ = server_.map().clock.monotonic_us();
  // Reads go on where nothing can be written.
  if (writes_ && !may_only_read()) TRY(server_.versions().prepare());
  Status status = run_once(check, stop_bytes, elements_.size());
  if (is_refused_write(status) && may_only_read()) {
    writes_ = false;
    status = run_once(check, stop_bytes, elements_.size());
  }
  if (is_too_large(status) && (must_be_one_ || elements_.size() <= 1))
    status = run_staged(check, stop_bytes);
  TRY(status);
  record();
  return {};
}

ByteView RedisTransaction::reply(size_t element) const {
  const size_t begin = element == 0 ? 0 : ends_[element - 1];
  return ByteView(replies_).substr(begin, ends_[element] - begin);
}

// --- the executor ---

const Command* Executor::plan(const Request& request, bool is_waiting) {
  Session& session = *request.session;
  Reply reply(*request.out, session.protocol);
  const Command* command = request.args.empty() ? nullptr : find_command(request.args[0]);
  const auto refuse = [&](const std::string& text) {
    if (session.usage != nullptr)
      session.usage->count([&](UsageFigures& figures) {
        if (command != nullptr) figures.rejected(*command);
        figures.error(text);
      });
    if (command != nullptr && command->name == "exec") {  // then it is the transaction that is over
      server_.leave_multi(session);
      reply.error("EXECABORT Transaction discarded because of: " + text.substr(text.find(' ') + 1));
      return nullptr;
    }
    session.multi_failed = session.multi_failed || session.in_multi;
    reply.error(text);
    return nullptr;
  };
  if (!request.refusal.empty()) return refuse(std::string(request.refusal));
  if (command == nullptr) {
    // A browser that was led here: its body must not be taken for commands.
    if (equals_word(request.args[0], "post") || equals_word(request.args[0], "host:"))
      session.closing = true;
    return refuse(unknown_command(request.args));
  }
  if (!command->subcommands.empty()) {
    const Command* sub = subcommand_of(*command, request.args);
    if (sub == nullptr && request.args.size() >= 2)
      return refuse(fmt::format("ERR unknown subcommand '{}'. Try {} HELP.",
                                shown(request.args[1], 128), upper(command->name)));
    if (sub != nullptr) command = sub;
  }
  session.last_command.store(command, std::memory_order_relaxed);
  if (!arity_fits(*command, request.args.size()))
    return refuse(wrong_arity(full_name(*command)).message);
  // Once for all that runs together: a refusal must not overtake what waits.
  if (!is_waiting && !command->has(no_auth) && !server_.is_welcome(session))
    return refuse("NOAUTH Authentication required.");
  if (!has_role_for(session, *command) && !command->has(no_auth))
    return refuse(fmt::format("NOPERM User {} has no permissions to run the '{}' command",
                              session.user, full_name(*command)));
  if (session.in_multi && is_queued_in_multi(*command)) {
    if (command->has(no_multi)) return refuse("ERR Command not allowed inside a transaction");
    QueuedCommand queued{command, {}};
    size_t bytes = sizeof(queued);
    for (const ByteView arg : request.args) bytes += sizeof(Bytes) + arg.size();
    if (session.queued_bytes + bytes > server_.options().command_bytes_max)
      return refuse(fmt::format("ERR MULTI queues at most {} bytes (client-query-buffer-limit)",
                                server_.options().command_bytes_max));
    session.queued_bytes += bytes;
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
  const Clock& clock = server_.map().clock;
  AloneCall call{command, request.args, reply, session, server_, clock.unix_ms(), nullptr};
  const uint64_t began_us = clock.monotonic_us();
  std::string error;
  Status status = command.handler.run_alone(call);
  if (status) status = check_size(*request.out);
  if (!status) {
    request.out->resize(before);
    error = error_reply(status.error());
    reply.error(error);
  }
  record_alone(session, command, request.args, clock.monotonic_us() - began_us, call.now_ms, error);
  if (is_muted(session)) request.out->resize(before);
  replied_bytes_ += request.out->size() - std::min(before, request.out->size());
}

// Each on its own if together they are refused, which may be the fault of only one of them.
size_t Executor::commit(RedisTransaction& transaction, std::span<const Planned> planned) {
  const auto no_check = [](Keys&) { return Status(); };
  const Status status = transaction.run(no_check, batch_reply_bytes_max);
  if (status) {
    for (size_t i = 0; i < transaction.ran(); i++) {
      if (!planned[i].is_muted) planned[i].request->out->append(transaction.reply(i));
      planned[i].request->is_done = true;
    }
    replied_bytes_ += transaction.replies().size();
    return transaction.ran();
  }
  const Code code = status.error().code;
  const bool may_repeat = planned.size() > 1 && code != Code::maybe && code != Code::unavailable;
  for (const Planned& one : planned) {
    if (is_full(*one.request)) continue;
    Session& session = *one.request->session;
    Status outcome = status;
    RedisTransaction alone(server_, session);
    if (may_repeat) {
      alone.add({&session, one.command, one.request->args});
      outcome = alone.run(no_check);
    }
    const std::string error = outcome ? "" : error_reply(outcome.error());
    if (!outcome)
      record_alone(session, *one.command, one.request->args, 0, server_.map().clock.unix_ms(),
                   error);
    replied_bytes_ += alone.replies().size();
    one.request->is_done = true;
    if (one.is_muted) continue;
    if (outcome)
      one.request->out->append(alone.reply(0));
    else
      Reply(*one.request->out, session.protocol).error(error);
  }
  return planned.size();
}

void Executor::run_together(std::span<const Planned> planned) {
  size_t first = 0;
  while (first < planned.size()) {
    if (is_full(*planned[first].request)) {
      first++;
      continue;
    }
    Session& session = *planned[first].request->session;
    RedisTransaction transaction(server_, session);
    size_t end = first;
    while (end < planned.size() && !is_full(*planned[end].request)) {
      const Planned& next = planned[end];
      const Session& other = *next.request->session;
      if (other.tenant != session.tenant || other.caller.role != session.caller.role) break;
      if (!transaction.add({next.request->session, next.command, next.request->args})) break;
      end++;
    }
    first += commit(transaction, planned.subspan(first, end - first));
  }
}

void Executor::run(std::span<Request> requests, const ReplyRoom& room) {
  room_ = room;
  replied_bytes_ = 0;
  const uint64_t now_ms = server_.map().clock.unix_ms();
  std::vector<Queue> queues;  // in the order in which they came
  queues.reserve(requests.size());
  for (size_t first = 0, end = 0; first < requests.size(); first = end) {
    Session* const session = requests[first].session;
    while (end < requests.size() && requests[end].session == session) end++;
    queues.push_back({requests.subspan(first, end - first)});
    session->active_ms.store(now_ms, std::memory_order_relaxed);
  }
  std::vector<Planned> together;
  together.reserve(requests.size());
  for (;;) {
    together.clear();
    for (Queue& queue : queues) run_ready(queue, together);
    if (together.empty()) break;
    const auto by_owner = [](const Planned& a, const Planned& b) {
      const Session& x = *a.request->session;
      const Session& y = *b.request->session;
      return std::tie(x.tenant, x.caller.role) < std::tie(y.tenant, y.caller.role);
    };
    if (!std::ranges::is_sorted(together, by_owner)) std::ranges::stable_sort(together, by_owner);
    run_together(together);
  }
  for (const Queue& queue : queues) {
    Session& session = *queue.requests.front().session;
    session.queued.store(session.in_multi ? static_cast<int64_t>(session.queue.size()) : -1,
                         std::memory_order_relaxed);
  }
}

// Runs what can be run alone, and adds to `together` what comes behind that.
void Executor::run_ready(Queue& queue, std::vector<Planned>& together) {
  Session& session = *queue.requests.front().session;
  bool is_waiting = false;  // has commands in `together`: what follows must not overtake them
  for (; queue.next < queue.requests.size() && !queue.is_held; queue.next++) {
    Request& request = queue.requests[queue.next];
    if (is_full(request) || (session.closing && !within_exec_)) return;
    if (is_waiting && !joins(request)) return;
    queue.is_held = is_held(request);
    if (queue.is_held) return;
    if (!within_exec_) session.skips_this = std::exchange(session.skip_reply, false);
    const size_t before = request.out->size();
    const Command* command = plan(request, is_waiting);
    request.is_done = command == nullptr || command->handler.run_alone != nullptr;
    if (command == nullptr) {
      if (is_muted(session)) request.out->resize(before);
    } else if (command->handler.run_alone != nullptr) {
      run_alone(request, *command);
    } else {
      together.push_back({&request, command, is_muted(session)});
      is_waiting = true;
    }
  }
}

bool Executor::is_held(const Request& request) const {
  Session& session = *request.session;
  if (within_exec_ || session.usage == nullptr || session.usage->pause_until_ms() == 0)
    return false;
  const Command* command = request.args.empty() ? nullptr : find_command(request.args[0]);
  // What is refused whenever it comes is refused now.
  if (command == nullptr || !arity_fits(*command, request.args.size())) return false;
  const bool is_write = writes(session, *command);
  return session.usage->is_paused(is_write, server_.map().clock.unix_ms()) &&
         server_.clients().hold(session, is_write);
}

// Whether planning it now changes and answers nothing, so that it may join what waits.
bool Executor::joins(const Request& request) const {
  const Session& session = *request.session;
  if (session.in_multi || request.args.empty()) return false;
  const Command* command = find_command(request.args[0]);
  return command != nullptr && command->handler.run != nullptr &&
         arity_fits(*command, request.args.size());
}

}  // namespace trellis
