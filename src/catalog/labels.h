// Tags and policies on things. They hold for all below, too: what is nearer wins.
//
// Errors: illegal_argument, tag_associated, policy_associated, no_such_metadata_object, those of
// catalog.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "catalog/catalog.h"
#include "catalog/record_page.h"
#include "catalog/request_fields.h"

namespace trellis {

// A tag may have several values on one thing, or none.
struct LabelValue {
  std::string name;
  std::optional<std::string> value = {};
  auto operator<=>(const LabelValue&) const = default;
};

struct LabelChanges {
  std::vector<LabelValue> add;
  std::vector<LabelValue> remove;
  // Pairs of names and values: what is there already may be added, and a name without a value
  // removes no values.
  bool with_values = false;
};

// {"tagsToAdd":["a"],"tagsToRemove":["b"]}; with values, as version 2 has it,
// {"tagsToAdd":[{"name":"a","value":"1"}],...}.
Result<LabelChanges> read_tag_changes(const json::value& request, bool with_values);
// {"policiesToAdd":["a"],"policiesToRemove":["b"]}
Result<LabelChanges> read_policy_changes(const json::value& request);

// `type`: tag or policy. Those that do not exist are passed over, as Gravitino does.
Status change_labels(const CatalogCall& call, const EntityPath& object, CatalogType type,
                     const LabelChanges& changes);

struct Label {
  Entity entity;
  std::vector<std::string> values;
  bool inherited = false;
};
enum class Inherited : bool { left_out, too };
// Its own ones first.
Result<std::vector<Label>> labels_of(Catalog& catalog, const CatalogCall& call,
                                     const EntityPath& object, CatalogType type,
                                     Inherited inherited);

// A page of what has the label itself; `value`: that value of it.
Result<PageStart> visit_labelled(Catalog& catalog, const CatalogCall& call, const EntityPath& label,
                                 const std::optional<std::string>& value, const PageRequest& page,
                                 FunctionRef<void(const EntityPath&)> visit);

}  // namespace trellis
