// `trellis keyspace token ...`: who may do what in a keyspace.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <boost/json.hpp>
#include <memory>

#include "base/duration.h"
#include "cli/human.h"
#include "cli/keyspace_command.h"
#include "cli/table.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

struct TokenArguments {
  std::string keyspace;
  std::string role;
  std::string label;
  std::string ttl;
  std::string id;
};

// The server counts seconds.
Result<uint64_t> parse_ttl_seconds(const std::string& text) {
  TRY_ASSIGN(const uint64_t ms, parse_duration_ms(text));
  if (ms == 0 || ms % 1000 != 0)
    return Error{Code::invalid, "a token lives for whole seconds, at least 1s"};
  return ms / 1000;
}

std::string expiry_text(uint64_t now_ms, const json::object& token) {
  const auto expires_at_ms = number_at(token, "expires_at_ms");
  return expires_at_ms ? time_and_age(now_ms, *expires_at_ms) : "never";
}

Status create_token(ClientSession& session, const TokenArguments& arguments) {
  json::object body{{"role", arguments.role}};
  if (!arguments.label.empty()) body["label"] = arguments.label;
  if (!arguments.ttl.empty()) {
    TRY_ASSIGN(body["ttl_seconds"], parse_ttl_seconds(arguments.ttl));
  }
  TRY_ASSIGN(
      const ApiAnswer answer,
      session.api.ask(json_call(HttpMethod::post, v1_path(arguments.keyspace, "/tokens"), body)));
  if (session.json) {
    TRY(print_line(session, answer.text));
  } else {
    // Alone on standard output, so that a script can take it.
    TRY(print_line(session, text_at(answer.object, "token")));
  }
  TRY(session.out.flush());
  fmt::print(session.err,
             "This is token {} of {} with the role {}; it expires: {}. It is shown now and never "
             "again: keep it where only its user can read it.\n",
             terminal_text(text_at(answer.object, "id")), terminal_text(arguments.keyspace),
             arguments.role, expiry_text(session.clock.unix_ms(), answer.object));
  return {};
}

Status list_tokens(ClientSession& session, const TokenArguments& arguments) {
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask({.target = v1_path(arguments.keyspace, "/tokens")}));
  if (session.json) return print_line(session, answer.text);
  const uint64_t now_ms = session.clock.unix_ms();
  Table table({{"ID"}, {"ROLE"}, {"CREATED"}, {"EXPIRES"}, {"LABEL"}});
  for (const json::value& value : array_at(answer.object, "tokens")) {
    if (!value.is_object()) continue;
    const json::object& token = value.get_object();
    table.add({terminal_text(text_at(token, "id")), text_at(token, "role"),
               time_and_age(now_ms, number_at(token, "created_at_ms").value_or(0)),
               expiry_text(now_ms, token), terminal_text(text_at(token, "label"))});
  }
  return session.out.write(table.take());
}

Status revoke_token(ClientSession& session, const TokenArguments& arguments) {
  TRY(session.api.call(
      {.method = HttpMethod::del,
       .target = v1_path(arguments.keyspace, "/tokens/" + percent_encode(arguments.id))}));
  if (session.json) return print_json(session, {{"revoked", arguments.id}});
  return session.out.write(fmt::format("token {} is revoked: nobody can use it any more\n",
                                       terminal_text(arguments.id)));
}

}  // namespace

void add_token_commands(CLI::App& keyspace, ClientCommands& commands) {
  CLI::App* token = keyspace.add_subcommand("token", "Tokens: who may do what in a keyspace");
  token->require_subcommand(1);
  auto arguments = std::make_shared<TokenArguments>();

  CLI::App* create = commands.add(
      *token, "create", "Make a token and print it, once",
      [arguments](ClientSession& session) { return create_token(session, *arguments); });
  add_keyspace_name(*create, arguments->keyspace)->required();
  add_text(*create, "--role", arguments->role, "ROLE",
           "read; write, which may read too; or admin, which may do all to this keyspace")
      ->required()
      ->check(CLI::IsMember({"read", "write", "admin"}));
  add_text(*create, "--label", arguments->label, "TEXT", "What it is for, for people");
  add_text(*create, "--ttl", arguments->ttl, "DURATION", "Dies after that (default never)")
      ->check(checked_by(parse_ttl_seconds));
  create->footer(
      "Examples:\n"
      "  trellis keyspace token create shop --role write --label ci --ttl 30d\n"
      "  export TRELLIS_TOKEN=$(trellis keyspace token create shop --role read)");

  CLI::App* list = commands.add(
      *token, "list", "List the tokens of a keyspace, without their secrets",
      [arguments](ClientSession& session) { return list_tokens(session, *arguments); });
  add_keyspace_name(*list, arguments->keyspace)->required();
  list->footer("Example: trellis keyspace token list shop");

  CLI::App* revoke = commands.add(
      *token, "revoke", "End a token at once",
      [arguments](ClientSession& session) { return revoke_token(session, *arguments); });
  add_keyspace_name(*revoke, arguments->keyspace)->required();
  add_argument(*revoke, "ID", arguments->id, "Id of the token, as `token list` shows it")
      ->required()
      ->check(check_not_empty);
  revoke->footer("Example: trellis keyspace token revoke shop 9f3c5a7e01d2b4c6");
}

}  // namespace trellis
