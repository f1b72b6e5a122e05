#include "net/http_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "net/ascii.h"
#include "net/url.h"
#include "net/wake_target.h"

namespace trellis {
namespace {

struct Parameter {
  std::string_view name;  // both still encoded
  std::string_view value;
};

// Takes the first parameter off a query; empty parts have an empty name and value.
Parameter take_parameter(std::string_view& query) {
  const size_t end = std::min(query.find('&'), query.size());
  const std::string_view part = query.substr(0, end);
  query.remove_prefix(std::min(end + 1, query.size()));
  const size_t equals = part.find('=');
  if (equals == std::string_view::npos) return {part, {}};
  return {part.substr(0, equals), part.substr(equals + 1)};
}

}  // namespace

std::string_view to_string(HttpMethod method) {
  static constexpr std::array<std::string_view, http_method_count> names = {
      "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
  return names[static_cast<size_t>(method)];
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const HttpHeaderView& header : headers) {
    if (equals_ignoring_case(header.name, name)) return header.value;
  }
  return {};
}

Result<std::optional<std::string>> query_value(const HttpRequest& request, std::string_view name) {
  std::optional<std::string> found;
  for (std::string_view query = request.query; !query.empty();) {
    const Parameter parameter = take_parameter(query);
    TRY_ASSIGN(const std::string decoded_name, query_decode(parameter.name));
    if (decoded_name != name) continue;
    if (found.has_value()) {
      return Error{Code::invalid, fmt::format("the parameter {} is given twice", name)};
    }
    TRY_ASSIGN(found, query_decode(parameter.value));
  }
  return found;
}

Result<std::vector<std::string>> query_names(const HttpRequest& request) {
  std::vector<std::string> names;
  for (std::string_view query = request.query; !query.empty();) {
    const Parameter parameter = take_parameter(query);
    if (parameter.name.empty() && parameter.value.empty()) continue;
    TRY_ASSIGN(std::string name, query_decode(parameter.name));
    names.push_back(std::move(name));
  }
  return names;
}

void Waker::wake() const {
  if (const std::shared_ptr<WakeTarget> target = target_.lock()) target->wake();
}

unsigned http_status(Code code) {
  switch (code) {
    case Code::invalid: return 400;
    case Code::denied: return 403;
    case Code::not_found: return 404;
    case Code::exists:
    case Code::conflict: return 409;
    case Code::refused: return 412;
    case Code::too_large: return 413;
    case Code::exhausted: return 429;
    case Code::corrupt:
    case Code::maybe: return 500;
    case Code::unsupported: return 501;
    case Code::busy:
    case Code::unavailable: return 503;
    case Code::no_space: return 507;
  }
  return 500;
}

}  // namespace trellis
