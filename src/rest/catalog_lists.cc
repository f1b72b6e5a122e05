#include "rest/catalog_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "catalog/entity_json.h"
#include "catalog/roles.h"
#include "json/json_body.h"
#include "json/json_text.h"
#include "rest/answers.h"
#include "rest/catalog_gate.h"
#include "rest/request_reading.h"

namespace trellis {
namespace {

// Of names, which are small; what is loaded in full may have 4 MiB each.
constexpr size_t page_names = 10'000;
constexpr size_t page_entities = 16;
// Looked at, where the caller may not see all, at least; of names as many as are asked for.
constexpr size_t looks_at_once = 256;
static_assert(page_names <= catalog_list_entries_max && page_entities <= catalog_load_many_max);

// Of ?limit; without one there is none.
constexpr size_t catalog_list_limit_max = INT32_MAX;
Result<std::optional<size_t>> read_list_limit(const CatalogRequest& request) {
  TRY_ASSIGN(const size_t limit, query_limit(request.http, SIZE_MAX, catalog_list_limit_max));
  return limit == SIZE_MAX ? std::nullopt : std::optional(limit);
}

struct ListRequest {
  CatalogList list;
  bool has_limit = false;
  bool in_full = false;
};

Result<ListRequest> read_list_request(const CatalogRequest& request, bool in_full) {
  ListRequest asked;
  TRY_ASSIGN(const auto limit, read_list_limit(request));
  TRY_ASSIGN(auto token, query_text(request.http, "pageToken"));
  TRY_ASSIGN(auto prefix, query_text(request.http, "prefix"));
  TRY_ASSIGN(const bool details, catalog_flag(request, "details"));
  asked.in_full = in_full || details;
  asked.has_limit = limit.has_value();
  asked.list.limit = limit.value_or(SIZE_MAX);
  asked.list.after = std::move(token).value_or("");
  asked.list.prefix = std::move(prefix).value_or("");
  return asked;
}

// An answer that is written a page at a time.
class PagedBody : public BodySource {
 public:
  // Whether there is more than the first page.
  bool has_more() const { return !is_done_; }
  Bytes take() { return std::exchange(next_, {}); }

  Result<Chunk> next() final {
    Chunk chunk;
    chunk.bytes = take();
    if (chunk.bytes.empty()) {
      TRY(check_still_valid(context_, user_.authorization));
      TRY_ASSIGN(is_done_, append_page(chunk.bytes));
    }
    chunk.then = is_done_ ? Chunk::Then::end : Chunk::Then::more;
    return chunk;
  }

 protected:
  explicit PagedBody(const CatalogRequest& request)
      : context_(request.context), user_(request.user) {}

  // The first page.
  Status open(Bytes head) {
    next_ = std::move(head);
    TRY_ASSIGN(is_done_, append_page(next_));
    return {};
  }
  // Whether it was the last one, with the end of the answer.
  virtual Result<bool> append_page(Bytes& out) = 0;
  CatalogCall call() const { return {*user_.data.tenant, user_.data.caller, user_.user}; }

  const RestContext& context_;
  const UserCall user_;

 private:
  Bytes next_;
  bool is_done_ = false;
};

void append_next_token(Bytes& out, std::string_view token) {
  out += ",\"nextPageToken\":";
  append_json_string(out, token);
}

// {"code":0,"identifiers":[{"namespace":["lake","hive","sales"],"name":"orders"}, ...]} or
// {"code":0,"tables":[{...}, ...]}, and "nextPageToken" if there was a limit and there is more.
class EntityList final : public PagedBody {
 public:
  EntityList(const CatalogRequest& request, ListRequest asked)
      : PagedBody(request),
        type_(request.route.type),
        parent_(request.parent_path()),
        access_(request.access),
        asked_(std::move(asked)) {
    if (is_member()) return;
    // The same for all of them, so it is escaped once.
    before_name_ = "{\"namespace\":[";
    for (const std::string& name : parent_.names) {
      if (before_name_.back() == '"') before_name_ += ',';
      append_json_string(before_name_, name);
    }
    before_name_ += "],\"name\":";
    behind_name_ = "}";
  }

  Status begin() {
    if (access_.has_value()) {
      TRY_ASSIGN(ChildFilter filter, ChildFilter::of(*access_, parent_, type_));
      if (!filter.keeps_all()) filter_.emplace(std::move(filter));
    }
    return open(fmt::format("{{\"code\":0,\"{}\":[", asked_.in_full ? catalog_plural(type_)
                                                     : is_member()  ? "names"
                                                                    : "identifiers"));
  }

 private:
  Result<bool> append_page(Bytes& out) override {
    TRY_ASSIGN(const bool more, is_filtered() ? append_visible(out) : append_all(out));
    if (more && asked_.list.limit > 0) return false;
    out += ']';
    if (more && asked_.has_limit) append_next_token(out, last_);
    out += '}';
    return true;
  }

  // Tags, users and the like, of which there are only names.
  bool is_member() const { return is_member_of_metalake(type_); }
  bool is_filtered() const {
    const bool of_metalakes = type_ == CatalogType::metalake;
    return filter_.has_value() || (of_metalakes && context_.options.catalog_authorization);
  }
  Result<std::vector<bool>> keep(std::span<const CatalogRef> refs) const {
    if (filter_.has_value()) return filter_->keep(refs);
    if (!is_filtered()) return std::vector<bool>(refs.size(), true);
    return metalakes_with_user(*user_.data.tenant, user_.user, refs);
  }

  void append_name(Bytes& out, std::string_view name) {
    if (std::exchange(has_any_, true)) out += ',';
    out += before_name_;
    append_json_string(out, name);
    out += behind_name_;
  }

  // --- pages: whether there is more ---

  Result<bool> append_all(Bytes& out) {
    CatalogList page = asked_.list;
    page.limit = std::min(page.limit, asked_.in_full ? page_entities : page_names);
    std::vector<std::string> names;
    TRY_ASSIGN(const CatalogListPage got,
               context_.catalog.list(call(), parent_, type_, page,
                                     [&](std::string_view name, const NamedRef&) {
                                       if (asked_.in_full)
                                         names.emplace_back(name);
                                       else
                                         append_name(out, name);
                                       last_ = name;
                                       return Visit::go_on;
                                     }));
    if (asked_.in_full) TRY(append_entities(out, names));
    asked_.list.after = last_;
    asked_.list.limit -= std::min(asked_.list.limit, got.entries);
    return got.more;
  }

  // Of those that the caller sees. Nothing tells of others, so the limit is one of what is seen,
  // and there is more only if another one is.
  Result<bool> append_visible(Bytes& out) {
    std::vector<std::string> names;
    TRY_ASSIGN(const bool more, read_visible(names));
    const size_t wanted = std::min(asked_.list.limit, asked_.in_full ? page_entities : page_names);
    const bool is_cut = names.size() > wanted;
    if (is_cut) names.resize(wanted);
    if (!names.empty()) last_ = names.back();
    if (is_cut) asked_.list.after = last_;  // the others are looked at once more
    asked_.list.limit -= names.size();
    if (asked_.in_full) {
      TRY(append_entities(out, names));
    } else {
      for (const std::string& name : names) append_name(out, name);
    }
    if (asked_.list.limit > 0 || is_cut || !more) return is_cut || more;
    return has_another();
  }

  // Of one portion; whether others follow it.
  Result<bool> read_visible(std::vector<std::string>& names) {
    CatalogList page = asked_.list;
    page.limit = asked_.in_full ? looks_at_once : std::clamp(page.limit, looks_at_once, page_names);
    std::vector<std::string> all;
    std::vector<CatalogRef> refs;
    TRY_ASSIGN(const CatalogListPage got,
               context_.catalog.list(call(), parent_, type_, page,
                                     [&](std::string_view name, const NamedRef& named) {
                                       all.emplace_back(name);
                                       refs.push_back(named.ref);
                                       return Visit::go_on;
                                     }));
    if (all.empty()) return false;
    asked_.list.after = all.back();
    TRY_ASSIGN(const std::vector<bool> kept, keep(refs));
    for (size_t i = 0; i < all.size(); i++)
      if (kept[i]) names.push_back(std::move(all[i]));
    return got.more;
  }

  Result<bool> has_another() {
    std::vector<std::string> names;
    bool more = true;
    while (more && names.empty()) {
      TRY_ASSIGN(more, read_visible(names));
    }
    return !names.empty();
  }

  Status append_entities(Bytes& out, const std::vector<std::string>& names) {
    if (names.empty()) return {};
    TRY_ASSIGN(auto entities, context_.catalog.load_many(call(), parent_, type_, names));
    for (auto& entity : entities) {
      if (!entity.has_value()) continue;  // gone since
      if (type_ == CatalogType::catalog) TRY(hide_secrets(access_, *entity));
      if (std::exchange(has_any_, true)) out += ',';
      if (type_ == CatalogType::user || type_ == CatalogType::group)
        TRY(append_principal(out, context_.catalog, *user_.data.tenant, *entity));
      else
        append_entity(out, type_, entity->stored);
    }
    return {};
  }

  const CatalogType type_;
  const EntityPath parent_;
  const std::optional<CatalogAccess> access_;
  std::optional<ChildFilter> filter_;  // absent: all are seen
  ListRequest asked_;                  // what is not looked at or written yet
  Bytes before_name_;
  Bytes behind_name_;
  std::string last_;  // that was written
  bool has_any_ = false;
};

// {"code":0,"partitions":[...]} and likewise "nextPageToken": where the next page begins, in hex.
class PagedArray final : public PagedBody {
 public:
  PagedArray(const CatalogRequest& request, ArrayPage page)
      : PagedBody(request), page_(std::move(page)) {}

  Status begin(const CatalogRequest& request, std::string_view name) {
    TRY_ASSIGN(limit_, read_list_limit(request));
    TRY_ASSIGN(const auto token, query_text(request.http, "pageToken"));
    TRY_ASSIGN(auto prefix, query_text(request.http, "prefix"));
    asked_.prefix = std::move(prefix).value_or("");
    if (token) {
      auto from = from_hex(*token);
      if (!from || from->size() > key_bytes_max)
        return bad_query("the page token is none that this list gave");
      asked_.from = std::move(*from);
    }
    return open(fmt::format("{{\"code\":0,\"{}\":[", name));
  }

 private:
  Result<bool> append_page(Bytes& out) override {
    asked_.entries_max = std::min(limit_.value_or(SIZE_MAX), record_page_entries);
    ArrayElements elements;
    TRY_ASSIGN(asked_.from, page_(call(), asked_, elements));
    const bool is_first = !elements.json.empty() && !std::exchange(has_any_, true);
    out += ByteView(elements.json).substr(is_first ? 1 : 0);
    if (limit_) *limit_ -= elements.count;
    const bool is_full = limit_ == size_t{0};
    if (asked_.from && !is_full) return false;
    out += ']';
    TRY_ASSIGN(const bool more, has_another());
    if (more) append_next_token(out, to_hex(*asked_.from));
    out += '}';
    return true;
  }

  // That the caller sees.
  Result<bool> has_another() const {
    PageRequest rest = asked_;
    rest.entries_max = 1;
    ArrayElements elements;
    while (rest.from && elements.count == 0) {
      TRY_ASSIGN(rest.from, page_(call(), rest, elements));
      rest.entries_max = looks_at_once;
    }
    return elements.count > 0;
  }

  const ArrayPage page_;
  PageRequest asked_;            // what is not read yet
  std::optional<size_t> limit_;  // how many more
  bool has_any_ = false;
};

// At once if it is short.
template <class List>
HttpResponse streamed(std::unique_ptr<List> list) {
  if (!list->has_more()) return text_answer(list->take());
  HttpResponse response;
  response.content_type = json_type;
  response.stream = std::move(list);
  return response;
}

Result<HttpResponse> list_dropped(const CatalogRequest& request) {
  const auto page = [&catalog = request.catalog(), parent = request.parent_path(),
                     type = request.route.type](const CatalogCall& call, const PageRequest& asked,
                                                ArrayElements& elements) {
    return catalog.list_dropped(call, parent, type, asked, [&](const DroppedEntity& entity) {
      Bytes& out = elements.add();
      out += "{\"name\":";
      append_json_string(out, entity.name);
      out += ",\"dropper\":";
      append_json_string(out, entity.by);
      out += fmt::format(",\"dropTime\":\"{}\"}}", instant_text(entity.dropped_ms));
    });
  };
  return array_answer(request, "dropped", Paging::by_name, page);
}

// What the caller does not see is missing.
Status leave_out_hidden(const CatalogRequest& request,
                        std::vector<std::optional<Entity>>& entities) {
  if (!request.access.has_value()) return {};
  TRY_ASSIGN(const ChildFilter filter,
             ChildFilter::of(*request.access, request.parent_path(), request.route.type));
  std::vector<CatalogRef> refs;
  for (const auto& entity : entities) refs.push_back(entity ? entity->ref : CatalogRef());
  TRY_ASSIGN(const std::vector<bool> kept, filter.keep(refs));
  for (size_t i = 0; i < entities.size(); ++i)
    if (!kept[i]) entities[i].reset();
  return {};
}

// Gravitino has schemas in schemas, of some providers.
Status refuse_parent_schema(const CatalogRequest& request) {
  if (request.route.type != CatalogType::schema) return {};
  TRY_ASSIGN(const auto parent, query_text(request.http, "parentSchema"));
  if (!parent || is_blank(*parent)) return {};
  return bad_query(fmt::format("parentSchema is {}: no schema has others in it", quote(*parent)));
}

Result<HttpResponse> answer_list(CatalogRequest& request, bool in_full) {
  TRY(refuse_parent_schema(request));
  TRY_ASSIGN(const bool of_dropped, catalog_flag(request, "dropped"));
  if (of_dropped) return list_dropped(request);
  TRY_ASSIGN(ListRequest asked, read_list_request(request, in_full));
  auto list = std::make_unique<EntityList>(request, std::move(asked));
  TRY(list->begin());
  return streamed(std::move(list));
}

}  // namespace

Status check_paging(const CatalogRequest& request, Paging paging) {
  for (const std::string_view name : {"limit", "pageToken", "prefix"}) {
    if (paging == Paging::by_name || (paging == Paging::by_count && name != "prefix")) continue;
    TRY_ASSIGN(const auto given, query_text(request.http, name));
    if (given) return bad_query(fmt::format("this list takes no {}", name));
  }
  return {};
}

Result<HttpResponse> array_answer(const CatalogRequest& request, std::string_view name,
                                  Paging paging, ArrayPage page) {
  TRY(check_paging(request, paging));
  auto array = std::make_unique<PagedArray>(request, std::move(page));
  TRY(array->begin(request, name));
  return streamed(std::move(array));
}

Status append_principal(Bytes& out, Catalog& catalog, Tenant& tenant, const Entity& entity) {
  TRY_ASSIGN(const std::vector<std::string> roles,
             role_names(catalog, tenant, entity.above.front(), entity.ref));
  out += "{\"name\":";
  append_json_string(out, entity.name());
  out += ",\"roles\":[";
  for (const std::string& role : roles) {
    if (out.back() != '[') out += ',';
    append_json_string(out, role);
  }
  out += "]";
  const stored::CatalogUser& user = entity.stored.user();
  if (!user.external_id().empty()) {
    out += ",\"externalId\":";
    append_json_string(out, user.external_id());
  }
  if (user.disabled()) out += ",\"enabled\":false";
  append_audit(out, entity.stored.audit());
  out += '}';
  return {};
}

Result<HttpResponse> list_entities(CatalogRequest& request) { return answer_list(request, false); }
Result<HttpResponse> list_entities_in_full(CatalogRequest& request) {
  return answer_list(request, true);
}

Result<HttpResponse> get_entities(CatalogRequest& request) {
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(JsonMembers members, JsonMembers::of(body, "the body"));
  const json::value* const given = members.find("names");
  TRY(members.finish());
  const json::array* const array = given == nullptr ? nullptr : given->if_array();
  if (array == nullptr || array->size() > catalog_load_many_max)
    return bad_body(fmt::format("it needs names, an array of at most {}", catalog_load_many_max));
  std::vector<std::string> asked;
  std::vector<std::string> names;  // as the provider has them
  for (const json::value& name : *array) {
    if (!name.is_string()) return bad_body("names are texts");
    asked.emplace_back(name.as_string());
    EntityPath path = request.parent_path();
    path.type = request.route.type;
    path.names.push_back(asked.back());
    TRY(apply_provider(request, path));
    names.push_back(std::move(path.names.back()));
  }
  TRY_ASSIGN(auto entities, request.catalog().load_many(request.call(), request.parent_path(),
                                                        request.route.type, names));
  TRY(leave_out_hidden(request, entities));
  Bytes out = fmt::format("{{\"code\":0,\"{}\":[", catalog_plural(request.route.type));
  Bytes missing;
  bool is_first = true;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!entities[i].has_value()) {
      if (!missing.empty()) missing += ',';
      append_json_string(missing, asked[i]);
      continue;
    }
    if (!std::exchange(is_first, false)) out += ',';
    append_entity(out, request.route.type, entities[i]->stored);
  }
  out += "],\"missing\":[" + missing + "]}";
  return text_answer(std::move(out));
}

}  // namespace trellis
