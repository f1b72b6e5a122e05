// DEBUG, as far as tests of clients and of Redis use it. It can hold up a loop, so it is for the
// server's admin only.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "redis/alone_transaction.h"
#include "redis/executor.h"
#include "redis/generic_handlers.h"
#include "redis/help.h"
#include "redis/number_text.h"
#include "tenant/sha256.h"

namespace trellis {
namespace {

using namespace command_flag;

Status accept(AloneCall& call) {
  call.reply.ok();
  return {};
}

Status debug_sleep(AloneCall& call) {
  constexpr double seconds_max = 60;
  const double seconds = parse_double(call.arg(2)).value_or(0);
  call.server.map().clock.pause_us(
      static_cast<uint64_t>(std::clamp(seconds, 0.0, seconds_max) * 1'000'000));
  call.reply.ok();
  return {};
}

// Everything is on disk at any time, and read from there: there is nothing to load anew.
Status debug_reload(AloneCall& call) {
  for (size_t i = 2; i < call.count(); i++)
    if (!call.is_word(i, "merge") && !call.is_word(i, "noflush") && !call.is_word(i, "nosave"))
      return reply_with("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
  call.reply.ok();
  return {};
}

Status debug_set_active_expire(AloneCall& call) {
  call.server.set_expires_actively(call.arg(2) != "0");
  call.reply.ok();
  return {};
}

Status debug_error(AloneCall& call) { return reply_with(Bytes(call.arg(2))); }

Status debug_log(AloneCall& call) {
  log_warn("DEBUG LOG", {{"text", call.arg(2)}});
  call.reply.ok();
  return {};
}

Status debug_stringmatch(AloneCall& call) {
  call.reply.simple("Apparently Redis did not crash: test passed");
  return {};
}

// --- what keys hold ---

std::vector<NamedKey> named(std::span<const Bytes> names, uint32_t database) {
  std::vector<NamedKey> keys;
  for (const Bytes& name : names) keys.push_back({database, name, Access::read});
  return keys;
}

Status debug_object(AloneCall& call) {
  const Bytes names[] = {Bytes(call.arg(2))};
  return transact_alone(call, named(names, call.session.database), [](Call& inner) -> Status {
    TRY_ASSIGN(const Key* const key, inner.open(2));
    if (!key->exists()) return no_such_key();
    TRY_ASSIGN(const std::string_view encoding, encoding_of(inner, *key));
    TRY_ASSIGN(const RdbValue value, read_value(inner, *key));
    constexpr size_t seal_bytes = 11;  // the type, and what DUMP adds
    inner.reply.simple(
        fmt::format("Value at:0x{:x} refcount:1 encoding:{} serializedlength:{} lru:0 "
                    "lru_seconds_idle:0",
                    key->version(), encoding, write_rdb_payload(value).size() - seal_bytes));
    return {};
  });
}

constexpr size_t digest_bytes = 20;  // as many as Redis shows

void add_in_order(Bytes& digest, ByteView bytes) { digest = sha256(digest + Bytes(bytes)); }
void add_in_any_order(Bytes& digest, ByteView bytes) {
  const Bytes other = sha256(bytes);
  for (size_t i = 0; i < digest.size(); i++) digest[i] = static_cast<char>(digest[i] ^ other[i]);
}
Bytes no_digest() { return Bytes(sha256("").size(), '\0'); }

// The same for the same content, however it came to be.
Result<Bytes> value_digest(Call& call, const Key& key) {
  TRY_ASSIGN(const RdbValue value, read_value(call, key));
  Bytes digest = no_digest();
  const size_t step = value.type == RedisType::hash ? 2 : 1;
  for (size_t i = 0; i < value.items.size(); i += step) {
    Bytes item = sha256(value.items[i]);
    if (step == 2) item += sha256(value.items[i + 1]);
    value.type == RedisType::list ? add_in_order(digest, item) : add_in_any_order(digest, item);
  }
  for (const auto& [member, score] : value.scored)
    add_in_any_order(digest, sha256(member) + double_text(score));
  add_in_order(digest, type_name(value.type));
  if (key.expire_ms() != 0) add_in_order(digest, "expires");
  return digest;
}

std::string digest_text(ByteView digest) { return to_hex(digest.substr(0, digest_bytes)); }

Status debug_digest_value(AloneCall& call) {
  std::vector<Bytes> names;
  for (size_t i = 2; i < call.count(); i++) names.emplace_back(call.arg(i));
  return transact_alone(call, named(names, call.session.database), [&](Call& inner) -> Status {
    inner.reply.array(names.size());
    for (size_t i = 2; i < inner.count(); i++) {
      TRY_ASSIGN(const Key* const key, inner.open(i));
      Bytes digest = no_digest();
      if (key->exists()) {
        TRY_ASSIGN(digest, value_digest(inner, *key));
      }
      inner.reply.simple(digest_text(digest));
    }
    return {};
  });
}

// Of some keys of one database, into `digest`.
Status add_keys(AloneCall& call, uint32_t database, const std::vector<Bytes>& names,
                Bytes& digest) {
  Bytes page;
  TRY(transact_alone(call, named(names, database), [&](Call& inner) -> Status {
    page = no_digest();
    for (const Bytes& name : names) {
      TRY_ASSIGN(const Key* const key, inner.keys.open(database, name));
      if (!key->exists()) continue;
      TRY_ASSIGN(const Bytes value, value_digest(inner, *key));
      add_in_any_order(page, fmt::format("{} ", database) + sha256(name) + value);
    }
    return {};
  }));
  for (size_t i = 0; i < digest.size(); i++) digest[i] = static_cast<char>(digest[i] ^ page[i]);
  return {};
}

Status debug_digest(AloneCall& call) {
  constexpr size_t page_keys = 32;
  Bytes digest = no_digest();
  for (uint32_t database = 0; database < databases_max; database++) {
    TRY_ASSIGN(const DatabaseSlots slots, call.slots());
    const Bytes prefix = redis_metadata_key(call.session.tenant->id(), slots.of(database), {});
    for (std::optional<Bytes> from = prefix; from;) {
      std::vector<Bytes> names;
      TRY_ASSIGN(ScanPage page,
                 call.server.map().engine.scan(
                     {.begin = *from, .end = prefix_end(prefix), .entries_max = page_keys},
                     [&](ByteView key, ByteView) {
                       names.emplace_back(key.substr(prefix.size()));
                       return Visit::go_on;
                     }));
      TRY(add_keys(call, database, names, digest));
      from = std::move(page.resume);
    }
  }
  call.reply.simple(digest_text(digest));
  return {};
}

// String keys PREFIX:0, PREFIX:1, ... that are not there yet.
Status debug_populate(AloneCall& call) {
  constexpr size_t batch_keys = 512;
  const auto count = parse_integer(call.arg(2));
  const auto bytes = call.count() > 4 ? parse_integer(call.arg(4)) : 0;
  if (!count || *count < 0 || !bytes || *bytes < 0)
    return reply_with("ERR value is out of range, must be positive");
  if (static_cast<uint64_t>(*bytes) > string_bytes_max) return string_too_long();
  const ByteView prefix = call.count() > 3 ? call.arg(3) : ByteView("key");
  Executor executor(call.server, true);
  for (int64_t done = 0; done < *count;) {
    std::vector<std::array<Bytes, 3>> texts;
    for (; texts.size() < batch_keys && done < *count; done++) {
      Bytes value = fmt::format("value:{}", done);
      if (*bytes > 0) value.resize(static_cast<size_t>(*bytes), '\0');
      texts.push_back({"SETNX", fmt::format("{}:{}", prefix, done), std::move(value)});
    }
    std::vector<std::vector<ByteView>> args;
    for (const auto& words : texts) args.emplace_back(words.begin(), words.end());
    std::vector<Request> requests;
    Bytes replies;
    for (const auto& words : args) requests.push_back({&call.session, words, &replies});
    executor.run(requests);
    if (const size_t error = replies.find('-'); error != Bytes::npos)
      return reply_with(replies.substr(error + 1, replies.find('\r', error) - error - 1));
  }
  call.reply.ok();
  return {};
}

// --- PROTOCOL: a reply of each kind ---

void protocol_string(Reply& reply) { reply.bulk("Hello World"); }
void protocol_integer(Reply& reply) { reply.integer(12'345); }
void protocol_double(Reply& reply) { reply.number(3.141); }
void protocol_null(Reply& reply) { reply.null(); }
void protocol_true(Reply& reply) { reply.boolean(true); }
void protocol_false(Reply& reply) { reply.boolean(false); }
void protocol_verbatim(Reply& reply) { reply.verbatim("This is a verbatim\nstring"); }
void protocol_array(Reply& reply) {
  reply.array(3);
  for (int i = 0; i < 3; i++) reply.integer(i);
}
void protocol_set(Reply& reply) {
  reply.set(3);
  for (int i = 0; i < 3; i++) reply.integer(i);
}
void protocol_map(Reply& reply) {
  reply.map(3);
  for (int i = 0; i < 3; i++) {
    reply.integer(i);
    reply.boolean(i == 1);
  }
}
void protocol_bignum(Reply& reply) {
  constexpr std::string_view number = "1234567999999999999999999999999999999";
  if (reply.protocol() == 2) return reply.bulk(number);
  reply.raw(fmt::format("({}\r\n", number));
}
void protocol_attrib(Reply& reply) {
  if (reply.protocol() > 2) {
    reply.raw("|1\r\n");
    reply.bulk("key-popularity");
    reply.array(2);
    reply.bulk("key:123");
    reply.integer(90);
  }
  reply.bulk("Some real reply following the attribute");
}
void protocol_push(Reply& reply) {
  if (reply.protocol() == 2) return reply.error("ERR RESP2 is not supported by this command");
  reply.raw(">2\r\n");
  reply.bulk("server-cpu-usage");
  reply.integer(42);
  reply.bulk("Some real reply following the push reply");
}

struct ProtocolKind {
  std::string_view name;
  void (*reply)(Reply&);
};
constexpr ProtocolKind protocol_kinds[] = {
    {"string", protocol_string}, {"integer", protocol_integer},   {"double", protocol_double},
    {"bignum", protocol_bignum}, {"null", protocol_null},         {"array", protocol_array},
    {"set", protocol_set},       {"map", protocol_map},           {"attrib", protocol_attrib},
    {"push", protocol_push},     {"verbatim", protocol_verbatim}, {"true", protocol_true},
    {"false", protocol_false},
};

Status debug_protocol(AloneCall& call) {
  std::string names;
  for (const ProtocolKind& kind : protocol_kinds) {
    if (call.is_word(2, kind.name)) {
      kind.reply(call.reply);
      return {};
    }
    names += names.empty() ? "" : "|";
    names += kind.name;
  }
  return reply_with("ERR Wrong protocol type name. Please use one of the following: " + names);
}

// --- the table ---

Status debug_help(AloneCall& call);
constexpr Command debug_entry(std::string_view name, int arity, Status (*handler)(AloneCall&),
                              std::string_view syntax, std::string_view summary) {
  return {.name = name, .arity = arity, .handler = handler, .summary = summary, .syntax = syntax};
}
// Redis knows DEBUG as one command: these are not told by COMMAND.
const Command debug_subcommands[] = {
    debug_entry("change-repl-id", 2, accept, "", "Does nothing: there is no replication."),
    debug_entry("digest", 2, debug_digest, "", "A digest of the content of all databases."),
    debug_entry("digest-value", -2, debug_digest_value, "[<key> ...]", "A digest of each value."),
    debug_entry("error", 3, debug_error, "<text>", "Replies with that error."),
    debug_entry("loadaof", 2, accept, "",
                "Does nothing: everything is on disk, and read from there."),
    debug_entry("log", 3, debug_log, "<text>", "Writes it to the log of the server."),
    debug_entry("object", 3, debug_object, "<key>", "How Redis would keep the value of a key."),
    debug_entry("populate", -3, debug_populate, "<count> [<prefix>] [<bytes>]",
                "Makes string keys."),
    debug_entry("protocol", 3, debug_protocol, "<kind>", "A reply of that kind."),
    debug_entry("quicklist-packed-threshold", 3, accept, "<bytes>", "Does nothing."),
    debug_entry("reload", -2, debug_reload, "[<option> ...]",
                "Does nothing: everything is on disk, and read from there."),
    debug_entry("set-active-expire", 3, debug_set_active_expire, "0|1",
                "Whether keys are removed when their time has come; for clients they are gone."),
    debug_entry("sleep", 3, debug_sleep, "<seconds>", "Holds up this loop, up to a minute."),
    debug_entry("stringmatch-len", 4, accept, "<length> <pattern>", "Does nothing."),
    debug_entry("stringmatch-test", 2, debug_stringmatch, "", "Does nothing."),
    debug_entry("help", 2, debug_help, "", "Prints this help."),
};

Status debug_help(AloneCall& call) {
  reply_help(call.reply, "debug", debug_subcommands);
  return {};
}

Status debug(AloneCall& call) {
  for (const Command& sub : debug_subcommands)
    if (call.is_word(1, sub.name) && arity_fits(sub, call.count()))
      return sub.handler.run_alone(call);
  return wrong_subcommand(call);
}

namespace debug_table {

const Command table[] = {
    {"debug",
     -2,
     admin | noscript | loading | stale | for_server_admin,
     {},
     debug,
     "1.0.0",
     "For tests."},
};

}  // namespace debug_table

}  // namespace

std::span<const Command> debug_commands() { return debug_table::table; }

}  // namespace trellis
