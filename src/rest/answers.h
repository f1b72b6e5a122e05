// How answers look: JSON bodies, and errors in the forms that there are.
//
//   /pd/   "[PD:keyspace:ErrKeyspaceNotFound]keyspace does not exist"
//   /api/  {"code":1003,"type":"NoSuchTableException","message":"..."}: catalog_answers.h
//   else   {"code":"keyspace_not_found","message":"...","details":{},"retryable":false}
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http_types.h"

namespace trellis {

inline constexpr std::string_view json_type = "application/json";

// A body whose bytes are JSON already.
HttpResponse text_answer(Bytes json_text, unsigned status = 200);
HttpResponse json_answer(const boost::json::value& value, unsigned status = 200);
HttpResponse empty_answer(unsigned status = 204);

// By the reason where it says more than the code, else by the code.
unsigned status_of(const Error& error);

// WWW-Authenticate and Retry-After, where they say something.
void add_error_headers(HttpResponse& response, const Error& error);
HttpResponse v1_error(const Error& error, boost::json::object details = {});
HttpResponse pd_error(const Error& error);

}  // namespace trellis
