// An entity while updates change it: what is stored as text is read once and written once, and
// columns are found by their names, however many updates there are.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "catalog.pb.h"
#include "catalog/function_definition.h"
#include "json/json_body.h"

namespace trellis {

// The columns of a table. Of two with one name the first is meant.
class TableColumns {
 public:
  using Column = stored::CatalogColumn;
  explicit TableColumns(stored::CatalogTable& table);

  int size() const { return table_.columns_size(); }
  Column* find(std::string_view name) const;  // null: there is none
  int index_of(const Column& column) const;
  // REQUIRES: there is none of its name. It gets a new id.
  Status add(const Column& column, int index);
  void rename(Column& column, std::string_view name);
  void move(int from, int to);
  void remove(const Column& column);

 private:
  stored::CatalogTable& table_;
  std::unordered_map<std::string_view, Column*> by_name_;  // views of the columns' own names
};

class ChangingEntity {
 public:
  explicit ChangingEntity(const stored::CatalogEntity& entity) : entity_(entity) {}
  ChangingEntity(const ChangingEntity&) = delete;
  ChangingEntity& operator=(const ChangingEntity&) = delete;

  stored::CatalogEntity& stored() { return entity_; }
  TableColumns& columns();  // REQUIRES of both: a table
  Result<json::array*> indexes();
  Result<FunctionDefinitions*> definitions();  // REQUIRES: a function

  // With all that was changed. REQUIRES: called once, as the last.
  stored::CatalogEntity finish();

 private:
  stored::CatalogEntity entity_;
  std::optional<TableColumns> columns_;
  std::optional<json::array> indexes_;
  std::optional<FunctionDefinitions> definitions_;
};

}  // namespace trellis
