// What happened in a metalake, and where something is.
#include <fmt/format.h>

#include <algorithm>

#include "catalog/entity_json.h"
#include "json/json_text.h"
#include "rest/answers.h"
#include "rest/catalog_routes.h"
#include "rest/request_reading.h"
#include "rest/sealed_text.h"

namespace trellis {
namespace {

constexpr size_t changes_limit_default = 1'000;
constexpr size_t changes_limit_max = 10'000;
constexpr size_t search_limit_default = 100;
constexpr size_t search_limit_max = 1'000;

// As others name it: "hive.sales.orders", without the metalake but of that itself.
template <class Names>
void append_full_name(Bytes& out, const Names& names) {
  const auto first = names.begin() + (names.size() > 1 ? 1 : 0);
  append_json_string(out, fmt::format("{}", fmt::join(first, names.end(), ".")));
}

void append_change(Bytes& out, const Catalog::NumberedChange& numbered) {
  const stored::CatalogChange& change = numbered.change;
  out += fmt::format("{{\"number\":{},\"time\":\"{}\",\"action\":", numbered.number,
                     instant_text(change.time_ms()));
  append_json_string(out, change.action());
  out += ",\"user\":";
  append_json_string(out, change.user());
  out += ",\"type\":";
  append_json_string(out, change.type());
  out += ",\"fullName\":";
  append_full_name(out, change.names());
  if (change.names_before_size() > 0) {
    out += ",\"fullNameBefore\":";
    append_full_name(out, change.names_before());
  }
  out += fmt::format(",\"version\":{}}}", change.version());
}

// Those behind ?since. `last` is what to ask for next; it stays if there are none. `newest` is the
// number of the last one that there was: who has all of that needs only what follows. Whoever sends
// the `metalakeId` of an answer notices another metalake that has the name by now.
Result<HttpResponse> get_changes(CatalogRequest& request) {
  TRY_ASSIGN(const auto since, query_number(request.http, "since"));
  TRY_ASSIGN(const auto id, query_text(request.http, "metalakeId"));
  TRY_ASSIGN(const size_t limit,
             query_limit(request.http, changes_limit_default, changes_limit_max));
  const std::string& metalake = request.names[0];
  TRY_ASSIGN(const Catalog::LastChange newest,
             request.catalog().last_change(request.call(), metalake));
  if (id && *id != to_string(newest.metalake)) {
    return Error{Code::not_found,
                 fmt::format("{} is another metalake by now: load what you need anew, then go on "
                             "with since={}",
                             metalake, newest.number),
                 "compacted"};
  }
  TRY_ASSIGN(const auto changes, request.catalog().changes(request.call(), metalake, since, limit));
  Bytes members = ",\"changes\":[";
  for (const auto& change : changes) {
    if (members.back() == '}') members += ',';
    append_change(members, change);
  }
  const uint64_t last = changes.empty() ? since.value_or(newest.number) : changes.back().number;
  members += fmt::format("],\"last\":{},\"newest\":{},\"metalakeId\":\"{}\"", last,
                         std::max(last, newest.number), to_string(newest.metalake));
  return catalog_answer(members);
}

Result<std::optional<CatalogType>> query_type(const CatalogRequest& request) {
  TRY_ASSIGN(const auto text, query_text(request.http, "type"));
  if (!text.has_value()) return std::optional<CatalogType>();
  const auto type = catalog_type_named(*text);
  if (!type.has_value()) return bad_query(fmt::format("there is no type {}", quote(*text)));
  return type;
}

Result<HttpResponse> search_metalake(CatalogRequest& request) {
  CatalogSearch search;
  TRY_ASSIGN(auto name, query_text(request.http, "name"));
  TRY_ASSIGN(auto column, query_text(request.http, "column"));
  TRY_ASSIGN(auto tag, query_text(request.http, "tag"));
  TRY_ASSIGN(auto token, query_text(request.http, "pageToken"));
  TRY_ASSIGN(search.type, query_type(request));
  TRY_ASSIGN(search.limit, query_limit(request.http, search_limit_default, search_limit_max));
  search.name = std::move(name).value_or("");
  search.column = std::move(column).value_or("");
  search.tag = std::move(tag).value_or("");
  search.page_token = std::move(token).value_or("");
  if (request.access.has_value()) {
    if (!search.tag.empty()) {  // what has a tag tells of the tag
      TRY_ASSIGN(const bool sees_tag,
                 request.access->may_load({CatalogType::tag, {request.names[0], search.tag}}));
      if (!sees_tag) return no_such(CatalogType::tag, search.tag);
    }
    search.sees = [&](const EntityPath& path) { return request.access->may_load(path); };
    if (!search.page_token.empty()) {
      auto opened = open_sealed(search.page_token);
      if (!opened) return illegal_argument("the page token is none that this server gave");
      search.page_token = std::move(*opened);
    }
  }
  TRY_ASSIGN(const CatalogFoundPage page,
             request.catalog().search(request.call(), request.names[0], search));
  Bytes members = ",\"metadataObjects\":[";
  for (const CatalogFound& found : page.found) {
    if (members.back() == '}') members += ',';
    members += "{\"fullName\":";
    append_full_name(members, found.path.names);
    members += fmt::format(",\"type\":\"{}\"}}", catalog_word(found.path.type).name);
  }
  members += ']';
  if (!page.next_page_token.empty()) {
    std::string next = page.next_page_token;
    if (request.access.has_value()) {  // it may be at a name that the caller must not learn
      TRY_ASSIGN(next, seal_text(next));
    }
    members += ",\"nextPageToken\":";
    append_json_string(members, next);
  }
  return catalog_answer(members);
}

constexpr CatalogRoute feed_routes[] = {
    {HttpMethod::get, CatalogRoute::Under::metalake, "/changes", CatalogType::metalake, "LIST",
     get_changes},
    {HttpMethod::get, CatalogRoute::Under::metalake, "/search", CatalogType::metalake, "SEARCH",
     search_metalake},
};

}  // namespace

std::span<const CatalogRoute> catalog_feed_routes() { return feed_routes; }

}  // namespace trellis
