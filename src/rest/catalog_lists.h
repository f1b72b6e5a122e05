// Lists of what stands in one place, as text that is written while it is read: one page at a time,
// however many there are.
#pragma once

#include <functional>
#include <string_view>

#include "catalog/record_page.h"
#include "rest/catalog_routes.h"

namespace trellis {

// GET of a list. ?limit, ?pageToken (the last name of the page before) and ?prefix; ?details for
// all of each; ?dropped for what can come back.
Result<HttpResponse> list_entities(CatalogRequest& request);
// Likewise, always all of each.
Result<HttpResponse> list_entities_in_full(CatalogRequest& request);
// {"names":["a","b"]}: those of them that there are, and the names of those that are missing.
Result<HttpResponse> get_entities(CatalogRequest& request);

// --- {"code":0,"name":[...]} ---

// Which of ?limit, ?pageToken and ?prefix a list takes: none, all but the prefix, all.
enum class Paging : uint8_t { none, by_count, by_name };
// Refuses those that it does not take: whoever sends one would wait for an end that never comes.
Status check_paging(const CatalogRequest& request, Paging paging);

struct ArrayElements {
  Bytes json;  // each behind a comma
  size_t count = 0;

  // Where another one is written.
  Bytes& add() {
    ++count;
    json += ',';
    return json;
  }
};
// No more than asked for: then where it ends is where the next page of the caller begins.
using ArrayPage = std::function<Result<PageStart>(const CatalogCall& call, const PageRequest& asked,
                                                  ArrayElements& elements)>;
Result<HttpResponse> array_answer(const CatalogRequest& request, std::string_view name,
                                  Paging paging, ArrayPage page);

// {"name","roles":[...],"audit"}: a user or group.
Status append_principal(Bytes& out, Catalog& catalog, Tenant& tenant, const Entity& entity);

}  // namespace trellis
