#include "catalog/provider_rules.h"

#include <algorithm>
#include <iterator>

#include "base/function_ref.h"

namespace trellis {
namespace {

struct Provider {
  std::string_view name;
  ProviderRules rules;
};
constexpr Provider providers[] = {
    {"hive", {NamePattern::plain, true, true}},
    {"glue", {NamePattern::plain, true, false}},
    {"jdbc-mysql", {NamePattern::any_letters, false, false}},
    {"jdbc-postgresql", {NamePattern::any_letters, false, false}},
};

bool has_rules(CatalogType type) {
  return type == CatalogType::schema || type == CatalogType::table || type == CatalogType::column;
}

// A text, or each of a list of them.
using NameVisitor = FunctionRef<void(CatalogType type, json::string& name)>;
void visit_texts(CatalogType type, json::object& object, std::string_view member,
                 NameVisitor visit) {
  json::value* const value = object.if_contains(member);
  if (value == nullptr) return;
  if (value->is_string()) visit(type, value->get_string());
  if (!value->is_array()) return;
  for (json::value& each : value->get_array())
    if (each.is_string()) visit(type, each.get_string());
}

void visit_update(CatalogType type, json::object& update, NameVisitor visit) {
  visit_texts(type, update, "newName", visit);
  visit_texts(CatalogType::schema, update, "newSchemaName", visit);
  for (const char* member : {"fieldName", "oldFieldName", "newFieldName"})
    visit_texts(CatalogType::column, update, member, visit);
  for (const char* member : {"position", "newPosition"}) {
    json::value* const position = update.if_contains(member);
    if (position != nullptr && position->is_object())
      visit_texts(CatalogType::column, position->get_object(), "after", visit);
  }
}

// Names in {"name","columns":[{"name"}]} and in {"updates":[...]}, whatever else is wrong there.
void visit_names(CatalogType type, json::value& request, NameVisitor visit) {
  if (!request.is_object() || !has_rules(type)) return;
  json::object& object = request.get_object();
  visit_texts(type, object, "name", visit);
  for (const char* member : {"columns", "updates"}) {
    json::value* const list = object.if_contains(member);
    if (list == nullptr || !list->is_array()) continue;
    for (json::value& each : list->get_array()) {
      if (!each.is_object()) continue;
      if (std::string_view(member) == "columns")
        visit_texts(CatalogType::column, each.get_object(), "name", visit);
      else
        visit_update(type, each.get_object(), visit);
    }
  }
}

void lower(json::string& text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
}

}  // namespace

ProviderRules provider_rules(std::string_view provider) {
  const auto* const found = std::ranges::find(providers, provider, &Provider::name);
  return found == std::end(providers) ? ProviderRules() : found->rules;
}

bool is_odd_name(std::string_view name) {
  return std::ranges::any_of(name, [](char c) {
    return (c >= 'A' && c <= 'Z') || c == '$' || static_cast<unsigned char>(c) >= 0x80;
  });
}

bool has_odd_names(const EntityPath& path) {
  for (size_t i = 2; i < path.names.size(); ++i)
    if (is_odd_name(path.names[i]) && has_rules(catalog_type_at(path.type, i + 1))) return true;
  return false;
}

bool has_odd_names(CatalogType type, json::value& request) {
  bool is_odd = false;
  visit_names(type, request, [&](CatalogType, const json::string& name) {
    is_odd = is_odd || is_odd_name({name.data(), name.size()});
  });
  return is_odd;
}

void apply_rules(const ProviderRules& rules, EntityPath& path) {
  if (!rules.lowers) return;
  for (size_t i = 2; i < path.names.size(); ++i) {
    const CatalogType type = catalog_type_at(path.type, i + 1);
    if (has_rules(type) && (type != CatalogType::column || rules.lowers_columns))
      path.names[i] = ascii_lowered(path.names[i]);
  }
}

void apply_rules(const ProviderRules& rules, CatalogType type, json::value& request) {
  if (!rules.lowers) return;
  visit_names(type, request, [&](CatalogType named, json::string& name) {
    if (named != CatalogType::column || rules.lowers_columns) lower(name);
  });
}

}  // namespace trellis
