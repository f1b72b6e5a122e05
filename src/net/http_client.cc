#include "net/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "net/ascii.h"
#include "net/client_connection.h"
#include "net/http_parser.h"
#include "net/tls_context.h"
#include "net/url.h"

namespace trellis {
namespace {

using Event = ClientConnection::Event;

constexpr size_t head_bytes_max = 32 * 1024;  // less than a connection reads ahead

bool changes_nothing(HttpMethod method) {
  return method == HttpMethod::get || method == HttpMethod::head || method == HttpMethod::options;
}

// Whether doing it twice is doing it once, and says so. A delete is not found the second time, and
// a condition may not hold any more.
bool may_be_repeated(const HttpCall& call) {
  if (changes_nothing(call.method)) return true;
  if (call.send || call.method != HttpMethod::put) return false;
  return std::none_of(call.headers.begin(), call.headers.end(), [](const HttpHeader& header) {
    return equals_ignoring_case(header.name, "If-Match") ||
           equals_ignoring_case(header.name, "If-None-Match");
  });
}

// Makes an answer of the bytes that come in.
class AnswerReader {
 public:
  AnswerReader(const HttpCall& call, size_t body_bytes_max)
      : call_(call), body_bytes_max_(body_bytes_max) {}

  // Gives how many bytes were used; fewer than there are when more must come first, or when the
  // answer is complete.
  Result<size_t> read(ByteView in);
  // The connection was closed: that may be how the body ends.
  void close() { is_done_ = is_done_ || (has_head_ && framing_.ends_with_eof); }

  bool has_begun() const { return has_begun_; }
  bool has_head() const { return has_head_; }
  bool is_done() const { return is_done_; }
  bool keep_alive() const { return framing_.keep_alive; }
  HttpAnswer& answer() { return answer_; }

 private:
  Result<size_t> read_head(ByteView in);
  Status take(ByteView piece);

  const HttpCall& call_;
  const size_t body_bytes_max_;
  HttpAnswer answer_;
  AnswerParser parser_;
  AnswerFraming framing_;
  size_t searched_bytes_ = 0;
  bool has_begun_ = false;
  bool has_head_ = false;
  bool is_done_ = false;
};

Error bad_answer(std::string_view why) {
  return {Code::corrupt, fmt::format("the server's answer makes no sense: {}", why)};
}

Result<size_t> AnswerReader::read_head(ByteView in) {
  const std::optional<size_t> end = find_head_end(in, searched_bytes_);
  if (end.value_or(in.size()) > head_bytes_max) return bad_answer("its header is too long");
  if (!end.has_value()) return size_t{0};
  searched_bytes_ = 0;
  const auto problem = parser_.parse_head(in.substr(0, *end), call_.method == HttpMethod::head,
                                          answer_.headers, framing_);
  if (problem.has_value()) return bad_answer(problem->message);
  if (framing_.status < 200 && framing_.status != 101) return *end;  // the answer is yet to come
  answer_.status = framing_.status;
  has_head_ = true;
  is_done_ = framing_.is_done;
  return *end;
}

Status AnswerReader::take(ByteView piece) {
  if (call_.receive && answer_.status / 100 == 2) return call_.receive(answer_, piece);
  if (answer_.body.size() + piece.size() > body_bytes_max_) {
    return Error{Code::too_large,
                 fmt::format("the answer is larger than {} bytes", body_bytes_max_)};
  }
  answer_.body.append(piece);
  return {};
}

Result<size_t> AnswerReader::read(ByteView in) {
  has_begun_ = has_begun_ || !in.empty();
  size_t used = 0;
  while (!is_done_ && used < in.size()) {
    const ByteView rest = in.substr(used);
    if (!has_head_) {
      TRY_ASSIGN(const size_t head_bytes, read_head(rest));
      if (head_bytes == 0) break;
      used += head_bytes;
      continue;
    }
    const BodyStep step = parser_.parse_body(rest);
    if (step.problem.has_value()) return bad_answer(step.problem->message);
    if (!step.body.empty()) TRY(take(step.body));
    used += step.consumed;
    is_done_ = step.is_done;
    if (step.consumed == 0) {
      if (!is_done_ && rest.size() > head_bytes_max / 2) return bad_answer("bad chunks");
      break;
    }
  }
  return used;
}

}  // namespace

std::string_view HttpAnswer::header(std::string_view name) const {
  for (const HttpHeader& header : headers) {
    if (equals_ignoring_case(header.name, name)) return header.value;
  }
  return {};
}

struct HttpClient::Impl {
  Status connect();
  Result<Bytes> head_of(const HttpCall& call) const;
  Result<HttpAnswer> try_call(const HttpCall& call, ByteView head, bool& was_unused);
  Status send_next(const HttpCall& call);
  Error broken(const HttpCall& call, const AnswerReader& reader, std::string_view why) const;

  BaseUrl url;
  HttpClientOptions options;
  std::shared_ptr<boost::asio::ssl::context> tls;
  std::unique_ptr<ClientConnection> connection;  // none: closed
  Bytes chunk;                                   // of a body that is sent piece by piece
  bool is_all_sent = false;
};

Status HttpClient::Impl::connect() {
  TRY_ASSIGN(connection, ClientConnection::open(url, tls, !options.insecure, options.timeout_ms));
  return {};
}

Result<Bytes> HttpClient::Impl::head_of(const HttpCall& call) const {
  const auto is_text = [](std::string_view text) {
    return std::none_of(text.begin(), text.end(), is_control);
  };
  const bool is_target = call.target.starts_with('/') || call.target == "*";
  if (!is_target || !is_text(call.target) || call.target.find(' ') != std::string_view::npos) {
    return Error{Code::invalid, fmt::format("{} is no path: encode it", quote(call.target))};
  }
  Bytes head = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n", to_string(call.method), url.path,
                           call.target, url.authority());
  for (const auto& [name, value] : call.headers) {
    const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), is_token_char);
    if (!is_name || !is_text(value)) {
      return Error{Code::invalid, fmt::format("bad header {}", quote(name))};
    }
    head.append(name).append(": ").append(value).append("\r\n");
  }
  const bool has_length = !call.body.empty() || call.method == HttpMethod::post ||
                          call.method == HttpMethod::put || call.method == HttpMethod::patch;
  if (call.send) {
    head.append("Transfer-Encoding: chunked\r\n");
  } else if (has_length) {
    head.append(fmt::format("Content-Length: {}\r\n", call.body.size()));
  }
  head.append("\r\n");
  return head;
}

// Starts to write the next piece of the body.
Status HttpClient::Impl::send_next(const HttpCall& call) {
  std::optional<Bytes> piece;
  do {
    TRY_ASSIGN(piece, call.send());
  } while (piece.has_value() && piece->empty());  // an empty chunk would be the last
  is_all_sent = !piece.has_value();
  chunk = is_all_sent ? "0\r\n\r\n" : fmt::format("{:x}\r\n{}\r\n", piece->size(), *piece);
  connection->start_write(chunk, {});
  return {};
}

Error HttpClient::Impl::broken(const HttpCall& call, const AnswerReader& reader,
                               std::string_view why) const {
  const Code code = changes_nothing(call.method) ? Code::unavailable : Code::maybe;
  return {code, fmt::format("{} {}: {} {}", to_string(call.method), url.authority(),
                            reader.has_begun() ? "the answer broke off:" : "no answer:", why)};
}

Result<HttpAnswer> HttpClient::Impl::try_call(const HttpCall& call, ByteView head,
                                              bool& was_unused) {
  AnswerReader reader(call, options.answer_bytes_max);
  is_all_sent = !call.send;
  connection->start_write(head, call.send ? ByteView() : call.body);
  while (!reader.is_done()) {
    switch (connection->wait()) {
      case Event::written:
        if (!is_all_sent && !reader.has_head()) TRY(send_next(call));
        break;
      case Event::input: {
        TRY_ASSIGN(const size_t used, reader.read(connection->input()));
        connection->consume(used);
        break;
      }
      case Event::end:
        reader.close();
        was_unused = !reader.has_begun();
        if (!reader.is_done()) return broken(call, reader, connection->error_text());
        break;
      case Event::timeout:
        return broken(call, reader, fmt::format("nothing for {} ms", options.timeout_ms));
    }
  }
  // What is left over belongs to no request, and what was not sent would be taken for one.
  const bool is_clean = is_all_sent && connection->is_written() && connection->input().empty();
  if (!reader.keep_alive() || !is_clean) connection.reset();
  return std::move(reader.answer());
}

HttpClient::HttpClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpClient> HttpClient::connect(std::string_view base_url, HttpClientOptions options) {
  auto impl = std::make_unique<Impl>();
  TRY_ASSIGN(impl->url, parse_base_url(base_url));
  while (impl->url.path.ends_with('/')) impl->url.path.pop_back();
  impl->options = std::move(options);
  if (impl->url.secure) {
    TRY_ASSIGN(impl->tls, make_tls_context(false));
    boost::system::error_code error;
    if (impl->options.ca_file.empty()) {
      impl->tls->set_default_verify_paths(error);
    } else {
      impl->tls->load_verify_file(impl->options.ca_file, error);
    }
    if (error) {
      return Error{Code::invalid, fmt::format("cannot load the trusted certificates {}: {}",
                                              impl->options.ca_file, error.message())};
    }
  }
  TRY(impl->connect());
  return HttpClient(std::move(impl));
}

Result<HttpAnswer> HttpClient::request(const HttpCall& call) {
  TRY_ASSIGN(const Bytes head, impl_->head_of(call));
  const bool is_kept = impl_->connection != nullptr;
  if (!is_kept) TRY(impl_->connect());
  bool was_unused = false;
  Result<HttpAnswer> answer = impl_->try_call(call, head, was_unused);
  if (!answer.has_value()) {
    impl_->connection.reset();
    if (is_kept && was_unused && may_be_repeated(call)) {
      TRY(impl_->connect());
      answer = impl_->try_call(call, head, was_unused);
      if (!answer.has_value()) impl_->connection.reset();
    }
  }
  return answer;
}

}  // namespace trellis
