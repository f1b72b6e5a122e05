#include "catalog/table_updates.h"

#include <fmt/format.h>

#include <algorithm>

#include "catalog/catalog_error.h"
#include "catalog/data_type.h"
#include "catalog/drafts.h"
#include "catalog/entity.h"
#include "catalog/name_rules.h"
#include "catalog/table_parts.h"

namespace trellis {
namespace {

using stored::CatalogColumn;
using TableUpdate = CatalogUpdates::Step;

// A nested field is called by all its names: "a.b". No column is called so that addColumn made.
Result<std::string> read_field_name(RequestFields& fields, std::string_view name) {
  TRY_ASSIGN(const std::vector<std::string> parts, fields.text_list(name));
  if (parts.empty() || std::ranges::any_of(parts, is_blank)) {
    return illegal_argument(fmt::format("\"{}\" field is required and cannot be empty", name));
  }
  return fmt::format("{}", fmt::join(parts, "."));
}

struct Position {
  enum class Kind { first, after, by_default } kind = Kind::by_default;
  std::string column = {};
};

Result<Position> read_position(const json::value& value) {
  if (const json::string* text = value.if_string()) {
    if (*text == "first" || *text == "FIRST") return Position{Position::Kind::first};
    if (ascii_lowered({text->data(), text->size()}) == "default") return Position{};
  }
  if (const json::object* object = value.if_object()) {
    const json::value* after = object->if_contains("after");
    if (after != nullptr && after->is_string()) {
      const json::string& column = after->get_string();
      return Position{Position::Kind::after, std::string(column.data(), column.size())};
    }
    return illegal_argument("Cannot parse to a string value after: " + shown(after));
  }
  return illegal_argument("Unknown json column position: " + shown(&value));
}

// Where the column, which stands at `self`, is to be among the others.
Result<int> index_of(const Position& position, const TableColumns& columns, int self) {
  if (position.kind == Position::Kind::first) return 0;
  const CatalogColumn* found = columns.find(position.column);
  const int after = found == nullptr ? -1 : columns.index_of(*found);
  if (after < 0 || after == self) {
    return illegal_argument(
        fmt::format("Column {} not found for adding column after it", position.column));
  }
  return after < self ? after + 1 : after;
}

Result<TableUpdate> read_add_column(RequestFields& fields) {
  TRY_ASSIGN(const std::string name, read_field_name(fields, "fieldName"));
  TRY_ASSIGN(const std::vector<std::string> parts, fields.text_list("fieldName"));
  if (parts.size() > 1) {
    return illegal_argument(fmt::format(
        "Column {} cannot be added: a nested field is a part of its column's type", name));
  }
  TRY(check_name(CatalogType::column, name, fields.name_pattern));
  if (fields.find("type") == nullptr) {
    return illegal_argument("\"type\" field is required and cannot be empty");
  }
  json::object column{{"name", name}};
  for (const char* member : {"type", "comment", "nullable", "autoIncrement", "defaultValue"}) {
    if (const json::value* value = fields.find(member)) column[member] = *value;
  }
  TRY_ASSIGN(CatalogColumn added, read_column(json::value(std::move(column))));
  Position position;
  if (const json::value* given = fields.find("position")) {
    TRY_ASSIGN(position, read_position(*given));
  }
  return TableUpdate([added, position](ChangingEntity& entity) -> Status {
    TableColumns& columns = entity.columns();
    if (columns.find(added.name()) != nullptr) {
      return illegal_argument(fmt::format("Column {} already exists", added.name()));
    }
    int index = columns.size();
    if (position.kind != Position::Kind::by_default) {
      TRY_ASSIGN(index, index_of(position, columns, columns.size()));
    }
    return columns.add(added, index);
  });
}

// A change of one column that must be there.
using ChangeColumn = std::function<Status(TableColumns&, CatalogColumn&)>;
TableUpdate column_update(std::string name, std::string_view what, ChangeColumn change) {
  return
      [name = std::move(name), what, change = std::move(change)](ChangingEntity& entity) -> Status {
        CatalogColumn* column = entity.columns().find(name);
        if (column == nullptr)
          return illegal_argument(fmt::format("Column {} not found for {}", name, what));
        return change(entity.columns(), *column);
      };
}

Result<TableUpdate> read_rename_column(RequestFields& fields) {
  TRY_ASSIGN(std::string name, read_field_name(fields, "oldFieldName"));
  TRY_ASSIGN(std::string new_name, fields.required_text("newFieldName"));
  TRY(check_name(CatalogType::column, new_name, fields.name_pattern));
  return column_update(name, "RenameColumn",
                       [name, new_name](TableColumns& columns, CatalogColumn& column) -> Status {
                         const CatalogColumn* other = columns.find(new_name);
                         if (other != nullptr && other != &column) {
                           return illegal_argument(fmt::format(
                               "Column {} already exists when renaming column {}", new_name, name));
                         }
                         columns.rename(column, new_name);
                         return {};
                       });
}

Result<TableUpdate> read_column_type(RequestFields& fields) {
  TRY_ASSIGN(std::string name, read_field_name(fields, "fieldName"));
  const json::value* given = fields.find("newType");
  if (given == nullptr) {
    return illegal_argument("\"newType\" field is required and cannot be empty");
  }
  TRY_ASSIGN(const json::value type, normal_type(*given));
  return column_update(name, "UpdateColumnType",
                       [text = json_text(type)](TableColumns&, CatalogColumn& column) -> Status {
                         column.set_type_json(text);
                         return {};
                       });
}

Result<TableUpdate> read_column_comment(RequestFields& fields) {
  TRY_ASSIGN(std::string name, read_field_name(fields, "fieldName"));
  TRY_ASSIGN(std::string comment, fields.required_text("newComment"));
  TRY(check_comment(comment));
  return column_update(name, "UpdateColumnComment",
                       [comment](TableColumns&, CatalogColumn& column) -> Status {
                         column.set_comment(comment);
                         return {};
                       });
}

Result<TableUpdate> read_column_position(RequestFields& fields) {
  TRY_ASSIGN(std::string name, read_field_name(fields, "fieldName"));
  const json::value* given = fields.find("newPosition");
  if (given == nullptr) {
    return illegal_argument("\"newPosition\" field is required and cannot be empty");
  }
  TRY_ASSIGN(const Position position, read_position(*given));
  return column_update(name, "UpdateColumnPosition",
                       [position](TableColumns& columns, CatalogColumn& column) -> Status {
                         if (position.kind == Position::Kind::by_default) {
                           return illegal_argument("Unsupported column position: DEFAULT");
                         }
                         const int from = columns.index_of(column);
                         TRY_ASSIGN(const int to, index_of(position, columns, from));
                         columns.move(from, to);
                         return {};
                       });
}

Result<TableUpdate> read_column_nullability(RequestFields& fields) {
  TRY_ASSIGN(std::string name, read_field_name(fields, "fieldName"));
  TRY_ASSIGN(const bool nullable, fields.flag("nullable", true));
  return column_update(name, "UpdateColumnNullability",
                       [nullable](TableColumns&, CatalogColumn& column) -> Status {
                         column.set_not_null(!nullable);
                         return {};
                       });
}

Result<TableUpdate> read_column_default(RequestFields& fields) {
  TRY_ASSIGN(std::string name, read_field_name(fields, "fieldName"));
  const json::value* given = fields.find("newDefaultValue");
  if (given == nullptr) {
    return illegal_argument("\"newDefaultValue\" field is required and cannot be empty");
  }
  TRY_ASSIGN(const json::value expression, normal_expression(*given));
  return column_update(
      name, "UpdateColumnDefaultValue",
      [text = json_text(expression)](TableColumns&, CatalogColumn& column) -> Status {
        column.set_default_json(text);
        return {};
      });
}

Result<TableUpdate> read_column_increment(RequestFields& fields) {
  TRY_ASSIGN(std::string name, read_field_name(fields, "fieldName"));
  TRY_ASSIGN(const bool auto_increment, fields.flag("autoIncrement", false));
  return column_update(name, "UpdateColumnAutoIncrement",
                       [auto_increment](TableColumns&, CatalogColumn& column) -> Status {
                         column.set_auto_increment(auto_increment);
                         return {};
                       });
}

Result<TableUpdate> read_delete_column(RequestFields& fields) {
  TRY_ASSIGN(std::string name, read_field_name(fields, "fieldName"));
  TRY_ASSIGN(const bool if_exists, fields.flag("ifExists", false));
  return TableUpdate([name = std::move(name), if_exists](ChangingEntity& entity) -> Status {
    const CatalogColumn* column = entity.columns().find(name);
    if (column != nullptr) entity.columns().remove(*column);
    if (column != nullptr || if_exists) return {};
    return illegal_argument(
        fmt::format("Column {} not found for deletion while ifExists is false", name));
  });
}

Result<TableUpdate> read_add_index(RequestFields& fields) {
  const json::value* given = fields.find("index");
  if (given == nullptr) return illegal_argument("Index cannot be null");
  TRY_ASSIGN(const json::value index, normal_index(*given));
  return TableUpdate([index](ChangingEntity& entity) -> Status {
    TRY_ASSIGN(json::array * indexes, entity.indexes());
    if (indexes->size() >= catalog_indexes_max) {
      return illegal_argument(fmt::format("A table has at most {} indexes", catalog_indexes_max));
    }
    indexes->push_back(index);
    return {};
  });
}

Result<TableUpdate> read_delete_index(RequestFields& fields) {
  TRY_ASSIGN(const std::optional<std::string> name, fields.text("name"));
  if (!name) return illegal_argument("Index name cannot be null");
  TRY_ASSIGN(const bool if_exists, fields.flag("ifExists", false));
  return TableUpdate([name = *name, if_exists](ChangingEntity& entity) -> Status {
    TRY_ASSIGN(json::array * indexes, entity.indexes());
    const auto removed = std::ranges::remove_if(*indexes, [&](const json::value& index) {
      const json::value* its_name = index.get_object().if_contains("name");
      return its_name != nullptr && *its_name == json::string_view(name);
    });
    if (removed.empty() && !if_exists) {
      return illegal_argument(fmt::format("Index {} does not exist while ifExists is false", name));
    }
    indexes->erase(removed.begin(), removed.end());
    return {};
  });
}

struct TableUpdateKind {
  std::string_view name;
  bool of_columns;
  Result<TableUpdate> (*read)(RequestFields&);
};
constexpr TableUpdateKind table_update_kinds[] = {
    {"addColumn", true, read_add_column},
    {"renameColumn", true, read_rename_column},
    {"updateColumnType", true, read_column_type},
    {"updateColumnComment", true, read_column_comment},
    {"updateColumnPosition", true, read_column_position},
    {"updateColumnNullability", true, read_column_nullability},
    {"updateColumnDefaultValue", true, read_column_default},
    {"updateColumnAutoIncrement", true, read_column_increment},
    {"deleteColumn", true, read_delete_column},
    {"addTableIndex", false, read_add_index},
    {"deleteTableIndex", false, read_delete_index},
};

}  // namespace

Result<std::optional<TableStep>> read_table_update(std::string_view kind, RequestFields& fields) {
  const auto* known = std::ranges::find(table_update_kinds, kind, &TableUpdateKind::name);
  if (known == std::end(table_update_kinds)) return std::nullopt;
  TRY_ASSIGN(TableUpdate step, known->read(fields));
  return TableStep{std::move(step), known->of_columns};
}

}  // namespace trellis
