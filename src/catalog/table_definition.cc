#include "catalog/table_definition.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "catalog/catalog_error.h"
#include "catalog/data_type.h"
#include "catalog/request_fields.h"

namespace trellis {
namespace {

using stored::CatalogColumn;
using stored::CatalogTable;

std::string_view text_of(const json::value& value) {
  const json::string& text = value.get_string();
  return {text.data(), text.size()};
}

std::string_view first_name(const json::value& field) { return text_of(field.get_array().front()); }

std::string dotted(const json::value& field) {
  std::string name;
  for (const json::value& part : field.get_array()) {
    if (!name.empty()) name += '.';
    name += text_of(part);
  }
  return name;
}

// The columns that fields may name: two that only differ in case cannot be told apart.
class TableFields {
 public:
  explicit TableFields(const CatalogTable& table) {
    for (const CatalogColumn& column : table.columns()) {
      const auto [at, is_new] = columns_.try_emplace(ascii_lowered(column.name()), &column);
      if (!is_new) at->second = nullptr;
    }
  }
  bool empty() const { return columns_.empty(); }
  const CatalogColumn* find(const json::value& field) const {
    const auto found = columns_.find(ascii_lowered(first_name(field)));
    return found == columns_.end() ? nullptr : found->second;
  }
  bool is_ambiguous(const json::value& field) const {
    return find(field) == nullptr && columns_.contains(ascii_lowered(first_name(field)));
  }
  // Absent: there is none, or it is a part of something that has no fields.
  Result<std::optional<json::value>> type_of(const json::value& field) const {
    const CatalogColumn* const column = find(field);
    if (column == nullptr) return std::optional<json::value>();
    TRY_ASSIGN(json::value type, stored_json(column->type_json()));
    for (const json::value& name : std::span(field.get_array()).subspan(1)) {
      const json::object* const object = type.if_object();
      const json::value* const parts = object == nullptr ? nullptr : object->if_contains("fields");
      if (parts == nullptr) return std::optional<json::value>();
      const auto* const part =
          std::ranges::find_if(parts->get_array(), [&](const json::value& one) {
            return ascii_lowered(text_of(one.at("name"))) == ascii_lowered(text_of(name));
          });
      if (part == parts->get_array().end()) return std::optional<json::value>();
      type = json::value(part->at("type"));
    }
    return std::optional(std::move(type));
  }

 private:
  std::unordered_map<std::string, const CatalogColumn*> columns_;  // in lower case; null: several
};

// Every field (["a","b"]) that a normal form names. What clients chose the names of is left out.
template <typename Json, typename Visit>
Status visit_fields(Json& normal, const Visit& visit) {
  if (auto* const array = normal.if_array()) {
    for (auto& element : *array) TRY(visit_fields(element, visit));
    return {};
  }
  auto* const object = normal.if_object();
  if (object == nullptr) return {};
  for (auto& member : *object) {
    const auto name = member.key();
    if (name == "fieldName") {
      TRY(visit(member.value()));
    } else if (name == "fieldNames") {
      for (auto& field : member.value().get_array()) TRY(visit(field));
    } else if (name != "assignments" && name != "dataType" && name != "properties") {
      TRY(visit_fields(member.value(), visit));
    }
  }
  return {};
}

Result<json::value> read_stored(const std::string& text) {
  if (text.empty()) return json::value(json::array());
  return stored_json(text);
}

// `parts`: one of them, or a list.
template <typename Json, typename Visit>
Status visit_parts(Json& parts, const Visit& visit) {
  auto* const list = parts.if_array();
  if (list == nullptr) return visit(parts);
  for (auto& part : *list) TRY(visit(part));
  return {};
}

// For messages: "partition field a.b", "index i field a".
std::string naming(std::string_view what, const json::value& part, const json::value& field) {
  const json::value* const name = part.get_object().if_contains("name");
  const std::string which =
      name == nullptr ? "" : fmt::format("{} ", text_of(*name).substr(0, 100));
  return fmt::format("{} {}field {}", what, which, dotted(field));
}

Status check_fields(const std::string& text, const TableFields& fields, std::string_view what) {
  TRY_ASSIGN(const json::value parts, read_stored(text));
  return visit_parts(parts, [&](const json::value& part) -> Status {
    return visit_fields(part, [&](const json::value& field) -> Status {
      if (fields.empty()) return illegal_argument("columns cannot be null or empty");
      if (fields.find(field) != nullptr) return {};
      const std::string_view why = fields.is_ambiguous(field)
                                       ? "is ambiguous: columns differ only in case"
                                       : "not found in table";
      return illegal_argument(fmt::format("{} {}", naming(what, part, field), why));
    });
  });
}

Status check_index_names(const CatalogTable& table) {
  TRY_ASSIGN(const json::value indexes, read_stored(table.indexes_json()));
  std::unordered_set<std::string_view> seen;
  for (const json::value& index : indexes.get_array()) {
    const json::value* const name = index.get_object().if_contains("name");
    if (name != nullptr && !seen.insert(text_of(*name)).second)
      return illegal_argument(
          fmt::format("Index {} is given twice", text_of(*name).substr(0, 100)));
  }
  return {};
}

Status check_columns(const CatalogTable& table) {
  std::unordered_set<std::string_view> seen;
  std::vector<std::string_view> incremented;
  for (const CatalogColumn& column : table.columns()) {
    TRY(check_column(column));
    if (!seen.insert(column.name()).second)
      return illegal_argument(fmt::format("Column {} is given twice", column.name()));
    if (column.auto_increment()) incremented.push_back(column.name());
  }
  if (incremented.size() <= 1) return {};
  return illegal_argument(
      fmt::format("Only one column can be auto-incremented. There are multiple auto-increment "
                  "columns in your table: [{}]",
                  fmt::join(incremented, ",")));
}

bool has_strategy(const json::value& part, std::string_view strategy) {
  const json::value* const its = part.get_object().if_contains("strategy");
  return its != nullptr && text_of(*its) == strategy;
}

// --- columns that change ---

// From fields of a table to those of what updates made of it. A column is known by its id: another
// that has its name by now is not what was meant.
class ColumnFollower {
 public:
  ColumnFollower(const CatalogTable& before, const CatalogTable& table) : then_(before) {
    for (const CatalogColumn& column : table.columns())
      names_.try_emplace(column.id(), column.name());
  }

  Status follow(std::string& text, std::string_view what) const {
    TRY_ASSIGN(json::value parts, read_stored(text));
    bool is_changed = false;
    TRY(visit_parts(parts, [&](json::value& part) -> Status {
      return visit_fields(part, [&](json::value& field) -> Status {
        const CatalogColumn* const column = then_.find(field);
        if (column == nullptr) return {};
        const auto now = names_.find(column->id());
        if (now == names_.end()) {
          return illegal_argument(fmt::format("Column {} cannot be deleted: {} names it",
                                              column->name(), naming(what, part, field)));
        }
        if (has_strategy(part, "identity")) return check_name_stays(*column, now->second);
        if (now->second == column->name()) return {};
        field.get_array().front() = now->second;
        is_changed = true;
        return {};
      });
    }));
    if (is_changed) text = json_text(parts);
    return {};
  }

 private:
  static Status check_name_stays(const CatalogColumn& column, const std::string& name) {
    if (ascii_lowered(name) == ascii_lowered(column.name())) return {};
    return illegal_argument(
        fmt::format("Cannot alter partition column {}: it cannot be renamed, since its partitions "
                    "have its name",
                    column.name()));
  }

  const TableFields then_;
  std::unordered_map<uint64_t, std::string> names_;  // by id
};

// --- types of literals ---

// Lengths and precisions are of values, too: "decimal(3,2)" is a decimal, texts are alike. Empty: a
// type of parts, which no literal has.
std::string_view literal_kind(const json::value& type) {
  if (!type.is_string()) return {};
  const std::string_view text = text_of(type).substr(0, text_of(type).find('('));
  return text == "char" || text == "varchar" ? "string" : text;
}

bool are_alike(const json::value& a, const json::value& b) {
  const std::string_view kind = literal_kind(a);
  const std::string_view other = literal_kind(b);
  return kind == other || kind.empty() || other.empty();
}

// What partitions there are, and partitioning that has them.
constexpr std::string_view partition_kinds[] = {"identity", "list", "range"};

Result<std::vector<json::value>> fields_by(const CatalogTable& table, std::string_view strategy) {
  TRY_ASSIGN(const json::value partitioning, read_stored(table.partitioning_json()));
  std::vector<json::value> fields;
  for (const json::value& part : partitioning.get_array()) {
    if (!has_strategy(part, strategy)) continue;
    TRY(visit_fields(part, [&](const json::value& field) -> Status {
      fields.push_back(field);
      return {};
    }));
  }
  return fields;
}

Status check_types_stay(const CatalogTable& before, const CatalogTable& table) {
  const TableFields then(before);
  const TableFields now(table);
  for (const std::string_view strategy : partition_kinds) {
    TRY_ASSIGN(const std::vector<json::value> old_fields, fields_by(before, strategy));
    TRY_ASSIGN(const std::vector<json::value> fields, fields_by(table, strategy));
    for (size_t i = 0; i < fields.size(); i++) {
      TRY_ASSIGN(const auto old_type, then.type_of(old_fields[i]));
      TRY_ASSIGN(const auto type, now.type_of(fields[i]));
      if (!old_type || now.is_ambiguous(fields[i])) continue;
      if (type && literal_kind(*old_type) == literal_kind(*type)) continue;
      return illegal_argument(
          fmt::format("Cannot alter partition column {}: {} must stay of type {}",
                      first_name(fields[i]), dotted(fields[i]), simple_type(*old_type)));
    }
  }
  return {};
}

bool is_null(const json::value& literal) {
  return literal.at("dataType") == "null" || literal.at("value").is_null();
}

Status check_literal(const TableFields& columns, const json::value& field,
                     const json::value& literal) {
  if (is_null(literal)) return {};
  const json::value& type = literal.at("dataType");
  TRY_ASSIGN(const auto column_type, columns.type_of(field));
  if (!column_type || are_alike(*column_type, type)) return {};
  return illegal_argument(
      fmt::format("A partition's value of field {} is of type {}, but found: {}", dotted(field),
                  literal_kind(*column_type), shown(&literal)));
}

Status check_count(const std::vector<json::value>& fields, const json::value& literals) {
  if (literals.get_array().size() == fields.size()) return {};
  return illegal_argument(
      fmt::format("A partition of this table has values of {} field(s), but found: {}",
                  fields.size(), shown(&literals)));
}

Status check_literals(const TableFields& columns, const std::vector<json::value>& fields,
                      const json::value& literals) {
  TRY(check_count(fields, literals));
  const json::array& values = literals.get_array();
  for (size_t i = 0; i < values.size(); i++) TRY(check_literal(columns, fields[i], values[i]));
  return {};
}

std::vector<std::string> names_of(std::span<const json::value> fields) {
  std::vector<std::string> names;
  for (const json::value& field : fields) names.push_back(ascii_lowered(dotted(field)));
  std::ranges::sort(names);
  return names;
}

// `fields`: those that the table is partitioned by in this way.
Status check_partition(const TableFields& columns, const std::vector<json::value>& fields,
                       const json::value& partition) {
  const std::string_view kind = text_of(partition.at("type"));
  if (fields.empty()) {
    return illegal_argument(
        fmt::format("The table is not partitioned by {}, but found: {}", kind, shown(&partition)));
  }
  if (kind == "identity") {
    const json::array& names = partition.at("fieldNames").get_array();
    const std::vector<json::value> given(names.begin(), names.end());
    if (names_of(given) != names_of(fields)) {
      return illegal_argument(
          fmt::format("A partition of this table has the fields [{}], but found: [{}]",
                      fmt::join(names_of(fields), ", "), fmt::join(names_of(given), ", ")));
    }
    const json::value& values = partition.at("values");
    // Gravitino reads those of Hive off the partition's name, so that they are texts.
    const bool are_texts = std::ranges::all_of(values.get_array(), [](const json::value& literal) {
      return is_null(literal) || literal_kind(literal.at("dataType")) == "string";
    });
    return are_texts ? check_count(given, values) : check_literals(columns, given, values);
  }
  if (kind == "list") {
    for (const json::value& one : partition.at("lists").get_array())
      TRY(check_literals(columns, fields, one));
    return {};
  }
  TRY(check_literal(columns, fields.front(), partition.at("upper")));
  return check_literal(columns, fields.front(), partition.at("lower"));
}

}  // namespace

Status check_column(const CatalogColumn& column) {
  if (!column.not_null() || column.default_json().empty()) return {};
  TRY_ASSIGN(const json::value by_default, stored_json(column.default_json()));
  if (text_of(by_default.at("type")) != "literal") return {};
  if (!is_null(by_default)) return {};
  return illegal_argument("Column cannot be non-nullable with a null default value: " +
                          column.name());
}

Status check_table(const CatalogTable& table) {
  TRY(check_columns(table));
  const TableFields fields(table);
  TRY(check_index_names(table));
  TRY(check_fields(table.sort_orders_json(), fields, "sort order"));
  TRY(check_fields(table.distribution_json(), fields, "distribution"));
  TRY(check_fields(table.partitioning_json(), fields, "partition"));
  return check_fields(table.indexes_json(), fields, "index");
}

Status follow_columns(const CatalogTable& before, CatalogTable& table) {
  const ColumnFollower follower(before, table);
  TRY(follower.follow(*table.mutable_sort_orders_json(), "sort order"));
  TRY(follower.follow(*table.mutable_distribution_json(), "distribution"));
  TRY(follower.follow(*table.mutable_partitioning_json(), "partition"));
  TRY(follower.follow(*table.mutable_indexes_json(), "index"));
  return table.partitioning_json().empty() ? Status() : check_types_stay(before, table);
}

Status check_partitions(const CatalogTable& table, std::span<const json::value> partitions) {
  if (partitions.empty()) return {};
  const TableFields columns(table);
  std::map<std::string_view, std::vector<json::value>> fields;  // by kind
  for (const std::string_view kind : partition_kinds) {
    TRY_ASSIGN(fields[kind], fields_by(table, kind));
  }
  for (const json::value& partition : partitions)
    TRY(check_partition(columns, fields[text_of(partition.at("type"))], partition));
  return {};
}

}  // namespace trellis
