#include "net/http_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>

#include "net/ascii.h"
#include "net/url.h"

// Beast 1.81 asserts that five bytes are there where four may be: the last chunk of a body that
// comes in two pieces, "0\r\n\r" and "\n", would abort. Without the assertion it is parsed well.
#ifndef BOOST_DISABLE_ASSERTS
#error "the build must define BOOST_DISABLE_ASSERTS for this module"
#endif

namespace trellis {
namespace {

namespace http = boost::beast::http;
using BeastError = boost::beast::error_code;
using BeastText = boost::beast::string_view;

std::string_view text(BeastText view) { return {view.data(), view.size()}; }

// Of Beast's parser, the half that requests and answers share.
template <bool is_request>
class Parser : public http::basic_parser<is_request> {
 public:
  Parser() {
    this->header_limit(std::numeric_limits<uint32_t>::max());  // the caller's business
    this->body_limit(boost::none);
  }

  std::vector<HttpHeaderView> fields;
  const char* input_end = nullptr;
  bool in_trailers = false;
  ByteView body;  // of the last step
  http::verb verb = http::verb::unknown;
  std::string_view target;
  unsigned status = 0;
  bool is_http11 = false;

 private:
  void on_request_impl(http::verb method, BeastText, BeastText sent_target, int version,
                       BeastError&) override {
    verb = method;
    target = text(sent_target);
    is_http11 = version == 11;
  }
  void on_response_impl(int code, BeastText, int version, BeastError&) override {
    status = static_cast<unsigned>(code);
    is_http11 = version == 11;
  }

  void on_field_impl(http::field, BeastText name, BeastText value, BeastError& error) override {
    // Beast unfolds lines, into a buffer of its own unless the first line is empty. Some proxies
    // take a folded line for a header of its own, so what they let through may be anything.
    const char* name_end = name.data() + name.size();
    const bool is_inside = std::greater_equal<>()(value.data(), name_end) &&
                           std::less_equal<>()(value.data() + value.size(), input_end);
    const bool is_folded = !is_inside || std::find(name_end, value.data(), '\r') != value.data();
    if (is_folded) {
      error = http::error::bad_obs_fold;
    } else if (!in_trailers) {
      fields.push_back({text(name), text(value)});
    }
  }

  void on_header_impl(BeastError&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, BeastError&) override {}
  size_t on_body_impl(BeastText piece, BeastError&) override {
    body = text(piece);
    return piece.size();
  }
  void on_chunk_header_impl(std::uint64_t, BeastText extensions, BeastError& error) override {
    // In quotes Beast lets them pass; to others a line might end there.
    if (std::any_of(extensions.begin(), extensions.end(),
                    [](char c) { return is_control(c) && c != '\t'; })) {
      error = http::error::bad_chunk_extension;
    }
  }
  size_t on_chunk_body_impl(std::uint64_t, BeastText piece, BeastError&) override {
    body = text(piece);
    return piece.size();
  }
  void on_finish_impl(BeastError&) override {}
};

HttpProblem problem_of(const BeastError& error) {
  using E = http::error;
  if (error == E::bad_method) return {400, "the request line has a bad method"};
  if (error == E::bad_target) return {400, "the request line has a bad target"};
  if (error == E::bad_version) return {400, "the first line has a bad HTTP version"};
  if (error == E::bad_field) return {400, "a header has a bad name"};
  if (error == E::bad_value) return {400, "a header has a bad value"};
  if (error == E::bad_obs_fold) return {400, "a header is folded over two lines"};
  if (error == E::bad_line_ending) return {400, "a line does not end with CR LF"};
  if (error == E::bad_content_length) return {400, "bad Content-Length"};
  if (error == E::multiple_content_length) return {400, "more than one Content-Length"};
  if (error == E::bad_transfer_encoding) return {400, "bad Transfer-Encoding"};
  if (error == E::bad_chunk) return {400, "a chunk has a bad size or end"};
  if (error == E::bad_chunk_extension) return {400, "a chunk has a bad extension"};
  if (error == E::body_limit) return {413, "the body is larger than this path takes"};
  return {400, "the message is not HTTP"};
}

// Whether the first line ends with a version of HTTP, so that the version is what is wrong.
bool has_http_version(ByteView head) {
  const ByteView line = head.substr(0, head.find('\r'));
  if (line.size() < 9) return false;
  const ByteView version = line.substr(line.size() - 9);
  return version.starts_with(" HTTP/") && is_ascii_digit(version[6]) && version[7] == '.' &&
         is_ascii_digit(version[8]);
}

// Feeds a whole header. Bytes that are left over cannot be, but are not taken on trust either.
template <bool is_request>
std::optional<HttpProblem> put_head(Parser<is_request>& parser, ByteView head) {
  parser.input_end = head.data() + head.size();
  BeastError error;
  const size_t consumed = parser.put({head.data(), head.size()}, error);
  parser.in_trailers = true;  // what fields come now
  if (error == http::error::bad_version && has_http_version(head)) {
    return HttpProblem{505, "only HTTP/1.0 and 1.1 are spoken here"};
  }
  if (error) return problem_of(error);
  if (consumed != head.size() || !parser.is_header_done()) return problem_of({});
  return std::nullopt;
}

template <bool is_request>
BodyStep put_body(Parser<is_request>& parser, ByteView in) {
  parser.input_end = in.data() + in.size();
  parser.body = {};
  BeastError error;
  BodyStep step;
  step.consumed = parser.put({in.data(), in.size()}, error);
  step.body = parser.body;
  step.is_done = parser.is_done();
  if (error && error != http::error::need_more) step.problem = problem_of(error);
  return step;
}

// What Beast does not check, or allows in forms that others read in another way.
std::optional<HttpProblem> check_fields(const Parser<true>& parser, RequestFraming& framing) {
  size_t hosts = 0;
  size_t lengths = 0;
  size_t encodings = 0;
  size_t authorizations = 0;
  for (const auto& [name, value] : parser.fields) {
    if (equals_ignoring_case(name, "Host")) {
      ++hosts;
      if (value.find_first_of(" \t,/@\\?#<>\"") != std::string_view::npos) {
        return HttpProblem{400, "bad Host"};
      }
    } else if (equals_ignoring_case(name, "Content-Length")) {
      ++lengths;
      if (!std::all_of(value.begin(), value.end(), is_ascii_digit)) {
        return HttpProblem{400, "bad Content-Length"};
      }
    } else if (equals_ignoring_case(name, "Transfer-Encoding")) {
      ++encodings;
      if (!equals_ignoring_case(value, "chunked")) {
        return HttpProblem{501, "the only Transfer-Encoding known here is chunked"};
      }
    } else if (equals_ignoring_case(name, "Authorization")) {
      ++authorizations;
    } else if (equals_ignoring_case(name, "Expect") && framing.is_http11) {
      if (!equals_ignoring_case(value, "100-continue")) {
        return HttpProblem{417, "the only expectation known here is 100-continue"};
      }
      framing.expects_continue = true;
    }
  }
  if (hosts > 1) return HttpProblem{400, "more than one Host"};
  if (hosts == 0 && framing.is_http11) return HttpProblem{400, "no Host"};
  if (lengths + encodings > 1) {
    return HttpProblem{400, "more than one Content-Length or Transfer-Encoding"};
  }
  if (encodings > 0 && !framing.is_http11) {
    return HttpProblem{400, "Transfer-Encoding needs HTTP/1.1"};
  }
  if (authorizations > 1) return HttpProblem{400, "more than one Authorization"};
  return std::nullopt;
}

// Splits the target; the authority of an absolute form does not matter, for one server has one set
// of paths.
std::optional<HttpProblem> split_target(HttpRequest& request) {
  std::string_view rest = request.target;
  const auto has_scheme = [&rest](std::string_view scheme) {
    return equals_ignoring_case(rest.substr(0, scheme.size()), scheme);
  };
  if (rest.find('#') != std::string_view::npos) {
    return HttpProblem{400, "the target has a fragment: write %23 for a '#'"};
  }
  if (has_scheme("http://") || has_scheme("https://")) {
    const size_t authority = rest.find("//") + 2;
    rest.remove_prefix(std::min(rest.find_first_of("/?", authority), rest.size()));
    request.path = "/";
  } else if (rest == "*" && request.method == HttpMethod::options) {
    request.path = rest;
    return std::nullopt;
  } else if (!rest.starts_with('/')) {
    return HttpProblem{400, "the target does not start with '/'"};
  }
  const size_t question = std::min(rest.find('?'), rest.size());
  if (question > 0) request.path = rest.substr(0, question);
  if (question < rest.size()) request.query = rest.substr(question + 1);
  if (!is_percent_encoded(request.path)) {
    return HttpProblem{400, "the path is badly percent-encoded: write %25 for a '%'"};
  }
  return std::nullopt;
}

std::optional<HttpMethod> method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get: return HttpMethod::get;
    case http::verb::head: return HttpMethod::head;
    case http::verb::post: return HttpMethod::post;
    case http::verb::put: return HttpMethod::put;
    case http::verb::patch: return HttpMethod::patch;
    case http::verb::delete_: return HttpMethod::del;
    case http::verb::options: return HttpMethod::options;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<size_t> find_head_end(ByteView in, size_t& searched) {
  const size_t found = in.find("\r\n\r\n", searched);
  if (found != ByteView::npos) return found + 4;
  searched = std::max(searched, in.size() - std::min<size_t>(in.size(), 3));
  return std::nullopt;
}

class RequestParser::Impl {
 public:
  // Beast's parsers are good for one message; the vector's memory is kept from one to the next.
  std::optional<Parser<true>> parser;
};

RequestParser::RequestParser() : impl_(std::make_unique<Impl>()) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

std::optional<HttpProblem> RequestParser::parse_head(ByteView head, HttpRequest& request,
                                                     RequestFraming& framing) {
  Parser<true>& parser = impl_->parser.emplace();
  parser.fields = std::move(request.headers);
  parser.fields.clear();
  std::optional<HttpProblem> problem = put_head(parser, head);
  const std::optional<HttpMethod> method = method_of(parser.verb);
  request.method = method.value_or(HttpMethod::get);
  framing = {.is_http11 = parser.is_http11};
  if (!problem.has_value()) problem = check_fields(parser, framing);
  request.headers = std::move(parser.fields);
  request.target = request.path = parser.target;
  request.query = {};
  if (problem.has_value()) return problem;

  framing.keep_alive = parser.keep_alive();
  framing.is_chunked = parser.chunked();
  framing.content_length = parser.content_length().value_or(0);
  problem = split_target(request);
  if (!problem.has_value() && !method.has_value()) {
    problem = HttpProblem{501, "this method is not known here"};
  }
  return problem;
}

void RequestParser::limit_body(uint64_t bytes_max) { impl_->parser->body_limit(bytes_max); }

BodyStep RequestParser::parse_body(ByteView in) { return put_body(*impl_->parser, in); }

class AnswerParser::Impl {
 public:
  std::optional<Parser<false>> parser;
};

AnswerParser::AnswerParser() : impl_(std::make_unique<Impl>()) {}
AnswerParser::~AnswerParser() = default;
AnswerParser::AnswerParser(AnswerParser&&) noexcept = default;
AnswerParser& AnswerParser::operator=(AnswerParser&&) noexcept = default;

std::optional<HttpProblem> AnswerParser::parse_head(ByteView head, bool to_head,
                                                    std::vector<HttpHeader>& headers,
                                                    AnswerFraming& framing) {
  Parser<false>& parser = impl_->parser.emplace();
  parser.skip(to_head);
  if (std::optional<HttpProblem> problem = put_head(parser, head)) return problem;
  headers.clear();
  for (const auto& [name, value] : parser.fields) {
    headers.push_back({std::string(name), std::string(value)});
  }
  framing = {.status = parser.status,
             .keep_alive = parser.keep_alive(),
             .is_done = parser.is_done(),
             .ends_with_eof = parser.need_eof()};
  return std::nullopt;
}

BodyStep AnswerParser::parse_body(ByteView in) { return put_body(*impl_->parser, in); }

}  // namespace trellis
