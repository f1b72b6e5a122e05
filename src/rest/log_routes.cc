// Over all keyspaces: who uses most, who did what, and a stream of what changes.
#include <fmt/format.h>

#include <iterator>

#include "json/json_text.h"
#include "rest/answers.h"
#include "rest/gate.h"
#include "rest/keyspace_json.h"
#include "rest/keyspace_watch.h"
#include "rest/request_reading.h"
#include "rest/routes.h"
#include "tenant/top.h"

namespace trellis {
namespace {

namespace json = boost::json;

constexpr size_t top_entries_max = 1'000;
constexpr size_t audit_entries_max = 10'000;
constexpr size_t audit_page_entries = 1'000;
// Entries that one request looks at for a keyspace's own: then it answers with how far it came.
constexpr size_t audit_looked_at_max = 100'000;

Result<TopBy> read_top_by(const HttpRequest& request) {
  TRY_ASSIGN(const auto by, query_text(request, "by"));
  if (!by.has_value() || *by == "bytes") return TopBy::bytes;
  if (*by == "keys") return TopBy::keys;
  if (*by == "operations") return TopBy::operations;
  return bad_query(fmt::format("by is {}: it must be bytes, keys or operations", quote(*by)));
}

std::string_view to_string(TopBy by) {
  return by == TopBy::bytes ? "bytes" : by == TopBy::keys ? "keys" : "operations";
}

Result<HttpResponse> get_top(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {"by", "limit"}));
  TRY_ASSIGN(const TopBy by, read_top_by(request));
  TRY_ASSIGN(const size_t limit, query_limit(request, 20, top_entries_max));
  TRY_ASSIGN(const std::vector<TopEntry> entries, top(context.keyspaces, by, limit));
  json::array out;
  for (const TopEntry& entry : entries) {
    const json::object load = load_json(entry.load);
    out.push_back(json::object{{"id", entry.id.value},
                               {"name", entry.name},
                               {"bytes", entry.figures.bytes},
                               {"keys", entry.figures.keys},
                               {"reads_per_second", load.at("reads_per_second")},
                               {"writes_per_second", load.at("writes_per_second")}});
  }
  return json_answer(json::object{{"by", to_string(by)}, {"keyspaces", std::move(out)}});
}

// Before the oldest entry that is still kept.
Result<uint64_t> oldest_since(const ChangeLog& changes) {
  TRY_ASSIGN(uint64_t high, changes.revision());
  uint64_t low = 0;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    const auto read = changes.read(middle, 1);
    if (!read && read.error().reason != "compacted") return read.error();
    if (read) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

struct AuditQuery {
  uint64_t since = 0;
  size_t limit = 0;
  std::optional<std::string> name;  // only changes of the keyspace that had or has this name
  std::optional<KeyspaceId> id = {};
};

bool is_wanted(const AuditQuery& query, const Change& change) {
  return !query.name.has_value() || change.name == *query.name ||
         (query.id.has_value() && change.keyspace == *query.id);
}

// {"changes":[...],"last_revision":n}, where n is the last revision that was looked at.
Result<Bytes> audit_text(const ChangeLog& changes, const AuditQuery& query) {
  Bytes out = "{\"changes\":[";
  uint64_t since = query.since;
  size_t found = 0;
  for (size_t looked_at = 0; looked_at < audit_looked_at_max && found < query.limit;) {
    TRY_ASSIGN(const std::vector<Change> page, changes.read(since, audit_page_entries));
    for (const Change& change : page) {
      if (found == query.limit) break;
      since = change.revision;
      if (!is_wanted(query, change)) continue;
      if (found++ > 0) out += ',';
      append_json(out, change_json(change));
    }
    looked_at += page.size();
    if (page.size() < audit_page_entries) break;
  }
  fmt::format_to(std::back_inserter(out), "],\"last_revision\":{}}}", since);
  return out;
}

Result<HttpResponse> get_audit(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {"since", "limit", "keyspace"}));
  TRY_ASSIGN(const auto since, query_number(request, "since"));
  AuditQuery query;
  TRY_ASSIGN(query.limit, query_limit(request, 100, audit_entries_max));
  TRY_ASSIGN(query.name, query_text(request, "keyspace"));
  const ChangeLog& changes = context.keyspaces.changes();
  if (since.has_value()) {
    query.since = *since;
  } else {
    TRY_ASSIGN(query.since, oldest_since(changes));
  }
  if (query.name.has_value()) {
    const Result<Keyspace> keyspace = context.keyspaces.load(*query.name);
    if (!keyspace && keyspace.error().code != Code::not_found) return keyspace.error();
    if (keyspace) query.id = keyspace->id;
  }
  TRY_ASSIGN(Bytes text, audit_text(changes, query));
  return text_answer(std::move(text));
}

Result<std::optional<uint64_t>> read_watch_since(const HttpRequest& request) {
  // A client that comes back sends where it was, beside the address that it began with.
  const std::string_view last = request.header("Last-Event-ID");
  if (last.empty()) return query_number(request, "since");
  const std::optional<uint64_t> since = parse_decimal(last);
  if (!since.has_value()) return bad_query("Last-Event-ID is no revision");
  return since;
}

Result<HttpResponse> watch_keyspaces(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {"since"}));
  TRY_ASSIGN(const std::optional<uint64_t> since, read_watch_since(request));
  // Said with a status now, not by breaking off a stream that began well.
  if (since.has_value()) TRY(context.keyspaces.changes().read(*since, 1));
  HttpResponse response;
  response.content_type = "text/event-stream";
  response.headers.push_back({"Cache-Control", "no-store"});
  response.stream = std::make_unique<KeyspaceWatch>(context.keyspaces, context.clock, since);
  return response;
}

}  // namespace

void add_log_routes(const RestContext& context, std::vector<Route>& routes) {
  using enum HttpMethod;
  const RouteSpec specs[] = {
      {get, "/v1/top", get_top},
      {get, "/v1/audit", get_audit},
      {get, "/v1/watch/keyspaces", watch_keyspaces},
  };
  for (const RouteSpec& spec : specs) routes.push_back(make_route(context, spec));
}

}  // namespace trellis
