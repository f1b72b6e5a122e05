// What the server can be asked over HTTP: PD's v2 API, /v1, Gravitino's API and the operators'
// paths, as routes for net. docs/http_api.md has every path; openapi.json has them for machines.
//
// This module translates and decides nothing: who calls (gate.h), what was asked for (json_body.h),
// and how tenant's and raw's answers and errors look from outside (answers.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backup/backups.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/result.h"
#include "net/http_types.h"
#include "net/router.h"
#include "raw/raw.h"
#include "tenant/collector.h"
#include "tenant/gc.h"
#include "tenant/keyspaces.h"
#include "tenant/tokens.h"

namespace trellis {

class Catalog;
class EmbeddedRanges;
class FileSystems;

struct RestOptions {
  enum class Auth : uint8_t {
    loopback,  // a caller on this machine needs no token, unless there is an admin token
    required,
  };
  Auth auth = Auth::loopback;
  std::string admin_token = {};           // empty: nobody is the server's admin by a token
  std::string catalog_version = "2.0.0";  // of Gravitino, that the catalog says it is
  bool catalog_authorization = false;     // its users need privileges
};

// All of it outlives the routes.
struct RestContext {
  Keyspaces& keyspaces;
  Tokens& tokens;
  Gc& gc;
  Collector& collector;
  Raw& raw;
  FileSystems& files;
  Catalog& catalog;
  Backups& backups;
  Registry& metrics;
  Clock& clock;
  EmbeddedRanges& ranges;
  RestOptions options = {};
};

// The context must outlive them.
std::vector<Route> make_routes(const RestContext& context);

// For HttpServerOptions: errors of net itself, and of sinks and sources. In PD's form under /pd/.
HttpResponse error_response(unsigned status, std::string_view message, std::string_view path);
HttpResponse failure_response(const Error& error, std::string_view path);

}  // namespace trellis
