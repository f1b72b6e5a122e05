#include "cli/raw_command.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <boost/json.hpp>
#include <memory>

#include "base/duration.h"
#include "base/limits.h"
#include "cli/arguments.h"
#include "cli/bytes_json.h"
#include "cli/human.h"
#include "net/url.h"

namespace trellis {
namespace {

namespace json = boost::json;

struct KeyArgument {
  std::string text;
  bool escaped = false;
};

void add_key(CLI::App& command, KeyArgument& key) {
  add_argument(command, "KEY", key.text, "The key; one that begins with - goes behind --")
      ->required();
  add_escaped(command, key.escaped);
}

Result<Bytes> key_of(const KeyArgument& argument) {
  TRY_ASSIGN(Bytes key, parse_bytes(argument.text, argument.escaped));
  if (key.empty()) return wrong_use("a key has at least one byte");
  return key;
}

// The path of one key. A segment of dots alone would mean another folder to whoever is in between.
std::string key_path(const ClientSession& session, ByteView key) {
  std::string segment = percent_encode(key);
  if (segment == "." || segment == "..") {
    segment.clear();
    for (size_t i = 0; i < key.size(); i++) segment += "%2E";
  }
  return raw_path(session, "/keys/" + segment);
}

Result<uint64_t> parse_ttl_ms(const std::string& text) {
  TRY_ASSIGN(const uint64_t ms, parse_duration_ms(text));
  if (ms == 0) return Error{Code::invalid, "what lives for no time is not stored"};
  return ms;
}

// What was done and has nothing to tell.
Status say_done(ClientSession& session) {
  return session.json ? print_json(session, {{"done", true}}) : Status();
}

// --- get ---

Status get_key(ClientSession& session, const KeyArgument& argument) {
  TRY_ASSIGN(const Bytes key, key_of(argument));
  TRY_ASSIGN(const HttpAnswer answer, session.api.call({.target = key_path(session, key)}));
  if (!session.json) return session.out.write(answer.body);
  json::object entry;
  add_bytes(entry, "key", key);
  add_bytes(entry, "value", answer.body);
  entry["etag"] = answer.header("ETag");
  if (const auto expires = parse_whole_number(answer.header("X-Trellis-Expires-At")))
    entry["expires_at_ms"] = *expires;
  return print_json(session, entry);
}

void add_get(CLI::App& raw, ClientCommands& commands) {
  auto key = std::make_shared<KeyArgument>();
  CLI::App* get =
      commands.add_raw(raw, "get", "Print the value of a key, byte for byte",
                       [key](ClientSession& session) { return get_key(session, *key); });
  add_key(*get, *key);
  get->footer(
      "Nothing is added to the value, not even a newline. With --json: the value, its tag and when "
      "it expires.\n"
      "Examples:\n"
      "  trellis raw get greeting\n"
      "  trellis raw get --escaped 'a\\x00b' > value.bin");
}

// --- put ---

struct PutArguments {
  KeyArgument key;
  std::string value;
  CLI::Option* value_option = nullptr;  // an empty value is a value: was one given?
  std::string ttl;
  bool if_absent = false;
  std::string tag;
};

// Beside a value lie some bytes that say when it expires.
constexpr size_t value_head_bytes_max = 64;

Error value_too_large() {
  return Error{Code::too_large,
               fmt::format("a value has a little less than {}: cut this one into several",
                           human_bytes(value_bytes_max))};
}

Result<Bytes> value_of(ClientSession& session, const PutArguments& arguments) {
  if (arguments.value_option->count() > 0 && arguments.value != "-")
    return parse_bytes(arguments.value, arguments.key.escaped);
  if (session.in.is_terminal())
    fmt::print(session.err, "The value comes from here; Ctrl-D ends it.\n");
  auto value = session.in.read_all(value_bytes_max);
  if (!value && value.error().code == Code::too_large) return value_too_large();
  return value;
}

Status put_key(ClientSession& session, const PutArguments& arguments) {
  TRY_ASSIGN(const Bytes key, key_of(arguments.key));
  ApiCall call{.method = HttpMethod::put,
               .target = key_path(session, key),
               .content_type = "application/octet-stream"};
  if (!arguments.ttl.empty()) {
    TRY_ASSIGN(const uint64_t ttl_ms, parse_ttl_ms(arguments.ttl));
    call.target += fmt::format("?ttl_ms={}", ttl_ms);
  }
  if (arguments.if_absent) call.headers.push_back({"If-None-Match", "*"});
  if (!arguments.tag.empty()) call.headers.push_back({"If-Match", quoted_tag(arguments.tag)});
  TRY_ASSIGN(call.body, value_of(session, arguments));
  const auto answer = session.api.call(call);
  if (!answer && answer.error().code == Code::too_large &&
      call.body.size() > value_bytes_max - value_head_bytes_max)
    return value_too_large();
  if (!answer) return answer.error();
  return say_done(session);
}

void add_put(CLI::App& raw, ClientCommands& commands) {
  auto arguments = std::make_shared<PutArguments>();
  CLI::App* put = commands.add_raw(
      raw, "put", "Store a value under a key",
      [arguments](ClientSession& session) { return put_key(session, *arguments); });
  add_key(*put, arguments->key);
  arguments->value_option = add_argument(*put, "VALUE", arguments->value,
                                         "The value; - or nothing reads it from standard input");
  add_text(*put, "--ttl", arguments->ttl, "DURATION", "Expires after that (default never)")
      ->check(checked_by(parse_ttl_ms));
  CLI::Option* absent = put->add_flag("--if-absent", arguments->if_absent,
                                      "Only if there is no such key; else exit code 1");
  add_text(*put, "--if-tag", arguments->tag, "TAG",
           "Only if the value still has that tag, which `raw get --json` prints as etag")
      ->check(check_tag)
      ->excludes(absent);
  put->footer(
      "Examples:\n"
      "  trellis raw put greeting hello --ttl 10m\n"
      "  trellis raw put picture < picture.png");
}

// --- delete ---

struct DeleteArguments {
  KeyArgument key;
  std::string tag;
};

Status delete_key(ClientSession& session, const DeleteArguments& arguments) {
  TRY_ASSIGN(const Bytes key, key_of(arguments.key));
  ApiCall call{.method = HttpMethod::del, .target = key_path(session, key)};
  if (!arguments.tag.empty()) call.headers.push_back({"If-Match", quoted_tag(arguments.tag)});
  TRY(session.api.call(call));
  return say_done(session);
}

void add_delete(CLI::App& raw, ClientCommands& commands) {
  auto arguments = std::make_shared<DeleteArguments>();
  CLI::App* command = commands.add_raw(
      raw, "delete", "Remove a key; one that is not there is as good as removed",
      [arguments](ClientSession& session) { return delete_key(session, *arguments); });
  add_key(*command, arguments->key);
  add_text(*command, "--if-tag", arguments->tag, "TAG",
           "Only if the value still has that tag, which `raw get --json` prints as etag")
      ->check(check_tag);
  command->footer("Example: trellis raw delete greeting");
}

// --- cas ---

struct CasArguments {
  KeyArgument key;
  std::string expect;
  CLI::Option* expect_option = nullptr;
  bool expect_absent = false;
  std::string set;
  CLI::Option* set_option = nullptr;
  bool remove = false;
  std::string ttl;
};

// CLI11 refuses both; that one of them is needed it cannot know.
Status check_cas(const CasArguments& arguments) {
  if (arguments.expect_option->count() == 0 && !arguments.expect_absent)
    return wrong_use("say what you expect: --expect VALUE or --expect-absent");
  if (arguments.set_option->count() == 0 && !arguments.remove)
    return wrong_use("say what to do: --set VALUE or --delete");
  return {};
}

Result<json::value> cas_value(const CasArguments& arguments, const std::string& text) {
  TRY_ASSIGN(const Bytes bytes, parse_bytes(text, arguments.key.escaped));
  json::object value;
  add_bytes(value, "value", bytes);
  return json::value(std::move(value));
}

Status compare_and_set(ClientSession& session, const CasArguments& arguments) {
  TRY(check_cas(arguments));
  TRY_ASSIGN(const Bytes key, key_of(arguments.key));
  json::object body;
  add_bytes(body, "key", key);
  body["expected"] = nullptr;
  body["new"] = nullptr;
  if (!arguments.expect_absent) {
    TRY_ASSIGN(body["expected"], cas_value(arguments, arguments.expect));
  }
  if (!arguments.remove) {
    TRY_ASSIGN(body["new"], cas_value(arguments, arguments.set));
  }
  if (!arguments.ttl.empty()) {
    TRY_ASSIGN(body["new"].as_object()["ttl_ms"], parse_ttl_ms(arguments.ttl));
  }
  TRY_ASSIGN(const ApiAnswer answer,
             session.api.ask(json_call(HttpMethod::post, raw_path(session, "/cas"), body)));
  return session.json ? print_line(session, answer.text) : Status();
}

void add_cas(CLI::App& raw, ClientCommands& commands) {
  auto arguments = std::make_shared<CasArguments>();
  CLI::App* cas = commands.add_raw(
      raw, "cas", "Change a key only if it has the value that you expect",
      [arguments](ClientSession& session) { return compare_and_set(session, *arguments); });
  add_key(*cas, arguments->key);
  arguments->expect_option =
      add_text(*cas, "--expect", arguments->expect, "VALUE", "Only if it has that value");
  cas->add_flag("--expect-absent", arguments->expect_absent, "Only if it is not there")
      ->excludes(arguments->expect_option);
  arguments->set_option =
      add_text(*cas, "--set", arguments->set, "VALUE", "Give it this value then");
  CLI::Option* remove = cas->add_flag("--delete", arguments->remove, "Remove it then")
                            ->excludes(arguments->set_option);
  add_text(*cas, "--ttl", arguments->ttl, "DURATION", "The new value expires after that")
      ->check(checked_by(parse_ttl_ms))
      ->excludes(remove);
  cas->footer(
      "Exit code 1, and the value that it has, if that is not what was expected.\n"
      "Examples:\n"
      "  trellis raw cas leader --expect-absent --set a --ttl 30s\n"
      "  trellis raw cas leader --expect a --set b\n"
      "  trellis raw cas leader --expect b --delete");
}

// --- batch ---

// JSON may write a byte with six.
constexpr size_t batch_bytes_max = 6 * commit_bytes_max;

Result<Bytes> read_operations(ClientSession& session) {
  Bytes body = "{\"operations\":[";
  const size_t begin_bytes = body.size();
  for (uint64_t number = 1;; number++) {
    TRY_ASSIGN(const auto line, session.in.read_line(batch_bytes_max));
    if (!line) break;
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    boost::system::error_code failed;
    const json::value operation = json::parse(*line, failed);
    if (failed || !operation.is_object())
      return Error{Code::invalid,
                   fmt::format("line {} is not a JSON object; an operation is for example "
                               "{{\"put\":{{\"key\":\"a\",\"value\":\"1\"}}}}",
                               number)};
    if (body.size() > begin_bytes) body += ',';
    body += *line;
    if (body.size() > batch_bytes_max)
      return Error{Code::too_large,
                   "a batch is done at once and cannot be that large; use `trellis raw import`"};
  }
  if (body.size() == begin_bytes)
    return Error{Code::invalid, "standard input has no operations: give one per line"};
  return body + "]}";
}

Status run_batch(ClientSession& session) {
  TRY_ASSIGN(Bytes body, read_operations(session));
  TRY_ASSIGN(const ApiAnswer answer, session.api.ask({.method = HttpMethod::post,
                                                      .target = raw_path(session, "/batch"),
                                                      .content_type = "application/json",
                                                      .body = std::move(body)}));
  if (session.json) return print_line(session, answer.text);
  return session.out.write(
      fmt::format("{} operations done\n", number_at(answer.object, "applied").value_or(0)));
}

void add_batch(CLI::App& raw, ClientCommands& commands) {
  CLI::App* batch =
      commands.add_raw(raw, "batch", "Do many operations from standard input, all or none",
                       [](ClientSession& session) { return run_batch(session); });
  batch->footer(
      "One operation on each line, as JSON; bytes that are no text go into key_base64 and "
      "value_base64:\n"
      "  {\"put\":{\"key\":\"a\",\"value\":\"1\",\"ttl_ms\":60000}}\n"
      "  {\"delete\":{\"key\":\"b\"}}\n"
      "Example: trellis raw batch < operations.jsonl");
}

}  // namespace

std::string raw_path(const ClientSession& session, std::string_view rest) {
  if (session.keyspace.empty()) return fmt::format("/v1/raw{}", rest);
  return fmt::format("/k/{}/v1/raw{}", percent_encode(session.keyspace), rest);
}

void add_escaped(CLI::App& command, bool& escaped) {
  command.add_flag("--escaped", escaped,
                   "Keys and values among the arguments have escapes: \\xNN \\n \\r \\t \\0 \\\\");
}

void add_raw_commands(CLI::App& app, ClientCommands& commands) {
  CLI::App* raw = app.add_subcommand("raw", "Keys and values of a keyspace");
  raw->require_subcommand(1);
  add_get(*raw, commands);
  add_put(*raw, commands);
  add_delete(*raw, commands);
  add_cas(*raw, commands);
  add_batch(*raw, commands);
  add_scan_command(*raw, commands);
  add_export_command(*raw, commands);
  add_import_command(*raw, commands);
  raw->footer(
      "Every command talks to a running server: see `trellis raw get --help` for how it is found.");
}

}  // namespace trellis
