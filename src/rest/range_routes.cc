// Ranges, for the server's admin: where keys live, what that costs, and jobs over all of them.
#include <fmt/format.h>

#include <algorithm>

#include "codec/address.h"
#include "codec/meta_keys.h"
#include "codec/pretty_key.h"
#include "json/json_body.h"
#include "range/embedded_ranges.h"
#include "rest/answers.h"
#include "rest/gate.h"
#include "rest/request_reading.h"
#include "rest/routes.h"

namespace trellis {
namespace {

constexpr size_t range_entries_max = 10'000;
constexpr size_t range_body_bytes_max = 256 * 1024;  // a key of the largest size, in hex
constexpr uint64_t by_hand_sticky_s = 3'600;
constexpr uint64_t series_shown_ms = 3'600'000;

// A bound is an address, and often the border of a keyspace, which is no key.
std::string bound_text(ByteView bound) {
  if (bound.empty()) return "/Min";
  if (bound == map_key_max) return "/Max";
  if (bound.size() == 4 && bound[0] == 'x')
    return "/Keyspace/" + std::to_string(load_be(bound.data() + 1, 3));
  // The start of a Redis key is the start of its first record.
  Bytes key;
  if (bound.size() > 5 && bound[0] == 'x' && bound[4] == 'd' &&
      append_key_at(key, Bytes(bound) + 'm'))
    return pretty_key(key);
  key.clear();
  return append_key_at(key, bound) ? pretty_key(key) : pretty_key(bound);
}

json::object range_json(const RangeDescriptor& range) {
  return {{"id", range.id.value},
          {"start", to_hex(range.start)},
          {"end", to_hex(range.end)},
          {"start_pretty", bound_text(range.start)},
          {"end_pretty", bound_text(range.end)},
          {"generation", range.generation},
          {"sticky_until_ms", range.sticky_until_ms}};
}

double one_digit(double number) {
  return static_cast<double>(static_cast<uint64_t>(number * 10 + 0.5)) / 10;
}

json::object figures_json(const RangeFigures& figures) {
  json::object object = range_json(figures.range);
  object["bytes"] = figures.bytes;
  object["keys"] = figures.keys;
  object["reads_per_second"] = one_digit(figures.reads_per_s);
  object["writes_per_second"] = one_digit(figures.writes_per_s);
  object["counted_at_ms"] = figures.counted_ms;
  object["exact"] = figures.is_exact;
  return object;
}

json::array all_figures_json(const std::vector<RangeFigures>& all) {
  json::array out;
  for (const RangeFigures& figures : all) out.push_back(figures_json(figures));
  return out;
}

// Which ranges there are where somebody looked for one.
std::string ranges_around(const RestContext& context, ByteView address) {
  const std::vector<RangeFigures> here = context.ranges.keeper().accounting().figures(address, 2);
  std::string text;
  for (const RangeFigures& figures : here)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(figures.range));
  return text;
}

// The address of a stored key that was given in hex.
Result<Bytes> address_of_text(const RestContext& context, std::string_view text) {
  auto key = from_hex(text);
  if (!key) return bad_query("key: " + key.error().message);
  Bytes address;
  if (const Status status = append_address(address, *key); !status)
    return bad_query(
        fmt::format("key has no address, as it is no whole key: {}. The ranges there "
                    "are {}: give a key that one of them holds, or its start",
                    status.error().message, ranges_around(context, *key)));
  return address;
}

// Which ranges a page has: from the one that holds an address on.
struct PageRequest {
  Bytes from;
  size_t limit;
};

Result<PageRequest> page_request(const HttpRequest& request) {
  TRY(check_query(request, {"from", "limit"}));
  TRY_ASSIGN(const auto from, query_text(request, "from"));
  TRY_ASSIGN(const size_t limit, query_limit(request, 100, range_entries_max));
  auto address = from_hex(from.value_or(""));
  if (!address) return bad_query("from: " + address.error().message);
  return PageRequest{std::move(*address), limit};
}

// `from` of the page behind one whose last range is given.
json::value next_page(const RangeDescriptor& last) {
  if (last.end == map_key_max) return nullptr;
  return json::value(to_hex(last.end));
}

Result<HttpResponse> get_ranges(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY_ASSIGN(const PageRequest asked, page_request(request));
  const RangeAccounting& accounting = context.ranges.keeper().accounting();
  const std::vector<RangeFigures> page = accounting.figures(asked.from, asked.limit);
  json::value next = page.size() == asked.limit ? next_page(page.back().range) : nullptr;
  return json_answer(json::object{{"ranges", all_figures_json(page)},
                                  {"next", std::move(next)},
                                  {"total", accounting.ranges()}});
}

Result<RangeFigures> figures_of_id(const RestContext& context, std::string_view text) {
  const auto id = parse_decimal(text);
  if (!id) return bad_query("the id of a range is a number");
  auto figures = context.ranges.keeper().accounting().find(RangeId{*id});
  if (figures) return std::move(*figures);
  return Error{Code::not_found, "there is no range " + std::to_string(*id) +
                                    ": it was merged into another one, or never was"};
}

// With what it was like in the last hour.
Result<HttpResponse> get_range(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const RangeFigures figures, figures_of_id(context, request.captures.at(0)));
  json::object answer = figures_json(figures);
  json::object series;
  const uint64_t now_ms = context.clock.unix_ms();
  for (const std::string_view name : {"reads", "writes", "bytes", "keys"}) {
    TRY_ASSIGN(const auto points,
               context.ranges.keeper().series().read("range." + std::string(name),
                                                     std::to_string(figures.range.id.value),
                                                     now_ms - series_shown_ms, now_ms));
    json::array out;
    for (const TimeSeries::Point& point : points)
      out.push_back(json::array{point.time_ms, point.value});
    series[name] = std::move(out);
  }
  answer["series"] = std::move(series);
  return json_answer(answer);
}

json::object step_json(const LookupStep& step) {
  return {{"level", step.level},
          {"record", to_hex(step.record)},
          {"range", range_json(step.range)},
          {"from_cache", step.from_cache},
          {"was_stale", step.was_stale}};
}

Result<HttpResponse> lookup_range(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {"key"}));
  TRY_ASSIGN(const auto text, query_text(request, "key"));
  if (!text) return bad_query("key is missing: a stored key, in hex");
  TRY_ASSIGN(const Bytes address, address_of_text(context, *text));
  TRY_ASSIGN(const std::vector<LookupStep> steps, context.ranges.lookup(address));
  json::array path;
  for (const LookupStep& step : steps) path.push_back(step_json(step));
  const auto figures = context.ranges.keeper().accounting().find(address);
  return json_answer(
      json::object{{"key", *text},
                   {"pretty", pretty_key(*from_hex(*text))},
                   {"address", to_hex(address)},
                   {"path", std::move(path)},
                   {"range", figures ? figures_json(*figures) : range_json(steps.back().range)}});
}

Result<HttpResponse> hot_ranges(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {"limit"}));
  TRY_ASSIGN(const size_t limit, query_limit(request, 20, range_entries_max));
  return json_answer(json::object{
      {"ranges", all_figures_json(context.ranges.keeper().accounting().hottest(limit))}});
}

Result<HttpResponse> range_history(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {"before", "limit"}));
  TRY_ASSIGN(const auto before, query_number(request, "before"));
  TRY_ASSIGN(const size_t limit, query_limit(request, 100, range_entries_max));
  TRY_ASSIGN(const std::vector<RangeEvent> events,
             context.ranges.home().log().read(before.value_or(0), limit));
  json::array out;
  for (const RangeEvent& event : events) {
    json::object object{{"sequence", event.sequence},
                        {"time_ms", event.time_ms},
                        {"action", event.action},
                        {"reason", event.reason},
                        {"left", range_json(event.left)}};
    if (event.right) object["right"] = range_json(*event.right);
    out.push_back(std::move(object));
  }
  return json_answer(json::object{{"events", std::move(out)}});
}

Result<HttpResponse> range_plan(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const RangePlan plan, context.ranges.keeper().plan(range_entries_max));
  json::array out;
  for (const RangeAction& action : plan.actions) {
    json::object object{{"action", to_string(action.kind)},
                        {"range", range_json(action.range)},
                        {"reason", action.reason}};
    if (!action.at.empty()) object["at"] = to_hex(action.at);
    if (action.right) object["right"] = range_json(*action.right);
    out.push_back(std::move(object));
  }
  return json_answer(json::object{{"actions", std::move(out)},
                                  {"total", plan.total},
                                  {"paused", context.ranges.keeper().paused()}});
}

struct ByHand {
  Bytes address;
  uint64_t sticky_s = by_hand_sticky_s;
};

Result<ByHand> read_by_hand(const RestContext& context, const HttpRequest& request,
                            bool with_sticky) {
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  TRY_ASSIGN(const auto key, members.text("key"));
  if (!key) return bad_body("key is missing: a stored key, in hex");
  ByHand by_hand;
  TRY_ASSIGN(by_hand.address, address_of_text(context, *key));
  if (with_sticky) {
    TRY_ASSIGN(const auto sticky_s, members.number("sticky_s"));
    constexpr uint64_t sticky_s_max = 36'500ull * 24 * 3600;
    if (sticky_s.value_or(0) > sticky_s_max) return bad_body("sticky_s is more than 100 years");
    by_hand.sticky_s = sticky_s.value_or(by_hand_sticky_s);
  }
  TRY(members.finish());
  return by_hand;
}

Result<HttpResponse> split_range(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const Caller caller, identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const ByHand by_hand, read_by_hand(context, request, true));
  TRY_ASSIGN(const auto parts,
             context.ranges.keeper().split(by_hand.address,
                                           context.clock.unix_ms() + by_hand.sticky_s * 1'000,
                                           "by hand: " + caller.name));
  return json_answer(
      json::object{{"left", range_json(parts.first)}, {"right", range_json(parts.second)}});
}

Result<HttpResponse> merge_range(const RestContext& context, const HttpRequest& request) {
  TRY_ASSIGN(const Caller caller, identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const ByHand by_hand, read_by_hand(context, request, false));
  TRY_ASSIGN(const RangeDescriptor whole,
             context.ranges.keeper().merge(by_hand.address, "by hand: " + caller.name));
  return json_answer(range_json(whole));
}

Result<HttpResponse> set_keeper(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  const json::value* const paused = members.find("paused");
  if (paused == nullptr || !paused->is_bool()) return bad_body("paused must be true or false");
  TRY(members.finish());
  context.ranges.keeper().set_paused(paused->get_bool());
  return json_answer(json::object{{"paused", paused->get_bool()}});
}

json::array findings_json(const std::vector<RangeFinding>& findings) {
  json::array out;
  for (const RangeFinding& finding : findings) {
    if (out.size() == range_entries_max) break;
    out.push_back(json::object{{"kind", to_string(finding.kind)}, {"text", finding.text}});
  }
  return out;
}

json::object verification_json(const VerifyReport& report) {
  return {{"ranges", report.ranges},
          {"records", report.records},
          {"of_ranges", findings_json(report.of_ranges)},
          {"of_directory", findings_json(report.of_directory)}};
}

Result<HttpResponse> verify_ranges(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const VerifyReport report, context.ranges.verify());
  return json_answer(verification_json(report));
}

Result<HttpResponse> rebuild_ranges(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const EmbeddedRanges::Rebuilt rebuilt, context.ranges.rebuild());
  return json_answer(json::object{{"written", rebuilt.directory.written},
                                  {"removed", rebuilt.directory.removed},
                                  {"ranges_restored", rebuilt.ranges.restored},
                                  {"ranges_made", rebuilt.ranges.made},
                                  {"ranges_removed", rebuilt.ranges.removed}});
}

// --- jobs ---

json::object job_json(const RangeJobStatus& job) {
  json::array findings;
  for (const RangeJobFinding& finding : job.findings)
    findings.push_back(json::object{{"range", range_json(finding.range)}, {"what", finding.what}});
  return {{"id", job.id},
          {"kind", to_string(job.request.kind)},
          {"state", to_string(job.state)},
          {"threads", job.request.threads},
          {"bytes_per_second", job.request.bytes_per_s},
          {"started_at_ms", job.started_ms},
          {"finished_at_ms", job.finished_ms},
          {"ranges_done", job.ranges_done},
          {"ranges_total", job.ranges_total},
          {"bytes_done", job.bytes_done},
          {"bytes_total", job.bytes_total},
          {"keys", job.sum.entries},
          {"checksum", to_hex(job.sum)},
          {"findings", std::move(findings)},
          {"error", job.error}};
}

Result<HttpResponse> get_jobs(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  json::array out;
  for (const RangeJobStatus& job : context.ranges.jobs().list()) out.push_back(job_json(job));
  return json_answer(json::object{{"jobs", std::move(out)}});
}

Result<uint64_t> job_id(const HttpRequest& request) {
  const auto id = parse_decimal(request.captures.at(0));
  if (!id) return bad_query("the id of a job is a number");
  return *id;
}

Result<HttpResponse> get_job(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const uint64_t id, job_id(request));
  TRY_ASSIGN(const RangeJobStatus job, context.ranges.jobs().find(id));
  return json_answer(job_json(job));
}

Result<HttpResponse> get_checksums(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY_ASSIGN(const PageRequest asked, page_request(request));
  TRY_ASSIGN(const uint64_t id, job_id(request));
  TRY_ASSIGN(const auto page, context.ranges.jobs().checked(id, asked.from, asked.limit));
  json::array ranges;
  for (const CheckedRange& checked : page)
    ranges.push_back({{"range", range_json(checked.range)},
                      {"keys", checked.sum.entries},
                      {"bytes", checked.sum.bytes},
                      {"checksum", to_hex(checked.sum)}});
  json::value next = page.size() == asked.limit ? next_page(page.back().range) : nullptr;
  return json_answer(json::object{{"ranges", std::move(ranges)}, {"next", std::move(next)}});
}

Result<HttpResponse> start_job(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  TRY_ASSIGN(const auto kind, members.text("kind"));
  TRY_ASSIGN(const auto threads, members.number("threads"));
  TRY_ASSIGN(const auto bytes_per_s, members.number("bytes_per_second"));
  TRY(members.finish());
  RangeJobRequest job{.kind = RangeJobKind::recount, .bytes_per_s = bytes_per_s.value_or(0)};
  if (kind != "recount" && kind != "check") return bad_body("kind must be recount or check");
  if (kind == "check") job.kind = RangeJobKind::check;
  if (threads.value_or(1) == 0 || threads.value_or(1) > 16)
    return bad_body("threads must be from 1 to 16");
  job.threads = static_cast<unsigned>(threads.value_or(job.threads));
  TRY_ASSIGN(const RangeJobStatus status, context.ranges.jobs().start(job));
  return json_answer(job_json(status), 202);
}

Result<HttpResponse> change_job(const RestContext& context, const HttpRequest& request) {
  TRY(identify_server_admin(context, request));
  TRY(check_query(request, {}));
  TRY_ASSIGN(const uint64_t id, job_id(request));
  TRY_ASSIGN(const json::value body, parse_json(request.body));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  TRY_ASSIGN(const auto action, members.text("action"));
  TRY_ASSIGN(const auto bytes_per_s, members.number("bytes_per_second"));
  TRY(members.finish());
  RangeJobs& jobs = context.ranges.jobs();
  if (action && *action != "pause" && *action != "resume" && *action != "cancel")
    return bad_body("action must be pause, resume or cancel");
  if (bytes_per_s) TRY(jobs.set_limit(id, *bytes_per_s));
  if (action == "cancel") TRY(jobs.cancel(id));
  if (action == "pause" || action == "resume") TRY(jobs.set_paused(id, action == "pause"));
  TRY_ASSIGN(const RangeJobStatus job, jobs.find(id));
  return json_answer(job_json(job));
}

}  // namespace

void add_range_routes(const RestContext& context, std::vector<Route>& routes) {
  using enum HttpMethod;
  const RouteSpec specs[] = {
      {get, "/v1/ranges", get_ranges},
      {get, "/v1/ranges/lookup", lookup_range},
      {get, "/v1/ranges/hot", hot_ranges},
      {get, "/v1/ranges/history", range_history},
      {get, "/v1/ranges/plan", range_plan},
      {post, "/v1/ranges/split", split_range, range_body_bytes_max},
      {post, "/v1/ranges/merge", merge_range, range_body_bytes_max},
      {post, "/v1/ranges/keeper", set_keeper, range_body_bytes_max},
      {post, "/v1/ranges/verify", verify_ranges},
      {post, "/v1/ranges/rebuild", rebuild_ranges},
      {get, "/v1/ranges/jobs", get_jobs},
      {post, "/v1/ranges/jobs", start_job, range_body_bytes_max},
      {get, "/v1/ranges/jobs/{job}", get_job},
      {post, "/v1/ranges/jobs/{job}", change_job, range_body_bytes_max},
      {get, "/v1/ranges/jobs/{job}/checksums", get_checksums},
      {get, "/v1/ranges/{range}", get_range},
  };
  for (const RouteSpec& spec : specs) routes.push_back(make_route(context, spec));
}

}  // namespace trellis
