#include "cli/api_client.h"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "base/bytes.h"
#include "cli/bytes_json.h"
#include "cli/human.h"
#include "json/json_text.h"

namespace trellis {
namespace {

namespace json = boost::json;

// What an error answer says: a stable name, and a sentence.
struct Complaint {
  std::string name;
  std::string message;
  json::object details;
};

// PD's: "[PD:keyspace:ErrKeyspaceNotFound]keyspace does not exist", "[TRELLIS:no_token]give one"
Complaint parse_pd_complaint(std::string_view text) {
  Complaint complaint;
  const size_t end = text.find(']');
  const bool is_named = text.starts_with("[PD:") || text.starts_with("[TRELLIS:");
  if (is_named && end != std::string_view::npos) {
    const std::string_view name = text.substr(0, end);
    complaint.name = name.substr(name.rfind(':') + 1);
    text.remove_prefix(end + 1);
  }
  complaint.message = text;
  return complaint;
}

std::optional<Complaint> parse_complaint(const Bytes& body) {
  boost::system::error_code failed;
  const json::value value = json::parse(body, failed);
  if (failed) return std::nullopt;
  if (value.is_string()) return parse_pd_complaint(value.get_string());
  if (!value.is_object() || !value.get_object().contains("message")) return std::nullopt;
  const json::object& object = value.get_object();
  return Complaint{text_at(object, "code"), text_at(object, "message"),
                   object_at(object, "details")};
}

// What somebody at a command line does about it, where the sentence itself cannot know that.
std::string advice(const Complaint& complaint, unsigned status) {
  const std::string& name = complaint.name;
  if (status == 401)
    return "put a token into TRELLIS_TOKEN, or give --token - and it on standard input";
  if (status == 414)
    return "long keys go through `trellis raw batch`, `import` and `export`, which put them into "
           "bodies";
  if (name == "ErrKeyspaceNotFound" || name == "keyspace_not_found")
    return "`trellis keyspace list` shows those that there are";
  if (name == "ErrKeyspaceExists" || name == "keyspace_exists")
    return "`trellis keyspace show` says which it is";
  if (name == "key_not_found") return "`trellis raw scan --keys-only` lists the keys";
  if (name == "compacted") return "start again without --since";
  if (name == "condition_failed" && complaint.details.contains("current")) {
    const auto current = bytes_of(object_at(complaint.details, "current"), "value");
    return current ? fmt::format("its value is {}", shortened_text(quote(*current), 80))
                   : std::string("the key is not there");
  }
  return {};
}

Code code_of(unsigned status) {
  switch (status) {
    case 401:
    case 403: return Code::denied;
    case 404:
    case 410: return Code::not_found;
    case 409: return Code::conflict;
    case 412: return Code::refused;
    case 413: return Code::too_large;
    case 429: return Code::exhausted;
    default: return status >= 500 ? Code::unavailable : Code::invalid;
  }
}

// Nobody was reached.
Error connection_error(Error error) {
  if (error.message.find("TLS") != std::string::npos)
    error.message +=
        "; name the certificate of its authority with --ca FILE; a server without TLS is at "
        "http://";
  else if (error.code == Code::unavailable)
    error.message +=
        "; start a server with `trellis serve`, or name another one with --server or "
        "TRELLIS_SERVER";
  return error;
}

const json::value* member(const json::object& object, std::string_view name) {
  return object.if_contains(name);
}

}  // namespace

Error answer_error(const HttpAnswer& answer, std::string_view server) {
  const Code code = code_of(answer.status);
  const auto complaint = parse_complaint(answer.body);
  if (!complaint)
    return Error{code, fmt::format("{} answered with HTTP status {} and no error of Trellis: is a "
                                   "Trellis server there?",
                                   server, answer.status)};
  std::string message = complaint->message;
  if (const std::string what_to_do = advice(*complaint, answer.status); !what_to_do.empty())
    message += "; " + what_to_do;
  if (const std::string_view seconds = answer.header("Retry-After"); !seconds.empty())
    message += fmt::format("; try again in {} s", seconds);
  return Error{code, std::move(message)};
}

ApiCall json_call(HttpMethod method, std::string target, const json::object& body) {
  return {.method = method,
          .target = std::move(target),
          .content_type = "application/json",
          .body = json::serialize(body)};
}

void ApiClient::wait_at_least_ms(uint32_t timeout_ms) {
  options_.timeout_ms = std::max(options_.timeout_ms, timeout_ms);
  http_.reset();
}

Status ApiClient::connect() {
  if (http_) return {};
  auto http = HttpClient::connect(options_.server,
                                  {.timeout_ms = options_.timeout_ms, .ca_file = options_.ca_file});
  if (!http) return connection_error(std::move(http).error());
  http_.emplace(*std::move(http));
  return {};
}

Result<HttpAnswer> ApiClient::call(const ApiCall& call) {
  TRY(connect());
  HttpCall http_call{.method = call.method,
                     .target = call.target,
                     .headers = call.headers,
                     .body = call.body,
                     .send = call.send,
                     .receive = call.receive};
  if (!options_.user.empty())
    http_call.headers.push_back(
        {"Authorization", "Basic " + base64_encode(options_.user + ":" + options_.token)});
  else if (!options_.token.empty())
    http_call.headers.push_back({"Authorization", "Bearer " + options_.token});
  if (!call.content_type.empty())
    http_call.headers.push_back({"Content-Type", std::string(call.content_type)});
  auto answer = http_->request(http_call);
  if (!answer) {
    // Whatever is left on the connection belongs to this call.
    http_.reset();
    if (answer.error().code == Code::maybe)
      answer.error().message += "; it may have been done all the same: look before you try again";
    return answer;
  }
  if (answer->status / 100 != 2 && answer->status != call.expected_status)
    return answer_error(*answer, options_.server);
  return answer;
}

Result<ApiAnswer> ApiClient::ask(const ApiCall& call_of_json) {
  TRY_ASSIGN(HttpAnswer answer, call(call_of_json));
  boost::system::error_code failed;
  json::value value = json::parse(answer.body, failed);
  if (failed || !value.is_object())
    return Error{Code::invalid, fmt::format("{} answered without a JSON object: is a Trellis "
                                            "server there?",
                                            options_.server)};
  answer.body.erase(answer.body.find_last_not_of("\r\n") + 1);
  return ApiAnswer{std::move(answer.body), std::move(value.get_object()), answer.status};
}

std::string text_at(const json::object& object, std::string_view name) {
  const json::value* value = member(object, name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

std::optional<uint64_t> number_at(const json::object& object, std::string_view name) {
  const json::value* value = member(object, name);
  if (value == nullptr) return std::nullopt;
  if (value->is_uint64()) return value->get_uint64();
  if (value->is_int64() && value->get_int64() >= 0)
    return static_cast<uint64_t>(value->get_int64());
  return std::nullopt;
}

double real_at(const json::object& object, std::string_view name) {
  const json::value* value = member(object, name);
  if (value != nullptr && value->is_double()) return value->get_double();
  return static_cast<double>(number_at(object, name).value_or(0));
}

const json::object& object_at(const json::object& object, std::string_view name) {
  static const json::object empty;
  const json::value* value = member(object, name);
  return value != nullptr && value->is_object() ? value->get_object() : empty;
}

const json::array& array_at(const json::object& object, std::string_view name) {
  static const json::array empty;
  const json::value* value = member(object, name);
  return value != nullptr && value->is_array() ? value->get_array() : empty;
}

}  // namespace trellis
