// How the catalog answers, as Gravitino does: {"code":0, ...}, and errors as
//
//   {"code":1003,"type":"NoSuchTableException","message":"Failed to operate table(s) [t] ..."}
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http_types.h"

namespace trellis {

// The kinds of errors that Gravitino's clients tell apart: first by the code, then by the type.
struct GravitinoError {
  unsigned status = 500;
  unsigned code = 1002;
  std::string type = "RuntimeException";
};
GravitinoError gravitino_error(const Error& error);

// `message` instead of the error's own.
HttpResponse catalog_error(const Error& error, std::string_view message);
// Of net itself.
HttpResponse catalog_error(unsigned status, std::string_view message);

// Whether what is below is answered in this form: /api/..., /k/{keyspace}/api/...
bool is_catalog_path(std::string_view path);

}  // namespace trellis
