#include "rest/answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "json/json_body.h"
#include "json/json_text.h"
#include "rest/catalog_answers.h"
#include "rest/rest.h"

namespace trellis {
namespace {

struct ReasonStatus {
  std::string_view reason;
  unsigned status;
};

// Only those for which http_status(code) would say something else.
constexpr ReasonStatus reason_statuses[] = {
    {"no_token", 401},
    {"bad_token", 401},
    {"token_expired", 401},
    {"illegal_state_change", 409},
    {"config_locked", 409},
    {"safe_point_back", 409},
    {"gc_safe_point_back", 409},
    {"txn_safe_point_back", 409},
    {"safe_point_ahead_of_txn", 409},
    {"barrier_behind", 409},
    {"compacted", 410},
    {"precondition_failed", 412},
    {"condition_failed", 412},
    {"illegal_name", 422},
    {"reserved_name", 422},
    {"illegal_id", 422},
    {"ids_exhausted", 422},
    {"default_keyspace", 422},
    {"config_key_refused", 422},
    {"config_too_large", 422},
    {"request_reused", 422},
    {"illegal_token", 422},
    {"too_many_tokens", 422},
    {"safe_point_in_future", 422},
    {"reserved_service", 422},
    {"illegal_service", 422},
    {"illegal_ttl", 422},
    {"too_many_barriers", 422},
    {"ttl_too_large", 422},
    {"revision_in_future", 422},
    {"backup_damaged", 422},
    {"backup_foreign", 422},
    {"backup_too_new", 422},
    {"repository_busy", 409},
    {"is_a_directory", 409},
    {"not_a_directory", 409},
    {"not_empty", 409},
    {"into_itself", 409},
    {"is_same_file", 409},
    {"parent_gone", 409},
    {"range_not_satisfied", 416},
    {"name_too_long", 422},
    {"path_too_long", 422},
    {"too_many_symlinks", 422},
    {"headers_too_large", 431},
    {"directory_quota_exceeded", 507},
};

struct PdName {
  std::string_view reason;
  std::string_view name;  // "" for those that PD has no name for: only their text
  std::string_view text;  // "": the message
};

constexpr PdName pd_names[] = {
    {"keyspace_not_found", "PD:keyspace:ErrKeyspaceNotFound", "keyspace does not exist"},
    {"keyspace_exists", "PD:keyspace:ErrKeyspaceExists", "keyspace already exists"},
    {"default_keyspace", "PD:keyspace:ErrModifyDefaultKeyspace",
     "cannot modify default keyspace's state"},
    {"ids_exhausted", "PD:idalloc:ErrIDExhausted", "id exhausted"},
    {"config_key_refused", "PD:keyspace:ErrUnsupportedOperationInKeyspace", ""},
    {"precondition_failed", "PD:keyspace:ErrKeyspaceConfigPreconditionFailed", ""},
    {"illegal_name", "", ""},
    {"reserved_name", "", ""},
    {"illegal_id", "", ""},
    {"illegal_state_change", "", ""},
    {"config_locked", "", ""},
    {"bad_id", "", ""},
    {"bad_page_token", "", ""},
    {"bad_state", "", ""},
    {"missing_member", "", ""},
    {"gc_safe_point_back", "PD:gc:ErrDecreasingGCSafePoint", ""},
    {"txn_safe_point_back", "PD:gc:ErrDecreasingTxnSafePoint", ""},
    {"safe_point_ahead_of_txn", "PD:gc:ErrGCSafePointExceedsTxnSafePoint", ""},
    {"barrier_behind", "PD:gc:ErrGCBarrierTSBehindTxnSafePoint", ""},
    {"reserved_service", "PD:gc:ErrReservedGCBarrierID", ""},
};

std::string code_name(const Error& error) {
  if (!error.reason.empty()) return std::string(error.reason);
  std::string name(to_string(error.code));
  std::ranges::replace(name, ' ', '_');
  return name;
}

std::string pd_text(const Error& error) {
  if (error.reason == bad_body_reason) {
    return fmt::format("[PD:gin:ErrBindJSON]bind JSON error: {}", error.message);
  }
  const auto* known = std::ranges::find(pd_names, error.reason, &PdName::reason);
  if (known != std::end(pd_names)) {
    const std::string_view text = known->text.empty() ? error.message : known->text;
    return known->name.empty() ? std::string(text) : fmt::format("[{}]{}", known->name, text);
  }
  if (error.code == Code::conflict) {
    return "[PD:etcd:ErrEtcdTxnConflict]etcd transaction failed, conflicted and rolled back";
  }
  return fmt::format("[TRELLIS:{}]{}", code_name(error), error.message);
}

bool is_retryable(const Error& error) {
  switch (error.code) {
    // With a reason it is the state of a keyspace that is in the way.
    case Code::conflict: return error.reason.empty();
    case Code::unavailable:
    case Code::busy:
    case Code::maybe: return true;
    default: return error.reason == "rate_exceeded";
  }
}

HttpResponse v1_error_body(unsigned status, std::string_view code, std::string_view message,
                           bool retryable, const json::object& details) {
  Bytes body = "{\"code\":";
  append_json_string(body, code);
  body += ",\"message\":";
  append_json_string(body, message);
  body += ",\"details\":";
  append_json(body, details);
  body += retryable ? ",\"retryable\":true}" : ",\"retryable\":false}";
  return text_answer(std::move(body), status);
}

HttpResponse pd_error_body(unsigned status, std::string_view text) {
  Bytes body;
  append_json_string(body, text);
  return text_answer(std::move(body), status);
}

std::string_view code_of_status(unsigned status) {
  switch (status) {
    case 400: return "bad_request";
    case 404: return "path_not_found";
    case 405: return "method_not_allowed";
    case 408: return "too_slow";
    case 413: return "too_large";
    case 414: return "target_too_long";
    case 417: return "expectation_failed";
    case 431: return "header_too_large";
    case 501: return "unsupported";
    case 503: return "unavailable";
    case 505: return "unsupported";
    default: return status < 500 ? "bad_request" : "internal";
  }
}

bool is_pd_path(std::string_view path) { return path.starts_with("/pd/"); }

}  // namespace

HttpResponse text_answer(Bytes json_text, unsigned status) {
  HttpResponse response;
  response.status = status;
  response.content_type = json_type;
  response.body = std::move(json_text);
  return response;
}

HttpResponse json_answer(const json::value& value, unsigned status) {
  Bytes text;
  append_json(text, value);
  return text_answer(std::move(text), status);
}

HttpResponse empty_answer(unsigned status) {
  HttpResponse response;
  response.status = status;
  return response;
}

unsigned status_of(const Error& error) {
  const auto* known = std::ranges::find(reason_statuses, error.reason, &ReasonStatus::reason);
  return known != std::end(reason_statuses) ? known->status : http_status(error.code);
}

void add_error_headers(HttpResponse& response, const Error& error) {
  if (response.status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  if (error.retry_after_ms == 0) return;
  const uint64_t seconds = error.retry_after_ms / 1000 + (error.retry_after_ms % 1000 != 0 ? 1 : 0);
  response.headers.push_back({"Retry-After", fmt::format_int(seconds).str()});
}

HttpResponse v1_error(const Error& error, json::object details) {
  if (error.retry_after_ms != 0) details["retry_after_ms"] = error.retry_after_ms;
  HttpResponse response = v1_error_body(status_of(error), code_name(error), error.message,
                                        is_retryable(error), details);
  add_error_headers(response, error);
  return response;
}

HttpResponse pd_error(const Error& error) {
  HttpResponse response = pd_error_body(status_of(error), pd_text(error));
  add_error_headers(response, error);
  return response;
}

HttpResponse error_response(unsigned status, std::string_view message, std::string_view path) {
  if (is_pd_path(path)) return pd_error_body(status, message);
  if (is_catalog_path(path)) return catalog_error(status, message);
  return v1_error_body(status, code_of_status(status), message, status == 503, {});
}

HttpResponse failure_response(const Error& error, std::string_view path) {
  if (is_catalog_path(path)) return catalog_error(error, error.message);
  return is_pd_path(path) ? pd_error(error) : v1_error(error);
}

}  // namespace trellis
