// Tags and policies on things: /objects/{type}/{fullName}/tags, /tags/{tag}/objects and the same
// of policies.
#include "catalog/labels.h"

#include <fmt/format.h>

#include "catalog/entity_json.h"
#include "json/json_text.h"
#include "rest/catalog_gate.h"
#include "rest/catalog_lists.h"
#include "rest/catalog_routes.h"
#include "rest/request_reading.h"

namespace trellis {
namespace {

// With what it says of the thing that it is on.
void append_label(Bytes& out, const Label& label) {
  append_entity(out, label.entity.ref.type, label.entity.stored);
  out.pop_back();
  out += label.inherited ? ",\"inherited\":true" : ",\"inherited\":false";
  if (!label.values.empty()) {
    out += ",\"assignmentValues\":[";
    for (const std::string& value : label.values) {
      if (out.back() != '[') out += ',';
      append_json_string(out, value);
    }
    out += ']';
  }
  out += '}';
}

Result<std::vector<Label>> visible_labels(const CatalogRequest& request, const EntityPath& object,
                                          Inherited inherited) {
  const CatalogType type = request.route.type;
  TRY_ASSIGN(std::vector<Label> labels,
             labels_of(request.catalog(), request.call(), object, type, inherited));
  std::vector<CatalogRef> refs;
  for (const Label& label : labels) refs.push_back(label.entity.ref);
  TRY_ASSIGN(const std::vector<bool> seen, visible_members(request, type, refs));
  std::vector<Label> visible;
  for (size_t i = 0; i < labels.size(); i++)
    if (seen[i]) visible.push_back(std::move(labels[i]));
  return visible;
}

HttpResponse names_answer(const std::vector<Label>& labels) {
  Bytes members = ",\"names\":[";
  for (const Label& label : labels) {
    if (members.back() != '[') members += ',';
    append_json_string(members, label.entity.name());
  }
  return catalog_answer(members + "]");
}

Result<HttpResponse> list_labels(CatalogRequest& request) {
  TRY(check_paging(request, Paging::none));
  TRY_ASSIGN(const bool details, catalog_flag(request, "details"));
  TRY_ASSIGN(const EntityPath object, object_path(request));
  TRY_ASSIGN(const std::vector<Label> labels, visible_labels(request, object, Inherited::too));
  if (!details) return names_answer(labels);
  Bytes members = fmt::format(",\"{}\":[", catalog_plural(request.route.type));
  for (const Label& label : labels) {
    if (members.back() != '[') members += ',';
    append_label(members, label);
  }
  return catalog_answer(members + "]");
}

Result<HttpResponse> get_label(CatalogRequest& request) {
  const CatalogType type = request.route.type;
  TRY_ASSIGN(const EntityPath object, object_path(request));
  TRY_ASSIGN(const std::vector<Label> labels, visible_labels(request, object, Inherited::too));
  for (const Label& label : labels) {
    if (label.entity.name() != request.names[3]) continue;
    Bytes members = fmt::format(",\"{}\":", catalog_word(type).name);
    append_label(members, label);
    return catalog_answer(members);
  }
  return no_such(type, request.names[3]);
}

// The names of all that it has itself now.
Result<HttpResponse> associate_labels(CatalogRequest& request) {
  const CatalogType type = request.route.type;
  const bool is_tag = type == CatalogType::tag;
  TRY_ASSIGN(const EntityPath object, object_path(request));
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  const bool with_values =
      is_tag && accepted_media_version(request.http.header("Content-Type")) == 2u;
  TRY_ASSIGN(const LabelChanges changes,
             is_tag ? read_tag_changes(body, with_values) : read_policy_changes(body));
  // To see a label is not enough.
  const PrivilegeSet to_apply = privileges(is_tag ? Privilege::apply_tag : Privilege::apply_policy);
  for (const auto* list : {&changes.add, &changes.remove})
    for (const LabelValue& label : *list)
      TRY(require_access(request, {type, {request.names[0], label.name}}, to_apply));
  TRY(change_labels(request.call(), object, type, changes));
  TRY_ASSIGN(const std::vector<Label> labels, visible_labels(request, object, Inherited::left_out));
  return names_answer(labels);
}

Result<HttpResponse> list_labelled(CatalogRequest& request) {
  TRY_ASSIGN(const auto value, query_text(request.http, "value"));
  const auto page = [&catalog = request.catalog(), access = request.access, label = request.path(),
                     value](const CatalogCall& call, const PageRequest& asked,
                            ArrayElements& elements) -> Result<PageStart> {
    std::vector<EntityPath> paths;
    TRY_ASSIGN(PageStart next,
               visit_labelled(catalog, call, label, value, asked,
                              [&](const EntityPath& path) { paths.push_back(path); }));
    for (const EntityPath& path : paths) {
      if (access) {
        TRY_ASSIGN(const bool seen, access->may_load(path));
        if (!seen) continue;
      }
      Bytes& out = elements.add();
      append_object_name(out, path);
      out += '}';
    }
    return next;
  };
  return array_answer(request, "metadataObjects", Paging::by_count, page);
}

// {"enable":true}
Result<HttpResponse> enable_policy(CatalogRequest& request) {
  TRY_ASSIGN(const json::value body, read_catalog_body(request));
  TRY_ASSIGN(RequestFields fields, RequestFields::of(body, "request"));
  TRY_ASSIGN(const bool enable, fields.flag("enable", false));
  TRY(fields.finish());
  AlterOptions options;
  TRY_ASSIGN(options.if_match, read_if_match(request));
  const auto set = [&](Entity& entity) -> Status {
    entity.stored.mutable_policy()->set_disabled(!enable);
    return {};
  };
  TRY(request.catalog().alter(request.call(), request.path(), set, options));
  return catalog_answer();
}

std::vector<CatalogRoute> make_label_routes() {
  using enum HttpMethod;
  using enum CatalogRoute::Under;
  constexpr auto t = CatalogType::tag;
  constexpr auto p = CatalogType::policy;
  constexpr size_t any = catalog_body_bytes_max;
  return {
      {get, object, "/tags", t, "LIST", list_labels},
      {post, object, "/tags", t, "ASSOCIATE", associate_labels, any},
      {get, object, "/tags/{tag}", t, "GET", get_label},
      {get, metalake, "/tags/{tag}/objects", t, "LIST_OBJECTS", list_labelled},
      // As older clients have it.
      {get, metalake, "/tags/{type}/{fullName}", t, "LIST", list_labels},
      {post, metalake, "/tags/{type}/{fullName}", t, "ASSOCIATE", associate_labels, any},
      {get, metalake, "/tags/{type}/{fullName}/{tag}", t, "GET", get_label},

      {get, object, "/policies", p, "LIST", list_labels},
      {post, object, "/policies", p, "ASSOCIATE", associate_labels, any},
      {get, object, "/policies/{policy}", p, "GET", get_label},
      {get, metalake, "/policies/{policy}/objects", p, "LIST_OBJECTS", list_labelled},
      {patch, metalake, "/policies/{policy}", p, "ALTER", enable_policy, any},
  };
}

}  // namespace

std::span<const CatalogRoute> catalog_label_routes() {
  static const std::vector<CatalogRoute> routes = make_label_routes();
  return routes;
}

}  // namespace trellis
