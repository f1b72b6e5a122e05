// The server's API as commands use it: connects when it is first needed, and turns every answer
// that is no success into an error for people.
//
//   ApiClient api({.server = "http://127.0.0.1:7380"});
//   TRY_ASSIGN(const ApiAnswer answer, api.ask({.target = "/v1/top"}));
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http_client.h"

namespace trellis {

struct ApiOptions {
  std::string server;     // a base URL
  std::string token;      // "": none
  std::string user = {};  // of the catalog; "": whom the token names
  std::string ca_file;    // of an https server; "": the certificates that the machine trusts
  uint32_t timeout_ms = 30'000;
};

struct ApiCall {
  HttpMethod method = HttpMethod::get;
  std::string target;
  std::vector<HttpHeader> headers = {};
  std::string_view content_type = {};  // of the body
  Bytes body = {};
  // An answer with this status is one too, and no error.
  std::optional<unsigned> expected_status = {};
  // See HttpCall.
  std::function<Result<std::optional<Bytes>>()> send = {};
  std::function<Status(const HttpAnswer& answer, ByteView piece)> receive = {};
};

// A call with a JSON body.
ApiCall json_call(HttpMethod method, std::string target, const boost::json::object& body);

// A JSON object.
struct ApiAnswer {
  std::string text;  // as the server wrote it, without a newline at its end
  boost::json::object object;
  unsigned status = 200;
};

// Of any answer that is not 2xx. `server` is named if it does not seem to be a Trellis.
Error answer_error(const HttpAnswer& answer, std::string_view server);

// One thread at a time.
class ApiClient {
 public:
  explicit ApiClient(ApiOptions options) : options_(std::move(options)) {}

  // The answer is a 2xx one. Code maybe: it may have been done.
  Result<HttpAnswer> call(const ApiCall& call);
  Result<ApiAnswer> ask(const ApiCall& call);

  const std::string& server() const { return options_.server; }
  // With a connection of its own, for another thread.
  ApiClient another() const { return ApiClient(options_); }
  // From the next call on; for answers that wait for something to happen.
  void wait_at_least_ms(uint32_t timeout_ms);

 private:
  Status connect();

  ApiOptions options_;
  std::optional<HttpClient> http_;
};

// Members of answers. What is not there, or of another type, is as if it were empty: an answer is
// shown as far as it can be.
std::string text_at(const boost::json::object& object, std::string_view name);
std::optional<uint64_t> number_at(const boost::json::object& object, std::string_view name);
double real_at(const boost::json::object& object, std::string_view name);
const boost::json::object& object_at(const boost::json::object& object, std::string_view name);
const boost::json::array& array_at(const boost::json::object& object, std::string_view name);

}  // namespace trellis
