// {"updates":[{"@type":"rename","newName":"x"},...]}: read and checked once, applied as often as a
// transaction needs, all or nothing.
//
//   TRY_ASSIGN(const CatalogUpdates updates, CatalogUpdates::read(CatalogType::table, body));
//   TRY(catalog.alter(call, path, [&](Entity& entity) { return updates.apply(entity.stored); },
//                     {.new_schema = updates.new_schema()}));
//
//   metalake, catalog,  rename{newName} updateComment{newComment?} setProperty{property,value}
//     tag, model          removeProperty{property}
//   schema              rename setProperty removeProperty
//   topic               updateComment setProperty removeProperty
//   fileset             as metalake, and removeComment
//   table               as metalake, rename{newName,newSchemaName?}, addColumn{fieldName,type,...}
//                         renameColumn deleteColumn updateColumn{Type,Comment,Position,Nullability,
//                         DefaultValue,AutoIncrement} addTableIndex deleteTableIndex
//   view                rename setProperty removeProperty replaceView
//   function            updateComment {add,remove}Definition {add,update,remove}Impl
//   policy              rename updateComment updateContent{policyType,newContent}
//
// In their order; of a table, those of columns behind all others, and what comes of them all has to
// fit together (table_definition.h). Errors: illegal_argument, illegal_name.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "catalog.pb.h"
#include "catalog/changing_entity.h"
#include "catalog/request_fields.h"
#include "codec/catalog_ref.h"

namespace trellis {

class CatalogUpdates {
 public:
  static Result<CatalogUpdates> read(CatalogType type, const json::value& request,
                                     NamePattern pattern = NamePattern::plain);

  // Of a table that moves to another schema: what the last rename says.
  const std::optional<std::string>& new_schema() const { return new_schema_; }
  // As it was if there is an error.
  Status apply(stored::CatalogEntity& entity) const;

  using Step = std::function<Status(ChangingEntity&)>;

 private:
  std::vector<Step> steps_;
  bool of_table_ = false;  // columns or indexes are among what they change
  std::optional<std::string> new_schema_;
};

// The elements of "updates", catalog_updates_max at most. They live as long as `request`.
Result<std::vector<const json::value*>> read_update_list(const json::value& request);
// "@type" of one.
Result<std::string> update_kind(const json::value& update);

}  // namespace trellis
