#include "net/http_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <utility>

#include "base/assert.h"
#include "net/ascii.h"

namespace trellis {
namespace {

void append_number(Bytes& out, uint64_t number, int base = 10) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
  out.append(digits.data(), end);
}

bool is_servers_own(std::string_view name, const HttpResponse& response) {
  for (const std::string_view own : {"Content-Length", "Transfer-Encoding", "Connection", "Date"}) {
    if (equals_ignoring_case(name, own)) return true;
  }
  return !response.content_type.empty() && equals_ignoring_case(name, "Content-Type");
}

bool is_value(std::string_view value) {
  return std::none_of(value.begin(), value.end(),
                      [](char c) { return is_control(c) && c != '\t'; });
}

}  // namespace

std::string_view DateText::at(uint64_t unix_ms) {
  if (unix_ms / 1000 != second_) {
    second_ = unix_ms / 1000;
    const auto time = static_cast<time_t>(second_);
    std::tm parts{};
    gmtime_r(&time, &parts);
    // Not strftime: HTTP wants English names, whatever the locale.
    static constexpr std::array days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    text_ = fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                        days[static_cast<size_t>(parts.tm_wday)], parts.tm_mday,
                        months[static_cast<size_t>(parts.tm_mon)], parts.tm_year + 1900,
                        parts.tm_hour, parts.tm_min, parts.tm_sec);
  }
  return text_;
}

void append_head(OutputQueue& out, const HttpResponse& response, const HeadOptions& options) {
  using Kind = BodyFraming::Kind;
  thread_local Bytes head;  // keeps its memory from response to response
  head.clear();
  head.append("HTTP/1.1 ");
  append_number(head, response.status);
  head.append(" ").append(reason_phrase(response.status));
  head.append("\r\nDate: ").append(options.date);
  if (!response.content_type.empty()) {
    head.append("\r\nContent-Type: ").append(response.content_type);
  }
  for (const HttpHeader& header : response.headers) {
    head.append("\r\n").append(header.name).append(": ").append(header.value);
  }
  if (options.framing.kind == Kind::length) {
    head.append("\r\nContent-Length: ");
    append_number(head, options.framing.length);
  } else if (options.framing.kind == Kind::chunked) {
    head.append("\r\nTransfer-Encoding: chunked");
  }
  if (!options.keep_alive) {
    head.append("\r\nConnection: close");
  } else if (!options.is_http11) {
    head.append("\r\nConnection: keep-alive");
  }
  head.append("\r\n\r\n");
  out.append(head);
}

std::optional<std::string> bad_header(const HttpResponse& response) {
  if (response.status < 200 || response.status > 599) {
    return fmt::format("{} is no status of a response", response.status);
  }
  if (!is_value(response.content_type)) return "a bad content type";
  for (const auto& [name, value] : response.headers) {
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), is_token_char) &&
                         !is_servers_own(name, response);
    if (!is_name || !is_value(value)) return fmt::format("a bad header {}", quote(name));
  }
  return std::nullopt;
}

std::string_view reason_phrase(unsigned status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 206: return "Partial Content";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 416: return "Range Not Satisfiable";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 507: return "Insufficient Storage";
    default: return "Other";
  }
}

void append_chunk(OutputQueue& out, Bytes&& bytes) {
  ASSERT(!bytes.empty());  // would end the body
  Bytes size;
  append_number(size, bytes.size(), 16);
  size.append("\r\n");
  out.append(size);
  out.append_body(std::move(bytes));
  out.append("\r\n");
}

void append_last_chunk(OutputQueue& out) { out.append("0\r\n\r\n"); }

}  // namespace trellis
