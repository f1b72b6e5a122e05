#include "rest/catalog_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "json/json_text.h"
#include "net/ascii.h"
#include "rest/answers.h"

namespace trellis {
namespace {

struct Row {
  std::string_view reason;
  unsigned status;
  unsigned code;
  std::string_view type;
};

// Reasons that are not made of a type's name.
constexpr Row rows[] = {
    {"illegal_name", 400, 1001, "IllegalNameIdentifierException"},
    {"illegal_privilege", 400, 1001, "IllegalPrivilegeException"},
    {"illegal_role", 400, 1001, "IllegalRoleException"},
    {"illegal_metadata_object", 400, 1001, "IllegalMetadataObjectException"},
    {"illegal_statistic_name", 400, 1001, "IllegalStatisticNameException"},
    {"tag_associated", 409, 1004, "TagAlreadyAssociatedException"},
    {"policy_associated", 409, 1004, "PolicyAlreadyAssociatedException"},
    {"model_version_aliases_exist", 409, 1004, "ModelVersionAliasesAlreadyExistException"},
    {"no_such_uri_name", 404, 1003, "NoSuchURINameException"},
    {"unsupported", 405, 1006, "UnsupportedOperationException"},
    {"no_token", 401, 1011, "UnauthorizedException"},
    {"bad_token", 401, 1011, "UnauthorizedException"},
    {"token_expired", 401, 1011, "UnauthorizedException"},
};

// By what stands before and behind the type's name: no_such_table, table_exists.
struct Shape {
  std::string_view before;
  std::string_view behind;
  unsigned status;
  unsigned code;
  std::string_view type_before;
  std::string_view type_behind;
};
constexpr Shape shapes[] = {
    {"no_such_", "", 404, 1003, "NoSuch", "Exception"},
    {"non_empty_", "", 409, 1005, "NonEmpty", "Exception"},
    {"", "_not_in_use", 409, 1009, "", "NotInUseException"},
    {"", "_in_use", 409, 1010, "", "InUseException"},
    {"", "_exists", 409, 1004, "", "AlreadyExistsException"},
};

// model_version: ModelVersion.
std::string camel_case(std::string_view word) {
  std::string out;
  bool is_first = true;
  for (const char c : word) {
    if (c != '_') out += is_first ? static_cast<char>(c - 'a' + 'A') : c;
    is_first = c == '_';
  }
  return out;
}

GravitinoError by_code(const Error& error) {
  switch (error.code) {
    case Code::invalid:
    case Code::too_large: return {400, 1001, "IllegalArgumentException"};
    case Code::not_found: return {404, 1003, "NotFoundException"};
    case Code::exists: return {409, 1004, "AlreadyExistsException"};
    case Code::conflict: return {409, 1012, "OptimisticLockException"};
    case Code::denied: return {403, 1008, "ForbiddenException"};
    case Code::unsupported: return {405, 1006, "UnsupportedOperationException"};
    default: return {status_of(error), 1002, "RuntimeException"};
  }
}

HttpResponse error_body(const GravitinoError& kind, std::string_view message) {
  Bytes body = fmt::format("{{\"code\":{},\"type\":", kind.code);
  append_json_string(body, kind.type);
  body += ",\"message\":";
  append_json_string(body, message.empty() ? kind.type : message);
  body += '}';
  return text_answer(std::move(body), kind.status);
}

}  // namespace

GravitinoError gravitino_error(const Error& error) {
  const auto* row = std::ranges::find(rows, error.reason, &Row::reason);
  if (row != std::end(rows)) return {row->status, row->code, std::string(row->type)};
  for (const Shape& shape : shapes) {
    std::string_view word = error.reason;
    if (word.size() <= shape.before.size() + shape.behind.size() ||
        !word.starts_with(shape.before) || !word.ends_with(shape.behind)) {
      continue;
    }
    word =
        word.substr(shape.before.size(), word.size() - shape.before.size() - shape.behind.size());
    return {shape.status, shape.code,
            fmt::format("{}{}{}", shape.type_before, camel_case(word), shape.type_behind)};
  }
  return by_code(error);
}

HttpResponse catalog_error(const Error& error, std::string_view message) {
  HttpResponse response = error_body(gravitino_error(error), message);
  add_error_headers(response, error);
  return response;
}

HttpResponse catalog_error(unsigned status, std::string_view message) {
  if (status == 404) return error_body({status, 1003, "NotFoundException"}, message);
  if (status == 405) return error_body({status, 1006, "UnsupportedOperationException"}, message);
  if (status < 500 && status != 408)
    return error_body({status, 1001, "IllegalArgumentException"}, message);
  return error_body({status, 1002, "RuntimeException"}, message);
}

bool is_catalog_path(std::string_view path) {
  if (path.starts_with("/k/")) {
    const size_t slash = path.find('/', 3);
    path.remove_prefix(std::min(slash, path.size()));
  }
  return path == "/api" || path.starts_with("/api/");
}

}  // namespace trellis
