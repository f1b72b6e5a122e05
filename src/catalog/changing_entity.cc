#include "catalog/changing_entity.h"

#include <algorithm>

#include "base/assert.h"
#include "catalog/drafts.h"
#include "catalog/request_fields.h"

namespace trellis {

TableColumns::TableColumns(stored::CatalogTable& table) : table_(table) {
  for (Column& column : *table.mutable_columns()) by_name_.try_emplace(column.name(), &column);
}

TableColumns::Column* TableColumns::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

int TableColumns::index_of(const Column& column) const {
  int index = 0;
  while (&table_.columns(index) != &column) ++index;
  return index;
}

Status TableColumns::add(const Column& column, int index) {
  TRY(check_column_count(static_cast<size_t>(size()) + 1));
  Column& added = *table_.add_columns();
  added = column;
  const uint64_t id = std::max<uint64_t>(table_.next_column_id(), 1);
  added.set_id(id);
  table_.set_next_column_id(id + 1);
  ASSERT(by_name_.try_emplace(added.name(), &added).second);
  move(size() - 1, index);
  return {};
}

void TableColumns::rename(Column& column, std::string_view name) {
  by_name_.erase(column.name());
  column.set_name(std::string(name));
  by_name_.try_emplace(column.name(), &column);
}

void TableColumns::move(int from, int to) {
  auto& columns = *table_.mutable_columns();
  for (; from < to; ++from) columns.SwapElements(from, from + 1);
  for (; from > to; --from) columns.SwapElements(from, from - 1);
}

void TableColumns::remove(const Column& column) {
  by_name_.erase(column.name());
  table_.mutable_columns()->DeleteSubrange(index_of(column), 1);
}

TableColumns& ChangingEntity::columns() {
  if (!columns_) columns_.emplace(*entity_.mutable_table());
  return *columns_;
}

Result<json::array*> ChangingEntity::indexes() {
  if (!indexes_) {
    const std::string& text = entity_.table().indexes_json();
    json::value parsed = json::array();
    if (!text.empty()) {
      TRY_ASSIGN(parsed, stored_json(text));
    }
    indexes_.emplace(std::move(parsed.as_array()));
  }
  return &*indexes_;
}

Result<FunctionDefinitions*> ChangingEntity::definitions() {
  if (!definitions_) {
    TRY_ASSIGN(json::value parsed, stored_json(entity_.function().definitions_json()));
    definitions_.emplace(std::move(parsed.as_array()));
  }
  return &*definitions_;
}

stored::CatalogEntity ChangingEntity::finish() {
  if (indexes_) {
    entity_.mutable_table()->set_indexes_json(indexes_->empty() ? "" : json_text(*indexes_));
  }
  if (definitions_) {
    entity_.mutable_function()->set_definitions_json(json_text(definitions_->all()));
  }
  return std::move(entity_);
}

}  // namespace trellis
