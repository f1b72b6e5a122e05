// MIGRATE: keys go to another server, as DUMP has them. It does not hold them while they travel:
// what changes meanwhile stays here too, and is told.
#include <fmt/format.h>

#include <map>

#include "redis/alone_transaction.h"
#include "redis/generic_handlers.h"
#include "redis/number_text.h"
#include "redis/server.h"

namespace trellis {
namespace {

struct Migration {
  std::vector<ByteView> names;
  bool copies = false;
  bool replaces = false;
  std::vector<ByteView> auth;  // AUTH's arguments
  int64_t database = 0;
  uint32_t timeout_ms = 0;
};

Result<Migration> parse(const AloneCall& call) {
  Migration migration;
  for (size_t i = 6; i < call.count(); i++) {
    const size_t more = call.count() - i - 1;
    if (call.is_word(i, "copy")) {
      migration.copies = true;
    } else if (call.is_word(i, "replace")) {
      migration.replaces = true;
    } else if ((call.is_word(i, "auth") && more >= 1) || (call.is_word(i, "auth2") && more >= 2)) {
      const size_t words = call.is_word(i, "auth") ? 1 : 2;
      const auto first = call.args.begin() + static_cast<ptrdiff_t>(i) + 1;
      migration.auth.assign(first, first + static_cast<ptrdiff_t>(words));
      i += words;
    } else if (call.is_word(i, "keys")) {
      if (!call.arg(3).empty())
        return reply_with(
            "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string");
      migration.names.assign(call.args.begin() + static_cast<ptrdiff_t>(i) + 1, call.args.end());
      break;
    } else {
      return syntax_error();
    }
  }
  if (migration.names.empty()) migration.names = {call.arg(3)};
  TRY_ASSIGN(const int64_t timeout_ms, call.integer(5));
  TRY_ASSIGN(migration.database, call.integer(4));
  constexpr int64_t timeout_ms_default = 1'000;
  constexpr int64_t timeout_ms_max = 600'000;  // all clients of the loop wait
  migration.timeout_ms = static_cast<uint32_t>(
      std::min(timeout_ms > 0 ? timeout_ms : timeout_ms_default, timeout_ms_max));
  return migration;
}

void append_words(Bytes& out, std::span<const ByteView> words) {
  out += fmt::format("*{}\r\n", words.size());
  for (const ByteView word : words) {
    out += fmt::format("${}\r\n", word.size());
    out += word;
    out += "\r\n";
  }
}

struct Sent {
  ByteView name;
  uint64_t ttl_ms;
  Bytes payload;
};

// Watches the keys, as a client could: what changes while they travel stays here.
class Watched {
 public:
  Watched(AloneCall& call, const Migration& migration) : table_(call.server.watches()) {
    for (const ByteView name : migration.names) {
      const auto [watched, is_new] = all_.emplace(
          name, One{watched_key(call.session.tenant->id(), call.session.database, name),
                    std::make_shared<std::atomic<bool>>(false)});
      if (is_new) table_.add(watched->second.key, watched->second.flag);
    }
  }
  ~Watched() {
    for (const auto& [name, one] : all_) table_.remove(one.key, one.flag);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  bool has_changed(ByteView name) const { return *all_.at(name).flag; }

 private:
  struct One {
    Bytes key;
    WatchFlag flag;
  };
  WatchTable& table_;
  std::map<ByteView, One> all_;
};

std::vector<NamedKey> named(const AloneCall& call, const Migration& migration, Access access) {
  std::vector<NamedKey> keys;
  for (const ByteView name : migration.names) keys.push_back({call.session.database, name, access});
  return keys;
}

Result<std::vector<Sent>> read_keys(AloneCall& alone, const Migration& migration) {
  std::vector<Sent> keys;
  TRY(transact_alone(alone, named(alone, migration, Access::read), [&](Call& call) -> Status {
    keys.clear();
    size_t bytes = 0;
    for (const ByteView name : migration.names) {
      TRY_ASSIGN(const Key* const key, call.keys.open(call.session.database, name));
      if (!key->exists()) continue;
      TRY_ASSIGN(const RdbValue value, read_value(call, *key));
      const uint64_t ttl_ms = key->expire_ms() == 0 ? 0 : key->expire_ms() - call.now_ms();
      keys.push_back({name, ttl_ms, write_rdb_payload(value)});
      bytes += keys.back().payload.size();
      if (bytes > rewritten_bytes_max)
        return reply_with("ERR these keys are too large to be migrated at once: take fewer");
    }
    return {};
  }));
  return keys;
}

Bytes request_for(const Migration& migration, std::span<const Sent> keys) {
  Bytes request;
  if (!migration.auth.empty()) {
    std::vector<ByteView> words = {"AUTH"};
    words.insert(words.end(), migration.auth.begin(), migration.auth.end());
    append_words(request, words);
  }
  const std::string database = std::to_string(migration.database);
  append_words(request, std::vector<ByteView>{"SELECT", database});
  for (const Sent& key : keys) {
    const std::string ttl = std::to_string(key.ttl_ms);
    std::vector<ByteView> words = {"RESTORE", key.name, ttl, key.payload};
    if (migration.replaces) words.emplace_back("REPLACE");
    append_words(request, words);
  }
  return request;
}

// Those that are as they were sent; says whether all of them were.
Result<bool> remove_sent(AloneCall& alone, const Migration& migration, const Watched& watched,
                         std::span<const Sent> keys) {
  // The table knows what this process does, and where there are others the value tells.
  const bool is_alone = alone.server.map().latched();
  bool unchanged = true;
  TRY(transact_alone(alone, named(alone, migration, Access::write), [&](Call& call) -> Status {
    unchanged = true;
    for (const Sent& sent : keys) {
      TRY_ASSIGN(Key* const key, call.keys.open(call.session.database, sent.name));
      if (!key->exists()) continue;
      bool has_changed = watched.has_changed(sent.name);
      if (!has_changed && !is_alone) {
        TRY_ASSIGN(const RdbValue value, read_value(call, *key));
        has_changed = write_rdb_payload(value) != sent.payload;
      }
      unchanged = unchanged && !has_changed;
      if (!has_changed) key->remove();
    }
    return {};
  }));
  return unchanged;
}

// What the other side said, line by line: which keys it has, and its first error.
struct Outcome {
  std::vector<Sent> taken;
  std::string error;
};
Outcome outcome_of(ByteView answer, const Migration& migration, std::vector<Sent> keys) {
  Outcome outcome;
  const size_t lines_before = migration.auth.empty() ? 1 : 2;
  for (size_t line = 0; line < lines_before + keys.size(); line++) {
    const size_t end = answer.find("\r\n");
    if (end == ByteView::npos) {
      if (outcome.error.empty())
        outcome.error = "IOERR error or timeout reading from target instance";
      break;
    }
    const bool is_error = answer.starts_with('-');
    if (is_error && outcome.error.empty())
      outcome.error =
          fmt::format("ERR Target instance replied with error: {}", answer.substr(1, end - 1));
    answer.remove_prefix(end + 2);
    if (is_error && line < lines_before) break;  // who knows where the keys went
    if (!is_error && line >= lines_before)
      outcome.taken.push_back(std::move(keys[line - lines_before]));
  }
  return outcome;
}

}  // namespace

Status find_migrated_keys(Args args, std::vector<size_t>& positions) {
  for (size_t i = 6; i < args.size(); i++) {
    if (equals_word(args[i], "auth"))
      i++;
    else if (equals_word(args[i], "auth2"))
      i += 2;
    else if (equals_word(args[i], "keys") && args[3].empty()) {
      for (size_t key = i + 1; key < args.size(); key++) positions.push_back(key);
      return {};
    }
  }
  positions.push_back(3);
  return {};
}

Status migrate(AloneCall& call) {
  TRY_ASSIGN(const Migration migration, parse(call));
  const Watched watched(call, migration);
  TRY_ASSIGN(std::vector<Sent> keys, read_keys(call, migration));
  if (keys.empty()) {
    call.reply.simple("NOKEY");
    return {};
  }
  const auto port = parse_integer(call.arg(2));
  const auto& ask = call.server.options().ask_server;
  if (!port || *port < 1 || *port > UINT16_MAX || !ask)
    return reply_with("IOERR error or timeout connecting to the client");
  const Bytes request = request_for(migration, keys);
  const auto answer = ask(std::string(call.arg(1)), static_cast<uint16_t>(*port), request,
                          keys.size() + (migration.auth.empty() ? 1 : 2), migration.timeout_ms);
  if (!answer) return reply_with("IOERR error or timeout connecting to the client");
  const Outcome outcome = outcome_of(*answer, migration, std::move(keys));
  bool unchanged = true;
  if (!migration.copies && !outcome.taken.empty()) {
    TRY_ASSIGN(unchanged, remove_sent(call, migration, watched, outcome.taken));
  }
  if (!outcome.error.empty()) return reply_with(outcome.error);
  if (!unchanged)
    return reply_with(
        "ERR a key changed while it was migrated and is still here: migrate it again "
        "with REPLACE");
  call.reply.ok();
  return {};
}

}  // namespace trellis
