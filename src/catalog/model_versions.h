// Versions of models and the aliases that name them.
//
//   mv_ model _ version   protobuf CatalogModelVersion, with its aliases
//   al_ model _ alias     | 01 | version u64 |     an alias names one version of its model
//
// Versions count from 0 and are never used twice; the model's record holds the next.
//
//   TRY_ASSIGN(stored::CatalogModelVersion draft, read_model_version(body));
//   TRY_ASSIGN(uint32_t version, link_model_version(call, model, draft));
//
// Errors: no_such_model_version, model_version_aliases_exist, those of catalog.h.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "catalog/change.h"
#include "catalog/record_page.h"
#include "catalog/request_fields.h"

namespace trellis {

// By number, or by an alias.
struct ModelVersionName {
  std::optional<uint32_t> version = {};
  std::string alias = {};
};

// {"uri" | "uris", "aliases", "comment", "properties"}
Result<stored::CatalogModelVersion> read_model_version(const json::value& request);

Result<uint32_t> link_model_version(const CatalogCall& call, const EntityPath& model,
                                    stored::CatalogModelVersion draft);
Result<stored::CatalogModelVersion> load_model_version(const CatalogCall& call,
                                                       const EntityPath& model,
                                                       const ModelVersionName& name);
// In the order of their numbers.
using ModelVersionVisitor = FunctionRef<void(const stored::CatalogModelVersion&)>;
Result<PageStart> list_model_versions(const CatalogCall& call, const EntityPath& model,
                                      const PageRequest& page, ModelVersionVisitor visit);
// False: it is not there, nor perhaps the model. Its aliases go with it.
Result<bool> delete_model_version(const CatalogCall& call, const EntityPath& model,
                                  const ModelVersionName& name);

// {"updates":[...]}: updateComment, setProperty, removeProperty, updateUri, addUri, removeUri,
// updateAliases. All or nothing, in their order.
class ModelVersionUpdates {
 public:
  static Result<ModelVersionUpdates> read(const json::value& request);
  Status apply(stored::CatalogModelVersion& version) const;

  using Step = std::function<Status(stored::CatalogModelVersion&)>;

 private:
  std::vector<Step> steps_;
};
Result<stored::CatalogModelVersion> alter_model_version(const CatalogCall& call,
                                                        const EntityPath& model,
                                                        const ModelVersionName& name,
                                                        const ModelVersionUpdates& updates);

// The URI of that name; empty: the only one, or the one that the property "default-uri-name" of the
// version or else of its model names. no_such_uri_name.
Result<std::string> model_version_uri(const stored::CatalogModelVersion& version,
                                      const stored::CatalogEntity& model, const std::string& name);

}  // namespace trellis
